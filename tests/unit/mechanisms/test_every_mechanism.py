"""What a user relies on: every mechanism states its cost, refuses nonsense, and cannot be changed."""

import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from tacit.accounting import Cost
from tacit.errors import TacitError

m = tc.mechanisms

EVERY = {
    "Laplace": m.Laplace(epsilon=0.5, sensitivity=1),
    "Gaussian": m.Gaussian(epsilon=0.5, delta=1e-6, sensitivity=1),
    "DiscreteLaplace": m.DiscreteLaplace(epsilon=0.5, sensitivity=1),
    "DiscreteGaussian": m.DiscreteGaussian(rho=0.5, sensitivity=1),
    "RoundedGaussian": m.RoundedGaussian(epsilon=0.5, delta=1e-6, sensitivity=1),
    "SampledSteps": m.SampledSteps(sigma=2, sensitivity=1, rate=0.5, steps=3),
    "BandedSteps": m.BandedSteps(sigma=9000, sensitivity=1, rate=0.25, steps=6, bands=2),
    "AdaptiveTables": m.AdaptiveTables(rho=0.5, rows=2),
    "Exponential": m.Exponential(0.5, sensitivity=1),
    "NoisyMax": m.NoisyMax(0.5, sensitivity=1),
    "PermuteAndFlip": m.PermuteAndFlip(0.5, sensitivity=1),
    "TopK": m.TopK(0.5, k=2, sensitivity=1),
    "RandomizedResponse": m.RandomizedResponse(epsilon=0.5),
    "SparseVector": m.SparseVector(0.5, threshold=10, sensitivity=1),
    "Count": m.Count(epsilon=0.5),
    "Sum": m.Sum(epsilon=0.5, bounds=(0, 10)),
    "Mean": m.Mean(epsilon=0.5, bounds=(0, 10)),
    "Mean, n public": m.Mean(epsilon=0.5, bounds=(0, 10), n=5),
    "Variance": m.Variance(epsilon=0.5, bounds=(0, 10)),
    "Variance, n public": m.Variance(epsilon=0.5, bounds=(0, 10), n=5),
    "Histogram": m.Histogram(epsilon=0.5, categories="abc"),
    "Quantile": m.Quantile(0.5, q=0.5, candidates=range(10)),
    "Quantiles": m.Quantiles(0.5, qs=[0.25, 0.75], candidates=range(10)),
    "Bounds": m.Bounds(0.5),
    "Subsampled": m.Subsampled(m.Count(epsilon=0.5), q=0.5),
    "QuantileBracket": m.QuantileBracket(0.5, level=0.5, rows=2, candidates=3),
    "QuantileChoice": m.QuantileChoice(0.5, level=0.5, rows=2),
    "KeySelection": m.KeySelection(0.5, delta=1e-6, groups=2),
    "LadderNoise": m.LadderNoise(0.5, floor=10),
    "StarLadder": m.StarLadder(0.5, stars=3),
    "LadderNoise, widths public": m.LadderNoise(0.5, floor=3, most=8),
    "SubsetSelection": m.SubsetSelection(epsilon=0.5, size=4),
    "SubsetSelection, many": m.SubsetSelection(epsilon=0.5, size=20),
    "LinearHashing": m.LinearHashing(epsilon=0.5, size=1000),
    "NumberWindow": m.NumberWindow(epsilon=0.5, steps=10),
    "Design": m.Design.warner(0.6),
    "Memo": m.Memo(epsilon=0.5, once=0.1),
}


@pytest.fixture(params=EVERY)
def mechanism(request):
    return EVERY[request.param]


