"""Votes of teachers: each is trained on its own part and votes on every query; one that fails votes too.

Each unit belongs to one teacher, by a keyed hash of the unit alone.
"""

from __future__ import annotations

import copy
import hashlib
import random
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code
from tacit.mechanisms import ranking_secret
from tacit.progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

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
