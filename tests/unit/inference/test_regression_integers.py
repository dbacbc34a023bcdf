"""The integers of regressions: exact, and moved by one unit within their sensitivity."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tacit as tc
from support.exact_integers import exact_of
from tacit.algebra import MomentProducts, PartProducts

NAMES = ("x", "z", "s", "y")
BOUNDS = {"x": (-3, 11), "z": (0, 100), "y": (10, 60)}


def people(rng: np.random.Generator, n: int) -> dict[str, list]:
    """Rows with values at and beyond the bounds, and some missing."""
    made = {
        "id": list(range(n)),
        "x": rng.choice([-3.0, 11.0, 0.5, 99.0, -50.0, None], n).tolist(),
        "z": rng.choice([0.0, 100.0, 37.0, 12.25, None], n).tolist(),
        "s": rng.choice(["a", "b", "c"], n).tolist(),
        "y": rng.choice([10.0, 60.0, 33.0, 1e300], n).tolist(),
    }
    return {name: [None if v is None else v for v in values] for name, values in made.items()}


def protected(rows: dict[str, list], **more) -> tc.Dataset:
    types = {"id": pa.int64(), "s": pa.string()}
    table = pa.table({n: pa.array(v, types.get(n, pa.float64())) for n, v in rows.items()})
    return tc.protect(
        table, name="d", unit="id", bounds=BOUNDS, keys={"s": ["a", "b"]}, ledger=tc.Ledger.memory(),
        budget=tc.Budget(epsilon=10**9, delta=0.5), **{"limits": {"rows": 1}, **more},
    )  # fmt: skip


def measured(plan) -> tuple[list[int], object, object]:
    task = plan._members[0].task
    [lines] = exact_of(task)
    line = [n for part in lines for n in part]
    return line, task.subject.steps[0].statistic, task.mechanisms[0]


def steps_of(value: float, grid) -> int:
    return int(min(max(np.floor(value / float(grid.step) + 0.5), grid.lo), grid.hi)) - grid.lo


@pytest.mark.parametrize("kind", [PartProducts, MomentProducts])
def test_the_integers_are_sums_over_complete_rows(kind, monkeypatch):
    if kind is MomentProducts:
        monkeypatch.setattr("tacit.inference._questions._MOST_PARTS", 0)
    rows = people(np.random.default_rng(4), 80)
    plan = protected(rows).regress("y", on=["x", "z", "s"]).plan(epsilon=1)
    found, statistic, _ = measured(plan)
    assert isinstance(statistic, kind)
    expected = np.zeros(statistic.size, dtype=object)
    counted = 0
    for x, z, s, y in zip(*(rows[n] for n in NAMES), strict=True):
        if None in (x, z, y) or s == "c":
            continue
        values = (x, z, float(s == "b"), y)
        steps = tuple(steps_of(v, g) for v, g in zip(values, statistic.grids, strict=True))
        expected += np.array((statistic.cells if kind is PartProducts else statistic.products)(steps), object)
        counted += 1
    assert found == expected.tolist()
    assert counted > 10
    if kind is PartProducts:
        assert sum(found) == counted * statistic.weight


@pytest.mark.parametrize("columns", [7, 14, 30])
@pytest.mark.parametrize("value", [0.0, 1.0, float("nan"), float("inf"), None])
def test_no_value_makes_many_columns_fail(columns, value):
    """A statement that overflows at large values alone would tell that there is one."""
    names = [f"x{i}" for i in range(columns)]
    table = pa.table({"id": [1, 2], **{name: pa.array([0.0, value], pa.float64()) for name in names}})
    data = tc.protect(
        table, unit="id", limits={"rows": 1}, bounds=dict.fromkeys(names, (0, 1)), budget=tc.Budget(epsilon=1)
    )
    plan = data.regress("x0", on=names[1:]).plan(epsilon=1)
    found, statistic, _ = measured(plan)
    expected = np.array(statistic.products((0,) * columns), dtype=object)
    if value in (0.0, 1.0, float("inf")):
        end = tuple(grid.width if value else 0 for grid in statistic.grids)
        expected += np.array(statistic.products(end), dtype=object)
        assert found == expected.tolist()
    else:
        assert len(found) == statistic.size
    plan.release()


def moved(plan_of, rng: np.random.Generator) -> float:
    """Return the most that one unit moves the integers, in their declared sensitivity."""
    worst = 0.0
    for _ in range(8):
        rows = people(rng, 12)
        fewer = {name: values[1:] for name, values in rows.items()}
        (a, _, mechanism), (b, *_) = measured(plan_of(rows)), measured(plan_of(fewer))
        change = [abs(p - q) for p, q in zip(a, b, strict=True)]
        if "Gaussian" in type(mechanism).__name__:
            worst = max(worst, sum(c * c for c in change) / mechanism.sensitivity_squared)
        else:
            worst = max(worst, sum(change) / mechanism.sensitivity)
    return worst


QUESTIONS = {
    "parts": (lambda d: d.regress("y", on=["x", "z", "s"]), {"epsilon": 1}),
    "parts under zCDP": (lambda d: d.regress("y", on=["x"]), {"rho": 0.5}),
    "pairs": (lambda d: d.regress("y", on=["x", "z", "s"]), {"rho": 0.5}),
    "logistic": (
        lambda d: d.regress("s", on=["x", "z"], kind="logistic", bins={"x": 3, "z": [0, 20, 50]}),
        {"epsilon": 1},
    ),
    "survival": (
        lambda d: d.with_columns(e="x > 0").survival(time="z", event="e", bins=[0, 10, 40], by="s"),
        {"epsilon": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", QUESTIONS)
def test_one_unit_moves_the_integers_within_the_sensitivity(which):
    ask, goal = QUESTIONS[which]
    worst = moved(lambda rows: ask(protected(rows)).plan(**goal), np.random.default_rng(7))
    assert 0.3 < worst <= 1  # the search reaches a good part of what is allowed


@pytest.mark.parametrize("which", ["parts", "survival"])
def test_a_replaced_unit_moves_the_integers_within_the_sensitivity(which):
    ask, goal = QUESTIONS[which]
    rng, worst = np.random.default_rng(8), 0.0
    for _ in range(8):
        rows, other = people(rng, 10), people(rng, 10)
        changed = {n: [other[n][0] if n != "id" else v[0], *v[1:]] for n, v in rows.items()}
        (a, _, mechanism), (b, *_) = (
            measured(ask(protected(one, adjacency="replace")).plan(**goal)) for one in (rows, changed)
        )
        worst = max(worst, sum(abs(p - q) for p, q in zip(a, b, strict=True)) / mechanism.sensitivity)
    assert 0.3 < worst <= 1


def test_the_search_catches_the_sensitivity_of_one_product(monkeypatch):
    """The broken twin: sums of products that have the noise of one product."""

    def one_product(statistic, who):
        most = max(statistic.bounds) ** 2
        return who.l1(most), who.l2_squared(most)

    monkeypatch.setattr(MomentProducts, "sensitivity", one_product)
    ask, goal = QUESTIONS["pairs"]
    assert moved(lambda rows: ask(protected(rows)).plan(**goal), np.random.default_rng(7)) > 4


@pytest.mark.parametrize("which", QUESTIONS)
def test_plans_and_releases_come_back_from_their_documents(which):
    ask, goal = QUESTIONS[which]
    data = protected(people(np.random.default_rng(1), 60))
    plan = ask(data).plan(**goal)
    again = data.plan_from(plan.to_json())
    assert again == plan
    assert again.hash == plan.hash
    release = plan.release()
    assert plan.release().to_json() == release.to_json()  # the stored answer, free
    back = tc.Release.from_json(release.to_json())
    assert repr(back) == repr(release)
    assert release._repr_html_()
    assert str(plan)
    assert release.plot() is not None


def test_more_columns_and_zcdp_choose_by_the_predicted_noise():
    rng = np.random.default_rng(2)
    names = [f"c{i}" for i in range(7)]
    table = pa.table({"id": list(range(30)), **{n: rng.random(30) for n in names}})
    data = tc.protect(
        table, unit="id", limits={"rows": 1}, bounds=dict.fromkeys(names, (0, 1)),
        budget=tc.Budget(epsilon=9, delta=0.1),
    )  # fmt: skip

    def chosen(columns, **goal):
        return type(measured(data.regress(names[0], on=names[1:columns]).plan(**goal))[1])

    assert chosen(2, epsilon=1) is chosen(5, epsilon=1) is chosen(2, rho=0.1) is PartProducts
    assert chosen(6, epsilon=1) is chosen(4, rho=0.1) is MomentProducts


def test_several_rows_of_one_unit_are_refused_with_the_way_out():
    data = protected(people(np.random.default_rng(1), 9), limits={"rows": 3})
    for ask in (
        lambda rows: rows.regress("y", on=["x"]),
        lambda rows: rows.regress("s", on=["x"], kind="logistic", bins={"x": 2}),
        lambda rows: rows.survival(time="z", event="x", bins=[0, 1]),
    ):
        with pytest.raises(tc.TacitError, match="one row for each") as refused:
            ask(data)
        assert "per_unit" in str(refused.value.fix)
    assert data.limit(rows=1).regress("y", on=["x"]).plan(epsilon=1) is not None
    with pytest.raises(tc.TacitError, match="not a sample"):
        protected(people(np.random.default_rng(1), 9)).sample(0.5).regress("y", on=["x"])


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda d: d.regress("y", on=[]), "bad-parameter"),
        (lambda d: d.regress("y", on=["y"]), "bad-parameter"),
        (lambda d: d.regress("y", on="x"), "bad-parameter"),
        (lambda d: d.regress("y", on=["x"], kind="probit"), "bad-parameter"),
        (lambda d: d.regress("y", on=["x"], bounds={"x": (5, 5)}), "bad-parameter"),
        (lambda d: d.regress("y", on=["x"], bins={"x": 3}), "bad-parameter"),
        (lambda d: d.regress("s", on=["x"]), "bad-parameter"),
        (lambda d: d.regress("y", on=["s"], keys={"s": ["a", "b", "c"]}), "bad-parameter"),
        (lambda d: d.regress("y", on=["w"]), "missing-bounds"),
        (lambda d: d.regress("y", on=["nothing"]), "unknown-column"),
        (lambda d: d.regress("y", on=["x"], kind="logistic", bins={"x": 3, "y": 3}), "bad-parameter"),
        (lambda d: d.regress("s", on=["x"], kind="logistic", bounds={"x": (0, 1)}), "bad-parameter"),
        (lambda d: d.regress("s", on=["x", "z"], kind="logistic", bins={"x": 90, "z": 90}), "bad-parameter"),
        (lambda d: d.survival(time="z", event="x", bins=[3]), "bad-parameter"),
        (lambda d: d.survival(time="z", event="x", bins=[3, 2]), "bad-parameter"),
        (lambda d: d.survival(time="z", event="s", bins=[0, 2]), "bad-parameter"),
        (lambda d: d.survival(time="z", event="x", bins=[0, 2], keys=["a"]), "bad-parameter"),
    ],
)
def test_bad_questions_are_refused_before_anything_is_charged(ask, code):
    rows = people(np.random.default_rng(1), 9)
    data = protected({**rows, "w": rows["x"]})
    with pytest.raises(tc.TacitError) as refused:
        ask(data)
    assert refused.value.code == code
    assert data.remaining.epsilon == 10**9
