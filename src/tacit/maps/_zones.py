"""The public zones between which trips are counted: names, or the cells of a grid over the box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.parameters import Listed

if TYPE_CHECKING:
    from tacit.core import JSON
    from tacit.maps._box import Box

_MOST_PAIRS = 2**22
#: The names of zones, or the rows and columns of a grid over the box.
ZonesGiven: TypeAlias = Sequence[str] | tuple[int, int]


@dataclass(frozen=True, slots=True)
class Zones:
    """Public zones.

    Parameters
    ----------
    names
        What each is called; those of a grid "row, column", from "0, 0" in the south-west.
    shape
        The rows and columns of the grid; None if zones are names.
    """

    names: tuple[str, ...]
    shape: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        return ", ".join(self.names) if self.shape is None else " x ".join(map(str, self.shape))

    def to_json(self) -> JSON:
        """Return the shape of the grid, or the names."""
        return list(self.names if self.shape is None else self.shape)


def read_zones(given: object, box: Box | None) -> Zones:
    """Read public zones, or refuse them.

    Examples
    --------
    >>> read_zones(["north", 2.0], None).names
    ('north', '2')
    """
    if box is not None:
        if not (isinstance(given, tuple) and len(given) == 2):
            raise bad_parameter("zones", "rows and columns of a grid", given, fix=Set(zones=(8, 8)))
        rows, columns = (count("zones", side, zero=False) for side in given)
        _check_pairs(rows * columns)
        names = tuple(f"{row}, {column}" for row in range(rows) for column in range(columns))
        return Zones(names, (rows, columns))
    # 1.0 and 1 are one name in every source, so they are here
    listed = [
        str(int(zone)) if isinstance(zone, float) and zone.is_integer() else str(zone)
        for zone in Listed("names", '["north", "south"]').read("zones", given)
    ]
    different = Listed("names", '["north", "south"]', different=True).read("zones", listed)
    _check_pairs(len(different))
    return Zones(tuple(different))


def _check_pairs(zones: int) -> None:
    if zones**2 > _MOST_PAIRS:
        raise bad_parameter(
            "zones", f"at most {_MOST_PAIRS:,} pairs", f"{zones**2:,} pairs",
            why="most pairs would hold nothing but noise", fix="use fewer and larger zones",
        )  # fmt: skip
