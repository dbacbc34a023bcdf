"""The search for bounds within a plan: which steps find them, what they cost, and the answer on them.

A plan that finds bounds has three kinds of steps, in this order:

1. for each expression, a noisy count of its values in octaves (`OctaveBins`), for every group;
2. where a mean, a spread or a quantile is asked for, a second noisy count in 16 equal cells of the range so
   far (`FoundCells`). It counts only groups whose range leaves out zero; the others have zeros in its place;
3. the answer, on the bounds that follow from 1 and 2.

Guarantee. Every step has one mechanism, whatever was found before: counts change by at most L in the L1 norm
(a row is in one group and one cell), and one row adds at most a public weight M to the answer
(`tacit.algebra`: "Bounds that are found"). So each step costs its share for every output of the steps before
it, and the plan costs the sum of the shares (adaptive composition). The shares are 17/80, 3/80 and 60/80; a
plan without the second step has 17/80 and 63/80. Where there is a second step and no range leaves out zero,
its share buys nothing: that is 3/80 of epsilon, and 5 % more noise than the best split.

The bounds are post-processing of noisy counts (docs/proofs/found_bounds.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.algebra import (
    BinCounts,
    Call,
    Column,
    EvenBins,
    FoundCandidates,
    FoundCells,
    FoundGrid,
    MomentSums,
    OctaveBins,
    PartBins,
    RowCounts,
    Sums,
    bounds_of,
    grid_for,
    nice_step,
    scope,
    words_of,
)
from tacit.errors import TacitError
from tacit.fixes import Declare, Do, Either
from tacit.mechanisms import DiscreteGaussian
from tacit.strategies import (
    MAX_GROUPS,
    NARROWING_SHARE,
    OCTAVE_SHARE,
    WIDENING,
    CellNoise,
    OctaveCells,
    answer_share,
    find_bounds,
    find_group_bounds,
    narrow_group_bounds,
)
from tacit.tables.planning._steps import AddNoise, MeasuredStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.algebra import Node, Statistic, TableQuestion
    from tacit.mechanisms import IntegerMechanism
    from tacit.strategies import OctaveRange
    from tacit.tables.questions._aggregates import Range


_PARTS = 16
_FINEST = 2**30  # a range that is this much narrower than its ends are large has no grid
#: A range is nearly always found from so many times the smallest count that makes a cell sure.
_NEARLY_ALWAYS = Fraction(19, 5)
_WHOLE = frozenset({
    "ceil", "date_diff", "day", "dayofyear", "floor", "hour", "isodow", "length", "minute", "month",
    "position", "quarter", "second", "sign", "to_whole", "trunc", "week", "weekday", "year",
})  # fmt: skip


def is_open(statistic: Statistic) -> bool:
    """Return whether the bounds of a statistic are found by an earlier step."""
    return isinstance(statistic.grid, FoundGrid) or isinstance(_bins(statistic), FoundCandidates)


def cut_of(statistic: Statistic) -> str | None:
    """Return how far the bounds reach that are found for a statistic; None as usual."""
    cuts = (getattr(one, "cut", None) for one in (statistic.grid, _bins(statistic)))
    return next((cut for cut in cuts if cut is not None), None)


def search_steps(steps: Sequence[MeasuredStep]) -> tuple[MeasuredStep, ...]:
    """Return the steps that find the bounds that other steps need; none where all bounds are known."""
    open_statistics = [step.statistic for step in steps if is_open(step.statistic)]
    octaves = dict.fromkeys(_argument(one) for one in open_statistics)
    narrowed = dict.fromkeys(_argument(one) for one in open_statistics if not isinstance(one, Sums))
    return (
        *(MeasuredStep(BinCounts(node, OctaveBins(_is_whole(node))), AddNoise()) for node in octaves),
        *(MeasuredStep(BinCounts(node, FoundCells(_PARTS)), AddNoise()) for node in narrowed),
    )


def _argument(statistic: Statistic) -> Node:
    argument = statistic.argument
    if argument is None:
        raise TypeError(type(statistic).__name__)
    return argument


def _is_whole(node: Node) -> bool:
    """Return whether the form of an expression shows that its values are whole numbers."""
    return isinstance(node, Call) and node.op in _WHOLE


def check_search(question: TableQuestion, steps: Sequence[MeasuredStep], *, added: bool) -> None:
    """Refuse a search for bounds where Tacit has none; ``added``: several datasets add up their integers."""
    search = search_steps(steps)
    if not search or not (added or question.private_keys):
        return
    first = Do("find-bounds-first", expression=words_of(_argument(search[0].statistic)))
    if question.private_keys:
        raise TacitError(
            "not-allowed",
            "bounds cannot be found for groups that are selected privately",
            why="the plan counts the values of each group in octaves first, so it must know the groups",
            fix=Either(Declare("keys", ["A", "B"], column=question.by[0][0]), first),
        )
    raise TacitError(
        "not-allowed",
        "several datasets cannot find bounds together",
        why="each would find others from its own noisy counts, and sums on other bounds cannot be added",
        fix=first,
    )


def search_weights(search: Sequence[MeasuredStep], answers: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Return the weights of the search's steps: together they get their share of the plan's cost."""
    narrowings = sum(isinstance(_bins(step.statistic), FoundCells) for step in search)
    octaves, total = len(search) - narrowings, sum(answers, Fraction(0))
    rest = answer_share(narrowed=narrowings > 0)
    shares = {OctaveBins: OCTAVE_SHARE / max(octaves, 1), FoundCells: NARROWING_SHARE / max(narrowings, 1)}
    return tuple(total * shares[type(_bins(step.statistic))] / rest for step in search)