def test_every_mechanism_has_a_cost(mechanism):
    assert isinstance(mechanism.cost, Cost)
    gaussian = m.Gaussian | m.DiscreteGaussian | m.RoundedGaussian | m.SampledSteps | m.AdaptiveTables
    if not isinstance(mechanism, gaussian | m.Subsampled | m.KeySelection):
        if isinstance(mechanism, m.LocalRandomizer):  # drawn with whole-number odds, just below the promise
            assert mechanism.epsilon <= mechanism.cost.epsilon(delta=0) <= 0.5
            assert mechanism.asked - mechanism.epsilon < 1e-9
            return
        assert mechanism.cost.epsilon(delta=0) == 0.5


def test_every_mechanism_releases_on_both_values_of_its_worst_pair(mechanism):
    for value in mechanism.worst_pair:
        mechanism.release(value)
        assert len(mechanism.release_many(value, 3)) == 3


def test_every_mechanism_is_immutable_hashable_and_survives_pickling(mechanism):
    with pytest.raises((AttributeError, TypeError)):
        mechanism.epsilon = 100
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert hash(mechanism) == hash(pickle.loads(pickle.dumps(mechanism)))


def test_every_mechanism_shows_itself(mechanism):
    assert type(mechanism).__name__ in repr(mechanism)
    assert mechanism._repr_html_().startswith("<pre>")


def test_every_mechanism_states_its_guarantee():
    for name in m.__all__:
        thing = getattr(m, name)
        if isinstance(thing, type) and issubclass(thing, m.Mechanism) and thing is not m.Mechanism:
            assert "Guarantee" in thing.__doc__, name
            assert ">>>" in thing.__doc__, name


def test_nothing_has_a_default_epsilon():
    for make in (
        lambda: m.Laplace(sensitivity=1),
        lambda: m.Gaussian(sensitivity=1),
        lambda: m.DiscreteLaplace(sensitivity=1),
        lambda: m.DiscreteGaussian(sensitivity=1),
        lambda: m.Sum(bounds=(0, 1)),
        lambda: m.Mean(bounds=(0, 1)),
        lambda: m.Histogram(categories=[1]),
        m.Count,
        m.RandomizedResponse,
    ):
        with pytest.raises(TacitError, match="exactly one of"):
            make()
    for make in (
        m.Exponential,
        m.NoisyMax,
        m.PermuteAndFlip,
        m.SparseVector,
        m.Quantile,
        m.Bounds,
        m.LadderNoise,
    ):
        with pytest.raises(TacitError, match=r" needs .*epsilon"):
            make()


BAD = [0, -1, math.nan, math.inf, -math.inf, True, "1", None, 1e-320, np.float32(1), [1]]


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_nonsense_parameters_are_refused(bad):
    for make in (
        lambda: m.Laplace(epsilon=bad, sensitivity=1),
        lambda: m.Laplace(epsilon=1, sensitivity=bad),
        lambda: m.Laplace(scale=bad, sensitivity=1),
        lambda: m.Gaussian(sigma=bad, sensitivity=1),
        lambda: m.Gaussian(rho=bad, sensitivity=1),
        lambda: m.Gaussian(epsilon=bad, delta=1e-6, sensitivity=1),
        lambda: m.Gaussian(epsilon=1, delta=bad, sensitivity=1),
        lambda: m.DiscreteLaplace(epsilon=bad, sensitivity=1),
        lambda: m.DiscreteLaplace(epsilon=1, sensitivity=bad),
        lambda: m.DiscreteGaussian(sigma=bad, sensitivity=1),
        lambda: m.Exponential(bad, sensitivity=1),
        lambda: m.Exponential(1, sensitivity=bad),
        lambda: m.TopK(1, k=bad, sensitivity=1),
        lambda: m.RandomizedResponse(epsilon=bad),
        lambda: m.RandomizedResponse(p=bad),
        lambda: m.SparseVector(bad, threshold=0, sensitivity=1),
        lambda: m.SparseVector(1, threshold=0, sensitivity=1, c=bad),
        lambda: m.Quantile(1, q=bad, candidates=[1, 2]),
        lambda: m.Count(epsilon=bad),
        lambda: m.LadderNoise(bad),
        lambda: m.StarLadder(bad, stars=3),
        lambda: m.Subsampled(m.Count(epsilon=1), q=bad),
        lambda: EVERY["Laplace"].error(bad),
    ):
        with pytest.raises(TacitError) as refused:
            make()
        assert refused.value.code == "bad-parameter"
        assert str(refused.value.fix)


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, True, "7", None, [1, math.nan], [[1], [2, 3]], {"a": 1}, 1j]
)
def test_values_that_are_no_finite_numbers_are_refused_without_showing_them(bad):
    for name in ("Laplace", "Gaussian", "DiscreteLaplace", "DiscreteGaussian"):
        with pytest.raises(TacitError) as refused:
            EVERY[name].release(bad)
        assert refused.value.code == "not-finite"
        assert "nan" not in str(refused.value)
        assert "7" not in str(refused.value)


