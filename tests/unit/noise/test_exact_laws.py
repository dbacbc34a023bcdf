"""The law of every sampler, followed exactly: every first word, and the edge of every later decision."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import noise
from tacit.noise import _bits, _bulk, _coins, _gaussian, _geometric, _selection
from tacit.noise._bulk import strips
from tacit.noise._intervals import exp_minus, logistic
from tacit.noise._parameters import read

FINE = 2**48
FAMILIES = [(1, True), (1, False), (2, True)]  # discrete Laplace, geometric, discrete Gaussian
SCALES = [
    Fraction(1, 10**6),
    Fraction(1, 50),
    Fraction(1, 3),
    Fraction(1),
    Fraction(5, 2),
    Fraction(10),
    Fraction(63),
]
WIDE = [
    Fraction(64),
    Fraction(1000),
    Fraction(10**6) + Fraction(1, 7),
    Fraction(2**40),
    Fraction(2**59),
    Fraction(2**60),
]


def cover(scale, power, signed):
    spread = scale if power == 1 else 2 * scale**2
    return strips(spread.numerator, spread.denominator, power, signed=signed)


def weight(table, x, bits=200):
    """The interval of exp(-E(|x|)) as fractions."""
    low, high = exp_minus(table.rate * abs(x) ** table.power, bits)
    return Fraction(low, 2**bits), Fraction(high, 2**bits)


def fed(*parts):
    """Bytes for `feed`: (value, number of bytes) pairs."""
    return b"".join(int(value).to_bytes(size, "little") for value, size in parts)


# --- the bulk tables ---


@pytest.mark.parametrize(("power", "signed"), FAMILIES)
@pytest.mark.parametrize("scale", SCALES + WIDE)
def test_rectangles_lie_under_the_weights_and_boxes_over_them(scale, power, signed):
    """The three inequalities from which the law follows (docs/proofs/noise.md), in exact arithmetic."""
    table = cover(scale, power, signed)
    unit = table.per_weight * table.width
    boxes = np.diff(table.edges).tolist()
    for base, inner, cells, box in zip(
        table.base.tolist(), table.inner.tolist(), table.cells.tolist(), boxes, strict=False
    ):
        assert inner == min(abs(base), abs(base ^ (table.width - 1)))
        lowest, _ = weight(table, inner + table.width - 1)
        _, highest = weight(table, inner)
        assert cells <= unit * lowest or cells == 0
        assert cells + Fraction(box, FINE) >= unit * highest
    for side, box in enumerate(boxes[table.base.size :]):
        a = table.reach + side
        step = table.rate * (a + 1) ** power - table.rate * a**power
        _, start = weight(table, a, 400)
        _, high = exp_minus(step, 400)
        assert Fraction(box, FINE) >= table.per_weight * start / (1 - Fraction(high, 2**400))
    assert sum(boxes) <= (2**16 - table.fast) * FINE
    assert table.fast == table.cells.sum()
    assert len(boxes) == table.base.size + 1 + signed


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=2**60, max_denominator=10**6),
    st.sampled_from(FAMILIES),
)
def test_a_cover_exists_for_every_scale_and_seldom_leaves_its_rectangles(scale, family):
    table = cover(scale, *family)
    allowed = 0.03 if scale <= 2**58 else 0.25  # near 2^60 a part of the noise is beyond 64 bits
    assert 1 - table.fast / 2**16 < allowed


@pytest.mark.parametrize(("power", "signed"), FAMILIES)
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(10)])
def test_every_first_word_gives_the_cells_of_the_law(scale, power, signed):
    """Feed all 2^16 first words: each value comes as often as it has cells, a little below its chance."""
    table = cover(scale, power, signed)
    words = np.arange(2**16, dtype=np.uint16)
    with _bits.feed(words.tobytes()):
        out = np.empty(2**16, np.int64)
        slow, cells = table._cells(out)
    assert slow.tolist() == list(range(table.fast, 2**16))
    assert cells.tolist() == list(range(2**16 - table.fast))
    values, counts = np.unique(out[: table.fast], return_counts=True)
    total = sum(weight(table, x)[0] for x in range(-400 if signed else 0, 400))
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        share = weight(table, value)[0] / total
        assert count <= share * 2**16
        assert count > share * 2**16 - 1.1  # one cell lost to rounding down, a little to the boxes' slack


@pytest.mark.parametrize(("power", "signed"), FAMILIES)
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(200), Fraction(10**6)])
def test_points_of_boxes_are_accepted_exactly_under_the_weight(scale, power, signed):
    """For every box, the decision flips between the 2^-48 cells astride the weight, and exactly there."""
    table = cover(scale, power, signed)
    bits = 8 * np.dtype(np.min_scalar_type(table.width - 1)).itemsize
    rng = np.random.default_rng(5)
    for h in rng.permutation(table.base.size)[:150].tolist():
        low = int(rng.integers(table.width))
        x = int(table.base[h]) ^ low
        start, end = table.edges[h : h + 2].tolist()
        least, most = weight(table, x)
        unit = table.per_weight * table.width
        edge = math.floor((least * unit - int(table.cells[h])) * FINE)
        assert edge == math.floor((most * unit - int(table.cells[h])) * FINE)
        assert 0 <= edge <= end - start
        for point in {
            p for p in (0, edge - 1, edge + 1, end - start - 1) if 0 <= p < end - start and p != edge
        }:
            cell, rest = divmod(start + point, FINE)
            parts = [(table.fast + cell, 2)] + ([(low, bits // 8)] if table.width > 1 else [])
            more = (
                2**64 - 1,
                8,
            )  # for a comparison that wants more; as a new point it lies in a box, and lacks bits
            with _bits.feed(fed(*parts, (rest << 16, 8), more)):
                if point < edge:
                    assert table.draw(1, "noise").tolist() == [x]
                else:
                    with pytest.raises(_bits.ExhaustedError):  # it asks for another point
                        table.draw(1, "noise")


@pytest.mark.parametrize(("power", "signed"), FAMILIES)
def test_the_cell_astride_the_weight_is_split_by_further_bits(power, signed):
    """Where 64 bits end, the next word continues the comparison with the same real number."""
    table = cover(Fraction(2), power, signed)
    for h in range(1, 4):  # the weight of 0 is rational and has no such cell
        x = int(table.base[h])
        start = int(table.edges[h])
        excess = weight(table, x, 300)[0] * table.per_weight - int(table.cells[h])
        edge, rest = divmod(math.floor(excess * FINE * 2**64), 2**64)
        cell, point = divmod(start + edge, FINE)
        for word, accepted in [(rest - 1, True), (rest + 1, False)]:
            with _bits.feed(fed((table.fast + cell, 2), (point << 16, 8), (word, 8))):
                if accepted:
                    assert table.draw(1, "noise").tolist() == [x]
                else:
                    with pytest.raises(_bits.ExhaustedError):
                        table.draw(1, "noise")


@pytest.mark.parametrize(("power", "signed"), FAMILIES)
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(3), Fraction(10**6)])
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_the_far_tail_is_decided_exactly(power, signed, scale, steps):
    """A proposal in the tail is accepted up to the exact height of its weight over the proposal's chance."""
    table = cover(scale, power, signed)
    for side in range(1 + signed):
        a = table.reach + side
        step = table.rate * (a + 1) ** power - table.rate * a**power
        g, w = exp_minus(step, 400)[0], weight(table, a + steps, 400)[0]
        lift = Fraction(2**400, exp_minus(steps * step, 400)[0])
        height = table.per_weight * w * lift / (1 - Fraction(g, 2**400))
        edge = math.floor(height * FINE)
        start, end = table.edges[table.base.size + side :][:2].tolist()
        digits = len(_geometric.thresholds(step.denominator, step.numerator))
        proposal = [(2**64 - 1, 8)] + [(0 if steps >> i & 1 else 2**64 - 1, 8) for i in range(digits)]
        if steps >> digits:
            continue  # so steep that this proposal needs a word of zeros; covered by the digits' tests
        for point in {p for p in (0, edge - 1, edge + 1) if 0 <= p < end - start and p != edge}:
            cell, rest = divmod(start + point, FINE)
            low = [(0, np.min_scalar_type(table.width - 1).itemsize)] if table.width > 1 else []
            with _bits.feed(fed((table.fast + cell, 2), *low, (rest << 16, 8), *proposal)):
                if point < edge:
                    assert table.draw(1, "noise").tolist() == [-(a + steps) if side else a + steps]
                else:
                    with pytest.raises(_bits.ExhaustedError):
                        table.draw(1, "noise")


