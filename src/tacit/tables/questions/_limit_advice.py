"""Advice on a table's limits: questions about how much units have and what limits cut, and their captions.

Each is a plan like any other: its cost is stated first, then it is charged and released with noise. The
sentences are written from released numbers and public facts alone. A release that estimated what limits and
bounds cut is noted on later captions (`CutNote`).

The share of a table's rows beyond a limit is an aggregate of its own. Let n be the number of a unit's rows, L
the limit and C a public cap above it. The unit adds the two integers (min(n, L), min(n, C) - min(n, L)): the
rows that the limit keeps, and those that it cuts. They are non-negative with a sum of at most C, so one row
of the relation, which is one unit, weighs C. The share of the second in the sum of both is tested like a mean
of zeros and ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from tacit.algebra import Column, CutSums, Scope, ValueGrid, choose_name, resolve, scans_of
from tacit.core import HIDDEN, Fact, Release
from tacit.errors import TacitError
from tacit.exact import count
from tacit.fixes import Code, Declare, Do, Set
from tacit.mechanisms import mean_sets
from tacit.parameters import Instance, Integer
from tacit.strategies import round_numbers
from tacit.tables.planning._bounds_search import common_range
from tacit.tables.planning._steps import AddNoise, MeasuredStep
from tacit.tables.questions import _aggregate_functions as ask
from tacit.tables.questions._aggregates import Aggregate, LoweringContext
from tacit.tables.questions._python_expressions import Expr, as_node, col, when
from tacit.tables.reading._readings import Cell, Reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tacit.algebra import Node, TableQuestion
    from tacit.core import AnswerTable, Cells
    from tacit.tables._dataset import TableDataset
    from tacit.tables.questions._aggregates import Range
    from tacit.tables.reading._readings import StepNoise


#: The released columns: the share of rows beyond a limit, and of values outside bounds.
BEYOND, OUTSIDE = "rows_beyond_limit", "values_outside_bounds"
_MAX_CAP = 10**6
_RELEASE = Instance(Release, "data.declaring(release)", "a release of a plan")
_LEVELS = (0.5, 0.9, 0.95, 0.99)
_SUGGESTED = "0.95"
_UNSURE = 3  # ends of an interval that differ by more than this factor


@dataclass(frozen=True, slots=True)
class CutNote:
    """What one limit, or the bounds of one column, cut; the text is what a release estimated.

    ``rows`` is the limit; or ``column`` has these ``bounds``.
    """

    table: str
    rows: int | None = None
    column: str = ""
    bounds: tuple[Fraction, Fraction] | None = None
    text: str = ""

    @property
    def meaning(self) -> str:
        """What the share is a share of, in words; a function of public facts."""
        if self.bounds is None:
            few = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
            return f"of the rows of {self.table} are beyond the limit of {few}"
        low, high = (f"{float(bound):g}" for bound in self.bounds)
        return f"of the values of {self.column} in {self.table} are outside the bounds {low} to {high}"

    def concerns(self, question: TableQuestion) -> bool:
        """Return whether a question reads the table under this limit, or the column with these bounds."""
        scans = [scan for scan in scans_of(question.input) if scan.table.name == self.table]
        if self.bounds is None:
            return any(scan.rows == self.rows for scan in scans)
        clipped = [(a.argument, getattr(a, "bounds", None)) for _, a in question.aggregates]
        names_column = any(
            isinstance(e, Column) and e.name == self.column and b == self.bounds for e, b in clipped
        )
        return bool(scans) and names_column


def percent(cells: Cells) -> str:
    """Write a released share as a percentage, its interval rounded outwards, with decimals if it is small.

    Examples
    --------
    >>> from tacit.core import Cells
    >>> percent(Cells((0.1934,), (0.1851,), (0.1963,))), percent(Cells((0.0041,), (0.0,), (0.0084,)))
    ('19 % [18, 20]', '0.4 % [0, 0.9]')
    """
    value, low, high = (100 * float(end[0] or 0) for end in (cells.value, cells.low, cells.high))
    if cells.value[0] is None:
        return f"{HIDDEN} [{math.floor(low)}, {math.ceil(high)}] %"
    tenths = 10 if value < 10 else 1
    rounded = (round(value * tenths), math.floor(low * tenths), math.ceil(high * tenths))
    texts = [f"{number / tenths:g}" for number in rounded]
    return f"{texts[0]} % [{texts[1]}, {texts[2]}]"


def cut_lines(question: TableQuestion, dataset: TableDataset) -> list[str]:
    """Return what the dataset's notes say about a question."""
    return [note.text for note in dataset.noted if note.concerns(question)]


