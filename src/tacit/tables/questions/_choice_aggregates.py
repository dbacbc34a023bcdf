"""The aggregates of candidates: quantiles, extremes, histograms, most common values, best by a score.

Most are read off counts of cells. The cells are public candidates or edges; a choice or noise on their counts
answers. ``best`` picks a candidate by the sum of a user's own score of the rows.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

from tacit.algebra import (
    SCORE_BITS,
    BinCounts,
    Bins,
    Column,
    EdgeBins,
    EvenBins,
    FoundCandidates,
    ListedBins,
    Node,
    Scope,
    ScoreSums,
    ValueBins,
    bounds_of,
    grid_for,
    nice_step,
    resolve,
    words_of,
)
from tacit.core import KEY_KINDS
from tacit.errors import TacitError
from tacit.fixes import Declare, Set
from tacit.parameters import Integer, Listed
from tacit.tables.planning._steps import AddNoise, ChooseQuantile, ChooseQuantileEnds, ChooseTop, MeasuredStep
from tacit.tables.questions._aggregates import (
    AUTO,
    Aggregate,
    LoweringContext,
    OnBounds,
    bounds_missing,
)
from tacit.tables.questions._python_expressions import MAX_CANDIDATES, candidate_values
from tacit.tables.reading._quantile_readings import BracketedQuantile, ChosenQuantile, QuantileFromCounts
from tacit.tables.reading._readings import CellReading, ChosenValue, Reading

if TYPE_CHECKING:
    from tacit.tables.questions._aggregates import Range


MAX_SCORED = 200


@dataclass(frozen=True, slots=True)
class QuantilesOf(OnBounds):
    """Several quantiles at once, from one noisy histogram over public candidates."""

    candidates: tuple[float, ...] = ()
    levels: tuple[Fraction, ...] = ()
    word: ClassVar[str] = "quantiles"

    def bins(self, max_cells: int) -> Bins:
        """Return the user's candidates, or evenly spaced ones between the bounds."""
        if self.candidates:
            middles = tuple((a + b) / 2 for a, b in itertools.pairwise(self.candidates))
            return ListedBins(self.candidates, middles)
        if self.bounds == AUTO:
            return FoundCandidates(max_cells, cut=self.cut)
        low, high = self.needed_bounds
        step = nice_step((low, high), max_cells)
        return EvenBins(float(low), float(step), int((high - low) / step) + 1)

    def column_names(self, name: str) -> list[str]:
        """Name one column for each level."""
        return [f"{name}_{float(q):.15g}" for q in self.levels]

    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Count rows at fewer candidates; one noisy histogram gives all levels."""
        del context
        step = MeasuredStep(BinCounts(self.argument, self.bins(200)), AddNoise())
        names = zip(self.column_names(name), self.levels, strict=True)
        return [(each, step, QuantileFromCounts(q, self.given_bounds)) for each, q in names]

    def stands_for(self, reading: Reading) -> str:
        """Name the level."""
        level = getattr(reading, "level", Fraction(0))
        return f"the {float(level):g} quantile of {words_of(self.argument)}"


@dataclass(frozen=True, slots=True)
class QuantileOf(QuantilesOf):
    """One quantile, chosen among public candidates by the exponential mechanism."""

    word: ClassVar[str] = "quantile"

    def column_names(self, name: str) -> list[str]:
        """Name the one column."""
        return [name]

    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Choose a candidate; where noisy integers are added, read it off a histogram."""
        (level,) = self.levels
        if context.added:
            step = MeasuredStep(BinCounts(self.argument, self.bins(200)), AddNoise())
            return [(name, step, QuantileFromCounts(level, self.given_bounds))]
        step = MeasuredStep(BinCounts(self.argument, self.bins(1000)), ChooseQuantile(level))
        return [(name, step, ChosenQuantile(level))]


@dataclass(frozen=True, slots=True)
class QuantileIntervalOf(QuantileOf):
    """One quantile with an interval for its value, from two choices that enclose it."""

    @property
    def word(self) -> str:  # type: ignore[override]
        """How it is called."""
        return "median" if self.levels == (Fraction(1, 2),) else "quantile"

    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Choose two candidates; what is read off a histogram has an interval anyway."""
        if context.added:
            return QuantileOf.lowered(self, name, context)
        (level,) = self.levels
        step = MeasuredStep(BinCounts(self.argument, self.bins(1000)), ChooseQuantileEnds(level))
        return [(name, step, BracketedQuantile(level, self.given_bounds))]


@dataclass(frozen=True, slots=True)
class MedianOf(QuantileOf):
    """The quantile of level one half."""

    word: ClassVar[str] = "median"


@dataclass(frozen=True, slots=True)
class ExtremeOf(QuantileOf):
    """The quantile that stands for the smallest or the largest value, which itself would reveal one person.

    Within a unit, where nothing is released, it is the true minimum or maximum.
    """

    largest: bool = False

    @property
    def word(self) -> str:  # type: ignore[override]
        """How it is called."""
        return "max" if self.largest else "min"

    @property
    def within_unit(self) -> str:  # type: ignore[override]
        """What it is called within a unit."""
        return self.word

    def stands_for(self, reading: Reading) -> str:
        """Say that an extreme is a quantile."""
        return f"{super(ExtremeOf, self).stands_for(reading)}, {self.caution}"

    @property
    def caution(self) -> str:  # type: ignore[override]
        """Say that an extreme is never released."""
        extreme = "largest" if self.largest else "smallest"
        return f"not the {extreme} value, because that would reveal one person"


@dataclass(frozen=True, slots=True)
class HistogramOf(Aggregate):
    """Rows between public edges."""

    argument: Node
    edges: tuple[float, ...]
    word: ClassVar[str] = "histogram"
    counts: ClassVar[bool] = True

    def resolved(self, facts: Scope) -> Self:
        """Read the argument as a number."""
        return replace(self, argument=resolve(self.argument, facts, "number"))

    def column_names(self, name: str) -> list[str]:
        """Name one column for each cell."""
        names = [f"{name}[{a:g}, {b:g})" for a, b in itertools.pairwise(self.edges)]
        names[-1] = names[-1][:-1] + "]"
        return names

    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Count the rows of each cell."""
        del context
        step = MeasuredStep(BinCounts(self.argument, EdgeBins(self.edges)), AddNoise())
        return [(cell, step, CellReading(i)) for i, cell in enumerate(self.column_names(name))]


