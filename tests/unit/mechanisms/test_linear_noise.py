"""The law of a weighted sum of noises: against a slow inversion, for ties, zeros and many weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.mechanisms import linear_half_width, linear_tail


def slowly(t, weights, normal, nodes=200_000):
    a = np.asarray(weights, dtype=float)
    spread = np.sqrt(normal**2 + 2 * (a**2).sum())
    h = np.pi / (25 * spread)
    w = (np.arange(nodes) + 0.5) * h
    falls = np.exp(-((normal * w) ** 2) / 2) / np.prod(1 + (a[:, None] * w) ** 2, axis=0)
    return 1 - 2 / np.pi * h * np.sum(np.sin(w * t) / w * falls)


@pytest.mark.parametrize(
    ("t", "weights", "normal", "known"),
    [
        (2, [0.5, 0.5], 0, 0.05494691667),
        (2, [0.3, 0.7], 0, 0.070068616),
        (2, [1, 1, 1], 0, 0.3721720289),
        (3, [0.5, 0.5], 1.3, 0.06776857558),
    ],
)
def test_known_tails_come_out(t, weights, normal, known):
    assert linear_tail(t, weights, normal) == pytest.approx(known, abs=2e-9)
    assert linear_tail(-t, [-w for w in weights], normal) == pytest.approx(known, abs=2e-9)


@given(
    weights=st.lists(st.sampled_from([0.0, 1e-4, 0.2, 0.5, 0.50001, 0.7, 1.0]), min_size=1, max_size=9),
    normal=st.sampled_from([0.0, 0.01, 0.3, 3.0]),
    far=st.floats(0.5, 5),
)
def test_every_tail_agrees_with_a_slow_inversion(weights, normal, far):
    spread = np.sqrt(normal**2 + 2 * np.sum(np.square(weights)))
    if spread == 0:
        assert linear_tail(1.0, weights).item() == 0
        assert linear_tail(0.0, weights).item() == 1
        return
    truth = slowly(far * spread, weights, normal)
    found = linear_tail(far * spread, weights, normal).item()
    assert found == pytest.approx(truth, abs=1e-5)
    if len(weights) > 4:
        assert found >= truth - 1e-9


def test_half_widths_fail_as_often_as_asked():
    weights = np.random.default_rng(1).random((50, 3))
    for failing in (0.2, 0.05, 0.001):
        h = linear_half_width(failing, weights)
        assert np.allclose(linear_tail(h, weights), failing, rtol=1e-6)


def test_one_law_serves_many_groups_at_once():
    weights = np.random.default_rng(2).random((7, 5, 2))
    t = np.random.default_rng(3).random((7, 5))
    together = linear_tail(t, weights)
    assert together.shape == (7, 5)
    assert together[3, 2] == pytest.approx(linear_tail(t[3, 2], weights[3, 2]))
