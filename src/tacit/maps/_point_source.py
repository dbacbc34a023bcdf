"""The points of a map: read after the first charge, cut to each unit's limit, and kept as arrays."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.core import needs
from tacit.errors import TacitError
from tacit.fixes import Code, Say
from tacit.mechanisms import ranking_secret

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.core import Unit
    from tacit.engines import ColumnRole, SourceColumns
    from tacit.maps._areas import Box


@dataclass(frozen=True, slots=True, eq=False)
class OwnedPoints:
    """The points that count; those of one owner stand beside each other, in the order of their ranks.

    Parameters
    ----------
    lat, lon
        Degrees, all inside the box.
    owner
        A number for the owner of each point, points of one owner beside each other; None where each point
        stands for itself.
    rank
        The keyed hash of each point, which decides what is kept where a limit drops some; None with no owner.
        Should two collide, the coordinates decide.
    """

    lat: NDArray[np.float64]
    lon: NDArray[np.float64]
    owner: NDArray[np.int64] | None = None
    rank: NDArray[np.uint64] | None = None

    def __len__(self) -> int:
        return len(self.lat)


class PointSource:
    """Where the points are. Opening it reads the names of columns alone; `load` reads the points, once.

    Guarantee: no value makes `load` fail. A point whose latitude or longitude is missing, is not a number or
    lies outside the box is dropped. At most ``rows`` points of one owner are kept; which ones depends on the
    points of this owner and on a secret alone.
    """

    def __init__(self, source: object, lat: str, lon: str, unit: Unit, box: Box, rows: int | None) -> None:
        self._box, self._rows = box, rows
        self.names = lat, lon
        self._unit = unit
        self._secret = ranking_secret()
        self._lock = threading.Lock()
        self._loaded: OwnedPoints | None = None
        self._array = source if isinstance(source, np.ndarray) else None
        self._columns: SourceColumns | None = None
        if self._array is not None:
            _check_array(self._array, unit)
            return
        roles: dict[str, ColumnRole] = {lat: "number", lon: "number"}
        roles |= dict.fromkeys(unit.columns, "owner")
        needs("tc.points", "duckdb", "tacit")
        from tacit.engines import SourceColumns

        self._columns = SourceColumns(source, roles)

    @property
    def missing_file(self) -> str:
        """The path of the file if it is needed and does not exist now; empty for every other source."""
        is_loaded = self._columns is None or self._loaded is not None
        return "" if is_loaded or self._columns is None else self._columns.missing_file

    def load(self) -> OwnedPoints:
        """Return the points that count; reads them the first time."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._read()
            return self._loaded

    def _read(self) -> OwnedPoints:
        owner, hashes = None, None
        if self._array is not None:
            with np.errstate(all="ignore"):  # a warning about a value would say something about it
                read_in = np.ma.asarray(self._array).astype(np.float64)
            lat, lon = (np.ma.filled(read_in[:, i], np.nan) for i in (0, 1))  # masked is missing
        else:
            assert self._columns is not None  # noqa: S101 - one of the two is given
            rows = self._columns.read()
            lat, lon = (rows.numbers[name] for name in self.names)
            owner = rows.codes[self._unit.columns[0]] if self._unit.columns else None
            hashes = rows.owner_hashes
            self._columns.close()
        within = self._box.inside(lat, lon)
        lat, lon = lat[within], self._box.unwrapped(lon)[within]
        if owner is None:
            return OwnedPoints(lat, lon)
        assert hashes is not None  # noqa: S101 - there are owners
        rank = rank_of(self._secret, lat, lon, owner=hashes[within])
        return _within_limit(lat, lon, owner[within], rank, self._rows)


def _within_limit(
    lat: NDArray[np.float64], lon: NDArray[np.float64], owner: NDArray[np.int64],
    rank: NDArray[np.uint64], rows: int | None,
) -> OwnedPoints:  # fmt: skip
    """Sort the points by owner and rank, and keep the first ``rows`` of each owner."""
    order = np.lexsort((lon, lat, rank, owner))  # should two ranks collide, the points decide
    owner = owner[order]
    if rows is not None and len(owner):
        starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        ranks = np.arange(len(owner)) - np.repeat(starts, np.diff(np.r_[starts, len(owner)]))
        order, owner = order[ranks < rows], owner[ranks < rows]
    return OwnedPoints(lat[order], lon[order], owner, rank[order])


def rank_of(
    secret: int, *values: NDArray[np.float64], owner: NDArray[np.uint64] | None = None
) -> NDArray[np.uint64]:
    """Return a keyed hash of each point's owner and coordinates (two rounds of splitmix64 for each number).

    Two points of one owner with equal coordinates have equal ranks, so it does not matter which of them is
    kept. Without the owner, all people who visit the same two places would keep the same one of them.

    Examples
    --------
    >>> a = rank_of(5, np.array([1.0, 1.0, -0.0]), np.array([2.0, 2.0, 7.0]))
    >>> bool(a[0] == a[1]), bool(a[0] == a[2]), bool(a[2] == rank_of(5, np.zeros(1), np.array([7.0]))[0])
    (True, False, True)
    """
    state = np.full(len(values[0]), secret, dtype=np.uint64)
    numbers = [(value + 0.0).view(np.uint64) for value in values]  # -0.0 and 0.0 are the same place
    with np.errstate(over="ignore"):
        for number in [*(() if owner is None else (owner,)), *numbers]:
            state ^= number
            for _ in range(2):
                state = state + np.uint64(0x9E3779B97F4A7C15)
                state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                state = state ^ (state >> np.uint64(31))
    return state


def _check_array(array: NDArray[np.float64], unit: Unit) -> None:
    """Refuse an array that cannot hold points, by its shape and type alone."""
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iuf":
        raise TacitError(
            "bad-parameter",
            "an array of points has two columns of numbers, latitude and longitude",
            why=f"this one has {array.ndim} dimensions and the type {array.dtype}",
            fix=Code("np.column_stack([lat, lon])"),
        )
    if unit.columns:
        raise TacitError(
            "unknown-column",
            f"an array has no column {unit.columns[0]!r}",
            why="an array of two columns does not say to whom a point belongs",
            fix=Say("give a data frame that has the column, or declare single rows as the unit"),
        )
