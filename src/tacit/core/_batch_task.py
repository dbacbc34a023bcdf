"""The task of a batch: several tasks that run one after the other in one paid draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.core._answer_batch import AnswerBatch, BatchAnswer
from tacit.core._task import Task

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from tacit.core._protocols import Noisy
    from tacit.core._task import SharedReadings
    from tacit.errors import TacitError


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """How one answer of a batch is read: its name, whose noisy integers, by which task, how confidently.

    Questions that differ in the names of their columns alone are measured once and read each in its own way.
    """

    name: str
    place: int
    reader: Task[Any, Any]
    level: Fraction


def batch_task(parts: Sequence[Task[Any, Any]], shown: Sequence[ShownAnswer]) -> Task[Any, AnswerBatch]:
    """Return the task that draws several tasks about one dataset, each of which is measured once.

    Names and order of the answers are not part of the question.

    Parameters
    ----------
    parts
        The tasks, in an order that does not depend on the order of the questions.
    shown
        The answers, in the order in which they were asked.
    """

    def read(noisy: Sequence[Noisy], confidence: Fraction) -> AnswerBatch:
        del confidence  # each answer has its own
        own, start = [], 0
        for part in parts:
            own.append(noisy[start : start + len(part.steps)])
            start += len(part.steps)
        return AnswerBatch(
            tuple(BatchAnswer(one.name, one.reader.reading(own[one.place], one.level)) for one in shown)
        )

    def unavailable() -> TacitError | None:
        return next((refusal for part in parts if (refusal := part.unavailable())), None)

    return Task(
        document=lambda: {"batch": [part.question for part in parts]},
        open=_nothing,
        steps=(),
        reading=read,
        parts=tuple(parts),
        blocks=_blocks(parts),
        statements=lambda: [statement for part in parts for statement in part.sql],
        left_out=lambda: tuple(dict.fromkeys(line for part in parts for line in part.omissions)),
        unavailable=unavailable,
    )


def _nothing(_readings: SharedReadings) -> None:
    """Read nothing: a batch has no data beside its parts."""


def _blocks(parts: Sequence[Task[Any, Any]]) -> tuple[str, ...]:
    """Return the blocks that any part reads; none, which stands for all data, if one part names none."""
    if not all(part.blocks for part in parts):
        return ()
    return tuple(sorted({block for part in parts for block in part.blocks}))
