"""The core's run of a paid plan: exact integers go to the mechanisms, noisy ones come back. Only here."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING, Any, Literal

from tacit.core._run_stages import check_composition, run_cost, run_laws, stages_of
from tacit.core._task import RunTask, Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from tacit.accounting import Cost
    from tacit.core._protocols import JSON, Charger, Noisy
    from tacit.core._run_stages import Stage
    from tacit.core._unit import Identity


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