def refuse_automatic(limits: Mapping[str, object]) -> None:
    """Refuse a limit that the plan should find: the noise of everything else follows from the limit."""
    of_tables = [one for one in limits.values() if isinstance(one, Mapping)]
    for name, value in [pair for one in (limits, *of_tables) for pair in one.items()]:
        if isinstance(value, str) and value == "auto":
            raise TacitError(
                "not-allowed",
                f"a plan cannot find the limit {name!r} by itself",
                why="the noise of every column follows from the limit, so it must be known before the plan; "
                "a separate question can suggest it, and counts each unit once",
                fix=Do("suggest-limits"),
            )


def cut_note(dataset: TableDataset, release: Release[AnswerTable]) -> CutNote:
    """Turn a release of `TableDataset.measure_cut` into a note; refuse one of other data or limits.

    The release itself says which limit or bounds it measured; only those that still hold are noted.
    """
    fields = _RELEASE.read("release", release).certificate.fields
    columns, notes = getattr(release.content, "columns", {}), getattr(release.content, "notes", {})
    name = next((c for c in (BEYOND, OUTSIDE) if c in columns), None)
    is_own = fields.get("dataset") == dataset.identity.document()
    notes_known = [note for note in _possible(dataset) if name and notes.get(name, "").endswith(note.meaning)]
    if name is None or not is_own or not notes_known:
        raise TacitError(
            "bad-parameter",
            "this release does not measure what the limits and bounds of this dataset cut",
            why="a caption must describe the data, limits and bounds of its own dataset",
            fix=Code("visits.noting(visits.measure_cut(epsilon=0.05).release())"),
        )
    cells, charge = columns[name], fields.get("ledger")
    entry = f" (entry {charge['entry']})" if isinstance(charge, dict) else ""
    noted = notes_known[0]
    text = f"{percent(cells)} {noted.meaning}{entry}"
    return CutNote(noted.table, noted.rows, noted.column, noted.bounds, text)


def with_found_bounds(dataset: TableDataset, release: Release[AnswerTable]) -> TableDataset:
    """Declare the bounds that a release found; refuse a release that found none of this dataset's columns.

    Bounds that the curator declared as numbers are never widened: what is found narrows them at most.
    """
    release = _RELEASE.read("release", release)
    ranges: dict[tuple[str, str], list[tuple[float, float]]] = {}
    if release.certificate.fields.get("dataset") == dataset.identity.document():
        for one in getattr(release.content, "found", ()):
            pairs = [
                (a, b) for a, b in zip(one.low, one.high, strict=True) if a is not None and b is not None
            ]
            if one.source is not None and pairs and one.source[0] in dataset.tables:
                ranges.setdefault(one.source, []).extend(pairs)
    if not ranges:
        raise TacitError(
            "bad-parameter",
            "this release found no bounds of a column of this dataset",
            why="bounds belong to the column of their own dataset, not to what a question computed from it",
            fix=Do("find-bounds-first", expression="COLUMN"),
        )
    tables = dict(dataset.tables)
    for (name, column), pairs in ranges.items():
        bounds: Range = (Fraction(min(low for low, _ in pairs)), Fraction(max(high for _, high in pairs)))
        fact = tables[name].facts.get(column, Fact())
        if fact.bounds is not None and not (fact.auto or fact.default):
            bounds = common_range(bounds, fact.bounds) or fact.bounds
            if bounds == fact.bounds:
                continue
        declared = replace(fact, kind="number", bounds=bounds, auto=True)
        tables[name] = replace(tables[name], facts={**tables[name].facts, column: declared})
    return replace(dataset, tables=tables)


def _possible(dataset: TableDataset) -> Iterator[CutNote]:
    """Return the limits and bounds that a release can have measured, as they are declared now."""
    for name, table in dataset.tables.items():
        if table.key is not None:
            continue
        rows = dataset.limits.rows_of(name)
        if rows is not None:
            yield CutNote(name, rows)
        for column, fact in table.facts.items():
            if fact.bounds is not None:
                yield CutNote(name, None, column, fact.bounds)


