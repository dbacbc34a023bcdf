"""Limits with open eyes: for one table, for one question, suggested, and measured."""

import random
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

import tacit as tc
from tacit.core import Limits, members_of
from tacit.tables.planning._exact_integers import exact_integers
from tacit.tables.questions._limit_advice import share_beyond

BUDGET = tc.Budget(epsilon=10**6, delta=1e-6)
VISITS = {"pid": [u for u in range(200) for _ in range(1 + u % 8)]}
VISITS |= {"stay": [float(i % 40) for i in range(len(VISITS["pid"]))]}
VISITS |= {"ward": ["ABCDEFGH"[(i * 7) % 8] for i in range(len(VISITS["pid"]))]}
LABS = {"pid": [u for u in range(200) for _ in range(6)], "x": [1.0] * 1200}


def protected(limits=None, **more) -> tc.Dataset:
    tables = {"visits": pa.table(VISITS), "labs": pa.table(LABS)}
    return tc.protect(tables, unit="pid", bounds={"stay": (0, 30)}, limits=limits, budget=BUDGET, **more)


def exact(query) -> float:
    """Release at an epsilon that leaves no noise."""
    return query.plan(epsilon=1000).release().value


def kept(rows: int) -> int:
    return sum(min(1 + u % 8, rows) for u in range(200))


# --- limits for each table ---


def test_each_table_can_have_a_limit_of_its_own():
    data = protected({"rows": 2, "visits": {"rows": 5}})
    assert exact(data.agg(n=tc.count())) == kept(5)
    assert exact(data["labs"].agg(n=tc.count())) == 400
    both = data["visits"].join(data["labs"]).agg(n=tc.count()).plan(epsilon=1)
    assert "5 of a pid's rows in visits, 2 in labs" in dict(both.facts)["limits"]


def test_a_limit_of_one_table_leaves_the_default_of_the_others():
    data = protected({"visits": {"rows": 5}})
    assert data.limits.rows_of("labs") == 10
    assert data.limits.is_default_of("labs")
    assert not data.limits.is_default_of("visits")
    assert "(default)" not in repr(data.agg(n=tc.count()).plan(epsilon=1))
    assert "(default)" in repr(data["labs"].agg(n=tc.count()).plan(epsilon=1))


@pytest.mark.parametrize("given", [{"rows": 5, "groups": 2}, {"groups": 2}, {}, {"rows": 0}])
def test_a_table_can_limit_its_rows_and_nothing_else(given):
    with pytest.raises(tc.TacitError):
        Limits.read({"visits": given})


def test_limits_of_an_unknown_table_are_refused():
    with pytest.raises(tc.TacitError, match="not a protected table"):
        protected({"visit": {"rows": 5}})


# --- limits for each question ---


def test_a_question_can_lower_the_limit_on_rows():
    data = protected({"rows": 5})
    assert exact(data.limit(rows=2).agg(n=tc.count())) == kept(2)
    assert exact(data.where("stay >= 0").limit(rows=2).agg(n=tc.count())) == kept(2)
    assert exact(data.sql("SELECT COUNT(*) FROM visits", limits={"rows": 2})) == kept(2)
    assert exact(data.agg(n=tc.count())) == kept(5)


def test_a_lower_limit_means_less_noise_at_the_same_cost():
    data = protected({"rows": 5})
    wide, narrow = data.agg(n=tc.count()), data.limit(rows=1).agg(n=tc.count())
    wide, narrow = wide.plan(epsilon=1), narrow.plan(epsilon=1)
    assert narrow.forecast[0].error < wide.forecast[0].error
    assert narrow.promised == wide.promised
    assert narrow.hash != wide.hash


def test_a_question_cannot_raise_a_limit_that_the_curator_chose():
    data = protected({"rows": 5})
    with pytest.raises(tc.TacitError, match="at most 5 rows of one pid count in 'visits'") as refused:
        data.limit(rows=6)
    assert "at most 5 rows" in str(refused.value.fix)
    with pytest.raises(tc.TacitError, match="at most 5 rows"):
        data.sql("SELECT COUNT(*) FROM visits", limits={"rows": 6})


def test_a_question_can_raise_the_default_which_nobody_chose():
    data = protected({"groups": 3})
    assert data.limits.rows == 10
    plan = data.limit(rows=20).agg(n=tc.count()).plan(epsilon=1)
    assert "at most 20 rows" in dict(plan.facts)["limits"]
    assert "default" not in dict(plan.facts)["limits"]


