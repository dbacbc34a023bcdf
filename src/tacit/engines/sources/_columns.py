"""Columns of one source as arrays, for fields that count with NumPy: points of a map, edges of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from tacit.engines._values import quote
from tacit.engines.duckdb._engine import DuckDB
from tacit.engines.sources._arguments import check_sole, read_source
from tacit.engines.sources._sources import SourceTable
from tacit.errors import TacitError
from tacit.fixes import Choose

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

#: How a column is read: numbers; names of things (nodes, zones), which become whole numbers; or the owner.
ColumnRole: TypeAlias = Literal["number", "name", "owner"]
_TABLE = "rows"


@dataclass(frozen=True, slots=True)
class ReadColumns:
    """The rows of a source, column by column, in any order.

    Parameters
    ----------
    numbers
        Number columns: floats, NaN where a cell is missing or is no number.
    codes
        Name and owner columns: the place of each name in ``names``, or -1 where a cell is missing. All name
        columns share one list of names, the owner has a list of its own, which is not kept.
    names
        The names, as text, in the order of their bytes. The order of two names is a fact about the two.
    owner_hashes
        A hash of each row's owner, a function of the owner alone, whoever else is there; None without owners.
    """

    numbers: Mapping[str, NDArray[np.float64]]
    codes: Mapping[str, NDArray[np.int64]]
    names: tuple[str, ...]
    owner_hashes: NDArray[np.uint64] | None = None


class SourceColumns:
    """A source of rows of which some columns are read as arrays, at once and only after a charge.

    Guarantee: opening it reads the names of the columns, and checks the form of a CSV file. No value makes
    `read` fail: a cell that is no number, or that cannot be read, is missing. 1, 1.0 and '1' are the
    same name.

    Parameters
    ----------
    source
        A path, a frame, a DuckDB connection or a pair, as in `tacit.protect`.
    roles
        How each column is read. At most one is the owner.

    Examples
    --------
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"who": [7, 7, 9], "from": ["b", "a", None], "km": ["3.5", "x", "2"]})
    >>> read = SourceColumns(trips, {"who": "owner", "from": "name", "km": "number"}).read()
    >>> read.codes["who"].tolist(), read.codes["from"].tolist(), read.names
    ([0, 0, 1], [1, 0, -1], ('a', 'b'))
    >>> read.numbers["km"].tolist()
    [3.5, nan, 2.0]
    """

    def __init__(self, source: object, roles: Mapping[str, ColumnRole]) -> None:
        self._roles = dict(roles)
        owner = tuple(name for name, role in self._roles.items() if role == "owner")
        self.source = read_source(source)
        self._engine = DuckDB({_TABLE: SourceTable(self.source, owner)}, key=0, snapshot=None)
        columns = self._engine.columns(_TABLE)
        missing = next((name for name in self._roles if columns is not None and name not in columns), None)
        if missing is not None:
            raise TacitError(
                "unknown-column",
                f"the source has no column {missing!r}",
                why="columns are known by the names that the source gives them",
                fix=Choose(tuple(columns or ()), given=missing),
            )
        check_sole(self.source, roles)
        self.source.check_form()

    @property
    def missing_file(self) -> str:
        """The path of the file if it does not exist now; empty for every other source."""
        return self._engine.missing_file(_TABLE)

    def read(self) -> ReadColumns:
        """Read all rows. Rows without an owner are dropped if there is an owner column."""
        names = [name for name, role in self._roles.items() if role == "name"]
        arrays = self._engine.arrays(self._sql(names))
        numbers = {
            name: np.ma.filled(np.ma.asarray(arrays[f"n{i}"], dtype=np.float64), np.nan)
            for i, (name, role) in enumerate(self._roles.items())
            if role == "number"
        }
        codes = {
            name: np.ma.filled(np.ma.asarray(arrays[f"n{i}"]), -1).astype(np.int64)
            for i, (name, role) in enumerate(self._roles.items())
            if role != "number"
        }
        distinct_names: tuple[str, ...] = ()
        if names:
            distinct_names = tuple(map(str, self._engine.arrays(f"{self._all_names(names)} ORDER BY v")["v"]))
        owned = "owner" in self._roles.values()
        hashes = np.ma.getdata(arrays["h"]).astype(np.uint64) if owned else None
        return ReadColumns(numbers, codes, distinct_names, hashes)

    def close(self) -> None:
        """Close the connection."""
        self._engine.close()

    def _all_names(self, names: list[str]) -> str:
        """Write the different names of all name columns."""
        each = " UNION ALL ".join(f"SELECT tacit_text({quote(c)}) AS v FROM {_TABLE}" for c in names)
        return f"SELECT DISTINCT v FROM ({each}) WHERE v IS NOT NULL"

    def _sql(self, names: list[str]) -> str:
        """Write the statement that returns each column as ``n0``, ``n1``, ..."""
        parts = []
        for i, (name, role) in enumerate(self._roles.items()):
            match role:
                case "number":
                    parts.append(f"tacit_number({quote(name)}) AS n{i}")
                case "owner":
                    parts.append(f"dense_rank() OVER (ORDER BY tacit_u) - 1 AS n{i}")
                case "name":
                    parts.append(f"t{i}.code AS n{i}")
        if "owner" in self._roles.values():
            parts.append("hash(CAST(tacit_u AS VARCHAR)) AS h")
        joins = "".join(
            f" LEFT JOIN tacit_names t{i} ON t{i}.v = tacit_text({_TABLE}.{quote(name)})"
            for i, (name, role) in enumerate(self._roles.items())
            if role == "name"
        )
        codes = f"SELECT v, row_number() OVER (ORDER BY v) - 1 AS code FROM ({self._all_names(names)})"
        before = f"WITH tacit_names AS MATERIALIZED ({codes}) " if names else ""
        return f"{before}SELECT {', '.join(parts)} FROM {_TABLE}{joins}"
