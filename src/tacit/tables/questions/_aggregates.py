"""The aggregates that an analyst may ask of a table, as classes.

Counts, sums, means and spreads are here; choices and pairs of columns have modules of their own.
A new aggregate is a class with the statistic and the method that answer it (`lowered`), a function in
``_aggregate_functions`` that makes it and, for SQL, a line in ``tables/sql``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, Final, Self, TypeAlias
from typing import Literal as OneOf

from tacit.algebra import (
    Call,
    Column,
    DistinctCounts,
    Literal,
    MomentSums,
    Node,
    RowCounts,
    Scope,
    SquareSums,
    Sums,
    UnitCounts,
    UnitsWith,
    as_number,
    bounds_of,
    found_grid,
    grid_for,
    kind_of,
    names,
    resolve,
    words_of,
)
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Declare, Do, Either, Fix, Say, Set
from tacit.tables.planning._steps import AddNoise, MeasuredStep
from tacit.tables.reading._readings import (
    NumberReading,
    PartsCount,
    PartsMean,
    PartsSpread,
    PartsSum,
    Reading,
)

Range: TypeAlias = tuple[Fraction, Fraction]
#: In place of bounds: the plan finds them privately, within its cost.
AUTO: Final = "auto"
#: In place of a cut: few values shall lie beyond bounds that the plan finds.
RARE: Final = "rare"
#: RangeOrAuto that are given, or that the plan finds.
RangeOrAuto: TypeAlias = Range | OneOf["auto"]
#: How far bounds reach that the plan finds, where this is not as usual.
Cut: TypeAlias = OneOf["rare"]
#: What the statistics of values share: the expression, its bounds, and how far those that are found reach.
HostKey: TypeAlias = tuple[Node, RangeOrAuto, Cut | None]


@dataclass(frozen=True, slots=True)
class LoweringContext:
    """What an aggregate must know of its question to choose a statistic.

    Parameters
    ----------
    hosts
        The statistic that holds the sums of an expression with its bounds, for all aggregates of it.
    never_null
        The arguments that are declared to have a value in every row.
    own
        The arguments that name the unit itself.
    by_row
        Whether each row is a unit.
    added
        Whether noisy integers of several datasets are added, so that nothing can be chosen.
    """

    hosts: dict[HostKey, MomentSums | Sums]
    never_null: frozenset[Node]
    own: frozenset[Node]
    by_row: bool
    added: bool


class Aggregate(ABC):
    """An aggregate as asked for; it gets its name, and its facts, from the question that it is used in."""

    __slots__ = ()
    #: How it is called: in default names of columns, and in the words of a plan.
    word: ClassVar[str]
    #: What it is called within a unit, where numbers are exact; empty where it is not available there.
    within_unit: ClassVar[str] = ""
    #: Whether its exact value is never below zero.
    counts: ClassVar[bool] = False
    #: What the released column is not, where its name may promise more.
    caution: ClassVar[str] = ""
    argument: Node | None

    def resolved(self, facts: Scope) -> Self:
        """Return the aggregate with the kinds and bounds that the facts give its argument."""
        if self.argument is None:
            return self
        return replace(self, argument=as_value_of_any_kind(self.argument, facts))  # type: ignore[type-var]

    def column_names(self, name: str) -> list[str]:
        """Return the names of the released columns, where the aggregate is called ``name``."""
        return [name]

    @abstractmethod
    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Return the released columns: name, the step that answers, and how to read it."""

    def stands_for(self, reading: Reading) -> str:
        """Say what a released column is, where its name may promise more."""
        del reading
        return ""

    @property
    def arguments(self) -> tuple[Node, ...]:
        """All expressions that it reads."""
        return () if self.argument is None else (self.argument,)

    @property
    def words(self) -> str:
        """The aggregate in words: ``mean(length_of_stay)``."""
        return f"{self.word}({', '.join(words_of(one) for one in self.arguments)})"


@dataclass(frozen=True, slots=True)
class CountRows(Aggregate):
    """The number of rows, or of the values that a column has."""

    argument: Node | None = None
    word: ClassVar[str] = "count"
    within_unit: ClassVar[str] = "count"
    counts: ClassVar[bool] = True

    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Read the count off a mean or variance of the same values where there is one, else count rows."""
        for (argument, *_), host in context.hosts.items():
            same = argument == self.argument or (self.argument is None and argument in context.never_null)
            if same and isinstance(host, MomentSums):
                return [(name, MeasuredStep(host, AddNoise()), PartsCount())]
        return [(name, MeasuredStep(RowCounts(self.argument), AddNoise()), NumberReading())]


@dataclass(frozen=True, slots=True)
class CountUnits(Aggregate):
    """The number of units that have at least one row."""

    argument: ClassVar[Node | None] = None  # type: ignore[misc]
    word: ClassVar[str] = "count_units"
    counts: ClassVar[bool] = True

    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Count units; where each row is one, count rows."""
        statistic = RowCounts() if context.by_row else UnitCounts()
        return [(name, MeasuredStep(statistic, AddNoise()), NumberReading())]


