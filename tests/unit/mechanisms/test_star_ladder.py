"""The ladder for stars, by exact laws: no neighbours lose more than epsilon (docs/proofs/graphs.md)."""

import itertools
import json
import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from tacit import noise
from tacit.accounting import Cost
from tacit.errors import TacitError
from tacit.noise import _ladders

m = tc.mechanisms
SETTINGS = [
    (epsilon, k, floor)
    for epsilon in (0.2, 1, 3, 8)
    for k, floor in ((2, 1), (2, 6), (3, 2), (3, 6), (4, 3), (4, 5))
]


def weights(rate, width, power, reach):
    """The weights of 0, 1, ..., reach and the sum of all weights, rung by rung from the definition."""
    rung, total, j = [0], 1.0, 0
    while len(rung) <= reach or rate * j < 60:
        j += 1
        wide = 2 * math.comb(width + j - 1, power)
        if len(rung) <= reach:
            rung += [j] * min(wide, reach + 1)
        total += 2 * wide * math.exp(-rate * j)
    return np.array(rung[: reach + 1]), total


def log_law(ladder, f, degree, x):
    width = max(degree, ladder.floor)
    width = width if ladder.most is None else min(width, ladder.most)
    far = np.abs(x - f)
    rung, total = weights(float(ladder.rate), width, ladder.stars - 1, far.max())
    return -float(ladder.rate) * rung[far] - math.log(total)


