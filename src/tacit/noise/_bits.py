"""Secure random bits for noise: the operating system's entropy, expanded by AES-256 in counter mode.

Each key serves one thread of one process for at most one mebibyte; then a fresh key is drawn from the
operating system. There is no seed. The state is thread-local, is dropped in a forked child, and cannot be
pickled or copied. If the generator fails, the draw fails with code ``randomness-failed``; there is no other
source to fall back to.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

_PER_KEY = 1 << 20  # bytes of output under one key
_STOCK = 256  # words kept ready for scalar draws
_ZEROS = memoryview(bytes(_PER_KEY))


class ExhaustedError(Exception):
    """A test fed fewer bits than the draw needs."""


class _Stream(threading.local):
    """One thread's cipher stream and its stock of unused words; each word is taken by one atomic pop."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.left = 0
        self.cipher: CipherContext | None = None
        self.stock: list[int] = []

    def rekey(self) -> CipherContext:
        """Draw a fresh key from the operating system."""
        self.cipher = None
        try:
            key = os.urandom(32)
            cipher = Cipher(AES256(key), CTR(bytes(16))).encryptor()
        except Exception as error:
            raise _failed() from error
        if len(set(key)) < 4:  # has probability below 2^-200 for a working generator
            raise _failed()
        self.cipher, self.left = cipher, _PER_KEY
        return cipher

    def fill(self, view: memoryview) -> None:
        """Overwrite a byte buffer with fresh keystream."""
        done, size = 0, len(view)
        while done < size:
            cipher = self.cipher if self.cipher is not None and self.left > 0 else self.rekey()
            step = min(self.left, size - done)
            try:
                count = cipher.update_into(_ZEROS[:step], view[done : done + step])
            except Exception as error:
                raise _failed() from error
            if count != step:
                raise _failed()
            self.left -= step
            done += step


def _failed() -> TacitError:
    return TacitError(
        "randomness-failed",
        "the operating system's random generator failed",
        why="noise from any other source would not protect anyone, so no noise was drawn",
        fix="repair the random generator of this operating system, then run again",
    )


_stream = _Stream()


def _forget() -> None:
    """Drop all state: a forked child must not repeat its parent's noise."""
    global _stream  # noqa: PLW0603
    _stream = _Stream()


if hasattr(os, "register_at_fork"):  # systems that can fork
    os.register_at_fork(after_in_child=_forget)


def _own() -> _Stream:
    """Return this thread's stream; a fork that Python did not see is recognised by its process number."""
    if _stream.owner != os.getpid():
        _forget()
    return _stream


def fill(out: NDArray[Any]) -> None:
    """Overwrite a contiguous array of unsigned integers with fresh random bits."""
    if out.size == 0:
        return
    view = memoryview(out).cast("B")  # type: ignore[arg-type]
    fed = _FED.get()
    if fed is None:
        _own().fill(view)
    else:
        view[:] = fed(len(view))


def words(count: int) -> list[int]:
    """Return `count` fresh uniform integers of 64 bits, never handed out before or again."""
    fed = _FED.get()
    if fed is not None:
        return [int.from_bytes(fed(8), "little") for _ in range(count)]
    stream = _stream if _stream.owner == os.getpid() else _own()
    while True:
        stock = stream.stock
        if len(stock) < count:
            fresh = np.empty(max(_STOCK, count), np.uint64)
            stream.fill(memoryview(fresh).cast("B"))  # type: ignore[arg-type]
            stream.stock = stock = fresh.tolist()
            fresh.fill(0)
        try:
            return [stock.pop() for _ in range(count)]
        except IndexError:  # a signal handler drew words in between; the popped words are lost, never reused
            continue


def word() -> int:
    """Return one fresh uniform integer of 64 bits."""
    return words(1)[0]


#: Tests set this to feed known bits. Production code never sets it, and no production object holds it.
_FED: ContextVar[Callable[[int], bytes] | None] = ContextVar("tacit-fed-bits", default=None)


@contextmanager
def feed(bits: bytes) -> Iterator[Callable[[], int]]:
    """Feed these bytes instead of random ones, in this context only; yield a function that counts used bytes.

    Only tests use it. A draw that needs more bytes than were fed raises `ExhaustedError`.
    """
    used = 0

    def take(count: int) -> bytes:
        nonlocal used
        if used + count > len(bits):
            raise ExhaustedError
        used += count
        return bits[used - count : used]

    token = _FED.set(take)
    try:
        yield lambda: used
    finally:
        _FED.reset(token)
