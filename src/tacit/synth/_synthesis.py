"""The question for synthetic rows: columns with public values, a method, the draft of a plan, and its task.

The task hands coded rows to the mechanism; noisy tables and choices come back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tacit.core import Draft, Goal, Step, Task
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Choose, Either, Fix, Say, Set
from tacit.mechanisms import AdaptiveTables, DiscreteGaussian, ResidualNoise
from tacit.parameters import Choice, Integer
from tacit.synth._choices import MOST_CELLS, SteppedTables, SynthDesign, steps_of
from tacit.synth._columns import SyntheticColumn
from tacit.synth._facts import plan_facts, plan_forecast
from tacit.synth._model import tree_cells
from tacit.synth._synthetic_table import SyntheticTable
from tacit.tables import BinsGiven, CodedSource, CrossWorkload, read_axes, read_rows, rows_question

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.algebra import Contribution
    from tacit.core import JSON
    from tacit.synth._model import Columns
    from tacit.tables import CodedRows, Rows, RowsQuestion, TableDataset


SynthMechanism: TypeAlias = AdaptiveTables | ResidualNoise


def synth_task(
    source: CodedSource, columns: tuple[SyntheticColumn, ...], design: SynthDesign, mechanism: SynthMechanism
) -> Task[CodedRows, SyntheticTable]:
    """Return the task with one step: it takes all steps of a method, or measures all residuals at once.

    The rows, the axes and the design identify it; names of columns do not.
    """
    step: Step[CodedRows]
    if isinstance(mechanism, ResidualNoise):
        sets = mechanism.sets
        step = Step(
            mechanism,
            lambda rows, _: [rows.table(one) for one in sets],
            {"statistic": "residuals of cross tables"},
        )
    else:
        step = Step(
            mechanism,
            lambda rows, _: SteppedTables(rows, steps_of(design, mechanism)),
            {"statistic": "cells of chosen cross tables"},
        )

    def reading(noisy: Sequence[Any], confidence: Fraction) -> SyntheticTable:
        [steps] = noisy
        if isinstance(mechanism, ResidualNoise):
            parts = zip(mechanism.sets, mechanism.sigmas, steps, strict=True)
            steps = [
                ["residual", list(at), str(sigma), np.array(drawn).ravel().tolist()]
                for at, sigma, drawn in parts
            ]
        return SyntheticTable(columns, design, tuple(steps), float(confidence), source.left_out())

    return Task(
        document=lambda: {"synthesize": design.to_json(), "of": source.identity()},
        open=source.read,
        steps=(step,),
        reading=reading,
        blocks=source.blocks,
        statements=lambda: source.sql,
        unavailable=source.unavailable,
    )


SynthMethod: TypeAlias = Literal["auto", "aim", "mst", "tables"]
_METHODS = ("auto", "aim", "mst", "tables")
_MOST_TABLES = 10_000
_MOST_COMPARED = 5_000  # tables that AIM compares in each round: a second or so
_FEW = 3  # wanted tables up to which all are measured
_MOST_FOR_AIM = 40  # columns: its rounds grow with them, and each compares all wanted tables with the model
_MOST_FOR_TRIPLES = 24


def synthesis_design(
    rows: Rows,
    columns: Sequence[str],
    *,
    bins: BinsGiven = None,
    keys: Mapping[str, Sequence[object]] | None = None,
    other: Sequence[str] = (),
    keep: Sequence[Sequence[str]] = (),
    never: Sequence[Mapping[str, object]] = (),
    method: SynthMethod = "auto",
    up_to: int | None = None,
    size: int = 200_000,
) -> SynthesisDesign:
    """Read a question for invented rows; see `Rows.synthesize`."""
    source = CodedSource(rows, read_axes(rows, columns, bins=bins, keys=keys, other=other), "synthetic rows")
    _ = source.contribution  # refuses a sample, and rows that nothing bounds
    Choice(_METHODS).read("method", method)
    max_cells = Integer(1, MOST_CELLS, instead=200_000).read("size", size)
    synthetic_columns = tuple(SyntheticColumn.of(axis) for axis in source.axes)
    names = [column.name for column in synthetic_columns]
    kept_tables = tuple(dict.fromkeys(_columns_of(one, names, "keep") for one in keep))
    zeros = _zeros(never, synthetic_columns)
    chosen = _chosen(method, len(synthetic_columns), up_to)
    width = count("up_to", _wide(chosen, len(synthetic_columns)) if up_to is None else up_to, zero=False)
    design = SynthDesign(
        tuple(c.size for c in synthetic_columns),
        chosen,
        min(width, len(synthetic_columns)),
        max_cells,
        kept_tables,
        zeros,
    )
    _check_room(design, names)
    return SynthesisDesign(source, synthetic_columns, design)


def read_synthesize(dataset: TableDataset, request: Any) -> tuple[SynthesisDesign, Goal]:
    """Read synthetic rows back from a request."""
    request_design = synthesis_design(
        read_rows(dataset, request["rows"]),
        request["columns"],
        bins=request["bins"],
        keys=request["keys"],
        other=request["other"],
        keep=request["keep"],
        method=request["method"],
        up_to=request["up_to"],
        size=request["size"],
    )
    design_document = {**request_design.design.to_json(), "never": request["never"]}
    request_design = replace(request_design, design=SynthDesign.from_json(design_document))
    _check_room(request_design.design, request["columns"])
    return request_design, Goal.from_json(request["goal"])


@dataclass(frozen=True, slots=True, repr=False)
class SynthesisDesign:
    """Synthetic rows of some columns.

    Parameters
    ----------
    source
        The rows, with their places on the columns.
    columns
        The columns that are invented.
    design
        Which tables may be measured.
    """

    source: CodedSource
    columns: tuple[SyntheticColumn, ...]
    design: SynthDesign

    @property
    def words(self) -> str:
        """The question in words."""
        return f"synthetic rows of {', '.join(column.name for column in self.columns)}"

    def draft(self, goal: Goal) -> Draft[SyntheticTable]:
        """Draft the measurements; the noise is Gaussian, so the total is rho, or epsilon with delta."""
        mechanism = _mechanism(self.design, _rho(goal), self.source.contribution)
        _ = self.source.sql  # what cannot be written is refused now
        return Draft(
            task=synth_task(self.source, self.columns, self.design, mechanism),
            forecast=lambda: plan_forecast(self.columns, self.design, mechanism, goal.confidence),
            facts=lambda: [*self.source.facts(), *plan_facts(self.columns, self.design, mechanism)],
            asked=self.source.in_words(),
        )

    def request(self, goal: Goal) -> JSON:
        """Return the request of a plan."""
        names = [column.name for column in self.columns]
        return {
            "asks": "synthesize",
            **self.source.request(),
            "keep": [[names[i] for i in one] for one in self.design.keep],
            "never": self.design.to_json()["never"],
            "method": self.design.method,
            "up_to": self.design.up_to,
            "size": self.design.size,
            "goal": goal.to_json(),
        }


def _mechanism(design: SynthDesign, rho: Fraction, contribution: Contribution) -> SynthMechanism:
    """Return what measures: steps, or the residuals of all tables at once; refuse noise that is too large."""
    if design.method == "tables":
        tables = tuple(design.all_tables())
        work = CrossWorkload(design.sizes, tables, (1.0,) * len(tables), "sum", contribution)
        [noise] = work.gaussian(rho, {}).mechanisms
        assert isinstance(noise, ResidualNoise)  # noqa: S101 - the noise is Gaussian
        return noise
    mechanism = AdaptiveTables(rho=rho, rows=contribution.total, adjacency=contribution.adjacency)
    design.check_noise(mechanism)
    return mechanism


def _rho(goal: Goal) -> Fraction:
    """Return the rho of a goal, or refuse pure epsilon."""
    if goal.rho is not None:
        return goal.rho
    assert goal.epsilon is not None  # noqa: S101 - a goal has one of the two
    if not goal.delta:
        raise TacitError(
            "bad-parameter",
            "synthetic rows need a delta, or rho instead of epsilon",
            why="the noise is Gaussian, which has no pure epsilon; for many tables, Laplace "
            "noise would be much larger",
            fix=Either(Set(epsilon=float(goal.epsilon), delta=1e-9), Set(rho=0.015)),
        )
    law = DiscreteGaussian(epsilon=goal.epsilon, delta=goal.delta, sensitivity=1)  # checked forward
    return 1 / (2 * law.sigma**2)


def _chosen(method: SynthMethod, columns: int, up_to: int | None) -> str:
    """Return the method: few tables are all measured; else AIM chooses, or MST among very many columns."""
    if method != "auto":
        return method
    pairs = columns * (columns - 1) // 2
    if pairs <= _FEW and up_to in {None, 2}:
        return "tables"
    return "aim" if columns <= _MOST_FOR_AIM else "mst"


def _wide(method: str, columns: int) -> int:
    """Return how many columns the wanted tables have; of very many columns, pairs alone."""
    return 2 if method == "tables" or columns > _MOST_FOR_TRIPLES else 3


def _columns_of(asked_columns: Sequence[str], names: list[str], word: str) -> Columns:
    """Read the columns of one table: rising numbers."""
    names_asked = [asked_columns] if isinstance(asked_columns, str) else list(asked_columns)
    for name in names_asked:
        if name not in names:
            raise TacitError(
                "unknown-column",
                f"{word} names {name!r}, which is not one of the columns asked for",
                fix=Choose(tuple(names), given=str(name)),
            )
    if not names_asked or len(set(names_asked)) != len(names_asked):
        raise bad_parameter(word, "different columns", asked_columns, fix=Set(**{word: [tuple(names[:2])]}))
    return tuple(sorted(names.index(name) for name in names_asked))


def _zeros(
    never: Sequence[Mapping[str, object]], columns: Sequence[SyntheticColumn]
) -> dict[Columns, NDArray[np.bool_]]:
    """Read what can never be: for some sets of columns, the cells that are empty."""
    names = [column.name for column in columns]
    zeros: dict[Columns, NDArray[np.bool_]] = {}
    for combination in never:
        if not isinstance(combination, Mapping):
            raise bad_parameter(
                "never", "values by column", combination, fix=Set(never=[{"sex": "M", "pregnant": True}])
            )
        at = _columns_of(list(combination), names, "never")
        shape = tuple(columns[c].size for c in at)
        if int(np.prod(shape, dtype=object)) > MOST_CELLS:
            raise bad_parameter("never", f"of columns with at most {MOST_CELLS:,} cells", list(combination))
        mask = zeros.setdefault(at, np.zeros(shape, bool))
        places = [_places(columns[c], combination[names[c]]) for c in at]
        mask[np.ix_(*places)] = True
    return dict(sorted(zeros.items()))


def _places(column: SyntheticColumn, labels: object) -> list[int]:
    """Read one value or several as places of a column."""
    several = isinstance(labels, Sequence) and not isinstance(labels, str)
    values = list(labels) if several else [labels]  # type: ignore[call-overload]
    places = []
    for value in values:
        index = column.labels.index(value) if value in column.labels else column.place_of(value)
        if index is None:
            raise bad_parameter(
                f"never of {column.name}",
                "among its values",
                value,
                fix=Choose(column.labels, given=str(value)),
            )
        places.append(index)
    return places


def _check_room(design: SynthDesign, names: list[str]) -> None:
    """Refuse a design with too many tables, whose certain tables do not fit, or that leaves nothing."""
    for columns in design.keep:
        if design.cells(columns) > design.size:
            raise bad_parameter(
                "keep", f"of tables with at most {design.size:,} cells", [names[c] for c in columns],
                fix=Set(size=min(MOST_CELLS, design.cells(columns))),
            )  # fmt: skip
    _check_tables(design, names)
    certain = [*design.keep, *((i,) for i in range(len(design.sizes)))]
    cells = tree_cells([*certain, *design.zeros], design.sizes)
    if cells > design.size:
        raise TacitError(
            "question-too-large",
            f"the tables in keep and never need a model of {cells:,} cells, and the limit is {design.size:,}",
            why="columns that are tied together in a circle must be modelled together",
            fix=Set(size=cells)
            if cells <= MOST_CELLS
            else "name fewer tables in keep and never, or wider bins",
        )
    if not design.possible:
        raise bad_parameter("never", "such that something is left", "everything", fix=Set(never=[]))


def _check_tables(design: SynthDesign, names: list[str]) -> None:
    """Refuse more tables than can be looked at in time, and tables with too many cells to measure."""
    columns, adaptive = len(names), design.method == "aim"
    max_tables = _MOST_COMPARED if adaptive else _MOST_TABLES
    if design.many_tables > max_tables or (adaptive and columns > _MOST_FOR_AIM):
        few = columns <= (_MOST_FOR_AIM if adaptive else 100)
        smaller: Fix = Set(up_to=2) if design.up_to > 2 and few else Say("ask for fewer columns")
        limit = f"{max_tables:,} tables" + (f" of {_MOST_FOR_AIM} columns" if adaptive else "")
        raise TacitError(
            "question-too-large",
            f"{columns} columns have {design.many_tables:,} tables of up to {design.up_to} columns, and "
            f"the limit of {design.method} is {limit}",
            why="each of these tables is counted and compared" + (", round after round" if adaptive else ""),
            fix=smaller if design.method == "mst" else Either(smaller, Set(method="mst")),
        )
    cells = design.parts() if design.method == "tables" else 0
    if design.method == "tables" and cells <= MOST_CELLS:
        cells = sum(map(design.cells, design.all_tables()))
    if cells > MOST_CELLS:
        raise TacitError(
            "question-too-large",
            f"all tables of {design.up_to} columns have {cells:,} cells or more; the limit is {MOST_CELLS:,}",
            why="every one of them would be measured",
            fix=Either(Set(method="aim"), Set(up_to=1)),
        )


SYNTHESIZE = rows_question(
    name="synthesize", words="Synthetic rows", design=synthesis_design, read=read_synthesize,
    example="epsilon=1, delta=1e-9",
)  # fmt: skip


def synthesize(
    rows: Rows,
    columns: Sequence[str],
    *,
    bins: BinsGiven = None,
    keys: Mapping[str, Sequence[object]] | None = None,
    other: Sequence[str] = (),
    keep: Sequence[Sequence[str]] = (),
    never: Sequence[Mapping[str, object]] = (),
    method: SynthMethod = "auto",
    up_to: int | None = None,
    size: int = 200_000,
) -> RowsQuestion[SyntheticTable]:
    """Ask for invented rows that agree with measured tables of these columns; see `Rows.synthesize`."""
    return SYNTHESIZE.of(
        rows, columns, bins=bins, keys=keys, other=other, keep=keep, never=never, method=method, up_to=up_to,
        size=size,
    )  # fmt: skip
