"""What a user relies on: plans, refusals, rows that repeat, and a release that holds noisy integers alone."""

import json
import re
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.mechanisms import AdaptiveTables
from tacit.synth import SyntheticTable

RNG = np.random.default_rng(11)
MANY = 3000
PEOPLE = pd.DataFrame(
    {
        "person_id": np.arange(MANY) // 2,
        "sex": RNG.choice(["F", "M"], MANY),
        "job": RNG.choice(["nurse", "clerk", None], MANY),
        "age": RNG.integers(0, 100, MANY).astype(float),
        "joined": pd.to_datetime("2020-01-01") + pd.to_timedelta(RNG.integers(0, 700, MANY), "D"),
        "well": RNG.random(MANY) < 0.7,
        "note": [f"free text {i}" for i in range(MANY)],
    }
)
COLUMNS = ["sex", "job", "age", "joined", "well"]
BINS = {"age": [0, 20, 40, 60, 100], "joined": ["2020-01-01", "2020-07-01", "2021-01-01", "2022-01-01"]}


def protected(people=PEOPLE, *, unit="person_id", **more):
    more.setdefault("limits", {"rows": 2})
    if unit is None:
        more.pop("limits")
    return tc.protect(
        people,
        name="people",
        unit=tc.Unit.row() if unit is None else unit,
        keys={"sex": ["F", "M"], "job": ["nurse", "clerk"], "well": [False, True]},
        bounds={"age": (0, 100)},
        budget=tc.Budget(rho=1000),
        **more,
    )


@pytest.fixture(scope="module")
def people():
    return protected()


@pytest.fixture(scope="module")
def release(people):
    never = [{"sex": "M", "job": "nurse"}, {"age": [10, 30], "well": False}, {"sex": None}]
    return people.synthesize(COLUMNS, bins=BINS, keep=[("age", "sex")], never=never).plan(rho=5).release()


def test_rows_have_the_public_values_and_nothing_that_can_never_be(release):
    rows = release.to_pandas()
    assert list(rows.columns) == COLUMNS
    assert abs(len(rows) - MANY) < 60
    assert set(rows.sex) == {"F", "M"}  # declared never to be missing
    assert set(rows.job.dropna()) <= {"nurse", "clerk"}
    assert rows.job.isna().any()  # a missing value is a key of its own
    assert rows.age.dropna().between(0, 100).all()
    assert (rows.age.dropna() % 1 == 0).all()  # whole cuts, whole values
    assert rows.joined.dropna().between("2020-01-01", "2022-01-01").all()
    assert not ((rows.sex == "M") & (rows.job == "nurse")).any()
    assert not ((rows.age < 40) & (rows.well == False)).any()  # noqa: E712 - not objects alone


def test_asking_again_gives_the_same_rows_and_another_draw_gives_others(release, tmp_path):
    rows = release.to_pandas(rows=200)
    assert rows.equals(release.to_pandas(rows=200))
    assert not rows.equals(release.to_pandas(rows=200, draw=1))
    release.save(tmp_path / "people.json")
    loaded = tc.Release.load(tmp_path / "people.json")
    assert rows.equals(loaded.to_pandas(rows=200))
    assert loaded.content.report().text() == release.content.report().text()


def test_a_release_is_a_function_of_the_stored_integers(release):
    document = json.loads(json.dumps(release.content.to_json()))
    again = SyntheticTable.from_json(document)
    assert again.to_csv(rows=50) == release.to_csv(rows=50)
    assert json.dumps(again.to_json()) == json.dumps(release.content.to_json())
    # what is stored beside public facts: choices, and tables of noisy whole numbers with their noise
    assert set(document) == {"columns", "design", "steps", "confidence", "left_out"}
    for kind, columns, level, *cells in document["steps"]:
        assert kind in {"choice", "table"}
        assert isinstance(level, str)
        assert all(isinstance(c, int) for c in columns)
        assert len(cells) == (kind == "table")
        assert all(type(one) is int for one in (cells[0] if cells else []))


def test_measured_tables_have_intervals_and_others_say_that_they_are_not_covered(people):
    found = people.synthesize(COLUMNS, bins=BINS, keep=[("age", "sex")], method="mst").plan(rho=5).release()
    table = found.tables[("sex", "age")]
    assert list(table.keys) == ["sex", "age"]
    true = pd.crosstab(PEOPLE.sex, pd.cut(PEOPLE.age, BINS["age"], right=False)).to_numpy().ravel()
    lines = zip(table.columns["rows"].value, table.keys["sex"], table.keys["age"], strict=True)
    values = [value for value, sex, age in lines if sex is not None and age is not None]
    assert np.abs(np.array(values) - true).max() < 25
    assert ("age",) in found.tables
    pairs = [(a, b) for a in COLUMNS for b in COLUMNS if a < b and (a, b) not in found.tables]
    assert pairs  # a tree does not have all of them
    missing = found.tables[pairs[0]]
    assert missing.columns["rows"].low == (None,) * len(missing)
    assert "not covered" in repr(missing)