def test_numbers_of_every_kind_are_released():
    laplace = m.Laplace(epsilon=1000, sensitivity=1)
    for value in (7, 7.0, Fraction(7), Decimal(7), np.float32(7), np.int8(7), np.array(7.0), 2**70):
        assert laplace.release(value) == pytest.approx(float(value), abs=1)
    for value in (
        [7, 8],
        np.array([7, 8], dtype=np.int16),
        np.array([7.0, 8.0], dtype=np.float32),
        (7, Fraction(8)),
    ):
        assert laplace.release(value) == pytest.approx([7, 8], abs=1)
    assert laplace.release(np.zeros((2, 3))).shape == (2, 3)
    assert laplace.release([]).shape == (0,)


@pytest.mark.parametrize("sensitivity", [1e-200, 1e-9, 0.3, 1, 1_000_003, 1e9, 1e200])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1e-3, 1, 50, 1e6])
def test_sizes_from_tiny_to_huge_work(epsilon, sensitivity):
    for made in (
        m.Laplace(epsilon=epsilon, sensitivity=sensitivity),
        m.Gaussian(sigma=sensitivity / epsilon, sensitivity=sensitivity),
    ):
        for value in (0.0, 1.5, 1e300, np.zeros(3), np.full(2, 1e18)):
            low, high = made.interval(made.release(value), 1 - 1e-12)
            assert np.all((low <= value) & (value <= high))


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1e-30, 1), (1, 1e-300), (1e-9, 1e300)])
def test_noise_that_does_not_fit_is_refused_when_it_is_built(epsilon, sensitivity):
    with pytest.raises(TacitError) as refused:
        m.Laplace(epsilon=epsilon, sensitivity=sensitivity)
    assert refused.value.code == "bad-parameter"
    with pytest.raises(TacitError, match="grid steps"):
        m.Exponential(1e-30, sensitivity=1)


def test_intervals_allow_for_the_rounding_of_large_floats():
    laplace = m.Laplace(epsilon=1, sensitivity=1)
    for value in (1e17, 2.0**60 + 2**10):
        covered = [
            low <= value <= high
            for low, high in (laplace.interval(laplace.release(value), 0.9) for _ in range(200))
        ]
        assert sum(covered) >= 200 * 0.9 - 6 * math.sqrt(18)


def test_counts_come_back_as_whole_numbers_and_refuse_fractions():
    count = EVERY["DiscreteLaplace"]
    assert isinstance(count.release(5), int)
    assert count.release(np.array([1, 2], dtype=np.uint64)).tolist()
    with pytest.raises(TacitError, match="not a whole number"):
        count.release(0.5)


