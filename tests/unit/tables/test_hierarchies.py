"""Counts of public trees: all levels add up, documents, refusals, neighbours."""

import json

import numpy as np
import pyarrow as pa
import pytest

import tacit as tc
from support.exact_integers import exact_of
from tacit.core import members_of
from tacit.errors import TacitError

TREE = {"AT": {"west": ["t", "v"], "east": ["w"]}, "DE": {"south": ["m", "a", "n"], "north": ["h", "k"]}}
LEVELS = ["country", "region", "district"]
DISTRICTS = ["t", "v", "w", "m", "a", "n", "h", "k"]


def people(sizes=(5, 40, 300, 200, 10, 0, 90, 3), *, limits=1, extra=(), adjacency="add/remove"):
    rows = [
        (i, d) for d, n in zip(DISTRICTS, sizes, strict=True) for i in range(1000 * ord(d), 1000 * ord(d) + n)
    ]
    rows += list(extra)
    table = pa.table(
        {
            "pid": pa.array([p for p, _ in rows], pa.int64()),
            "district": pa.array([d for _, d in rows], pa.string()),
        }
    )
    return tc.protect(
        table, name="people", unit="pid", limits={"rows": limits}, adjacency=adjacency,
        budget=tc.Budget(rho=10**6, delta=1e-9),
    )  # fmt: skip


def test_levels_are_true_and_add_up():
    release = people().hierarchy(LEVELS, tree=TREE).plan(rho=10**4).release()
    assert [round(n) for n in release.level("region")["n"].value] == [45, 300, 210, 93]
    assert [round(n) for n in release.level("country")["n"].value] == [345, 303]
    assert sum(release.level("district")["n"].value) == pytest.approx(release.level("(all)").value)
    assert list(release.level("region").keys) == ["country", "region"]


def test_a_table_gives_the_same_tree_as_mappings():
    lines = [
        {"country": c, "region": r, "district": d} for c, regions in TREE.items()
        for r, districts in regions.items() for d in districts
    ]  # fmt: skip
    pandas = pytest.importorskip("pandas")
    plans = [
        people().hierarchy(LEVELS, tree=t).plan(epsilon=1) for t in (TREE, lines, pandas.DataFrame(lines))
    ]
    assert plans[0] == plans[1] == plans[2]


@pytest.mark.parametrize("goal", [{"rho": 0.5}, {"epsilon": 1}, {"epsilon": 1, "delta": 1e-9}], ids=str)
def test_plans_can_be_sent_and_releases_saved(goal, tmp_path):
    data = people()
    plan = data.hierarchy(LEVELS, tree=TREE, weights={"region": 3, "(all)": 0.5}).plan(**goal)
    assert data.plan_from(json.loads(json.dumps(plan.to_json()))) == plan
    few = people((1,) * 8).hierarchy(LEVELS, tree=TREE, weights={"region": 3, "(all)": 0.5})
    assert few.plan(**goal).hash == plan.hash
    release = plan.release()
    release.save(tmp_path / "tree.json")
    read = tc.Release.load(tmp_path / "tree.json")
    assert list(read) == list(release)
    assert (
        "bad-release"
        == _code(release, measured=[1])
        == _code(release, paths=[])
        == _code(release, levels=["x"])
    )


def _code(release, **change):
    document = release.to_json()
    document["content"] = {**document["content"], **change}
    with pytest.raises(TacitError) as found:
        tc.Release.from_json(document)
    return found.value.code


def test_the_cost_is_within_what_was_promised():
    plan = people().hierarchy(LEVELS, tree=TREE).plan(epsilon=0.5, delta=1e-9)
    assert plan.cost.epsilon(delta=1e-9) <= 0.5
    assert people().hierarchy(LEVELS, tree=TREE).plan(rho=0.25).cost.rho <= 0.25


def test_weights_move_the_error():
    question = people().hierarchy(LEVELS, tree=TREE)
    heavy = people().hierarchy(LEVELS, tree=TREE, weights={"region": 10})
    error = {f.column: f.error for f in question.plan(rho=0.1).forecast}
    other = {f.column: f.error for f in heavy.plan(rho=0.1).forecast}
    assert other["region"] < 0.9 * error["region"]
    assert other["district"] > error["district"]


def test_whole_numbers_say_that_they_are_biased():
    release = people().hierarchy(LEVELS, tree=TREE).plan(rho=0.01).release()
    whole = release.whole()
    assert all(type(n) is int and n >= 0 for n in whole["n"].value)
    assert sum(whole.level("district")["n"].value) == whole.level("(all)").value
    assert "too large on average" in whole.marks[-1]
    assert "too large on average" in repr(whole)


def test_refusals_teach():
    data = people()
    for wrong, match in (
        (lambda: data.hierarchy(LEVELS, tree={"AT": ["t"]}), "mapping"),
        (lambda: data.hierarchy(LEVELS, tree={}), "at least one"),
        (lambda: data.hierarchy(LEVELS, tree=3), "mappings"),
        (lambda: data.hierarchy("district", tree=["t"]), "names"),
        (lambda: data.hierarchy(["region", "district"], tree={"a": ["t"], "b": ["t"]}), "two places"),
        (lambda: data.hierarchy(["region", "district"], tree=[{"region": "a"}]), "district"),
        (lambda: data.hierarchy(LEVELS, tree=TREE, weights={"planet": 1}), "level"),
        (lambda: data.hierarchy(["region", "village"], tree={"a": ["t"]}), "village"),
        (lambda: data.hierarchy(LEVELS, tree=TREE).plan(rho=1).release().level("planet"), "planet"),
    ):
        with pytest.raises(TacitError, match=match):
            wrong()


@pytest.mark.parametrize("limits", [1, 3])
def test_no_unit_moves_a_level_beyond_its_sensitivity(limits):
    rng = np.random.default_rng(8)

    def exact(data):
        task = members_of(data.hierarchy(LEVELS, tree=TREE).plan(rho=0.5))[0].task
        return exact_of(task), task.mechanisms

    before, mechanisms = exact(people(limits=limits))
    reached = 0
    for _ in range(12):
        extra = [(7, [*DISTRICTS, "?", None][rng.integers(10)]) for _ in range(rng.integers(1, 7))]
        after, _ = exact(people(limits=limits, extra=extra))
        for old, new, mechanism in zip(before, after, mechanisms, strict=True):
            change = int(((np.array(new) - np.array(old)) ** 2).sum())
            assert change <= mechanism.sensitivity_squared
            reached = max(reached, change)
    assert reached == limits**2  # the top counts all rows of the unit


def test_replaced_units_pay_for_both():
    plus, swap = (
        people(adjacency=a).hierarchy(LEVELS, tree=TREE).plan(rho=0.5).mechanisms[0]["sensitivity_squared"]
        for a in ("add/remove", "replace")
    )
    assert (plus, swap) == ("1", "2")


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0012075808091169845, 2.2262041383732752e-05), (0.0078, 5e-4), (0.07, 2.1e-6)]
)
def test_the_certified_accounting_reads_what_was_promised(epsilon, delta):
    """It rounds up, so noise for exactly the promise is read as more than it, by a part in 10^10."""
    data, budget = people(), tc.Budget(epsilon, delta)
    sums = {f"s{i}": tc.sum("pid", bounds=(0, i)) for i in range(1, 6)}
    for question in (data.hierarchy(LEVELS, tree=TREE), data.agg(**sums)):
        assert question.plan(epsilon=epsilon, delta=delta).cost.fits(budget)
