"""Norm-sub: shares that look right, and the bias that they pay for it."""

import numpy as np
import pytest

from tacit.surveys._estimates import norm_sub


def test_shares_become_non_negative_and_add_up():
    found = norm_sub([0.5, 0.4, -0.2, 0.05])
    assert found.min() == 0
    assert found.sum() == pytest.approx(1)


def test_shares_that_are_in_order_stay():
    assert norm_sub([0.2, 0.3, 0.5]) == pytest.approx([0.2, 0.3, 0.5])


def test_small_shares_are_lifted():
    rng = np.random.default_rng(1)
    truth = np.array([0.97, 0.01, 0.01, 0.01])
    found = [norm_sub(truth + rng.normal(0, 0.05, 4)) for _ in range(2000)]
    assert np.mean(found, axis=0)[1] > 0.015