# --- digits ---


@pytest.mark.parametrize(
    "scale", [Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(10), Fraction(2**60)]
)
def test_thresholds_are_the_floors_of_the_digits_chances(scale):
    limits = _geometric.thresholds(scale.numerator, scale.denominator)
    for i, limit in enumerate(limits):
        low, high = logistic(2**i / scale, 200)
        assert limit == low >> 136 == high >> 136
    assert exp_minus(2 ** len(limits) / scale, 64) in {(0, 1), (0, 2)}  # all further digits: less than 2^-64


def test_small_geometric_draws_have_their_exact_rational_probabilities():
    """The coins' chances multiply out to the geometric law within 2^-60."""
    scale = Fraction(1, 2)
    limits = _geometric.thresholds(1, 2)
    chances = [Fraction(limit, 2**64) for limit in limits]
    for k in range(8):
        chance = math.prod(p if k >> i & 1 else 1 - p for i, p in enumerate(chances))
        law = Fraction(exp_minus(k / scale, 100)[0], 2**100) * (
            1 - Fraction(exp_minus(1 / scale, 100)[0], 2**100)
        )
        assert abs(chance - law) < Fraction(1, 2**60)
        words = [(0 if k >> i & 1 else 2**64 - 1, 8) for i in range(len(limits))]
        with _bits.feed(fed((1, 8), *words)):
            assert noise.geometric(scale) == k


