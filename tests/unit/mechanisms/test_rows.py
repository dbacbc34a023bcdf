"""Counts, sums, means, variances, histograms, quantiles: measured change never above the declared one."""

import itertools
import math
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import tacit as tc
from tacit.accounting import Cost
from tacit.audit import neighbouring_rows, neighbours
from tacit.errors import TacitError

m = tc.mechanisms

HOSTILE = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(2**70), 2**70),
    st.sampled_from(
        [None, "", "x" * 1000, b"1", True, 1e308, -1e308, 5e-324, -0.0, 2**4000, Fraction(1, 3), [], {}]
    ),
)
ROWS = st.lists(HOSTILE, max_size=6)


def check(mechanism, a, b, *, norm="l1"):
    found = neighbours(mechanism.exact, [(a, b)], mechanism.sensitivity, norm=norm)
    assert found.holds, found


@given(rows=ROWS, extra=HOSTILE, where=st.integers(0, 6))
def test_one_hostile_row_added_anywhere_moves_no_statistic_by_more_than_declared(rows, extra, where):
    more = [*rows[:where], extra, *rows[where:]]
    for bounds in ((0, 30), (-3, 10), (0.1, 0.3), (-1e9, 1e-9)):
        check(m.Sum(epsilon=1, bounds=bounds), rows, more)
        check(m.Mean(epsilon=1, bounds=bounds), rows, more)
        check(m.Mean(rho=1, bounds=bounds), rows, more, norm="l2")
        check(m.Variance(epsilon=1, bounds=bounds), rows, more)
    check(m.Count(epsilon=1), rows, more)
    check(m.Histogram(epsilon=1, edges=[0, 1, 10]), rows, more)
    check(m.Histogram(epsilon=1, categories=[0, None, "x"]), rows, more)
    for q in (0.5, 0.1, Fraction(1, 3)):
        quantile = m.Quantile(1, q=q, candidates=[-1, 0, 7])
        assert neighbours(quantile.exact, [(rows, more)], quantile.choice.sensitivity, norm="max").holds


@given(rows=st.lists(HOSTILE, min_size=1, max_size=6), other=HOSTILE, where=st.integers(0, 5))
def test_one_hostile_row_replaced_moves_no_statistic_by_more_than_declared(rows, other, where):
    changed = list(rows)
    changed[where % len(rows)] = other
    n = len(rows)
    for bounds in ((0, 30), (-3, 10), (0.1, 0.3)):
        check(m.Sum(epsilon=1, bounds=bounds, n=n), rows, changed)
        check(m.Mean(epsilon=1, bounds=bounds, n=n), rows, changed)
        check(m.Variance(epsilon=1, bounds=bounds, n=n), rows, changed)
    check(m.Histogram(epsilon=1, edges=[0, 1, 10], adjacency="replace"), rows, changed)
    quantile = m.Quantile(1, q=0.1, candidates=[-1, 0, 7], adjacency="replace")
    assert neighbours(quantile.exact, [(rows, changed)], quantile.choice.sensitivity, norm="max").holds


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_the_built_in_neighbours_reach_the_declared_sensitivity(adjacency):
    """The search is sharp: what it finds is what is declared, for the extremes are among the pairs."""
    pairs = list(islice(neighbouring_rows(0, 30, rows=8, adjacency=adjacency), 3000))
    n = 8 if adjacency == "replace" else None
    for mechanism in (m.Sum(epsilon=1, bounds=(0, 30), n=n), m.Mean(epsilon=1, bounds=(0, 30), n=n)):
        found = neighbours(mechanism.exact, pairs, mechanism.sensitivity, tries=3000)
        assert found.holds, found
        assert found.largest == pytest.approx(float(mechanism.sensitivity))


def test_the_variance_bound_is_reached():
    mechanism = m.Variance(epsilon=1, bounds=(0, 30), n=7)
    assert neighbours(
        mechanism.exact, [mechanism.worst_pair], mechanism.sensitivity
    ).largest == pytest.approx(float(mechanism.sensitivity))


def test_statistics_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(1)
    rows = rng.normal(0, 1e6, 10_000)
    for mechanism in (
        m.Sum(epsilon=1, bounds=(-1e5, 1e5)),
        m.Mean(epsilon=1, bounds=(-1e5, 1e5)),
        m.Variance(epsilon=1, bounds=(-1e5, 1e5)),
    ):
        assert np.all(np.asarray(mechanism.exact(rows)) == np.asarray(mechanism.exact(rng.permutation(rows))))


def test_sums_beyond_two_to_the_53_are_exact():
    mechanism = m.Sum(epsilon=1, bounds=(0, 2**40))
    assert mechanism.exact(np.full(100_000, float(2**40))) == 100_000 * 2**40
    assert m.Sum(epsilon=1, bounds=(0, 1)).exact([1.0] * 10) == 10


