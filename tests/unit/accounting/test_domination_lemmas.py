"""The three lemmas of docs/proofs/mechanisms.md, on cases small enough to sum exactly."""

import itertools
import math

import numpy as np
import pytest


def laplace(scale: float, reach: int) -> np.ndarray:
    k = np.arange(-reach, reach + 1)
    a = math.exp(-1 / scale)
    return (1 - a) / (1 + a) * a ** np.abs(k)


def delta(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def shifted(mass: np.ndarray, by: int) -> np.ndarray:
    moved = np.zeros_like(mass)
    moved[by:] = mass[: len(mass) - by] if by else mass
    return moved


EPSILONS = [0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99]


PAIRS = itertools.product([0.5, 1, 3, 8], [(1, 1), (1, 3), (2, 2), (3, 5)])
TRIPLES = itertools.product([0.5, 1, 3], [(1, 1, 1), (2, 1, 3)])


@pytest.mark.parametrize(("scale", "parts"), [*PAIRS, *TRIPLES], ids=str)
def test_lemma_1_a_vector_moved_in_l1_reveals_no_more_than_one_number(scale, parts):
    """delta of a product of laws moved by parts is at most that of one law moved by their sum."""
    reach = int(30 * scale) + 40 if len(parts) == 2 else int(16 * scale) + 16
    one = laplace(scale, reach)
    total = sum(parts)
    for share in EPSILONS:
        epsilon = share * total / scale
        product, moved = np.ones(1), np.ones(1)
        for part in parts:
            product = np.multiply.outer(product, one).ravel()
            moved = np.multiply.outer(moved, shifted(one, part)).ravel()
        exact = laplace(scale, 40 * int(scale + 1) + total)
        assert delta(product, moved, epsilon) <= delta(exact, shifted(exact, total), epsilon) + 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
@pytest.mark.parametrize(("coarse", "times"), [(1, 2), (1, 5), (2, 3), (3, 4), (7, 2), (5, 7)])
def test_lemma_2_a_refined_lattice_reveals_no_more_than_the_lattice(epsilon, coarse, times):
    fine = coarse * times
    reach = int(45 * fine / epsilon) + fine
    wide, narrow = laplace(coarse / epsilon, reach), laplace(fine / epsilon, reach)
    for share in np.linspace(0, 1, 41):
        finer = delta(narrow, shifted(narrow, fine), share * epsilon)
        assert finer <= delta(wide, shifted(wide, coarse), share * epsilon) + 1e-12


def gaussian(sigma: float, reach: int) -> np.ndarray:
    k = np.arange(-reach, reach + 1)
    weight = np.exp(-(k**2) / (2 * sigma**2))
    return weight / weight.sum()


def continuous_delta(mu: float, epsilon: float) -> float:
    from scipy.special import log_ndtr, ndtr

    return float(ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2)))


@pytest.mark.parametrize("sigma", [6.0, 10.0, 25.0])
@pytest.mark.parametrize("move", [(3,), (10,), (3, 4), (1, 1), (2, 2, 1)], ids=str)
def test_lemma_3_the_lattice_gaussian_is_a_rounding_of_a_slightly_narrower_one(sigma, move):
    """Here with r = 2, where the factor is 1 +- 4 exp(-8 pi^2) per number, far below the float errors."""
    r = 2.0
    mu = math.sqrt(sum(part**2 for part in move)) / math.sqrt(sigma**2 - r**2)
    reach = int(12 * sigma) + 12 if len(move) == 1 else int(7 * sigma)
    if len(move) == 3:
        reach = int(4.5 * min(sigma, 10.0))
        sigma = min(sigma, 10.0)
        mu = 3 / math.sqrt(sigma**2 - r**2)
    one = gaussian(sigma, reach)
    product, moved = np.ones(1), np.ones(1)
    for part in move:
        product = np.multiply.outer(product, one).ravel()
        moved = np.multiply.outer(moved, shifted(one, part)).ravel()
    slack = 1e-10 if len(move) == 1 else 3e-4 if len(move) == 3 else 1e-9
    for share in (0, 0.5, 1, 2, 3):
        epsilon = share * mu
        assert delta(product, moved, epsilon) <= continuous_delta(mu, epsilon) + slack


def test_lemma_3_the_smoothed_lattice_sum_is_flat():
    """sum over k of exp(-(k-y)^2 / (2 r^2)) depends on y by a relative 4 exp(-2 pi^2 r^2) at most."""
    import mpmath

    with mpmath.workdps(60):
        for r in (1, 2):
            total = [
                mpmath.fsum(mpmath.exp(-((k - mpmath.mpf(y) / 8) ** 2) / (2 * r**2)) for k in range(-60, 61))
                for y in range(9)
            ]
            assert (max(total) - min(total)) / min(total) <= 4.1 * mpmath.exp(-2 * mpmath.pi**2 * r**2)


def test_lemma_3_covers_the_pad_that_the_mechanism_adds():
    """(S (1 + 2^-20))^2 - r^2 >= (S (1 + 2^-22))^2 for S >= 2^20 and r = 32, at the worst S."""
    from fractions import Fraction

    from tacit.mechanisms.additive._grid_noise import _PAD

    s = Fraction(2**20)
    assert (s * _PAD) ** 2 - 32**2 >= (s * (1 + Fraction(1, 2**22))) ** 2


def test_small_products_are_enumerated_fully():
    """The flattening used above pairs every coordinate with every other."""
    a, b = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    assert sorted(np.multiply.outer(a, b).ravel()) == sorted(x * y for x, y in itertools.product(a, b))
