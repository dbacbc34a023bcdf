"""The noise of a test is fixed by the test's name, so that what passes here passes everywhere.

The suite has thousands of assertions about noise. Each fails by chance less than once in a million runs, we
believe; a mistake in one such figure must not stop somebody else's change. In tests that are not long, the
keys that `tacit.noise` asks of the operating system come from the name of the test or fixture that runs.
Everything behind the key is the real thing.

Drawn afresh, as always in production: long tests, tests marked `fresh_noise`, child processes, and everything
when TACIT_TEST_NOISE=fresh. Another word there, say TACIT_TEST_NOISE=2, fixes other noise: run the suite with
a few such words after changing a statistical test.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from tacit.noise import _bits

__all__ = ["RepeatableNoise", "rng"]

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


def drawn_afresh(item) -> bool:
    """Say whether this test wants the operating system's own randomness."""
    return WORD == "fresh" or any(item.get_closest_marker(mark) for mark in ("long", "fresh_noise"))


class RepeatableNoise:
    """The plugin: a name for every test, and for every fixture whoever asks for it first."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        """Run a test with noise of its own."""
        if drawn_afresh(item):
            return (yield)
        with noise_of(item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        """Set a fixture up with noise that does not depend on the test that needs it first."""
        if WORD == "fresh" or (request.scope == "function" and drawn_afresh(request.node)):
            return (yield)
        with noise_of(f"{request.node.nodeid}|{fixturedef.argname}|{request.param_index}"):
            return (yield)