def test_exact_statistics_are_those_of_the_clipped_values():
    rows = [3.0, 5.0, 31.0, None, -2.0, math.nan, math.inf]
    clipped = [3, 5, 30, 0, 0, 0, 30]
    assert m.Sum(epsilon=1, bounds=(0, 30)).exact(rows) == sum(clipped)
    assert m.Mean(epsilon=1, bounds=(0, 30), n=7).exact(rows) == Fraction(sum(clipped), 7)
    variance = m.Variance(epsilon=1, bounds=(0, 30), n=7).exact(rows)
    assert float(variance) == pytest.approx(np.var(clipped), rel=1e-9)
    assert m.Sum(epsilon=1, bounds=(0, 30), missing=10).exact(rows) == sum(clipped) + 20


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_intervals_of_sums_means_and_variances_cover(confidence):
    """300 releases each; nine binomial numbers below the cut have a chance of 1e-8 together."""
    rows = np.clip(np.random.default_rng(2).normal(12, 5, 400), 0, 30)
    truths = {
        m.Sum(epsilon=0.5, bounds=(0, 30)): rows.sum(),
        m.Sum(epsilon=0.5, bounds=(0, 30), n=400): rows.sum(),
        m.Sum(rho=0.1, bounds=(0, 30)): rows.sum(),
        m.Mean(epsilon=0.5, bounds=(0, 30)): rows.mean(),
        m.Mean(epsilon=0.5, bounds=(0, 30), n=400): rows.mean(),
        m.Mean(epsilon=0.5, delta=1e-6, bounds=(0, 30)): rows.mean(),
        m.Variance(epsilon=0.5, bounds=(0, 30)): rows.var(),
        m.Variance(epsilon=0.5, bounds=(0, 30), n=400): rows.var(),
        m.Count(epsilon=0.5): 400,
    }
    least = binom.ppf(1e-9, 300, confidence)
    for mechanism, truth in truths.items():
        covered = 0
        for _ in range(300):
            low, high = mechanism.interval(mechanism.release(rows), confidence)
            covered += low - 1e-6 <= truth <= high + 1e-6  # the data grid rounds to 2^-25
        assert covered >= least, (mechanism, covered)


def test_the_stated_error_of_a_private_mean_holds():
    rows = np.full(500, 7.0)
    mechanism = m.Mean(epsilon=0.5, bounds=(0, 30))
    half = mechanism.error(0.95, rows=500)
    off = [abs(float(mechanism.release(rows)) - 7) for _ in range(300)]
    assert sum(x <= half for x in off) >= 300 * 0.95 - 6 * math.sqrt(300 * 0.95 * 0.05)
    with pytest.raises(TacitError, match="given where n is private"):
        mechanism.error(0.95)


def test_private_means_and_variances_of_nobody_are_harmless():
    for _ in range(20):
        mean = m.Mean(epsilon=1, bounds=(0, 30)).release([])
        assert 0 <= float(mean) <= 30
        spread = m.Variance(epsilon=1, bounds=(0, 30)).release([])
        assert 0 <= float(spread) <= 225
        low, high = m.Variance(epsilon=1, bounds=(0, 30)).interval(spread, 0.95)
        assert 0 <= low <= high <= 225.0001


def test_unbounded_values_ask_for_bounds():
    for kind in (m.Sum, m.Mean, m.Variance):
        with pytest.raises(TacitError) as refused:
            kind(epsilon=1)
        assert refused.value.code == "missing-bounds"
        assert "infinite" in refused.value.why
        assert "bounds=" in str(refused.value.fix)
        for bad in ((1, 1), (2, 1), (0, math.inf), (math.nan, 1), (0, 1, 2)):
            with pytest.raises(TacitError):
                kind(epsilon=1, bounds=bad)


def test_n_goes_with_replace_only():
    with pytest.raises(TacitError, match="omitted when the adjacency"):
        m.Sum(epsilon=1, bounds=(0, 1), n=5, adjacency="add/remove")
    with pytest.raises(TacitError, match="given under replace"):
        m.Sum(epsilon=1, bounds=(0, 1), adjacency="replace")
    with pytest.raises(TacitError, match="declared number of rows"):
        m.Sum(epsilon=1, bounds=(0, 1), n=5).release([1.0])


def test_histogram_cells_are_public_and_total():
    ages = m.Histogram(epsilon=1, edges=[0, 18, 65, 120])
    rows = [0, 17.9, 18, 65, 120, 121, -1, math.nan, None, "old", math.inf]
    assert ages.exact(rows).tolist() == [2, 1, 2]
    kinds = m.Histogram(epsilon=1, categories=["a", None])
    assert kinds.exact(["a", None, "b", [1], {}]).tolist() == [1, 1]
    assert kinds.error(0.95) == 3
    assert m.Histogram(epsilon=1, categories=["a"], adjacency="replace").error(0.95) == 6
    assert m.Histogram(rho=0.5, categories=["a"], adjacency="replace").cost.rho <= 0.5


