"""The levels of a table's groups: ROLLUP, CUBE and GROUPING SETS as sums of the finest groups.

Only the finest groups are measured. A total is the sum of the noisy integers of its groups, which is free
post-processing: its noise is the sum of their independent noises, and totals agree with their parts.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

from tacit.algebra import DistinctCounts, UnitCounts
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Declare, Either, Say
from tacit.parameters import Choice, Listed
from tacit.tables._readings import StepNoise
from tacit.tables._steps import AddNoise

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from tacit.algebra import Contribution, TableQuestion
    from tacit.tables._lowering import ReleasedColumn
    from tacit.tables._readings import Cell, Reading
    from tacit.tables._steps import MeasuredStep

#: For each level the places of the columns that it groups by; the others are summed over.
Levels: TypeAlias = "tuple[tuple[int, ...], ...]"

MOST_LEVELS = 64
_MOST_SUMMED = 10_000


def rollup_levels(columns: int) -> Levels:
    """Return all columns, all but the last, and so on down to the total.

    Examples
    --------
    >>> rollup_levels(2)
    ((0, 1), (0,), ())
    """
    return tuple(tuple(range(n)) for n in range(columns, -1, -1))


def cube_levels(columns: int) -> Levels:
    """Return every choice of columns, the largest first.

    Examples
    --------
    >>> cube_levels(2)
    ((0, 1), (0,), (1,), ())
    """
    if 2**columns > MOST_LEVELS:
        raise bad_parameter("cube", "of at most 6 columns", columns, fix=Code(".rollup()"))
    return tuple(chosen for n in range(columns, -1, -1) for chosen in combinations(range(columns), n))


def named_levels(names: Sequence[str], sets: Sequence[Sequence[str]]) -> Levels:
    """Return the levels that are given by the names of their columns."""
    listed = Listed("lists of columns", f'[["{names[0]}"], []]', most=MOST_LEVELS)
    given = [(one,) if isinstance(one, str) else tuple(one) for one in listed.read("sets", sets)]
    for name in (name for one in given for name in one):
        Choice(tuple(names)).read("a column of a grouping set", name)
    return tuple(dict.fromkeys(tuple(i for i, n in enumerate(names) if n in one) for one in given))


def check_levels(question: TableQuestion) -> None:
    """Refuse totals of groups that are selected privately, or of too many groups."""
    if not question.levels:
        return
    names = [name for name, _ in question.by]
    if question.keys is None:
        raise TacitError(
            "keys-missing",
            f"totals over {', '.join(names)} need public keys",
            why="private selection hides small groups, so the sum of the groups shown would be too small",
            fix=Either(
                *(Declare("keys", ["A", "B"], column=name) for name in names),
                Say("ask for the totals in a separate question, without these groups"),
            ),
        )
    if any(None in key for key in question.keys):
        raise TacitError(
            "not-allowed",
            f"totals over {', '.join(names)} cannot be shown together with a group of missing values",
            why="both would be rows without a key",
            fix=Say("name the missing values, as in COALESCE(ward, 'none')"),
        )
    if len(question.keys) > _MOST_SUMMED:
        raise bad_parameter(
            "keys",
            f"at most {_MOST_SUMMED:,} combinations if the question asks for totals",
            f"{len(question.keys):,}",
            fix="group by fewer columns, or ask for the totals in a separate question",
        )


def check_totals(
    steps: tuple[MeasuredStep, ...],
    columns: tuple[ReleasedColumn, ...],
    who: Contribution,
    names: Sequence[str],
) -> None:
    """Refuse aggregates whose total is not the sum over groups: picked values, units in several groups."""
    for column in columns:
        step = steps[column.step]
        sums = isinstance(step.method, AddNoise) and not isinstance(step.statistic, DistinctCounts)
        if sums and (who.groups == 1 or not isinstance(step.statistic, UnitCounts)):
            continue
        raise TacitError(
            "not-allowed",
            f"{column.aggregate.words} has no totals over {', '.join(names)}",
            why="a total is the sum of its groups, but these numbers do not add up: for example, a value "
            "that is in several groups would count several times",
            fix=Say("remove it, or ask for it in a separate question with only the groups of the total"),
        )


def lines_of(keys: Sequence[Sequence[object]], levels: Levels) -> tuple[list[list[object]], list[list[int]]]:
    """Return all lines: their keys, None for what is summed over, and the finest lines in each of them."""
    made: list[list[object]] = []
    groups: list[list[int]] = []
    for level in levels:
        found: dict[tuple[object, ...], list[int]] = {}
        for at, key in enumerate(keys):
            found.setdefault(tuple(key[i] for i in level), []).append(at)
        for shown, lines in found.items():
            values = dict(zip(level, shown, strict=True))
            made.append([values.get(i) for i in range(len(keys[0]))])
            groups.append(lines)
    return made, groups


def read_levels(
    reading: Reading,
    noise: StepNoise,
    lines: list[list[int]],
    groups: Sequence[Sequence[int]],
    confidence: Fraction,
) -> list[Cell]:
    """Read the sum of the noisy integers of each group of lines, with the sum of their noises."""
    cells: list[Cell | None] = [None] * len(groups)
    for k in sorted({len(group) for group in groups}):
        places = [i for i, group in enumerate(groups) if len(group) == k]
        sums = [[sum(parts) for parts in zip(*(lines[at] for at in groups[i]), strict=True)] for i in places]
        summed = StepNoise(noise.statistic, noise.mechanisms * k)
        for i, cell in zip(places, reading.shown(summed, sums, confidence), strict=True):
            cells[i] = cell
    return [cell for cell in cells if cell is not None]
