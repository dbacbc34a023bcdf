"""Small hostile neighbours of data of every kind, and how far their exact integers may be apart.

Two neighbours differ by one unit: a patient, a finder or a rider with all rows, an edge, a genome, a row of a
day, or one phenotype. A mechanism is calibrated for a distance; `share_used` says how much of it a pair uses.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from support.exact_integers import exact_of
from tacit.core import DrawnBefore, RunTask, members_of
from tacit.core._task import plain
from tacit.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    LadderNoise,
    RandomizedResponse,
    ResidualNoise,
    RoundedGaussian,
    SampledSteps,
    SparseVector,
    SplittingTree,
    StarLadder,
    StrategyNoise,
    ToeplitzNoise,
    TopK,
)
from tacit.mechanisms.choices._selection import Selection
from tacit.tables import EXAMPLE_HOSPITALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.random import Generator

    from tacit.core import Plan

__all__ = ["PAIRS", "fixed_ranking", "share_used", "shares_used"]

DAYS = 2
_ODD = (math.nan, math.inf, -math.inf, 1e308, -5.0, 5e-324, 150.0)


# -- how far exact integers are apart


def _change(first: Any, second: Any) -> list[int]:
    """Return how much each number changes."""
    a, b = (np.asarray(one, dtype=object).ravel() for one in (first, second))
    assert a.shape == b.shape, "the number of integers follows from the data"
    return [int(y) - int(x) for x, y in zip(a, b, strict=True)]


def _flat(sums: Any) -> list[Fraction]:
    """Return sums, which may be tensors, as one list of exact numbers."""
    parts = sums if isinstance(sums, list) else [sums]
    return [Fraction(x) for part in parts for x in np.ravel(np.asarray(part)).tolist()]


def share_used(mechanism: Any, first: Any, second: Any) -> Fraction:
    """Return the share that two neighbours use of the distance for which a mechanism is calibrated.

    More than 1 is a proof that the mechanism promises too much. Of Gaussian noise it is the share of squares.
    """
    match mechanism:
        case DiscreteLaplace():
            return Fraction(sum(map(abs, _change(first, second)))) / mechanism.sensitivity
        case DiscreteGaussian() | RoundedGaussian():
            return sum(Fraction(x) ** 2 for x in _change(first, second)) / mechanism.sensitivity**2
        case SampledSteps():  # with everybody in the sample
            a, b = (_flat(one.sums(np.arange(one.units))) for one in (first, second))
            return sum((y - x) ** 2 for x, y in zip(a, b, strict=True)) / Fraction(mechanism.sensitivity) ** 2
        case StrategyNoise():
            return share_used(mechanism.noise, mechanism.sums(first), mechanism.sums(second))
        case ToeplitzNoise():
            rows = (mechanism.sums([np.asarray(day) for day in one], None)[0] for one in (first, second))
            return share_used(mechanism.noise, *rows)
        case ResidualNoise():
            return _residual_share(mechanism, first, second)
        case LadderNoise() | StarLadder():
            return _ladder_share(mechanism, first, second)
        case SplittingTree():
            return Fraction(sum(map(abs, _change(first, second))), mechanism.sensitivity)
        case TopK():
            return share_used(mechanism.each, first, second)
        case Selection() | SparseVector():
            return _choice_share(mechanism, first, second)
        case RandomizedResponse():
            return Fraction(sum(x != 0 for x in _change(first, second)))
    raise AssertionError(f"say here for which distance {type(mechanism).__name__} is calibrated")


def _residual_share(mechanism: ResidualNoise, first: Any, second: Any) -> Fraction:
    """Return the rho of the change of all residuals, as a share of what is charged."""
    moved = Fraction(0)
    for columns, sigma, a, b in zip(mechanism.sets, mechanism.sigmas, first, second, strict=True):
        residual = np.reshape(_change(a, b), [mechanism.sizes[i] for i in columns]).astype(object)
        for axis, i in enumerate(columns):
            residual = mechanism.sizes[i] * residual - residual.sum(axis=axis, keepdims=True)
        moved += sum(int(x) ** 2 for x in np.ravel(residual)) / (2 * sigma**2)
    return moved / mechanism.rho


def _ladder_share(mechanism: LadderNoise | StarLadder, first: Any, second: Any) -> Fraction:
    """Return the change of the number as a share of the smaller width; a width changes by at most 1."""
    (f, a), (g, b) = first, second
    assert abs(int(a) - int(b)) <= 1
    width = min(mechanism.law(int(one)).width for one in (a, b))
    if isinstance(mechanism, StarLadder):
        width = 2 * math.comb(width, mechanism.stars - 1)
    return Fraction(abs(int(f) - int(g)), width)


def _choice_share(mechanism: Any, first: Any, second: Any) -> Fraction:
    """Return the change of scores; of several groups the sum, and of two directions half the span."""
    a, b = (np.atleast_2d(np.array(list(one.values()) if isinstance(one, dict) else one, dtype=object))
            for one in (first, second))  # fmt: skip
    up = sum(max(0, *map(int, row)) for row in b - a)
    down = sum(max(0, *map(int, row)) for row in a - b)
    if mechanism.monotone:
        assert not (up and down), "monotone scores go one way"
        return max(up, down) / mechanism.sensitivity
    return Fraction(up + down, 2) / mechanism.sensitivity


def shares_used(first: Plan[Any], second: Plan[Any]) -> list[Fraction]:
    """Return the share of each step that two neighbours use; later steps see the same noisy results."""
    assert first.hash == second.hash, "a plan follows from public facts"
    fixed: dict[int, Any] = {}
    return [
        share_used(step.mechanism, a, b)
        for step, a, b in zip(_steps(first), _exact(first, fixed), _exact(second, fixed), strict=True)
    ]


def _steps(plan: Plan[Any]) -> Any:
    task = members_of(plan)[0].task
    return task.steps_of(1) if isinstance(task, RunTask) else task.steps


def _exact(plan: Plan[Any], fixed: dict[int, Any]) -> list[Any]:
    """Return the exact integers of every step; the noisy results are drawn once for both neighbours."""
    task, steps = members_of(plan)[0].task, _steps(plan)
    if isinstance(task, RunTask):
        task.subject.wanted.through = DAYS  # type: ignore[attr-defined]
        data = task.open(DrawnBefore(1, {}, b""))
        return [step.exact(data, []) for step in steps]

    def noisy(position: int, exact: Any) -> Any:
        if position not in fixed:
            fixed[position] = plain(steps[position].mechanism.release(exact))
        return fixed[position]

    return exact_of(task, noisy)


@contextmanager
def fixed_ranking(
    secret: int, modules: tuple[str, ...] = ("tables._protect", "maps._trips", "maps._point_source")
) -> Iterator[None]:
    """Let all datasets that are declared, or read, meanwhile keep the same rows of a unit."""
    with pytest.MonkeyPatch.context() as patch:
        for room in modules:
            patch.setattr(f"tacit.{room}.ranking_secret", lambda: secret)
        yield


# -- neighbours of every kind


def _numbers(rng: Generator, size: int, low: float, high: float) -> list[float]:
    odd = rng.random(size) < 0.1
    return np.where(odd, rng.choice(_ODD, size), rng.uniform(low, high, size).round(2)).tolist()


def _owned(
    rng: Generator, adjacency: str, unit: str, columns: Callable[[int], dict[str, Any]]
) -> tuple[Any, Any]:
    """Return rows of a few units, and the same without one of them, or with other rows of it."""
    owner = rng.integers(1, 6, int(rng.integers(1, 14)))
    rows, others = (
        pa.table({unit: pa.array(owner.tolist(), pa.int64()), **columns(len(owner))}) for _ in range(2)
    )
    own = pa.array((owner == rng.choice(owner)).tolist())
    rest = rows.filter(pc.invert(own))
    return rows, rest if adjacency == "add/remove" else pa.concat_tables([others.filter(own), rest])


def _visits(rng: Generator, adjacency: str = "add/remove") -> tuple[Any, Any]:
    def columns(size: int) -> dict[str, Any]:
        wards = rng.choice([*EXAMPLE_HOSPITALS, "", "nowhere"], size).tolist()
        return {
            "hospital": pa.array([one or None for one in wards], pa.string()),
            "age": pa.array(_numbers(rng, size, -10, 120), pa.float64()),
            "length_of_stay": pa.array(_numbers(rng, size, -5, 40), pa.float64()),
        }

    return _owned(rng, adjacency, "patient_id", columns)


def _sites(rng: Generator, adjacency: str = "add/remove") -> tuple[Any, Any]:
    return _owned(rng, adjacency, "finder", lambda size: {
        "lat": pa.array(_numbers(rng, size, -25.2, -21.8), pa.float64()),
        "lon": pa.array(_numbers(rng, size, 131.8, 136.2), pa.float64()),
    })  # fmt: skip


def _rides(rng: Generator, adjacency: str = "add/remove") -> tuple[Any, Any]:
    def ends(size: int) -> Any:
        return pa.array(
            [one or None for one in rng.choice(["A", "A", "B", "B", "C", ""], size).tolist()], pa.string()
        )

    return _owned(rng, adjacency, "rider", lambda size: {"home": ends(size), "work": ends(size)})


def _friends(rng: Generator, *, directed: bool = False) -> tuple[Any, Any]:
    """Return edges, some of them twice or from a node to itself, and the same without one connection."""
    nodes = np.array(["ana", "ben", "eva", "tom"])
    size = int(rng.integers(3, 10))
    a, b = nodes[rng.integers(0, 4, size)], nodes[rng.integers(0, 4, size)]
    gone = int(rng.integers(size))
    same = (a == a[gone]) & (b == b[gone])
    if not directed:
        same |= (a == b[gone]) & (b == a[gone])
    columns = {"a": a.tolist(), "b": b.tolist(), "w": pa.array(_numbers(rng, size, -2, 9), pa.float64())}
    rows = pa.table(columns)
    return rows, rows.filter(pa.array((~same).tolist()))


def _calls(rng: Generator, people: int) -> Any:
    """Return calls of people, of whom the first is extreme at all variants."""
    calls = rng.integers(-1, 3, (people, 12)).astype(np.int8)
    calls[0] = rng.choice([-1, 0, 2])
    return calls


def _genomes(rng: Generator) -> tuple[Any, Any]:
    calls = _calls(rng, int(rng.integers(1, 8)))
    return calls, np.delete(calls, int(rng.choice([0, len(calls) - 1])), axis=0)


def _replaced(rng: Generator) -> tuple[Any, Any]:
    calls = _calls(rng, 40)
    other = calls.copy()
    other[rng.integers(40)] = rng.choice([-1, 0, 2])
    return calls, other


def _diseases(rng: Generator) -> tuple[Any, Any]:
    status = rng.integers(0, 2, 40).tolist()
    other = list(status)
    place = int(rng.integers(40))
    other[place] = [1 - status[place], None, math.nan, "?"][int(rng.integers(4))]
    return status, other


def _days(rng: Generator) -> tuple[Any, Any]:
    """Return the rows of a few days, and the same without one row."""
    days = [{"ill": rng.choice([1.0, 0.0, *_ODD], int(rng.integers(1, 5)))} for _ in range(DAYS)]
    day = int(rng.integers(DAYS))
    days[day]["ill"][0] = 1.0
    return days, [{"ill": rows["ill"][int(number == day) :]} for number, rows in enumerate(days)]


#: Random neighbours by dataset, as its declaration takes them; where rows have owners, of either adjacency.
PAIRS: dict[str, Callable[..., tuple[Any, Any]]] = {
    "table": _visits, "graph": _friends, "directed graph": lambda rng: _friends(rng, directed=True),
    "points": _sites, "trips": _rides, "cohort": _genomes, "patients": _replaced, "phenotypes": _diseases,
    "stream": _days,
}  # fmt: skip
