"""The core's run of a paid plan: exact integers go to the mechanisms, noisy ones come back. Only here.

A run has stages: which mechanisms its instalments use, and what the whole run costs one unit.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, reduce
from itertools import groupby
from operator import add
from typing import TYPE_CHECKING, Any, Literal

from tacit.core._task import RunTask, Task
from tacit.errors import TacitError
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.accounting import Budget, Cost
    from tacit.core._protocols import JSON, Charger, Measurement, Noisy
    from tacit.core._unit import Identity


#: How the costs of a run's instalments make its cost, in words.
COMPOSITIONS = {
    "sum": "every instalment has a cost, and the costs add up",
    "largest": "nobody is in two instalments, so the run costs as much as its most expensive instalment",
    "once": "one mechanism spans all instalments, and its cost is that of all of them together",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """Instalments in a row that use equal mechanisms, from the number ``first`` to ``last``."""

    first: int
    last: int
    mechanisms: tuple[Measurement, ...]

    @property
    def count(self) -> int:
        """How many instalments there are."""
        return self.last - self.first + 1

    @property
    def cost(self) -> Cost:
        """The cost of one of them."""
        return reduce(add, [mechanism.cost for mechanism in self.mechanisms])


def stages_of(task: RunTask[Any, Any]) -> tuple[Stage, ...]:
    """Return the instalments of a task, those with equal mechanisms together."""
    stages: list[Stage] = []
    for number in range(1, task.instalments + 1):
        mechanisms = task.mechanisms_of(number)
        if stages and mechanisms == stages[-1].mechanisms:
            stages[-1] = Stage(stages[-1].first, number, stages[-1].mechanisms)
        else:
            stages.append(Stage(number, number, mechanisms))
    Integer(1).read("instalments", task.instalments)
    return tuple(stages)


def check_composition(task: RunTask[Any, Any]) -> None:
    """Refuse a run that is charged once although its mechanisms have no memory.

    A cost that is charged once is that of mechanisms that remember what they have released. One without a
    memory would draw again for every instalment.
    """
    forgetful = [one for one in task.mechanisms_of(1) if not hasattr(one, "release_next")]
    if task.composition == "once" and forgetful:
        raise TacitError(
            "bad-parameter",
            "a mechanism without a memory cannot be charged once for all instalments of a run",
            why="it draws new noise for each instalment, so its costs add up",
            fix="a mechanism with release_next, or the composition sum",
        )


def run_cost(each: Sequence[tuple[int, Cost]], composition: str) -> Cost:
    """Return what a whole run costs one unit, from the number of instalments of each cost.

    Examples
    --------
    >>> from tacit.accounting import Cost
    >>> days = [(364, Cost.pure(0.01)), (1, Cost.pure(0.5))]
    >>> run_cost(days, "sum").epsilon(delta=0), run_cost(days, "largest").epsilon(delta=0)
    (4.14, 0.5)
    """
    from tacit.accounting import Cost

    if composition == "sum":
        return reduce(add, [times * cost for times, cost in each])
    if composition == "largest":  # twice, so that one unit that may move between instalments is refused
        return Cost.parallel(*(cost for times, cost in each for _ in range(min(times, 2))))
    if composition == "once" and len(each) == 1:
        return each[0][1]
    raise TacitError(
        "bad-parameter",
        f"the costs of a run's instalments cannot be composed as {composition!r}",
        why="a cost that is charged once needs the same mechanisms in every instalment",
        fix=f"one of: {', '.join(COMPOSITIONS)}",
    )


def run_laws(stages: Sequence[Stage], composition: str) -> tuple[Mapping[str, JSON], ...]:
    """Return the mechanisms of a run as its certificates state them."""
    return tuple(
        {"instalments": [stage.first, stage.last], "composition": composition, **mechanism.to_json()}
        for stage in stages
        for mechanism in stage.mechanisms
    )


def _read_share(text: object) -> Fraction:
    """Read the share of a sample as a task writes it, which is a fraction of short numbers."""
    if not isinstance(text, str) or re.fullmatch(r"\d{1,20}/[1-9]\d{0,19}", text) is None:
        raise ValueError("not a share")
    return Fraction(text)


def _full_law(law: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mechanism of a batch as it would be alone."""
    return {name: value for name, value in law.items() if name != "part"}


def cost_of_laws(laws: Sequence[Mapping[str, Any]]) -> Cost:
    """Return the cost that the mechanisms in a certificate make, of one draw or of a whole run."""
    from tacit.accounting import Cost

    if any("part" in law for law in laws):  # a batch, whose parts may be sampled, each by itself
        parts = groupby(laws, key=lambda law: law["part"])
        return reduce(add, [cost_of_laws([_full_law(law) for law in part]) for _, part in parts])
    if not any("instalments" in law for law in laws):
        total: Cost = reduce(add, [Cost.from_json(law["cost"]) for law in laws])
        [share] = {law.get("sampled") for law in laws}
        return total if share is None else total.sampled(_read_share(share))
    each: list[tuple[int, Cost]] = []
    for (start, end), stage in groupby(laws, key=lambda law: tuple(law["instalments"])):
        each.append((end - start + 1, reduce(add, [Cost.from_json(law["cost"]) for law in stage])))
    [composition] = {law["composition"] for law in laws}
    return run_cost(each, composition)


