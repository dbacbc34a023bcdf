"""What a field brings to a plan: steps, each of which binds exact integers to its mechanism, and a reading.

A step holds both a mechanism and the way to the integers that it gets. So noise that is calibrated for one
statistic never meets the integers of another, whatever the order of the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from fractions import Fraction

    from tacit.core._protocols import JSON, Exact, Measurement, Noisy, RememberingMeasurement
    from tacit.core._release import Content
    from tacit.errors import TacitError

D = TypeVar("D")
C_co = TypeVar("C_co", bound="Content", covariant=True)


class Transactional(Protocol):
    """What can be read in one consistent transaction, such as an engine."""

    def transaction(self) -> AbstractContextManager[Any]:
        """Open a consistent reading."""


class SharedReadings:
    """The consistent readings of one draw: each source is opened once, by the first part that needs it.

    All parts of a batch that ask one engine so see the same rows.
    """

    def __init__(self, stack: ExitStack, *, shared: bool) -> None:
        self._stack, self._shared = stack, shared
        self._opened: dict[int, Any] = {}

    @classmethod
    @contextmanager
    def opened(cls, *, shared: bool = True) -> Iterator[Self]:
        """Open nothing yet, and close at the end whatever was opened; `shared` if there are several parts."""
        with ExitStack() as stack:
            yield cls(stack, shared=shared)

    def of(self, source: Transactional) -> Any:
        """Return the reading of a source."""
        if id(source) not in self._opened:
            self._opened[id(source)] = self._stack.enter_context(source.transaction())
        return self._opened[id(source)]

    @contextmanager
    def once(self, source: Transactional) -> Iterator[Any]:
        """Open the reading of a source for a task that reads everything at once and then works for long.

        Without other parts it is closed again before the work: a database does not wait for the noise.
        """
        if self._shared:
            yield self.of(source)
        else:
            with source.transaction() as reading:
                yield reading


@dataclass(frozen=True, slots=True, eq=False)
class Step(Generic[D]):
    """One mechanism of a question, and the exact integers that it gets.

    Parameters
    ----------
    mechanism
        The noise, or the choice. It is calibrated for exactly these integers.
    exact
        Computes the integers from what the task has read and from the noisy results of the steps before
        this one: what is measured later may depend on them, and on nothing else that leaves.
    label
        What the integers are and what the guarantee assumes, for the certificate.

    Examples
    --------
    >>> import tacit as tc
    >>> step = Step(tc.mechanisms.DiscreteLaplace(epsilon=1, sensitivity=1), lambda rows, _: len(rows))
    >>> step.exact(["ana", "ben"], [])
    2
    """

    mechanism: Measurement
    exact: Callable[[D, Sequence[Noisy]], Exact]
    label: Mapping[str, JSON] = field(default_factory=dict)


def _is_readable() -> None:
    """Say that the source can be read."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TaskFacts:
    """What every task says about itself beside its steps; all of it follows from public facts.

    Parameters
    ----------
    document
        What is asked, as a document of public facts, or a function that returns it. With the dataset's
        identity and the mechanisms it is the plan's identity: two plans with the same three give the same
        stored answer. Names and order of released columns do not belong here.
    blocks
        The blocks of the data that the answer depends on; none stands for all of it.
    statements
        The statements that will run, where the field has any, or a function that returns them.
    left_out
        Which rows are not counted and which groups are not shown, in words, or a function that returns it.
    numerics
        What the certificate says about floats, where the integers are not exact.
    unavailable
        Returns why nothing can be drawn now, such as a missing file, which is no secret; asked before the
        charge.
    subject
        What the field or an audit needs of this task later, such as the question on invented rows.
    """

    document: JSON | Callable[[], JSON]
    blocks: tuple[str, ...] = ()
    statements: Sequence[str] | Callable[[], Sequence[str]] = ()
    left_out: Sequence[str] | Callable[[], Sequence[str]] = ()
    numerics: str = ""
    unavailable: Callable[[], TacitError | None] = _is_readable
    subject: object = None

    @property
    def question(self) -> JSON:
        """What is asked, as a document of public facts."""
        return self.document() if callable(self.document) else self.document

    @property
    def sql(self) -> tuple[str, ...]:
        """The statements that will run, where the field has any."""
        return tuple(self.statements() if callable(self.statements) else self.statements)

    @property
    def omissions(self) -> tuple[str, ...]:
        """Which rows are not counted and which groups are not shown, in words."""
        return tuple(self.left_out() if callable(self.left_out) else self.left_out)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Task(TaskFacts, Generic[D, C_co]):
    """A question that is drawn at once: what it reads, its steps, and how their results are read.

    Parameters
    ----------
    open
        Reads the data that the steps need; called once for each draw, after the charge alone. It is given the
        readings that all parts of a batch share.
    steps
        The steps, in the order in which they run.
    reading
        Reads the content of the release off the noisy integers: free post-processing.
    sampled
        The probability with which a unit is in the secret sample that the steps read; None for all units.
    parts
        Of a batch: the tasks that are drawn one after the other. It has no steps of its own.
    """

    open: Callable[[SharedReadings], D]
    steps: tuple[Step[D], ...]
    reading: Callable[[Sequence[Noisy], Fraction], C_co]
    sampled: Fraction | None = None
    parts: tuple[Task[Any, Any], ...] = ()

    @property
    def all_steps(self) -> tuple[Step[Any], ...]:
        """The steps, of a batch those of all parts."""
        return tuple(step for part in self.parts for step in part.all_steps) if self.parts else self.steps

    @property
    def mechanisms(self) -> tuple[Measurement, ...]:
        """The mechanisms in the order in which they run."""
        return tuple(step.mechanism for step in self.all_steps)

    def noisy(self, readings: SharedReadings) -> list[Noisy]:
        """Read the data and release the integers of every step; see `measure`."""
        if self.parts:
            return [noisy for part in self.parts for noisy in part.noisy(readings)]
        return measure(self.steps, self.open(readings))

    @np.errstate(all="ignore")  # a warning or a failure would say something about one value
    def draw(self) -> list[Noisy]:
        """Return the noisy integers of one draw, as plain JSON. This touches the data."""
        with SharedReadings.opened(shared=bool(self.parts)) as readings:
            return self.noisy(readings)