def _bins(statistic: Statistic) -> Any:
    return getattr(statistic, "bins", None)


def on_bounds(statistic: Any, bounds: Range | None) -> Any:
    """Return a statistic on bounds that were found; one row adds at most the weight it had before.

    Without a range it is the number of values; `without_range` turns it into what the step expects.

    Examples
    --------
    >>> from tacit.algebra import Column, found_grid
    >>> mean = MomentSums(Column("spending"), found_grid(26, 36))
    >>> found = on_bounds(mean, (Fraction(0), Fraction(96)))
    >>> 0.999 < found.weight / mean.weight <= 1, found.grid.high
    (True, Fraction(96, 1))
    """
    if bounds is None:
        return RowCounts(statistic.argument)
    low, high = bounds
    if isinstance(statistic, BinCounts):
        step = nice_step(bounds, statistic.size)
        candidates = EvenBins(float(low), float(step), int((high - low) / step) + 1)
        return replace(statistic, bins=candidates)
    if isinstance(statistic, Sums):  # a sum changes by the larger end, so the range may as well reach zero
        low, high = min(low, Fraction(0)), max(high, Fraction(0))
    narrow = replace(statistic, grid=grid_for((low, high), statistic.grid.bits))
    return replace(narrow, factor=statistic.weight // narrow.weight)


def without_range(statistic: Statistic, values: int) -> list[int]:
    """Return the integers of a step for a group without a range: its number of values, or nothing.

    They change as those with a range do: one value adds the weight of the statistic, or 0.
    """
    if isinstance(statistic, MomentSums):
        return [values * statistic.weight, *[0] * (statistic.size - 1)]
    return [0] * statistic.size


@dataclass(frozen=True, slots=True)
class BoundsSearch:
    """How the bounds of one expression are read off the noisy counts of earlier steps.

    Parameters
    ----------
    argument
        The expression.
    octaves, parts
        The places of its steps; without a second count, ``parts`` is None.
    noise, part_noise
        The law of the noise of these steps.
    groups
        How many groups there are.
    pooled
        Whether all groups share one count, and so one range.
    declared
        Bounds that are declared all the same, such as a wide range; what is found stays within them.
    cuts
        How far the ranges reach that are asked for: ``"rare"`` where few values shall lie beyond the ends.
    """

    argument: Node
    octaves: int
    parts: int | None
    noise: CellNoise
    part_noise: CellNoise | None
    groups: int
    pooled: bool
    declared: Range | None = None
    cuts: tuple[str | None, ...] = (None,)

    @property
    def cells(self) -> OctaveCells:
        """The public cells."""
        return OctaveCells(integer=_is_whole(self.argument))

    @property
    def rows(self) -> int:
        """From about how many rows on a range is found, to two digits."""
        sure = self.noise.upper(0.005 / (4 * self.cells.size))
        return max(1, int(float(f"{float(_NEARLY_ALWAYS) * sure:.1e}")))

    @property
    def part_count(self) -> int:
        """How many integers the second count has for each group."""
        return _PARTS

    def ranges(self, noisy: Sequence[Any]) -> list[OctaveRange | None]:
        """Return the range of each group; a single one where all groups share it."""
        counts = np.array(noisy[self.octaves], dtype=np.float64).reshape(-1, self.cells.size)
        return list(_ranges(self, counts.tobytes()))

    def bounds(self, noisy: Sequence[Any], cut: str | None = None) -> list[Range | None]:
        """Return the bounds of each group; None where no range was found.

        Post-processing of the noisy counts, however far the range reaches.
        """
        ranges, widening = self.ranges(noisy), WIDENING[cut or "usual"]
        if self.parts is None or self.part_noise is None:
            bounds: list[Range | None] = [None if own is None else own.bounds(widening) for own in ranges]
        else:
            counts = [
                line[: 0 if own is None else len(own.parts) - 1]
                for own, line in zip(ranges, noisy[self.parts], strict=True)
            ]
            bounds = narrow_group_bounds(ranges, counts, self.part_noise, widening)
        within = [None if ends is None else self._within_declared(ends) for ends in bounds]
        return within * self.groups if self.pooled else within

    def _within_declared(self, ends: Range) -> Range:
        """Return the part of a range that lies within the declared one; all of it where next to none does."""
        if self.declared is None:
            return ends
        return common_range(ends, self.declared) or ends

    def part_bins(self, noisy: Sequence[Any]) -> list[PartBins | None]:
        """Return the cells of the second count of each group; None where the range is not narrowed."""
        bins = [
            PartBins(tuple(float(end) for end in own.parts)) if own is not None and own.narrows else None
            for own in self.ranges(noisy)
        ]
        return bins * self.groups if self.pooled else bins


@lru_cache(maxsize=8)
def _ranges(search: BoundsSearch, octaves: bytes) -> tuple[OctaveRange | None, ...]:
    """Read ranges off noisy counts; the steps of one draw and the reading of its answer ask for the same."""
    counts = np.frombuffer(octaves, dtype=np.float64).reshape(-1, search.cells.size)
    if search.pooled:
        return (find_bounds(counts[0], search.noise, search.cells),)
    return tuple(find_group_bounds(counts, search.noise, search.cells))


def searches_of(
    question: TableQuestion, steps: Sequence[MeasuredStep], mechanisms: Sequence[IntegerMechanism]
) -> dict[Node, BoundsSearch]:
    """Return the search of each expression, by the steps of a plan and their mechanisms."""
    places = {
        (_argument(step.statistic), type(bins)): i
        for i, step in enumerate(steps)
        if isinstance(bins := _bins(step.statistic), OctaveBins | FoundCells)
    }
    if not places:
        return {}
    groups = len(question.keys or ()) if question.by else 1
    searches = {}
    for (node, bins), octaves in places.items():
        if bins is OctaveBins:
            parts = places.get((node, FoundCells))
            searches[node] = BoundsSearch(
                node,
                octaves,
                parts,
                _noise(mechanisms[octaves]),
                None if parts is None else _noise(mechanisms[parts]),
                groups,
                groups > MAX_GROUPS or bool(question.levels),
                declared_range(question, node),
                _cuts(steps, node),
            )
    return searches


def _cuts(steps: Sequence[MeasuredStep], node: Node) -> tuple[str | None, ...]:
    """Return how far the ranges of an expression reach that steps ask for, as usual first."""
    own = [one.statistic for one in steps if is_open(one.statistic) and one.statistic.argument == node]
    return tuple(sorted({cut_of(one) for one in own}, key=lambda cut: cut or ""))


def declared_range(question: TableQuestion, node: Node) -> Range | None:
    """Return bounds that are declared, or follow from the form; not those of a limit that nobody chose."""
    facts = scope(question.input)
    is_default = isinstance(node, Column) and facts[node.name].default
    return None if is_default else bounds_of(node, facts)


def common_range(one: Range, other: Range) -> Range | None:
    """Return the part that two ranges share; None where next to nothing is left.

    Examples
    --------
    >>> ten, twenty, fifty = map(Fraction, (10, 20, 50))
    >>> common_range((Fraction(0), twenty), (ten, fifty)) == (ten, twenty)
    True
    >>> common_range((Fraction(0), ten), (twenty, fifty)) is None
    True
    """
    low, high = max(one[0], other[0]), min(one[1], other[1])
    return (low, high) if high - low > max(abs(low), abs(high)) / _FINEST else None


def _noise(mechanism: IntegerMechanism) -> CellNoise:
    return CellNoise(float(mechanism.scale), gaussian=isinstance(mechanism, DiscreteGaussian))