def read_picks(k: object, candidates: int) -> int:
    """Read how many of the candidates are picked."""
    why = f"the number of candidates is at most {candidates:,}"
    return Integer(1, candidates, why, instead=1).read("k", k)


@dataclass(frozen=True, slots=True)
class MostCommonOf(Aggregate):
    """The k most frequent of public candidate values."""

    argument: Node
    candidates: tuple[float | str | bool, ...]
    k: int
    word: ClassVar[str] = "most_common"

    def resolved(self, facts: Scope) -> Self:
        """Read the argument as the kind of the candidates, which are those that the facts show by default."""
        candidates = self.candidates or candidate_values(self.argument, facts)
        if not candidates:
            raise self._no_candidates()
        Listed("values", '["A", "B"]', most=MAX_CANDIDATES).read("candidates", candidates)
        read_picks(self.k, len(candidates))
        want = KEY_KINDS[type(candidates[0])]
        return replace(self, argument=resolve(self.argument, facts, want), candidates=candidates)

    def _no_candidates(self) -> TacitError:
        """Refuse where there are no public values to choose among."""
        words = words_of(self.argument)
        return TacitError(
            "keys-missing",
            f"the most common value of {words} is chosen from public values, but none are declared",
            why="which values exist is private",
            fix=Declare("keys", ["A", "B"], column=words)
            if isinstance(self.argument, Column)
            else Set(candidates=["A", "B"]),
        )

    def column_names(self, name: str) -> list[str]:
        """Name one column for each pick."""
        return [name] if self.k == 1 else [f"{name}_{i + 1}" for i in range(self.k)]

    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Choose the fullest cells."""
        del context
        step = MeasuredStep(BinCounts(self.argument, ValueBins(self.candidates)), ChooseTop(self.k))
        return [(each, step, ChosenValue(i)) for i, each in enumerate(self.column_names(name))]

    def stands_for(self, reading: Reading) -> str:
        """Say that the value was picked, and as which."""
        at = getattr(reading, "at", 0)
        return f"the {_place(at)}most common value of {words_of(self.argument)}, picked from the candidates"


def _place(at: int) -> str:
    """Write a place from 0 on before a superlative: nothing, then 2nd, 3rd, 4th."""
    number = at + 1
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return "" if at == 0 else f"{number}{ending} "


@dataclass(frozen=True, slots=True)
class BestOf(Aggregate):
    """One of public candidates, picked by the sum of its score over the rows."""

    candidates: tuple[float | str | bool, ...]
    scores: tuple[Node, ...]
    bounds: Range | None = None
    argument: ClassVar[Node | None] = None  # type: ignore[misc]
    word: ClassVar[str] = "best"

    @property
    def arguments(self) -> tuple[Node, ...]:
        """The scores."""
        return self.scores

    @property
    def words(self) -> str:
        """The aggregate in words, with its first scores."""
        score_words = [words_of(score) for score in self.scores[:2]]
        return f"best({', '.join(score_words)}{', ...' if len(self.scores) > 2 else ''})"

    def resolved(self, facts: Scope) -> Self:
        """Read the scores as numbers, with bounds that hold all of theirs."""
        scores = tuple(resolve(score, facts, "number") for score in self.scores)
        ranges = [bounds_of(score, facts) for score in scores]
        known_ranges = [one for one in ranges if one is not None]
        bounds = self.bounds
        if bounds is None and len(known_ranges) == len(ranges):
            bounds = min(low for low, _ in known_ranges), max(high for _, high in known_ranges)
        if bounds is not None and not bounds[0] < bounds[1]:
            bounds = None
        return replace(self, scores=scores, bounds=bounds)

    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Choose the candidate with the largest sum."""
        del context
        if self.bounds is None:
            raise bounds_missing("the score", self.scores[0])
        statistic = ScoreSums(self.scores, ValueBins(self.candidates), grid_for(self.bounds, SCORE_BITS))
        return [(name, MeasuredStep(statistic, ChooseTop(1)), ChosenValue())]

    def stands_for(self, reading: Reading) -> str:
        """Say how the value was picked."""
        del reading
        return f"picked from {len(self.candidates)} candidates; a larger sum of the score is more likely"
