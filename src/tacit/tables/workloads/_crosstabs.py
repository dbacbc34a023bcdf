"""Many cross tables at once: the question, its plan, and the plan's document.

`CrossWorkload` chooses the noise of tables that are planned together: which noise, how much of it, at which
epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tacit.accounting import rho_cap
from tacit.algebra import can_be_missing, contribution, document, scope
from tacit.core import ANY_TOTAL, WITHIN, Draft, Forecast, Goal, Step, warn_of_delta
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational, read_fraction
from tacit.fixes import Choose, Either, Set
from tacit.mechanisms import DiscreteLaplace, ResidualNoise
from tacit.parameters import Choice, Listed
from tacit.strategies import ResidualSets, tables_up_to
from tacit.tables.planning._advice import advice_on_counts
from tacit.tables.planning._pricing import smallest_epsilon
from tacit.tables.questions._rows_questions import read_rows, rows_document
from tacit.tables.reading._captions import (
    facts_of_blocks,
    in_words,
    limits_of,
    rows_beyond,
    rows_in_words,
    without_unit,
)
from tacit.tables.workloads._axes import Axis, BinsGiven, read_axes
from tacit.tables.workloads._coded_rows import CountedSubject, axes_document, coded_question
from tacit.tables.workloads._cross_tables import (
    CrossNoise,
    CrossTables,
    PlacedAxis,
    TableName,
    how_many,
    table_words,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.algebra import Contribution, TableQuestion
    from tacit.core import JSON, Measurement, Task
    from tacit.strategies import ColumnSet
    from tacit.tables._dataset import TableDataset
    from tacit.tables.questions._rows import Rows
    from tacit.tables.workloads._coded_rows import CodedRows


Aim = Literal["largest", "sum"]


MAX_CELLS = 4_000_000
_MAX_COLUMNS = 12  # with more than one place, in one table
_MAX_RATIO = 10**12  # weights
MAX_TABLES = 20_000
_FORECAST = 40  # tables that a plan lists one by one

#: One number for all tables, or one for each.
PerTable = Number | Mapping[TableName, Number] | None
_MARGIN = 1 - 1e-6  # sigmas are rounded up by less than this
_SHARE_STEPS = 2**32
_FAR = 2**20
_MANY = 200  # largest tables from which on Gaussian noise is taken without comparing


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
        max_columns = min(count("up_to", up_to, zero=False), len(axes))
        _check_number(sum(math.comb(len(axes), k) for k in range(1, max_columns + 1)))
        column_sets = tuple(tables_up_to(len(axes), max_columns))
    else:
        table_list = Listed("tables, each a tuple of columns", str([(names[0],)])).read("tables", tables)
        column_sets = tuple(dict.fromkeys(_columns(one, names) for one in table_list))
    _check_number(len(column_sets))
    _check_cells(axes, column_sets)
    weights_by_table = _per_table(weights, names, column_sets, "weights")
    each = tuple(weights_by_table.get(one, Fraction(1)) for one in column_sets)
    _check_apart("weights", each, _MAX_RATIO)
    return CrossDesign(rows, axes, column_sets, each, aim, missing)


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
    tolerances = request["within"]
    within = None if tolerances is None else {tuple(one): read_fraction(number) for one, number in tolerances}
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
            paid_noise = work.priced(goal.epsilon, goal.delta, goal.rho)
        else:
            allowed = self._tolerances(goal.within)
            tight = tuple(float((min(allowed) / one) ** 2) for one in allowed)
            numbers = np.array([float(one) for one in allowed])
            paid_noise = replace(work, weights=tight).within(numbers, goal.delta, level)
        question = coded_question(self.rows.relation, self.axes)
        blocks = () if dataset.block_column is None else dataset.block_column.concerned(question)

        def omissions() -> tuple[str, ...]:
            return (*self._not_counted(), *rows_beyond(question, work.who, dataset))

        task = self._task(paid_noise, question, blocks, omissions)
        delta = paid_noise.promised.get("delta")
        warning = warn_of_delta(float(delta), None) if delta else None
        return Draft(
            task=task,
            promised=paid_noise.promised,
            forecast=lambda: self._forecast(paid_noise, level),
            facts=lambda: [
                *limits_of(question, work.who, dataset),
                *self._facts(paid_noise, work, level),
                *(("not counted", one) for one in omissions()[:1]),
                *facts_of_blocks(dataset, blocks),
                *((("delta", warning),) if warning else ()),
                *advice_on_counts(question, dataset),
            ],
            asked=f"{how_many(len(self.tables))}, {in_words(question, shape=dataset.record == 'shape')}",
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
        tolerances = _per_table(within, names, self.tables, "within")
        if not tolerances:
            raise bad_parameter("within", "an error for at least one table", within, fix=Set(within=50))
        widest = max(tolerances.values())
        allowed = [tolerances.get(one, widest) for one in self.tables]
        _check_apart("within", allowed, math.isqrt(_MAX_RATIO))
        return allowed

    def _work(self) -> CrossWorkload:
        dataset = self.rows._dataset
        contributed = contribution(
            coded_question(self.rows.relation, self.axes), row_level=dataset.unit.is_row,
            adjacency=dataset.adjacency, pairs=dataset.limits.pairs,
        )  # fmt: skip
        sizes = tuple(axis.size for axis in self.axes)
        return CrossWorkload(sizes, self.tables, tuple(map(float, self.weights)), self.aim, contributed)

    def _task(
        self,
        paid_noise: PaidNoise,
        question: TableQuestion,
        blocks: tuple[str, ...],
        omissions: Callable[[], tuple[str, ...]],
    ) -> Task[CodedRows, CrossTables]:
        """Return the task that counts the rows of every cell of what is measured; `document` has no names."""
        noise, axes = paid_noise.noise, self.axes
        joint = noise.law == "gaussian"

        laws: Sequence[Measurement] = paid_noise.mechanisms
        steps: list[Step[CodedRows]]
        if joint:
            label: dict[str, JSON] = {"statistic": "residuals of cross tables"}
            steps = [Step(one, partial(_tables, noise.sets), label) for one in laws]
        else:
            label = {"statistic": "cells of a cross table"}
            steps = [
                Step(mechanism, partial(_table, one), {**label, "columns": [axes[i].name for i in one]})
                for mechanism, one in zip(laws, noise.sets, strict=True)
            ]

        def content(noisy: Sequence[Any], confidence: Fraction) -> CrossTables:
            noisy_tables = tuple(np.array(one) for one in (noisy[0] if joint else noisy))
            placed = tuple(PlacedAxis.of(axis) for axis in axes)
            return CrossTables(
                placed, self.tables, noise, noisy_tables, float(confidence), left_out=omissions()
            )

        subject = CountedSubject(
            asked=question, engine=self.rows._dataset._engine, axes=axes, blocks=blocks, steps=tuple(steps),
            content=content, omissions=omissions,
            document=lambda: {
                "crosstabs": axes_document(axes),
                "rows": document(question.input),
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
        listed_columns = [axis.name for axis in self.axes if not axis.cuts and not axis.other]
        absent = [
            a.name for a in self.axes if not a.missing and not a.other and can_be_missing(a.node, facts)
        ]
        rows = without_unit(unit)
        rows += [f"rows whose {' or '.join(listed_columns)} is not among the keys"] if listed_columns else []
        rows += [f"rows whose {' or '.join(absent)} is missing"] if absent else []
        return [f"{' and '.join(rows)}, if any, are in no table"] if rows else []

    def _names(self, table: ColumnSet) -> tuple[str, ...]:
        return tuple(self.axes[i].name for i in table)

    def _forecast(self, paid_noise: PaidNoise, level: float) -> list[Forecast]:
        law = "Gaussian" if paid_noise.noise.law == "gaussian" else "Laplace"
        forecasts = []
        for table in self.tables[: len(self.tables) if len(self.tables) <= _FORECAST else _FORECAST - 1]:
            cells = " x ".join(str(self.axes[i].size) for i in table) or "1"
            spread = f"{law}, standard deviation {math.sqrt(paid_noise.noise.variance(table)):.4g}"
            words = table_words(self._names(table))
            forecasts.append(
                Forecast(
                    words,
                    f"count, {cells} {'cell' if cells == '1' else 'cells'}",
                    spread,
                    paid_noise.noise.half_width(table, level),
                )
            )
        rest = self.tables[len(forecasts) :]
        if rest:
            worst = max(rest, key=paid_noise.noise.variance)
            spread = f"{law}, standard deviation at most {math.sqrt(paid_noise.noise.variance(worst)):.4g}"
            half_width = paid_noise.noise.half_width(worst, level)
            forecasts.append(Forecast(f"{len(rest):,} more tables", "count, the widest", spread, half_width))
        return forecasts

    def _facts(self, paid_noise: PaidNoise, work: CrossWorkload, level: float) -> list[tuple[str, str]]:
        cells = sum(paid_noise.noise.cells(one) for one in self.tables)
        noun = "residual" if paid_noise.noise.law == "gaussian" else "table"
        sets = len(paid_noise.noise.sets)
        measured_words = f"1 {noun} is measured" if sets == 1 else f"{sets:,} {noun}s are measured"
        many = "1 table" if len(self.tables) == 1 else f"{len(self.tables):,} tables"
        facts = [("tables", f"{many}, {cells:,} cells; {measured_words}")]
        if len(self.tables) > 1:
            separate_error = work.alone(paid_noise.noise, paid_noise.promised, level)
            facts.append(
                ("one by one", f"each cell would be +/- {separate_error:,.4g} at the same total cost")
            )
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
    columns = [table] if isinstance(table, str) else list(table)
    for name in columns:
        if name not in names:
            raise TacitError(
                "unknown-column",
                f"a table names {name!r}, which is not one of the columns asked for",
                fix=Choose(tuple(names), given=str(name)),
            )
    Listed("columns in each table", str([(names[0],)]), least=0, different=True).read("tables", columns)
    return tuple(sorted(names.index(name) for name in columns))


def _per_table(
    numbers: Mapping[TableName, Number] | None, names: list[str], tables: Sequence[ColumnSet], word: str
) -> dict[ColumnSet, Fraction]:
    """Read a number for some tables, or refuse a table that is not asked for."""
    numbers_by_table: dict[ColumnSet, Fraction] = {}
    column_sets = set(tables)
    for table, number in (numbers or {}).items():
        columns = _columns(table, names)
        if columns not in column_sets:
            raise bad_parameter(word, "given for tables that are asked for", table, fix=Set(**{word: None}))
        numbers_by_table[columns] = rational(
            f"{word} of {table_words(tuple(names[i] for i in columns))}", number
        )
    return numbers_by_table


def _check_number(tables: int) -> None:
    if tables > MAX_TABLES:
        raise TacitError(
            "question-too-large",
            f"these are {tables:,} tables, and at most {MAX_TABLES:,} are allowed",
            why="every table is measured and stored",
            fix=Either(Set(up_to=2), Set(tables=[("age", "sex")])),
        )


def _check_apart(word: str, numbers: Sequence[Fraction], max_ratio: int) -> None:
    """Refuse numbers so far apart that some tables would get no part of the budget."""
    if max(numbers) > max_ratio * min(numbers):
        ends = f"{float(min(numbers)):g} and {float(max(numbers)):g}"
        raise bad_parameter(
            word, f"at most a factor of {max_ratio:,} apart", ends,
            fix="ask for the tables that matter less in a plan of their own, or leave them out",
        )  # fmt: skip


def _check_cells(axes: Sequence[Axis], tables: Sequence[ColumnSet]) -> None:
    max_columns = max(sum(axes[i].size > 1 for i in one) for one in tables)
    if max_columns > _MAX_COLUMNS:
        raise TacitError(
            "question-too-large",
            f"a table has {max_columns} columns, and at most {_MAX_COLUMNS} are allowed",
            why="a table is rebuilt from all sets of its columns",
            fix=Set(up_to=2),
        )
    cells = sum(math.prod(axes[i].size for i in one) for one in tables)
    if cells > MAX_CELLS:
        raise TacitError(
            "question-too-large",
            f"the tables have {cells:,} cells, and at most {MAX_CELLS:,} are allowed",
            why="every cell is measured and stored, empty ones too",
            fix=Either(Set(up_to=2), Set(bins={axes[0].name: 5})),
        )


@dataclass(frozen=True, slots=True)
class PaidNoise:
    """The mechanisms of a plan, the noise that they leave on tables, and what was asked for it."""

    mechanisms: tuple[ResidualNoise, ...] | tuple[DiscreteLaplace, ...]
    noise: CrossNoise
    promised: dict[str, Fraction]


@dataclass(frozen=True, slots=True)
class CrossWorkload:
    """The wanted tables, how much each matters, and what one unit can change.

    Parameters
    ----------
    sizes
        How many places each axis has.
    tables
        The wanted tables.
    weights
        What the variance of each counts.
    aim
        Whether the largest weighted variance of a cell is made small, or the sum over all cells.
    who
        The most that one unit can contribute.
    """

    sizes: tuple[int, ...]
    tables: tuple[ColumnSet, ...]
    weights: tuple[float, ...]
    aim: Aim
    who: Contribution

    def priced(self, epsilon: Fraction | None, delta: Fraction, rho: Fraction | None) -> PaidNoise:
        """Choose the noise for a cost: Gaussian with rho, Laplace with epsilon alone, else the better one."""
        promised = {k: v for k, v in (("epsilon", epsilon), ("delta", delta), ("rho", rho)) if v}
        if rho is not None:
            return self.gaussian(rho, promised)
        assert epsilon is not None  # noqa: S101 - the goal was read
        cap = rho_cap(epsilon, delta) if delta else Fraction(0)
        if not cap:
            return self._laplace(epsilon, promised)
        pure = self._laplace(epsilon, {"epsilon": epsilon})
        if len(pure.mechanisms) > _MANY:
            return self.gaussian(cap, promised)
        smallest_loss = self._loss(np.array([pure.noise.variance(one) for one in self.tables]))
        return (
            self.gaussian(cap, promised)
            if self._loss(self.gaussian_variances(cap)) <= smallest_loss
            else pure
        )

    def within(self, tolerances: NDArray[np.float64], delta: Fraction, confidence: float) -> PaidNoise:
        """Find the smallest epsilon at which each table stays within its error, with this confidence."""
        slack = float(tolerances.max())
        pure = self._laplace(Fraction(1, _FAR), {})  # so wide that the steps of the integers do not matter
        laplace = None
        if not delta or len(pure.mechanisms) <= _MANY:
            laplace = self._laplace_within(pure.noise, tolerances, confidence)
            if not delta:
                return self._laplace(laplace, {"epsilon": laplace})
        from scipy.special import ndtri

        z, cells = float(ndtri((1 + confidence) / 2)), _planned(self).cells
        spread = np.sqrt(self._variances_at_one())

        def fits(epsilon: float) -> bool:
            cap = float(rho_cap(Fraction(epsilon), delta))
            half_widths = z * spread / math.sqrt(cap) + 0.5 / cells if cap else np.array([math.inf])
            return bool((half_widths <= tolerances * _MARGIN).all())

        gaussian = smallest_epsilon(fits, slack)
        if laplace is not None and gaussian > laplace:
            return self._laplace(laplace, {"epsilon": laplace})
        return self.gaussian(rho_cap(gaussian, delta), {"epsilon": gaussian, "delta": delta})

    def _laplace_within(
        self, pure: CrossNoise, tolerances: NDArray[np.float64], confidence: float
    ) -> Fraction:
        """Find the smallest epsilon with Laplace noise, from the noise at an epsilon of 1 / _FAR."""
        steps = np.array([pure.step(one) for one in self.tables])
        at_one = np.array([pure.half_width(one, confidence) for one in self.tables]) / _FAR
        one_table = len(pure.sets) == 1  # every cell is then a sum of noisy integers

        def kept(epsilon: float) -> bool:
            half_widths = np.floor(at_one / epsilon + 0.5) if one_table else at_one / epsilon + steps
            return bool((half_widths <= tolerances * (1 if one_table else _MARGIN)).all())

        return smallest_epsilon(kept, float(tolerances.max()))

    def alone(self, noise: CrossNoise, promised: dict[str, Fraction], confidence: float) -> float:
        """Return the error of every table if each were measured by itself, with an equal share."""
        count = len(self.tables)
        if noise.law == "laplace":
            scale = Fraction(self.who.l1(1) * count) / promised["epsilon"]
            mechanism = DiscreteLaplace(scale=scale, sensitivity=1)
            return float(mechanism.half_width(Fraction(confidence).limit_denominator(10**9)))
        from scipy.special import ndtri

        rho = promised.get("rho") or rho_cap(promised["epsilon"], promised["delta"])
        return float(ndtri((1 + confidence) / 2)) * math.sqrt(self.who.l2_squared(1) * count / (2 * rho))

    def _loss(self, variances: NDArray[np.float64]) -> float:
        weighted = variances * np.array(self.weights)
        return float(weighted.max() if self.aim == "largest" else (_planned(self).cells * weighted).sum())

    def _variances_at_one(self) -> NDArray[np.float64]:
        """Return the variances of the Gaussian plan at rho = 1."""
        plan, squares = _planned(self), _squares(self)
        per_row = plan.rho(squares)
        if self.who.adjacency == "replace":
            per_row = max(per_row, plan.replaced(squares))
        return plan.variances(squares) * self.who.total**2 * per_row

    def gaussian_variances(self, rho: Fraction) -> NDArray[np.float64]:
        """Return the variance of a cell of each table, with Gaussian noise at this rho."""
        return self._variances_at_one() / float(rho)

    def gaussian(self, rho: Fraction, promised: dict[str, Fraction]) -> PaidNoise:
        """Measure residuals with Gaussian noise."""
        noise = ResidualNoise.planned(
            _planned(self), _squares(self), rho=rho, rows=self.who.total, adjacency=self.who.adjacency
        )
        return PaidNoise((noise,), CrossNoise(self.sizes, "gaussian", noise.sets, noise.sigmas), promised)

    def _laplace(self, epsilon: Fraction, promised: dict[str, Fraction]) -> PaidNoise:
        """Measure the largest wanted tables, each with its share of epsilon."""
        column_sets = set(self.tables)
        parts = {part for one in column_sets for k in range(len(one)) for part in combinations(one, k)}
        sets = tuple(sorted(column_sets - parts, key=lambda one: (len(one), one)))
        scales = tuple(
            DiscreteLaplace(epsilon=epsilon * share, sensitivity=self.who.l1(1), adjacency=self.who.adjacency)
            for share in self._shares(sets)
        )
        noise = CrossNoise(self.sizes, "laplace", sets, tuple(one.scale for one in scales))
        return PaidNoise(scales, noise, promised)

    def _shares(self, sets: tuple[ColumnSet, ...]) -> list[Fraction]:
        """Share epsilon among the measured tables by the weights of what is read off them.

        Alone, a table of share e has variance in proportion to 1/e^2. So roots of weights make the largest
        weighted variance least, and cube roots of weight times cells the sum.
        """
        if self.aim == "largest" and len(set(self.weights)) == 1:
            return [Fraction(1, len(sets))] * len(sets)
        weighed = dict(zip(self.tables, self.weights, strict=True))
        each = []
        for columns in sets:
            if self.aim == "largest":
                max_weight = max(w for table, w in weighed.items() if set(table) <= set(columns))
                each.append(math.sqrt(max_weight))
            else:
                each.append((weighed[columns] * math.prod(self.sizes[i] for i in columns)) ** (1 / 3))
        if len(set(each)) == 1:
            return [Fraction(1, len(sets))] * len(sets)
        total = sum(each)
        parts = [max(1, math.floor(e / total * _SHARE_STEPS)) for e in each]
        return [Fraction(part, max(_SHARE_STEPS, sum(parts))) for part in parts]


@lru_cache(maxsize=8)
def _sets(sizes: tuple[int, ...], tables: tuple[ColumnSet, ...]) -> ResidualSets:
    return ResidualSets.of(sizes, tables)


@lru_cache(maxsize=8)
def _squares_of(
    sizes: tuple[int, ...], tables: tuple[ColumnSet, ...], weights: tuple[float, ...], aim: Aim
) -> NDArray[np.float64]:
    plan = _sets(sizes, tables)
    return plan.least_largest(np.array(weights)) if aim == "largest" else plan.least_sum(np.array(weights))


def _planned(work: CrossWorkload) -> ResidualSets:
    return _sets(work.sizes, work.tables)


def _squares(work: CrossWorkload) -> NDArray[np.float64]:
    return _squares_of(work.sizes, work.tables, work.weights, work.aim)
