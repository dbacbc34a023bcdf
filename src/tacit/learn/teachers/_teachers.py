"""Teachers, an ensemble trained on disjoint parts of the data: it labels public queries for a student.

Each unit belongs to one teacher, by a keyed hash of the unit alone. Each teacher is trained on its own part
and votes on every query; one that fails votes too. The question for labels is planned with epsilon, with rho,
or with the deviation of the noise.
"""

from __future__ import annotations

import copy
import hashlib
import random
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
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
from tacit.mechanisms import RoundedGaussian, ranking_secret
from tacit.parameters import Instance, Integer, Omitted, Share
from tacit.progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tacit.core import Plan
    from tacit.learn._examples import Examples


#: The examples of each teacher: features and class numbers.
TeacherParts = list[tuple[Any, "NDArray[np.int64]"]]


def teacher_parts(data: Examples, teachers: int, classes: tuple[object, ...]) -> TeacherParts:
    """Return the examples of each teacher: private, for tasks alone.

    Guarantee: a unit with all its examples is in one part, and which one depends on this unit and on a secret
    alone. An example with a target that is not a declared class, or with a feature that is not finite, counts
    for nobody. So one unit more or less changes one part.
    """
    features, targets = (_plain(one) for one in data._arrays)  # noqa: SLF001 - the room's own
    rows = data.units()
    of_unit = units_by_teacher(_unit_names(data, rows, (features, targets)), teachers, ranking_secret())
    number = class_numbers(targets, classes)
    usable = (number >= 0) & _finite(features)
    parts: TeacherParts = []
    for teacher in range(teachers):
        examples = np.sort(rows[of_unit == teacher].ravel())
        examples = examples[examples >= 0]
        examples = examples[usable[examples]]
        parts.append((features[examples], number[examples]))
    return parts


def units_by_teacher(names: list[bytes], teachers: int, secret: int) -> NDArray[np.int64]:
    """Return the teacher of each unit: a keyed hash of its name.

    Examples
    --------
    >>> first = units_by_teacher([b"ana", b"ben", b"eva"], 4, 7)
    >>> units_by_teacher([b"ana", b"eva"], 4, 7).tolist() == first[[0, 2]].tolist()
    True
    """
    key = secret.to_bytes(8, "little")
    teachers_of_units = [
        int.from_bytes(hashlib.blake2b(name, key=key, digest_size=8).digest(), "little") for name in names
    ]
    return np.array([one % teachers for one in teachers_of_units], dtype=np.int64)


def class_numbers(targets: Any, classes: tuple[object, ...]) -> NDArray[np.int64]:
    """Return the place of each target in the declared classes, -1 where it is none of them.

    Examples
    --------
    >>> class_numbers(np.array(["ill", "well", "?"]), ("well", "ill")).tolist()
    [1, 0, -1]
    """
    flat = np.asarray(targets)
    while flat.ndim > 1:  # a reshape would fail without rows
        flat = flat[:, 0]
    numbers = np.full(len(flat), -1, dtype=np.int64)
    for index, label in enumerate(classes):
        same = (
            flat == label if flat.dtype.kind != "O" else np.array([_is(value, label) for value in flat], bool)
        )
        if np.ndim(same):  # text is never equal to a number, which NumPy says with a single False
            numbers[same] = index
    return numbers


def _unit_names(data: Examples, rows: NDArray[np.int64], arrays: tuple[Any, ...]) -> list[bytes]:
    """Return a name for each unit: its owner, or the bytes of the example where each is a unit."""
    owners = data._owners  # noqa: SLF001 - the room's own
    if owners is not None:
        return [str(owners[one]).encode("utf-8", "surrogatepass") for one in rows[:, 0]]
    return [b"|".join(_bytes(array[one]) for array in arrays) for one in rows[:, 0]]


def _bytes(value: Any) -> bytes:
    array = np.asarray(value)
    if array.dtype.hasobject:
        return repr(array.tolist()).encode("utf-8", "surrogatepass")
    return np.ascontiguousarray(array).tobytes()


