"""Secure bits: fresh in every process, thread and copy; a failing generator refuses."""

import copy
import os
import pickle
import signal
import threading

import numpy as np
import pytest

from tacit import TacitError, noise
from tacit.noise import _bits

pytestmark = pytest.mark.fresh_noise


@pytest.fixture
def fresh_stream():
    """Start without a key or a stock, and leave none behind."""
    _bits._forget()
    yield
    _bits._forget()


def in_a_fork(work):
    """Run work() in a forked child and return its bytes."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, work())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    return found


def some_words():
    return np.array(_bits.words(64), np.uint64).tobytes()


def some_bulk():
    out = np.empty(64, np.uint64)
    _bits.fill(out)
    return out.tobytes()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("work", [some_words, some_bulk])
def test_eight_forks_and_their_parent_never_share_a_word(work):
    work()  # the parent holds a key and a stock when it forks
    parts = [in_a_fork(work) for _ in range(8)] + [work()]
    words = np.frombuffer(b"".join(parts), np.uint64)
    assert words.size == 9 * 64
    assert np.unique(words).size == words.size


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_the_fork_hook_alone_suffices(fresh_stream, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 42)  # as where process numbers repeat, in containers
    _bits._forget()
    some_words()
    words = np.frombuffer(
        in_a_fork(some_words) + in_a_fork(some_bulk) + some_words() + some_bulk(), np.uint64
    )
    assert np.unique(words).size == words.size == 4 * 64


def test_a_child_forked_behind_pythons_back_notices(fresh_stream, monkeypatch):
    before = _bits.words(4)
    stock = list(_bits._stream.stock)
    monkeypatch.setattr(os, "getpid", lambda: -7)
    after = _bits.words(4)
    assert not set(after) & set(stock)
    assert not set(after) & set(before)


def test_threads_never_share_a_word():
    found, barrier = [], threading.Barrier(8)

    def work():
        barrier.wait()
        for _ in range(50):
            found.append(np.frombuffer(some_words(), np.uint64))
            found.append(np.frombuffer(some_bulk(), np.uint64))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(found)
    assert words.size == 8 * 50 * 128
    assert np.unique(words).size == words.size


def test_a_signal_handler_that_draws_gets_words_of_its_own():
    found = []
    previous = signal.signal(signal.SIGALRM, lambda *_: found.extend(_bits.words(7)))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        for _ in range(20_000):
            found.extend(_bits.words(5))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert len(set(found)) == len(found) > 100_000


def test_state_cannot_be_pickled_or_copied():
    with pytest.raises(TypeError):
        pickle.dumps(_bits._stream)
    with pytest.raises(TypeError):
        copy.deepcopy(_bits._stream)


def test_a_pickled_sampler_draws_afresh():
    again = pickle.loads(pickle.dumps(noise.discrete_laplace))
    assert noise.discrete_laplace(2**50) != again(2**50)


def test_keys_change_every_mebibyte(fresh_stream, monkeypatch):
    asked, real = [], os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: asked.append(n) or real(n))
    out = np.empty(5 << 20, np.uint8)
    _bits.fill(out)
    assert asked == [32] * 5
    blocks = out.reshape(5, -1)
    assert len({block.tobytes() for block in blocks}) == 5


def test_bulk_bits_are_balanced_and_never_repeat_across_calls():
    out = np.empty(1 << 20, np.uint64)
    _bits.fill(out)
    ones = np.unpackbits(out.view(np.uint8)).sum(dtype=np.int64)
    assert abs(ones - 2**25) < 6.2 * 2**12  # 6.2 standard deviations: significance below 1e-9
    assert np.unique(out).size == out.size


def refuse(_):
    raise OSError("no entropy")


@pytest.mark.parametrize(
    "broken",
    [refuse, bytes, lambda n: b"\x01" * (n - 1), lambda _: None],
    ids=["raises", "zeros", "short", "nothing"],
)
@pytest.mark.parametrize(
    "draw",
    [
        lambda: noise.discrete_laplace(3),
        lambda: noise.discrete_laplace(3, size=10_000),
        lambda: noise.discrete_gaussian(3, size=10_000),
        lambda: noise.rounded_gaussian(3),
        lambda: noise.rounded_gaussian(3, size=10_000),
        lambda: noise.bernoulli(0.5, size=10),
        lambda: noise.uniform_below(10),
        lambda: noise.select([1, 2, 3]),
        lambda: noise.select_top([1, 2, 3], 2),
        lambda: noise.permutation(5),
    ],
)
def test_a_failing_generator_refuses(fresh_stream, monkeypatch, broken, draw):
    monkeypatch.setattr(os, "urandom", broken)
    with pytest.raises(TacitError) as refusal:
        draw()
    assert refusal.value.code == "randomness-failed"


def test_a_generator_that_fails_later_refuses_then(fresh_stream, monkeypatch):
    noise.discrete_laplace(3, size=1000)
    monkeypatch.setattr(os, "urandom", refuse)
    with pytest.raises(TacitError) as refusal:
        noise.discrete_laplace(3, size=1_000_000)
    assert refusal.value.code == "randomness-failed"


def test_fed_bits_are_used_in_order_and_run_out():
    with _bits.feed(bytes(range(16))) as used:
        assert _bits.words(1) == [int.from_bytes(bytes(range(8)), "little")]
        out = np.empty(8, np.uint8)
        _bits.fill(out)
        assert out.tolist() == list(range(8, 16))
        assert used() == 16
        with pytest.raises(_bits.ExhaustedError):
            _bits.word()
    _bits.word()


def test_feeding_does_not_reach_other_threads():
    found = []
    with _bits.feed(bytes(8)):
        thread = threading.Thread(target=lambda: found.append(_bits.word()))
        thread.start()
        thread.join()
        assert _bits.word() == 0
    assert found != [0]


def test_no_public_function_takes_a_seed():
    import inspect

    for name in noise.__all__:
        names = set(inspect.signature(getattr(noise, name)).parameters)
        assert not names & {"seed", "rng", "random_state", "generator"}
