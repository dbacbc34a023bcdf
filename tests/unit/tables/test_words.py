"""What a newcomer is told: missing packages, what was asked, what is not counted, how far numbers hold."""

import sys
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tacit as tc
from support.asking import ledger_of, task_of, visits
from tacit import TacitError
from tacit.core import AnswerTable, Cells
from tacit.core._display import shown_cell


@pytest.mark.parametrize(
    ("call", "package", "fix"),
    [
        ("to_pandas", "pandas", "pip install 'tacit[pandas]'"),
        ("to_polars", "polars", "pip install 'polars'"),
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
    assert str(refused.value.fix) == fix
    assert not list(tmp_path.iterdir())


def test_a_charge_records_the_question_in_words():
    data = visits()
    question = data.where('length_of_stay > 3 AND hospital <> \'a ","cost": b\'').group_by("hospital")
    question.agg(n=tc.count(), m=tc.mean("length_of_stay")).plan(epsilon=1).release(who="ana")
    data.sql("SELECT COUNT(DISTINCT patient_id) FROM visits").plan(epsilon=1).release()
    data.agg(n=tc.count()).plan(epsilon=1).release()
    told = [entry.asked for entry in ledger_of(data).history() if entry.kind == "draw"]
    assert told[0].startswith(
        "n = count, m = mean(length_of_stay), by hospital, where (length_of_stay > 3) AND "
    )
    assert told[0].endswith(", of visits")
    assert told[1:] == [
        "count_distinct_patient_id = count_distinct(patient_id), of visits",
        "n = count, of visits",
    ]
    assert sum('"asked": "n = count' in line for line in ledger_of(data).export()) == 2
    assert ledger_of(data).verify().ok


def test_a_long_question_is_cut_and_odd_names_are_no_obstacle():
    data = visits()
    many = ", ".join(f"'{i}'" for i in range(500))
    plan = data.where(f"hospital IN ({many})").agg(n=tc.count()).plan(epsilon=1)
    assert len(plan.asked) == 400
    assert plan.asked.endswith("...")
    plan.release()
    odd = data.agg(**{"n\ud800": tc.count()}).plan(epsilon=1)
    assert odd.asked == "n? = count, of visits"


def shown(release):
    return " ".join(repr(release).split()), release._repr_html_()


def test_a_release_says_which_rows_are_not_counted():
    known = visits().group_by("hospital").agg(n=tc.count()).plan(epsilon=1).release()
    for text in shown(known):
        assert (
            "rows without a patient_id and rows whose hospital is missing or not among the keys, if any, "
            "are not counted" in text
        )
    for text in shown(visits().agg(n=tc.count()).plan(epsilon=1).release()):
        assert "rows without a patient_id, if any, are not counted" in text
        assert "among the keys" not in text
    rows = visits(unit=tc.Unit.row()).agg(n=tc.count()).plan(epsilon=1).release()
    assert "not counted" not in repr(rows)


@pytest.mark.parametrize(("epsilon", "lines"), [(1, True), (0.001, False)])
def test_a_release_says_from_which_size_private_groups_are_shown(epsilon, lines):
    plan = visits(keys={}).group_by("hospital").agg(n=tc.count()).plan(epsilon=epsilon, delta=1e-9)
    above = task_of(plan).mechanisms[0].threshold
    release = plan.release()
    assert bool(len(release)) is lines
    for text in shown(release):
        assert f"groups with fewer than about {above:,} patients are usually hidden" in text
        assert "among the keys" not in text


def test_a_count_below_zero_is_explained_only_where_there_is_one():
    data = visits(bounds={"age": (-5, 5)}, keys={"hospital": [f"none {i}" for i in range(40)]})
    release = data.group_by("hospital").agg(n=tc.count(), s=tc.sum("age")).plan(epsilon=0.5).release()
    assert min(release["n"].value) < 0  # 40 noises of no rows
    assert min(release["s"].value) < 0
    for text in shown(release):
        assert "n below 0: noise can push small counts below 0" in text
    assert "below 0" not in repr(release.rounded("n"))
    renamed = (
        data.sql("SELECT hospital, COUNT(*) AS k FROM visits GROUP BY hospital").plan(epsilon=0.5).release()
    )
    assert ("k below 0" in repr(renamed)) is (min(renamed["k"].value) < 0)
    large = visits().agg(n=tc.count(), s=tc.sum("length_of_stay")).plan(epsilon=1).release()
    assert "below 0" not in repr(large)


@given(st.floats(-1e18, 1e18, allow_subnormal=False), st.floats(0, 1e6))
@example(1907.63, 4646.57)
@example(9999.6, 0.001)
def test_an_interval_on_the_screen_covers_what_it_covered(low, width):
    high = low + width
    _, *ends = shown_cell(None, low, high)
    first, second = (Fraction(end.replace(",", "")) for end in ends)
    low = max(Fraction(low), Fraction(repr(low)))  # the number itself, or as Python and files write it
    high = min(Fraction(high), Fraction(repr(high)))
    assert first <= low
    assert high <= second
    half = (high - low) / 2  # two digits of it are shown, or four digits of the end
    for end, told in ((low, first), (high, second)):
        assert abs(told - end) <= max(abs(end) / 999, half / 10, Fraction(1, 10**300))


def test_screen_and_csv_tell_the_same_interval():
    cells = Cells((4231.1,), (1907.63,), (6554.2,))
    paid = visits().agg(n=tc.count()).plan(epsilon=1).release()
    release = replace(paid, content=AnswerTable({}, {"n": cells}, 0.95))
    assert "[1,907, 6,555]" in repr(release)
    assert release.to_csv() == "n,n_low,n_high\n4231,1907,6555\n"


def test_words_about_units_read_well():
    table = pa.table({"id": [1, 2], "g": ["a", "b"]})
    data = tc.protect(
        table, unit="id", limits={"rows": 1}, keys={"g": ["a", "b"]}, budget=tc.Budget(epsilon=1)
    )
    asked = {"one": data.group_by("g").agg(n=tc.count()), "book": data.crosstabs(["g"], tables=[("g",), ()])}
    for question in (*asked.values(), data.ranges("g", values=["a", "b"]), tc.batch(**asked)):
        text = f"{question.plan(epsilon=0.1)}".replace("\n", " ")
        assert "at most 1 row of each id counts" in text
        assert "in 1 group" not in text
        assert "without a id" not in text
        assert "1 cells" not in text
    assert "book, agreement: all tables agree" in text
    assert "of book" not in text
