"""The ladder, by exact laws: no pair of neighbours loses more than epsilon (docs/proofs/graphs.md)."""

import itertools
import json
import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from support.ladder_laws import log_law, normaliser
from tacit.accounting import Cost
from tacit.errors import TacitError

m = tc.mechanisms

SETTINGS = [
    (epsilon, floor, most)
    for epsilon in (0.1, 1, 3)
    for floor, most in ((0, None), (1, None), (4, None), (10, None), (0, 3), (1, 3), (3, 3), (2, 9), (9, 40))
]


@pytest.mark.parametrize(
    ("epsilon", "floor", "rate"),
    [
        (0.1, 0, 0.050032), (0.1, 10, 0.061839), (0.1, 30, 0.076781), (0.1, 100, 0.090995), (1, 0, 0.545944),
        (1, 5, 0.855148), (1, 10, 0.916034), (1, 30, 0.968678), (1, 100, 0.990190), (2, 10, 1.926454),
    ],
)  # fmt: skip
def test_rates_are_those_of_the_derivation(epsilon, floor, rate):
    assert float(m.LadderNoise(epsilon, floor=floor).rate) == pytest.approx(rate, abs=5e-7)


def test_the_law_of_a_width_is_that_of_the_derivation():
    ladder = m.LadderNoise(1, floor=10)
    chances = [ladder.probability(45 + k, 45, 12) for k in range(26)]
    assert chances[0] == pytest.approx(0.055877, abs=5e-7)
    assert 2 * sum(chances[1:13]) == pytest.approx(0.536556, abs=5e-7)
    assert 2 * sum(chances[13:]) == pytest.approx(0.232567, abs=5e-7)
    assert 1 / chances[0] == pytest.approx(17.896487, abs=5e-7)
    assert (ladder.median_error(12), ladder.half_width(0.95, width=12)) == (10, 48)


@pytest.mark.parametrize(("epsilon", "floor", "most"), [*SETTINGS, (1e-9, 5, 40), (1e-12, 5, None)], ids=str)
def test_the_cost_of_a_rate_is_within_epsilon_and_uses_nearly_all_of_it(epsilon, floor, most):
    """By another formula, with 200 digits: Z(A+1) - Z(A) = 2u (1 - q^(most - A))."""
    ladder = m.LadderNoise(epsilon, floor=floor, most=most)
    with localcontext() as context:
        context.prec = 200
        rate = Decimal(ladder.rate.numerator) / Decimal(ladder.rate.denominator)
        q = (-rate).exp()
        u, cut = q / (1 - q), Decimal(0) if most is None else (-rate * (most - floor)).exp()
        mass = 1 + 2 * u * (floor + u * (1 - cut))
        spent = rate + (1 + 2 * u * (1 - cut) / mass).ln()
        asked = Decimal(ladder.epsilon.numerator) / Decimal(ladder.epsilon.denominator)
        assert spent <= asked
        assert spent > asked * (1 - Decimal(10) ** -17)
    assert ladder.cost == Cost.pure(epsilon)
    assert ladder.rate >= ladder.epsilon / 2


def test_a_floor_at_the_largest_width_gives_the_whole_of_epsilon():
    assert m.LadderNoise(Fraction(1, 3), floor=7, most=7).rate == Fraction(1, 3)
    assert m.LadderNoise(0.1, most=20).floor == 20
    assert m.LadderNoise(0.1).floor == 32
    assert m.LadderNoise(1).floor == 10
    assert m.LadderNoise(4, most=100).floor == 5


def test_the_ratio_of_normalisers_falls_in_the_width():
    for rate, most in itertools.product((0.01, 0.3, 2.0), (None, 12)):
        masses = [normaliser(rate, width, most) for width in range(13)]
        ratios = [b / a for a, b in itertools.pairwise(masses)]
        assert ratios == sorted(ratios, reverse=True)
        assert max(ratios) <= math.exp(rate)


def neighbouring_widths(floor, most):
    """All pairs of widths that differ by at most 1, from the floor to some steps beyond it."""
    last = floor + 6 if most is None else most
    widths = range(max(0, floor - 1), last + 1)
    return [(a, b) for a in widths for b in (a - 1, a, a + 1) if 0 <= b <= last]


@pytest.mark.parametrize(("epsilon", "floor", "most"), SETTINGS, ids=str)
def test_no_neighbours_lose_more_than_epsilon(epsilon, floor, most):
    ladder = m.LadderNoise(epsilon, floor=floor, most=most)
    reach = 60 + 12 * (floor + 7 if most is None else most)
    x = np.arange(-reach, reach + 1)
    worst = 0.0
    for a, b in neighbouring_widths(floor, most):
        here = log_law(ladder, 0, a, x)
        for moved in range(min(a, b) + 1):
            worst = max(worst, np.abs(here - log_law(ladder, moved, b, x)).max())
    assert worst <= epsilon + 1e-9
    if floor > 0:
        assert worst >= epsilon - 1e-9  # the rate could not be larger


