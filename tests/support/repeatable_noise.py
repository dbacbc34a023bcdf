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

import pytest

from support.fixed_noise import WORD, noise_of, rng

__all__ = ["RepeatableNoise", "noise_of", "rng"]


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
