"""The core's run of a paid plan: exact integers go to the mechanisms, noisy ones come back. Only here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING, Any, Literal

from tacit.core._run_stages import composition_of, run_cost, run_laws, stages_of

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.accounting import Cost
    from tacit.core._protocols import JSON, Charger, Exact, Measurement, Noisy, Task
    from tacit.core._run_stages import Stage
    from tacit.core._unit import Identity

__all__ = [
    "Member",
    "add_up",
    "check_source",
    "digest_of",
    "measure",
    "plain",
    "plan_hash",
    "run",
    "together_hash",
]


@dataclass(frozen=True)
class Member:
    """One dataset's part in a plan: who it is, what it is asked, and the ledger that pays.

    Without a ledger the part is local: it runs on the device of the person who answers, and nobody is
    charged. What follows from the question and the mechanisms is worked out once, when it is first needed.
    """

    identity: Identity
    task: Any  # a `Task` or a `RunTask`
    ledger: Charger | None
    promised: Mapping[str, Fraction] = field(default_factory=dict)
    asked: str = ""
    record: Literal["words", "shape"] = "words"
    #: What an audit of the plan found, for the certificate; not part of the plan's identity.
    audit: Mapping[str, JSON] | None = None

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The instalments of a run, by their mechanisms; of a plan with one draw, none."""
        return stages_of(self.task) if hasattr(self.task, "instalments") else ()

    @cached_property
    def cost(self) -> Cost:
        """The cost of all mechanisms together, for one unit of this dataset; of a run, that of all of it.

        A task whose mechanisms run on one Poisson sample of the units names its share (``sampled``). A task
        that is made of others names them (``tasks``), and their costs add up.
        """
        if self.stages:
            return run_cost([(stage.count, stage.cost) for stage in self.stages], composition_of(self.task))
        return _draw_cost(self.task)

    @cached_property
    def laws(self) -> tuple[Mapping[str, JSON], ...]:
        """The mechanisms with their exact parameters, as the certificate states them.

        A task may label each with what its integers are (``labels``).
        """
        if self.stages:
            return run_laws(self.stages, composition_of(self.task))
        mechanisms = self.task.mechanisms
        labels: Sequence[Mapping[str, JSON]] = getattr(self.task, "labels", ({},) * len(mechanisms))
        return tuple({**label, **one.to_json()} for label, one in zip(labels, mechanisms, strict=True))

    @cached_property
    def blocks(self) -> tuple[str, ...]:
        """The blocks of the data that the answer depends on; none stands for all of it.

        A task may name them (``blocks``), where its question reads no other rows.
        """
        return (self.identity.block,) if self.identity.block else tuple(getattr(self.task, "blocks", ()))

    @cached_property
    def hash(self) -> str:
        """Equal for equal questions of the same declared data with the same noise."""
        return plan_hash(self.identity.document(), self.question, self.laws)

    @cached_property
    def question(self) -> str:
        """The digest of the question's document."""
        return digest_of(self.task.question)


def _draw_cost(task: Any) -> Cost:
    """Return what one draw of a task costs."""
    if hasattr(task, "tasks"):
        return reduce(add, [_draw_cost(one) for one in task.tasks])
    total: Cost = reduce(add, [mechanism.cost for mechanism in task.mechanisms])
    share = getattr(task, "sampled", None)
    return total if share is None else total.sampled(share)


def check_source(member: Member) -> None:
    """Refuse a draw before its charge, if the task says that its source was never there (``unavailable``).

    Whether a file exists is no secret. A stored release needs no source.
    """
    unavailable = getattr(member.task, "unavailable", None)
    refusal = None if unavailable is None else unavailable()
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


def run(task: Task, certificate: Mapping[str, JSON] | None = None) -> bytes:
    """Run a task and return what is stored of it: the noisy integers and the certificate's body, as JSON.

    Each mechanism gets exactly one answer of the task. A task that yields too few or too many is wrong, and
    nothing of it is released.
    """
    noisy, _ = measure(task.mechanisms, task.integers())
    stored = {"noisy": noisy, **({} if certificate is None else {"certificate": certificate})}
    return json.dumps(stored).encode()


def measure(
    mechanisms: Sequence[Measurement],
    steps: Generator[Exact, Noisy, Any],
    release: Callable[[int, Measurement, Exact], Noisy] | None = None,
) -> tuple[list[Noisy], Any]:
    """Give each mechanism its exact integers; return the noisy ones, and what the generator returns.

    ``release`` takes the place of the mechanism's own `release`, where a mechanism has a memory.
    """
    noisy: list[Noisy] = []
    with closing(steps):  # what fails here leaves no transaction open
        exact = next(steps)
        for position, mechanism in enumerate(mechanisms):
            drawn = mechanism.release(exact) if release is None else release(position, mechanism, exact)
            noisy.append(drawn.tolist() if hasattr(drawn, "tolist") else plain(drawn))
            try:
                exact = steps.send(noisy[-1])
            except StopIteration as stopped:
                if len(noisy) == len(mechanisms):
                    return noisy, stopped.value
                break
    raise RuntimeError("a task must yield integers once for each of its mechanisms")


def plain(noisy: Any) -> Noisy:
    """Return what a mechanism released as plain JSON; whole numbers by key become pairs.

    Examples
    --------
    >>> import numpy as np
    >>> plain(np.array([[1, 2]])), plain({("A", 1.0): 5})
    ([[1, 2]], [[['A', 1.0], 5]])
    """
    if isinstance(noisy, Mapping):
        return [[plain(key), plain(value)] for key, value in noisy.items()]
    if hasattr(noisy, "tolist"):
        return noisy.tolist()
    if isinstance(noisy, list | tuple):
        return [plain(one) for one in noisy]
    return noisy


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