def test_the_classic_gaussian_is_refused_above_epsilon_1():
    m.Gaussian(epsilon=1, delta=1e-6, sensitivity=1, calibration="classic")
    with pytest.raises(TacitError, match="at most 1"):
        m.Gaussian(epsilon=1.01, delta=1e-6, sensitivity=1, calibration="classic")


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 5, 20])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_a_calibrated_gaussian_keeps_its_promise_and_wastes_little(epsilon, delta):
    made = m.Gaussian(epsilon=epsilon, delta=delta, sensitivity=0.024)
    assert made.cost.delta(epsilon=epsilon) <= delta
    tighter = Cost.gaussian(sigma=made.sigma * Fraction(9999, 10_000), sensitivity=made.sensitivity)
    assert tighter.delta(epsilon=epsilon) > delta
    assert m.Gaussian(rho=0.1, sensitivity=3).cost.rho <= 0.1


def test_a_coarse_grid_is_charged_as_the_lattice_law():
    coarse = m.Gaussian(sigma=2, sensitivity=1, grid=1, size=1)
    assert coarse.cost.delta(epsilon=1) > Cost.gaussian(sigma=coarse.lattice()[1].sigma, sensitivity=1).delta(
        epsilon=1
    )
    calibrated = m.Gaussian(epsilon=1, delta=1e-6, sensitivity=1, grid=1, size=1)
    assert calibrated.cost.delta(epsilon=1) <= 1e-6
    assert m.Laplace(epsilon=1, sensitivity=1, grid=1).cost == Cost.discrete_laplace(scale=1, sensitivity=1)
    assert m.Laplace(epsilon=1, sensitivity=1, grid=0.4).lattice()[1].scale == 3  # ceil(1 / 0.4)


def test_arrays_on_a_grid_of_ones_own_are_released_whether_they_lie_on_it_or_not():
    """Which way they go depends on their number alone: an error for some values would tell of them."""
    coarse = m.Laplace(epsilon=1, sensitivity=1, grid=0.5)
    for value in ([3.5, 4.0], [3.25, 4], [Fraction(1, 3), 1], np.array([3.2, 4.7]), np.array([3, 4])):
        released = coarse.release(value)
        assert released.shape == (2,)
        assert np.all(released * 2 == np.rint(released * 2))  # still on the grid
    assert coarse.lattice(2)[0] < Fraction(1, 2**20)  # rounded finely first, to the grid afterwards
    assert coarse.error(0.95, size=2) == pytest.approx(coarse.error(0.95), rel=0.2)
    declared = m.Laplace(epsilon=1, sensitivity=1, grid=1, size=2)
    assert declared.lattice(2)[1].scale == 3  # s/g + d
    assert declared.release(np.array([3.5, 4.0])).shape == (2,)
    assert declared.release(np.array([3.5, 4.0, 5.0])).shape == (3,)
    assert m.Gaussian(sigma=4, sensitivity=1, grid=1, size=4).lattice(4)[1].sigma >= 12  # s/g + sqrt(d)
    for alone in (
        m.Laplace(epsilon=1, sensitivity=1, grid=1, size=1),
        m.Gaussian(sigma=4, sensitivity=1, grid=1, size=1),
    ):
        for value in ([1, 2], [1.5, 2]):
            with pytest.raises(TacitError, match="number of entries"):
                alone.release(value)


def test_a_single_count_gets_the_tight_curve_and_refuses_arrays():
    single = m.DiscreteGaussian(sigma=5, sensitivity=1, size=1)
    many = m.DiscreteGaussian(sigma=5, sensitivity=1)
    assert single.cost.epsilon(delta=1e-6) < many.cost.epsilon(delta=1e-6)
    with pytest.raises(TacitError, match="a single count"):
        single.release([1, 2])


def test_monotone_scores_need_no_factor_two_under_add_remove_only():
    for kind in (m.Exponential, m.NoisyMax, m.PermuteAndFlip):
        assert kind(1, sensitivity=1).scale == 2 == 2 * kind(1, sensitivity=1, monotone=True).scale
        with pytest.raises(TacitError, match="omitted under replace"):
            kind(1, sensitivity=1, monotone=True, adjacency="replace")
    with pytest.raises(TacitError, match="omitted under replace"):
        m.SparseVector(1, threshold=0, sensitivity=1, monotone=True, adjacency="replace")