def test_a_plan_reads_no_data_and_comes_back_from_its_document(people):
    question = people.synthesize(
        COLUMNS, bins=BINS, other=["job"], never=[{"sex": "M", "job": "(other)"}], keep=["age"], size=5000
    )
    plan = question.plan(epsilon=1, delta=1e-6)
    assert plan.cost.epsilon(delta=1e-6) <= 1
    assert people.plan_from(json.loads(json.dumps(plan.to_json()))) == plan
    text = repr(plan)
    for words in ("AIM", "largest model", "not covered", "declared impossible", "made up evenly"):
        assert words in text.replace("\n", " ")
    assert question.plan(epsilon=1, delta=1e-7) != plan


def test_a_question_says_what_it_asks_and_how_it_is_planned(people):
    asked = people.synthesize(["sex", "well"])
    assert repr(asked).startswith("question to people: synthetic rows of sex, well\nnot planned yet")
    [shown] = re.findall(r"\.plan\((.*?)\)", repr(asked))
    plan = eval(f"asked.plan({shown})")
    assert plan.cost.epsilon(delta=1e-9) <= 1
    assert plan.release().question == "synthetic rows: by sex and well, of people"


class Watched:
    """An engine that counts its readings, and how many of them are open."""

    def __init__(self, engine):
        self.engine, self.begun, self.open = engine, 0, 0

    def __getattr__(self, name):
        return getattr(self.engine, name)

    @contextmanager
    def transaction(self):
        self.begun, self.open = self.begun + 1, self.open + 1
        with self.engine.transaction() as reading:
            yield reading
        self.open -= 1


def test_no_reading_stays_open_while_tables_are_chosen(monkeypatch):
    data = protected()
    watched = Watched(data._engine)
    object.__setattr__(data, "_engine", watched)
    release, open_then = AdaptiveTables.release, []

    def seen(mechanism, tables):
        open_then.append(watched.open)
        return release(mechanism, tables)

    monkeypatch.setattr(AdaptiveTables, "release", seen)
    asked = data.synthesize(["sex", "well"], method="mst")
    asked.plan(rho=1).release()
    assert (open_then, watched.begun) == ([0], 1)
    tc.batch(rows=asked, n=data.agg(n=tc.count())).plan(rho=1).release()  # both see the same rows
    assert (open_then, watched.begun) == ([0, 1], 2)


def test_plans_of_neighbouring_data_are_equal():
    fewer = protected(PEOPLE.iloc[2:])
    assert (
        fewer.synthesize(COLUMNS, bins=BINS).plan(rho=1).hash
        == protected().synthesize(COLUMNS, bins=BINS).plan(rho=1).hash
    )


def test_several_rows_of_a_unit_cost_their_square(people):
    def sigma(rows):
        plan = people[people.main].limit(rows=rows).synthesize(["sex", "well"]).plan(rho=1)
        return plan.forecast[0].error

    assert sigma(2) == pytest.approx(2 * sigma(1), abs=2)


def test_one_row_for_each_unit(people):
    each = people.per_unit(visits=tc.count(), oldest=tc.max("age", bounds=(0, 100)))
    release = (
        each.synthesize(["visits", "oldest"], bins={"visits": [0, 1, 2, 3], "oldest": [0, 50, 100]})
        .plan(rho=5)
        .release()
    )
    assert abs(release.total - MANY / 2) < 40


def test_replacing_a_unit_costs_more_noise_and_is_not_refused():
    kept = protected(adjacency="replace").synthesize(["sex", "well"]).plan(rho=1)
    added = protected().synthesize(["sex", "well"]).plan(rho=1)
    assert kept.forecast[0].error > added.forecast[0].error
    assert kept.release().total == pytest.approx(MANY, abs=60)