@dataclass(frozen=True)
class Member:
    """One dataset's part in a plan: who it is, what it is asked, and the ledger that pays.

    Without a ledger the part is local: it runs on the device of the person who answers, and nobody is
    charged. What follows from the question and the mechanisms is worked out once, when it is first needed.
    """

    identity: Identity
    task: Task[Any, Any] | RunTask[Any, Any]
    ledger: Charger | None
    promised: Mapping[str, Fraction] = field(default_factory=dict)
    asked: str = ""
    record: Literal["words", "shape"] = "words"
    #: What an audit of the plan found, for the certificate; not part of the plan's identity.
    audit: Mapping[str, JSON] | None = None
    #: The packages outside Tacit that declare what is asked, with their versions; the certificate names them.
    packages: tuple[str, ...] = ()

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The instalments of a run, by their mechanisms; of a plan with one draw, none."""
        return stages_of(self.task) if isinstance(self.task, RunTask) else ()

    @cached_property
    def cost(self) -> Cost:
        """The cost of all mechanisms together, for one unit of this dataset; of a run, that of all of it."""
        if isinstance(self.task, RunTask):
            check_composition(self.task)
            return run_cost([(stage.count, stage.cost) for stage in self.stages], self.task.composition)
        return _draw_cost(self.task)

    @cached_property
    def promise(self) -> Budget | None:
        """What the plan promises, for the ledger to add up; None if its cost does not keep it as stated."""
        from tacit.accounting import Budget

        if not self.promised.get("epsilon"):
            return None
        promise = Budget(self.promised["epsilon"], self.promised.get("delta", 0))
        try:
            self.cost.spend_at((), promise)
        except TacitError:
            return None
        return promise

    @cached_property
    def laws(self) -> tuple[Mapping[str, JSON], ...]:
        """The mechanisms with their exact parameters, as the certificate states them."""
        if isinstance(self.task, RunTask):
            check_composition(self.task)
            return run_laws(self.stages, self.task.composition)
        return _draw_laws(self.task)

    @cached_property
    def blocks(self) -> tuple[str, ...]:
        """The blocks of the data that the answer depends on; none stands for all of it."""
        return (self.identity.block,) if self.identity.block else self.task.blocks

    @cached_property
    def hash(self) -> str:
        """Equal for equal questions of the same declared data with the same noise."""
        return plan_hash(self.identity.document(), self.question, self.laws)

    @cached_property
    def question(self) -> str:
        """The digest of the question's document."""
        return digest_of(self.task.question)


def _draw_cost(task: Task[Any, Any]) -> Cost:
    """Return what one draw of a task costs: that of a batch is the sum over its parts."""
    if task.parts:
        return reduce(add, [_draw_cost(part) for part in task.parts])
    total: Cost = reduce(add, [step.mechanism.cost for step in task.steps])
    return total if task.sampled is None else total.sampled(task.sampled)


def _draw_laws(task: Task[Any, Any]) -> tuple[Mapping[str, JSON], ...]:
    """Return the mechanisms of one draw with their labels; those of a batch name their part."""
    if not task.parts:
        return tuple({**step.label, **step.mechanism.to_json()} for step in task.steps)
    return tuple(
        {**step.label, "part": number, **step.mechanism.to_json()}
        for number, part in enumerate(task.parts, 1)
        for step in part.steps
    )


def check_source(member: Member) -> None:
    """Refuse a draw before its charge, if the task says that its source was never there (``unavailable``).

    Whether a file exists is no secret. A stored release needs no source.
    """
    refusal = member.task.unavailable()
    if refusal is None:
        return
    ledger, identity = member.ledger, member.identity
    stored = getattr(ledger, "stored_release", None)
    if stored is None or stored(identity.name, member.hash, version=identity.version) is None:
        raise refusal


def plan_hash(dataset: object, question: object, mechanisms: object) -> str:
    """Return a plan's hash, from the parts that its certificate states."""
    return digest_of({"dataset": dataset, "question": question, "mechanisms": mechanisms})


def together_hash(hashes: Sequence[str], *, disjoint: bool) -> str:
    """Return the hash of a plan over several datasets, from the hashes of its members."""
    return digest_of([disjoint, *hashes])


def digest_of(document: object) -> str:
    """Return the digest of a JSON document; equal documents, however they are written, have the same one."""
    return hashlib.sha256(json.dumps(document, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def run(task: Task[Any, Any], certificate: Mapping[str, JSON] | None = None) -> bytes:
    """Run a task and return what is stored of it: the noisy integers and the certificate's body, as JSON."""
    stored = {"noisy": task.draw(), **({} if certificate is None else {"certificate": certificate})}
    return json.dumps(stored).encode()


def add_up(parts: Sequence[Noisy]) -> Noisy:
    """Add noisy integers of several members, entry by entry.

    Examples
    --------
    >>> add_up([[[1, 2], 3], [[10, 20], 30]])
    [[11, 22], 33]
    """
    if isinstance(parts[0], list):
        return [add_up(entries) for entries in zip(*parts, strict=True)]
    return sum(parts)
