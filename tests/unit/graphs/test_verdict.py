"""The verdict of a declared size: right about known graphs, and total."""

from __future__ import annotations

import math

import pytest

from tacit.graphs._verdict import verdict_of


@pytest.mark.parametrize(
    ("nodes", "degree", "epsilon", "error", "word"),
    [
        (34, 4.6, 1, 0.19, "rough"),
        (34, 4.6, 0.1, 4.9, "too small"),
        (30_000, 6.7, 1, 1.3e-4, "fine"),
    ],
)
def test_known_sizes(nodes, degree, epsilon, error, word):
    verdict = verdict_of(nodes, degree, epsilon=epsilon)
    assert verdict.relative_error == pytest.approx(error, rel=0.05)
    assert verdict.word == word
    assert verdict.text.endswith(f"at epsilon {epsilon}: {word}")


def test_the_formula_of_the_law_is_close():
    """The short formula (.7 A / r + .9 / r^2) is within 8 % of the median of the law."""
    for nodes, degree, rate in ((77, 6.6, 0.916034), (2_000, 20, 0.916034)):
        width = max(10, math.ceil(2 * degree))
        short = 0.7 * width / rate + 0.9 / rate**2
        verdict = verdict_of(nodes, degree, epsilon=1)
        assert verdict.relative_error * verdict.triangles == pytest.approx(short, rel=0.08)


@pytest.mark.parametrize(("nodes", "degree"), [(0, 0), (1, 0), (2, 1), (3, 2), (50, 0.3)])
def test_hardly_a_graph_is_too_small(nodes, degree):
    verdict = verdict_of(nodes, degree, epsilon=1)
    assert verdict.word == "too small"
    assert math.isinf(verdict.relative_error) == (nodes < 3 or degree < 1)