@pytest.mark.parametrize("i", [0, 2])
def test_a_word_equal_to_its_threshold_is_settled_by_the_next(i):
    scale = Fraction(3)
    limits = _geometric.thresholds(3, 1)
    rest = logistic(2**i / scale, 300)[0] >> (300 - 128) & (2**64 - 1)
    words = [2**64 - 1] * len(limits)
    for change, more, digit in [(-1, [], 1), (1, [], 0), (0, [rest - 1], 1), (0, [rest + 1], 0)]:
        words[i] = limits[i] + change
        with _bits.feed(fed((1, 8), *((w, 8) for w in words + more))):
            assert noise.geometric(scale) == digit << i


def test_what_lies_beyond_all_digits_is_drawn_again_and_again():
    limits = _geometric.thresholds(1, 1)
    exponent = 2 ** len(limits)
    rest = exp_minus(Fraction(exponent), 256)[0] >> 128 & (2**64 - 1)  # the second word of exp(-2^K)
    digits = [(2**64 - 1, 8)] * len(limits)
    once = [(0, 8), *digits, (rest - 1, 8), (2**64 - 1, 8)]
    with _bits.feed(fed(*once)):
        assert noise.geometric(1) == exponent
    twice = [(0, 8), *digits, (rest - 1, 8), (0, 8), (rest - 1, 8), (1, 8)]
    with _bits.feed(fed(*twice)):
        assert noise.geometric(1) == 2 * exponent


def test_the_sign_makes_zero_once():
    """The negative side is -1 - G, so that zero is not counted twice."""
    limits = _geometric.thresholds(1, 1)
    zeros = [(1, 8)] + [(2**64 - 1, 8)] * len(limits)
    for sign, drawn in [(limits[0] - 1, -1), (limits[0] + 1, 0)]:
        with _bits.feed(fed((sign, 8), *zeros)):
            assert noise.discrete_laplace(1) == drawn


