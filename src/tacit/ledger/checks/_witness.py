"""The ledger's witness: the log's head, kept outside the store, so that an old copy is noticed."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import TacitError, bad_parameter
from tacit.ledger import _refusals
from tacit.ledger.checks._chain import Head
from tacit.ledger.draws._receipts import Receipt
from tacit.ledger.stores._files import identity_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tacit.ledger.stores._store import StoreReader

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no advisory locks of this kind
    fcntl = None  # type: ignore[assignment]

_MARK = "tacit-witness-1"
_LINE = len(_MARK) + 1 + 32 + 1 + 20 + 1 + 64 + 1 + 8 + 1


class Witness:
    """A file of two lines, written in turn, each with a checksum: a torn write loses one line, not both.

    Guarantee: a head is written after its commit, so the file may lag behind the store and is never ahead of
    it. So a store that lacks a head in the file was rolled back. `unproven` returns such a head to whoever
    is about to commit, and `note` never replaces a head that the store does not contain. A writer that finds
    a later head in the file does not change it, except for `replace`.
    """

    def __init__(self, path: Path, ledger: str, *, write: bool = True) -> None:
        self.path = path
        self._ledger = ledger
        self._absolute = os.path.abspath(path)  # noqa: PTH100 - a path that is looked at before each commit
        self._proven = b""  # what the file held when its head was last in the store
        self._read_last = b""
        self._counts = [-1, -1]  # of the two proven lines
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT if write else os.O_RDONLY, 0o644)
            self._identity = identity_of(self._file)
        except OSError as error:
            raise _refusals.witness_failed(str(path), error) from None

    def reopened(self) -> Witness:
        """Return the witness of a forked child: the same file, opened again, with the same memory."""
        child = copy(self)
        try:
            child._file = os.open(self._absolute, os.O_RDWR)  # noqa: SLF001 - a copy of this object
        except OSError as error:
            raise _refusals.witness_failed(str(self.path), error) from None
        return child

    def head(self) -> Head | None:
        """Return the latest head in the file, or None if it holds none."""
        return _latest(os.pread(self._file, 2 * _LINE, 0), self._ledger, self.path)

    def unproven(self) -> Head | None:
        """Return the latest head in the file, or None if it is one that this process has seen in the store.

        Costs one look at the name and one read of 288 bytes. Refuses a file that was removed or replaced, or
        that has lost its content.
        """
        if identity_of(self._absolute) != self._identity:
            raise _refusals.replaced(f"the witness {self.path}")
        self._read_last = data = os.pread(self._file, 2 * _LINE, 0)
        if data == self._proven:
            return None
        head = _latest(data, self._ledger, self.path)
        if head is None and self._proven:
            raise _refusals.replaced(f"the witness {self.path}")
        return head

    def prove(self) -> None:
        """Record that the store contains the head that `unproven` has returned."""
        self._prove(self._read_last)

    def _prove(self, data: bytes) -> None:
        self._counts = [_count(data[:_LINE], self._ledger), _count(data[_LINE:], self._ledger)]
        self._proven = data

    @property
    def count(self) -> int:
        """The count of the latest head that is proven, or -1."""
        return max(self._counts)

    def note(self, head: Head, contains: Callable[[Head], bool]) -> None:
        """Write a head, unless the file already holds a later one.

        ``contains`` says whether the store contains a head. Refuses to go on if it lacks the one in the file.
        """
        with self._lock():
            data = os.pread(self._file, 2 * _LINE, 0)
            if data != self._proven:
                latest = _latest(data, self._ledger, self.path)
                if latest is not None and not contains(latest):
                    raise _refusals.lacks(latest.count, f"the witness {self.path} has seen")
                self._prove(data)
            if self.count < head.count:
                # overwrite the older line: if this write tears, the latest one is still there
                slot, line = self._counts.index(min(self._counts)), _line(self._ledger, head)
                os.pwrite(self._file, line, slot * _LINE)
                self._counts[slot] = head.count
                self._proven = data[: slot * _LINE] + line + data[(slot + 1) * _LINE :]

    def replace(self, head: Head) -> None:
        """Write a head in place of a later one, durably: the ledger goes on from an older backup.

        If this breaks off after one of the two lines, the other still holds the later head.
        """
        with self._lock():
            for slot in (0, 1):
                os.pwrite(self._file, _line(self._ledger, head), slot * _LINE)
            self._prove(_line(self._ledger, head) * 2)
            os.fsync(self._file)

    def start(self, head: Head, contains: Callable[[Head], bool]) -> None:
        """Write the first head, durably: from now on the file is never empty."""
        self.note(head, contains)
        os.fsync(self._file)
        if os.name == "posix":  # the file's name must last, too
            folder = os.open(self.path.absolute().parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def close(self) -> None:
        """Make the last head durable and close the file."""
        if self._file >= 0:
            try:
                os.fsync(self._file)
            finally:
                os.close(self._file)
                self._file = -1

    def close_at_once(self) -> None:
        """Close the file without waiting for the disk."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @contextmanager
    def _lock(self) -> Iterator[None]:
        if fcntl is None:  # pragma: no cover
            yield
            return
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


