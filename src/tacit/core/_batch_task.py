"""The task of a batch: several tasks that run one after the other in one paid draw."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from tacit.core._answer_batch import AnswerBatch, BatchAnswer

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from fractions import Fraction

    from tacit.core._protocols import JSON, Exact, Measurement, Noisy, Task
    from tacit.errors import TacitError

__all__ = ["BatchTask", "ShownAnswer"]


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """How one answer of a batch is read: its name, whose noisy integers, by which task, how confidently.

    Questions that differ in the names of their columns alone are measured once and read each in its own way.
    """

    name: str
    place: int
    reader: Task
    level: Fraction


@dataclass(frozen=True)
class BatchTask:
    """Several tasks about one dataset, each of which is measured once.

    Every task gets exactly the answers of its own mechanisms, so that the integers of one never reach the
    noise of another. Names and order of the answers are not part of the question.

    Parameters
    ----------
    tasks
        The tasks, in an order that does not depend on the order of the questions.
    shown
        The answers, in the order in which they were asked.
    """

    tasks: tuple[Task, ...]
    shown: tuple[ShownAnswer, ...]

    @property
    def question(self) -> JSON:
        """The questions of all tasks."""
        return {"batch": [task.question for task in self.tasks]}

    @property
    def mechanisms(self) -> tuple[Measurement, ...]:
        """The mechanisms of all tasks, one task after the other."""
        return tuple(mechanism for task in self.tasks for mechanism in task.mechanisms)

    @property
    def labels(self) -> tuple[Mapping[str, JSON], ...]:
        """The labels of all mechanisms, with the number of the task to which each belongs (``part``)."""
        labelled: list[Mapping[str, JSON]] = []
        for number, task in enumerate(self.tasks, 1):
            own: Sequence[Mapping[str, JSON]] = getattr(task, "labels", ({},) * len(task.mechanisms))
            labelled += [{**label, "part": number} for label in own]
        return tuple(labelled)

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks that any task reads; none, which stands for all data, if one task names none."""
        each = [tuple(getattr(task, "blocks", ())) for task in self.tasks]
        return tuple(sorted({block for own in each for block in own})) if all(each) else ()

    @property
    def sql(self) -> tuple[str, ...]:
        """The statements of all tasks, where they have any."""
        return tuple(statement for task in self.tasks for statement in getattr(task, "sql", ()))

    @property
    def left_out(self) -> tuple[str, ...]:
        """Which rows are not counted and which groups are not shown, each line once."""
        return tuple(dict.fromkeys(line for task in self.tasks for line in getattr(task, "left_out", ())))

    def unavailable(self) -> TacitError | None:
        """Return why nothing can be drawn, if the source of a task was never there."""
        for task in self.tasks:
            refusal = task.unavailable() if hasattr(task, "unavailable") else None
            if refusal is not None:
                return refusal  # type: ignore[no-any-return]
        return None

    def integers(self) -> Generator[Exact, Noisy, None]:
        """Yield the exact integers of every task; tasks of one engine share one consistent reading."""
        with ExitStack() as readings:
            opened: dict[int, Any] = {}
            for task in self.tasks:
                yield from _own_integers(task, self._begun(task, opened, readings))

    def _begun(self, task: Any, opened: dict[int, Any], readings: ExitStack) -> Generator[Exact, Noisy, Any]:
        """Begin a task: in the reading that an earlier task of the same engine began, where there is one."""
        if not hasattr(task, "integers_in"):
            return cast("Generator[Exact, Noisy, Any]", task.integers())
        if id(task.engine) not in opened:
            opened[id(task.engine)] = readings.enter_context(task.engine.transaction())
        return cast("Generator[Exact, Noisy, Any]", task.integers_in(opened[id(task.engine)]))

    def read(self, noisy: Sequence[Noisy], confidence: Fraction) -> AnswerBatch:
        """Read every answer off the noisy integers of its task."""
        del confidence  # each answer has its own
        parts, start = [], 0
        for task in self.tasks:
            parts.append(noisy[start : start + len(task.mechanisms)])
            start += len(task.mechanisms)
        return AnswerBatch(
            tuple(BatchAnswer(one.name, one.reader.read(parts[one.place], one.level)) for one in self.shown)
        )


def _own_integers(task: Task, begun: Generator[Exact, Noisy, Any]) -> Generator[Exact, Noisy, None]:
    """Yield the integers of one task, once for each of its own mechanisms; fail where it has more or fewer.

    Without this check, a task that yields too often would hand its integers to the noise of the next task,
    which is calibrated for another sensitivity.
    """
    with closing(begun):
        exact, places = next(begun), len(task.mechanisms)
        for place in range(1, places + 1):
            noisy = yield exact
            try:
                exact = begun.send(noisy)
            except StopIteration:
                if place == places:
                    return
                break
    raise RuntimeError("a task must yield integers once for each of its mechanisms")
