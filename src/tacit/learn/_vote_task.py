"""The task of a teacher ensemble: exact votes on public queries, noise, and labels off the noisy votes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.learn._noisy_labels import NoisyLabels

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON, Measurement
    from tacit.mechanisms import RoundedGaussian

__all__ = ["VoteCheck", "VoteTask"]


@dataclass(frozen=True, eq=False)
class VoteCheck:
    """Which queries are worth an answer: the teachers agree, or they contradict a student.

    Parameters
    ----------
    threshold
        The least noisy number of votes.
    noise
        The noise on that number, one for each query.
    expected
        With a student: its predictions in votes, one column for each class, which are subtracted.
    certain
        With a student: its own label counts where it is at least this sure and no teacher objects.
    """

    threshold: int
    noise: RoundedGaussian
    expected: NDArray[np.int64] | None = None
    certain: Fraction = Fraction(1)

    def strength(self, votes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how strongly the teachers speak on each query; one vote more or less moves it by one."""
        return np.asarray((votes if self.expected is None else votes - self.expected).max(axis=1))

    def passed(self, noisy: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """Return the places of the strongest queries that reach the threshold, at most so many, in order."""
        order = np.argsort(-noisy, kind="stable")[:most]
        return np.sort(order[noisy[order] >= self.threshold])


@dataclass(frozen=True, eq=False)
class VoteTask:
    """Label public queries by the noisy majority of teachers (PATE: GNMax, confident, interactive).

    One unit is in the part of one teacher, which moves one vote of each query from one class to another. So
    the counts of a query move by at most the root of 2, in L2; with two classes, one count tells both, and it
    moves by 1 (docs/proofs/pate.md).

    Parameters
    ----------
    facts
        The public facts of the question.
    classes
        The declared classes.
    queries
        How many queries there are, and their digest.
    noise
        The noise on the votes of all answered queries together.
    answers
        How many queries get an answer, at most.
    check
        Which queries get an answer; None: all of them.
    votes
        Trains the teachers and returns their exact votes: private.
    """

    facts: Mapping[str, JSON]
    classes: tuple[Any, ...]
    teachers: int
    queries: tuple[int, str]
    noise: RoundedGaussian
    answers: int
    check: VoteCheck | None
    votes: Callable[[], NDArray[np.int64]]

    @property
    def question(self) -> JSON:
        """What is asked: teachers, classes, queries and the rule of the aggregation."""
        return {"learn": "labels by teachers", **self.facts}

    @property
    def mechanisms(self) -> Sequence[Measurement]:
        """The noise of the check, if there is one, then that of the votes."""
        return [self.noise] if self.check is None else [self.check.noise, self.noise]

    @property
    def labels(self) -> Sequence[Mapping[str, JSON]]:
        """What the certificate says beside each noise."""
        votes: Mapping[str, JSON] = {
            "statistic": f"votes of {self.teachers:,} teachers on {self.answers:,} queries",
            "assumes": "teachers learn from their own parts alone",
        }
        if self.check is None:
            return [votes]
        return [{"statistic": f"agreement of teachers on {self.queries[0]:,} queries"}, votes]

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the agreement on each query, if it is checked, then the votes of those that are answered."""
        votes = self.votes()
        places = np.arange(len(votes))
        if self.check is not None:
            noisy = yield self.check.strength(votes).tolist()
            places = self.check.passed(np.asarray(noisy), self.answers)
        asked = np.zeros((self.answers, len(self.classes)), dtype=np.int64)
        asked[: len(places)] = votes[places]
        yield (asked[:, 1] if len(self.classes) == 2 else asked).tolist()

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> NoisyLabels:
        """Return the class with the most noisy votes on each answered query."""
        size, digest = self.queries
        labels: list[Any] = [None] * size
        places = np.arange(size)
        if self.check is not None:
            places = self.check.passed(np.asarray(noisy[0]), self.answers)
            self._agree_with_student(labels)
        counts = np.asarray(noisy[-1])[: len(places)]
        if len(self.classes) == 2:
            counts = np.column_stack([self.teachers - counts, counts])
        for place, row in zip(places.tolist(), counts, strict=True):
            labels[place] = self.classes[int(np.argmax(row))]
        return NoisyLabels(
            self.classes,
            tuple(labels),
            {place: tuple(row) for place, row in zip(places.tolist(), counts.tolist(), strict=True)},
            self.within(confidence),
            self.teachers,
            digest,
        )

    def _agree_with_student(self, labels: list[Any]) -> None:
        """Take the student's own label where it is sure; those that pass the check are replaced."""
        assert self.check is not None  # noqa: S101 - the caller asks
        if self.check.expected is None:
            return
        sure = self.check.expected.max(axis=1) >= self.check.certain * self.teachers
        for place in np.flatnonzero(sure).tolist():
            labels[place] = self.classes[int(np.argmax(self.check.expected[place]))]

    def within(self, confidence: Fraction) -> int:
        """Return the lead over all other classes that noise reaches with at most 1 - confidence."""
        if len(self.classes) == 2:
            return 2 * self.noise.half_width(confidence)  # one count: the lead is twice its distance
        each = 1 - (1 - confidence) / (len(self.classes) - 1)
        return self.noise.half_width(each, copies=2)