def test_quantiles_find_their_place():
    rows = np.repeat(np.arange(60, 261), 40)
    assert m.Quantile(5, q=0.5, candidates=range(60, 261)).release(rows) == pytest.approx(160, abs=3)
    nine = m.Quantiles(5, qs=[k / 10 for k in range(1, 10)], candidates=range(60, 261)).release(rows)
    assert nine == pytest.approx([60 + 20.1 * k for k in range(1, 10)], abs=5)
    many = m.Quantiles(5, qs=[0.5], candidates=np.arange(0, 1000).tolist()).release(rows)
    assert many == pytest.approx([160], abs=8)
    exact = m.Quantiles(1, qs=[0.5], candidates=range(1000))
    check_pairs = [([1.5], [1.5, 700.0]), ([], [math.nan])]
    assert neighbours(exact.exact, check_pairs, 1).largest == 1


def test_several_quantiles_are_halved_and_keep_their_order():
    few = m.Quantiles(1, qs=[0.9, 0.1, 0.5, 0.1], candidates=range(81))
    low, same = (few.release([0] * 600 + [80] * 400)[i] for i in (1, 3))
    assert low == same == 0  # of rows that share a value, too
    assert few.cost == 2 * Cost.exponential(Fraction(1, 2))
    nine = m.Quantiles(1, qs=[k / 10 for k in range(1, 10)], candidates=range(201))
    assert nine.cost.epsilon(delta=0) == 1
    assert nine.cost == 4 * Cost.exponential(Fraction(1, 4))
    rows = np.random.default_rng(5).integers(0, 201, 4000)
    released = nine.release(rows)
    assert released == sorted(released)
    assert m.Quantiles(1, qs=[0.5], candidates=range(4)).release([]) in ([0.0], [1.0], [2.0], [3.0])
    assert m.Quantiles(1, qs=[0.2, 0.5], candidates=[7]).release([1.0, math.nan]) == [7.0, 7.0]
    ends = m.Quantiles(50, qs=[0.5], candidates=[-8e307, 8e307]).release([math.inf] * 9 + [-math.inf])
    assert ends == [8e307]


def test_the_rank_error_of_several_quantiles_holds_for_all_of_them_together():
    nine = m.Quantiles(1, qs=[k / 10 for k in range(1, 10)], candidates=range(2001))
    rows = np.sort(np.random.default_rng(6).integers(0, 2001, 5000))
    bound, missed = nine.error(0.9), 0
    for _ in range(40):
        for q, v in zip(nine.qs, nine.release(rows), strict=True):
            below, up_to = np.searchsorted(rows, [v, v + 1])
            off = max(0, below - float(q) * 5000, float(q) * 5000 - up_to)
            missed += off > bound + 3
    assert missed <= 4  # of 40 releases
    assert bound < 400


def law_of_cuts(rows, shares, candidates, places, scales):
    """The law of where three shares divide the rows: every place of every row, every choice, one by one."""
    low, middle, high = shares
    law = {}
    for spread in itertools.product(range(places), repeat=len(rows)):
        at = sorted(row * places + place for row, place in zip(rows, spread, strict=True))

        def chances(start, end, level, depth, at=at):
            inside = [x for x in at if start <= x < end]
            weights = []
            for cut in range(start, end + 1):
                off = abs(sum(x < cut for x in inside) - level * len(inside))
                weights.append(math.exp(-off / scales[depth](level)))
            return [w / sum(weights) for w in weights]

        end = candidates * places
        for cut, p in enumerate(chances(0, end, middle, 0)):
            lower, upper = (
                chances(0, cut, low / middle, 1),
                chances(cut, end, (high - middle) / (1 - middle), 1),
            )
            for (i, x), (j, y) in itertools.product(enumerate(lower), enumerate(upper)):
                law[i, cut, cut + j] = law.get((i, cut, cut + j), 0) + p * x * y / places ** len(rows)
    return law


