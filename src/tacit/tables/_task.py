"""What a paid plan does: exact integers from the engine, exact noise, columns read off the noisy integers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from tacit import noise
from tacit.errors import TacitError
from tacit.tables.readings import read_cell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.core.protocols import JSON, Engine
    from tacit.tables.algebra import Question
    from tacit.tables.budgeting import Share
    from tacit.tables.emit import Statement
    from tacit.tables.lowering import Reading
    from tacit.tables.statistics import Statistic

__all__ = ["Answering", "Key", "exact_integers"]

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Answering:
    """The task of a table plan."""

    question: Question
    statements: tuple[Statement, ...]
    shares: tuple[Share, ...]
    readings: tuple[Reading, ...]
    engine: Engine

    def run(self) -> JSON:
        """Return the keys and, per step, the noisy integers of each group."""
        exact = exact_integers(self.engine, self.question, self.statements)
        keys = self._keys(exact)
        noisy: dict[int, list[list[int]]] = {}
        if self.question.by and self.question.keys is None:
            shown = _shown(self.shares[0], exact[self.shares[0].step.statistic], keys)
            keys, noisy[0] = list(shown), list(shown.values())
        for i, share in enumerate(self.shares):
            if i not in noisy:
                noisy[i] = _noisy(share, exact[share.step.statistic], keys)
        return {
            "keys": [[_plain(k) for k in key] for key in keys],
            "steps": [noisy[i] for i in range(len(self.shares))],
        }

    def read(self, released: Any, confidence: float) -> Mapping[str, Any]:
        """Read values and intervals off the noisy integers."""
        level = Fraction(confidence).limit_denominator(10**9)
        keys, steps = released["keys"], released["steps"]
        cells = {
            r.column: [read_cell(r, self.shares[r.step], noisy, level) for noisy in steps[r.step]]
            for r in self.readings
        }
        names = [name for name, _ in self.question.by]
        return {
            "keys": {name: [key[i] for key in keys] for i, name in enumerate(names)},
            "columns": {name: [(c.value, c.low, c.high) for c in column] for name, column in cells.items()},
        }

    def _keys(self, exact: dict[Statistic, dict[Key, list[int]]]) -> list[Key]:
        if not self.question.by:
            return [()]
        if self.question.keys is not None:
            return list(self.question.keys)
        return sorted(exact[self.shares[0].step.statistic])


def _plain(value: object) -> JSON:
    return value if isinstance(value, str | float | bool) else str(value)


def exact_integers(
    engine: Engine, question: Question, statements: tuple[Statement, ...]
) -> dict[Statistic, dict[Key, list[int]]]:
    """Run the statements and return each statistic's exact integers per group.

    Never leaves the process un-noised.
    """
    tables = {"tacit_keys": question.keys} if question.by and question.keys is not None else {}
    width = len(question.by)
    found: dict[Statistic, dict[Key, list[int]]] = {}
    for statement in statements:
        lines = engine.integers(statement.sql, tables, statement.limited)
        for statistic in statement.statistics:
            found[statistic] = {}
        for line in lines:
            key, numbers = line[:width], [int(str(n)) for n in line[width:]]
            if statement.statistics[0].kind == "bins":
                statistic = statement.statistics[0]
                cells = found[statistic].setdefault(key, [0] * statistic.bins)
                cells[numbers[0]] += numbers[1]
                continue
            for statistic in statement.statistics:
                size = _columns(statistic)
                found[statistic][key] = _vector(statistic, numbers[:size])
                numbers = numbers[size:]
    return found


def _columns(statistic: Statistic) -> int:
    return {"moments": 2, "squares": 3}.get(statistic.kind, 1)


def _vector(statistic: Statistic, numbers: list[int]) -> list[int]:
    """Turn a count and sums into non-negative parts whose total is the count times W (or W^2)."""
    grid = statistic.grid
    if grid is None or statistic.kind == "sum":
        return numbers
    total = numbers[0] * (grid.width if statistic.kind == "moments" else grid.width**2)
    return [total - sum(numbers[1:]), *numbers[1:]]


def _noisy(share: Share, exact: dict[Key, list[int]], keys: list[Key]) -> list[list[int]]:
    """Run one step on every group. A group without rows gets its noise like any other."""
    size = share.step.statistic.size
    vectors = [exact.get(key, [0] * size) for key in keys]
    match share.step.mechanism:
        case "noise" | "threshold":
            drawn = _draw(share, len(keys) * size)
            flat = [x + d for x, d in zip((x for v in vectors for x in v), drawn, strict=True)]
            return [flat[i * size : (i + 1) * size] for i in range(len(keys))]
        case "select":
            return [[_select(share, v)] for v in vectors]
        case "top":
            return [[int(i) for i in noise.select_top(v, share.step.picks, share.scale)] for v in vectors]


def _draw(share: Share, count: int) -> list[int]:
    sampler = noise.discrete_gaussian if share.law == "gaussian" else noise.discrete_laplace
    if share.scale > 2**50:
        return [sampler(share.scale) for _ in range(count)]
    return [int(x) for x in sampler(share.scale, count)]


def _select(share: Share, counts: list[int]) -> int:
    """Score a candidate by minus the imbalance of rows below and above it, in whole numbers."""
    q = share.step.level
    below = [0, *accumulate(counts)]
    total = below[-1]
    scores = [
        -abs((q.denominator - q.numerator) * below[i] - q.numerator * (total - below[i + 1]))
        for i in range(len(counts))
    ]
    return noise.select(scores, share.scale)


def _shown(share: Share, exact: dict[Key, list[int]], keys: list[Key]) -> dict[Key, list[int]]:
    """Noise the numbers of units and keep the groups that reach the threshold."""
    if share.step.mechanism != "threshold":
        raise TacitError("bad-parameter", "private keys need a threshold", fix="plan(delta=1e-6)")
    return {k: v for k, v in zip(keys, _noisy(share, exact, keys), strict=True) if v[0] >= share.above}