def test_of_several_tables_one_with_a_smaller_limit_keeps_it():
    data = protected({"rows": 2, "visits": {"rows": 5}})
    sql = "SELECT COUNT(*) FROM visits JOIN labs USING (pid)"
    plan = data.sql(sql, limits={"rows": 4}).plan(epsilon=1)
    assert "4 of a pid's rows in visits, 2 in labs" in dict(plan.facts)["limits"]


def test_a_document_can_lower_a_limit_and_cannot_raise_it():
    data = protected({"rows": 5})
    plan = data.limit(rows=2).agg(n=tc.count()).plan(epsilon=1)
    written = plan.to_json()
    assert data.plan_from(written).hash == plan.hash
    written["request"]["question"]["input"]["rows"] = 6
    with pytest.raises(tc.TacitError):
        data.plan_from(written)
    written["request"]["question"]["input"]["rows"] = None
    with pytest.raises(tc.TacitError):
        data.plan_from(written)


def test_a_limit_on_rows_after_per_unit_is_refused_because_it_has_no_effect():
    with pytest.raises(tc.TacitError, match="no effect"):
        protected().per_unit(n=tc.count()).limit(rows=2)


def test_a_question_can_limit_rows_where_no_limit_is_declared():
    data = protected({"groups": 2, "per_group": 3})
    assert data.limits.rows is None
    assert exact(data.limit(rows=2).agg(n=tc.count())) == kept(2)


def test_single_rows_never_get_a_limit_which_would_act_on_the_whole_table():
    data = tc.protect(pa.table(VISITS), unit=tc.Unit.row(), budget=BUDGET)
    for query in (
        data.limit(rows=2).agg(n=tc.count()),
        data.sql("SELECT COUNT(*) FROM data", limits={"rows": 2}),
    ):
        assert exact(query) == len(VISITS["pid"])
    written = data.agg(n=tc.count()).plan(epsilon=1).to_json()
    written["request"]["question"]["input"]["rows"] = 2
    with pytest.raises(tc.TacitError):
        data.plan_from(written)
    limited = data.agg(n=tc.count())
    question = replace(limited.question, input=replace(limited.question.input, rows=2))
    with pytest.raises(tc.TacitError, match="single rows have no limits"):
        replace(limited, arguments={"question": question, "post": None}).plan(epsilon=1)


def test_a_question_cannot_remove_the_limit_on_rows():
    with pytest.raises(tc.TacitError, match="cannot remove"):
        protected().limit(rows=None)


# --- joins ---


def test_a_join_says_how_much_a_limit_on_joined_rows_would_help():
    data = protected({"rows": 5})
    plan = data["visits"].join(data["labs"]).agg(n=tc.count()).plan(epsilon=1)
    assert "joined=5 the noise of counts and sums would be 5 times smaller" in dict(plan.facts)["join"]
    limited = protected({"rows": 5, "joined": 5})
    join = limited["visits"].join(limited["labs"])
    better = join.agg(n=tc.count()).plan(epsilon=1)
    assert "join" not in dict(better.facts)
    assert better.forecast[0].error < plan.forecast[0].error / 4


# --- suggested limits ---


def test_suggested_limits_are_private_quantiles_of_rows_and_groups():
    data = protected({"rows": 2})
    plan = data.suggest_limits(by="ward").plan(epsilon=200)
    assert float(plan.promised["epsilon"]) == 200
    release = plan.release()
    found = {name: cells.value[0] for name, cells in release.columns.items()}
    assert (found["rows_0.5"], found["rows_0.95"]) == (4, 8)  # the limit of 2 rows does not cut the count
    assert found["groups_0.95"] == 8
    assert '95 % of pids have at most about 8 [8, 8] rows in visits: limits={"rows": 8}' in repr(
        release
    ).replace("\n", " ")


def test_suggested_limits_can_be_asked_of_another_table():
    release = protected().suggest_limits(table="labs").plan(epsilon=200).release()
    assert release.columns["rows_0.95"].value[0] == 6


def test_one_unit_changes_a_suggestion_by_one_count_whatever_the_limits():
    plan = protected({"rows": 9}).suggest_limits().plan(epsilon=1)
    assert "sensitivity 1 (L1)" in " ".join(text for _, text in plan.facts)


def test_a_suggestion_survives_as_a_document():
    data = protected()
    plan = data.suggest_limits().plan(epsilon=200)
    again = data.plan_from(plan.to_json())
    assert again.hash == plan.hash
    assert "limits=" in repr(again.release())


def test_the_old_calls_still_give_the_same_plans_with_a_warning():
    data = protected({"rows": 5})
    with pytest.warns(DeprecationWarning, match=r"\.suggest_limits\(...\)\.plan\(epsilon=1\)"):
        old = data.suggest_limits(epsilon=1, by="ward")
    assert old == data.suggest_limits(by="ward").plan(epsilon=1)
    with pytest.warns(DeprecationWarning, match="second step"):
        assert data.measure_cut(epsilon=1) == data.measure_cut().plan(epsilon=1)


