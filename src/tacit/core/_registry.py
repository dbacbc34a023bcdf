"""The registry: contents, datasets and questions that rooms and other packages add, found by entry points.

A room, or a package outside Tacit, names what it adds in the group ``tacit.fields`` of its metadata:

- ``content.surface``: the class of a content;
- ``dataset.graph``: the declaration of a kind of dataset (`DatasetKind`);
- ``question.table.regress``: a question (`QuestionKind`) about a kind of dataset of another room.

The core lists nobody. What is part of Tacit is found without a look at other packages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.metadata import distribution, entry_points
from typing import TYPE_CHECKING, Any

from tacit.accounting import Budget

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from tacit.core._dataset import Dataset
    from tacit.core._question import QuestionKind

GROUP = "tacit.fields"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetKind:
    """A kind of dataset, as services and commands need to know it.

    Parameters
    ----------
    name, label
        Its name, and what people call it.
    questions
        The questions that its own field declares.
    needed, optional
        The facts that must and may be declared beside unit, budget and version.
    declare
        Declares a source of this kind: ``declare(source, name=, policy=, facts=, ledger=)``.
    stand_in
        Returns a source without rows that has the declared columns.
    trial
        Returns an invented dataset, on which a process tries the questions before the first paid one.
    has_columns
        Whether bounds, keys and types of columns are declared as for tables.
    """

    name: str
    label: str
    questions: tuple[QuestionKind[Any], ...] = ()
    needed: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    declare: Callable[..., Dataset] | None = None
    stand_in: Callable[[Mapping[str, Any]], object] | None = None
    trial: Callable[[], Dataset] | None = None
    has_columns: bool = False


@cache
def _built_in() -> dict[str, EntryPoint]:
    """Return what Tacit's own rooms add, by name."""
    return {one.name: one for one in distribution("tacit").entry_points if one.group == GROUP}


@cache
def _outside() -> dict[str, EntryPoint]:
    """Return what other packages add, by name; a name of Tacit's own is never replaced."""
    return {one.name: one for one in entry_points(group=GROUP) if one.name not in _built_in()}


def _found(name: str) -> EntryPoint | None:
    return _built_in().get(name) or _outside().get(name)


def registered(name: str) -> Any:
    """Load what is registered under a name; None if nothing is.

    Examples
    --------
    >>> registered("content.no such content") is None
    True
    """
    entry = _found(name)
    return None if entry is None else entry.load()


def question_of(dataset_kind: str, name: str) -> QuestionKind[Any] | None:
    """Return a declared question about a kind of dataset, from whichever room; None if there is none."""
    kind: DatasetKind | None = registered(f"dataset.{dataset_kind}")
    own = () if kind is None else kind.questions
    return next((one for one in own if one.name == name), registered(f"question.{dataset_kind}.{name}"))


def questions_of(dataset_kind: str) -> Iterator[QuestionKind[Any]]:
    """Yield the declared questions about a kind of dataset: its own, Tacit's, then those of other packages."""
    kind: DatasetKind | None = registered(f"dataset.{dataset_kind}")
    if kind is not None:
        yield from kind.questions
    start = f"question.{dataset_kind}."
    for known in (_built_in, _outside):
        yield from (entry.load() for name, entry in known().items() if name.startswith(start))


def package_of(name: str) -> tuple[str, str] | None:
    """Return the package outside Tacit, with its version, that registered a name; None for Tacit's own."""
    entry = None if name in _built_in() else _outside().get(name)
    return None if entry is None or entry.dist is None else (entry.dist.name, entry.dist.version)


def budget_of(policy: Mapping[str, Any]) -> Budget:
    """Read the budget of a declaration in a service or a configuration, whose numbers are text."""
    parts = {name: Fraction(str(value)) for name, value in policy["budget"].items() if value is not None}
    return Budget(**{name: value for name, value in parts.items() if value or name != "delta"})
