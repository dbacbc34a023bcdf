"""Noise that a name fixes, for tests and for the pages of the documentation; the package never reaches it.

The keys that `tacit.noise` asks of the operating system come from a name. Everything behind the key is the
real thing. TACIT_TEST_NOISE=2, or another word, fixes other noise.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import threading
from contextlib import contextmanager

import numpy as np

from tacit.noise import _bits

__all__ = ["WORD", "noise_of", "rng"]

WORD = os.environ.get("TACIT_TEST_NOISE", "")


class NamedGenerator:
    """A generator of NumPy for the tests' own mechanisms, fixed by the running test like the noise."""

    drawn_from = np.random.default_rng()

    def __getattr__(self, name):
        return getattr(self.drawn_from, name)


rng = NamedGenerator()


class NamedSystem:
    """Stand in for `os` inside `tacit.noise._bits`: a name gives the keys, in this process only."""

    getpid = staticmethod(os.getpid)

    def __init__(self, name: str) -> None:
        self.name, self.owner = name, os.getpid()
        self.threads: dict[int, str] = {}
        self.lock = threading.Lock()

    def __getattr__(self, name):
        return getattr(os, name)

    def urandom(self, count: int) -> bytes:
        """Return the next key of this thread; a child process asks the operating system."""
        if os.getpid() != self.owner:
            return os.urandom(count)
        with self.lock:
            last = self.threads.get(threading.get_ident(), f"{WORD}|{self.name}|{len(self.threads)}")
            self.threads[threading.get_ident()] = key = hashlib.sha256(last.encode()).hexdigest()
        return bytes.fromhex(key)[:count]


@contextmanager
def noise_of(name: str):
    """Fix all noise of this process until the block ends; then what was drawn from before goes on."""
    noise, generator, standard = (_bits.os, _bits._stream), rng.drawn_from, random.getstate()
    seed = int.from_bytes(hashlib.sha256(f"{WORD}|{name}".encode()).digest()[:8], "big")
    _bits.os, _bits._stream = NamedSystem(name), _bits._Stream()
    rng.drawn_from = np.random.default_rng(seed)
    random.seed(seed)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed >> 1)
    try:
        yield
    finally:
        _bits.os, _bits._stream = noise
        rng.drawn_from = generator
        random.setstate(standard)