def test_single_rows_have_no_limits_to_suggest():
    data = tc.protect(pa.table(VISITS), unit=tc.Unit.row(), budget=BUDGET)
    with pytest.raises(tc.TacitError, match="no limits to choose"):
        data.suggest_limits().plan(epsilon=1)


# --- what limits and bounds cut ---


def test_the_share_of_rows_beyond_the_limit_is_released_with_an_interval():
    data = protected({"rows": 5})
    written = data.measure_cut().plan(epsilon=50).to_json()
    written["request"]["goal"]["confidence"] = "9999999/10000000"  # the interval misses with a chance of 1e-7
    release = data.plan_from(written).release()
    truth = 1 - kept(5) / kept(8)
    assert release.low < truth < release.high
    assert release.low < release.value < release.high
    assert release.high - release.low < 0.1
    assert exactly_cut(5) == pytest.approx(truth)


def exactly_cut(rows: int) -> float:
    return protected({"rows": rows}).measure_cut().plan(epsilon=10**5).release().value


def test_rows_beyond_the_cap_are_not_looked_at():
    release = protected({"rows": 2}).measure_cut(cap=4).plan(epsilon=10**5).release()
    assert release.value == pytest.approx(1 - kept(2) / kept(4))
    assert "more than 4 rows of one pid count as 4" in repr(release)


def test_the_share_of_values_outside_the_bounds_is_released():
    stays = [30.5, 3.0, -1.0, None, float("nan"), 30.0, 0.0, 2.0, 1.0, 5.0]
    table = pa.table({"pid": list(range(10)), "stay": stays})
    data = tc.protect(table, unit="pid", bounds={"stay": (0, 30)}, budget=BUDGET)
    release = data.measure_cut(column="stay").plan(epsilon=10**4).release()
    assert release.value == pytest.approx(2 / 8, abs=1e-3)


@pytest.mark.long
def test_the_interval_of_the_share_covers_as_often_as_stated():
    truth, missed, times = 1 - kept(5) / kept(8), 0, 300
    for _ in range(times):
        release = protected({"rows": 5}).measure_cut().plan(epsilon=2).release()
        missed += not release.low <= truth <= release.high
    assert 2 <= missed <= 32  # 15 expected; both ends lie beyond 4 standard deviations


def test_a_noted_estimate_stands_in_later_captions():
    data = protected({"rows": 5})
    release = data.measure_cut().plan(epsilon=10**4).release()
    noted = data.noting(release).noting(data.measure_cut(column="stay").plan(epsilon=10**4).release())
    later = repr(noted.agg(m=tc.mean("stay")).plan(epsilon=1).release()).replace("\n", " ")
    assert f"{percent(5)} of the rows of visits are beyond the limit of 5 rows (entry 2)" in later
    assert "of the values of stay in visits are outside the bounds 0 to 30 (entry 4)" in later
    plain, with_notes = data.agg(n=tc.count()), noted.agg(n=tc.count())
    assert plain.plan(epsilon=1).hash == with_notes.plan(epsilon=1).hash
    others = [noted.limit(rows=2).agg(n=tc.count()), noted["labs"].agg(n=tc.count())]
    assert not any("beyond the limit" in repr(q.plan(epsilon=1).release()) for q in others)


def percent(rows: int) -> str:
    share = 100 * (1 - kept(rows) / kept(8))
    return f"{share:.0f} % [{int(share)}, {int(share) + 1}]"


def test_only_an_estimate_of_this_data_and_these_limits_can_be_noted():
    release = protected({"rows": 5}).measure_cut().plan(epsilon=10).release()
    data = protected({"rows": 5})
    for other in (protected({"rows": 4}), protected({"rows": 5}, name="other")):
        with pytest.raises(tc.TacitError, match="does not measure"):
            other.noting(release)
    with pytest.raises(tc.TacitError, match="does not measure"):
        data.noting(data.agg(rows_beyond_limit=tc.count()).plan(epsilon=1).release())


