"""STRPTIME: text with its parts in another order is read as a date; what is not such a date is missing."""

import pytest

import tacit as tc
from tacit import TacitError


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    cells = ["31.12.2023", "1.2.2023", "31.02.2023", "2023-12-31", "", "31.12.2023 14:30", "12/31/2023"]
    cells += [
        "1.1.2024.77",
        "30.11.1.2024",
        "1.1.2024 24:00",
        "1.1.2024 10:00+14",
        "1.1.2024 10:00 x",
        "1.1.2024.",
    ]
    file = tmp_path_factory.mktemp("dates") / "v.csv"
    file.write_text("id,d\n" + "".join(f"{n},{cell}\n" for n, cell in enumerate(cells)))
    return tc.protect(
        file,
        name="v",
        unit="id",
        limits={"rows": 1},
        budget=tc.Budget(epsilon=9000),
        ledger=tc.Ledger.memory(),
    )


@pytest.mark.parametrize(
    ("condition", "exact"),
    [
        ("STRPTIME(d, '%d.%m.%Y') = DATE '2023-12-31'", 1),
        ("TRY_STRPTIME(d, '%d.%m.%Y') = DATE '2023-02-01'", 1),
        ("CAST(STRPTIME(d, '%d.%m.%Y %H:%M') AS DATE) = DATE '2023-12-31'", 1),
        ("HOUR(STRPTIME(d, '%d.%m.%Y %H:%M')) = 14", 1),
        ("STRPTIME(d, '%m/%d/%Y') = DATE '2023-12-31'", 1),
        ("STRPTIME(d, '%Y-%m-%d') = DATE '2023-12-31'", 1),
        ("STRPTIME(d, '%d.%m.%Y') IS NULL", 11),
        ("STRPTIME(d, '%d.%m.%Y %H:%M') IS NOT NULL", 1),
    ],
)
def test_dates_are_read_by_their_format(data, condition, exact):
    release = data.sql(f"SELECT COUNT(*) AS n FROM v WHERE {condition}").plan(epsilon=400).release()
    assert release.value == exact


@pytest.mark.parametrize("form", ["%Y", "%y.%m.%d", "%d.%m.%d", "%d %m %Y", "%d.%m/%Y", "%d.%m.%Y %p", ""])
def test_other_formats_are_refused_with_one_that_works(data, form):
    with pytest.raises(TacitError) as refusal:
        data.sql(f"SELECT COUNT(*) AS n FROM v WHERE STRPTIME(d, '{form}') IS NULL")
    assert refusal.value.code == "not-allowed"
    assert "'%d.%m.%Y'" in str(refusal.value.fix)