def test_costs_carry_their_adjacency():
    assert m.Laplace(epsilon=1, sensitivity=1, adjacency="replace").cost.adjacency == "replace"
    assert m.Mean(epsilon=1, bounds=(0, 1), n=10).cost.adjacency == "replace"
    with pytest.raises(TacitError):
        m.Mean(epsilon=1, bounds=(0, 1), n=10).cost + m.Count(epsilon=1).cost
    with pytest.raises(TacitError, match='"add/remove" or "replace"'):
        m.Laplace(epsilon=1, sensitivity=1, adjacency="swap")


def test_permute_and_flip_is_charged_as_pure_and_the_exponential_as_bounded_range():
    assert m.PermuteAndFlip(1, sensitivity=1).cost == Cost.pure(1)
    assert m.Exponential(1, sensitivity=1).cost == Cost.exponential(1)
    assert m.TopK(1, k=4, sensitivity=1).cost == 4 * Cost.exponential(0.25)


def test_selection_names_candidates_and_refuses_nothing_to_choose_from():
    chooser = m.Exponential(50, sensitivity=1)
    assert chooser.release({"a": 0, "b": 100}) == "b"
    assert chooser.release([0, 100]) == 1
    for bad in ([], {}, 3, [[]], [[1.5, 2]], [[[1, 2]]], ["x"], [math.nan, 1]):
        with pytest.raises(TacitError):
            chooser.release(bad)
    with pytest.raises(TacitError, match="k must be 1 or 2"):
        m.TopK(1, k=3, sensitivity=1).release([1, 2])


@pytest.mark.parametrize("kind", [m.Exponential, m.PermuteAndFlip, m.NoisyMax])
def test_the_stated_error_of_a_choice_holds_on_hard_scores(kind):
    chooser = kind(1, sensitivity=1)
    half = chooser.error(0.95, candidates=50)
    scores = np.zeros(50)
    scores[0] = half + 1e-3  # all others are just too far behind
    assert chooser.probabilities(scores)[0] >= 0.95 - 1e-9
    if kind is not m.NoisyMax:  # whose bound is a union over candidates
        scores[0] = half * 0.98
        assert chooser.probabilities(scores)[0] < 0.95


def test_losses_of_choices_stay_within_epsilon():
    for kind in (m.Exponential, m.PermuteAndFlip, m.NoisyMax):
        chooser = kind(1, sensitivity=1)
        a, b = chooser.worst_pair
        losses = [chooser.privacy_loss(r, a, b) for r in range(len(a))]
        assert max(map(abs, losses)) <= 1 + 1e-6
        assert max(map(abs, losses)) > 0.6


@pytest.mark.parametrize(
    ("kind", "parameters", "of"),
    [
        (m.Laplace, {"sensitivity": 1}, {}),
        (m.Laplace, {"sensitivity": 1}, {"size": 100, "together": True}),
        (m.DiscreteLaplace, {"sensitivity": 2}, {}),
        (m.Gaussian, {"sensitivity": 1, "delta": 1e-6}, {}),
        (m.DiscreteGaussian, {"sensitivity": 1, "delta": 1e-6}, {}),
        (m.Exponential, {"sensitivity": 1}, {"candidates": 50}),
        (m.PermuteAndFlip, {"sensitivity": 1}, {"candidates": 50}),
        (m.NoisyMax, {"sensitivity": 1}, {"candidates": 50}),
        (m.SparseVector, {"sensitivity": 1, "threshold": 0}, {"queries": 20}),
        (m.Count, {}, {}),
        (m.Sum, {"bounds": (0, 3)}, {}),
        (m.Mean, {"bounds": (0, 100)}, {"rows": 500}),
        (m.Quantile, {"q": 0.5, "candidates": range(50)}, {}),
    ],
    ids=str,
)
def test_accuracy_to_epsilon_is_the_smallest_that_meets_the_error(kind, parameters, of):
    epsilon = kind.accuracy_to_epsilon(12, 0.95, **parameters, **of)
    assert kind(epsilon=epsilon, **parameters).error(0.95, **of) <= 12
    assert kind(epsilon=0.9999 * epsilon, **parameters).error(0.95, **of) > 12


