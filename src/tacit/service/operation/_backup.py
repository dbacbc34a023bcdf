"""Backup and restore: copies that belong together, the key apart, and never the witness.

Order matters. The service's database is copied first and the ledger after it: so the copy of the ledger
holds every charge that the copy of the database knows of. Artifacts come last, because an artifact is on the
disk before the ledger names it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from tacit.errors import TacitError, missing_file
from tacit.ledger import Ledger
from tacit.service._database import Database
from tacit.service._times import now_text

if TYPE_CHECKING:
    from tacit.service._settings import ServiceSettings

_MANIFEST: Final = "manifest.json"
_DATABASE, _LEDGER, _ARTIFACTS, _KEY = (
    "service.db", "service.ledger", "service.ledger.artifacts", "service.ledger.key",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What was copied, and what the operator has to do.

    Parameters
    ----------
    copied
        The files.
    left
        What to do, in sentences.
    """

    copied: tuple[str, ...]
    left: tuple[str, ...]


def back_up(settings: ServiceSettings, target: Path, *, with_key: bool = False) -> BackupReport:
    """Copy the service into a new folder while it runs.

    Guarantee: each file is a state that the service was in, and the ledger's copy is not older than the
    database's. The witness is not copied: beside an old ledger it would call the old ledger complete.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise TacitError("cannot-write", f"{target} exists and is not empty", fix="name a new folder")
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    omitted: list[str] = []
    facts: dict[str, Any] = {"form": 1, "made": now_text(), "tacit": version("tacit")}
    if _on_server(settings.database_place):
        omitted.append(_dump("database", settings.database_place, target))
    else:
        _copy_database(Path(settings.database_place), target / _DATABASE)
    if _on_server(settings.ledger_place):
        omitted.append(_dump("ledger", settings.ledger_place, target))
    else:
        facts["head"] = _head(settings)
        _copy_database(Path(settings.ledger_place), target / _LEDGER)
        _copy_folder(Path(f"{settings.ledger_place}.artifacts"), target / _ARTIFACTS)
    key = Path(settings.key_place or f"{settings.ledger_place}.key")
    if with_key:
        _copy_file(key, target / _KEY)
    else:
        omitted.append(f"Keep a copy of the ledger's key {key} in another place than this backup.")
    facts["files"] = {name: _digest(target / name) for name in _names(target)}
    _write(target / _MANIFEST, json.dumps(facts, indent=1).encode())
    return BackupReport(tuple(facts["files"]), tuple(omitted))


def restore(
    settings: ServiceSettings, source: Path, *, key: Path | None = None, keep_tokens: bool = False
) -> BackupReport:
    """Put a backup into the places that the settings name; nothing that exists is replaced.

    Guarantee: a file that differs from what was backed up is refused before anything is written. Sessions,
    links and, unless ``keep_tokens``, tokens of the copy are void: some may have been revoked since.
    """
    files = _checked(source)
    places = {_DATABASE: Path(settings.database_place), _LEDGER: Path(settings.ledger_place)}
    for name, target in places.items():
        if name in files and target.exists():
            raise TacitError(
                "cannot-write",
                f"{target} exists, and a restore replaces nothing",
                fix="move it away, or restore into a new folder",
            )
    has_key, own_key = _KEY in files, Path(settings.key_place or f"{settings.ledger_place}.key")
    if _LEDGER in files and not (own_key.exists() or has_key or key is not None):
        raise TacitError(
            "ledger-key",
            f"the backup does not hold the ledger's key, and {own_key} does not exist",
            fix="--key FILE, the copy of the key that was kept elsewhere",
        )
    settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not own_key.exists() and (has_key or key is not None):
        _copy_file(key if key is not None else source / _KEY, own_key)
    for name in files:
        part = Path(name)
        if name in places:
            _copy_file(source / name, places[name])
        elif part.parts[0] == _ARTIFACTS:
            folder = Path(f"{settings.ledger_place}.artifacts")
            folder.mkdir(mode=0o700, exist_ok=True)
            if not (folder / part.name).exists():  # its name is the digest of what it holds
                _copy_file(source / name, folder / part.name)
    omitted = [] if _DATABASE not in files else _void(settings, keep_tokens=keep_tokens)
    return BackupReport(tuple(files), tuple(omitted + _ledger_words(settings)))


def _void(settings: ServiceSettings, *, keep_tokens: bool) -> list[str]:
    """Make void what may have been revoked after the backup."""
    database = Database.open(settings.database_place)
    with database.change() as change:
        change.run("DELETE FROM sessions")
        change.run("DELETE FROM links")
        if not keep_tokens:
            change.run("UPDATE tokens SET revoked = 1")
    database.close()
    words = "All sessions and invitations are void"
    words += ". Tokens are as they were: revoke again those revoked since then." if keep_tokens else (
        ", and so are all tokens: people make new ones."
    )  # fmt: skip
    return [
        words,
        "People and roles are as they were when the backup was made: check who was removed since then.",
    ]


def _ledger_words(settings: ServiceSettings) -> list[str]:
    """Open the ledger that was restored, and say in what state it is."""
    where = settings.ledger_place
    try:
        with Ledger.open(
            where, key=settings.key_place or None, witness=settings.witness or None, create=False
        ) as ledger:
            refusal = ledger.refusal
    except TacitError as error:
        refusal = error
    if refusal is None:
        return ["The ledger is not older than its witness. Start the service with: tacit serve"]
    command = f'tacit budget continue-from-backup {where} --statement "REASON" --who NAME'
    return [
        f"The service will be read-only: {refusal.what}.",
        "The totals of an old copy are too low, so it takes no charges. Put the newest copy in its place.",
        f"If that one is lost for good, go on with nothing left to spend: {command}",
    ]


def _checked(source: Path) -> list[str]:
    """Return the names of a backup's files, after comparing each with the manifest."""
    try:
        manifest = json.loads((source / _MANIFEST).read_bytes())
        files = dict(manifest["files"])
        is_known_form = manifest["form"] == 1
    except (OSError, ValueError, KeyError, TypeError):
        raise TacitError("bad-parameter", f"{source} is not a backup of a service") from None
    if not is_known_form:
        raise TacitError("unknown-version", f"{source} was written by a newer version of Tacit")
    for name, digest in files.items():
        part = Path(name)
        inside = name in {_DATABASE, _LEDGER, _KEY} or (len(part.parts) == 2 and part.parts[0] == _ARTIFACTS)
        if not inside or not (source / name).is_file() or _digest(source / name) != digest:
            raise TacitError(
                "bad-parameter",
                "a file of the backup is missing or differs from what was backed up",
                fix="use another backup",
            )
    return list(files)


