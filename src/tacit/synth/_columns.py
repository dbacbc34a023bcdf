"""The columns of synthetic rows: public places, and the values that rows show for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.core import JSON, Value
    from tacit.tables import Axis


@dataclass(frozen=True, slots=True)
class SyntheticColumn:
    """One column: its name, its places as keys, and the cuts where it is a number or a date.

    Examples
    --------
    >>> age = SyntheticColumn("age", ("0 to 40", "40 to 80", None), (0.0, 40.0, 80.0))
    >>> age.size, age.invented, age.place_of(55), age.place_of(None), age.place_of("old")
    (3, True, 1, 2, None)
    """

    name: str
    places: tuple[Value, ...]
    cuts: tuple[float | str, ...] = ()

    @classmethod
    def of(cls, axis: Axis) -> SyntheticColumn:
        """Keep of an axis what a release shows; whole numbers as such."""
        texts = [
            int(one) if type(one) is float and one.is_integer() and abs(one) < 2**53 else one
            for one in axis.shown
        ]
        return cls(axis.name, tuple(texts), axis.cuts)

    @property
    def size(self) -> int:
        """How many places there are."""
        return len(self.places)

    @property
    def invented(self) -> bool:
        """Whether rows show invented values: something between two cuts."""
        return bool(self.cuts)

    @property
    def labels(self) -> tuple[str, ...]:
        """The places as people read them."""
        return tuple("(missing)" if place is None else str(place) for place in self.places)

    def place_of(self, value: object) -> int | None:
        """Return the place of a value, or the place with this label; None where there is none."""
        if value is None or isinstance(value, str | bool) or not self.cuts:
            same = [i for i, place in enumerate(self.places) if place == value and _alike(place, value)]
            if same:
                return same[0]
        if not self.cuts or value is None or isinstance(value, bool):
            return None
        try:
            return self._cell(value)
        except (TypeError, ValueError):
            return None

    def _cell(self, value: Any) -> int | None:
        """Return the cell between cuts; what lies outside is in the first or in the last."""
        dated = isinstance(self.cuts[0], str)
        cuts: Any = np.array(self.cuts, "datetime64[s]" if dated else np.float64)
        at: Any = np.datetime64(str(value), "s") if dated else float(value)
        if np.isnat(at) if dated else not math.isfinite(at):
            return None
        return int(np.clip(np.searchsorted(cuts, at, side="right") - 1, 0, len(cuts) - 2))

    def values(self, codes: NDArray[np.int32], by: np.random.Generator) -> NDArray[Any]:
        """Return the values that rows show: keys as they are, and an invented value in each cell.

        Between whole cuts the invented values are whole numbers; in a cell of dates they are days.
        """
        if not self.cuts:
            return np.asarray(_array(self.places)[codes])
        cells = len(self.cuts) - 1
        inside = np.minimum(codes, cells - 1)
        share = by.random(len(codes))
        if isinstance(self.cuts[0], str):
            days = np.array(self.cuts, "datetime64[s]").astype("datetime64[D]").astype(np.int64)
            numbers = days[inside] + np.floor(share * np.maximum(days[inside + 1] - days[inside], 1))
            return np.where(codes < cells, numbers.astype("datetime64[D]"), np.datetime64("NaT"))
        cuts = np.array(self.cuts, np.float64)
        numbers = cuts[inside] + share * (cuts[inside + 1] - cuts[inside])
        integral = bool(np.all(cuts == np.floor(cuts)) and np.abs(cuts).max() < 2**53)
        if integral:
            numbers = np.floor(numbers)
        if integral and self.size == cells:
            return np.asarray(numbers.astype(np.int64))
        return np.where(codes < cells, numbers, np.nan)

    def to_json(self) -> JSON:
        """Return the column as JSON."""
        return {"name": self.name, "places": list(self.places), "cuts": list(self.cuts)}

    @classmethod
    def from_json(cls, document: Any) -> SyntheticColumn:
        """Read the column back; raises ``ValueError`` where it is not one."""
        name, places, cuts = document["name"], document["places"], document["cuts"]
        if not isinstance(name, str) or not isinstance(places, list) or not isinstance(cuts, list):
            raise ValueError("not a column")  # noqa: TRY004 - what every reader of documents raises
        plain = all(one is None or isinstance(one, str | int | float) for one in places)
        if (
            not places
            or not plain
            or (cuts and not (_rising(cuts) and 0 <= len(places) - len(cuts) + 1 <= 1))
        ):
            raise ValueError("not a column")
        return cls(name, tuple(places), tuple(cuts))


def _rising(cuts: list[Any]) -> bool:
    """Return whether cuts are at least two rising numbers, or dates."""
    if all(isinstance(cut, str) for cut in cuts):
        rising_cuts: Any = np.array(cuts, "datetime64[s]")  # raises ValueError where one is no date
        finite = not np.isnat(rising_cuts).any()
    else:
        rising_cuts = np.array([cut if type(cut) in {int, float} else math.nan for cut in cuts], np.float64)
        finite = bool(np.abs(rising_cuts).max() < 2**1000)  # so that differences are finite
    return len(cuts) > 1 and finite and bool(np.all(rising_cuts[1:] > rising_cuts[:-1]))


def _alike(label: object, value: object) -> bool:
    """Tell True from 1."""
    return isinstance(label, bool) == isinstance(value, bool)


def _array(places: tuple[Value, ...]) -> NDArray[Any]:
    """Return the places as an array of one kind: numbers or booleans where all are, else objects."""
    if all(isinstance(one, bool) for one in places):
        return np.array(places, bool)
    if all(type(one) is int for one in places):
        return np.array(places, np.int64)
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in places):
        return np.array(places, np.float64)
    return np.array(places, object)
