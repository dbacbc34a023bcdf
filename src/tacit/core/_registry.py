"""The registry: contents, datasets and questions that rooms and other packages add, found by entry points.

A room, or a package outside Tacit, names what it adds in the group ``tacit.fields`` of its metadata:

- ``content.surface``: the class of a content;
- ``dataset.graph``: the declaration of a kind of dataset (`DatasetKind`);
- ``question.table.regress``: a question (`QuestionKind`) about a kind of dataset of another room.

The core lists nobody. What is part of Tacit is found without a look at other packages.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from importlib.metadata import EntryPoint

    from tacit.core._dataset import Dataset
    from tacit.core._question import Argument, QuestionKind

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
    facts
        What is declared beside unit, budget and version: which values each fact accepts, and whether it is
        needed.
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
    facts: tuple[Argument, ...] = ()
    declare: Callable[..., Dataset] | None = None
    stand_in: Callable[[Mapping[str, Any]], object] | None = None
    trial: Callable[[], Dataset] | None = None
    has_columns: bool = False


@cache
def _built_in() -> dict[str, EntryPoint]:
    """Return what Tacit's own rooms add, by name."""
    from importlib.metadata import distribution

    return {one.name: one for one in distribution("tacit").entry_points if one.group == GROUP}


@cache
def _outside() -> dict[str, EntryPoint]:
    """Return what other packages add, by name; a name of Tacit's own is never replaced."""
    from importlib.metadata import entry_points

    return {one.name: one for one in entry_points(group=GROUP) if one.name not in _built_in()}


class _Admitted:
    """The packages whose fields this process uses; None for all of them, as in a user's own Python."""

    packages: frozenset[str] | None = None


def admit_packages(packages: Iterable[str]) -> None:
    """Use the fields of these packages and of no others, from now on and in this process.

    A service calls this with the packages that its operator named.
    """
    _Admitted.packages = frozenset(packages)


def _is_admitted(entry: EntryPoint) -> bool:
    allowed = _Admitted.packages
    return allowed is None or (entry.dist is not None and entry.dist.name in allowed)


def _further() -> dict[str, EntryPoint]:
    """Return what admitted packages add, by name."""
    if _Admitted.packages == frozenset():  # no look at other packages
        return {}
    return {name: entry for name, entry in _outside().items() if _is_admitted(entry)}


def _entry_point(name: str) -> EntryPoint | None:
    return _built_in().get(name) or _further().get(name)


def registered(name: str) -> Any:
    """Load what is registered under a name; None if nothing is.

    Examples
    --------
    >>> registered("content.no such content") is None
    True
    """
    entry = _entry_point(name)
    return None if entry is None else entry.load()


def question_of(dataset_kind: str, name: str) -> QuestionKind[Any] | None:
    """Return a declared question about a kind of dataset, from whichever room; None if there is none."""
    kind: DatasetKind | None = registered(f"dataset.{dataset_kind}")
    questions = () if kind is None else kind.questions
    return next((one for one in questions if one.name == name), registered(f"question.{dataset_kind}.{name}"))


def questions_of(dataset_kind: str) -> Iterator[QuestionKind[Any]]:
    """Yield the questions about a kind of dataset: its own, those of other rooms, those of other packages."""
    kind: DatasetKind | None = registered(f"dataset.{dataset_kind}")
    if kind is not None:
        yield from kind.questions
    start = f"question.{dataset_kind}."
    for declared in (_built_in, _further):
        yield from (entry.load() for name, entry in declared().items() if name.startswith(start))


def dataset_kinds() -> list[str]:
    """Return the names of all kinds of datasets, Tacit's own first."""
    return [
        name.removeprefix("dataset.")
        for known in (_built_in, _further)
        for name in known()
        if name.startswith("dataset.")
    ]


@cache
def packages_of(*modules: str) -> tuple[str, ...]:
    """Return the packages outside Tacit to which modules belong, with their versions.

    Examples
    --------
    >>> packages_of("tacit.graphs._edge_questions"), packages_of("my_notebook")
    ((), ('my_notebook, which no package installed',))
    """
    from importlib.metadata import packages_distributions, version

    packages = []
    for top in dict.fromkeys(module.partition(".")[0] for module in modules):
        if top != "tacit":
            names = packages_distributions().get(top, [])
            installed = [f"{name} {version(name)}" for name in dict.fromkeys(names)]
            packages += installed or [f"{top}, which no package installed"]
    return tuple(packages)
