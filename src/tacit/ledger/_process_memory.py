"""The ledgers in memory of one Python process: one for each dataset that was declared without a ledger.

A cell that runs twice declares the same dataset twice. Both share one ledger, so the second run finds the
stored answer, or is refused. What makes two declarations one is the name and the source: a file by its path
and its last change, a table of a database by its address, a frame or an array by what is in it, and anything
else by being the same object. So other data under the same name never gets an answer about the first.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from tacit.ledger._ledger import Ledger, open_ledger

if TYPE_CHECKING:
    from tacit.ledger.stores._opening import Location

KEPT_IN_MEMORY: Final = "kept in memory: forgotten when Python ends"
_SERVERS: Final = ("postgresql://", "postgres://")

#: The ledgers by process, dataset and source, each with the source, which is then known again.
_ledgers: dict[tuple[int, str, str], tuple[Ledger, object]] = {}


def open_books(given: Ledger | Location | None, name: str, source: object) -> Ledger:
    """Read the ``ledger=`` argument of a dataset: without one, the ledger of this name and source is shared.

    Examples
    --------
    >>> open_books(None, "visits", "visits.csv") is open_books(None, "visits", "visits.csv")
    True
    >>> open_books(None, "visits", "visits.csv") is open_books(None, "visits", "others.csv")
    False
    """
    if given is not None:
        return open_ledger(given)
    key = os.getpid(), name, _recognised(source)
    if key not in _ledgers:
        _ledgers[key] = own_memory(), source
    return _ledgers[key][0]


def own_memory() -> Ledger:
    """Return a new ledger in memory, which says that it is forgotten: for data that nobody else can have."""
    ledger = Ledger.memory()
    ledger.kept = KEPT_IN_MEMORY
    return ledger


def forget_memory() -> None:
    """Forget the ledgers in memory, as the end of Python does: for tests."""
    _ledgers.clear()


def source_places(source: object, engine: object = None) -> list[str]:
    """Return where the data of a source is, if it is in a place: paths and tables, never what is in them.

    Examples
    --------
    >>> import os
    >>> source_places({"a": "x.csv", "b": [1, 2]}) == [os.path.realpath("x.csv")]
    True
    >>> source_places("visits", "postgresql://ana:secret@db/clinic")
    ['postgresql://db:5432/clinic public.visits']
    """
    if engine is not None and engine != "duckdb":
        return _tables_there(source, engine)
    match source:
        case str() if "://" in source:
            return [_address(source)]
        case str() | os.PathLike():
            return [os.path.realpath(source)]
        case Mapping():
            return [location for one in source.values() for location in source_places(one)]
        case (str() | os.PathLike() as base, str() as table) if not str(base).startswith(_SERVERS):
            return [f"{location}\n{table}" for location in source_places(base)]
        case (server, str() as table):
            return _tables_there(table, server)
    location = _place(source)
    return [] if location is None else source_places(location)


def _tables_there(source: object, engine: object) -> list[str]:
    """Return the tables of a source on a server or in a session, by their names there."""
    if isinstance(source, Mapping):
        return [place for one in source.values() for place in _tables_there(one, engine)]
    server, schema = _server(engine)
    if not isinstance(source, str) or not server:
        return []
    if server == "spark" and "/" in source:  # files, which other engines read too
        return source_places(source)
    return [f"{server} {source if '.' in source else f'{schema}.{source}'}"]


def _server(engine: Any) -> tuple[str, str]:
    """Return an engine without its users, because two roles read the same rows, and its usual schema."""
    if isinstance(engine, str):
        return (_address(engine), "public") if engine.startswith(_SERVERS) else ("", "")
    info: Any = getattr(engine, "info", None)
    if hasattr(info, "dbname"):  # a connection of psycopg
        return _database(info.host, str(info.port), info.dbname), "public"
    return ("spark", "default") if hasattr(engine, "catalog") else ("", "")


def _address(address: str) -> str:
    """Return an address without its user, password and parameters."""
    parts = urlsplit(address)
    if not address.startswith(_SERVERS):
        return f"{parts.scheme}://{parts.netloc}{parts.path}"
    options = dict(parse_qsl(parts.query))
    host, _, port = parts.netloc.rpartition("@")[2].partition(":")
    name = options.get("dbname", parts.path.removeprefix("/"))
    return _database(options.get("host", host), options.get("port", port), name)


def _database(host: str, port: str, name: str) -> str:
    local = not host or host.startswith("/")  # a socket of this machine
    return f"postgresql://{'localhost' if local else host}:{port or 5432}/{name}"


def _place(source: Any) -> object:
    """Return the place of a source that was declared with more, as a CSV file is; with its table, if any."""
    location, table = getattr(source, "place", None), getattr(source, "table", "")
    return (location, table) if table and location is not None else location


def _recognised(source: object) -> str:
    """Return a text that is equal for equal sources."""
    if isinstance(source, Mapping):
        return repr([(str(name), _recognised(one)) for name, one in source.items()])
    if isinstance(source, tuple | list) and len(source) <= 100:
        return repr([_recognised(one) for one in source])
    if source is None or isinstance(source, bool | int | float):
        return repr(source)
    if places := source_places(source):
        return repr([(location, _changed(location)) for location in places])
    if (location := _place(source)) is not None:
        return _recognised(location)
    return _contents(source) or f"object {id(source)}"


def _changed(path: str) -> object:
    """Return when a file changed last, and its size; nothing for other places."""
    try:
        about = Path(path).stat()
    except (OSError, ValueError):
        return None
    return (about.st_mtime_ns, about.st_size) if Path(path).is_file() else None


def _contents(source: Any) -> str:
    """Return a digest of a frame's or an array's contents; an empty text for anything else."""
    package = type(source).__module__.partition(".")[0]
    digest = hashlib.sha256()
    try:
        if package == "numpy" and source.dtype.kind != "O":
            digest.update(f"{source.dtype.str}{source.shape}".encode() + source.tobytes())
        elif package == "pandas" and hasattr(source, "columns"):
            from pandas.util import hash_pandas_object

            digest.update(f"{[*source.columns]}{[str(kind) for kind in source.dtypes]}".encode())
            digest.update(hash_pandas_object(source, index=False).to_numpy().tobytes())
        elif package == "polars" and hasattr(source, "write_ipc"):
            buffer = io.BytesIO()
            source.rechunk().write_ipc(buffer)
            digest.update(buffer.getbuffer())
        elif package == "pyarrow" and hasattr(source, "to_batches"):
            digest.update(f"{source.schema}".encode())
            for batch in source.combine_chunks().to_batches():
                digest.update(batch.serialize())
        else:
            return ""
    except (TypeError, ValueError, AttributeError, OverflowError, MemoryError):
        return ""  # cells of a kind that these libraries cannot digest
    return f"{package} {digest.hexdigest()}"