def _copy_database(source: Path, target: Path) -> None:
    """Copy an SQLite file by SQLite's own backup call, which sees one state while others write."""
    if not source.exists():
        raise missing_file(
            source,
            why="a service writes this file when it starts for the first time",
            fix="name the folder of a service that has run: tacit serve --folder FOLDER backup TARGET",
        )
    uri = f"file:{quote(str(source.absolute()))}?mode=rw"
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(sqlite3.connect(uri, uri=True)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
        new.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
        integrity = new.execute("PRAGMA integrity_check").fetchone()[0]
    if integrity != "ok":
        raise TacitError("ledger-damaged", f"the copy of {source.name} is not intact", fix="check the disk")
    _sync(target)


def _copy_file(source: Path, target: Path) -> None:
    try:
        _write(target, source.read_bytes())
    except OSError as error:
        raise TacitError("cannot-write", f"{target.name} cannot be copied: {error.strerror}") from None


def _copy_folder(source: Path, target: Path) -> None:
    if source.is_dir():
        target.mkdir(mode=0o700)
        for file in sorted(source.iterdir()):
            if file.is_file() and file.suffix != ".new":
                shutil.copyfile(file, target / file.name)
                _sync(target / file.name)


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _names(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _head(settings: ServiceSettings) -> list[object]:
    """Return the log's end before the copy: the copy holds at least that."""
    with Ledger.open(
        settings.ledger_place, key=settings.key_place or None, witness=settings.witness or None, create=False
    ) as ledger:
        return [ledger.head.count, ledger.head.hash]


def _on_server(address: str) -> bool:
    return address.startswith(("postgresql://", "postgres://"))


def _dump(subject: str, address: str, target: Path) -> str:
    parts = urlsplit(address)
    user = f"{parts.username}@" if parts.username else ""
    server = parts.netloc.rpartition("@")[2]  # with its port; the password stays out
    options = urlencode([one for one in parse_qsl(parts.query) if one[0] != "password"])
    public_address = f"{parts.scheme}://{user}{server}{parts.path}{'?' if options else ''}{options}"
    command = f"pg_dump --format=custom --file={target / subject}.dump '{public_address}'"
    return f"The {subject} is on a server. Copy it there, database before ledger: {command}"
