"""Votes of teachers: each is trained on its own part and votes on every query; one that fails votes too."""

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
from tacit.learn._teacher_parts import class_numbers
from tacit.progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tacit.learn._teacher_parts import TeacherParts

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
    made = np.random.default_rng(0).uniform(size=(len(number), *shape))
    features = made.astype(kind) if kind.kind == "f" else (3 * made).astype(kind)
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
    seen = np.unique(number)
    if len(seen) < 2:
        return _always(int(seen[0]) if len(seen) else 0)
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

    made = clone(estimator)
    states = [name for name in made.get_params() if name.split("__")[-1] == "random_state"]
    return made.set_params(**{name: teacher for name in states if made.get_params()[name] is None})


def _numbers_or_scores(given: Any) -> NDArray[np.int64]:
    """Return class numbers, also from scores with one column for each class, and from tensors."""
    held = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
    return np.asarray(held.argmax(axis=1) if held.ndim == 2 else held)


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
    held = np.nan_to_num(np.asarray(vote, dtype=np.float64), nan=-1.0, posinf=-1.0, neginf=-1.0)
    return np.where((held >= 0) & (held < classes) & (held == np.floor(held)), held, 0).astype(np.int64)


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
        named = ", ".join(f"{name}={value!r}" for name, value in sorted(estimator.get_params().items()))
        return f"{type(estimator).__module__}.{type(estimator).__qualname__}({named})"
    kind = estimator if hasattr(estimator, "__qualname__") else type(estimator)
    words = f"{kind.__module__}.{kind.__qualname__}"
    code = getattr(estimator, "__code__", None)
    if code is None:
        return words
    inside = repr(
        (code.co_code, code.co_names, [one for one in code.co_consts if not hasattr(one, "co_code")])
    )
    return f"{words}, {hashlib.sha256(inside.encode()).hexdigest()[:16]}"