@dataclass(frozen=True, slots=True, eq=False)
class DrawnBefore:
    """What an instalment of a run may use of those before it.

    Parameters
    ----------
    number
        The number of the instalment, from 1.
    noisy
        The noisy integers of the earlier instalments by number; those that are lost are missing.
    state
        What the last stored instalment left, empty at first.
    """

    number: int
    noisy: Mapping[int, Sequence[Noisy]]
    state: bytes


def _no_state(_data: object) -> None:
    """Leave the state of the run as it is."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RunTask(TaskFacts, Generic[D, C_co]):
    """A question that is drawn in numbered instalments: days of a stream, rounds, checkpoints.

    The number of instalments and the mechanisms of each are public facts.

    Parameters
    ----------
    instalments
        How many there are.
    steps_of
        Returns the steps of an instalment by its number; equal mechanisms make one stage of the run.
    open
        Reads what an instalment needs. What it computes may depend on the noisy integers of those before it.
    reading
        Reads the content of an instalment off the noisy integers up to it.
    left
        Returns the run's new state after an instalment was drawn, or None if it stays; it is kept secret.
    composition
        How the costs of instalments compose: ``"sum"``; ``"largest"`` where no unit is in two instalments;
        ``"once"`` where each mechanism spans the run.
    """

    instalments: int
    steps_of: Callable[[int], tuple[Step[D], ...]]
    open: Callable[[DrawnBefore], D]
    reading: Callable[[int, Mapping[int, Sequence[Noisy]], Fraction], C_co]
    left: Callable[[D], bytes | None] = _no_state
    composition: Literal["sum", "largest", "once"] = "sum"

    def mechanisms_of(self, number: int) -> tuple[Measurement, ...]:
        """Return the mechanisms of an instalment in the order in which they run."""
        return tuple(step.mechanism for step in self.steps_of(number))


def measure(steps: Sequence[Step[D]], data: D, memories: list[bytes] | None = None) -> list[Noisy]:
    """Release the exact integers of each step by its own mechanism; return the noisy ones as plain JSON.

    Parameters
    ----------
    steps, data
        The steps, and what they compute their integers from.
    memories
        In a run, what each mechanism that spans instalments remembers; changed in place.

    Examples
    --------
    >>> import tacit as tc
    >>> count = Step(tc.mechanisms.DiscreteLaplace(epsilon=50, sensitivity=1), lambda rows, _: len(rows))
    >>> measure([count], ["ana", "ben"])
    [2]
    """
    noisy: list[Noisy] = []
    for position, step in enumerate(steps):
        exact = step.exact(data, noisy)
        if memories is not None and hasattr(step.mechanism, "release_next"):
            remembering = cast("RememberingMeasurement", step.mechanism)
            noisy_integers, memories[position] = remembering.release_next(exact, memories[position])
        else:
            noisy_integers = step.mechanism.release(exact)
        noisy.append(plain(noisy_integers))
    return noisy


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
