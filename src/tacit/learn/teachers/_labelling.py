"""Labels by a teacher ensemble: exact votes on public queries, noise, and labels off the noisy votes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Draft, Forecast, Step, Task
from tacit.errors import TacitError
from tacit.fixes import Code
from tacit.learn.estimators._fits import check_fit_goal, fit_noise
from tacit.learn.teachers._noisy_labels import NoisyLabels
from tacit.mechanisms import RoundedGaussian

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON, Goal, Noisy
    from tacit.learn._examples import Examples
    from tacit.learn.teachers._teachers import Teachers

_FINE = 10**12


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

    def passed(self, noisy: NDArray[np.int64], max_answers: int) -> NDArray[np.int64]:
        """Return the places of the strongest queries that reach the threshold, at most so many, in order."""
        order = np.argsort(-noisy, kind="stable")[:max_answers]
        return np.sort(order[noisy[order] >= self.threshold])


@dataclass(frozen=True, eq=False)
class Labelling:
    """How public queries are labelled by a noisy majority of teachers (PATE: GNMax, confident, interactive).

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
    """

    facts: Mapping[str, JSON]
    classes: tuple[Any, ...]
    teachers: int
    queries: tuple[int, str]
    noise: RoundedGaussian
    answers: int
    check: VoteCheck | None

    @property
    def words(self) -> list[tuple[str, str]]:
        """What a person should know about the plan."""
        lines = [
            ("teachers", f"{self.teachers:,}, each trained on about 1 / {self.teachers:,} of the data"),
            ("queries", f"{self.queries[0]:,} public ones, {self.answers:,} answered at most"),
            ("cost", "does not depend on how far the teachers agree"),
        ]
        if self.check is not None:
            beyond = "" if self.check.expected is None else " beyond what the student expects"
            lines.append(("answered", f"queries with at least {self.check.threshold:,} noisy votes{beyond}"))
        if self.within(Fraction(95, 100)) > self.teachers:  # even a vote without dissent has too small a lead
            warning = f"no lead is larger than {self.teachers:,}, so many single labels will be wrong"
            hint = f"{warning}; ask about fewer cases, or use more teachers or a larger epsilon"
            lines.append(("hint", hint))
        return lines

    def task(self, votes: Callable[[], NDArray[np.int64]]) -> Task[NDArray[np.int64], NoisyLabels]:
        """Return the task, of which ``votes`` trains the teachers and returns their exact votes: private."""
        return Task(
            document={"learn": "labels by teachers", **self.facts},
            open=lambda _: votes(),
            steps=self._steps(),
            reading=self.reading,
            subject=self,
        )

    def _steps(self) -> tuple[Step[NDArray[np.int64]], ...]:
        """Return the agreement on each query, if it is checked, then the votes of those that are answered."""
        label: dict[str, JSON] = {
            "statistic": f"votes of {self.teachers:,} teachers on {self.answers:,} queries",
            "assumes": "teachers learn from their own parts alone",
        }
        answers, check = Step(self.noise, self._answered, label), self.check
        if check is None:
            return (answers,)
        agreement: dict[str, JSON] = {"statistic": f"agreement of teachers on {self.queries[0]:,} queries"}
        return (Step(check.noise, lambda votes, _: check.strength(votes).tolist(), agreement), answers)

    def _answered(self, votes: NDArray[np.int64], noisy: Sequence[Noisy]) -> list[Any]:
        """Return the votes of the queries that are answered; with two classes, those for the second one."""
        places = np.arange(len(votes))
        if self.check is not None:
            places = self.check.passed(np.asarray(noisy[0]), self.answers)
        asked_queries = np.zeros((self.answers, len(self.classes)), dtype=np.int64)
        asked_queries[: len(places)] = votes[places]
        counts: list[Any] = (asked_queries[:, 1] if len(self.classes) == 2 else asked_queries).tolist()
        return counts

    def reading(self, noisy: Sequence[Noisy], confidence: Fraction) -> NoisyLabels:
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
        for index, row in zip(places.tolist(), counts, strict=True):
            labels[index] = self.classes[int(np.argmax(row))]
        return NoisyLabels(
            self.classes,
            tuple(labels),
            {index: tuple(row) for index, row in zip(places.tolist(), counts.tolist(), strict=True)},
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
        for index in np.flatnonzero(sure).tolist():
            labels[index] = self.classes[int(np.argmax(self.check.expected[index]))]

    def within(self, confidence: Fraction) -> int:
        """Return the lead over all other classes that noise reaches with at most 1 - confidence."""
        if len(self.classes) == 2:
            return 2 * self.noise.half_width(confidence)  # one count: the lead is twice its distance
        each = 1 - (1 - confidence) / (len(self.classes) - 1)
        return self.noise.half_width(each, copies=2)


def draft_labels(
    data: Examples,
    goal: Goal,
    *,
    teachers: Teachers,
    queries: Any,
    digest: str,
    answers: int,
    check: VoteCheck | None,
    facts: Mapping[str, JSON],
    sigma: Fraction | None,
) -> Draft[NoisyLabels]:
    """Draft labels for public queries; ``sigma`` is the noise, if it does not follow from the goal."""
    if sigma is None:
        sigma = _sigma_for(goal, data.size, answers, check, len(teachers.classes))
    noise = label_noise(sigma, answers, len(teachers.classes))
    size = len(queries)
    labelling = Labelling(facts, teachers.classes, teachers.teachers, (size, digest), noise, answers, check)
    lead = labelling.within(Fraction(95, 100))
    return Draft(
        task=labelling.task(lambda: teachers._votes(queries)),  # noqa: SLF001 - after the charge
        asked=f"labels of {size:,} public queries by {teachers.teachers:,} teachers",
        forecast=[
            Forecast(
                "label", "the class with the most noisy votes", noise.describe(), None,
                note=f"a lead of more than {lead:,} votes survives the noise in 95 of 100 cases",
            )
        ],
        facts=labelling.words,
        goal=goal,
    )  # fmt: skip


def label_noise(sigma: Fraction, answers: int, classes: int) -> RoundedGaussian:
    """Return the noise on the votes of all answered queries together."""
    return RoundedGaussian(sigma=sigma, sensitivity=_moved(answers, classes))


def charge_of(check: VoteCheck | None) -> Fraction:
    """Return what the check takes, as a squared sensitivity over a variance."""
    return Fraction(0) if check is None else (check.noise.sensitivity / check.noise.sigma) ** 2


def root_up(value: Fraction) -> Fraction:
    """Return the square root, exactly where it is rational and short, else rounded up."""
    root = math.isqrt(math.ceil(value * _FINE**2))
    return Fraction(root if root * root >= value * _FINE**2 else root + 1, _FINE)


def _moved(answers: int, classes: int) -> Fraction:
    """Return how far one unit moves the votes of all answered queries, in L2."""
    return root_up(Fraction(answers * (1 if classes == 2 else 2)))


def _sigma_for(goal: Goal, size: int, answers: int, check: VoteCheck | None, classes: int) -> Fraction:
    """Return the noise on the votes that keeps the promise, beside what the check takes."""
    if goal.rho is None:
        check_fit_goal(goal, size)
    total = 2 * goal.rho if goal.rho is not None else 1 / fit_noise(goal) ** 2
    remaining = total - charge_of(check)
    if remaining <= 0:
        assert check is not None  # noqa: S101 - the promise is positive
        enough = math.ceil(2 * check.noise.sensitivity / math.sqrt(total))
        raise TacitError(
            "bad-parameter",
            "the noise on the threshold is too small for this epsilon",
            why="the check of every query alone already costs more than this epsilon",
            fix=Code(f"threshold=(60, {enough})"),
        )
    return root_up(_moved(answers, classes) ** 2 / remaining)