def read_head(witness: object, ledger: str) -> Head:
    """Read what somebody has kept of a ledger: a witness file, a head, a receipt, or (count, hash)."""
    if isinstance(witness, Receipt):
        witness = witness.head
    if isinstance(witness, Head):
        witness = (witness.count, witness.hash)
    if isinstance(witness, Mapping):
        witness = (witness.get("count"), witness.get("hash"))
    if isinstance(witness, str | os.PathLike):
        return _read_file(witness, ledger)
    match witness:
        case (int(number), str(digest)) if number >= 0 and len(digest) == 64:
            return Head(number, digest.lower())
    raise bad_parameter(
        "witness",
        "a witness file, a Head, a Receipt or (count, hash)",
        witness,
        fix="a witness file of this ledger, or a receipt that it returned",
    )


def contains(reader: StoreReader, head: Head) -> bool:
    """Whether the log contains an entry that somebody has seen."""
    row = reader.entry(head.count) if head.count.bit_length() <= 63 else None
    return head.count == 0 or (row is not None and row.mac.hex() == head.hash)


def _read_file(path: str | os.PathLike[str], ledger: str) -> Head:
    """Read a witness file of this ledger."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise TacitError(
            "ledger-unavailable",
            f"the witness {path} cannot be read: {error.strerror}",
            fix="check the path of the witness file",
        ) from None
    head = _latest(data[: 2 * _LINE], ledger, Path(path))
    if head is None:
        raise TacitError(
            "ledger-rolled-back",
            f"{path} does not hold a witness of this ledger",
            why="it is empty, damaged or of another ledger, so it proves nothing",
            fix="give the witness file that was kept for this ledger",
        )
    return head


def _line(ledger: str, head: Head) -> bytes:
    text = f"{_MARK} {ledger} {head.count:020d} {head.hash}"
    return f"{text} {zlib.crc32(text.encode()):08x}\n".encode()


def _parse(line: bytes, ledger: str) -> Head | None:
    try:
        mark, owner, count, digest, check = line.decode("ascii").split()
    except ValueError:
        return None
    good = f"{zlib.crc32(f'{mark} {owner} {count} {digest}'.encode()):08x}"
    if mark != _MARK or owner != ledger or check != good:
        return None
    return Head(int(count), digest)


def _count(line: bytes, ledger: str) -> int:
    head = _parse(line, ledger)
    return -1 if head is None else head.count


def _latest(data: bytes, ledger: str, path: Path) -> Head | None:
    heads = [_parse(data[start : start + _LINE], ledger) for start in (0, _LINE)]
    heads_read = [head for head in heads if head is not None]
    if heads_read:
        return max(heads_read)
    if data.startswith(_MARK.encode()) and ledger.encode() not in data:
        raise TacitError(
            "ledger-rolled-back",
            f"the witness {path} belongs to another ledger",
            why="the ledger was replaced, or this is the wrong witness file",
            fix="give the witness file that was kept for this ledger",
        )
    return None