def _is(value: Any, label: object) -> bool:
    """Whether a target is a class; one that cannot be compared, such as pandas' NA, is none."""
    try:
        return bool(value == label)
    except Exception:  # noqa: BLE001 - one odd target must not make the whole release fail
        return False


def _plain(array: Any) -> Any:
    """Return tensors as arrays."""
    return np.asarray(array.detach().cpu() if hasattr(array, "detach") else array)


def _finite(features: Any) -> NDArray[np.bool_]:
    if features.dtype.kind not in "fc":
        return np.ones(len(features), dtype=bool)
    return np.asarray(np.isfinite(features).all(axis=tuple(range(1, features.ndim))))


_MADE_UP = 40  # examples of each class

#: A trained teacher: class numbers for queries.
VotingTeacher = Callable[[Any], "NDArray[np.int64]"]


def train_teachers(estimator: Any, parts: TeacherParts, classes: tuple[object, ...]) -> list[VotingTeacher]:
    """Train a teacher on each part; it sees nothing of the others, and neither do its random numbers."""
    teachers: list[VotingTeacher] = []
    with progress("Training teachers", lambda: len(teachers) / len(parts)):
        for number, part in enumerate(parts):
            teachers.append(_trained(estimator, *part, classes, number))
    return teachers


def votes_of(teachers: list[VotingTeacher], queries: Any, classes: int) -> NDArray[np.int64]:
    """Return how many teachers vote for each class (columns) on each query (rows).

    Every teacher has exactly one vote on each query, so one teacher that changes moves one vote of each row
    from one column to another.
    """
    counts = np.zeros((len(queries), classes), dtype=np.int64)
    for number, teacher in enumerate(teachers):
        vote = _safely(partial(teacher, queries), number)
        counts[np.arange(len(queries)), _valid(vote, len(queries), classes)] += 1
    return counts


def refuse_failing(
    estimator: Any, shape: tuple[int, ...], kind: np.dtype[Any], queries: Any, classes: tuple[object, ...]
) -> None:
    """Train one teacher on made-up examples of the declared shape, before any charge, and refuse failures.

    Later failures must stay hidden, because they depend on the data: a mistake in the estimator would then
    make every teacher vote for the first class.
    """
    if kind.kind not in "biuf":
        return  # texts and objects: nothing sensible can be made up
    number = np.arange(_MADE_UP * len(classes)) % len(classes)
    invented = np.random.default_rng(0).uniform(size=(len(number), *shape))
    features = invented.astype(kind) if kind.kind == "f" else (3 * invented).astype(kind)
    try:
        with warnings.catch_warnings(), _own_random_numbers(0):
            warnings.simplefilter("ignore")
            teacher = _fit(estimator, features, number, classes, 0)
            vote = np.asarray(teacher(queries))
    except Exception as failure:
        raise TacitError(
            "bad-parameter",
            f"the estimator fails on made-up examples: {type(failure).__name__}: {failure}",
            why="features and queries must have the same form, and an estimator must train and predict",
            fix=Code("tc.learn.Teachers(LogisticRegression(), data=data, teachers=100, classes=[0, 1])"),
        ) from failure
    if vote.shape != (len(queries),) or not np.isin(vote, np.arange(len(classes))).all():
        raise bad_parameter(
            "estimator", "one that predicts a declared class for each query", f"votes of shape {vote.shape}",
            fix=Code("return lambda queries: model(queries)  # class numbers, or a score for each class"),
        )  # fmt: skip


def _trained(
    estimator: Any, features: Any, number: NDArray[np.int64], classes: tuple[object, ...], teacher: int
) -> VotingTeacher:
    """Return a teacher; with one class, or none, or a failure, it always votes the same."""
    present = np.unique(number)
    if len(present) < 2:
        return _always(int(present[0]) if len(present) else 0)
    fitted = _safely(lambda: _fit(estimator, features, number, classes, teacher), teacher)
    return _always(0) if fitted is None else fitted