def test_one_scale_per_element_decides_each_digit_as_the_single_draw_does():
    """The same uniform bits (53 of them here) lead both samplers to the same digits."""
    rng = np.random.default_rng(8)
    scales = np.array([0.01, 0.3, 1.0, 7.7, 30.0])
    top = int(46 * scales.max()).bit_length()
    words = rng.integers(0, 2**64, (top, scales.size), dtype=np.uint64)
    last = np.ones(scales.size, np.uint64)
    with _bits.feed(words.tobytes() + last.tobytes()):
        drawn = _geometric.geometric_many(read("scale", scales))
    for e, scale in enumerate(scales):
        own = len(_geometric.thresholds(*Fraction(str(scale)).as_integer_ratio()))
        with _bits.feed(fed((1, 8), *((w, 8) for w in words[:own, e]))):
            assert noise.geometric(float(scale)) == drawn[e]


def test_one_scale_per_element_makes_zero_once():
    top = int(46 * 1.0).bit_length()
    zeros = np.full((top, 2), 2**64 - 1, np.uint64).tobytes() + np.ones(2, np.uint64).tobytes()
    edge = logistic(Fraction(1), 53)[0] << 11
    with _bits.feed(zeros + fed((edge - 2**11, 8), (edge + 2**11, 8))):
        assert _geometric.laplace_many(read("scale", [1, 1])).tolist() == [-1, 0]


def test_one_scale_per_element_settles_the_undecided_exactly():
    x = Fraction(1, 3)
    edge = logistic(x, 53)[0]
    more = logistic(x, 300)[0] >> (300 - 117) & (2**64 - 1)
    for word, rest, digit in [
        (edge - 1, None, 1),
        (edge + 1, None, 0),
        (edge, more - 1, 1),
        (edge, more + 1, 0),
    ]:
        parts = [(word << 11, 8)] + ([(rest, 8)] if rest is not None else [])
        parts += [(2**64 - 1, 8)] * 7 + [(1, 8)]
        with _bits.feed(fed(*parts)):
            assert _geometric.geometric_many(read("scale", [3])).tolist() == [digit]


# --- discrete Gaussian, one at a time ---


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=10**6, max_denominator=1000),
    st.integers(1, 10**6),
    st.integers(-(10**7), 10**7),
)
def test_proposal_and_acceptance_multiply_to_the_gaussian(sigma, t, y):
    """Proposal exponent and acceptance exponent add up to y^2 / (2 sigma^2), and a constant."""
    exponent = Fraction(abs(y), t) + _gaussian._energy(sigma, t, y)
    assert exponent == y**2 / (2 * sigma**2) + sigma**2 / (2 * t**2)


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(1000)])
@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize("negative", [False, True])
def test_a_gaussian_proposal_is_accepted_up_to_its_exact_chance(sigma, size, negative):
    t = int(sigma) + 1
    y = -1 - size if negative else size
    limits = _geometric.thresholds(t, 1)
    digits = [(0 if size >> i & 1 else 2**64 - 1, 8) for i in range(len(limits))]
    edge, rest = divmod(exp_minus(_gaussian._energy(sigma, t, y), 400)[0] >> (400 - 128), 2**64)
    for coin, more, accepted in [(edge - 1, 0, True), (edge + 1, 0, False), (edge, rest - 1, True)]:
        if not 0 <= coin < 2**64:
            continue
        parts = [(coin, 8), (0 if negative else 2**64 - 1, 8), (1, 8), *digits]
        with _bits.feed(fed(*parts) + (fed((more, 8)) if coin == edge else b"")):
            if accepted:
                assert noise.discrete_gaussian(sigma) == y
            else:
                with pytest.raises(_bits.ExhaustedError):  # it asks for another proposal
                    noise.discrete_gaussian(sigma)


# --- coins, uniform numbers, orders ---


