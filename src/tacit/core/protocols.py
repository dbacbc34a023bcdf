"""The seams through which a plan reaches a ledger and an engine, without importing either."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from tacit.accounting import Cost

__all__ = ["JSON", "Engine", "Ledger", "Task"]

JSON: TypeAlias = bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"] | None


class Task(Protocol):
    """What a plan does once it is paid for."""

    def run(self) -> JSON:
        """Touch the data, add the noise and return what is released as JSON; it is stored as it is."""

    def read(self, released: Any, confidence: float) -> Mapping[str, Any]:
        """Read ``keys`` and ``columns`` (cells of value, low, high) off what was released.

        Free post-processing.
        """


class Ledger(Protocol):
    """What a plan asks of a ledger: charge durably, compute once, store, return."""

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
    """Where exact integers are computed.

    An engine is opened on sources; it reads nothing of them but column names, and
    public tables, before `integers` is called.
    """

    def columns(self, table: str) -> tuple[str, ...] | None:
        """Return the column names of a table, or None where its source cannot be reached now."""

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