@dataclass(frozen=True, slots=True)
class CountDistinct(Aggregate):
    """The number of different values."""

    argument: Node
    word: ClassVar[str] = "count_distinct"
    within_unit: ClassVar[str] = "count_distinct"
    counts: ClassVar[bool] = True

    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Count values; different names of units are units, also where a condition keeps some of them."""
        if self.argument in context.own:
            return CountUnits().lowered(name, context)
        if kept_column(self.argument) in context.own:
            return [(name, MeasuredStep(UnitsWith(self.argument), AddNoise()), NumberReading())]
        return [(name, MeasuredStep(DistinctCounts(self.argument), AddNoise()), NumberReading())]


def as_value_of_any_kind(node: Node, facts: Scope) -> Node:
    """Resolve what is only counted: a column whose kind nobody declared is read as text."""
    want = kind_of(resolve(kept_column(node) or node, facts)) or "text"
    return resolve(node, facts, want)


def kept_column(node: Node | None) -> Column | None:
    """Return the column of ``CASE WHEN condition THEN column END``; None for anything else."""
    match node:
        case Call("case", (_, Column() as column, Literal(None))):
            return column
        case _:
            return None


@dataclass(frozen=True, slots=True)
class OnBounds(Aggregate):
    """An aggregate of numbers that are clipped to public bounds."""

    argument: Node
    bounds: RangeOrAuto | None = None
    cut: Cut | None = field(default=None, kw_only=True, metadata={"optional": True})
    word: ClassVar[str] = ""

    def resolved(self, facts: Scope) -> Self:
        """Read the argument as a number, with the bounds that its form and the facts show."""
        node = resolve(as_number(self.argument, facts), facts, "number")
        bounds = self.bounds or bounds_of(node, facts)
        if bounds == AUTO or (bounds is None and any(facts[name].auto for name in names(node))):
            _check_stored(self.word, node, facts)
            return replace(self, argument=node, bounds=AUTO)
        if self.cut is not None:
            raise cut_without_search(Set(bounds=AUTO, cut=RARE))
        if (
            bounds is not None and bounds[0] == bounds[1] != 0
        ):  # a constant, as in SUM(1): a range has two ends
            bounds = min(bounds[0], Fraction(0)), max(bounds[1], Fraction(0))
        usable_bounds = bounds if bounds is not None and bounds[0] < bounds[1] else None
        return replace(self, argument=node, bounds=usable_bounds)

    @property
    def needed_bounds(self) -> Range:
        """The bounds, or a refusal where there are none."""
        if self.bounds is None or self.bounds == AUTO:
            raise bounds_missing(self.word, self.argument)
        return self.bounds

    @property
    def given_bounds(self) -> Range | None:
        """The bounds that are known before anything is read, if there are any."""
        return None if self.bounds is None or self.bounds == AUTO else self.bounds

    @property
    def asked_bounds(self) -> RangeOrAuto:
        """The bounds, or that the plan finds them; a refusal where there are none."""
        return AUTO if self.bounds == AUTO else self.needed_bounds


def is_auto(bounds: object) -> bool:
    """Return whether the plan is asked to find bounds; an array is never compared with a word."""
    return isinstance(bounds, str) and bounds == AUTO


def read_cut(cut: object) -> Cut | None:
    """Read how far bounds reach that the plan finds."""
    if cut is None or (isinstance(cut, str) and cut == RARE):
        return None if cut is None else RARE
    raise bad_parameter("cut", f'"{RARE}" or left out', cut, fix=Set(cut=RARE))


def cut_without_search(fix: Fix) -> TacitError:
    """Refuse to make a cut rare where the plan finds no bounds."""
    return TacitError(
        "not-allowed",
        f'cut="{RARE}" is only for bounds that the plan finds',
        why="it moves the ends of a range that is found; a range that is declared stays as it is",
        fix=fix,
    )


def _check_stored(word: str, node: Node, facts: Scope) -> None:
    """Refuse to search for the bounds of a column that its source declares to be text or moments.

    The schema of a source is public. A column whose type was declared, or that is converted, is read as it is
    declared. Booleans count as 0 and 1.
    """
    if not isinstance(node, Column):
        return
    fact = facts[node.name]
    stored = {"text": "text", "moment": "dates or times"}.get(fact.stored)
    if stored is None or fact.kind is not None:
        return
    declared = Declare("types", "number", column=node.name, example=False)
    raise TacitError(
        "bad-expression",
        f"{node.name} is stored as {stored}, so it has no {word}",
        why="the schema says so; a value that is not a number counts as missing, and the cost would stay",
        fix=Either(Say("ask for a column of numbers"), declared)
        if fact.stored == "text"
        else Say("ask for a column of numbers"),
    )


def is_yes_no(node: Node | None) -> bool:
    """Return whether an expression is a condition as the number 1 or 0."""
    match node:
        case Call("to_number", (inner,)):
            return kind_of(inner) == "boolean"
        case _:
            return False


def bounds_missing(word: str, argument: Node, *, search: bool = False) -> TacitError:
    """Refuse an aggregate of an expression that has no bounds; ``search``: another question can find them."""
    words = words_of(argument)
    first = (Do("find-bounds-first", expression=words),) if search else ()
    return TacitError(
        "missing-bounds",
        f"{word} of {words} needs bounds",
        why="without a public range, one person could change the answer without limit",
        fix=(
            Either(Declare("bounds", (0, 30), column=words), *first)
            if first
            else Declare("bounds", (0, 30), column=words)
        )
        if isinstance(argument, Column)
        else Do("bound-aggregate", expression=words, low="LOW", high="HIGH"),
    )


@dataclass(frozen=True, slots=True)
class SumOf(OnBounds):
    """The sum of clipped values."""

    word: ClassVar[str] = "sum"
    within_unit: ClassVar[str] = "sum"
    #: The smallest statistic that holds the answer, the bits of its grid, and how the answer is read off
    #: `MomentSums` or `SquareSums`.
    host: ClassVar[type[Sums | MomentSums]] = Sums
    bits: ClassVar[int] = 30
    from_parts: ClassVar[Reading] = PartsSum()

    @property
    def host_key(self) -> HostKey:
        """What it has in common with the aggregates that share a statistic with it."""
        return self.argument, self.asked_bounds, self.cut

    def smallest_host(self, *, single: bool) -> Sums | MomentSums:
        """Return the smallest statistic that holds the answer; ``single``: each unit adds at most one row."""
        del single
        return self._on_grid(self.host)

    def _on_grid(self, host: type[Sums | MomentSums]) -> Sums | MomentSums:
        """Return a statistic on the grid of its bounds, or on one whose bounds are found later."""
        bits = VarianceOf.bits if host is SquareSums else self.bits
        if self.asked_bounds == AUTO:
            if host is SquareSums:
                return host(self.argument, found_grid(bits, 20, cut=self.cut))
            return host(self.argument, found_grid(26, 36, signed=host is Sums, cut=self.cut))
        return host(self.argument, grid_for(self.needed_bounds, bits))

    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Read the answer off the statistic that all aggregates of the same values share."""
        host = context.hosts[self.host_key]
        reading = NumberReading() if isinstance(host, Sums) else self.from_parts
        return [(name, MeasuredStep(host, AddNoise()), reading)]