@pytest.mark.parametrize(
    "p", [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(3, 2**16), Fraction(1, 10**6)]
)
def test_every_first_word_of_a_coin(p):
    """Of all 2^16 first words floor(2^16 p) say yes, the rest no; one astride, if any, is settled exactly."""
    words = np.arange(2**16, dtype=np.uint16).tobytes()
    astride = (p * 2**16).denominator != 1
    rest = math.floor(p * 2**80) % 2**64
    for change, yes in [(-1, 1), (1, 0)] if astride else [(0, 0)]:
        with _bits.feed(words + (fed((rest + change, 8)) if astride else b"")) as used:
            coins = noise.bernoulli(p, size=2**16)
            assert used() == 2**17 + 8 * astride
        assert coins.sum() == math.floor(p * 2**16) + yes


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(1, 10**9), 1 - Fraction(1, 10**9)])
@pytest.mark.parametrize("many", [False, True])
def test_coins_flip_at_their_exact_edge(p, many):
    bits = 53 if many else 64
    edge, rest = divmod(math.floor(p * 2 ** (bits + 64)), 2**64)
    for word, more, answer in [
        (edge - 1, 0, True),
        (edge + 1, 0, False),
        (edge, rest - 1, True),
        (edge, rest + 1, False),
    ]:
        with _bits.feed(fed((word << (64 - bits), 8), (more, 8))):
            assert (noise.bernoulli([p])[0] if many else noise.bernoulli(p)) == answer


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(20), Fraction(1, 10**9)])
@pytest.mark.parametrize("many", [False, True])
def test_exponential_coins_flip_at_their_exact_edge(x, many):
    bits = 53 if many else 64
    value = exp_minus(x, 400)[0] >> (400 - bits - 64)
    edge, rest = divmod(value, 2**64)
    for word, more, answer in [
        (edge - 1, 0, True),
        (edge + 1, 0, False),
        (edge, rest - 1, True),
        (edge, rest + 1, False),
    ]:
        if 0 <= word < 2**bits and more >= 0:
            with _bits.feed(fed((word << (64 - bits), 8), (more, 8))):
                assert (noise.bernoulli_exp([x])[0] if many else noise.bernoulli_exp(x)) == answer


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 8, 100, 255, 256])
def test_every_bit_string_gives_uniform_numbers(n):
    bits = (n - 1).bit_length()
    found = []
    for value in range(2**bits):
        with _bits.feed(fed((value << (64 - bits), 8)) if bits else b""):
            try:
                found.append(noise.uniform_below(n))
            except _bits.ExhaustedError:
                assert value >= n
    assert found == list(range(n))
    with _bits.feed(np.arange(2**bits, dtype=np.uint64).tobytes()):
        if 2**bits == n:
            assert noise.uniform_below([n] * n).tolist() == list(range(n))
        else:
            with pytest.raises(_bits.ExhaustedError):
                noise.uniform_below([n] * 2**bits)


