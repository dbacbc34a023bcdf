"""Open a store, find its key and its witness, and refuse what does not belong together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tacit.errors import TacitError, bad_parameter
from tacit.ledger.chain import Chain
from tacit.ledger.desk import Desk
from tacit.ledger.keys import KEY_FILE_VARIABLE, load_key, new_key
from tacit.ledger.memory import MemoryStore
from tacit.ledger.postgres import PostgresStore
from tacit.ledger.sqlite import SqliteStore
from tacit.ledger.store import Meta
from tacit.ledger.witness import Witness

if TYPE_CHECKING:
    from tacit.ledger.store import Store

__all__ = ["Place", "open_memory", "open_place"]

Place = str | os.PathLike[str]


def open_memory() -> Desk:
    """Open a ledger that lives as long as the process."""
    chain = Chain(new_key())
    store = MemoryStore()
    return Desk(store, chain, store.create(_new_meta(chain)), None)


def open_place(
    where: Place, *, key: bytes | Place | None, witness: Place | None, create: bool, wait: float
) -> Desk:
    """Open a ledger in a file or on a server."""
    if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")):
        return _open_server(where, key=key, witness=witness, create=create, wait=wait)
    try:
        path = Path(where)
    except TypeError:
        path = Path()
    if not path.name or "\0" in str(path) or "://" in str(where):
        raise bad_parameter(
            "where", "a path or a postgresql:// address", where, fix="Ledger.open('study.ledger')"
        )
    return _open_file(path, key=key, witness=witness, create=create, wait=wait)


def _open_file(
    path: Path, *, key: bytes | Place | None, witness: Place | None, create: bool, wait: float
) -> Desk:
    beside = Path(witness) if witness is not None else path.with_name(path.name + ".witness")
    if _size(path) == 0 and _size(beside) > 0:
        _refuse_a_new_start(str(path), beside)
    store = SqliteStore(path, create=create, wait=wait)
    return _join(store, key, path.with_name(path.name + ".key"), beside)


def _open_server(
    url: str, *, key: bytes | Place | None, witness: Place | None, create: bool, wait: float
) -> Desk:
    store = PostgresStore(url, wait=wait)
    if not create and store.meta() is None:
        store.close()
        raise TacitError(
            "not-a-ledger", f"there is no ledger in {store.name}", fix="Ledger.open(url, key=...)"
        )
    named = os.environ.get(KEY_FILE_VARIABLE) if key is None else key
    if witness is None and named is not None and not isinstance(named, bytes):
        witness = f"{os.fspath(named)}.witness"
    return _join(store, key, None, None if witness is None else Path(witness))


def _join(store: Store, key: bytes | Place | None, key_default: Path | None, witness: Path | None) -> Desk:
    """Bring store, key and witness together, or let go of the store."""
    seen: Witness | None = None
    try:
        meta = store.meta()
        if meta is None and witness is not None and _size(witness) > 0:
            _refuse_a_new_start(store.name, witness)
        chain = Chain(load_key(key, key_default, create=meta is None))
        meta = meta or store.create(_new_meta(chain))
        _insist_on_the_key(store, meta, chain)
        seen = None if witness is None else Witness(witness, meta.ledger)
        return Desk(store, chain, meta, seen)
    except BaseException:
        store.close()
        if seen is not None:
            seen.abandon()
        raise


def _refuse_a_new_start(store: str, witness: Path) -> NoReturn:
    raise TacitError(
        "ledger-rolled-back",
        f"{store} is missing or empty, and its witness {witness} has seen entries in it",
        why="a new ledger in its place would start with the whole budget",
        fix=f"put the store back; only if it never guarded anything, remove {witness}",
    )


def _insist_on_the_key(store: Store, meta: Meta, chain: Chain) -> None:
    if meta.fingerprint != chain.fingerprint:
        raise TacitError(
            "ledger-key",
            f"{store.name} was made with another key",
            why="entries could be neither checked nor added",
            fix="Ledger.open(..., key='the/file/it/was/made/with.key')",
        )


def _new_meta(chain: Chain) -> Meta:
    return Meta(new_key()[:16].hex(), chain.fingerprint)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