def _fit(
    estimator: Any, features: Any, number: NDArray[np.int64], classes: tuple[object, ...], teacher: int
) -> VotingTeacher:
    if not hasattr(estimator, "fit"):
        predict = estimator(features, number)
        return lambda queries: _numbers_or_scores(predict(queries))
    fresh = _fresh(estimator, teacher)
    fresh.fit(features, np.asarray(classes)[number])
    return lambda queries: class_numbers(fresh.predict(queries), classes)


def _fresh(estimator: Any, teacher: int) -> Any:
    """Return an untrained copy whose random state is the teacher's public number, where it is not set."""
    if not hasattr(estimator, "get_params"):
        return copy.deepcopy(estimator)
    from sklearn.base import clone

    copy_of_estimator = clone(estimator)
    states = [name for name in copy_of_estimator.get_params() if name.split("__")[-1] == "random_state"]
    return copy_of_estimator.set_params(
        **{name: teacher for name in states if copy_of_estimator.get_params()[name] is None}
    )


def _numbers_or_scores(predicted: Any) -> NDArray[np.int64]:
    """Return class numbers, also from scores with one column for each class, and from tensors."""
    array = np.asarray(predicted.detach().cpu() if hasattr(predicted, "detach") else predicted)
    return np.asarray(array.argmax(axis=1) if array.ndim == 2 else array)


def _always(number: int) -> VotingTeacher:
    return lambda queries: np.full(len(queries), number, dtype=np.int64)


def _safely(work: Callable[[], Any], seed: int) -> Any:
    """Do work on one teacher; a failure or a warning must not show, because it depends on the data."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(_own_random_numbers(seed))
        warnings.simplefilter("ignore")
        with suppress(Exception):
            return work()
    return None


def _valid(vote: Any, queries: int, classes: int) -> NDArray[np.int64]:
    """Return a vote for each query; what is not a class becomes a vote for the first one."""
    if vote is None or np.shape(vote) != (queries,) or np.asarray(vote).dtype.kind not in "iuf":
        return np.zeros(queries, dtype=np.int64)
    numbers = np.nan_to_num(np.asarray(vote, dtype=np.float64), nan=-1.0, posinf=-1.0, neginf=-1.0)
    return np.where((numbers >= 0) & (numbers < classes) & (numbers == np.floor(numbers)), numbers, 0).astype(
        np.int64
    )


@contextmanager
def _own_random_numbers(seed: int) -> Iterator[None]:
    """Give a teacher public random numbers of its own, so that one teacher cannot shift those of the next.

    They are no noise: training may use any public numbers.
    """
    before = np.random.get_state()  # noqa: NPY002 - what estimators without a random state use
    plain = random.getstate()
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    torch = sys.modules.get("torch")
    try:
        if torch is None:
            yield
        else:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
        random.setstate(plain)


def estimator_words(estimator: Any) -> str:
    """Return an estimator in words, for the question of a plan: its class and settings, or a function.

    Examples
    --------
    >>> estimator_words(len)
    'builtins.len'
    """
    if hasattr(estimator, "get_params"):
        parameters = ", ".join(f"{name}={value!r}" for name, value in sorted(estimator.get_params().items()))
        return f"{type(estimator).__module__}.{type(estimator).__qualname__}({parameters})"
    kind = estimator if hasattr(estimator, "__qualname__") else type(estimator)
    words = f"{kind.__module__}.{kind.__qualname__}"
    code = getattr(estimator, "__code__", None)
    if code is None:
        return words
    inside = repr(
        (code.co_code, code.co_names, [one for one in code.co_consts if not hasattr(one, "co_code")])
    )
    return f"{words}, {hashlib.sha256(inside.encode()).hexdigest()[:16]}"


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


def _read_classes(classes: Sequence[Any]) -> tuple[Any, ...]:
    """Read the declared classes: whole numbers, texts or truth values, at least two, all different."""
    label = Instance((int, str), "classes=[0, 1]", "whole numbers or texts")
    labels = [one.item() if isinstance(one, np.generic) else one for one in classes]
    return tuple(label.read("classes", one) for one in declared_classes(labels))