@dataclass(frozen=True, slots=True)
class PartsShare(Reading):
    """The part of the total that is cut."""

    divided: ClassVar[bool] = True
    unknown: ClassVar[str] = "depends on the number of rows: give a size to estimate it"

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the shares: r is tested with cut - r (kept + cut), which is linear in the noisy integers."""
        parts = np.array(lines, dtype=np.float64).reshape(-1, 2)
        sets = mean_sets(parts, noise.linear, float(1 - confidence))
        return [Cell(*ends) for ends in np.stack(sets, axis=-1).tolist()]

    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return the half-width to expect at most with about ``size`` rows: with a share of 0 or 1."""
        if size is None:
            return None
        return min(float(noise.linear.half_width(float(1 - confidence), [0.0, 1.0])) / size, 1.0)


@dataclass(frozen=True, slots=True)
class ShareBeyond(Aggregate):
    """The share of a total that lies beyond a limit for each row, with rows clipped at a public cap."""

    argument: Node
    limit: int
    cap: int
    word: ClassVar[str] = "share_beyond"

    def resolved(self, facts: Scope) -> Self:
        """Read the argument as a number."""
        return replace(self, argument=resolve(self.argument, facts, "number"))

    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Sum what is kept and what is cut."""
        del context
        grid = ValueGrid(Fraction(0), Fraction(self.cap), Fraction(1), 0, self.cap)
        return [(name, MeasuredStep(CutSums(self.argument, self.limit, grid), AddNoise()), PartsShare())]


def share_beyond(column: str | Expr, limit: int, cap: int) -> Aggregate:
    """Estimate which share of the sum of a column lies beyond ``limit`` in each row, up to a public ``cap``.

    Values are rounded to whole numbers in [0, cap].

    Examples
    --------
    >>> share_beyond("rows", 5, 50).word
    'share_beyond'
    """
    low = count("limit", limit, zero=False, fix=Set(limit=5))
    high = Integer(low + 1, _MAX_CAP, "the cap must be above the limit", instead=10 * low).read("cap", cap)
    return ShareBeyond(as_node(column), low, high)


@dataclass(frozen=True, slots=True)
class LimitCaption:
    """Writes what was found about the rows and groups of units, and which limits follow from it.

    Parameters
    ----------
    units
        What the units are called, in the plural.
    rows_of
        The table whose rows were counted.
    by
        The column whose values were counted, or empty.
    most
        The largest number that can be found.
    """

    units: str
    rows_of: str
    by: str
    most: int

    def check_columns(self, known: Iterable[str]) -> None:
        """Accept every release: columns that it lacks are not spoken of."""

    def apply(self, release: Release[AnswerTable]) -> Release[AnswerTable]:
        """Return the release with the advice in its caption."""
        answer = release.content
        counted_words = {"rows": f"rows in {self.rows_of}", "groups": f"values of {self.by}"}
        sentences = [
            self._sentence(name, answer.columns[f"{name}_{_SUGGESTED}"], what)
            for name, what in counted_words.items()
            if f"{name}_{_SUGGESTED}" in answer.columns
        ]
        sentences.append(
            "a smaller limit means less noise and more dropped rows; measure_cut estimates how many"
        )
        return replace(release, content=replace(answer, left_out=(*sentences, *answer.left_out)))

    def _sentence(self, name: str, cells: Cells, counted_words: str) -> str:
        if cells.value[0] is None:
            return f"the {counted_words} are {HIDDEN}: use a larger epsilon"
        value = max(1, math.ceil(float(cells.value[0])))
        low = max(1, math.ceil(float(cells.low[0] or 1)))  # numbers of rows are whole
        high = max(1, math.floor(float(cells.high[0] or 1)))
        text = (
            f"95 % of {self.units} have at most about {value:,} [{low:,}, {high:,}] {counted_words}: "
            f'limits={{"{name}": {value}}} would keep all {name} of about 95 % of {self.units}'
        )
        if value >= self.most:
            return f"{text}; no larger number was looked for"
        return (
            f"{text}; the interval is wide, but a larger epsilon would narrow it"
            if high > _UNSURE * low
            else text
        )


@dataclass(frozen=True, slots=True)
class CutCaption:
    """Writes which share of the rows a limit cuts, or of the values bounds clip.

    Parameters
    ----------
    meaning
        What the share is a share of.
    cap
        How many rows of one unit were looked at; 0 if all that count.
    unit
        What the unit is called.
    """

    meaning: str
    cap: int
    unit: str

    def check_columns(self, known: Iterable[str]) -> None:
        """Accept every release: columns that it lacks are not spoken of."""

    def apply(self, release: Release[AnswerTable]) -> Release[AnswerTable]:
        """Return the release with the share in words."""
        answer = release.content
        notes, sentences = dict(answer.notes), []
        for name in (BEYOND, OUTSIDE):
            if name in answer.columns:
                notes[name] = f"{percent(answer.columns[name])} {self.meaning}"
                if self.cap:
                    sentences.append(
                        f"more than {self.cap:,} rows of one {self.unit} count as {self.cap:,} here, so the "
                        "share may be larger"
                    )
        return replace(release, content=replace(answer, notes=notes, left_out=(*sentences, *answer.left_out)))


def limit_query(
    dataset: TableDataset, *, by: str | None, table: str | None, most: int
) -> tuple[TableQuestion, LimitCaption]:
    """Return the question for private quantiles of the rows, and of the groups, that units have."""
    _check_unit(dataset)
    numbers, name = list(map(float, round_numbers(most))), table or dataset.main
    measures = {"rows": ask.count(), **({} if by is None else {"groups": ask.count_distinct(by)})}
    aggregates = {n: ask.quantiles(n, _LEVELS, bounds=(0, most), candidates=numbers) for n in measures}
    query = dataset[name].per_unit((), **measures).agg(**aggregates)
    return query.question, LimitCaption(f"{dataset.unit.noun}s", name, by or "", most)


def cut_query(
    dataset: TableDataset, *, column: str | None, table: str | None, cap: int | None
) -> tuple[TableQuestion, CutCaption]:
    """Return the question for the share of rows beyond the limit, or of values outside a column's bounds."""
    name, noun = table or dataset.main, dataset.unit.noun
    rows = dataset[name]
    if column is not None:
        bounds = _declared_bounds(dataset, name, column)
        value, low, high = col(column), *map(float, bounds)
        inside = when((value >= low) & (value <= high), 0)
        outside = ask.mean(when((value < low) | (value > high), 1, inside), bounds=(0, 1))
        caption = CutCaption(CutNote(name, None, column, bounds).meaning, 0, noun)
        return rows.agg(**{OUTSIDE: outside}).question, caption
    _check_unit(dataset)
    limit = dataset.limits.rows_of(name)
    if limit is None:
        raise TacitError(
            "missing-limit",
            f"no limit cuts the rows of {name!r}",
            fix=Declare("limits", 10, column="rows"),
        )
    public_cap = 10 * limit if cap is None else cap
    query = rows.per_unit(rows=ask.count()).agg(**{BEYOND: share_beyond("rows", limit, public_cap)})
    return query.question, CutCaption(CutNote(name, limit).meaning, public_cap, noun)


def _check_unit(dataset: TableDataset) -> None:
    if dataset.unit.is_row:
        raise TacitError(
            "not-allowed",
            "there are no limits to choose",
            why="each unit is a single row, so nothing is cut",
            fix=Declare("unit", "patient_id"),
        )


def _declared_bounds(dataset: TableDataset, table: str, column: str) -> tuple[Fraction, Fraction]:
    """Return the declared bounds of a column, or refuse."""
    facts = dataset.tables[table].facts
    columns = tuple(dataset[table].columns) or tuple(facts)
    if column not in columns:
        raise TacitError(
            "unknown-column",
            f"the table {table!r} has no column {column!r}",
            fix=choose_name(column, columns),
        )
    fact = facts.get(column)
    if fact is None or fact.bounds is None:
        raise TacitError(
            "missing-bounds",
            f"no bounds of {column!r} are declared, so nothing is clipped",
            fix=Declare("bounds", (0, 30), column=column),
        )
    return fact.bounds
