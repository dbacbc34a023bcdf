"""Tasks of fields that still yield their integers from a generator, as tasks of steps."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from tacit.core._task import DrawnBefore, RunTask, SharedReadings, Step, Task

_OWN = ("blocks", "left_out", "numerics", "unavailable")


class _Yielding:
    """A generator that gives one answer for each step, whichever way it is asked."""

    def __init__(self, steps: Generator[Any, Any, Any], count: int) -> None:
        self.steps, self.count, self.asked, self.value = steps, count, 0, None

    def exact(self, noisy: Sequence[Any]) -> Any:
        if len(noisy) != self.asked:
            raise RuntimeError("a task must yield integers once for each of its mechanisms")
        self.asked += 1
        return next(self.steps) if not noisy else self.steps.send(noisy[-1])


def adopted(task: Any) -> Task[Any, Any] | RunTask[Any, Any]:
    """Return a task of steps; `task` may be one already."""
    if isinstance(task, Task | RunTask):
        return task
    more: dict[str, Any] = {name: getattr(task, name) for name in _OWN if hasattr(task, name)}
    if hasattr(task, "sql"):
        more["statements"] = lambda: task.sql
    if hasattr(task, "sampled"):
        more["sampled"] = task.sampled
    if hasattr(task, "instalments"):
        return _adopted_run(task, more)
    labels: Sequence[Mapping[str, Any]] = getattr(task, "labels", ({},) * len(task.mechanisms))

    def open_(readings: SharedReadings) -> _Yielding:
        begun = (
            task.integers_in(readings.of(task.engine)) if hasattr(task, "integers_in") else task.integers()
        )
        return _Yielding(begun, len(task.mechanisms))

    return Task(
        document=lambda: task.question, subject=task, open=open_, reading=task.read, **more,
        steps=tuple(
            Step(mechanism, lambda data, noisy: data.exact(noisy), label)
            for mechanism, label in zip(task.mechanisms, labels, strict=True)
        ),
    )  # fmt: skip


def _adopted_run(task: Any, more: dict[str, Any]) -> RunTask[Any, Any]:
    def steps_of(number: int) -> tuple[Step[Any], ...]:
        return tuple(
            Step(mechanism, lambda data, noisy: data.exact(noisy)) for mechanism in task.mechanisms_of(number)
        )

    def open_(before: DrawnBefore) -> _Yielding:
        begun = task.integers_of(before.number, before.noisy, before.state)
        return _Yielding(begun, len(task.mechanisms_of(before.number)))

    def left(data: _Yielding) -> Any:
        try:
            data.steps.send(None)
        except StopIteration as stopped:
            return stopped.value
        raise RuntimeError("a task must yield integers once for each of its mechanisms")

    return RunTask(
        document=lambda: task.question, subject=task, instalments=task.instalments, steps_of=steps_of,
        open=open_, reading=task.read_of, left=left, composition=getattr(task, "composition", "sum"), **more,
    )  # fmt: skip