def test_an_error_out_of_reach_is_refused():
    with pytest.raises(TacitError, match="reachable"):
        m.SparseVector.accuracy_to_epsilon(0.5, sensitivity=1, threshold=0, grid=1, queries=1)
    with pytest.raises(TacitError, match="states its error"):
        m.Subsampled.accuracy_to_epsilon(1)


def test_the_sparse_vector_stops_and_cannot_be_copied():
    sparse = m.SparseVector(100, threshold=50, c=2, sensitivity=1)
    assert sparse.release([0, 100, 0, 100, 100, 0]) == [False, True, False, True]
    run = sparse.start()
    assert [run.ask(100), run.ask(100)] == [True, True]
    with pytest.raises(TacitError) as refused:
        run.ask(0)
    assert refused.value.code == "run-spent"
    with pytest.raises(TypeError, match="cannot be copied"):
        pickle.dumps(run)


def test_the_sparse_vector_charges_released_values_on_their_own():
    sparse = m.SparseVector(100, threshold=50, c=2, sensitivity=1, value_epsilon=200)
    assert sparse.cost.epsilon(delta=0) == 300
    answers = sparse.release([0, 100, 0, 100])
    assert answers[0] is False
    assert answers[1] == pytest.approx(100, abs=5)
    assert sparse.cost == Cost.pure(100) + 2 * sparse.values.cost


def test_subsampling_takes_rows_under_add_remove_and_really_samples():
    sampled = m.Subsampled(m.Count(epsilon=100), q=0.25)
    assert 1500 < sampled.release(range(8000)) < 2500
    assert sampled.cost == m.Count(epsilon=100).cost.sampled(0.25)
    with pytest.raises(TacitError, match="takes rows"):
        m.Subsampled(m.Laplace(epsilon=1, sensitivity=1), q=0.5)
    with pytest.raises(TacitError, match="add/remove"):
        m.Subsampled(m.Mean(epsilon=1, bounds=(0, 1), n=5), q=0.5)
    assert m.Subsampled(m.Sum(epsilon=50, bounds=(0, 1)), q=1).release(np.ones(100)) == pytest.approx(
        100, abs=5
    )


def test_refusals_of_randomized_response():
    for bad in (1, 1.5, 0.5):
        with pytest.raises(TacitError):
            m.RandomizedResponse(p=bad)
    with pytest.raises(TacitError) as refused:
        m.RandomizedResponse(epsilon=1, categories=["no", "yes"]).release("maybe")
    assert refused.value.code == "unknown-category"
    with pytest.raises(TacitError):
        m.RandomizedResponse(epsilon=1, categories=1)
    assert m.RandomizedResponse(epsilon=9, categories=["no", "yes"]).release("yes") in {"no", "yes"}
    assert m.RandomizedResponse(epsilon=9, categories=5).release([0, 4]).dtype == np.int64


def test_the_estimate_of_a_survey_is_unbiased_and_its_interval_covers():
    survey = m.RandomizedResponse.coins()
    truths = np.arange(2000) < 600
    estimates = [survey.estimate(survey.release(truths), 0.9) for _ in range(400)]
    mean = np.mean([one.value for one in estimates])
    assert mean == pytest.approx(0.3, abs=6 * math.sqrt(survey.variance / 2000 / 400))
    covered = sum(one.low <= 0.3 <= one.high for one in estimates)
    assert covered >= 400 * 0.9 - 6 * 6  # six standard deviations of a binomial(400, 0.9)
