"""Integer mechanisms: exact integers in, noisy integers or indices out, as promised on small cases."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from tacit.accounting import Cost, rho_cap
from tacit.errors import TacitError

m = tc.mechanisms

EVERY = {
    "discrete-laplace": m.DiscreteLaplace(epsilon=0.5, sensitivity=3),
    "discrete-gaussian": m.DiscreteGaussian(rho=0.5, sensitivity_squared=3),
    "exponential": m.Exponential(0.5, sensitivity=3, grid=1),
    "permute-and-flip": m.PermuteAndFlip(0.5, sensitivity=3, grid=1),
    "noisy-max": m.NoisyMax(0.5, sensitivity=3, grid=1),
    "top-k": m.TopK(0.5, k=2, sensitivity=3, monotone=True, grid=1),
    "quantile-bracket": m.QuantileBracket(0.5, level=Fraction(1, 4), rows=3, candidates=4),
    "quantile-choice": m.QuantileChoice(0.5, level=Fraction(1, 4), rows=3),
    "key-selection": m.KeySelection(0.5, delta=1e-6, groups=3),
    "star-ladder": m.StarLadder(0.5, stars=3),
    "ladder-noise": m.LadderNoise(0.5, floor=3, most=9),
}
CHOICES = ["exponential", "permute-and-flip", "noisy-max", "top-k", "quantile-choice"]


@pytest.mark.parametrize("name", EVERY)
def test_every_integer_mechanism_describes_itself_in_json_and_in_words(name):
    mechanism = EVERY[name]
    assert isinstance(mechanism, m.IntegerMechanism)
    told = mechanism.to_json()
    assert told["mechanism"] == name
    assert json.loads(json.dumps(told)) == told
    assert Cost.from_json(told["cost"]) == mechanism.cost
    assert Fraction(told.get("scale", told.get("sigma"))) == mechanism.scale
    assert mechanism.describe() != mechanism.describe(Fraction(1, 1024))
    assert mechanism.additive == name.startswith("discrete")


def test_equal_json_means_the_same_law():
    same = [
        (m.DiscreteLaplace(epsilon=0.5, sensitivity=1), m.DiscreteLaplace(scale=2, sensitivity=1)),
        (m.DiscreteGaussian(sigma=2, sensitivity=3), m.DiscreteGaussian(sigma=2, sensitivity_squared=9)),
    ]
    for a, b in same:
        assert a.to_json() == b.to_json()
    different = [
        *EVERY.values(),
        m.DiscreteLaplace(epsilon=0.5, sensitivity=3, adjacency="replace"),
        m.DiscreteLaplace(epsilon=0.25, sensitivity=3),
        m.DiscreteGaussian(sigma=2, sensitivity=1),
        m.DiscreteGaussian(sigma=2, sensitivity=1, size=1),
        m.Exponential(0.5, sensitivity=3, monotone=True, grid=1),
        m.TopK(0.5, k=3, sensitivity=3, monotone=True, grid=1),
        m.QuantileChoice(0.5, level=Fraction(3, 4), rows=3),
        m.KeySelection(0.5, delta=1e-7, groups=3),
        m.KeySelection(0.5, delta=1e-6, groups=3, adjacency="replace"),
        m.KeySelection(rho=0.5, delta=1e-6, groups=3),
    ]
    texts = [json.dumps(one.to_json(), sort_keys=True) for one in different]
    assert len(set(texts)) == len(texts)


def test_words_and_scales_are_those_of_the_law():
    assert m.DiscreteLaplace(epsilon=0.5, sensitivity=1).describe() == "discrete Laplace, scale 2"
    assert m.DiscreteLaplace(epsilon=1, sensitivity=2**30).describe(Fraction(1, 2**20)) == (
        "discrete Laplace, scale 1,024"
    )
    assert m.DiscreteGaussian(sigma=2, sensitivity=1).describe() == "discrete Gaussian, sigma 2"
    assert m.Exponential(1, sensitivity=3, grid=1).describe() == "exponential mechanism, scale 6"
    assert m.KeySelection(1, delta=1e-6, groups=1).describe() == (
        "truncated discrete Laplace, scale 1, shown at 15 units or more"
    )
    assert m.KeySelection(rho=0.125, delta=1e-6, groups=1).describe() == (
        "discrete Gaussian, sigma 2, shown at 11 units or more"
    )
    assert m.TopK(1, k=4, sensitivity=3, monotone=True, grid=1).scale == 12
    assert m.QuantileChoice(1, level=Fraction(1, 4), rows=2).scale == 12


# -- added noise -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [5, [1, 2, 3], [[1, 2], [3, 2**80]], [], [[], []], np.zeros((2, 3), int)])
def test_added_noise_keeps_the_shape(value):
    for name in ("discrete-laplace", "discrete-gaussian"):
        released = EVERY[name].release(value)
        assert np.shape(released) == np.shape(value)
        assert all(isinstance(one, int) for one in np.asarray(released).ravel().tolist())


def test_noise_may_have_a_scale_of_up_to_two_to_the_56():
    for made in (
        m.DiscreteLaplace(scale=2**56, sensitivity=1),
        m.DiscreteGaussian(sigma=2**56, sensitivity=1),
        m.QuantileChoice(Fraction(1, 2**55), level=0.5, rows=1),
    ):
        made.release(np.zeros(300, dtype=np.int64))
        made.release([0, 1])
    for make in (
        lambda: m.DiscreteLaplace(scale=2**56 + 1, sensitivity=1),
        lambda: m.DiscreteLaplace(epsilon=1e-300, sensitivity=1),
        lambda: m.DiscreteGaussian(sigma=2**56 + 1, sensitivity=1),
        lambda: m.DiscreteGaussian(rho=Fraction(1, 2**200), sensitivity_squared=1),
        lambda: m.QuantileChoice(Fraction(1, 2**56), level=0.5, rows=1),
        lambda: m.KeySelection(Fraction(1, 2**57), delta=0.5, groups=1),
    ):
        with pytest.raises(TacitError, match=r"larger than 2\^56 grid steps") as refused:
            make()
        assert refused.value.code == "bad-parameter"
        assert str(refused.value.fix) == "use a larger epsilon, smaller limits or narrower bounds"


@pytest.mark.parametrize("steps", [1, 2, 7, 1024, 4097, 10_007, 2**30 - 1, 2**30, 2**49 + 1])
@pytest.mark.parametrize("epsilon", [0.01, 1, 5])
def test_the_lattice_cost_is_never_above_pure_epsilon(steps, epsilon):
    cost = m.DiscreteLaplace(epsilon=epsilon, sensitivity=steps).cost
    assert cost.epsilon(delta=0) == epsilon
    assert cost.rho <= Cost.pure(epsilon).rho
    assert (30 * cost).epsilon(delta=1e-6) <= (30 * Cost.pure(epsilon)).epsilon(delta=1e-6) * (1 + 1e-9)


def pmf(scale, reach=400):
    k = np.arange(-reach, reach + 1)
    weight = np.exp(-np.abs(k) / float(scale))
    return weight / weight.sum()


@pytest.mark.parametrize("copies", [1, 2, 3, 5])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_the_half_width_of_several_copies_covers_their_sum(copies, confidence):
    mechanisms = {
        m.DiscreteLaplace(scale=3, sensitivity=1): pmf(3),
        m.DiscreteGaussian(sigma=3, sensitivity=1): np.exp(-(np.arange(-400, 401) ** 2) / 18),
    }
    for mechanism, one in mechanisms.items():
        one = one / one.sum()
        law = one
        for _ in range(copies - 1):
            law = np.convolve(law, one)
        middle = len(law) // 2
        half = mechanism.half_width(confidence, copies=copies)
        covered = law[middle - half : middle + half + 1].sum()
        assert covered >= confidence - 1e-12
        if copies == 1:
            assert law[middle - half + 1 : middle + half].sum() < confidence


def test_the_squared_sensitivity_is_exact():
    made = m.DiscreteGaussian(rho=Fraction(1, 8), sensitivity_squared=2)
    assert made.cost.rho <= 0.125
    assert made.sensitivity_squared == 2
    assert made.sigma**2 >= 8
    assert float(made.sigma) == pytest.approx(math.sqrt(8), rel=1e-14)
    assert m.DiscreteGaussian(epsilon=1, delta=1e-6, sensitivity_squared=4).cost.delta(epsilon=1) <= 1e-6
    for bad in (0, -1, 1.5, True, "2"):
        with pytest.raises(TacitError):
            m.DiscreteGaussian(rho=1, sensitivity_squared=bad)
    with pytest.raises(TacitError, match="exactly one of"):
        m.DiscreteGaussian(rho=1, sensitivity=1, sensitivity_squared=1)
    with pytest.raises(TacitError, match="exactly one of"):
        m.DiscreteGaussian(rho=1)


# -- choices in several groups -----------------------------------------------------------------------------


def test_a_table_of_scores_gets_one_choice_per_group():
    table = [[0, 10_000, 0], [10_000, 0, 0], [0, 2**70, 0]]
    for name in ("exponential", "permute-and-flip", "noisy-max"):
        released = EVERY[name].release(table)
        assert released.tolist() == [1, 0, 1]
        assert released.dtype == np.int64
        assert EVERY[name].release(np.zeros((0, 3), dtype=np.int64)).shape == (0,)
        assert EVERY[name].release_many(table, 5).shape == (5, 3)
    top = EVERY["top-k"].release([[0, 10_000, 5000], [9000, 0, 20_000]])
    assert top.tolist() == [[1, 2], [2, 0]]
    assert EVERY["top-k"].release(np.zeros((0, 3), dtype=np.int64)).shape == (0, 2)
    assert EVERY["top-k"].release_many([[0, 10_000, 5000]] * 2, 4).shape == (4, 2, 2)


def test_a_table_needs_whole_scores_that_lie_on_the_grid():
    with pytest.raises(TacitError):
        m.Exponential(1, sensitivity=1).release([[1.5, 2], [3, 4]])
    with pytest.raises(TacitError, match="several groups"):
        m.Exponential(1, sensitivity=1, grid=0.7).release([[1, 2], [3, 4]])
    assert m.Exponential(1, sensitivity=1).release([[0, 900], [900, 0]]).tolist() == [1, 0]
    with pytest.raises(TacitError):
        m.Exponential(1, sensitivity=1, grid=1).release([[1, 2], [3]])


def log_chances(mechanism, table):
    """The log-probabilities of all joint choices over the groups."""
    each = [np.log(mechanism.probabilities(row)) for row in table]
    return np.array([sum(one) for one in itertools.product(*each)])


@given(data=st.data(), monotone=st.booleans())
def test_choices_in_several_groups_cost_epsilon_together(data, monotone):
    """Random neighbours whose changes fit the sensitivity: no joint choice shows more than epsilon."""
    groups, candidates, total = 3, 3, 4
    scores = st.lists(st.integers(-6, 6), min_size=candidates, max_size=candidates)
    table = [data.draw(scores) for _ in range(groups)]
    parts = data.draw(st.lists(st.integers(0, total), min_size=groups, max_size=groups))
    while sum(parts) > total:
        parts = [max(0, p - 1) for p in parts]
    low = 0 if monotone else -1
    changes = [st.integers(low * part, part) for part in parts]
    moved = [[u + data.draw(change) for u in row] for row, change in zip(table, changes, strict=True)]
    for kind in (m.Exponential, m.PermuteAndFlip, m.NoisyMax):
        mechanism = kind(1, sensitivity=total, monotone=monotone, grid=1)
        loss = log_chances(mechanism, table) - log_chances(mechanism, moved)
        assert np.abs(loss).max() <= 1 + 1e-6
        if kind is m.Exponential:
            assert loss.max() - loss.min() <= 1 + 1e-9  # bounded range, over all groups together


@given(data=st.data())
def test_a_unit_replaced_may_lower_one_group_and_raise_another(data):
    """Counts under replace: `total` rows go, `total` rows come; half the span over all groups is `total`."""
    groups, candidates, total = 2, 3, 2
    cell = st.tuples(st.integers(0, groups - 1), st.integers(0, candidates - 1))
    table = np.array(data.draw(st.lists(st.tuples(*[st.integers(2, 8)] * 3), min_size=2, max_size=2)))
    moved = table.copy()
    for sign in (-1, 1):
        for _ in range(total):
            moved[data.draw(cell)] += sign
    mechanism = m.Exponential(1, sensitivity=total, adjacency="replace", grid=1)
    loss = log_chances(mechanism, table) - log_chances(mechanism, moved)
    assert loss.max() - loss.min() <= 1 + 1e-9


def test_the_half_width_of_a_choice_needs_the_number_of_candidates():
    for name in CHOICES:
        half = EVERY[name].half_width(0.95, candidates=10)
        assert isinstance(half, int)
        assert half < EVERY[name].half_width(0.95, candidates=1000)
        with pytest.raises(TacitError, match="how many candidates there are"):
            EVERY[name].half_width(0.95)
        with pytest.raises(TacitError, match="cannot be added up"):
            EVERY[name].half_width(0.95, candidates=10, copies=2)


@pytest.mark.parametrize("name", ["exponential", "permute-and-flip", "noisy-max"])
def test_the_half_width_of_a_choice_holds_on_hard_scores(name):
    mechanism = EVERY[name]
    half = mechanism.half_width(0.95, candidates=20)
    assert mechanism.probabilities([half + 1] + [0] * 19)[0] >= 0.95 - 1e-9
    if name != "noisy-max":
        assert mechanism.probabilities([half] + [0] * 19)[0] < 0.95


# -- quantiles ---------------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 2**70), min_size=1, max_size=6),
    st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=10**15),
)
def test_quantile_scores_count_the_rows_that_are_too_many_below_or_above(counts, level):
    """Rows at the candidate itself count for neither side: ties are not punished."""
    scores = m.QuantileChoice(1, level=level, rows=1).scores(counts).tolist()
    a, whole = level.numerator, level.denominator
    expected = []
    for i in range(len(counts)):
        below, above = sum(counts[:i]), sum(counts[i + 1 :])
        surplus = (whole * below - a * sum(counts), whole * above - (whole - a) * sum(counts))
        expected.append(-max(0, *surplus))
    assert scores == expected
    if sum(counts) < 2**62:
        assert m.QuantileChoice(1, level=level, rows=1).scores(np.array(counts)).tolist() == expected


@given(data=st.data(), level=st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=10**6))
def test_the_rows_of_one_unit_change_quantile_scores_by_no_more_than_declared(data, level):
    counts = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, 5)] * 4), min_size=3, max_size=3)))
    rows = data.draw(st.integers(1, 5))
    moved = counts.copy()
    for _ in range(rows):
        moved[data.draw(st.integers(0, 2)), data.draw(st.integers(0, 3))] += 1
    mechanism = m.QuantileChoice(1, level=level, rows=rows)
    change = np.abs(mechanism.scores(moved) - mechanism.scores(counts)).max(axis=1).sum()
    assert change <= mechanism.sensitivity


def test_values_that_many_rows_share_are_their_own_quantile():
    """Of 600 rows at 0 and 400 at 80 the median was anywhere between them."""
    counts = [600, *[0] * 79, 400]
    for level, expected in ((Fraction(1, 2), 0), (Fraction(7, 10), 80)):
        choice = m.QuantileChoice(1, level=level, rows=1)
        assert set(choice.release_many(counts, 200).tolist()) == {expected}
        assert choice.scores(counts).max() == 0
    rows = [0] * 600 + [80] * 400
    for adjacency in ("add/remove", "replace"):
        median = m.Quantile(1, q=0.5, candidates=range(81), adjacency=adjacency)
        assert set(median.release_many(rows, 200).tolist()) == {0}


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_no_row_changes_a_quantile_score_by_more_than_the_noise_allows_for(adjacency):
    """2,000 random neighbours with many ties, rows between and beyond the candidates."""
    rng = np.random.default_rng(4)
    largest = {}
    for _ in range(2000):
        q = Fraction(int(rng.integers(1, 20)), 20)
        mechanism = m.Quantile(1, q=q, candidates=range(4), adjacency=adjacency)
        rows = (rng.integers(-1, 9, int(rng.integers(1, 8))) / 2).tolist()
        other = [*rows, int(rng.integers(-1, 9)) / 2]
        if adjacency == "replace":
            other.pop(int(rng.integers(len(rows))))
        change = np.abs(mechanism.exact(rows) - mechanism.exact(other)).max()
        assert change <= mechanism.choice.sensitivity
        largest[q] = max(largest.get(q, 0), change / mechanism.choice.sensitivity)
    assert min(largest.values()) == 1  # no sensitivity is larger than needed


def test_quantiles_by_permute_and_flip_are_never_worse_at_the_same_pure_epsilon():
    rng = np.random.default_rng(8)
    gains = []
    for _ in range(30):
        counts = rng.integers(0, 40, 12)
        plain, flip = (
            m.QuantileChoice(0.2, level=0.5, rows=1, method=method)
            for method in ("exponential", "permute-and-flip")
        )
        scores = plain.scores(counts)
        off = [-(scores * one.choice.probabilities(scores)).sum() for one in (plain, flip)]
        assert off[1] <= off[0] * (1 + 1e-9)
        gains.append(off[0] / off[1])
    assert 1.05 < np.median(gains) < 2
    assert flip.cost == Cost.pure(Fraction(1, 5))
    assert flip.to_json()["method"] == "permute-and-flip"
    assert plain.to_json() != flip.to_json()
    assert flip.release([[0, 999, 0], [0, 0, 999]]).tolist() == [1, 2]
    with pytest.raises(TacitError, match="permute-and-flip"):
        m.QuantileChoice(1, level=0.5, rows=1, method="best")


def test_quantile_choices_find_the_level_and_bound_their_rank():
    mechanism = m.QuantileChoice(1, level=0.5, rows=1)
    assert mechanism.release([[0, 0, 999, 0], [999, 0, 0, 0]]).tolist() == [2, 0]
    assert mechanism.release([0, 0, 999, 0]) == 2
    assert mechanism.rank_error(0.95, candidates=100) == pytest.approx(2 * math.log(100 / 0.05) / 2)
    assert mechanism.cost == Cost.exponential(1)
    for bad in (0, 1, 1.5, -0.1):
        with pytest.raises(TacitError):
            m.QuantileChoice(1, level=bad, rows=1)
    with pytest.raises(TacitError, match="one column per candidate"):
        mechanism.release([[], []])


# -- keys --------------------------------------------------------------------------------------------------


def shown_law(mechanism, units):
    """The law of what is shown of one key: its noisy numbers, and last the chance that nothing is shown."""
    if units == 0:
        return {None: 1.0}
    if mechanism.rho is None:
        reach = mechanism.threshold - 1
        weights = {k: math.exp(-abs(k) / float(mechanism.scale)) for k in range(-reach, reach + 1)}
    else:
        weights = {k: math.exp(-(k**2) / (2 * float(mechanism.scale) ** 2)) for k in range(-200, 201)}
    whole = sum(weights.values())
    law = {None: 0.0}
    for k, weight in weights.items():
        outcome = units + k if units + k >= mechanism.threshold else None
        law[outcome] = law.get(outcome, 0.0) + weight / whole
    return law


def beyond(p, q, epsilon):
    """The delta at epsilon between two laws."""
    return sum(max(0.0, chance - math.exp(epsilon) * q.get(seen, 0.0)) for seen, chance in p.items())


@pytest.mark.parametrize("delta", [0.3, 0.01, 1e-4])
@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_one_key_stays_within_its_promise_and_the_threshold_is_the_smallest(epsilon, delta):
    mechanism = m.KeySelection(epsilon, delta=delta, groups=1)
    for units in range(2 * mechanism.threshold + 3):
        with_unit, without = shown_law(mechanism, units + 1), shown_law(mechanism, units)
        assert beyond(with_unit, without, epsilon) <= delta * (1 + 1e-9)
        assert beyond(without, with_unit, epsilon) <= delta * (1 + 1e-9)
    if mechanism.threshold > 2:
        a, r = math.exp(-epsilon), mechanism.threshold - 2
        assert a**r * (1 - a) / (1 + a - 2 * a ** (r + 1)) > delta  # a reach of one less would be too short


def best_chances(epsilon, delta, most):
    """Desfontaines, Voss, Gipson, Mandayam 2022, theorem 1: no law shows a key of n units more often."""
    chances = [0.0]
    while len(chances) <= most:
        last = chances[-1]
        chances.append(min(math.exp(epsilon) * last + delta, 1 - math.exp(-epsilon) * (1 - last - delta), 1))
    return chances


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (0.02, 2e-7), (1, 1e-5), (0.5, 1e-8)])
def test_keys_of_one_group_per_unit_are_shown_as_often_as_any_law_allows(epsilon, delta):
    """One unit more (and delta) makes up for the rounding of the reach to a whole number."""
    mechanism = m.KeySelection(epsilon, delta=delta, groups=1)
    most = 2 * mechanism.threshold
    best = best_chances(epsilon, delta, most)
    for units in range(1, most, max(1, most // 50)):
        shown = [1 - shown_law(mechanism, n)[None] for n in (units, units + 1)]
        assert shown[0] <= best[units] + 1e-9
        assert shown[1] >= best[units] - delta


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("times", [1, 2])
def test_the_threshold_allows_for_all_keys_of_a_unit(groups, times):
    adjacency = "add/remove" if times == 1 else "replace"
    mechanism = m.KeySelection(1, delta=1e-6, groups=groups, adjacency=adjacency)
    moved = times * groups
    assert mechanism.scale == mechanism.sensitivity == moved
    a, reach = math.exp(-1 / moved), mechanism.threshold - 1
    ends = [a**r * (1 - a) / (1 + a - 2 * a ** (r + 1)) for r in (reach, reach - 1)]
    assert moved * ends[0] <= 1e-6 * (1 + 1e-12)
    assert moved * ends[1] > 1e-6
    assert mechanism.cost == Cost.approximate(1, 1e-6, adjacency=adjacency)
    concentrated = m.KeySelection(rho=0.125, delta=1e-6, groups=groups, adjacency=adjacency)
    assert concentrated.scale == pytest.approx(2 * math.sqrt(moved), rel=1e-12)
    assert concentrated.cost.spend.delta == Fraction(1, 10**6)
    assert float(concentrated.cost.spend.rho) == pytest.approx(0.125, rel=1e-12)


def test_gaussian_noise_selects_keys_where_a_unit_has_many_and_keeps_its_numbers():
    for groups in (1, 4, 10, 50):
        mechanism = m.KeySelection(0.5, delta=1e-7, groups=groups)
        a, reach = math.exp(-0.5 / groups), 1
        while groups * a**reach * (1 - a) / (1 + a - 2 * a ** (reach + 1)) > 1e-7:
            reach += 1
        assert mechanism.cost == Cost.approximate(0.5, 1e-7)
        if groups < 10:
            assert mechanism.threshold == reach + 1
        else:
            assert mechanism.threshold < 0.65 * reach
            assert mechanism.half_width(0.95) <= 1.1 * 3 * groups / 0.5
            stated = m.KeySelection(
                rho=rho_cap(Fraction(1, 2), Fraction(1, 2 * 10**7)), delta=5e-8, groups=groups
            )
            assert stated.law == mechanism.law
            assert stated.cost.epsilon(delta=1e-7) <= 0.5


@pytest.mark.parametrize("delta", [0.3, 0.01, 1e-4])
@pytest.mark.parametrize("rho", [0.02, 0.5])
def test_keys_with_gaussian_noise_are_a_private_number_and_a_chance_of_delta(rho, delta):
    """A key of one unit appears with probability delta at most; larger ones differ by rho in every order."""
    mechanism = m.KeySelection(rho=rho, delta=delta, groups=1)
    assert 1 - shown_law(mechanism, 1)[None] <= delta * (1 + 1e-9)
    for units in range(1, 30, 4):
        p, q = shown_law(mechanism, units + 1), shown_law(mechanism, units)
        for order in (1.5, 2, 8):
            for one, two in ((p, q), (q, p)):
                common = [(x, two[k]) for k, x in one.items() if min(x, two.get(k, 0)) > 1e-30]
                total = sum(x * (x / y) ** (order - 1) for x, y in common)
                assert math.log(total) / (order - 1) <= order * rho * (1 + 1e-9)
    if mechanism.threshold > 2:
        sigma = float(mechanism.scale)
        weights = {k: math.exp(-(k**2) / (2 * sigma**2)) for k in range(-300, 301)}
        upper = sum(w for k, w in weights.items() if k >= mechanism.threshold - 2)
        assert upper / sum(weights.values()) > delta  # one less would be too few


@pytest.mark.parametrize(("scale", "reach"), [(Fraction(3), 4), (Fraction(50), 4), (Fraction(1, 2), 1)])
def test_truncated_noise_stays_within_its_reach_and_knows_its_tails(scale, reach):
    from tacit.mechanisms._noise_laws import TruncatedLaplaceLaw

    law = TruncatedLaplaceLaw(scale, reach)
    drawn = law.draws((40, 50))
    assert drawn.shape == (40, 50)
    assert np.abs(drawn).max() == reach or scale < 1
    weights = {k: math.exp(-abs(k) / float(scale)) for k in range(-reach, reach + 1)}
    for steps in range(-1, reach + 2):
        outside = sum(w for k, w in weights.items() if abs(k) > steps) / sum(weights.values())
        assert law.exceeds(steps) == pytest.approx(outside, abs=1e-12)
    for level in (Fraction(1, 10), Fraction(1, 2), Fraction(99, 100)):
        width = law.half_width(level)
        assert law.exceeds(width) <= 1 - level
        assert width == 0 or law.exceeds(width - 1) > 1 - level
    assert law.loss(0, reach + 1) == math.inf == -law.loss(reach + 1, 0)


def test_keys_are_shown_in_an_order_of_their_own():
    mechanism = m.KeySelection(1, delta=1e-6, groups=1)
    many = {("b", 1): 5000, ("a", 2): 5000, ("c", 0): 1, ("d", 0): 0}
    shown = mechanism.release(many)
    assert list(shown) == [("a", 2), ("b", 1)]
    assert all(abs(n - 5000) < 200 for n in shown.values())
    assert list(mechanism.release({2: 5000, "x": 5000, 1: 5000})) == [1, 2, "x"]
    assert mechanism.release({}) == {}
    assert list(mechanism.release({"a": np.int64(5000), "b": 2**70})) == ["a", "b"]
    assert mechanism.nearly_always == mechanism.threshold + mechanism.half_width(0.95)
    for bad in ({"a": 1.5}, {"a": True}, {"a": [1, 2]}, [("a", 1)], 3):
        with pytest.raises(TacitError):
            mechanism.release(bad)


@given(st.lists(st.tuples(st.integers(-1, 0), st.integers(1, 3)), max_size=3))
def test_keys_without_units_never_appear(keys):
    mechanism = m.KeySelection(0.01, delta=0.9, groups=1)
    assert mechanism.release({str(k): units for units, k in keys}) == {}


def test_nonsense_for_keys_is_refused():
    for bad in (0, -1, math.nan, "1", None):
        with pytest.raises(TacitError):
            m.KeySelection(bad, delta=1e-6, groups=1)
        with pytest.raises(TacitError):
            m.KeySelection(1, delta=bad, groups=1)
        with pytest.raises(TacitError):
            m.KeySelection(1, delta=1e-6, groups=bad)
    with pytest.raises(TacitError, match="above 0 and below 1"):
        m.KeySelection(1, delta=1, groups=1)
    with pytest.raises(TacitError, match="exactly one"):
        m.KeySelection(1, rho=1, delta=1e-6, groups=1)
    with pytest.raises(TacitError, match="at least"):
        m.KeySelection(rho=1, delta=1e-300, groups=1)
    for epsilon, delta in (
        (10**7, 1e-6),
        (1, 1e-300),
        (Fraction(1, 2**50), 1e-300),
        (Fraction(1, 2**50), 0.4),
    ):
        for groups in (1, 9):
            odd = m.KeySelection(epsilon, delta=delta, groups=groups)
            assert odd.threshold >= 2
            assert odd.release({"a": odd.threshold + odd.half_width(0.95), "b": 2**70}).keys() >= {"b"}


# -- the secret of a dataset, and coins --------------------------------------------------------------------


def test_ranking_secrets_are_fresh_and_have_62_bits():
    secrets = {m.ranking_secret() for _ in range(2000)}
    assert len(secrets) == 2000
    assert all(0 <= one < 2**62 for one in secrets)
    assert sum(one >= 2**61 for one in secrets) == pytest.approx(1000, abs=7 * math.sqrt(500))


def test_unfair_coins_are_reported(monkeypatch):
    from tacit import noise

    assert "100,000 fair coins" in m.check_randomness()
    monkeypatch.setattr(noise, "bernoulli", lambda p, size: np.ones(size, dtype=bool))
    with pytest.raises(TacitError) as refused:
        m.check_randomness()
    assert refused.value.code == "randomness-failed"


def test_empty_text_and_false_are_sorted_as_themselves_not_as_zero():
    sizes = {"zero'": 900, "": 900, "a": 900}
    assert list(m.KeySelection(1, delta=1e-6, groups=1).release(sizes)) == ["", "a", "zero'"]
    pairs = {("b", "x"): 900, ("", "y"): 900, ("", None): 900, ("", ""): 900, ("it's", "z"): 900}
    shown = list(m.KeySelection(1, delta=1e-6, groups=1).release(pairs))
    assert shown == [("", ""), ("", "y"), ("", None), ("b", "x"), ("it's", "z")]