@dataclass(frozen=True, slots=True)
class MeanOf(SumOf):
    """The mean of clipped values.

    ``spread``: whether the sum of squares is measured too, for intervals and tests that cover sampling. By
    default it is where each unit adds at most one row, because only there the rows are a sample of units.
    """

    spread: bool | None = None
    word: ClassVar[str] = "mean"
    within_unit: ClassVar[str] = "mean"
    host: ClassVar[type[Sums | MomentSums]] = MomentSums
    from_parts: ClassVar[Reading] = PartsMean()

    def smallest_host(self, *, single: bool) -> Sums | MomentSums:
        """Measure three parts for the spread, else two; a value that is 0 or 1 shows its spread in two."""
        spread = single if self.spread is None else self.spread
        if not spread or is_yes_no(self.argument):
            return super(MeanOf, self).smallest_host(single=single)
        return self._on_grid(SquareSums)


@dataclass(frozen=True, slots=True)
class VarianceOf(SumOf):
    """The sample variance of clipped values; about 2^16 grid steps keep squares small."""

    word: ClassVar[str] = "variance"
    within_unit: ClassVar[str] = ""
    host: ClassVar[type[Sums | MomentSums]] = SquareSums
    bits: ClassVar[int] = 16
    from_parts: ClassVar[Reading] = PartsSpread()


@dataclass(frozen=True, slots=True)
class StdOf(VarianceOf):
    """The sample standard deviation of clipped values."""

    word: ClassVar[str] = "std"
    from_parts: ClassVar[Reading] = PartsSpread(root=True)


@dataclass(frozen=True, slots=True)
class PopulationVarianceOf(VarianceOf):
    """The mean squared distance of clipped values from their mean."""

    word: ClassVar[str] = "population_variance"
    from_parts: ClassVar[Reading] = PartsSpread(sample=False)


@dataclass(frozen=True, slots=True)
class PopulationStdOf(VarianceOf):
    """The root of the population variance."""

    word: ClassVar[str] = "population_std"
    from_parts: ClassVar[Reading] = PartsSpread(root=True, sample=False)