@pytest.mark.parametrize(("adjacency", "times"), [("add/remove", 1), ("replace", 2)])
def test_the_whole_law_of_halved_quantiles_stays_within_epsilon(adjacency, times, monkeypatch):
    """Three quantiles of up to three rows at three candidates with two places each, in both directions."""
    from tacit.mechanisms.rows import _quantiles

    monkeypatch.setattr(_quantiles, "places_of", lambda candidates: 2)
    shares = (0.2, 0.5, 0.8)
    mechanism = m.Quantiles(1, qs=shares, candidates=range(3), adjacency=adjacency)
    assert mechanism._places == 2
    scales = [lambda level: 2 * times * max(level, 1 - level) / 0.5] * 2
    largest = 0.0
    pairs = [((0, 0), (0, 0, 0)), ((0, 1), (0, 1, 2)), ((2, 2), (2, 2, 0)), ((1, 1), (1, 1, 1))]
    if adjacency == "replace":
        pairs = [((0, 0, 0), (0, 0, 2)), ((1, 1, 1), (1, 1, 0)), ((0, 1, 2), (0, 1, 0))]
    for a, b in pairs:
        p, q = (law_of_cuts(rows, shares, 3, 2, scales) for rows in (a, b))
        assert sum(p.values()) == pytest.approx(1)
        ratios = [abs(math.log(p[cut] / q[cut])) for cut in p]
        largest = max(largest, *ratios)
    assert 0.25 < largest <= 1 + 1e-9


def test_halved_quantiles_are_drawn_by_the_law_that_is_proven(monkeypatch):
    from tacit.mechanisms.rows import _quantiles

    monkeypatch.setattr(_quantiles, "places_of", lambda candidates: 2)
    shares, rows = (0.2, 0.5, 0.8), (0, 1, 2)
    mechanism = m.Quantiles(4, qs=shares, candidates=range(3))
    law = law_of_cuts(rows, shares, 3, 2, [lambda level: 2 * max(level, 1 - level) / 2] * 2)
    expected = {}
    for cuts, p in law.items():
        key = tuple(float(min(cut // 2, 2)) for cut in cuts)
        expected[key] = expected.get(key, 0) + p
    drawn = [tuple(one) for one in mechanism.release_many(rows, 4000).tolist()]
    assert set(drawn) <= set(expected)
    for key, p in expected.items():
        assert drawn.count(key) / 4000 == pytest.approx(p, abs=6 * math.sqrt(p * (1 - p) / 4000) + 1e-3)


@pytest.mark.parametrize("shares", [(0.5,), (0.1, 0.2, 0.9), (1e-7, 1 / 3, 2 / 3, 0.999999999)])
def test_levels_of_halves_lead_back_to_the_shares(shares):
    from tacit.mechanisms.rows._quantiles import halve

    exact = tuple(Fraction(str(q)) for q in shares)
    top = halve(exact)

    def check(one, low, high):
        share = low + one.level * (high - low)
        assert float(share) == pytest.approx(float(exact[one.index]), rel=1e-5)
        assert 0 < one.level < 1
        if one.lower:
            check(one.lower, low, exact[one.index])
        if one.upper:
            check(one.upper, exact[one.index], high)

    check(top, Fraction(0), Fraction(1))
    assert sorted(one.index for one in top.every()) == list(range(len(shares)))
    assert max(one.depth for one in top.every()) + 1 == len(shares).bit_length()


def test_tied_clinical_data_have_their_median_exactly():
    """The continuous exponential mechanism is off on tied data; public candidates are not."""
    rows = [118.0] * 400 + [120.0] * 900 + [122.0] * 400
    median = m.Quantile(1, q=0.5, candidates=range(60, 261))
    assert {median.release(rows) for _ in range(20)} == {120.0}


def test_bounds_are_found_within_the_stated_budget():
    rows = np.random.default_rng(3).lognormal(5, 1, 5000)
    finder = m.Bounds(1)
    low, high = finder.release(rows)
    assert low <= np.quantile(rows, 0.02)
    assert np.quantile(rows, 0.98) <= high <= 8192
    assert finder.cost.epsilon(delta=0) == 1
    assert m.Bounds(50).release([]) == (-(2.0**40), 2.0**40)  # at 1, noise fills a cell in 3 of 1,000 draws


def test_clip_has_a_fixed_meaning_for_everything():
    values = [5, None, math.nan, math.inf, -math.inf, "7", True, 10**400, Fraction(1, 2), b"x", 1j, [1]]
    assert m.clip(values, 0, 10).tolist() == [5, 0, 0, 10, 0, 0, 1, 10, 0.5, 0, 0, 0]
    assert m.clip([math.nan], 0, 10, missing=4).tolist() == [4]
    assert m.clip(np.array(["a", "b"]), 0, 1).tolist() == [0, 0]
    with pytest.raises(TacitError):
        m.clip([1], 0, 10, missing=11)
    with pytest.raises(TacitError):
        m.clip([1], 10, 0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_truncating_and_folding_bring_releases_into_range(values):
    for tidy in (m.truncate, m.fold):
        assert np.all((tidy(values, -5, 7) >= -5) & (tidy(values, -5, 7) <= 7))
    inside = [x for x in values if -5 <= x <= 7]
    assert m.truncate(inside, -5, 7).tolist() == inside
    assert m.fold(inside, -5, 7) == pytest.approx(inside, abs=1e-9)
