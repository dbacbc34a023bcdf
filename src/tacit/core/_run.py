"""The core's run: one charge, many numbered releases, each durable before it is handed out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from tacit.core._certificate import Certificate, certificate_body
from tacit.core._release import Content, Release
from tacit.core._task import DrawnBefore, measure
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.core._plan import Plan
    from tacit.core._protocols import JSON, Measurement, Noisy
    from tacit.core._task import RunTask

C = TypeVar("C", bound=Content)

_SHORT = 2**16  # a payload of at most so many bytes is remembered
_LENGTH = 8  # bytes that say how long a part of a run's secret is


class NoisyInstalments(Mapping[int, Sequence[Any]]):
    """The noisy integers of a run's stored instalments by number, up to one of them; read when asked for."""

    def __init__(
        self,
        run: Any,
        max_number: int,
        cache: dict[int, Sequence[Noisy]],
        noisy: Sequence[Noisy] | None = None,
    ) -> None:
        self._held = run
        self._last = max_number
        self._known = cache
        self._own = noisy  # those of the last one, if they were read already

    def __getitem__(self, number: int) -> Sequence[Noisy]:
        if not 1 <= number <= self._last:
            raise KeyError(number)
        if number == self._last and self._own is not None:
            return self._own
        if number in self._known:
            return self._known[number]
        try:
            payload = self._held.instalment(number).payload
        except TacitError as error:
            if error.code in {"instalment-lost", "instalment-not-drawn"}:
                raise KeyError(number) from None
            raise
        noisy: Sequence[Noisy] = json.loads(payload)["noisy"]
        if len(payload) <= _SHORT:
            self._known[number] = noisy
        return noisy

    def __iter__(self) -> Iterator[int]:
        return (number for number in range(1, self._last + 1) if number in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Run(Generic[C]):
    """A series of releases that one charge pays for; made by `Plan.run`.

    Guarantee: the charge is durable before the data is touched. Each instalment is drawn at most once, is
    durable before it is returned, and is free from then on. After a crash, the same plan continues where the
    run stopped; an instalment that was started but not stored is lost.

    Examples
    --------
    >>> import tacit as tc
    >>> from tacit.core import (
    ...     AnswerTable, Cells, Dataset, Plan, RunTask, Step, open_account, read_identity
    ... )
    >>> noise = tc.mechanisms.DiscreteLaplace(epsilon=0.001, sensitivity=1)
    >>> daily = RunTask(
    ...     document="daily counts", instalments=365, open=lambda before: 40 + before.number,
    ...     steps_of=lambda number: (Step(noise, lambda people, noisy: people),),
    ...     reading=lambda number, noisy, confidence: AnswerTable(
    ...         {}, {"n": Cells(tuple(noisy[number]), (None,), (None,))}, 0.95),
    ... )
    >>> ledger, identity = tc.Ledger.memory(), read_identity(name="visits", unit="patient_id")
    >>> open_account(identity, tc.Budget(epsilon=1), ledger)
    >>> plan = Plan.of(Dataset(identity, ledger), daily, promised={"epsilon": 0.365})
    >>> run = plan.run()
    >>> first = run.next()
    >>> run[1].value == first.value, run.remaining, float(ledger.remaining("visits").epsilon)
    (True, 364, 0.635)
    """

    def __init__(self, plan: Plan[C], held: Any, body: Mapping[str, JSON]) -> None:
        self.plan = plan
        self._body = body
        self._member = plan._members[0]  # noqa: SLF001 - a run is a part of its plan
        self._task = cast("RunTask[Any, Any]", self._member.task)
        self._held = held
        self._known: dict[int, Sequence[Noisy]] = {}

    @property
    def instalments(self) -> int:
        """How many instalments the run has."""
        return int(self._held.instalments)

    @property
    def remaining(self) -> int:
        """How many instalments can still be drawn."""
        return self.instalments - int(self._held.claimed)

    @property
    def state(self) -> bytes:
        """The task's own state after the last stored instalment; empty at first. It is secret."""
        return (_parts(self._held.secret) or [b""])[0]

    def next(self) -> Release[C]:
        """Draw the next instalment and return it.

        If anything goes wrong, one error without details is raised, and this instalment is lost. After the
        last instalment, ``run-finished`` is raised.
        """

        def compute(number: int, secret: bytes) -> tuple[bytes, bytes]:
            earlier = NoisyInstalments(self._held, number - 1, self._known)
            stage = next(one for one in self._member.stages if number <= one.last)
            noisy, state = draw_instalment(self._task, stage.mechanisms, number, earlier, secret)
            return json.dumps({"noisy": noisy, "certificate": self._body}).encode(), state

        return self._read(self._held.draw(compute))

    def __getitem__(self, number: int) -> Release[C]:
        """Return an instalment that was drawn before, by its number from 1; free."""
        return self._read(self._held.instalment(number))

    def __iter__(self) -> Iterator[Release[C]]:
        """Return the instalments that were drawn before, in order; those that are lost are skipped."""
        return (self._read(instalment) for instalment in self._held)

    def __repr__(self) -> str:
        return f"Run of {self.plan.name}: {self.instalments:,} instalments, {self.remaining:,} to be drawn"

    def _read(self, instalment: Any) -> Release[C]:
        stored = json.loads(instalment.payload)
        noisy_integers = stored["noisy"]
        if len(instalment.payload) <= _SHORT:
            self._known[instalment.number] = noisy_integers
        noisy = NoisyInstalments(self._held, instalment.number, self._known, noisy_integers)
        content = cast("C", self._task.reading(instalment.number, noisy, self.plan.confidence))
        durability = getattr(self._member.ledger, "kept", "")
        certificate = Certificate.of_instalment(
            instalment, self.instalments, stored.get("certificate"), self._body, durability
        )
        release = Release(content, certificate, question=self.plan.asked)
        present = self.plan._present  # noqa: SLF001
        presented = release if present is None else present(release)
        return presented.bound_by([self._member.ledger])


def paid_run(plan: Plan[C], *, account: str | None = None) -> Run[C] | None:
    """Return the run of a plan if it is paid for; None if there is none, or this account has to pay.

    Guarantee: nothing is charged, nothing is recorded, and the data is not touched.

    Parameters
    ----------
    plan
        A plan that is a run of instalments.
    account
        The account below the dataset's that has paid; by default the dataset's own.

    Examples
    --------
    >>> import tacit as tc
    >>> flu = tc.stream(
    ...     None, name="flu", level="event", start="2026-01-01", days=30, budget=tc.Budget(epsilon=1)
    ... )
    >>> plan = flu.daily(cases=tc.count()).plan(epsilon=1)
    >>> paid_run(plan) is None
    True
    >>> _ = plan.run()
    >>> paid_run(plan).instalments > 30
    True
    """
    member = plan._members[0]  # noqa: SLF001 - a run is a part of its plan
    if member.ledger is None:
        return None
    identity = member.identity
    ledger = cast("Any", member.ledger)
    ledger_run = ledger.paid_run(account or identity.name, member.hash, version=identity.version)
    return None if ledger_run is None else Run(plan, ledger_run, certificate_body(member))


def draw_instalment(
    task: RunTask[Any, Any],
    mechanisms: Sequence[Measurement],
    number: int,
    earlier: Mapping[int, Sequence[Noisy]],
    secret: bytes,
) -> tuple[list[Noisy], bytes]:
    """Run one instalment of a task; return the noisy integers, and the run's new secret.

    The mechanisms must be those that were charged. The secret holds the task's own state and the memory of
    each mechanism that has one.
    """
    state, *memories = _parts(secret) or [b""]
    memories += [b""] * (len(mechanisms) - len(memories))
    steps = task.steps_of(number)
    if [step.mechanism.to_json() for step in steps] != [charged.to_json() for charged in mechanisms]:
        raise RuntimeError("the mechanisms of this instalment are not those that were charged")
    with np.errstate(all="ignore"):  # a warning or a failure would say something about one value
        data = task.open(DrawnBefore(number, earlier, state))
        noisy = measure(steps, data, memories)
        state_left = task.left(data)
    return noisy, _joined([state if state_left is None else state_left, *memories])


def _joined(parts: Sequence[bytes]) -> bytes:
    """Write parts one after another, each after its length."""
    return b"".join(len(part).to_bytes(_LENGTH, "big") + part for part in parts)


def _parts(secret: bytes) -> list[bytes]:
    """Read what `_joined` wrote."""
    parts: list[bytes] = []
    while secret:
        end = _LENGTH + int.from_bytes(secret[:_LENGTH], "big")
        parts.append(secret[_LENGTH:end])
        secret = secret[end:]
    return parts
