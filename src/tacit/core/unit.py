"""The unit of privacy (who is protected), and what identifies a dataset."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.accounting import ADJACENCIES, Adjacency
from tacit.errors import bad_parameter
from tacit.fixes import Declare

__all__ = ["ADJACENCIES", "Adjacency", "Identity", "Unit"]

_ROW = "row"


@dataclass(frozen=True, slots=True)
class Unit:
    """Who is protected. All rows of one unit are protected together.

    Parameters
    ----------
    column
        The column that names the unit each row belongs to.

    Examples
    --------
    >>> Unit("patient_id")
    Unit('patient_id')
    >>> Unit.row()          # event level: each row is its own unit
    Unit.row()
    """

    column: str

    def __post_init__(self) -> None:
        column: object = self.column
        if not isinstance(column, str) or "\x00" in column:
            raise bad_parameter(
                "unit", "the name of a column", self.column, fix=Declare("unit", "patient_id")
            )
        if self.column == _ROW:
            raise bad_parameter(
                "unit",
                'a column with a name other than "row"',
                self.column,
                why="ledgers and certificates write event level as row, so the name would be ambiguous",
                fix="rename the column, or leave the unit empty to protect single rows",
            )

    @classmethod
    def row(cls) -> Unit:
        """Protect single rows (event level): each row of a person is protected, not the person."""
        return cls("")

    @property
    def is_row(self) -> bool:
        """Whether each row is its own unit."""
        return not self.column

    def __repr__(self) -> str:
        return "Unit.row()" if self.is_row else f"Unit({self.column!r})"

    def __str__(self) -> str:
        return _ROW if self.is_row else self.column


@dataclass(frozen=True, slots=True)
class Identity:
    """What a budget belongs to: declared facts only, nothing that depends on the data."""

    name: str
    version: int
    unit: Unit
    adjacency: Adjacency

    @property
    def account(self) -> str:
        """The name of the ledger account that pays for this dataset. A new session does not reset it."""
        return self.name

    def document(self) -> dict[str, str | int]:
        """Return the identity as JSON."""
        return {
            "name": self.name,
            "version": self.version,
            "unit": str(self.unit),
            "adjacency": self.adjacency,
        }
