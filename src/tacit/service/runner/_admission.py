"""How many draws a boundary admits, by their estimated work.

An answer that is not ready at its time fails and pauses its dataset for everybody. So a dataset admits no
more work than its process can do in the time of a slot, and one person gets a share of it. The estimate is a
function of the plan, which consists of public facts. It is made before anything is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tacit.algebra import OPERATORS
from tacit.errors import TacitError
from tacit.service.runner._clock import Slot
from tacit.strategies import MAX_GROUPS, OctaveCells

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tacit.core import Plan
    from tacit.service._database import ServiceRow
    from tacit.service._settings import ServiceSettings
    from tacit.service.runner._outcomes import Flight


# Milliseconds of one processor, measured on tables of 20,000 rows; see docs/proofs/service_timing.md.
_MECHANISM: Final = 4.0
_CHOICE: Final = 3.0  # more for a median and other quantiles
_GROUP: Final = 0.06  # for each group of each mechanism
_CELL: Final = 0.0008  # for each candidate of a quantile in each group
_RANGE: Final = 0.6  # to find the bounds of each group, where a plan finds them
_SUM: Final = 2.0  # for each further range on which values are summed
_PASS: Final = {"FoundCells": 4.5, "FoundCandidates": 12.0}  # to read the rows again for each further range
_LINE: Final = 0.0004  # for each cell of each group that such a pass may return
_MAX_LINES: Final = 20_000
_PRIVATE_GROUPS: Final = 1000  # nobody outside may know how many there are
_OPERATOR: Final = 0.5  # for each operator of an expression, read for every row
_PIECE: Final = 0.05  # for each further text of which the operator's longest text is joined
_MAX_PIECES: Final = 8_192  # a text has at most 65,536 characters
_KEPT: Final = 0.25  # more for each text of which a column of a subquery is joined
_ALONE: Final = 6.0  # more for a statistic that needs a statement of its own
_ARGUMENT: Final = 0.05  # for each argument of an operator, such as the constants of IN
_READS_TEXT: Final = 3.0  # more for an operator that reads text
_CONVERTS: Final = 8.0  # more for one that converts one kind to another
_MAKES_TEXT: Final = 20.0  # more for one that makes text
_ROWS: Final = {"Project": 0.3, "Where": 0.3, "PerUnit": 25.0, "JoinUnits": 25.0, "JoinPublic": 25.0}
_GRAPH: Final = 200.0  # for a question to a graph: degrees, triangles
_FIT: Final = 300.0  # for what is fitted to the answer: synthetic rows, a regression
_MAX_LAG: Final = 10_000


def work_of(plan: Plan[Any]) -> int:
    """Estimate the work of one draw of a plan: milliseconds on a quiet machine, from public facts alone.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
    >>> work_of(visits.sql("SELECT COUNT(*) AS n FROM data").plan(epsilon=1))
    5
    """
    work = _MECHANISM * len(plan.mechanisms)
    for part in _parts(plan.question):
        work += _part_work(part)
    return math.ceil(work)


def _part_work(part: Mapping[str, Any]) -> float:
    """Estimate what one table, one set of cross tables or one other question about rows needs."""
    if "graph" in part:
        return _GRAPH
    fit = _FIT if "synthesize" in part or part.get("asks") == "regress" else 0.0
    if "steps" in part:
        return fit + _table_work(part)
    return fit + (_cross_work(part) if "crosstabs" in part else _counted_work(part))


def _parts(question: Any) -> Iterator[Mapping[str, Any]]:
    """Yield what a question asks of tables, wherever it stands in its document."""
    match question:
        case {"steps": list()} | {"measured": list(), "crosstabs": list()} | {"counted": dict()}:
            yield question
        case {"synthesize": dict()} | {"graph": str(), "ask": str()}:
            yield question
        case dict():
            for value in question.values():
                yield from _parts(value)
        case list():
            for value in question:
                yield from _parts(value)


def _table_work(part: Mapping[str, Any]) -> float:
    keys, by = part.get("keys"), part.get("by")
    groups = len(keys) if isinstance(keys, list) else _PRIVATE_GROUPS if by else 1
    work, columns = _relation_work(part.get("rows"))
    work += _search_work(part, groups, work, columns)
    for expression in _expressions([by, part["steps"]]):
        work += _expression_work(expression, columns)[0]
    for step in part["steps"]:
        work += _GROUP * groups
        statistic = (step.get("statistic") or {}) if isinstance(step, dict) else {}
        bins = statistic.get("bins")
        if statistic.get("node") == "DistinctCounts":
            work += _ALONE
        if isinstance(bins, dict):
            work += _CHOICE + _CELL * groups * _size(bins)
    return work


def _search_work(part: Mapping[str, Any], groups: int, rows: float, columns: Mapping[str, int]) -> float:
    """Return what a plan needs more that finds bounds: each group may have a range of its own.

    Cells and candidates on each range are counted in a statement of its own, which reads all rows; `rows` is
    the work of the relation.
    """
    ranges = 1 if groups > MAX_GROUPS else groups
    statistics: list[Mapping[str, Any]] = []  # what several steps share is read once
    for step in part["steps"]:
        statistic = step.get("statistic") if isinstance(step, dict) else None
        if isinstance(statistic, dict) and statistic not in statistics:
            statistics.append(statistic)
    work = 0.0
    for statistic in statistics:
        bins, grid = statistic.get("bins") or {}, statistic.get("grid") or {}
        again = sum(_expression_work(one, columns)[0] for one in _expressions([part.get("by"), statistic]))
        if bins.get("node") == "OctaveBins":
            work += _RANGE * ranges
        elif bins.get("node") in _PASS:
            lines = min(groups * _size(bins), _MAX_LINES)
            work += ranges * (_PASS[bins["node"]] + _LINE * lines + rows + again)
        elif grid.get("node") == "FoundGrid":
            work += ranges * (_SUM + again)
    return work


def _cross_work(part: Mapping[str, Any]) -> float:
    sizes = [_size(axis) for axis in part["crosstabs"]]
    cells: int = sum(math.prod(sizes[i] for i in columns) for columns in part["measured"])
    work, columns = _relation_work(part.get("rows"))
    axes = sum(_expression_work(one, columns)[0] for one in _expressions(part["crosstabs"]))
    return work + axes + _GROUP * cells


def _counted_work(part: Any) -> float:
    """Return the work of all expressions of a question that counts rows, each read from the columns."""
    return sum(_expression_work(one, {})[0] for one in _expressions(part)) + sum(_subqueries(part))


def _subqueries(document: Any) -> Iterator[float]:
    """Yield the work of each relation in a document, without its expressions."""
    match document:
        case dict():
            yield _ROWS.get(str(document.get("node")), 0.0)
            for value in document.values():
                yield from _subqueries(value)
        case list():
            for value in document:
                yield from _subqueries(value)


def _size(document: Any) -> int:
    """Return how many cells an axis has: a list of values or of cuts, or a size, whichever it names."""
    match document:
        case {"size": int(size)}:
            return size
        case {"node": "OctaveBins", "integer": bool(integer)}:
            return OctaveCells(integer=integer).size
        case dict():
            return max([1, *map(_size, document.values())])
        case list():
            return max(1, len(document))
    return 1


def _relation_work(node: Any) -> tuple[float, dict[str, int]]:
    """Return the work of a relation, and of how many texts each of its columns is joined."""
    match node:
        case {"node": "Project", "input": inner, "columns": made}:
            below, columns = _relation_work(inner)
            work, columns = _made(made, columns)
        case {"node": "PerUnit", "input": inner, "by": made, "measures": measures}:
            below, columns = _relation_work(inner)
            expression_work = sum(_expression_work(one, columns)[0] for one in _expressions(measures))
            work, columns = _made(made, columns)
            work += expression_work
        case {"node": "Where", "input": inner, "predicate": predicate}:
            below, columns = _relation_work(inner)
            work = _expression_work(predicate, columns)[0]
        case {"node": "JoinUnits", "left": left, "right": right}:
            (below, columns), (work, others) = _relation_work(left), _relation_work(right)
            columns = {**columns, **others}
        case {"node": "JoinPublic", "left": left, "on": on}:
            below, columns = _relation_work(left)
            work = _expression_work(on, columns)[0]
        case _:
            return 0.0, {}
    return _ROWS[node["node"]] + below + work, columns


def _made(definitions: Any, columns: Mapping[str, int]) -> tuple[float, dict[str, int]]:
    """Return the work of the columns that a relation makes, and of how many texts each is joined."""
    works = {name: _expression_work(expression, columns) for name, expression in definitions}
    pieces = {name: joined for name, (_, joined) in works.items()}
    copied_work = _KEPT * sum(joined for joined in pieces.values() if joined > 1)
    return copied_work + sum(work for work, _ in works.values()), pieces


def _expressions(document: Any) -> Iterator[Any]:
    """Yield the expressions in a document."""
    match document:
        case {"node": "Call"}:
            yield document
        case dict():
            for value in document.values():
                yield from _expressions(value)
        case list():
            for value in document:
                yield from _expressions(value)


def _expression_work(node: Any, columns: Mapping[str, int]) -> tuple[float, int]:
    """Return the work of an expression, and of how many texts its value is joined."""
    match node:
        case {"node": "Column", "name": name}:
            return 0.0, columns.get(name, 1)
        case {"node": "Call", "op": op, "args": args}:
            inner = [_expression_work(one, columns) for one in args]
            sizes = [pieces for _, pieces in inner]
            longest = min(_MAX_PIECES, sum(sizes) if op == "concat" else max(sizes, default=1))
            operator_work = _OPERATOR + _ARGUMENT * len(args) + _PIECE * (longest - 1) + _text_work(op)
            return sum(work for work, _ in inner) + operator_work, longest
    return 0.0, 1


def _text_work(op: str) -> float:
    """Return what an operator needs more where it reads or makes text, or converts one kind to another."""
    operator = OPERATORS[op]
    if operator.gives == "text":
        return _MAKES_TEXT
    if op.startswith("to_"):
        return _CONVERTS
    return _READS_TEXT if "text" in operator.takes else 0.0


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """How much estimated work a dataset takes on at a time.

    Parameters
    ----------
    total
        Of all draws that hold a slot.
    share
        Of one plan, and of all draws of one person that hold a slot.
    """

    total: float
    share: float

    @classmethod
    def of(cls, settings: ServiceSettings, lag: int) -> WorkLimits:
        """Return the limits of a dataset with a lag: they grow with the time that a draw may compute.

        Examples
        --------
        >>> from tacit.service import ServiceSettings
        >>> WorkLimits.of(ServiceSettings(), lag=4)
        WorkLimits(total=900.0, share=450.0)
        """
        slot = Slot.at(0, lag, settings.tick)
        total = settings.work * max(0.0, slot.store_at - slot.start_at)
        return cls(total, total * float(settings.share))


def check_work(settings: ServiceSettings, lag: int, plan: Plan[Any]) -> int:
    """Refuse a plan that is too much work for one draw; return its estimated work.

    Guarantee: nothing is charged, and the refusal is a function of the plan and of the settings.
    """
    work = work_of(plan)
    if work > WorkLimits.of(settings, lag).share:
        raise too_much_work(settings, lag, work)
    return work


def too_much_work(settings: ServiceSettings, lag: int, work: float) -> TacitError:
    """Return the refusal of a question that is more work than one draw may be."""
    times = work / WorkLimits.of(settings, lag).share
    return TacitError(
        "question-too-large",
        f"this question is about {times:.2g} times the work that one draw of this dataset may be",
        why="an answer that is not ready at its time would pause the dataset for everybody",
        fix=f"ask in smaller parts: fewer columns or groups at once{_raise_lag(settings, work)}",
    )


def _raise_lag(settings: ServiceSettings, work: float) -> str:
    """Return the smallest lag with which the question would be admitted, as advice to the curator."""
    for lag in range(2, _MAX_LAG):
        if WorkLimits.of(settings, lag).share >= work:
            return f"; or ask the curator to raise the lag of the dataset to {lag}"
    return ""


@dataclass(slots=True)
class BoundaryAdmission:
    """What one boundary admits of a dataset's waiting queries, beside the draws that hold a slot already.

    Guarantee: what is admitted is a function of requests, settings, policies and pauses. A plan that holds a
    slot is not admitted again, so that nobody's charge waits for somebody else's computation.

    Parameters
    ----------
    width
        How many draws may hold a slot.
    limits
        How much work they may be, in all and for one person.
    """

    width: int
    limits: WorkLimits
    plans: set[str] = field(default_factory=set)
    work: dict[str, float] = field(default_factory=dict)  # by person
    draws: int = 0
    full: bool = False

    def hold(self, flight: Flight) -> None:
        """Count a draw that holds a slot."""
        self._count(flight.plan, flight.person, flight.work)

    def admits(self, row: ServiceRow) -> bool:
        """Whether a waiting query is admitted now; if so, it holds a slot from now on.

        A person beyond the own share waits alone. Where the whole dataset has no room, all later queries wait
        too, so that small ones cannot keep a large one waiting for ever.
        """
        plan, person, work = str(row["plan"]), str(row["person"]), float(row["work"])
        if self.full or self.draws >= self.width or plan in self.plans:
            return False
        person_work = self.work.get(person, 0.0)
        if person_work and person_work + work > self.limits.share:
            return False
        if self.draws and sum(self.work.values()) + work > self.limits.total:
            self.full = True
            return False
        self._count(plan, person, work)
        return True

    def _count(self, plan: str, person: str, work: float) -> None:
        self.draws += 1
        self.plans.add(plan)
        self.work[person] = self.work.get(person, 0.0) + work


def lag_of(policy: Mapping[str, Any], settings: ServiceSettings) -> int:
    """Return after how many boundaries an answer of a dataset leaves."""
    return int(policy.get("lag") or settings.lag)