@pytest.mark.parametrize(("epsilon", "floor", "most"), [(1, 4, None), (1, 2, 9), (0.5, 9, 9)], ids=str)
def test_the_worst_pair_loses_epsilon(epsilon, floor, most):
    ladder = m.LadderNoise(epsilon, floor=floor, most=most)
    (f, a), (g, b) = ladder.worst_pair
    assert abs(f - g) <= min(a, b)
    losses = [math.log(ladder.probability(x, f, a) / ladder.probability(x, g, b)) for x in range(-40, 60)]
    assert max(losses) == pytest.approx(epsilon, abs=1e-9)


def test_a_move_beyond_the_width_or_a_width_that_moves_by_two_would_break_the_promise():
    """The two properties are needed: the test above would notice."""
    ladder = m.LadderNoise(1, floor=2)
    x = np.arange(-200, 201)
    here = log_law(ladder, 0, 2, x)
    assert np.abs(here - log_law(ladder, 3, 2, x)).max() > 1.01
    assert np.abs(here - log_law(ladder, 2, 4, x)).max() > 1.01


@pytest.mark.parametrize(("epsilon", "floor", "most"), SETTINGS, ids=str)
def test_probabilities_are_those_of_the_definition_and_add_up_to_one(epsilon, floor, most):
    ladder = m.LadderNoise(epsilon, floor=floor, most=most)
    x = np.arange(-30, 31)
    for a in {floor, floor + 1, floor + 5}:
        expected = np.exp(log_law(ladder, 7, a, x + 7))
        found = [ladder.probability(int(k) + 7, 7, a) for k in x]
        assert found == pytest.approx(expected, rel=1e-10)
        law = ladder.law(a)
        assert sum(found) + law.exceeds(30) == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize(("epsilon", "floor", "most"), SETTINGS, ids=str)
def test_a_wider_law_has_heavier_tails(epsilon, floor, most):
    """So a half-width at a stated width holds for all smaller ones."""
    ladder = m.LadderNoise(epsilon, floor=floor, most=most)
    widths = range(floor, (floor + 8 if most is None else most) + 1)
    for narrow, wide in itertools.pairwise(widths):
        for steps in range(120):
            assert ladder.law(narrow).exceeds(steps) <= ladder.law(wide).exceeds(steps) + 1e-15
        assert ladder.half_width(0.95, width=narrow) <= ladder.half_width(0.95, width=wide)


@pytest.mark.parametrize(("epsilon", "floor", "most"), SETTINGS, ids=str)
@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.95, 0.999])
def test_the_half_width_is_the_smallest_that_covers(epsilon, floor, most, confidence):
    ladder = m.LadderNoise(epsilon, floor=floor, most=most)
    for width in (floor, floor + 3):
        found = ladder.half_width(confidence, width=width)
        law = ladder.law(width)
        assert law.exceeds(found) <= 1 - confidence + 1e-12
        assert found == 0 or law.exceeds(found - 1) > 1 - confidence - 1e-12


def test_the_width_of_an_interval_must_be_stated():
    with pytest.raises(TacitError, match="width"):
        m.LadderNoise(1, floor=10).half_width(0.95)
    capped = m.LadderNoise(1, floor=10, most=30)
    assert capped.half_width(0.95) == capped.half_width(0.95, width=30) == capped.half_width(0.95, width=99)
    assert capped.half_width(0.95, width=3) == capped.half_width(0.95, width=10)
    assert capped.half_width(0.95, width=10, copies=2) == 2 * capped.half_width(0.975, width=10)
    wanted = m.LadderNoise.accuracy_to_epsilon(100, floor=10, width=12)
    assert m.LadderNoise(wanted, floor=10).half_width(0.95, width=12) <= 100
    assert m.LadderNoise(wanted * 0.99, floor=10).half_width(0.95, width=12) > 100


def p_value(drawn, law):
    """The chi-square p-value of draws against the exact chances."""
    from scipy import stats

    counts, size = Counter(drawn), len(drawn)
    expected, rest, k = {}, 1.0, 0
    while (chance := law.probability(k)) * size >= 10:
        expected.update({k: chance, -k: chance})
        k += 1
    rest = 1 - sum(expected.values())
    observed = [counts[k] for k in expected]
    pooled = [*observed, size - sum(observed)] if rest * size > 5 else observed
    wanted = [*expected.values(), rest] if rest * size > 5 else list(expected.values())
    total = sum(pooled)
    return stats.chisquare(pooled, np.array(wanted) * total / sum(wanted)).pvalue