@pytest.mark.parametrize(("epsilon", "k", "floor"), SETTINGS, ids=str)
def test_no_neighbours_lose_more_than_epsilon(epsilon, k, floor):
    ladder = m.StarLadder(epsilon, stars=k, floor=floor)
    x = np.arange(-1500, 1501)
    worst = 0.0
    for degree in range(max(0, floor - 1), floor + 4):
        for other in (degree - 1, degree, degree + 1):
            most = 2 * math.comb(max(0, min(degree, other)), k - 1)
            here = log_law(ladder, 0, degree, x)
            for moved in sorted({0, 1, most // 2, most - 1, most} & set(range(most + 1))):
                worst = max(worst, np.abs(here - log_law(ladder, moved, other, x)).max())
    assert worst <= epsilon + 1e-9
    if epsilon <= 1 or floor > k:
        assert worst >= epsilon * 0.99  # nothing is wasted unless the normaliser grows first


@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.parametrize(("epsilon", "floor"), [(0.5, 3), (1, 3), (3, 3)])
def test_no_edge_of_a_small_graph_costs_more_than_epsilon(n, k, epsilon, floor):
    pairs = list(itertools.combinations(range(n), 2))
    values = set()
    for mask, (i, (u, v)) in itertools.product(range(1 << len(pairs)), enumerate(pairs)):
        if not mask >> i & 1:
            degrees = [
                sum(mask >> j & 1 for j, pair in enumerate(pairs) if node in pair) for node in range(n)
            ]
            more = [d + (node in {u, v}) for node, d in enumerate(degrees)]
            values.add(tuple((sum(math.comb(d, k) for d in ds), max(ds)) for ds in (degrees, more)))
    x = np.arange(-600, 601)
    for most in (None, max(floor, n - 2)):
        ladder = m.StarLadder(epsilon, stars=k, floor=floor, most=most)
        for (f, degree), (g, other) in values:
            loss = log_law(ladder, f, degree, x) - log_law(ladder, g, other, x)
            assert np.abs(loss).max() <= epsilon + 1e-9


def test_half_of_the_sensitivity_would_break_the_promise():
    ladder = m.StarLadder(1, stars=3, floor=4)
    x = np.arange(-800, 801)
    beyond = 2 * 2 * math.comb(4, 2)
    assert np.abs(log_law(ladder, 0, 4, x) - log_law(ladder, beyond, 5, x)).max() > 1.2


@pytest.mark.parametrize(("epsilon", "k", "floor"), [*SETTINGS, (1e-9, 3, 20), (50, 3, 2)], ids=str)
def test_the_rate_is_certified_over_all_degrees(epsilon, k, floor):
    """By the sum of the series itself, with other digits, for degrees far beyond the floor."""
    ladder = m.StarLadder(epsilon, stars=k, floor=floor)
    with localcontext() as context:
        context.prec = 120
        rate = Decimal(ladder.rate.numerator) / Decimal(ladder.rate.denominator)
        u = 1 / (rate.exp() - 1)
        mass = [
            1 + 4 * sum(math.comb(width, k - 1 - i) * u ** (i + 1) for i in range(k))
            for width in range(floor, floor + 300)
        ]
        spent = rate + max(b / a for a, b in itertools.pairwise(mass)).ln()
        assert spent <= Decimal(ladder.epsilon.numerator) / Decimal(ladder.epsilon.denominator)
    assert ladder.rate >= ladder.epsilon / 2
    assert ladder.cost == Cost.pure(epsilon)


def test_a_floor_at_the_largest_degree_gives_the_whole_of_epsilon():
    assert m.StarLadder(Fraction(1, 3), stars=3, floor=7, most=7).rate == Fraction(1, 3)
    assert m.StarLadder(0.1, stars=3).floor == 64
    assert m.StarLadder(0.1, stars=3, most=30).floor == 30


def test_two_edges_are_the_ladder_of_even_widths():
    """For k = 2 the widths are 2A, 2(A + 1), ...: the rate lies below that of single steps."""
    assert m.StarLadder(1, stars=2, floor=10).rate < m.LadderNoise(1, floor=20).rate


@pytest.mark.parametrize(("epsilon", "k", "floor"), SETTINGS, ids=str)
def test_half_widths_are_the_smallest_and_grow_with_the_degree(epsilon, k, floor):
    ladder = m.StarLadder(epsilon, stars=k, floor=floor)
    for narrow, wide in itertools.pairwise(range(floor, floor + 4)):
        for steps in (0, 1, 3, 10, 30, 100, 300):
            assert ladder.law(narrow).exceeds(steps) <= ladder.law(wide).exceeds(steps) + 1e-15
        found = ladder.half_width(0.9, width=narrow)
        assert found <= ladder.half_width(0.9, width=wide)
        assert ladder.law(narrow).exceeds(found) <= 0.1 + 1e-12
        assert found == 0 or ladder.law(narrow).exceeds(found - 1) > 0.1 - 1e-12


LAWS = [(1, 3, 3, 4), (3, 3, 2, 2), (2, 2, 1, 3), (4, 4, 3, 3)]


def p_value(ladder, degree, drawn):
    from scipy import stats

    size, counts = len(drawn), Counter(drawn)
    x = np.arange(-600, 601)
    chances = np.exp(log_law(ladder, 0, degree, x))
    kept = chances * size >= 10
    observed = np.array([counts[int(k)] for k in x[kept]])
    wanted = chances[kept] * size
    rest = (size - observed.sum(), size - wanted.sum())
    if rest[1] > 5:
        observed, wanted = np.append(observed, rest[0]), np.append(wanted, rest[1])
    return stats.chi2.sf(((observed - wanted) ** 2 / wanted).sum(), len(wanted) - 1)


@pytest.mark.parametrize(("epsilon", "k", "floor", "degree"), LAWS, ids=str)
def test_draws_follow_the_law(epsilon, k, floor, degree):
    ladder = m.StarLadder(epsilon, stars=k, floor=floor)
    assert p_value(ladder, degree, [ladder.release((0, degree)) for _ in range(4_000)]) > 1e-9
    assert p_value(ladder, degree, ladder.release_many((0, degree), 100_000).tolist()) > 1e-9
    assert p_value(ladder, degree + 1, ladder.release_many((0, degree), 400_000).tolist()) < 1e-9
    law = ladder.law(degree)
    expected = np.exp(log_law(ladder, 0, degree, np.arange(-20, 21)))
    assert [law.probability(k) for k in range(-20, 21)] == pytest.approx(expected, rel=1e-10)


@pytest.mark.long
@pytest.mark.parametrize(("epsilon", "k", "floor", "degree"), LAWS, ids=str)
def test_many_draws_follow_the_law(epsilon, k, floor, degree):
    ladder = m.StarLadder(epsilon, stars=k, floor=floor)
    assert p_value(ladder, degree, [ladder.release((0, degree)) for _ in range(200_000)]) > 1e-9
    assert p_value(ladder, degree, ladder.release_many((0, degree), 3_000_000).tolist()) > 1e-9


@given(
    st.fractions(Fraction(1, 1000), Fraction(60)),
    st.integers(1, 4),
    st.integers(0, 30),
    st.sampled_from([16, 64, 80, 144]),
)
def test_the_certified_digits_hold_the_chances_of_the_mixture(rate, power, more, bits):
    width = power + more
    with localcontext() as context:
        context.prec = 150
        u = 1 / ((Decimal(rate.numerator) / Decimal(rate.denominator)).exp() - 1)
        parts = [Decimal(1), *(4 * math.comb(width, power - i) * u ** (i + 1) for i in range(power + 1))]
        for part in range(power + 1):
            low, high = _ladders._chance(rate, width, power, part)(bits)
            chance = parts[part] / sum(parts[part:])
            slack = Decimal(10) ** -80
            assert low - slack <= chance * 2**bits <= high + slack
            assert high - low <= 2


def test_every_pair_of_whole_numbers_is_released_as_a_python_int():
    ladder = m.StarLadder(1, stars=3, most=50)
    for value in ((0, 0), (-5, -3), (2**80, 10**30), [7, 12], np.array([7, 12]), (np.int64(7), np.int8(12))):
        assert type(ladder.release(value)) is int
        assert len(ladder.release_many(value, 3)) == 3
    assert ladder.law(10**30) == ladder.law(50)
    assert ladder.law(0) == ladder.law(20)
    with pytest.raises(TacitError, match="pair"):
        ladder.release(3)


@pytest.mark.parametrize("epsilon", [1e-15, 1e-6, 60, 1e6])
def test_promises_from_tiny_to_huge_work(epsilon):
    for floor, most in ((2, None), (5, 5), (5, 100)):
        ladder = m.StarLadder(epsilon, stars=3, floor=floor, most=most)
        half = ladder.half_width(1 - 1e-12, width=7)
        assert all(abs(ladder.release((10**9, 7)) - 10**9) <= half for _ in range(20))


@pytest.mark.parametrize(
    "given_", [{"stars": 1}, {"floor": 1}, {"floor": 9, "most": 8}, {"most": 0}, {"epsilon": 0},
               {"epsilon": 1e-30}, {"epsilon": 1e300}, {"adjacency": "swap"}, {"most": 1}]
)  # fmt: skip
def test_nonsense_parameters_are_refused(given_):
    with pytest.raises(TacitError) as refused:
        m.StarLadder(**{"epsilon": 1, "stars": 3, **given_})
    assert refused.value.code == "bad-parameter"


@pytest.mark.parametrize("bad", [{"rate": 0}, {"rate": 2.0**-70}, {"width": 1}, {"power": 0}])
def test_nonsense_parameters_of_the_draws_are_refused(bad):
    with pytest.raises(TacitError) as refused:
        noise.star_ladder(**{"rate": 1, "width": 4, "power": 2, **bad})
    assert refused.value.code == "bad-parameter"


def test_an_array_of_draws_that_do_not_fit_is_refused():
    with pytest.raises(TacitError) as refused:
        noise.star_ladder(2.0**-50, 3, 2, size=5)
    assert refused.value.code == "does-not-fit"
    assert isinstance(noise.star_ladder(2.0**-50, 3, 2), int)
    assert noise.star_ladder(1, 3, 2, size=(0, 2)).shape == (0, 2)


def test_it_is_better_than_a_noisy_largest_degree():
    """A quarter of epsilon for a bound on the largest degree that fails with a chance of at most 1e-6."""
    for degree in (16, 134, 610):
        bound = degree + m.DiscreteLaplace(epsilon=0.25, sensitivity=1).half_width(1 - 2e-6)
        noisy = m.DiscreteLaplace(epsilon=0.75, sensitivity=2 * math.comb(bound, 2))
        assert m.StarLadder(1, stars=3).half_width(0.95, width=degree) < noisy.half_width(0.95)


def test_its_document_states_the_law():
    ladder = m.StarLadder(1, stars=3, most=50)
    told = ladder.to_json()
    assert json.loads(json.dumps(told)) == told
    assert (told["mechanism"], told["stars"], told["floor"], told["most"]) == ("star-ladder", 3, 20, 50)
    assert Fraction(told["rate"]) == ladder.rate
    assert Cost.from_json(told["cost"]) == ladder.cost == Cost.pure(1)
    assert ladder.describe() == "ladder of steps of at least 380, rate 0.9036"