@pytest.mark.parametrize("method", ["aim", "mst", "tables"])
def test_next_to_no_data_and_much_noise_still_give_a_valid_table(method):
    few = protected(PEOPLE.iloc[:2])
    release = few.synthesize(COLUMNS, bins=BINS, method=method).plan(rho=1e-4).release()
    assert len(release.to_pandas()) == max(0, round(release.total))
    assert len(release.to_pandas(rows=25)) == 25
    assert release.report().text()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda d: d.synthesize(["sex"]).plan(epsilon=1), "need a delta"),
        (lambda d: d.synthesize(["sex", "note"]), "the values of note are not public"),
        (lambda d: d.synthesize(["sex", "person_id"]), "person_id"),
        (lambda d: d.synthesize(["sex"], method="gan"), "method"),
        (lambda d: d.synthesize(["sex"], keep=[("sex", "age")]), "keep names 'age'"),
        (lambda d: d.synthesize(["sex"], never=[{"sex": "X"}]), "never of sex"),
        (
            lambda d: d.synthesize(["sex"], never=[{"sex": ["F", "M"]}, {"sex": None}]),
            "something is left|among",
        ),
        (lambda d: d.synthesize(["sex", "age"], bins={"age": 50}, keep=[("sex", "age")], size=10), "keep"),
        (lambda d: d[d.main].sample(0.5).synthesize(["sex"]), "sample"),
        (lambda d: d.synthesize(COLUMNS, bins=BINS, size=10**9), "size"),
        (lambda d: d.synthesize(COLUMNS, bins=BINS).plan(rho=1e-40), "noise would be larger"),
        (
            lambda d: d.synthesize(
                ["age", "joined"],
                bins={"age": 9999, "joined": BINS["joined"] * 1},
                keep=[("age", "joined")],
                size=100,
            ),
            "keep",
        ),
        (
            lambda d: d.synthesize(
                ["sex", "well"], bins={}, never=[{"sex": "F"}, {"sex": "M"}, {"sex": None}]
            ),
            "left",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_and_costs_nothing(people, ask, words):
    before = repr(people)
    with pytest.raises(TacitError, match=words):
        ask(people)
    assert repr(people) == before


def test_a_row_can_be_the_unit():
    release = protected(unit=None).synthesize(["sex", "well", "job"]).plan(rho=2).release()
    assert abs(release.total - MANY) < 20


def test_forged_contents_are_refused(release):
    good = release.content.to_json()
    for change in (
        {"steps": []},
        {"steps": [["table", [0, 9], "1", [1]]]},
        {"steps": [["table", [0], "-1", [1, 2, 3]]]},
        {"steps": [["table", [0], "1", [1.5, 2, 3]]]},
        {"steps": [["secret", [0], "1", [1, 2, 3]]]},
        {"confidence": 2},
        {"columns": good["columns"][:2]},
    ):
        with pytest.raises(ValueError, match=r"."):
            SyntheticTable.from_json({**good, **change})


def test_the_release_shows_itself(release):
    assert "Measured tables" in repr(release)
    assert "<table>" in release._repr_html_()
    text = release.report().text()
    assert "distance in sigma" in text
    picture = release.plot()
    assert len(picture.axes) >= 1
    assert release.plot("sex x age" if "sex x age" in repr(release) else None).axes


def test_forged_plans_are_refused(people):
    document = (
        people.synthesize(COLUMNS, bins=BINS, never=[{"sex": "M", "job": "nurse"}]).plan(rho=1).to_json()
    )
    for never in ([[[0, 1], [10**9]]], [[[0, 99], [0]]], [[[1, 0], [0]]], [[[0], [0, 1, 2]]], "all"):
        forged = {**document, "request": {**document["request"], "never": never}}
        with pytest.raises(TacitError):
            people.plan_from(forged)


def test_types_of_columns_do_not_depend_on_the_draw(release):
    kinds = [
        str(release.to_pandas(rows=rows, draw=draw).dtypes.age) for rows, draw in [(1, 0), (2, 5), (400, 1)]
    ]
    assert len(set(kinds)) == 1


def test_all_tables_are_measured_together_and_agree():
    plan = protected(unit=None).synthesize(COLUMNS, bins=BINS, method="tables").plan(rho=1)
    release = plan.release()
    assert {step[0] for step in release.steps} == {"residual"}
    sums = [np.sum(release.tables[pair].columns["rows"].value) for pair in release.tables]
    assert len(sums) == 10
    assert np.ptp(sums) < 1e-6  # tables that are measured one by one differ by their noise
    assert abs(sums[0] - release.total) < 1e-6
    alone = tc.mechanisms.AdaptiveTables(rho=1, rows=1).sigma_for(Fraction(1, 10))
    cells = sum(table.counts.size for table in release.measured)
    square = sum(table.counts.size * table.sigma**2 for table in release.measured) / cells
    assert square < 0.8 * float(alone) ** 2  # and have more of it
    again = type(release.content).from_json(json.loads(json.dumps(release.content.to_json())))
    assert (again.codes() == release.codes()).all()


def test_a_document_without_one_of_its_residuals_is_refused():
    release = protected(unit=None).synthesize(COLUMNS, bins=BINS, method="tables").plan(rho=1).release()
    document = json.loads(json.dumps(release.content.to_json()))
    kind = type(release.content)
    for steps in (document["steps"][1:], [*document["steps"], document["steps"][0]], []):
        with pytest.raises(ValueError, match="not a synthetic table"):
            kind.from_json({**document, "steps": steps})
    many = {**document["design"], "up_to": 4, "method": "aim"}
    with pytest.raises(ValueError, match="not a synthetic table"):
        kind.from_json({**document, "design": many})
