"""The ledger's key file for its chain: kept outside the store, made once, never replaced silently."""

from __future__ import annotations

import os
from pathlib import Path

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Do, Either, Say, Set

#: Environment variable that names the key file where no argument does.
KEY_FILE_VARIABLE = "TACIT_LEDGER_KEY_FILE"

_BYTES = 32


def new_key() -> bytes:
    """Draw a key. It protects the log and adds no noise, so it does not come from ``noise/``."""
    return os.urandom(_BYTES)


def load_key(key: bytes | str | os.PathLike[str] | None, default: Path | None, *, create: bool) -> bytes:
    """Return the key, given as bytes or read from a file; a missing file is made if ``create`` allows it."""
    if isinstance(key, bytes):
        if len(key) < 16:
            raise bad_parameter("key", "at least 16 bytes", f"{len(key)} bytes", fix=Set(key="hospital.key"))
        return key
    named = key if key is not None else os.environ.get(KEY_FILE_VARIABLE)
    path = Path(named) if named is not None else default
    if path is None:
        raise TacitError(
            "ledger-key",
            "this ledger needs a key file, and none is named",
            why="the chain over its entries needs a key that is kept outside the store; the variable "
            f"{KEY_FILE_VARIABLE} can name its file",
            fix=Do("give-key-file", path="ledger.key"),
        )
    if not _exists(path):
        if not create:
            raise TacitError(
                "ledger-key",
                f"the ledger's key {path} is missing",
                why="without it, entries can be neither checked nor added",
                fix=Either(
                    Say(f"restore {path} from your backup"), Do("give-key-file", path="where/it/is.key")
                ),
            )
        _make(path)
    return _read(path)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:  # a name that is too long, a folder that nobody may enter
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> TacitError:
    return TacitError(
        "ledger-key",
        f"the key {path} cannot be read: {error.strerror}",
        fix=f"make {path} readable for yourself",
    )


def _make(path: Path) -> None:
    """Write a new key so that it appears complete or not at all; if two processes race, only one wins."""
    draft = path.with_name(f"{path.name}.{os.urandom(8).hex()}.new")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(handle, new_key().hex().encode() + b"\n")
            os.fsync(handle)
        finally:
            os.close(handle)
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    except OSError as error:
        raise TacitError(
            "ledger-key",
            f"the ledger's key cannot be written to {path}: {error.strerror}",
            fix=Do("give-key-file", path="a/folder/you/may/write/ledger.key"),
        ) from None


def _read(path: Path) -> bytes:
    try:
        key = bytes.fromhex(path.read_text("ascii").strip())
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError:
        key = b""
    if len(key) < 16:
        raise TacitError(
            "ledger-key",
            f"{path} does not hold a ledger key",
            why="a key file holds at least 16 bytes in hexadecimal",
            fix=f"restore {path} from your backup",
        )
    return key