def test_an_attack_on_the_estimate_finds_nothing():
    assert "Nothing was found" in repr(
        tc.audit(protected({"rows": 3}).measure_cut(cap=5).plan(epsilon=1), pairs=20, samples=2_000)
    )


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize("limits", [{}, {"groups": 2}, {"groups": 2, "per_group": 2}, {"per_group": 1}])
def test_one_unit_changes_what_is_kept_and_cut_by_no_more_than_is_declared(limits, adjacency):
    """Random neighbours, also in groups and with limits on them, which `measure_cut` does not use."""
    draw = random.Random(str(limits) + adjacency)
    pairs = []
    for _ in range(15):
        others, *units = [rows_of(draw, names) for names in (range(20), [99], [99])]
        pair = [others | {}, others | {}]
        for side, own in zip(pair, units if adjacency == "replace" else [units[0], None], strict=True):
            if own is not None:
                side |= {c: [*side[c], *own[c]] for c in side}
        pairs.append(pair)
    # all are tables of one dataset: one database, and one secret that ranks the rows
    tables = {f"{i} {j}": pa.table(side) for i, pair in enumerate(pairs) for j, side in enumerate(pair)}
    data = tc.protect(tables, unit="pid", limits={"rows": 4}, adjacency=adjacency, budget=BUDGET)
    data._engine._key = 3
    worst = Fraction(0)
    for i in range(15):
        found, declared = [], 0
        for j in range(2):
            rows = data[f"{i} {j}"].limit(**limits).group_by("ward", keys=["A", "B", "C"])
            subject = members_of(rows.agg(r=share_beyond("x", 3, 9)).plan(epsilon=1))[0].task.subject
            declared = subject.mechanisms[0].sensitivity
            [exact] = exact_integers(subject.engine, subject.asked, subject.statistics).values()
            found.append(exact)
        keys = {*found[0], *found[1]}
        moved = sum(
            abs(a - b) for key in keys for a, b in zip(*(one.get(key, [0, 0]) for one in found), strict=True)
        )
        assert moved <= declared
        worst = max(worst, Fraction(moved, declared))
    assert worst > Fraction(1, 4)  # the search comes close to what is declared


def rows_of(draw: random.Random, names) -> dict[str, list]:
    """Rows of some units, with values inside, at and beyond the limit and the cap."""
    made = [
        (name, draw.choice("ABC"), draw.choice([-1, 0, 2, 3, 8, 9, 50])) for name in names for _ in range(6)
    ]
    return {"pid": [m[0] for m in made], "ward": [m[1] for m in made], "x": [float(m[2]) for m in made]}


def test_a_limit_that_the_plan_should_find_is_refused_with_the_question_that_suggests_one():
    facts = {"unit": "patient_id", "budget": tc.Budget(epsilon=1)}
    visits = tc.protect(tc.tables.example_visits(), **facts)
    for ask in (
        lambda: visits.limit(rows="auto"),
        lambda: visits.sql("SELECT COUNT(*) AS n FROM data", limits={"rows": "auto"}),
        lambda: tc.protect(tc.tables.example_visits(), limits={"rows": "auto"}, **facts),
    ):
        with pytest.raises(tc.TacitError, match="cannot find the limit 'rows' by itself") as refused:
            ask()
        assert "data.suggest_limits().plan(epsilon=0.1).release()" in str(refused.value)


def test_a_limit_that_a_config_a_command_or_a_service_leaves_open_is_refused_with_the_same_reason(tmp_path):
    from tacit.cli._fixes import in_words_of_the_command
    from tacit.cli._options import read_limit_option
    from tacit.service.plans._asks import AskBody, plan_of, read_ask

    example = tc.tables.example_visits()
    facts = {"unit": "patient_id", "budget": tc.Budget(epsilon=1)}
    visits = tc.protect(example, name="visits", **facts)
    (tmp_path / "visits.csv").write_text("patient_id\n1\n2\n")
    (tmp_path / "tacit.toml").write_text(
        '[datasets.visits]\nsource = "visits.csv"\nunit = "patient_id"\nbudget = {epsilon = 1}\n'
        'limits = {rows = "auto"}\n'
    )
    config = tc.tables.open_config(tmp_path / "tacit.toml")
    body = AskBody(
        dataset="visits", sql="SELECT COUNT(*) FROM visits", epsilon="1/2", limits={"rows": "auto"}
    )
    sql = "SELECT COUNT(*) AS n FROM visits"
    for ask in (
        lambda: config.dataset("visits", ledger=tc.Ledger.memory()),
        lambda: visits.sql(sql, limits=dict([read_limit_option("rows=auto")])),
        lambda: plan_of(visits, read_ask(body)),
        lambda: tc.protect({"a": example, "b": example}, limits={"a": {"rows": "auto"}}, **facts),
    ):
        with pytest.raises(tc.TacitError, match="cannot find the limit 'rows' by itself") as refused:
            ask()
        words = str(in_words_of_the_command(refused.value).fix)
        assert "leave this limit out" in words
        assert "tacit limits --epsilon 0.1" in words
    assert visits.suggest_limits().plan(epsilon=0.1).release().to_dict()
