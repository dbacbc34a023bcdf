"""Lines that two sums share, and sums over many nodes: they certify what a line of its own certifies."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.accounting import Cost
from tacit.accounting.numeric import _bounds, _fourier
from tacit.accounting.numeric._fourier import FourierInversion
from tacit.accounting.numeric._lattice import lattice_accountant
from tacit.accounting.numeric._mgf import GaussianMgf, LossLattice, LossSum


@pytest.mark.parametrize(("q", "e", "times"), [(0.001, 1.0, 1000), (0.01, 0.5, 500), (0.05, 1.0, 2000)])
def test_an_added_unit_on_the_line_of_a_removed_one_reads_what_its_own_line_reads(q, e, times):
    parts = (times * Cost.laplace(scale=1, sensitivity=e).sampled(q)).parts
    at = _bounds.epsilon_bounds(parts, 1e-5).upper
    _bounds.delta_of(parts, at, add=0)
    shared, own = _bounds.upper_on_line(parts, at), _bounds.delta_of(parts, at, add=1)
    assert own.lower <= shared <= own.upper * (1 + 1e-5)


def test_no_line_is_shared_before_one_served():
    parts = (300 * Cost.laplace(scale=1, sensitivity=1).sampled(0.003)).parts
    assert _bounds.upper_on_line(parts, 0.1234567) == math.inf


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9])
def test_delta_at_a_reported_epsilon_is_at_most_the_delta_asked_for(delta):
    cost = 1000 * Cost.laplace(scale=1, sensitivity=1).sampled(0.001)
    assert cost.delta(epsilon=cost.epsilon(delta=delta)) <= delta


def test_the_lower_law_reads_the_same_on_the_lines_of_the_upper_one():
    accountant = lattice_accountant((100 * Cost.laplace(scale=1, sensitivity=0.1)).parts)
    assert isinstance(accountant.lower, FourierInversion)
    alone = FourierInversion(accountant.lower._loss_sum)
    assert accountant.lower.epsilon(1e-5).lower == pytest.approx(alone.epsilon(1e-5).lower, rel=1e-9)


def test_many_nodes_are_added_up_like_few(monkeypatch):
    choice = _fourier.LineChoice(2.0, 4.0, 4000.0, -8.0, 1.0, -10.0)
    line = _fourier.evaluate(LossSum(((GaussianMgf(1.0), 3),)), choice)
    assert len(line.t) > 512
    sums = [line.sums(e) for e in (0.0, 1.5, -2.0, 6.25)]
    monkeypatch.setattr(_fourier, "_MANY", 1 << 20)
    plain = _fourier.evaluate(LossSum(((GaussianMgf(1.0), 3),)), choice)
    for found, e in zip(sums, (0.0, 1.5, -2.0, 6.25), strict=True):
        value, error, slope = replace(plain, seen={}).sums(e)
        assert abs(found[0] - value) <= error
        assert found[1] == pytest.approx(error, rel=0.01)
        assert found[2] == pytest.approx(slope, rel=1e-9, abs=1e-12)


def test_the_kernel_of_a_lattice_is_a_geometric_sum():
    lattice = LossLattice(0.0, 1e-3)
    kernel = _fourier._kernel(3.0, 1.0, 500, lattice, True)
    z = 3.0 + 2j * math.pi * np.arange(501)
    np.testing.assert_allclose(kernel.first, -1 / np.expm1(-z * 1e-3), rtol=1e-14)
    np.testing.assert_allclose(kernel.second, -1 / np.expm1(-(z + 1) * 1e-3), rtol=1e-14)
    assert kernel.weight[-1] == kernel.weight[1] / 2 == kernel.weight[0]
