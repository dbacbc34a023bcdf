"""Teachers, an ensemble trained on disjoint parts of the data: it labels public queries for a student.

The question for labels is planned with epsilon, with rho, or with the deviation of the noise.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Goal, Question, plannable
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Code, Set
from tacit.learn._cells import refuse_unknown_labels
from tacit.learn._examples import check_examples
from tacit.learn._questions import LABEL
from tacit.learn.estimators._declared_bounds import declared_classes
from tacit.learn.teachers._labelling import VoteCheck, charge_of, label_noise, root_up
from tacit.learn.teachers._noisy_labels import NoisyLabels, digest_of_queries
from tacit.learn.teachers._votes import (
    estimator_words,
    refuse_failing,
    teacher_parts,
    train_teachers,
    votes_of,
)
from tacit.mechanisms import RoundedGaussian
from tacit.parameters import Instance, Integer, Omitted, Share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.core import Plan
    from tacit.learn._examples import Examples


class LabelQuestion(Question[NoisyLabels]):
    """Labels that were asked of teachers; made by `Teachers.label`."""

    def plan(
        self, *, epsilon: Number | None = None, sigma: Number | None = None, **goal: Any
    ) -> Plan[NoisyLabels]:
        """Plan the labels and state their cost. Touches no data.

        Guarantee: the cost is a function of public facts alone, not of how far the teachers agree.

        Parameters
        ----------
        epsilon
            The promise, with ``delta``, which is at most 1 / size.
        sigma
            Instead of a promise: the deviation of the noise on each number of votes.
        goal
            ``delta``, ``rho`` or ``confidence``, as in `tacit.core.Question.plan`.
        """
        if sigma is None:
            return super().plan(epsilon=epsilon, **goal)
        if epsilon is not None or goal.keys() & {"rho", "delta"}:
            raise TacitError(
                "bad-parameter",
                "labels need either epsilon with delta, or sigma",
                why="they could contradict each other",
                fix=Set(epsilon=2, delta=1e-6),
            )
        exact = rational("sigma", sigma)
        answers, check = self.arguments["answers"], self.arguments["check"]
        noise = label_noise(exact, answers, len(self.arguments["teachers"].classes))
        rho = (charge_of(check) + (noise.sensitivity / noise.sigma) ** 2) / 2
        question = Question(self.dataset, self.kind, {**self.arguments, "sigma": exact})
        return question.planned(Goal.read(rho=rho, **goal))


_ONE_AT_A_TIME = threading.RLock()  # the random numbers that teachers are given are those of the process


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Teachers:
    """An ensemble of teachers, each trained on its own part of the data (PATE, Papernot 2017 and 2018).

    Guarantee: a unit with all its examples is in the part of one teacher. Teachers are trained after the
    first charge and never leave this object; only noisy votes on public queries do.

    Parameters
    ----------
    estimator
        A scikit-learn estimator, of which each teacher trains a copy; or a function that takes features and
        class numbers and returns a function from queries to class numbers or scores (for PyTorch). It must
        not carry anything from one teacher to the next.
    data
        The `examples` to learn from: features and one target.
    teachers
        How many: more teachers bear more noise, but each learns from fewer units.
    classes
        The classes, declared; targets that are none of them count for nobody.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(1).normal(size=(1_000, 2))
    >>> patients = tc.learn.examples(
    ...     X, (X[:, 0] > 0).astype(int), unit=tc.Unit.row(), size=1_000, budget=tc.Budget(8, 1e-5)
    ... )
    >>> teachers = tc.learn.Teachers(LogisticRegression(), data=patients, teachers=40, classes=[0, 1])
    >>> public = np.array([[-2.0, 0.0], [2.0, 0.0]])
    >>> teachers.label(public).plan(epsilon=4, delta=1e-5).release().labels
    (0, 1)
    """

    estimator: Any
    data: Examples
    teachers: int
    classes: tuple[Any, ...]
    _trained: list[Any] = field(default_factory=list)
    _tried: list[Any] = field(default_factory=list)

    def __init__(self, estimator: Any, *, data: Examples, teachers: int, classes: Sequence[Any]) -> None:
        targets: tuple[Any, ...] = getattr(data, "_arrays", ())[1:]  # other things than examples have none
        arrays = 0 if targets and 0 in np.shape(targets[0])[1:] else 2  # a target without columns is none
        check_examples(data, arrays, "with features and one target")
        if hasattr(estimator, "forward") and not hasattr(estimator, "fit"):
            raise bad_parameter(
                "estimator", "a function that trains a network", type(estimator).__name__,
                why="a network does not train itself; the function gets features and class numbers, and "
                "returns the trained network",
                fix=Code("tc.learn.Teachers(train, data=data, teachers=100, classes=[0, 1])"),
            )  # fmt: skip
        if not (callable(getattr(estimator, "fit", None)) or callable(estimator)):
            raise bad_parameter(
                "estimator", "an estimator with fit and predict, or a function that trains", estimator,
                fix=Code("tc.learn.Teachers(LogisticRegression(), data=data, teachers=100, classes=[0, 1])"),
            )  # fmt: skip
        labels = _read_classes(classes)
        refuse_unknown_labels((data._types or ((), ()))[1], labels, spelled=False)  # noqa: SLF001
        number = Integer(2, instead=100).read("teachers", teachers)
        for name, value in (
            ("estimator", estimator),
            ("data", data),
            ("teachers", number),
            ("classes", labels),
            ("_trained", []),
            ("_tried", []),
        ):
            object.__setattr__(self, name, value)

    @plannable
    def label(
        self,
        queries: Sequence[Any] | NDArray[Any],
        *,
        threshold: tuple[int, Number] | None = None,
        answers: int | None = None,
        student: Any = None,
        certain: Number = Fraction(9, 10),
    ) -> Question[NoisyLabels]:
        """Ask for labels of public queries.

        Guarantee: the cost is that of Gaussian noise on the votes, whatever the votes are. It does not depend
        on how far the teachers agree.

        Parameters
        ----------
        queries
            Public features, one line for each query. They must not come from the protected data.
        threshold
            The least noisy number of votes that agree, and the sigma of the noise on that number (confident
            aggregation). It is charged for every query. Only queries that reach it are answered.
        answers
            With a threshold: how many queries are answered at most, the strongest first; by default all.
        student
            With a threshold: the probabilities that a student gives to the classes on each query (interactive
            aggregation). The threshold is then the least number of votes beyond what the student expects.
        certain
            With a student: its label counts where it is at least this sure and the teachers do not object.

        Examples
        --------
        >>> import numpy as np, tacit as tc
        >>> from sklearn.linear_model import LogisticRegression
        >>> patients = tc.learn.examples(
        ...     np.zeros((9, 2)), np.zeros(9), unit=tc.Unit.row(), size=9_000, budget=tc.Budget(2, 1e-5)
        ... )
        >>> teachers = Teachers(LogisticRegression(), data=patients, teachers=100, classes=[0, 1])
        >>> question = teachers.label(np.zeros((600, 2)), threshold=(80, 200), answers=300)
        >>> round(question.plan(sigma=48.8).cost.epsilon(delta=1e-5), 2)
        1.45
        """
        size = len(queries)
        if not size:
            raise bad_parameter("queries", "at least one", queries, fix=Code("queries=public"))
        self._refuse_failing(queries)
        check = self._read_check(size, threshold, student, certain)
        max_answers = size if answers is None else min(size, count("answers", answers, zero=False))
        if check is None:
            Omitted("without a threshold", fix=Set(threshold=(60, 40))).read("answers", answers)
        digest = digest_of_queries(queries)
        arguments = {
            "teachers": self, "queries": queries, "digest": digest, "answers": max_answers, "check": check,
            "facts": self._facts(digest, check),
        }  # fmt: skip
        return LabelQuestion(self.data, LABEL, LABEL.read(arguments))

    def _refuse_failing(self, queries: Sequence[Any] | NDArray[Any]) -> None:
        """Try the estimator on made-up examples, once for each form of queries: public facts alone."""
        form = (type(queries), np.shape(queries)[1:])
        if form not in self._tried and self._has_public_form():
            features = self.data._arrays[0]  # noqa: SLF001 - its shape and type are public
            kind = _plain(features[:0]).dtype
            sample = _plain(queries)[:5]
            refuse_failing(self.estimator, tuple(features.shape[1:]), kind, sample, self.classes)
            self._tried.append(form)

    def _has_public_form(self) -> bool:
        """Whether the features are stored with a type; the type of a list follows from its private values."""
        return bool((self.data._types or ((),))[0])  # noqa: SLF001 - the types of a dataset are public

    def _read_check(
        self, size: int, threshold: tuple[int, Number] | None, student: Any, certain: Number
    ) -> VoteCheck | None:
        """Read the rule that decides which queries are answered."""
        if threshold is None:
            why = "the teachers answer only where they contradict the student"
            Omitted("without a threshold", why, fix=Set(threshold=(40, 40))).read("student", student)
            return None
        lowest, spread = threshold
        noise = RoundedGaussian(sigma=rational("sigma", spread), sensitivity=root_up(Fraction(size)))
        expected = None if student is None else self._expected(student, size)
        sure = Share(instead=0.9).read("certain", certain)
        return VoteCheck(int(lowest), noise, expected, sure)

    def _expected(self, student: Any, size: int) -> NDArray[np.int64]:
        """Return a student's predictions in whole votes."""
        must_be = f"probabilities of {len(self.classes)} classes for each of {size:,} queries"
        fix = Code("student=model.predict_proba(queries)")
        try:
            chance = np.asarray(student, dtype=np.float64)
        except (TypeError, ValueError):
            raise bad_parameter("student", must_be, type(student).__name__, fix=fix) from None
        if chance.shape != (size, len(self.classes)) or not np.isfinite(chance).all():
            raise bad_parameter("student", must_be, f"an array of shape {chance.shape}", fix=fix)
        return np.floor(np.clip(chance, 0, 1) * self.teachers + 0.5).astype(np.int64)

    def _facts(self, digest: str, check: VoteCheck | None) -> dict[str, Any]:
        """Return the public facts of the question."""
        rule: dict[str, Any] | None = None
        if check is not None:
            rule = {
                "threshold": check.threshold,
                "student": None if check.expected is None else digest_of_queries(check.expected),
                "certain": None if check.expected is None else str(check.certain),
            }
        return {
            "estimator": estimator_words(self.estimator),
            "teachers": self.teachers,
            "classes": list(self.classes),
            "queries": digest,
            "per_unit": self.data.per_unit,
            "check": rule,
        }

    def _votes(self, queries: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
        """Train the teachers, once, and count their votes: private, called after the charge.

        Releases in several threads wait for each other: a second training would give each unit a second vote,
        and teachers that take turns would take each other's random numbers.
        """
        with _ONE_AT_A_TIME:
            if not self._trained:
                parts = teacher_parts(self.data, self.teachers, self.classes)
                self._trained.extend(train_teachers(self.estimator, parts, self.classes))
            return votes_of(self._trained, _plain(queries), len(self.classes))

    def __repr__(self) -> str:
        kind = getattr(self.estimator, "__name__", type(self.estimator).__name__)
        return f"Teachers({kind}, data={self.data!r}, teachers={self.teachers}, classes={list(self.classes)})"


def _plain(queries: Sequence[Any] | NDArray[Any]) -> Any:
    """Return tensors as arrays."""
    return np.asarray(queries.detach().cpu() if hasattr(queries, "detach") else queries)


def _read_classes(classes: Sequence[Any]) -> tuple[Any, ...]:
    """Read the declared classes: whole numbers, texts or truth values, at least two, all different."""
    label = Instance((int, str), "classes=[0, 1]", "whole numbers or texts")
    labels = [one.item() if isinstance(one, np.generic) else one for one in classes]
    return tuple(label.read("classes", one) for one in declared_classes(labels))
