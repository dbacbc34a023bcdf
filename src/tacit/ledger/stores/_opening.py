"""Open a ledger: find its store, its key and its witness, and refuse what does not belong together."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Do, Either, Say, Set
from tacit.ledger import _refusals
from tacit.ledger._refusals import readable
from tacit.ledger.checks._chain import KEY_FILE_VARIABLE, Chain, Head, load_key, new_key
from tacit.ledger.checks._verification import accounts_to_seal
from tacit.ledger.checks._witness import Witness
from tacit.ledger.stores._files import LedgerFile
from tacit.ledger.stores._memory import MemoryStore
from tacit.ledger.stores._postgres import PostgresStore
from tacit.ledger.stores._sqlite import ReadOnlySqliteStore, SqliteStore
from tacit.ledger.stores._store import LedgerIdentity
from tacit.ledger.stores._writer import Writer

if TYPE_CHECKING:
    from tacit.fixes import Fix
    from tacit.ledger.stores._store import Store

#: Where a ledger or one of its files is: a path, or the address of a server.
Location: TypeAlias = str | os.PathLike[str]


def open_memory() -> Writer:
    """Open a ledger that lives as long as the process."""
    chain = Chain(new_key())
    store = MemoryStore()
    return Writer(store, chain, store.create(_new_identity(chain)), None)


def open_location(
    where: Location, *, key: bytes | Location | None, witness: Location | None, create: bool, wait: float
) -> Writer:
    """Open a ledger in a file or on a server."""
    if not (key is None or isinstance(key, bytes)):
        _require_path("key", key, "the key's bytes, or the path of its file", Set(key="hospital.key"))
    if witness is not None:
        _require_path("witness", witness, "the path of a file", Set(witness="study.ledger.witness"))
    if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")):
        return _open_server(where, key=key, witness=witness, create=create, wait=wait)
    where_fix = Do("open-ledger", path="study.ledger")
    _require_path("where", where, "a path or a postgresql:// address", where_fix, address=False)
    return _open_file(Path(where), key=key, witness=witness, create=create, wait=wait)


def _is_path(value: object) -> bool:
    """Whether a value can be the name of a file: not empty, and of characters that can be written."""
    try:
        path = Path(value)  # type: ignore[arg-type]
        return bool(path.name) and "\0" not in str(path) and bool(str(path).encode())
    except (TypeError, UnicodeEncodeError):
        return False


def _require_path(parameter: str, path: object, must_be: str, fix: Fix, *, address: bool = True) -> None:
    """Refuse a name that no file can have, and the address of another kind of server."""
    if not _is_path(path) or (not address and "://" in str(path)):
        raise bad_parameter(parameter, must_be, path, fix=fix)


def _open_file(
    path: Path, *, key: bytes | Location | None, witness: Location | None, create: bool, wait: float
) -> Writer:
    beside = Path(witness) if witness is not None else path.with_name(path.name + ".witness")
    # The witness is read first: another process makes the file before its witness, maybe just now.
    if _size(beside) > 0 and _size(path) == 0:
        _refuse_new_start(str(path), beside)
    with readable(str(path)):
        kind = ReadOnlySqliteStore if LedgerFile(path).is_read_only() else SqliteStore
        store = kind(path, create=create, wait=wait)
    writer = _join(store, key, path.with_name(path.name + ".key"), beside)
    if witness is None and writer.refusal is None:
        try:
            writer.refusal = _start_witness(store, writer, beside)
        except BaseException:
            writer.close()
            raise
    return writer


def _start_witness(store: SqliteStore, writer: Writer, path: Path) -> TacitError | None:
    """Start the witness beside a file and record that there is one; refuse the file if it was lost since.

    The witness is durable before the file records it. So whoever finds the record and not the witness has a
    copy of the file alone, or somebody removed the witness. The record is written into the file itself, so
    that a copy without the write-ahead log holds it too.
    """
    witness = writer.witness
    recorded = store.has_witness()  # before the witness is read: another process may be starting it
    if witness is not None and recorded and witness.head() is not None:
        return None
    if recorded:
        return TacitError(
            "ledger-rolled-back",
            f"the witness {path} is missing or empty, but {store.name} had one",
            why="without it, nobody would notice an old copy, or a copy without the newest entries, whose "
            "totals are too low; name a new witness only if this is certainly the latest copy",
            fix=Either(Say(f"put {path} back"), Do("give-witness-file", path=str(path)), _refusals.CONTINUE),
        )
    if witness is None or store.read_only:
        return None
    with store.reading() as reader:
        tip = reader.tip()
    with suppress(OSError):  # not recorded then, so nothing is missed later
        witness.start(Head(tip.seq, tip.mac.hex()), writer.contains)
        store.record_witness()
    return None


def _open_server(
    url: str, *, key: bytes | Location | None, witness: Location | None, create: bool, wait: float
) -> Writer:
    store = PostgresStore(url, wait=wait)
    try:
        exists = create or store.identity() is not None
    except BaseException:
        store.close()
        raise
    if not exists:
        store.close()
        raise TacitError(
            "not-a-ledger",
            f"there is no ledger in {store.name}",
            fix=Do("open-ledger", path=store.name, create=True),
        )
    key_location = os.environ.get(KEY_FILE_VARIABLE) if key is None else key
    if witness is None and key_location is not None and not isinstance(key_location, bytes):
        witness = f"{os.fspath(key_location)}.witness"
    return _join(store, key, None, None if witness is None else Path(witness))


def _join(
    store: Store, key: bytes | Location | None, key_default: Path | None, witness: Path | None
) -> Writer:
    """Bring store, key and witness together, or close the store again."""
    with readable(store.name):
        return _joined(store, key, key_default, witness)


def _joined(
    store: Store, key: bytes | Location | None, key_default: Path | None, witness: Path | None
) -> Writer:
    witness_file: Witness | None = None
    try:
        began = witness is not None and _size(witness) > 0  # read before the store, as in `_open_file`
        identity = store.identity()
        if identity is None and began and witness is not None:
            _refuse_new_start(store.name, witness)
        chain = Chain(load_key(key, key_default, create=identity is None))
        identity = identity or store.create(_new_identity(chain))
        _require_key(store, identity, chain)
        reads = isinstance(store, ReadOnlySqliteStore)
        if witness is not None and (not reads or _size(witness) > 0):
            witness_file = Witness(witness, identity.ledger, write=not reads)
        writer = Writer(store, chain, identity, witness_file)
        if writer.refusal is None:
            store.upgrade(partial(accounts_to_seal, chain=chain, name=store.name))
    except BaseException:
        store.close()
        if witness_file is not None:
            witness_file.close_at_once()
        raise
    return writer


def _refuse_new_start(store: str, witness: Path) -> NoReturn:
    raise TacitError(
        "ledger-rolled-back",
        f"{store} is missing or empty, but its witness {witness} has seen entries in it",
        why="a new ledger in its place would start with the whole budget",
        fix=Either(
            _refusals.RESTORE, Say(f"remove {witness}, but only if this ledger never protected any data")
        ),
    )


def _require_key(store: Store, identity: LedgerIdentity, chain: Chain) -> None:
    if identity.fingerprint != chain.fingerprint:
        raise TacitError(
            "ledger-key",
            f"{store.name} was made with another key",
            why="with this key, entries can be neither checked nor added",
            fix=Do("give-key-file", path="the/file/it/was/made/with.key"),
        )


def _new_identity(chain: Chain) -> LedgerIdentity:
    return LedgerIdentity(new_key()[:16].hex(), chain.fingerprint)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
