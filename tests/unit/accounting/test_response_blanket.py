"""Shuffled k-ary randomized response by its own blanket: against exact sums, and against real neighbours."""

import math
from itertools import product

import numpy as np
import pytest

from tacit.accounting import Cost
from tacit.accounting.numeric._shuffled import blanket_delta, shuffled_delta
from tacit.errors import TacitError


def multinomial(n, chances):
    """Yield the counts of n draws and their probability."""
    for counts in product(range(n + 1), repeat=len(chances) - 1):
        last = n - sum(counts)
        if last < 0:
            continue
        whole = (*counts, last)
        if any(k and not p for k, p in zip(whole, chances, strict=True)):
            continue
        logs = math.lgamma(n + 1) - sum(math.lgamma(k + 1) for k in whole)
        logs += sum(k * math.log(p) for k, p in zip(whole, chances, strict=True) if k)
        yield whole, math.exp(logs)


def blanket(n, e0, d):
    """Return P- and Q-masses of the uniform reports: of the two answers, of the others, and how many."""
    ratio = math.exp(e0)
    whole = ratio + d - 1
    rows = []
    for (a, b, r, _), mass in multinomial(n, (1 / whole, 1 / whole, (d - 2) / whole, (ratio - 1) / whole)):
        rows.append((mass * (ratio * a + b + r) / n, mass * (a + ratio * b + r) / n))
    return np.array(rows).T


def third_value(n, e0, d):
    """Return P- and Q-masses of all reports if every other person holds a third value."""
    ratio = math.exp(e0)
    whole = ratio + d - 1
    rows = []
    for (a, b, c, r), mass in multinomial(n, (1 / whole, 1 / whole, ratio / whole, (d - 3) / whole)):
        rest = c / ratio + r
        rows.append((mass * (ratio * a + b + rest) / n, mass * (a + ratio * b + rest) / n))
    return np.array(rows).T


def delta(p, q, e):
    return float(np.maximum(0.0, p - math.exp(e) * q).sum())


@pytest.mark.parametrize("n", [1, 2, 5, 12, 30])
@pytest.mark.parametrize("e0", [0.1, 1.0, 3.0, 6.0])
@pytest.mark.parametrize("d", [2, 3, 4, 10, 1000])
def test_it_is_the_exact_sum_over_all_outcomes(n, e0, d):
    at = blanket_delta(n, e0, d)
    p, q = blanket(n, e0, d)
    assert p.sum() == pytest.approx(1, rel=1e-12)
    for share in (-0.4, 0.0, 0.05, 0.3, 0.7, 0.95):
        truth = delta(p, q, share * e0)
        assert at(share * e0, 1.0) >= truth * (1 - 1e-13)
        assert at(share * e0, -1.0) <= truth * (1 + 1e-12)
        if truth > 1e-6:
            assert at(share * e0, 1.0) <= truth * (1 + 1e-2)


@pytest.mark.parametrize(("n", "e0", "d"), [(300, 1.0, 3), (400, 2.0, 8), (250, 4.0, 40)])
def test_chords_and_means_bracket_a_longer_sum(n, e0, d):
    """The sum over T of the closed form for W: chords and means between their ends lie on its two sides."""
    ratio = math.exp(e0)
    whole = ratio + d - 1
    at = blanket_delta(n, e0, d)
    s, r = np.meshgrid(np.arange(1, n + 1), np.arange(n), indexing="ij")
    s, r = s[s + r <= n], r[s + r <= n]
    lgamma = np.vectorize(math.lgamma)
    logs = math.lgamma(n + 1) - lgamma(s + 1) - lgamma(r + 1) - lgamma(n - s - r + 1)
    logs += s * math.log(2 / whole) + r * math.log((d - 2) / whole)
    logs += (n - s - r) * math.log((ratio - 1) / whole)
    likely = logs > -60
    mass, s, r = np.exp(logs[likely]), s[likely], r[likely]
    for e in (0.1 * e0, 0.2 * e0):
        y, total = math.exp(e), 0.0
        for size in np.unique(s):
            w = 2 * np.arange(size + 1) - size
            coins = np.exp(
                math.lgamma(size + 1) - lgamma(w / 2 + size / 2 + 1) - lgamma(size / 2 - w / 2 + 1)
            )
            coins /= 2.0**size
            t = size * (ratio + 1) / 2 + r[s == size]
            gains = np.maximum(0.0, np.subtract.outer((ratio - 1) * (1 + y) / 2 * w, (y - 1) * t))
            total += float(coins @ gains @ mass[s == size])
        truth = total / n
        low, high = at(e, -1.0), at(e, 1.0)
        assert truth * (1 - 2e-2) <= low < truth < high <= truth * (1 + 2e-2)


@pytest.mark.parametrize("d", [3, 4, 9])
@pytest.mark.parametrize("e0", [0.5, 1.5, 3.0])
def test_real_neighbours_are_covered_and_nearly_reached(d, e0):
    n = 24
    p, q = third_value(n, e0, d)
    cost = Cost.randomized_response(e0, categories=d).shuffled(n)
    for e in (0.0, 0.1 * e0, 0.3 * e0, 0.5 * e0):
        truth = delta(p, q, e)
        assert cost.delta(epsilon=e) >= truth
        if d > 3 and e == 0.0:
            assert cost.delta(epsilon=e) <= 1.1 * truth


