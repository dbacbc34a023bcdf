"""Bounds that a plan finds privately: one charge, the same integers everywhere, and twins that are caught."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit import TacitError
from tacit.algebra import FoundCells, FoundGrid, MomentSums, OctaveBins
from tacit.core import Release, members_of
from tacit.mechanisms import DiscreteLaplace
from tacit.strategies import CellNoise, OctaveCells, find_bounds
from tacit.tables._invented import InventedTables
from tacit.tables.planning import _bounds_search, _found_bounds_subject

WARDS = ["A", "B", "C"]
PEOPLE = 4_000


def spendings(people: int = PEOPLE, *, seed: int = 1) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    return pd.DataFrame({
        "person": range(people),
        "x": draw.lognormal(3, 1, people),
        "age": draw.integers(18, 63, people).astype(float),
        "ward": draw.choice(WARDS, people),
    })  # fmt: skip


def protected(frame=None, *, rows=1, epsilon=1e6, **facts):
    return tc.protect(
        spendings() if frame is None else frame, unit="person", name="visits", limits={"rows": rows},
        keys={"ward": WARDS}, budget=facts.pop("budget", tc.Budget(epsilon=epsilon)), **facts,
    )  # fmt: skip


@pytest.fixture(scope="module")
def visits():
    return protected()


@pytest.mark.parametrize("take", ["declaring", "noting"])
@pytest.mark.parametrize("other", ["content", "data", "plan", "none"])
def test_only_a_release_declares_or_notes(visits, take, other):
    plan = visits.agg(n=tc.count()).plan(epsilon=1)
    given = {"content": plan.release().content, "data": visits, "plan": plan, "none": None}[other]
    with pytest.raises(TacitError, match="release must be a"):
        getattr(visits, take)(given)


def by_ward(data, **aggregates):
    return data.group_by("ward").agg(**aggregates)


def test_a_mean_and_a_sum_need_no_range(visits):
    frame = spendings()
    release = (
        visits.agg(m=tc.mean("x", bounds="auto"), s=tc.sum("x", bounds="auto")).plan(epsilon=2).release()
    )
    [found] = release.found
    assert found.columns == ("m", "s")
    assert found.low == (0,)
    assert found.high[0] >= np.quantile(frame.x, 0.99)
    clipped = frame.x.clip(0, found.high[0])
    assert release["m"].low[0] - 2 < clipped.mean() < release["m"].high[0] + 2
    assert release["s"].value[0] == pytest.approx(clipped.sum(), rel=0.1)
    assert release.to_dict()["m_high_bound"] == [found.high[0]]
    assert f"cut to 0..{found.high[0]:g} (bounds found privately)" in repr(release)


def test_groups_have_their_own_bounds_and_rare_groups_share_those_of_all():
    frame = spendings()
    frame.loc[frame.ward == "A", "x"] *= 2**12
    few = frame[(frame.ward != "C") | (frame.index < 12)]
    release = by_ward(protected(few), m=tc.mean("x", bounds="auto")).plan(epsilon=2).release()
    [found] = release.found
    a, b, c = found.high
    assert a >= 2**10 * b
    assert c >= a / 4  # nobody in C alone gives a range: that of all groups together holds A's values too


def test_ages_are_narrowed_and_spreads_are_read_on_the_bounds(visits):
    release = (
        visits.agg(a=tc.mean("age", bounds="auto"), sd=tc.std("age", bounds="auto")).plan(epsilon=4).release()
    )
    [found] = release.found
    assert 8 <= found.low[0] < 25
    assert 55 < found.high[0] <= 96
    assert release["a"].value[0] == pytest.approx(spendings().age.mean(), abs=1)
    assert release["sd"].value[0] == pytest.approx(spendings().age.std(), abs=2)


def test_quantiles_choose_among_candidates_between_the_bounds(visits):
    asked = by_ward(
        visits, n=tc.count(), med=tc.median("x", bounds="auto"), q=tc.quantiles("x", [0.25], bounds="auto"),
        i=tc.median("x", bounds="auto", interval=True), most=tc.max("x", bounds="auto"),
    )  # fmt: skip
    release = asked.plan(epsilon=20).release()
    for i, ward in enumerate(WARDS):
        values = spendings()[spendings().ward == ward].x
        assert release["med"].value[i] == pytest.approx(values.median(), abs=3)
        assert release["q_0.25"].low[i] <= values.quantile(0.25) <= release["q_0.25"].high[i]
        assert release["i"].low[i] <= values.median() <= release["i"].high[i]
        assert release["most"].value[i] == pytest.approx(values.quantile(0.99), rel=0.3)


def test_totals_share_one_range_and_add_up(visits):
    release = visits.group_by("ward").rollup().agg(s=tc.sum("x", bounds="auto")).plan(epsilon=4).release()
    [found] = release.found
    assert len(set(found.high)) == 1
    assert release["s"].value[-1] == pytest.approx(sum(release["s"].value[:-1]))


def test_private_totals_of_each_unit_are_cut_not_its_rows():
    frame = pd.concat([spendings()] * 3)
    data = protected(frame, rows=3, bounds={"x": (0, 10**6)})
    totals = data.per_unit(total=tc.sum("x")).agg(s=tc.sum("total", bounds="auto")).plan(epsilon=2).release()
    exact = 3 * spendings().x.clip(0, totals.found[0].high[0] / 3).sum()
    assert totals["s"].value[0] == pytest.approx(exact, rel=0.1)
    assert "s: without the cut it is at least" in repr(totals)


@pytest.mark.parametrize("frame", [spendings(0), spendings(15), spendings().assign(x=0.0)])
def test_without_enough_values_there_is_no_range_but_the_charge_and_the_number_of_rows(frame):
    data = protected(frame)
    before = data._ledger.account("visits").spent.epsilon or 0
    for _ in range(2):  # noise alone makes a range in at most 1 of 200 plans
        release = data.agg(m=tc.mean("x", bounds="auto")).plan(epsilon=1).release()
        if release.found[0].low == (None,):
            break
    assert (release["m"].value, release["m"].low) == ((None,), (None,))
    assert release.found[0].rows[0] == pytest.approx(len(frame), abs=60)
    assert "no range found for x" in repr(release)
    assert data._ledger.account("visits").spent.epsilon == before + 1


@pytest.mark.parametrize("goal", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.1}])
def test_the_shares_add_up_to_the_cost(goal):
    data = protected(budget=tc.Budget(rho=100, delta=1e-3))
    plan = by_ward(data, m=tc.mean("x", bounds="auto"), n=tc.count_units()).plan(**goal)
    if len(goal) == 1 and "epsilon" in goal:
        assert plan.cost.spend.epsilon == 1
        shares = [Fraction(one.sensitivity) / one.scale for one in members_of(plan)[0].task.mechanisms]
        assert shares == [Fraction(17, 80), Fraction(3, 80), Fraction(3, 8), Fraction(3, 8)]
    elif "rho" in goal:
        assert plan.cost.spend.rho <= Fraction("0.1")
    assert plan.release().found


def test_a_sum_alone_is_not_narrowed(visits):
    plan = visits.agg(s=tc.sum("x", bounds="auto")).plan(epsilon=1)
    shares = [Fraction(one.sensitivity) / one.scale for one in members_of(plan)[0].task.mechanisms]
    assert shares == [Fraction(17, 80), Fraction(63, 80)]


def test_sql_declarations_and_python_ask_the_same_plan(visits):
    python = by_ward(visits, m=tc.mean("x", bounds="auto")).plan(epsilon=1)
    sql = visits.sql("SELECT ward, AVG(x) AS m FROM visits GROUP BY ward", bounds={"x": "auto"}).plan(
        epsilon=1
    )
    declared = by_ward(protected(bounds={"x": "auto"}), m=tc.mean("x")).plan(epsilon=1)
    assert python == sql == declared
    assert any("tacit_keys" in text for text in sql.sql)
    given = visits.sql("SELECT AVG(x) AS m FROM visits", bounds={"x": (0, 60)}).plan(epsilon=1)
    assert given == visits.agg(m=tc.mean("x", bounds=(0, 60))).plan(epsilon=1)


REBUILD = """
import json, sys
from test_found_bounds import protected
document = json.load(sys.stdin)
assert protected().plan_from(document).hash == document["plan"]
"""


def test_a_plan_is_rebuilt_here_and_in_a_fresh_process_and_its_stored_answer_is_free(visits):
    plan = by_ward(visits, m=tc.mean("x", bounds="auto"), q=tc.median("x", bounds="auto")).plan(epsilon=1)
    document = json.loads(json.dumps(plan.to_json()))
    assert visits.plan_from(document) == plan
    release, left = plan.release(), visits.remaining
    again = visits.plan_from(document).release()
    assert again.content.to_json() == release.content.to_json()
    assert visits.remaining == left
    assert Release.from_json(json.loads(json.dumps(release.to_json()))).found == release.found
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    done = subprocess.run(
        [sys.executable, "-c", REBUILD], input=json.dumps(document), capture_output=True, text=True,
        check=False, timeout=300, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_batch_finds_bounds_in_each_of_its_parts(visits):
    questions = {"m": visits.agg(m=tc.mean("x", bounds="auto")), "n": visits.agg(n=tc.count())}
    plan = tc.batch(**questions).plan(epsilon=3)
    assert visits.plan_from(json.loads(json.dumps(plan.to_json()))) == plan
    release = plan.release()
    assert release["m"].found[0].high[0] > 20


def test_found_bounds_are_declared_and_the_next_question_pays_no_search(visits):
    release = by_ward(visits, m=tc.mean("x", bounds="auto")).plan(epsilon=3).release()
    declaring = visits.declaring(release)
    plan = declaring.agg(m=tc.mean("x")).plan(epsilon=1)
    high = max(release.found[0].high)
    assert plan == visits.agg(m=tc.mean("x", bounds=(0, high))).plan(epsilon=1)
    assert len(members_of(plan)[0].task.mechanisms) == 1
    assert plan.release()["m"].value[0] == pytest.approx(spendings().x.mean(), abs=5)
    computed = visits.with_columns(y="x * 2").agg(m=tc.mean("y", bounds="auto")).plan(epsilon=3).release()
    for other in (computed, visits.agg(n=tc.count()).plan(epsilon=1).release()):
        with pytest.raises(TacitError, match="found no bounds"):
            visits.declaring(other)


def test_declaring_narrows_the_numbers_of_the_curator_and_never_widens_them():
    def declared(data):
        fact = data.tables["visits"].facts["age"]
        return float(fact.bounds[0]), float(fact.bounds[1]), fact.auto

    def after(bounds, **aggregates):
        data = protected(bounds={"age": bounds})
        return data, data.declaring(data.agg(**aggregates).plan(epsilon=4).release())

    wide, narrowed = after((0, 10**6), m=tc.mean("age", bounds="auto"))
    low, high, auto = declared(narrowed)
    assert 0 <= low < 25 < 55 < high <= 96
    assert auto
    total, kept = after((20, 50), s=tc.sum("age", bounds="auto"))  # of a sum, what is found reaches to zero
    assert declared(kept) == declared(total) == (20, 50, False)
    beside, kept = after((500, 600), m=tc.mean("age", bounds="auto"))
    assert declared(kept) == declared(beside) == (500, 600, False)
    for data in (wide, narrowed, kept):  # the next question is answered on what is declared now
        low, high, _ = declared(data)
        plan = data.agg(m=tc.mean("age")).plan(epsilon=1)
        assert plan == data.agg(m=tc.mean("age", bounds=(low, high))).plan(epsilon=1)
        exact = spendings().age.clip(low, high).mean()
        assert plan.release()["m"].low[0] <= exact <= plan.release()["m"].high[0]


def test_a_service_plans_found_bounds_at_the_price_that_python_has(visits):
    from tacit.service.plans._asks import AskBody, plan_of, read_ask

    body = AskBody(
        dataset="visits", sql="SELECT AVG(x) AS m FROM visits", epsilon="1/2", bounds={"x": "auto"}
    )
    assert plan_of(visits, read_ask(body)) == visits.agg(m=tc.mean("x", bounds="auto")).plan(epsilon=0.5)
    rare = body.model_copy(update={"cut": "rare"})
    asked = visits.agg(m=tc.mean("x", bounds="auto", cut="rare")).plan(epsilon=0.5)
    assert plan_of(visits, read_ask(rare)) == asked
    given = body.model_copy(update={"bounds": {"x": [0, 60]}})
    assert plan_of(visits, read_ask(given)) == visits.agg(m=tc.mean("x", bounds=(0, 60))).plan(epsilon=0.5)
    with pytest.raises(TacitError, match="the word auto"):
        read_ask(body.model_copy(update={"bounds": {"x": "wide"}}))


def test_a_config_and_public_facts_keep_that_bounds_are_found(tmp_path):
    spendings(50).to_parquet(tmp_path / "visits.parquet")
    (tmp_path / "tacit.toml").write_text(
        '[datasets.visits]\nsource = "visits.parquet"\nunit = "person"\nbudget = {epsilon = 9}\n'
        'bounds = {x = "auto"}\nlimits = {rows = 1}\n'
    )
    data = tc.tables.open_config(tmp_path / "tacit.toml").dataset("visits", ledger=tc.Ledger.memory())
    plan = data.agg(m=tc.mean("x")).plan(epsilon=1)
    assert plan == visits_of(data).agg(m=tc.mean("x", bounds="auto")).plan(epsilon=1)
    facts = json.loads(json.dumps(data.public_facts()))
    assert facts["tables"][0]["facts"]["x"]["auto"] is True
    assert tc.tables.open_facts(facts, ledger=tc.Ledger.memory()).agg(m=tc.mean("x")).plan(epsilon=1) == plan


def visits_of(data):
    """Return the same declared dataset without what it says of bounds."""
    facts = {name: replace(fact, auto=False) for name, fact in data.tables["visits"].facts.items()}
    return replace(data, tables={"visits": replace(data.tables["visits"], facts=facts)})


def test_declared_bounds_serve_the_questions_that_find_none(visits):
    asked = visits.agg(x=tc.mean("x", bounds="auto"), age=tc.mean("age", bounds="auto")).plan(epsilon=9)
    data = visits.declaring(asked.release())
    for question in (
        data.agg(c=tc.correlation("x", "age")),
        data.crosstabs(["ward", "age"], bins={"age": 3}),
        data.ranges("age", bins=8),
        data.regress("x", on=["age"]),
    ):
        assert question.plan(epsilon=1).cost.spend.epsilon <= 1
    with pytest.raises(TacitError) as refused:
        protected(bounds={"age": "auto"}).ranges("age", bins=8).plan(epsilon=1)
    assert refused.value.code == "missing-bounds"


def test_a_rare_cut_moves_only_the_ends_and_is_part_of_the_plan_only_where_it_is_asked_for(visits):
    usual = by_ward(visits, m=tc.mean("x", bounds="auto")).plan(epsilon=1)
    rare = by_ward(visits, m=tc.mean("x", bounds="auto", cut="rare")).plan(epsilon=1)
    sql = "SELECT ward, AVG(x) AS m FROM visits GROUP BY ward"
    assert rare == visits.sql(sql, bounds={"x": "auto"}, cut="rare").plan(epsilon=1)
    assert rare == protected(bounds={"x": "auto"}).sql(sql, cut="rare").plan(epsilon=1)
    assert rare != usual
    assert rare.cost.spend == usual.cost.spend
    assert '"cut"' in json.dumps(members_of(rare)[0].task.question)
    assert '"cut"' not in json.dumps([members_of(usual)[0].task.question, usual.to_json()])
    assert visits.plan_from(json.loads(json.dumps(rare.to_json()))) == rare
    release = rare.release()
    [found] = Release.from_json(json.loads(json.dumps(release.to_json()))).found
    assert found == release.found[0]
    for words in (repr(rare), repr(release)):
        text = " ".join(words.split())
        assert "92 to 95 % of draws, worst data set about 60 %; a frequency, not a guarantee" in text
    assert "frequency" not in repr(usual)
    assert visits.declaring(release).agg(m=tc.mean("x")).plan(epsilon=1).release()


def test_usual_and_rare_ends_of_one_plan_are_read_off_the_same_counts(visits):
    plan = visits.agg(
        m=tc.mean("x", bounds="auto"), r=tc.mean("x", bounds="auto", cut="rare"),
        s=tc.sum("x", bounds="auto", cut="rare"), q=tc.median("x", bounds="auto", cut="rare"),
    ).plan(epsilon=20)  # fmt: skip
    assert sum(isinstance(getattr(one.statistic, "bins", None), OctaveBins) for one in
               members_of(plan)[0].task.subject.steps) == 1  # fmt: skip
    release = plan.release()
    usual, rare = release.found
    assert (usual.columns, rare.columns) == (("m",), ("r", "s", "q"))
    assert (usual.cut, rare.cut) == (None, "rare")
    assert rare.high[0] / usual.high[0] in {4, 4 / 1.5}  # a full end stays as it is
    assert release["q"].value[0] == pytest.approx(spendings().x.median(), abs=3)
    assert release["s"].value[0] == pytest.approx(spendings().x.sum(), rel=0.1)


def test_no_neighbour_moves_the_steps_of_a_rare_cut_further_than_declared():
    data = protected(spendings(5), rows=3)
    asked = by_ward(data, m=tc.mean("x", bounds="auto", cut="rare"), s=tc.sum("x", bounds="auto"))
    for step in changes(asked.plan(epsilon=1)):
        assert all(change.holds for change in step)


def test_a_rare_cut_is_refused_where_no_bounds_are_found(visits):
    declared = protected(bounds={"x": (0, 60)})
    refused = [
        lambda: tc.mean("x", bounds=(0, 60), cut="rare"),
        lambda: visits.agg(m=tc.mean("x", cut="rare")).plan(epsilon=1),
        lambda: declared.agg(m=tc.sum("x", cut="rare")).plan(epsilon=1),
        lambda: declared.sql("SELECT AVG(x) FROM visits", cut="rare"),
        lambda: visits.sql("SELECT AVG(x) FROM visits", bounds={"x": (0, 60)}, cut="rare"),
        lambda: visits.sql("SELECT COUNT(*) FROM visits", cut="rare"),
        lambda: visits.per_unit(t=tc.sum("x", cut="rare")),
    ]
    for ask in refused:
        with pytest.raises(TacitError) as error:
            ask()
        assert error.value.code == "not-allowed"
        assert "auto" in str(error.value.fix)
    for other in ("usual", 4, ["rare"]):
        with pytest.raises(TacitError, match='must be "rare"'):
            tc.mean("x", bounds="auto", cut=other)


def test_an_audit_of_noisy_answers_finds_nothing():
    plan = protected(bounds={"x": "auto"}).agg(m=tc.mean("x")).plan(epsilon=1)
    found = tc.audit(plan, pairs=4, samples=400)
    assert found.holds
    assert [change.what for change in found.changes] == ["cells", "cells", "squares"]


def test_what_cannot_find_bounds_says_why(visits):
    private = tc.protect(spendings(50), unit="person", budget=tc.Budget(epsilon=1, delta=1e-3))
    refused = [
        lambda: private.group_by("ward").agg(m=tc.mean("x", bounds="auto")).plan(epsilon=1, delta=1e-6),
        lambda: visits.agg(m=tc.mean("x", bounds="auto")).plan(within=1, size=1000),
        lambda: visits.per_unit(t=tc.sum("x", bounds="auto")),
        lambda: tc.correlation("x", "age", bounds=("auto", (0, 100))),
        lambda: tc.best([1, 2], lambda price: tc.col("x") >= price, bounds="auto"),
        lambda: visits.sql("SELECT AVG(x) FROM visits", bounds={"age": "auto"}),
        lambda: visits.sql("SELECT AVG(x * 2) FROM visits", bounds={"x": (0, 9)}),
    ]
    stream = tc.stream(
        None, start="2026-01-01", days=7, types={"x": "number"}, level="event", name="flu",
        budget=tc.Budget(epsilon=9),
    )  # fmt: skip
    refused += [
        lambda: stream.daily(m=tc.mean("x", bounds="auto")).plan(epsilon=1),
        lambda: tc.inference.power(
            visits.agg(m=tc.mean("x", bounds="auto")).plan(epsilon=1), effect=1, n=100
        ),
    ]
    for ask in refused:
        with pytest.raises(TacitError) as error:
            ask()
        assert error.value.code in {"not-allowed", "bad-parameter"}
        assert str(error.value.fix)


FIRST = "data = data.declaring("


def test_where_no_search_is_offered_auto_is_refused_with_the_same_words(visits):
    data = protected(bounds={"age": "auto"})
    questions = {
        "correlation": lambda: tc.correlation("x", "age", bounds=("auto", (0, 100))),
        "slope": lambda: tc.slope("x", "age", bounds=((0, 9), "auto")),
        "regression": lambda: visits.regress("x", on=["age"], bounds={"x": "auto", "age": (0, 100)}),
        "all of a regression": lambda: visits.regress("x", on=["age"], bounds="auto"),
        "crosstabs": lambda: visits.crosstabs(["ward", "age"], bins={"age": "auto"}),
        "all of a table": lambda: visits.crosstabs(["age", "ward"], bins="auto"),
        "synthesize": lambda: visits.synthesize(["ward", "age"], bins={"age": "auto"}),
        "ranges": lambda: visits.ranges("age", bins="auto"),
    }
    for name, ask in questions.items():
        with pytest.raises(TacitError, match="cannot find its bounds by itself") as refused:
            ask()
        assert refused.value.code == "not-allowed", name
        assert str(refused.value.fix).startswith(FIRST), name
    others = [
        lambda: tc.best([1, 2], lambda price: tc.col("x") >= price, bounds="auto"),
        lambda: tc.histogram("x", "auto"),
        lambda: protected(bounds={"age": (0, 100)}).ranges("age", bins="auto"),
        lambda: tc.stream(None, start="2026-01-01", days=7, bounds={"x": "auto"}, level="event", name="flu",
                          budget=tc.Budget(epsilon=9)),
        lambda: tc.surveys.question("auto"),
        lambda: tc.maps.Box.read("auto"),
        lambda: tc.mechanisms.Mean(epsilon=1, bounds="auto"),
    ]  # fmt: skip
    for other in others:
        with pytest.raises(TacitError, match="cannot find its bounds by itself") as refused:
            other()
        assert refused.value.code == "not-allowed"
        assert "auto" not in str(refused.value.fix)
    for ask in (
        lambda: data.ranges("age", bins=8), lambda: data.crosstabs(["ward", "age"], bins={"age": 3}),
        lambda: data.regress("x", on=["age"], bounds={"x": (0, 9)}),
        lambda: data.agg(c=tc.correlation("x", "age")),
    ):  # fmt: skip
        with pytest.raises(TacitError) as refused:
            ask().plan(epsilon=1)
        assert refused.value.code == "missing-bounds"
        assert FIRST in str(refused.value.fix)


def test_an_estimator_says_that_it_finds_no_bounds():
    pytest.importorskip("sklearn")
    from tacit.learn.estimators._declared_bounds import read_feature_bounds, read_target_bounds

    for read in (lambda: read_feature_bounds("auto", 2), lambda: read_target_bounds("auto")):
        with pytest.raises(TacitError, match="an estimator cannot find its bounds by itself"):
            read()


def test_the_fix_can_be_pasted_and_the_question_then_plans():
    data = protected()
    for column in ("age", "x"):
        with pytest.raises(TacitError) as refused:
            data.regress("x", on=["age"], bounds={column: "auto"})
        scope = {"tc": tc, "data": data}
        exec(str(refused.value.fix), scope)
        data = scope["data"]
    assert data.regress("x", on=["age"]).plan(epsilon=1).cost.spend.epsilon <= 1
    assert data.ranges("age", bins=8).plan(epsilon=1)
    assert data.agg(c=tc.correlation("x", "age")).plan(epsilon=1)


# Twins ----------------------------------------------------------------------------------------------------


def changes(plan, pairs=12, seed=3):
    """Return the largest change of each step of a plan between invented neighbours, with what is declared."""
    [member] = members_of(plan)
    draw = random.Random(seed)
    invented = InventedTables([member.task.subject], member.identity, draw.randrange)
    return list(zip(*(invented.pair().changes for _ in range(pairs)), strict=True))


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize("limits", [{"rows": 3}, {"rows": 3, "per_group": 2, "groups": 2}])
def test_no_neighbour_moves_a_step_further_than_declared(adjacency, limits):
    data = tc.protect(
        spendings(5), unit="person", limits=limits, adjacency=adjacency, keys={"ward": WARDS},
        bounds={"x": "auto", "age": "auto"}, budget=tc.Budget(epsilon=9),
    )  # fmt: skip
    asked = by_ward(data, m=tc.mean("x"), s=tc.sum("age"), q=tc.median("x"), sd=tc.std("age"))
    steps = changes(asked.plan(epsilon=1))
    assert len(steps) == 7
    for step in steps:
        assert all(change.holds for change in step), max(step, key=lambda c: c.share)
    octaves = [max(c.share for c in step) for step in steps[:2]]
    assert min(octaves) >= Fraction(1, 2)  # the search is not idle


def test_a_twin_whose_histogram_ignores_the_rows_of_a_unit_is_caught():
    data = protected(rows=5, bounds={"x": "auto"})
    plan = data.agg(m=tc.mean("x")).plan(epsilon=1)
    [member] = members_of(plan)
    assert member.task.mechanisms[0].sensitivity == 5
    narrow = DiscreteLaplace(epsilon=Fraction(17, 80), sensitivity=1)
    assert max(change.l1 for change in changes(plan)[0]) > narrow.sensitivity


def test_a_twin_that_forgets_that_a_unit_is_replaced_is_caught():
    plan = protected(bounds={"x": "auto"}, adjacency="replace").agg(m=tc.mean("x")).plan(epsilon=1)
    assert members_of(plan)[0].task.mechanisms[0].sensitivity == 2
    assert max(change.l1 for change in changes(plan)[0]) == 2


def test_a_twin_that_finds_bounds_in_exact_counts_is_caught(monkeypatch):
    """One unit that is added moves the bounds, and so the integers of all others."""

    class Exact(_found_bounds_subject.FoundBoundsSubject):
        def _on_found_bounds(self, data, statistic, noisy):
            del noisy
            search = self.searches[statistic.argument]
            octaves = self.steps[search.octaves].statistic
            counts = np.array(self._lines(data.of((octaves,)), octaves)) * 10**6
            return super()._on_found_bounds(data, statistic, [counts.tolist(), [[0] * 16]])

    plan = protected(bounds={"x": "auto"}).agg(m=tc.mean("x")).plan(epsilon=1)
    [member] = members_of(plan)
    subject = member.task.subject
    twin = Exact(**{name: getattr(subject, name) for name in subject.__dataclass_fields__})
    invented = InventedTables([twin], member.identity, random.Random(3).randrange)
    steps = list(zip(*(invented.pair().changes for _ in range(12)), strict=True))
    assert not all(change.holds for change in steps[-1])


def test_a_twin_that_forgets_the_public_factor_is_caught(monkeypatch):
    """Without the weight that no bounds exceed, bounds far apart would add more than the noise hides."""
    real = _found_bounds_subject.on_bounds

    def unscaled(statistic, bounds):
        found = real(statistic, bounds)
        return replace(found, factor=2 * found.factor) if isinstance(found, MomentSums) else found

    plan = protected(bounds={"x": "auto"}, rows=2).agg(m=tc.mean("x")).plan(epsilon=1)
    monkeypatch.setattr(_found_bounds_subject, "on_bounds", unscaled)
    assert not all(change.holds for change in changes(plan)[-1])


def total_of(mechanisms):
    """Return what mechanisms cost together, from their own scales and sensitivities."""
    return reduce(add, [one.cost for one in mechanisms]).spend.epsilon


def test_a_twin_that_pays_the_narrowing_twice_is_caught(monkeypatch):
    """The narrowing gets its own share; if the answer got it too, the plan would cost 1.0375 epsilon."""
    plan = protected().agg(m=tc.mean("x", bounds="auto")).plan(epsilon=1)
    octaves, narrowing, answer = members_of(plan)[0].task.mechanisms
    assert total_of([octaves, narrowing, answer]) == 1
    richer = DiscreteLaplace(epsilon=Fraction(63, 80), sensitivity=int(answer.sensitivity))
    assert total_of([octaves, narrowing, richer]) == Fraction(83, 80)
    monkeypatch.setattr(_bounds_search, "answer_share", lambda *, narrowed: Fraction(63, 80))
    again = protected().agg(m=tc.mean("x", bounds="auto")).plan(epsilon=1)
    assert again.cost.spend.epsilon == 1  # the split is normalised, so a wrong share never costs more


def test_every_branch_costs_the_same_and_the_mechanisms_do_not_depend_on_what_is_found():
    plans = [
        protected(f).agg(m=tc.mean("x", bounds="auto")).plan(epsilon=1) for f in (spendings(), spendings(0))
    ]
    assert plans[0] == plans[1]
    assert plans[0].cost.spend == plans[1].cost.spend
    narrowing, answer = members_of(plans[0])[0].task.subject.steps[1:]
    assert isinstance(narrowing.statistic.bins, FoundCells)
    assert isinstance(answer.statistic.grid, FoundGrid)


def test_the_shared_range_is_read_off_the_noisy_counts_that_were_paid():
    plan = by_ward(protected(), m=tc.mean("x", bounds="auto")).plan(epsilon=1)
    [search] = members_of(plan)[0].task.subject.searches.values()
    counts = np.zeros((3, OctaveCells().size))
    counts[:, OctaveCells().index(40.0)] = 8 * search.noise.scale  # no group alone is sure of it
    noisy = [counts.tolist(), [[0] * 16] * 3]
    together = find_bounds(counts.sum(axis=0), search.noise.pooled(3), OctaveCells())
    assert together is not None
    assert search.bounds(noisy) == [together.bounds()] * 3
    assert CellNoise(search.noise.scale).upper(0.005 / 736) > 8 * search.noise.scale


def shares_paid_counts(search):
    """Whether groups without a range of their own share that of the noisy counts that were paid for."""
    _bounds_search._ranges.cache_clear()
    for value in (3.0, 40.0, 600.0, -9.0, 2.0**20):
        counts = np.zeros((3, OctaveCells().size))
        counts[:, OctaveCells().index(value)] = 8 * search.noise.scale  # no group alone is sure of it
        together = find_bounds(counts.sum(axis=0), search.noise.pooled(3), OctaveCells())
        assert together is not None
        if search.bounds([counts.tolist()]) != [together.bounds()] * 3:
            return False
    return True


def test_a_twin_whose_shared_range_is_drawn_a_second_time_is_caught(monkeypatch):
    """A second draw that nobody pays for would give a range that does not follow from the noisy counts."""
    plan = by_ward(protected(), m=tc.mean("x", bounds="auto")).plan(epsilon=1)
    [search] = members_of(plan)[0].task.subject.searches.values()
    search = replace(search, parts=None)
    assert shares_paid_counts(search)
    draw, real = np.random.default_rng(7), _bounds_search.find_group_bounds

    def drawn_again(counts, noise, cells=None):
        again = counts + draw.laplace(0, 2 * noise.scale, counts.shape)
        return real(again, noise, cells)

    monkeypatch.setattr(_bounds_search, "find_group_bounds", drawn_again)
    assert not shares_paid_counts(search)
    _bounds_search._ranges.cache_clear()


def test_plans_with_known_bounds_are_what_they_were():
    """Their documents say nothing of a search, so their hashes stay."""
    plan = protected().agg(m=tc.mean("x", bounds=(0, 60))).plan(epsilon=1)
    document = members_of(plan)[0].task.question
    assert "found" not in document
    assert "factor" not in json.dumps(document)
    assert not any(
        isinstance(getattr(s.statistic, "bins", None), OctaveBins)
        for s in members_of(plan)[0].task.subject.steps
    )
