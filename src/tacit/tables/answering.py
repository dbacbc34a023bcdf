"""What a paid plan does: exact integers from the engine, exact noise, columns read off the noisy integers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from tacit import noise
from tacit.core.protocols import JSON, Engine
from tacit.errors import TacitError
from tacit.tables.algebra import Question
from tacit.tables.budgeting import Share
from tacit.tables.emit import Statement
from tacit.tables.lowering import Reading
from tacit.tables.readings import Cell, read_cell
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
    confidence: Fraction
    engine: Engine

    def run(self) -> JSON:
        """Return keys and cells as JSON. Only noisy integers are read here."""
        exact = exact_integers(self.engine, self.question, self.statements)
        keys = self._keys(exact)
        noisy: dict[int, dict[Key, list[int]]] = {}
        if self.question.by and self.question.keys is None:
            noisy[0] = _shown(self.shares[0], exact[self.shares[0].step.statistic], keys)
            keys = sorted(noisy[0])  # type: ignore[type-var]
        for i, share in enumerate(self.shares):
            if i not in noisy:
                noisy[i] = _noisy(share, exact[share.step.statistic], keys)
        columns = {
            r.column: [
                _cell(read_cell(r, self.shares[r.step], noisy[r.step][key], self.confidence)) for key in keys
            ]
            for r in self.readings
        }
        names = [name for name, _ in self.question.by]
        return {
            "keys": {name: [_plain(key[i]) for key in keys] for i, name in enumerate(names)},
            "columns": columns,
        }

    def _keys(self, exact: dict[Statistic, dict[Key, list[int]]]) -> list[Key]:
        if not self.question.by:
            return [()]
        if self.question.keys is not None:
            return list(self.question.keys)
        return sorted(exact[self.shares[0].step.statistic])  # type: ignore[type-var]


def _cell(cell: Cell) -> JSON:
    return [cell.value, cell.low, cell.high]


def _plain(value: object) -> JSON:
    return value if isinstance(value, str | float | bool) else str(value)


def exact_integers(
    engine: Engine, question: Question, statements: tuple[Statement, ...]
) -> dict[Statistic, dict[Key, list[int]]]:
    """Run the statements and return each statistic's exact integers per group. Never leaves the process un-noised."""
    tables = {"tacit_keys": question.keys} if question.by and question.keys is not None else {}
    width = len(question.by)
    found: dict[Statistic, dict[Key, list[int]]] = {}
    for statement in statements:
        lines = engine.integers(statement.sql, tables)
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


def _noisy(share: Share, exact: dict[Key, list[int]], keys: list[Key]) -> dict[Key, list[int]]:
    statistic = share.step.statistic
    vectors = [exact.get(key, [0] * statistic.size) for key in keys]
    match share.step.mechanism:
        case "noise" | "threshold":
            drawn = _draw(share, len(keys) * statistic.size)
            flat = [x + next(drawn) for vector in vectors for x in vector]
            size = statistic.size
            return {key: flat[i * size : (i + 1) * size] for i, key in enumerate(keys)}
        case "select":
            return {k: [_select(share, v)] for k, v in zip(keys, vectors, strict=True)}
        case "top":
            return {
                k: [int(i) for i in noise.select_top(v, share.step.picks, scale=share.scale)]
                for k, v in zip(keys, vectors, strict=True)
            }


def _draw(share: Share, count: int):  # type: ignore[no-untyped-def]  # noqa: ANN202
    sampler = noise.discrete_gaussian if share.law == "gaussian" else noise.discrete_laplace
    if share.scale > 2**50:
        return (int(str(sampler(share.scale))) for _ in range(count))
    return iter(sampler(share.scale, count).tolist())  # type: ignore[union-attr]


def _select(share: Share, counts: list[int]) -> int:
    """Score each candidate by minus the imbalance of rows below and above it, times the level's denominator."""
    q = share.step.level
    below = [0, *accumulate(counts)]
    total = below[-1]
    scores = [
        -abs((q.denominator - q.numerator) * below[i] - q.numerator * (total - below[i + 1])) for i in range(len(counts))
    ]
    return int(str(noise.select(scores, scale=share.scale)))


def _shown(share: Share, exact: dict[Key, list[int]], keys: list[Key]) -> dict[Key, list[int]]:
    """Noise the numbers of units and keep the groups that reach the threshold."""
    if share.step.mechanism != "threshold":
        raise TacitError("bad-parameter", "private keys need a threshold", fix="plan(delta=1e-6)")
    return {k: v for k, v in _noisy(share, exact, keys).items() if v[0] >= share.above}