@pytest.mark.parametrize("n", [1, 3, 10, 641, 2**16, 2**16 + 1, 2**31 + 1, 2**32 - 1, 2**32])
def test_each_short_uniform_number_has_the_same_number_of_words(n):
    """The words that give r are an interval of exactly floor(2^32 / n); its ends are fed."""
    uneven = 2**32 % n
    for r in {r for r in (0, 1, n // 2, n - 2, n - 1) if 0 <= r < n}:
        first = -(-(r * 2**32 + uneven) // n)
        last = ((r + 1) * 2**32 - 1) // n
        assert last - first + 1 == 2**32 // n
        with _bits.feed(fed((first, 4), (last, 4))):
            assert noise.uniform_below(n, size=2).tolist() == [r, r]
        if uneven:
            with _bits.feed(fed((first - 1, 4))):
                try:
                    assert noise.uniform_below(n, size=1).tolist() == [r - 1]
                except _bits.ExhaustedError:
                    assert (first - 1) * n % 2**32 < uneven


def test_orders_are_equally_likely_and_ties_are_drawn_again():
    found = []
    for keys in itertools.product(range(3), repeat=3):
        with _bits.feed(fed(*((k, 8) for k in keys))):
            try:
                found.append(tuple(noise.permutation(3).tolist()))
            except _bits.ExhaustedError:
                assert len(set(keys)) < 3
    assert sorted(found) == sorted(itertools.permutations(range(3)))


# --- selection ---


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(7, 3)])
def test_tickets_are_accepted_exactly_under_the_weight(scale):
    scores = [0, 5, 5, 3, -40, -4000]
    bits = 50
    gaps = [Fraction(5 - s) / scale for s in scores]
    weights = [exp_minus(x, 400)[0] for x in gaps]  # times 2^400
    tickets = _selection._tickets(_selection._gaps(scores, scale), bits).tolist()
    starts = [0, *itertools.accumulate(tickets)]
    for i, w in enumerate(weights):
        edge, rest = w >> (400 - bits), w >> (400 - bits - 64) & (2**64 - 1)
        assert edge < tickets[i]
        cases = [(edge - 1, 0, True), (edge + 1, 0, False), (edge, rest - 1, True), (edge, rest + 1, False)]
        for above, more, won in cases:
            if not (0 <= above < tickets[i] and 0 <= more < 2**64) or (above == edge and rest == 0):
                continue
            with _bits.feed(fed((starts[i] + above, 8)) + (fed((more, 8)) if above == edge else b"")):
                if won:
                    assert noise.select(scores, scale) == i
                else:
                    with pytest.raises(_bits.ExhaustedError):  # it asks for another ticket
                        noise.select(scores, scale)


def test_a_race_between_equal_words_is_settled_by_further_bits():
    same = (12345678901234567, 8)
    orders = []
    for more in [(5, 9), (9, 5)]:
        with _bits.feed(fed(same, same, *((word, 8) for word in more))):
            orders.append(noise.select_top([1, 1], 2).tolist())
    assert sorted(orders) == [[0, 1], [1, 0]]
    with _bits.feed(fed(same, same)):
        assert noise.select_top([1, 2], 2).tolist() == [1, 0]


@pytest.mark.parametrize("words", [(0, 2**64 - 1), (0, 0), (2**64 - 1, 2**64 - 1), (1, 0), (2**63, 0)])
def test_a_race_with_extreme_words_ends(words):
    more = [(3 * k + 1, 8) for k in range(8)]
    with _bits.feed(fed(*((w, 8) for w in words), *more)):
        order = noise.select_top([0, 0], 2).tolist()
    assert words[order[0]] >= words[order[1]]  # the larger number waits less


@given(st.lists(st.integers(-30, 30), min_size=1, max_size=8), st.data())
def test_the_race_is_won_by_exact_arrival_times(scores, data):
    """The order agrees with exact times computed apart, also where the quick bounds cannot tell."""
    import mpmath

    close = st.integers(2**63, 2**63 + 3) | st.integers(2**40, 2**64 - 2**40)
    words = data.draw(st.lists(close, min_size=len(scores), max_size=len(scores)))
    more = [(2**63 + k, 8) for k in range(200)]
    with _bits.feed(fed(*((w, 8) for w in words), *more)):
        order = noise.select_top(scores, len(scores), scale=3).tolist()
    with mpmath.workprec(400):
        times = [
            -mpmath.log(mpmath.ldexp(w, -64)) * mpmath.exp(-mpmath.mpf(s) / 3)
            for w, s in zip(words, scores, strict=True)
        ]
    for early, late in itertools.pairwise(order):
        assert times[early] <= times[late]


def test_arrival_times_lie_between_their_bounds():
    import mpmath

    rng = np.random.default_rng(22)
    words = rng.integers(0, 2**64, 600, dtype=np.uint64)
    words = np.concatenate([words, words >> np.uint64(40), ~(words >> np.uint64(40)), words >> np.uint64(60)])
    scores = rng.integers(0, 2**20, words.size, dtype=np.uint64) * rng.integers(
        0, 2, words.size, dtype=np.uint64
    )
    gaps = _selection._Gaps(scores, Fraction(3, 7))
    early, late = _selection._arrival(words, gaps.near(0, words.size))
    with mpmath.workprec(300):
        for i, word in enumerate(words.tolist()):
            for end in {max(word, 1), min(word + 1, 2**64 - 1)}:
                wait = -mpmath.log(mpmath.ldexp(end, -64))
                time = mpmath.log(wait) + mpmath.mpf(gaps.exact(i).numerator) / gaps.exact(i).denominator
                assert early[i] <= time <= late[i]


@pytest.mark.parametrize("scores", [(0, 1), (1, 0), (5, 5), (0, 40), (-3, 2)])
def test_a_close_race_is_decided_exactly(scores):
    """The second word is chosen so that both arrive together but for a part in 2^60."""
    import mpmath

    rng = np.random.default_rng(21)
    with mpmath.workprec(400):
        for _ in range(40):
            first = int(rng.integers(2**60, 2**63))
            wait = -mpmath.log(mpmath.ldexp(first, -64)) * mpmath.exp(mpmath.mpf(scores[1] - scores[0]) / 7)
            together = int(mpmath.ldexp(mpmath.exp(-wait), 64))
            for second in (together + sign * step for sign in (-1, 1) for step in (2, 300, 1500, 2500, 5000)):
                if not 0 < second < 2**64:
                    continue
                ends = [
                    [-mpmath.log(mpmath.ldexp(w + e, -64)) * mpmath.exp(-mpmath.mpf(s) / 7) for e in (0, 1)]
                    for w, s in zip((first, second), scores, strict=True)
                ]
                if max(ends[0]) < min(ends[1]):
                    order = [0, 1]
                elif max(ends[1]) < min(ends[0]):
                    order = [1, 0]
                else:
                    continue  # the words do not decide
                with _bits.feed(fed((first, 8), (second, 8), *[(2**63, 8)] * 8)):
                    assert noise.select_top(scores, 2, scale=7).tolist() == order


# --- the quick decisions against the exact ones ---


def same_with_exact_decisions(monkeypatch, module, constant, draw):
    """Draw twice from the same bits; the second time a wide margin leaves all to exact arithmetic."""
    bits = np.random.default_rng(11).bytes(4_000_000)
    with _bits.feed(bits) as used:
        quick, quick_bits = draw(), used()
    with monkeypatch.context() as wide, _bits.feed(bits) as used:
        wide.setattr(module, constant, 4.0)
        slow, slow_bits = draw(), used()
    assert np.array_equal(quick, slow)
    assert quick_bits == slow_bits


@pytest.mark.parametrize(("power", "signed"), FAMILIES)
@pytest.mark.parametrize(
    "scale", [Fraction(1, 3), Fraction(30), Fraction(1000), Fraction(2**57) + Fraction(1, 3)]
)
def test_strips_decide_in_doubles_as_in_exact_arithmetic(monkeypatch, power, signed, scale):
    table = cover(scale, power, signed)
    same_with_exact_decisions(monkeypatch, _bulk, "_SLACK", lambda: table.draw(40_000, "noise"))


def test_digits_and_coins_decide_in_doubles_as_in_exact_arithmetic(monkeypatch):
    scales = read("scale", [0.02, 0.5, 3, 77.7, Fraction(10**6, 7)] * 40)
    chances = [Fraction(k, 997) for k in range(998)]
    exponents = [Fraction(k * k, 9000) for k in range(998)]
    same_with_exact_decisions(monkeypatch, _geometric, "_MARGIN", lambda: _geometric.laplace_many(scales))
    same_with_exact_decisions(monkeypatch, _coins, "_MARGIN", lambda: noise.bernoulli(chances))
    same_with_exact_decisions(monkeypatch, _coins, "_MARGIN", lambda: noise.bernoulli_exp(exponents))
    same_with_exact_decisions(
        monkeypatch, _coins, "_MARGIN", lambda: noise.discrete_gaussian([0.1, 3, 1e6] * 300)
    )
    same_with_exact_decisions(
        monkeypatch,
        _coins,
        "_MARGIN",
        lambda: [noise.discrete_gaussian(s) for s in (Fraction(1, 3), 5, 10**9) * 200],
    )
