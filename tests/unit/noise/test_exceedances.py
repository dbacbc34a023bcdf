"""Exceedances: the chances of their coins are exact, and only what reaches the level is drawn."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit import noise
from tacit.errors import TacitError
from tacit.noise import _bits, _exceedances
from tacit.noise._exceedances import _chances, _GaussianRate, _LaplaceRate, successes
from tacit.noise._intervals import gaussian_mass, pi, scaled

PI = 31415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679
WIDTHS = [Fraction(1, 50), Fraction(1, 2), Fraction(99, 100), Fraction(1), Fraction(7, 3), Fraction(40)]


def within(ends, value, bits):
    """Whether an interval holds a number that doubles know to 12 digits, and is narrow."""
    low, high = (Fraction(end, 2**bits) for end in ends)
    assert 0 <= high - low < Fraction(64, 2**bits)
    return float(low) <= value * (1 + 1e-12) and value * (1 - 1e-12) <= float(high)


def test_pi_is_enclosed():
    digits = Fraction(PI, 10**100)
    for bits in (1, 64, 300):
        low, high = pi(bits)
        assert low <= digits * 2**bits <= high <= low + 2


@pytest.mark.parametrize("sigma", WIDTHS, ids=str)
def test_the_mass_of_gaussian_noise_is_enclosed_by_either_formula(sigma):
    direct = math.fsum(math.exp(-(k**2) / (2 * float(sigma) ** 2)) for k in range(-600, 601))
    for bits in (64, 200):
        assert within(gaussian_mass(sigma, bits), direct, bits)


def test_poissons_formula_and_the_plain_sum_agree_to_many_digits():
    from tacit.noise._intervals import _theta

    sigma, bits = Fraction(3, 2), 400
    low, high = gaussian_mass(sigma, bits)  # by Poisson's formula
    first, last = _theta((1 / (2 * sigma**2), 1 / (2 * sigma**2)), bits)  # valid from 1/2 on; 2/9 needs slack
    assert max(low, first) <= min(high, last + 64)


@pytest.mark.parametrize("reach", [None, 5, 30])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(1000)], ids=str)
def test_the_chance_to_reach_a_level_is_enclosed(scale, reach):
    far = 60 * 1000 if reach is None else reach
    weights = {k: math.exp(-abs(k) / float(scale)) for k in range(-far, far + 1)}
    whole = math.fsum(weights.values())
    for level in (1, 2, 5):
        upper = math.fsum(w for k, w in weights.items() if k >= level) / whole
        for bits in (8, 64, 200):
            assert within(_LaplaceRate(scale, level, reach)(bits), upper, bits)


@pytest.mark.parametrize("sigma", WIDTHS, ids=str)
def test_a_candidate_is_kept_as_often_as_gaussian_noise_takes_its_value(sigma):
    """Chance of a candidate, times geometric law, times the coin: the law itself, value by value."""
    s = float(sigma)
    whole = math.fsum(math.exp(-(k**2) / (2 * s * s)) for k in range(-600, 601))
    for level in (1, max(1, int(s)), int(3 * s) + 1):
        low, high = _GaussianRate(sigma, level)(300)
        rate = float(Fraction(low + high, 2**301))
        a = math.exp(-level / s**2)
        for e in (0, 1, 3, 10):
            made = rate * (1 - a) * a**e * math.exp(-(e**2) / (2 * s * s))
            wanted = math.exp(-((level + e) ** 2) / (2 * s * s)) / whole
            assert made == pytest.approx(wanted, rel=1e-9, abs=1e-85)


@pytest.mark.parametrize("q", [Fraction(1, 10**9), Fraction(1, 7), Fraction(1, 2), Fraction(9, 10)], ids=str)
def test_the_coins_of_a_gap_have_the_chances_of_a_geometric_number(q):
    """The product over all digits is (1 - q)^gap q exactly, in fractions."""
    digits, u = 6, 1 - q
    exact = [u**2**i / (1 + u**2**i) for i in range(digits)] + [u**2**digits]
    for bits in (64, 128):
        for (low, high), chance in zip(_chances(lambda b: scaled(q, b), digits, bits), exact, strict=True):
            assert low <= chance * 2**bits <= high <= low + 4
    for gap in range(2**digits):
        made = 1 - exact[digits]
        for i in range(digits):
            made *= exact[i] if gap >> i & 1 else 1 - exact[i]
        assert made == u**gap * q


def words(*rows):
    return b"".join(int(word).to_bytes(8, "little") for row in rows for word in row)


def test_positions_follow_from_the_coins():
    """Ten coins of chance 1/3, a block of 16 rows: four digits and the coin for a gap of 16 or more."""
    no, yes = 2**64 - 1, 0
    rows = [[yes, no, yes, no, no], [no] * 5, [no, yes, no, no, no], [no] * 5, [no, no, no, no, yes]]
    rows += [[no] * 5] * 15
    with _bits.feed(words(*rows[:19])):
        assert successes(lambda b: scaled(Fraction(1, 3), b), 10).tolist() == [5, 6, 9]
    with _bits.feed(words(*[[no] * 5] * 64)):
        assert successes(lambda b: scaled(Fraction(1, 3), b), 10).tolist() == list(range(10))


def test_a_word_at_the_edge_of_a_chance_is_decided_exactly():
    def rate(bits):
        return scaled(Fraction(1, 3), bits)

    no = 2**64 - 1
    low, high = _chances(rate, 4, 64)[0]
    edge = int(Fraction(2, 5) * 2**64)  # the chance of digit 0 is (2/3) / (1 + 2/3)
    assert low <= edge < high
    rest = [[no] * 5] * 8 + [[no, no, no, no, 0]] + [[no] * 5] * 6
    likely = 19
    for more, first in [(0, 1), (2**64 - 1, 0)]:
        block = [[edge, no, no, no, no], *rest, *[[no] * 5] * (likely - 1 - len(rest))]
        with _bits.feed(words(*block, [more])):
            assert successes(rate, 10)[0] == first


def test_only_what_reaches_the_level_is_drawn():
    """Of 10^14 draws a few reach the level; the time and the random bits follow these few."""
    with _bits.feed(np.random.default_rng(1).bytes(400_000)) as used:
        positions, numbers = noise.laplace_exceedances(2, 10**14, 60, reach=61)
        assert used() < 400_000
    assert set(numbers.tolist()) <= {60, 61}
    assert (np.diff(positions) > 0).all()
    assert positions.max(initial=0) < 10**14
    assert noise.laplace_exceedances(2, 10**9, 5, reach=4)[0].size == 0
    assert noise.laplace_exceedances(2, 0, 1)[0].size == 0
    assert noise.gaussian_exceedances(2, 0, 1)[0].size == 0
    positions, numbers = noise.gaussian_exceedances(100, 1000, 1)  # near the middle: all are drawn
    assert (np.diff(positions) > 0).all()
    assert numbers.min() >= 1
    assert 250 < positions.size < 750  # P < 1e-30 otherwise


@pytest.mark.parametrize("scale", [Fraction(1, 10**6), Fraction(2**56)], ids=str)
def test_extreme_widths_keep_their_chances(scale):
    positions, numbers = noise.laplace_exceedances(scale, 1000, 1, reach=3)
    assert positions.size == 0 if scale < 1 else 300 < positions.size < 560  # 3/7; P < 1e-15 otherwise
    assert numbers.size == 0 or set(numbers.tolist()) <= {1, 2, 3}
    assert noise.gaussian_exceedances(scale, 50, 1 if scale < 1 else 2**60)[0].size == 0


def test_numbers_beyond_64_bits_are_refused_and_never_wrap(monkeypatch):
    """At the largest scale one in e^4 exceedances of 2^62 is beyond 2^63."""
    monkeypatch.setattr(_exceedances, "geometric", lambda scale, size: np.full(size, 2**62, np.int64))
    with pytest.raises(TacitError) as refused:
        noise.laplace_exceedances(2**60, 10**4, 2**62)  # 50 are expected; none with P < 1e-21
    assert refused.value.code == "does-not-fit"


def test_the_widest_gaussian_noise_reaches_levels_of_its_own_size():
    sigma = 2**60
    positions, numbers = noise.gaussian_exceedances(sigma, 2000, sigma * 7 // 10)
    assert 250 < positions.size < 750  # 484 expected; P < 1e-15 otherwise
    assert numbers.min() >= sigma * 7 // 10


def test_nonsense_is_refused():
    for call in (
        lambda: noise.laplace_exceedances(0, 10, 1),
        lambda: noise.laplace_exceedances([1, 2], 10, 1),
        lambda: noise.laplace_exceedances(1, 2**48 + 1, 1),
        lambda: noise.laplace_exceedances(1, -1, 1),
        lambda: noise.gaussian_exceedances(1, 10, 0),
        lambda: noise.gaussian_exceedances(1, 10, 1.5),
    ):
        with pytest.raises(TacitError) as refused:
            call()
        assert refused.value.code == "bad-parameter"
    assert _exceedances._MAX_NUMBERS == 2**48
    with pytest.raises(TacitError) as refused:
        noise.gaussian_exceedances(2**56, 10, 2**63)
    assert refused.value.code == "does-not-fit"
