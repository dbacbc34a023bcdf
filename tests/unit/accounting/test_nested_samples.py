"""Samples of sums: the whole curve of the sum is read at once, above the truth and close to it."""

import math
import time

import numpy as np
import pytest

from tacit.accounting import Budget, Cost, calibrate
from tacit.accounting.numeric._bounds import delta_of
from tacit.accounting.numeric._curve import curve_of_sum, in_bulk

SUMS = {
    "sampled Gaussians": 5 * Cost.gaussian(sigma=1, sensitivity=1).sampled(0.1),
    "rare samples": 40 * Cost.gaussian(sigma=1.5, sensitivity=1).sampled(0.01),
    "many": 300 * Cost.gaussian(sigma=4, sensitivity=1).sampled(0.1),
    "two kinds": 3 * Cost.gaussian(sigma=2, sensitivity=1).sampled(0.2)
    + 4 * Cost.laplace(scale=3, sensitivity=1).sampled(0.3),
    "Laplace": 7 * Cost.laplace(scale=2, sensitivity=1),
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("add", [False, True])
def test_the_curve_in_bulk_lies_above_the_truth_and_close_to_it(name, add):
    parts = SUMS[name].parts
    upper = in_bulk(curve_of_sum(parts, add=add)).upper
    width = SUMS[name].epsilon(delta=1e-6)
    for share in (-0.5, -0.1, 0.0, 0.05, 0.2, 0.5, 0.9):
        at = share * width
        low, high, _ = delta_of(parts, at, add=add)
        read = float(upper(np.array([at]))[0])
        assert read >= low
        assert read <= high * (1 + 3e-3) + 1e-18


def test_sampled_laplace_sums_against_the_written_law():
    """Two Laplace answers under one draw: the exact curve of the sum by quadrature."""
    cost = (2 * Cost.laplace(scale=1, sensitivity=1)).sampled(0.2)
    x = np.linspace(-12, 13, 2501)
    p = np.exp(-np.abs(x - 1)) / 2 * (x[1] - x[0])
    q = np.exp(-np.abs(x)) / 2 * (x[1] - x[0])
    together, without = np.multiply.outer(p, p), np.multiply.outer(q, q)
    mixed = 0.2 * together + 0.8 * without
    for e in (0.0, 0.1, 0.3):
        truth = max(
            float(np.maximum(mixed - math.exp(e) * without, 0).sum()),
            float(np.maximum(without - math.exp(e) * mixed, 0).sum()),
        )
        assert truth * (1 - 1e-4) <= cost.delta(epsilon=e) <= truth * (1 + 1e-3)
        assert (10 * cost).delta(epsilon=e) >= truth * (1 - 1e-4)


def test_nested_samples_are_read_and_calibrated_quickly():
    """Before the curve was read in bulk, one reading took twelve seconds."""
    start = time.process_time()
    run = 100 * SUMS["sampled Gaussians"].sampled(0.1)
    assert run.epsilon(delta=1e-6) == pytest.approx(1.81280, rel=1e-5)
    assert time.process_time() - start < 4
    start = time.process_time()
    noise = calibrate(
        lambda s: 100 * (5 * Cost.gaussian(sigma=s, sensitivity=1).sampled(0.1)).sampled(0.1),
        Budget(epsilon=1, delta=1e-6),
    )
    assert noise == pytest.approx(1.29127, rel=1e-4)
    assert time.process_time() - start < 12


def test_a_lattice_that_misses_the_largest_loss_leaves_no_infinite_loss():
    """The sum of five has an atom at its largest loss; before, 100 samples of it read 75.06."""
    run = 100 * (5 * Cost.laplace(scale=2, sensitivity=1)).sampled(0.1)
    assert 6.758 < run.epsilon(delta=1e-5) < 6.7596
