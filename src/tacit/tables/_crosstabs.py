"""Many cross tables at once: the question, its plan, and the plan's document."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.algebra import can_be_missing, contribution, document, scope
from tacit.core import ANY_TOTAL, WITHIN, Draft, Forecast, Goal, Step, warn_of_delta
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational, read_fraction
from tacit.fixes import Choose, Either, Set
from tacit.parameters import Choice, Listed
from tacit.strategies import tables_up_to
from tacit.tables._axes import Axis, BinsGiven, read_axes
from tacit.tables._captions import facts_of_blocks, limits_of, rows_beyond, without_unit
from tacit.tables._coded_rows import coded_question
from tacit.tables._counted_subject import CountedSubject, axes_document
from tacit.tables._cross_display import how_many, table_words
from tacit.tables._cross_tables import CrossTables, PlacedAxis, TableName
from tacit.tables._cross_workload import Aim, CrossWorkload, PaidNoise
from tacit.tables._rows_questions import read_rows, rows_document
from tacit.tables._words import in_words, rows_in_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.algebra import TableQuestion
    from tacit.core import JSON, Measurement, Task
    from tacit.strategies import ColumnSet
    from tacit.tables._coded_rows import CodedRows
    from tacit.tables._dataset import TableDataset
    from tacit.tables._rows import Rows

MOST_CELLS = 4_000_000
_MOST_COLUMNS = 12  # with more than one place, in one table
_MOST_APART = 10**12  # weights
MOST_TABLES = 20_000
_FORECAST = 40  # tables that a plan lists one by one

#: One number for all tables, or one for each.
PerTable = Number | Mapping[TableName, Number] | None


def cross_design(
    rows: Rows,
    columns: Sequence[str],
    up_to: int = 2,
    *,
    tables: Sequence[TableName] | None = None,
    bins: BinsGiven = None,
    keys: Mapping[str, Sequence[object]] | None = None,
    other: Sequence[str] = (),
    missing: bool = True,
    weights: Mapping[TableName, Number] | None = None,
    aim: Aim = "largest",
) -> CrossDesign:
    """Read a question for many tables of these columns; see `Rows.crosstabs`."""
    axes = read_axes(rows, columns, bins=bins, keys=keys, other=other, missing=missing)
    if rows.share is not None:
        raise TacitError(
            "not-allowed",
            "cross tables cannot be asked of a sample",
            why="Tacit has no tight cost for Gaussian noise on a sample",
            fix="ask without the sample",
        )
    Choice(("largest", "sum")).read("aim", aim)
    names = [axis.name for axis in axes]
    if tables is None:
        most = min(count("up_to", up_to, zero=False), len(axes))
        _check_number(sum(math.comb(len(axes), k) for k in range(1, most + 1)))
        wanted = tuple(tables_up_to(len(axes), most))
    else:
        listed = Listed("tables, each a tuple of columns", str([(names[0],)])).read("tables", tables)
        wanted = tuple(dict.fromkeys(_columns(one, names) for one in listed))
    _check_number(len(wanted))
    _check_cells(axes, wanted)
    given = _per_table(weights, names, wanted, "weights")
    each = tuple(given.get(one, Fraction(1)) for one in wanted)
    _check_apart("weights", each, _MOST_APART)
    return CrossDesign(rows, axes, wanted, each, aim, missing)


def read_crosstabs(dataset: TableDataset, request: Any) -> tuple[CrossDesign, Goal]:
    """Read cross tables back from a request."""
    _check_number(len(request["tables"]))
    tables = [tuple(one) for one in request["tables"]]
    weights = [read_fraction(one) for one in request["weights"]]
    design = cross_design(
        read_rows(dataset, request["rows"]),
        request["columns"],
        tables=tables,
        bins=request["bins"],
        keys=request["keys"],
        other=request["other"],
        missing=request["missing"],
        weights=dict(zip(tables, weights, strict=True)),
        aim=request["aim"],
    )
    goal: dict[str, Any] = {
        name: None if one is None else read_fraction(one) for name, one in request["goal"].items()
    }
    given = request["within"]
    within = None if given is None else {tuple(one): read_fraction(number) for one, number in given}
    return design, Goal.read(**goal, within=within, takes=ANY_TOTAL | {WITHIN})


@dataclass(frozen=True, slots=True)
class CrossDesign:
    """Many cross tables of some rows, to be planned together.

    Parameters
    ----------
    rows
        The rows that are counted.
    axes
        The columns with their public places.
    tables
        The wanted tables.
    weights
        What the variance of each table counts.
    aim
        Whether the largest variance of a cell is made small, or the sum over all cells.
    missing
        Whether missing values have a place.
    """

    rows: Rows
    axes: tuple[Axis, ...]
    tables: tuple[ColumnSet, ...]
    weights: tuple[Fraction, ...]
    aim: Aim
    missing: bool = True

    @property
    def words(self) -> str:
        """The question in words."""
        names = ", ".join(axis.name for axis in self.axes)
        return f"{how_many(len(self.tables))} of {names}, rows {rows_in_words(self.rows.relation)}"

    def draft(self, goal: Goal) -> Draft[CrossTables]:
        """Draft the plan of all tables together.

        With a delta the noise is Gaussian, unless Laplace noise is smaller; without, Laplace. ``within`` is
        the error of every table, or a mapping that gives each table its own; a table that it does not name
        gets the largest of them.
        """
        dataset, work, level = self.rows._dataset, self._work(), float(goal.confidence)
        if goal.within is None:
            paid = work.priced(goal.epsilon, goal.delta, goal.rho)
        else:
            allowed = self._tolerances(goal.within)
            tight = tuple(float((min(allowed) / one) ** 2) for one in allowed)
            numbers = np.array([float(one) for one in allowed])
            paid = replace(work, weights=tight).within(numbers, goal.delta, level)
        asked = coded_question(self.rows.relation, self.axes)
        blocks = () if dataset.block_column is None else dataset.block_column.concerned(asked)

        def omissions() -> tuple[str, ...]:
            return (*self._not_counted(), *rows_beyond(asked, work.who, dataset))

        task = self._task(paid, asked, blocks, omissions)
        delta = paid.promised.get("delta")
        warning = warn_of_delta(float(delta), None) if delta else None
        return Draft(
            task=task,
            promised=paid.promised,
            forecast=lambda: self._forecast(paid, level),
            facts=lambda: [
                *limits_of(asked, work.who, dataset),
                *self._facts(paid, work, level),
                *(("not counted", one) for one in omissions()[:1]),
                *facts_of_blocks(dataset, blocks),
                *((("delta", warning),) if warning else ()),
            ],
            asked=f"{how_many(len(self.tables))}, {in_words(asked, shape=dataset.record == 'shape')}",
        )

    def _tolerances(self, within: PerTable) -> list[Fraction]:
        if len(set(self.weights)) > 1:
            raise bad_parameter(
                "within", "given without weights", "both", why="the wanted errors are weights themselves",
                fix=Set(weights=None),
            )  # fmt: skip
        if not isinstance(within, Mapping):
            return [rational("within", within)] * len(self.tables)  # type: ignore[arg-type]
        names = [axis.name for axis in self.axes]
        read = _per_table(within, names, self.tables, "within")
        if not read:
            raise bad_parameter("within", "an error for at least one table", within, fix=Set(within=50))
        widest = max(read.values())
        allowed = [read.get(one, widest) for one in self.tables]
        _check_apart("within", allowed, math.isqrt(_MOST_APART))
        return allowed

    def _work(self) -> CrossWorkload:
        dataset = self.rows._dataset
        who = contribution(
            coded_question(self.rows.relation, self.axes), row_level=dataset.unit.is_row,
            adjacency=dataset.adjacency, pairs=dataset.limits.pairs,
        )  # fmt: skip
        sizes = tuple(axis.size for axis in self.axes)
        return CrossWorkload(sizes, self.tables, tuple(map(float, self.weights)), self.aim, who)

    def _task(
        self,
        paid: PaidNoise,
        asked: TableQuestion,
        blocks: tuple[str, ...],
        omissions: Callable[[], tuple[str, ...]],
    ) -> Task[CodedRows, CrossTables]:
        """Return the task that counts the rows of every cell of what is measured; `document` has no names."""
        noise, axes = paid.noise, self.axes
        together = noise.law == "gaussian"

        laws: Sequence[Measurement] = paid.mechanisms
        steps: list[Step[CodedRows]]
        if together:
            label: dict[str, JSON] = {"statistic": "residuals of cross tables"}
            steps = [Step(one, partial(_tables, noise.sets), label) for one in laws]
        else:
            label = {"statistic": "cells of a cross table"}
            steps = [
                Step(mechanism, partial(_table, one), {**label, "columns": [axes[i].name for i in one]})
                for mechanism, one in zip(laws, noise.sets, strict=True)
            ]

        def content(noisy: Sequence[Any], confidence: Fraction) -> CrossTables:
            drawn = tuple(np.array(one) for one in (noisy[0] if together else noisy))
            placed = tuple(PlacedAxis.of(axis) for axis in axes)
            return CrossTables(placed, self.tables, noise, drawn, float(confidence), left_out=omissions())

        subject = CountedSubject(
            asked=asked, engine=self.rows._dataset._engine, axes=axes, blocks=blocks, steps=tuple(steps),
            content=content, omissions=omissions,
            document=lambda: {
                "crosstabs": axes_document(axes),
                "rows": document(asked.input),
                "law": noise.law,
                "measured": [list(one) for one in noise.sets],
            },
        )  # fmt: skip
        _ = subject.sql  # what cannot be written is refused now
        return subject.task

    def _not_counted(self) -> list[str]:
        """Say which rows have no place on some axis."""
        facts = scope(self.rows.relation)
        unit = self.rows._dataset.unit
        listed = [axis.name for axis in self.axes if not axis.cuts and not axis.other]
        absent = [
            a.name for a in self.axes if not a.missing and not a.other and can_be_missing(a.node, facts)
        ]
        rows = without_unit(unit)
        rows += [f"rows whose {' or '.join(listed)} is not among the keys"] if listed else []
        rows += [f"rows whose {' or '.join(absent)} is missing"] if absent else []
        return [f"{' and '.join(rows)}, if any, are in no table"] if rows else []

    def _names(self, table: ColumnSet) -> tuple[str, ...]:
        return tuple(self.axes[i].name for i in table)

    def _forecast(self, paid: PaidNoise, level: float) -> list[Forecast]:
        law = "Gaussian" if paid.noise.law == "gaussian" else "Laplace"
        made = []
        for table in self.tables[: len(self.tables) if len(self.tables) <= _FORECAST else _FORECAST - 1]:
            cells = " x ".join(str(self.axes[i].size) for i in table) or "1"
            spread = f"{law}, standard deviation {math.sqrt(paid.noise.variance(table)):.4g}"
            words = table_words(self._names(table))
            made.append(
                Forecast(
                    words,
                    f"count, {cells} {'cell' if cells == '1' else 'cells'}",
                    spread,
                    paid.noise.half_width(table, level),
                )
            )
        rest = self.tables[len(made) :]
        if rest:
            worst = max(rest, key=paid.noise.variance)
            spread = f"{law}, standard deviation at most {math.sqrt(paid.noise.variance(worst)):.4g}"
            wide = paid.noise.half_width(worst, level)
            made.append(Forecast(f"{len(rest):,} more tables", "count, the widest", spread, wide))
        return made

    def _facts(self, paid: PaidNoise, work: CrossWorkload, level: float) -> list[tuple[str, str]]:
        cells = sum(paid.noise.cells(one) for one in self.tables)
        what = "residual" if paid.noise.law == "gaussian" else "table"
        sets = len(paid.noise.sets)
        measured = f"1 {what} is measured" if sets == 1 else f"{sets:,} {what}s are measured"
        many = "1 table" if len(self.tables) == 1 else f"{len(self.tables):,} tables"
        facts = [("tables", f"{many}, {cells:,} cells; {measured}")]
        if len(self.tables) > 1:
            alone = work.alone(paid.noise, paid.promised, level)
            facts.append(("one by one", f"each cell would be +/- {alone:,.4g} at the same total cost"))
            facts.append(("agreement", "all tables agree: cells add up to the cells of smaller tables"))
        return facts

    def request(self, goal: Goal) -> JSON:
        """Return the request of a plan."""
        names = [self._names(one) for one in self.tables]
        within: JSON = None
        if goal.within is not None:
            allowed = self._tolerances(goal.within)
            within = [[list(one), str(number)] for one, number in zip(names, allowed, strict=True)]
        return {
            "asks": "crosstabs",
            "rows": rows_document(self.rows),
            "columns": [axis.name for axis in self.axes],
            "tables": [list(one) for one in names],
            "bins": {axis.name: list(axis.cuts) for axis in self.axes if axis.cuts},
            "keys": {axis.name: list(axis.values) for axis in self.axes if not axis.cuts},  # type: ignore[arg-type]
            "other": [axis.name for axis in self.axes if axis.other],
            "missing": self.missing,
            "weights": [str(one) for one in self.weights],
            "aim": self.aim,
            "goal": goal.to_json(),
            "within": within,
        }


def _tables(tables: Sequence[ColumnSet], rows: CodedRows, _: object) -> list[NDArray[np.int64]]:
    """Return the exact tables of some sets of columns."""
    return [rows.table(one) for one in tables]


def _table(table: ColumnSet, rows: CodedRows, _: object) -> NDArray[np.int64]:
    """Return the exact table of a set of columns."""
    return rows.table(table)


def _columns(table: TableName, names: list[str]) -> ColumnSet:
    """Read one table: rising numbers of its columns."""
    given = [table] if isinstance(table, str) else list(table)
    for name in given:
        if name not in names:
            raise TacitError(
                "unknown-column",
                f"a table names {name!r}, which is not one of the columns asked for",
                fix=Choose(tuple(names), given=str(name)),
            )
    Listed("columns in each table", str([(names[0],)]), least=0, different=True).read("tables", given)
    return tuple(sorted(names.index(name) for name in given))


def _per_table(
    given: Mapping[TableName, Number] | None, names: list[str], tables: Sequence[ColumnSet], word: str
) -> dict[ColumnSet, Fraction]:
    """Read a number for some tables, or refuse a table that is not asked for."""
    read: dict[ColumnSet, Fraction] = {}
    asked = set(tables)
    for table, number in (given or {}).items():
        one = _columns(table, names)
        if one not in asked:
            raise bad_parameter(word, "given for tables that are asked for", table, fix=Set(**{word: None}))
        read[one] = rational(f"{word} of {table_words(tuple(names[i] for i in one))}", number)
    return read


def _check_number(tables: int) -> None:
    if tables > MOST_TABLES:
        raise TacitError(
            "question-too-large",
            f"these are {tables:,} tables, and at most {MOST_TABLES:,} are allowed",
            why="every table is measured and stored",
            fix=Either(Set(up_to=2), Set(tables=[("age", "sex")])),
        )


def _check_apart(word: str, given: Sequence[Fraction], most: int) -> None:
    """Refuse numbers so far apart that some tables would get no part of the budget."""
    if max(given) > most * min(given):
        raise bad_parameter(
            word, f"at most a factor of {most:,} apart", f"{float(min(given)):g} and {float(max(given)):g}",
            fix="ask for the tables that matter less in a plan of their own, or leave them out",
        )  # fmt: skip


def _check_cells(axes: Sequence[Axis], tables: Sequence[ColumnSet]) -> None:
    wide = max(sum(axes[i].size > 1 for i in one) for one in tables)
    if wide > _MOST_COLUMNS:
        raise TacitError(
            "question-too-large",
            f"a table has {wide} columns, and at most {_MOST_COLUMNS} are allowed",
            why="a table is rebuilt from all sets of its columns",
            fix=Set(up_to=2),
        )
    cells = sum(math.prod(axes[i].size for i in one) for one in tables)
    if cells > MOST_CELLS:
        raise TacitError(
            "question-too-large",
            f"the tables have {cells:,} cells, and at most {MOST_CELLS:,} are allowed",
            why="every cell is measured and stored, empty ones too",
            fix=Either(Set(up_to=2), Set(bins={axes[0].name: 5})),
        )
