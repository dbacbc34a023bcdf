"""Stars of a graph, by exact laws: both numbers together keep (epsilon, delta) (docs/proofs/graphs.md)."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from tacit.accounting import Cost
from tacit.errors import TacitError

m = tc.mechanisms


def laplace(scale, x):
    """The exact discrete Laplace law at the integers x."""
    a = math.exp(-1 / scale)
    return (1 - a) / (1 + a) * a ** np.abs(x)


def joint_law(stars, value, y, bounds, pad):
    """P(noisy count = y, bound): one row for each bound; outer ones are pooled at the ends of `bounds`."""
    exact, degree = value
    noise = np.arange(-400, 401)
    chance = laplace(float(stars.degree_law.scale), noise)
    reached = [stars._bounded(degree + pad + int(k)) for k in noise]
    rows = []
    for bound in bounds:
        mass = chance[[one == bound for one in reached]].sum()
        rows.append(mass * laplace(stars.sensitivity(bound) * float(stars.scale), y - exact))
    return np.array(rows)


def delta_of(stars, a, b, epsilon, *, pad=None):
    """The exact delta of a pair of values at epsilon, up to the cut at the ends of the range of counts."""
    pad = stars.pad if pad is None else pad
    y = np.arange(-6000, 6001)
    bounds = sorted({stars._bounded(degree + pad + k) for _, degree in (a, b) for k in range(-400, 401)})
    p, q = (joint_law(stars, value, y, bounds, pad) for value in (a, b))
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


def neighbouring_values(k, degrees):
    """(count, largest degree) without and with an edge, with the largest move that the degrees allow."""
    for degree in degrees:
        for grown in (degree, degree + 1):
            most = min(degree, grown - 1)
            if most >= 0:
                yield (0, degree), (2 * math.comb(most, k - 1), grown)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("most", [8, 12])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0.05), (2, 0.01), (4, 0.001)])
def test_no_neighbours_exceed_epsilon_and_delta(k, most, epsilon, delta):
    stars = m.StarNoise(epsilon, delta=delta, stars=k, most=most, share=0.5)
    found = []
    for a, b in neighbouring_values(k, range(9)):
        found += [delta_of(stars, a, b, epsilon), delta_of(stars, b, a, epsilon)]
    assert max(found) <= delta


def test_without_the_pad_the_promise_would_be_broken():
    stars = m.StarNoise(2, delta=0.01, stars=3, most=12, share=0.5)
    pairs = list(neighbouring_values(3, range(9)))
    assert max(delta_of(stars, a, b, 2, pad=0) for a, b in pairs) > 0.01
    assert max(delta_of(stars, a, b, 2) for a, b in pairs) < 0.01


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 1, 7])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-6, 1e-12])
def test_the_pad_is_the_smallest_that_holds(epsilon, delta):
    stars = m.StarNoise(epsilon, delta=delta, stars=3, share=0.5)
    c = math.exp(-epsilon / 2)
    below = [c ** (t + 1) / (1 + c) for t in (stars.pad, stars.pad - 1)]
    assert below[0] <= delta * (1 + 1e-9)
    assert stars.pad == 0 or below[1] > delta * (1 - 1e-9)


def test_the_pad_of_the_derivation():
    assert m.StarNoise(0.8, delta=1e-6, stars=3).pad == 66  # a quarter of 0.8 is 0.2


@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_one_edge_of_any_small_graph_moves_stars_by_no_more_than_the_largest_degree_allows(n, k):
    pairs = list(itertools.combinations(range(n), 2))
    largest = 0
    for mask, (i, (u, v)) in itertools.product(range(1 << len(pairs)), enumerate(pairs)):
        if mask >> i & 1:
            continue
        degrees = [sum(mask >> j & 1 for j, pair in enumerate(pairs) if node in pair) for node in range(n)]
        more = [d + (node in {u, v}) for node, d in enumerate(degrees)]
        moved = sum(math.comb(d, k) for d in more) - sum(math.comb(d, k) for d in degrees)
        smaller = min(max(degrees), max(more) - 1)
        assert max(more) - max(degrees) in {0, 1}
        assert 0 <= moved <= 2 * math.comb(smaller, k - 1) <= 2 * math.comb(n - 2, k - 1)
        largest = max(largest, moved)
    assert largest == 2 * math.comb(n - 2, k - 1)  # the cap `most` is n - 2


def test_the_interval_covers_as_often_as_stated_given_the_released_bound():
    stars = m.StarNoise(1, delta=1e-6, stars=3, most=200)
    drawn = stars.release_many((10_000, 40), 4_000)
    half = {bound: stars.half_width(0.9, bound=bound) for bound in set(drawn[:, 1].tolist())}
    covered = np.mean([abs(noisy - 10_000) <= half[bound] for noisy, bound in drawn.tolist()])
    assert 0.9 - 6 * 0.0048 <= covered <= 0.9 + 6 * 0.0048
    assert drawn[:, 1].min() >= 40
    assert drawn[:, 1].max() <= 200
    noisy, bound = stars.release((10_000, 40))
    assert type(noisy) is int
    assert type(bound) is int


def test_the_two_ways_to_draw_have_one_law():
    from scipy import stats

    stars = m.StarNoise(1, delta=0.01, stars=3, most=30)
    one_by_one = np.array([stars.release((500, 10)) for _ in range(4_000)])
    at_once = stars.release_many((500, 10), 40_000)
    for column in (0, 1):
        assert stats.ks_2samp(one_by_one[:, column], at_once[:, column]).pvalue > 1e-9


def test_counts_of_any_size_are_released_on_a_grid_that_the_bound_decides():
    stars = m.StarNoise(1, delta=1e-6, stars=10)
    exact = math.comb(10**6, 10)
    noisy, bound = stars.release((exact, 10**6))
    assert abs(noisy - exact) <= stars.half_width(1 - 1e-12, bound=bound)
    grid, law = stars._count_law(bound)
    assert grid > 1
    assert noisy % grid == 0
    assert law.scale * grid >= stars.sensitivity(bound) * stars.scale
    assert law.scale < 2**57
    assert stars._count_law(100)[0] == 1
    assert len(stars.release_many((exact, 10**6), 5)) == 5
    for value in ((-5, -7), (0, 0), np.array([3, 4]), [2**90, 2**90]):
        noisy, bound = stars.release(value)
        assert type(noisy) is type(bound) is int


def test_a_bound_must_be_stated_where_no_largest_degree_is_public():
    with pytest.raises(TacitError, match="bound"):
        m.StarNoise(1, delta=1e-6, stars=3).half_width(0.95)
    capped = m.StarNoise(1, delta=1e-6, stars=3, most=50)
    assert capped.half_width(0.95) == capped.half_width(0.95, bound=50) == capped.half_width(0.95, bound=80)
    assert capped.error(0.95, bound=20) == capped.half_width(0.95, bound=20) < capped.half_width(0.95)


@pytest.mark.parametrize(
    "given", [{"stars": 1}, {"stars": 2.5}, {"delta": 0}, {"delta": 1}, {"most": 1}, {"share": 0},
              {"share": 1}, {"epsilon": 0}, {"epsilon": 1e-30}, {"adjacency": "swap"}]
)  # fmt: skip
def test_nonsense_parameters_are_refused(given):
    with pytest.raises(TacitError) as refused:
        m.StarNoise(**{"epsilon": 1, "delta": 1e-6, "stars": 3, **given})
    assert refused.value.code == "bad-parameter"


@pytest.mark.parametrize("bad", [3, (1, 2, 3), (1.5, 2), "12", (True, 2)])
def test_what_is_not_a_pair_is_refused(bad):
    with pytest.raises(TacitError) as refused:
        m.StarNoise(1, delta=1e-6, stars=3).release(bad)
    assert refused.value.code == "not-finite"


def test_its_document_states_both_laws():
    stars = m.StarNoise(1, delta=1e-6, stars=3, most=998)
    told = stars.to_json()
    assert json.loads(json.dumps(told)) == told
    assert Fraction(told["degree_scale"]) == 4
    assert Fraction(told["scale"]) == Fraction(4, 3)
    assert (told["stars"], told["pad"], told["most"]) == (3, 52, 998)
    assert Cost.from_json(told["cost"]) == stars.cost == Cost.approximate(1, 1e-6)
