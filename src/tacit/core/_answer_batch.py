"""The content of a batch: the answers to several questions that were paid for together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tacit.core._release import Content, Release, content_named
from tacit.errors import TacitError
from tacit.fixes import Choose, Code
from tacit.show import together, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.core._answer_table import AnswerTable
    from tacit.core._certificate import Certificate
    from tacit.core._protocols import JSON
    from tacit.show import Figure


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """One answer of a batch: its name, its content, and what was done to it."""

    name: str
    content: Content
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class AnswerBatch(Content):
    """The answers to several questions, in the order in which they were asked.

    Parameters
    ----------
    answers
        The name and the content of each answer. A release returns each answer as a separate release, by
        position or by name: ``release[0]``, ``release["stays"]``.
    """

    kind: ClassVar[str] = "batch"
    described: ClassVar[str] = "several answers that were paid for together"
    answers: tuple[BatchAnswer, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the answers, in their order."""
        return tuple(answer.name for answer in self.answers)

    def place(self, which: int | str) -> int:
        """Return the position of an answer, from its position or its name."""
        given: object = which
        if isinstance(given, int) and not isinstance(given, bool):
            if not -len(self.answers) <= given < len(self.answers):
                raise IndexError(f"the batch has {len(self.answers)} answers")  # ends a loop over positions
            return given % len(self.answers)
        if which in self.names:
            return self.names.index(str(which))
        raise TacitError(
            "unknown-column",
            f"the batch has no answer {which!r}",
            fix=Choose(self.names, given=str(which)),
        )

    def listed(self, certificate: Certificate) -> BatchReleases:
        """Return the answers as releases with the certificate of the whole batch."""
        return BatchReleases(self, certificate)

    def to_pandas(self) -> dict[str, Any]:
        """Return the answers that are tables as data frames, by name (extra ``pandas``)."""
        found: list[tuple[str, Any]] = [(one.name, one.content) for one in self.answers]
        return {name: content.to_pandas() for name, content in found if hasattr(content, "to_pandas")}

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write every answer below its name."""
        parts = [f"{visible(one.name)}:\n{one.content.text(one.marks).rstrip()}" for one in self.answers]
        return "\n\n".join([*parts, *marks])

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write every answer below its name, for a notebook."""
        parts = [f"<h4>{escape(visible(one.name))}</h4>{one.content.html(one.marks)}" for one in self.answers]
        return "".join([*parts, *(f"<p>{escape(mark)}</p>" for mark in marks)])

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the tables of every answer, below its name."""
        for answer in self.answers:
            for caption, table in answer.content.answer_tables():
                yield f"{answer.name}: {caption}" if caption else answer.name, table

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return one figure with every answer that has one, or the figure of the answer of this name.

        Parameters
        ----------
        what
            The name of an answer. For a certain column, draw that answer: ``release["stays"].plot("mean")``.
        """
        if what is not None:
            return self.answers[self.place(what)].content.figures()[:1]
        drawn = [
            replace(figure, title=f"{one.name}: {figure.title}")
            for one in self.answers
            for figure in one.content.figures()[:1]
        ]
        several = len(self.answers) > 1
        if not drawn:
            return ()
        words = ("the cost is that of all answers of the batch together",) if several else ()
        made = together(drawn)
        return (replace(made, words=(*made.words, *words)),)

    def without_figure(self) -> TacitError:
        """Say that no answer has a figure."""
        return TacitError(
            "bad-parameter", "no answer of this batch has a picture of its own", fix=Code("release[0]")
        )

    def to_json(self) -> JSON:
        """Return the batch as JSON."""
        return [
            {
                "name": one.name,
                "kind": one.content.kind,
                "content": one.content.to_json(),
                "marks": list(one.marks),
            }
            for one in self.answers
        ]

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read a batch back; raises ``ValueError`` if the document is not a batch."""
        answers = []
        for one in document:
            kind = content_named(str(one["kind"]))
            if kind is None or kind is cls:
                raise ValueError("not a content of a batch")
            marks = tuple(str(mark) for mark in one["marks"])
            answers.append(BatchAnswer(str(one["name"]), kind.from_json(one["content"]), marks))
        if not answers or len({one.name for one in answers}) < len(answers):
            raise ValueError("a batch has answers with different names")
        return cls(tuple(answers))


@dataclass(frozen=True, slots=True)
class BatchReleases:
    """The answers of a batch as releases; each states in its marks that its certificate is that of all."""

    batch: AnswerBatch
    certificate: Certificate

    def __len__(self) -> int:
        return len(self.batch.answers)

    def __iter__(self) -> Iterator[Release[Any]]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, which: int | str) -> Release[Any]:
        one = self.batch.answers[self.batch.place(which)]
        whole = len(self)
        mark = f"one of {whole} answers of a batch; the certificate states what they cost together"
        return Release(one.content, self.certificate, (*one.marks, *([mark] if whole > 1 else [])))
