"""What a newcomer is told: missing packages, what was asked, what is not counted, how far numbers hold."""

import sys

import pytest

import tacit as tc
from tacit import TacitError
from tacit.tables import example_visits
from tacit.tables.examples import EXAMPLE_HOSPITALS


def visits(**options):
    return tc.protect(
        example_visits(),
        **{
            "name": "visits",
            "unit": "patient_id",
            "bounds": {"length_of_stay": (0, 30)},
            "keys": {"hospital": EXAMPLE_HOSPITALS},
            "budget": tc.Budget(epsilon=10**6, delta=0.01),
            **options,
        },
    )


@pytest.mark.parametrize(
    ("call", "package", "fix"),
    [
        ("to_pandas", "pandas", "pip install 'tacit[pandas]'"),
        ("to_polars", "polars", "pip install polars"),
        ("to_arrow", "pyarrow", "pip install 'tacit[pandas]'"),
        ("to_parquet", "pyarrow", "pip install 'tacit[pandas]'"),
        ("plot", "matplotlib", "pip install 'tacit[plot]'"),
    ],
)
def test_a_missing_package_is_named_with_the_line_that_installs_it(call, package, fix, monkeypatch, tmp_path):
    release = visits().agg(n=tc.count()).plan(epsilon=1).release()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(TacitError) as refused:
        getattr(release, call)(*([tmp_path / "r.parquet"] if call == "to_parquet" else []))
    assert refused.value.code == "missing-extra"
    assert refused.value.what == f"{call} needs {package}, which is not installed"
    assert refused.value.fix == fix
    assert not list(tmp_path.iterdir())


def test_a_charge_records_the_question_in_words():
    data = visits()
    question = data.where('length_of_stay > 3 AND hospital <> \'a ","cost": b\'').group_by("hospital")
    question.agg(n=tc.count(), m=tc.mean("length_of_stay")).plan(epsilon=1).release(who="ana")
    data.sql("SELECT COUNT(DISTINCT patient_id) FROM visits").plan(epsilon=1).release()
    data.agg(n=tc.count()).plan(epsilon=1).release()
    told = [entry.asked for entry in data.ledger.history() if entry.kind == "draw"]
    assert told[0].startswith(
        "n = count, m = mean(length_of_stay), by hospital, where (length_of_stay > 3) AND "
    )
    assert told[0].endswith(", of visits")
    assert told[1:] == [
        "count_distinct_patient_id = count_distinct(patient_id), of visits",
        "n = count, of visits",
    ]
    assert sum('"asked": "n = count' in line for line in data.ledger.export()) == 2
    assert data.ledger.verify().ok


def test_a_long_question_is_cut_and_odd_names_are_no_obstacle():
    data = visits()
    many = ", ".join(f"'{i}'" for i in range(500))
    plan = data.where(f"hospital IN ({many})").agg(n=tc.count()).plan(epsilon=1)
    assert len(plan.asked) == 400
    assert plan.asked.endswith("...")
    plan.release()
    odd = data.agg(**{"n\ud800": tc.count()}).plan(epsilon=1)
    assert odd.asked == "n? = count, of visits"
