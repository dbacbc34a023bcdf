"""The core's protocols: what it asks of a field, a ledger and an engine, without importing any of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.accounting import Budget, Cost
    from tacit.core._release import Content

__all__ = ["JSON", "Charger", "Engine", "Exact", "Measurement", "Noisy", "Task"]

JSON: TypeAlias = bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"] | None
#: Exact integers for a mechanism: one, nested lists or arrays of them, or whole numbers by key.
Exact: TypeAlias = Any
#: What a mechanism made of them, as plain JSON: this is what the ledger stores.
Noisy: TypeAlias = Any


class Measurement(Protocol):
    """What the core asks of a mechanism; every mechanism of `tacit.mechanisms` that takes integers fits."""

    @property
    def cost(self) -> Cost:
        """What one release takes from a budget."""

    def release(self, value: Any) -> Any:
        """Return noisy integers for exact ones."""

    def to_json(self) -> Mapping[str, Any]:
        """Return the law and its parameters, exactly: equal documents mean equal noise."""


class Task(Protocol):
    """The four things that a field brings to a plan; the core does the rest.

    A task holds public facts and a way to the data. It reads the data in `integers` alone, which the core
    calls only after the ledger has the charge.
    """

    @property
    def question(self) -> JSON:
        """What is asked, as a document of public facts.

        With the dataset's identity and the mechanisms it is the plan's identity: two plans with the same
        three give the same stored answer. Names and order of released columns do not belong here.
        """

    @property
    def mechanisms(self) -> Sequence[Measurement]:
        """The mechanisms that answer, in the order in which they run."""

    def integers(self) -> Generator[Exact, Noisy, None]:
        """Yield the exact integers for each mechanism in turn; receive the noisy ones back.

        What is yielded later may depend on what came back, as the groups that are shown depend on the keys
        that were selected. Nothing else may leave.
        """

    def read(self, noisy: Sequence[Noisy], confidence: Fraction) -> Content:
        """Read the content of the release off the noisy integers: free post-processing."""


class Charger(Protocol):
    """What the core asks of a ledger: keep an account, charge durably, compute once, store, return."""

    def create_account(
        self, name: str, *, budget: Budget, unit: str | None = None, adjacency: str | None = None,
        version: int = 1,
    ) -> Any:  # fmt: skip
        """Open the dataset's account, or find it with the same declared facts."""

    def account(self, name: str) -> Any:
        """Return an account with its ``budget``."""

    def remaining(self, account: str) -> Any:
        """Return what is left of an account's budget."""

    def draw(
        self,
        account: str,
        cost: Cost,
        *,
        plan: str,
        compute: Callable[[Any], bytes],
        who: str = "",
        purpose: str = "",
        asked: str = "",
        dataset: str | None = None,
    ) -> Any:
        """Return the release: ``payload`` and ``receipt``.

        Refuses an account that is neither the dataset's nor below it.
        """


class Engine(Protocol):
    """Where exact integers of tables are computed.

    An engine is opened on sources. Before `integers` is called it reads only column names and public tables.
    """

    def columns(self, table: str) -> Mapping[str, str] | None:
        """Return the columns of a table, or None where its source cannot be reached now.

        Beside each column stands the type that keeps it from being read; it is empty where nothing does.
        """

    def public_values(self, table: str, value: str, most: int) -> list[object] | None:
        """Return the different values of an emitted expression over a public table, or None."""

    def integers(
        self,
        sql: str,
        keys: Mapping[str, Sequence[Sequence[object]]],
        limited: Iterable[tuple[str, int]] = (),
    ) -> list[tuple[object, ...]]:
        """Run one statement that Tacit emitted and return its rows.

        Parameters
        ----------
        sql
            The statement, in the engine's dialect.
        keys
            Small public tables that the statement reads, by name.
        limited
            Tables that it reads under a row limit, with the limit: ``"visits first 10"``.
        """