LAWS = [(1, 10, None, 12), (1, 0, None, 0), (0.3, 2, 9, 4), (0.5, 7, 7, 7), (0.2, 0, 3, 0), (5, 3, None, 9)]


@pytest.mark.parametrize(("epsilon", "floor", "most", "width"), LAWS, ids=str)
def test_draws_follow_the_law(epsilon, floor, most, width):
    ladder = m.LadderNoise(epsilon, floor=floor, most=most)
    one_by_one = [ladder.release((100, width)) - 100 for _ in range(4_000)]
    assert p_value(one_by_one, ladder.law(width)) > 1e-9
    at_once = ladder.release_many((100, width), 60_000) - 100
    assert p_value(at_once.tolist(), ladder.law(width)) > 1e-9


def test_the_check_of_draws_notices_a_law_that_is_slightly_wrong():
    ladder = m.LadderNoise(1, floor=10)
    drawn = ladder.release_many((0, 12), 400_000).tolist()
    assert p_value(drawn, ladder.law(12)) > 1e-9
    assert p_value(drawn, ladder.law(13)) < 1e-9
    assert p_value(drawn, m.LadderNoise(1, floor=5).law(12)) < 1e-9


@pytest.mark.long
@pytest.mark.parametrize(("epsilon", "floor", "most", "width"), LAWS, ids=str)
def test_many_draws_follow_the_law(epsilon, floor, most, width):
    ladder = m.LadderNoise(epsilon, floor=floor, most=most)
    one_by_one = [ladder.release((0, width)) for _ in range(200_000)]
    assert p_value(one_by_one, ladder.law(width)) > 1e-9
    assert p_value(ladder.release_many((0, width), 3_000_000).tolist(), ladder.law(width)) > 1e-9


def test_every_pair_of_whole_numbers_is_released_as_a_python_int():
    ladder = m.LadderNoise(1, floor=10, most=50)
    for value in ((0, 0), (-5, -3), (2**80, 10**30), [7, 12], np.array([7, 12]), (np.int64(7), np.int8(12)),
                  np.array([7, 12], dtype=np.uint64), np.array([2**70, 3], dtype=object)):  # fmt: skip
        assert type(ladder.release(value)) is int
        assert len(ladder.release_many(value, 3)) == 3
    assert ladder.law(10**30) == ladder.law(50)
    assert ladder.law(-3) == ladder.law(0) == ladder.law(10)
    assert abs(ladder.release((2**80, 12)) - 2**80) < 10_000


@pytest.mark.parametrize(
    "bad", [3, (1,), (1, 2, 3), (1.5, 2), (1, None), "12", {1: 2}, (True, 2), ((1, 2), (3, 4)), np.zeros(2),
            (7, math.nan), ("7", 2), np.ma.masked_array([1, 2]), (7, [2])]
)  # fmt: skip
def test_what_is_not_a_pair_is_refused_without_showing_it(bad):
    with pytest.raises(TacitError) as refused:
        m.LadderNoise(1, floor=10).release(bad)
    assert refused.value.code == "not-finite"
    assert "7" not in refused.value.what


@pytest.mark.parametrize(
    "given_", [{"floor": -1}, {"floor": 1.5}, {"most": 0}, {"floor": 9, "most": 8}, {"floor": True},
               {"adjacency": "swap"}, {"epsilon": 0}, {"epsilon": 1e-30}, {"epsilon": 1e300}]
)  # fmt: skip
def test_nonsense_parameters_are_refused(given_):
    with pytest.raises(TacitError) as refused:
        m.LadderNoise(**{"epsilon": 1, "floor": 10, **given_})
    assert refused.value.code == "bad-parameter"


@pytest.mark.parametrize("epsilon", [1e-15, 1e-6, 60, 1e6, 1e200])
def test_promises_from_tiny_to_huge_work(epsilon):
    for floor, most in ((0, 1), (5, 5), (5, 100), (3, None)):
        ladder = m.LadderNoise(epsilon, floor=floor, most=most)
        half = ladder.half_width(1 - 1e-12, width=7)
        assert all(abs(ladder.release((10**9, 7)) - 10**9) <= half for _ in range(20))


def test_its_document_states_the_law():
    ladder = m.LadderNoise(1, floor=10, most=50)
    told = ladder.to_json()
    assert json.loads(json.dumps(told)) == told
    assert told["mechanism"] == "ladder-noise"
    assert Fraction(told["rate"]) == ladder.rate
    assert (told["floor"], told["most"]) == (10, 50)
    assert Cost.from_json(told["cost"]) == ladder.cost == Cost.pure(1)
    assert m.LadderNoise(1, floor=10).to_json() != told
    assert m.LadderNoise(1, floor=10, adjacency="replace").cost.adjacency == "replace"
    assert ladder.describe() == "ladder of steps of at least 10, rate 0.916"
    assert ladder.scale == 10 / ladder.rate