def test_two_rounds_against_all_pairs_of_outcomes():
    for n, e0, d in ((6, 1.0, 4), (8, 2.0, 3), (5, 0.5, 30)):
        p, q = blanket(n, e0, d)
        both, other = np.multiply.outer(p, p), np.multiply.outer(q, q)
        twice = 2 * Cost.randomized_response(e0, categories=d).shuffled(n)
        for e in (0.1 * e0, 0.4 * e0, 0.9 * e0):
            truth = delta(both, other, e)
            assert truth * (1 - 1e-12) <= twice.delta(epsilon=e) <= truth * (1 + 1e-3)


TABLE = {
    (1, 2): (0.04321, 0.01243, 0.00351), (1, 10): (0.0233, 0.0066, 0.0019), (1, 51): (0.0103, 0.0029, 0.0008),
    (2, 2): (0.11440, 0.03319, 0.00952), (2, 10): (0.0798, 0.0231, 0.0066), (2, 51): (0.0407, 0.0117, 0.0033),
    (4, 2): (0.41081, 0.11815, 0.03428), (4, 10): (0.3808, 0.1099, 0.0319), (4, 51): (0.2884, 0.0841, 0.0244),
}  # fmt: skip


@pytest.mark.parametrize(("e0", "d"), TABLE)
@pytest.mark.long
def test_a_million_reports_agree_with_figures_computed_elsewhere(e0, d):
    found = Cost.randomized_response(e0, categories=d).shuffled(10**6).epsilon(delta=1e-6)
    assert found == pytest.approx(TABLE[e0, d][2], rel=2e-3, abs=6e-5)


@pytest.mark.parametrize(("e0", "d"), TABLE)
def test_it_agrees_with_figures_computed_elsewhere(e0, d):
    for n, expected in zip((10**4, 10**5), TABLE[e0, d][:2], strict=True):
        found = Cost.randomized_response(e0, categories=d).shuffled(n).epsilon(delta=1e-6)
        assert found == pytest.approx(expected, rel=2e-3, abs=6e-5)


@pytest.mark.parametrize("d", [3, 10, 200])
def test_sums_shrink_with_the_root_of_the_reports(d):
    """A hundred times the reports and a hundred rounds spend about what one round spends."""
    one = Cost.randomized_response(1, categories=d).shuffled(10_000).epsilon(delta=1e-6)
    hundred = (100 * Cost.randomized_response(1, categories=d).shuffled(1_000_000)).epsilon(delta=1e-6)
    assert one * 0.97 < hundred < one * 1.03


@pytest.mark.parametrize("n", [2, 17, 1000, 50_000])
@pytest.mark.parametrize("d", [3, 7, 400])
def test_it_is_never_above_the_bound_for_any_report(n, d):
    for e0 in (0.2, 1.0, 5.0):
        own, any_report = blanket_delta(n, e0, d), shuffled_delta(n, e0)
        for e in (0.0, 0.02 * e0, 0.2 * e0):
            assert own(e, -1.0) <= float(any_report(np.array([e]), 1.0)[0]) * (1 + 1e-9) + 1e-20


def test_means_taken_for_an_upper_value_are_caught():
    """The twin that puts T at its means between the ends stands below the truth."""
    at = blanket_delta(300, 2.0, 8)
    assert at(0.4, -1.0) < at(0.4, 1.0)


def test_categories_are_stated_once():
    four = Cost.randomized_response(1, categories=4)
    assert four.shuffled(100, categories=4) == four.shuffled(100)
    assert Cost.randomized_response(1).shuffled(100, categories=2) == Cost.randomized_response(
        1, categories=2
    ).shuffled(100)
    cost = 3 * four.shuffled(100, categories=4)
    assert Cost.from_json(cost.to_json()) == cost
    assert eval(repr(cost), {"Cost": Cost}) == cost


@pytest.mark.parametrize(
    "make",
    [
        lambda: Cost.randomized_response(1, categories=4).shuffled(100, categories=5),
        lambda: Cost.randomized_response(1).shuffled(100, categories=3),
        lambda: Cost.pure(1).shuffled(100, categories=2),
        lambda: Cost.discrete_laplace(scale=1, sensitivity=1).shuffled(100, categories=2),
        lambda: (2 * Cost.randomized_response(1, categories=4)).shuffled(100, categories=4),
    ],
)
def test_other_costs_are_refused(make):
    with pytest.raises(TacitError) as refused:
        make()
    assert refused.value.code == "no-guarantee"


@pytest.mark.parametrize("e0", [1e-4, 0.02, 20.0, 30.0])
@pytest.mark.parametrize("d", [3, 10**6, 10**12])
@pytest.mark.parametrize("n", [1, 50, 3000])
def test_every_size_has_a_reading(e0, d, n):
    cost = Cost.randomized_response(e0, categories=d).shuffled(n)
    low, high, _ = cost.bounds(delta=1e-7)
    assert 0 <= low <= high <= e0 * (1 + 1e-12)
    low, high, _ = (3 * cost).bounds(delta=1e-7)
    assert 0 <= low <= high <= 3 * e0 * (1 + 1e-12)
