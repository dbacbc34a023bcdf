"""Costs as values: equal sums are equal, everything stored is read again, bad input is refused by code."""

import json
import math
import pickle
from fractions import Fraction
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from tacit.accounting import Budget, Cost, Spend
from tacit.accounting.numeric._arithmetic import NotConverged
from tacit.accounting.numeric._atoms import connect_dots
from tacit.accounting.numeric._curve import Curve
from tacit.errors import TacitError

F = Fraction
UNSHRUNK = [Phase.explicit, Phase.reuse, Phase.generate]  # a reading that goes wrong may take long to shrink
CORPUS = Path(__file__).parents[2] / "corpus" / "costs.json"

numbers = st.fractions(min_value=F(1, 20), max_value=4, max_denominator=20)
pairs = st.one_of(
    st.builds(lambda s, d: Cost.gaussian(sigma=s, sensitivity=d), numbers, numbers),
    st.builds(lambda b, d: Cost.laplace(scale=b, sensitivity=d), numbers, numbers),
    st.builds(lambda b, d: Cost.discrete_laplace(scale=b, sensitivity=d), numbers, st.integers(1, 5)),
    st.builds(lambda s, d: Cost.discrete_gaussian(sigma=s, sensitivity=d), numbers, st.integers(1, 5)),
    st.builds(Cost.randomized_response, numbers),
    st.builds(Cost.exponential, numbers),
    st.builds(Cost.pure, numbers),
    st.builds(Cost.approximate, numbers, st.sampled_from([1e-9, 1e-6, F(1, 1000)])),
    st.builds(Cost.gdp, numbers),
)
leaves = st.one_of(
    pairs,
    st.builds(Cost.zcdp, numbers),
    st.builds(Cost.renyi, st.dictionaries(numbers.map(lambda x: x + 1), numbers, min_size=1, max_size=4)),
)


def grow(inner):
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda k, a: k * a, st.integers(1, 20), inner),
        st.builds(lambda a, m: a.group(m), inner, st.integers(1, 4)),
        st.builds(Cost.parallel, inner, inner),
    )


mixable = st.recursive(pairs, grow, max_leaves=4).map(lambda a: a.sampled(F(1, 10)))
costs = st.recursive(st.one_of(leaves, mixable), grow, max_leaves=5)
quick = st.recursive(st.one_of(leaves, pairs.map(lambda a: a.sampled(F(1, 10)))), grow, max_leaves=2)


# -- the algebra


@given(a=costs, b=costs, c=costs)
def test_addition_commutes_and_associates(a, b, c):
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert hash(a + b) == hash(b + a)
    assert sum([a, b, c]) == a + b + c
    assert a + Cost.zero() == a


@given(a=costs, k=st.integers(0, 6))
def test_multiplication_is_repeated_addition(a, k):
    assert k * a == a * k == sum([a] * k, Cost.zero())
    assert hash(k * a) == hash(sum([a] * k, Cost.zero()))


@given(a=costs, b=costs, c=costs)
def test_branches_are_a_set(a, b, c):
    assert Cost.parallel(a) == a
    assert Cost.parallel(a, a) == Cost.parallel(a, a, a) == Cost.parallel(a, Cost.parallel(a, a))
    assert Cost.parallel(a, b) == Cost.parallel(b, a)
    assert (
        Cost.parallel(Cost.parallel(a, b), c)
        == Cost.parallel(a, Cost.parallel(b, c))
        == Cost.parallel(c, b, a)
    )
    assert Cost.parallel(a, Cost.zero()) == Cost.parallel(a, a)
    assert Cost.parallel(Cost.zero(), Cost.zero()) == Cost.zero()


@given(a=pairs)
def test_equal_branches_read_like_one_of_them(a):
    both = Cost.parallel(a, a)
    assert both.spend == a.spend
    assert (3 * both).spend == (3 * a).spend
    assert both.bounds(epsilon=0.5) == a.bounds(epsilon=0.5)
    assert Cost.from_json(both.to_json()) == both
    assert eval(repr(both), {"Cost": Cost, "Fraction": Fraction}) == both


def test_mu_of_branches_is_the_largest():
    assert Cost.parallel(Cost.gdp(3), Cost.gdp(3)).mu == 3
    assert (Cost.parallel(Cost.gdp(1), Cost.gdp(3)) + Cost.gdp(4)).mu == 5


@given(a=st.recursive(pairs, grow, max_leaves=4), m=st.integers(1, 5), k=st.integers(1, 5))
def test_identities_of_samples_and_groups(a, m, k):
    assert a.sampled(1) == a
    assert a.sampled(F(1, 2)).sampled(F(1, 3)) == a.sampled(F(1, 6))
    assert a.group(1) == a
    assert a.group(m).group(k) == a.group(m * k)
    assert (k * a).group(m) == k * a.group(m)


@given(a=costs)
def test_a_cost_is_stored_and_read_again(a):
    text = json.dumps(a.to_json())
    assert Cost.from_json(json.loads(text)) == a
    assert json.dumps(Cost.from_json(json.loads(text)).to_json()) == text
    assert pickle.loads(pickle.dumps(a)) == a


@given(a=costs)
def test_the_repr_is_the_expression_that_makes_it(a):
    assert eval(repr(a), {"Cost": Cost, "Fraction": Fraction}) == a


@given(a=costs, b=costs)
def test_what_a_ledger_charges_adds_up(a, b):
    one, two, both = a.spend, b.spend, (a + b).spend
    for name in ("epsilon", "rho"):
        x, y, z = getattr(one, name), getattr(two, name), getattr(both, name)
        if x is None or y is None:
            assert z is None or name == "rho"
        elif x.denominator.bit_length() < 400 > y.denominator.bit_length():
            assert z <= x + y
    assert both.delta <= one.delta + two.delta


# -- readings


@settings(max_examples=40, phases=UNSHRUNK)
@given(a=quick, b=leaves, e=st.fractions(min_value=0, max_value=6, max_denominator=10))
def test_more_is_never_less(a, b, e):
    check_monotone(a, b, e)


@pytest.mark.long
@settings(max_examples=400, phases=UNSHRUNK)
@given(a=costs, b=costs, e=st.fractions(min_value=0, max_value=6, max_denominator=10))
def test_more_is_never_less_of_anything(a, b, e):
    check_monotone(a, b, e)


def check_monotone(a, b, e):
    low, high, _ = a.bounds(epsilon=e)
    assert 0 <= low <= high <= 1
    assert low <= (a + b).bounds(epsilon=e).upper
    assert low <= Cost.parallel(a, b).bounds(epsilon=e).upper
    assert low <= a.group(2).bounds(epsilon=e).upper
    assert a.bounds(epsilon=e + 1).lower <= high


@settings(max_examples=40, phases=UNSHRUNK)
@given(a=quick, exponent=st.integers(2, 12))
def test_epsilon_and_delta_are_inverse_to_each_other(a, exponent):
    check_inverse(a, exponent)


@pytest.mark.long
@settings(max_examples=400, phases=UNSHRUNK)
@given(a=costs, exponent=st.integers(2, 12))
def test_epsilon_and_delta_are_inverse_to_each_other_for_anything(a, exponent):
    check_inverse(a, exponent)


def check_inverse(a, exponent):
    delta = F(1, 10**exponent)
    low, high, _ = a.bounds(delta=delta)
    assert 0 <= low <= high
    if math.isinf(high):
        with pytest.raises(TacitError) as refusal:
            a.epsilon(delta=delta)
        assert refusal.value.code == "no-guarantee"
        return
    assert a.epsilon(delta=delta) == high
    assert a.bounds(epsilon=high).lower <= delta
    assert a.bounds(delta=delta / 10).upper >= low


TIGHT = [
    lambda x: Cost.gaussian(sigma=1 / x, sensitivity=1),
    lambda x: 30 * Cost.gaussian(sigma=4 / x, sensitivity=1),
    lambda x: Cost.laplace(scale=1 / x, sensitivity=1),
    lambda x: 10 * Cost.laplace(scale=4 / x, sensitivity=1),
    lambda x: 10 * Cost.randomized_response(x / 2),
    lambda x: 10 * Cost.discrete_laplace(scale=4 / x, sensitivity=2),
    lambda x: 10 * Cost.discrete_gaussian(sigma=4 / x, sensitivity=1),
    lambda x: 50 * Cost.gaussian(sigma=1 / x, sensitivity=1).sampled(F(1, 50)),
    lambda x: 50 * Cost.gaussian(sigma=1, sensitivity=1).sampled(x / 10),
    lambda x: Cost.randomized_response(x).shuffled(1000),
    lambda x: Cost.randomized_response(2).shuffled(int(500 / x)),
    Cost.zcdp,
    Cost.exponential,
    lambda x: Cost.gdp(x) + Cost.pure(x),
    lambda x: Cost.approximate(x, F(1, 10**7)),
    lambda x: Cost.renyi({2: x, 9: 3 * x, 30: 5 * x}),
]


@pytest.mark.parametrize("family", TIGHT)
def test_readings_are_monotone_in_every_parameter(family):
    steps = [family(F(n, 10)) for n in range(2, 20, 3)]
    for reading in (
        lambda c: c.epsilon(delta=1e-5),
        lambda c: c.delta(epsilon=0.3),
        lambda c: c.advantage,
        lambda c: c.loss_exceeds(0.5),
    ):
        values = [reading(c) for c in steps]
        for small, large in pairwise(values):
            assert small <= large * (1 + 1e-6) + 1e-15, values


@pytest.mark.parametrize("family", TIGHT)
def test_readings_grow_with_the_number_of_queries_and_people(family):
    one = family(F(1, 2))
    values = [(k * one).epsilon(delta=1e-4) for k in (1, 2, 4, 8)]
    assert values == sorted(values)
    people = [one.group(m).bounds(delta=1e-3).upper for m in (1, 2, 3)]
    assert people == sorted(people)


@pytest.mark.parametrize("e", [0.0, 0.05, 0.2, 0.6])
def test_both_directions_of_a_sample_are_taken(e):
    q, sigma = 0.2, 1.5
    cost = Cost.gaussian(sigma=sigma, sensitivity=1).sampled(q)

    def mixed(x):
        return (1 - q) * norm.pdf(x, 0, sigma) + q * norm.pdf(x, 1, sigma)

    def hockey(f, g):
        edges = {"points": [-5, 0, 1, 3, 6], "limit": 500}
        return quad(lambda x: max(0.0, f(x) - math.exp(e) * g(x)), -25, 25, **edges)[0]

    plain = lambda x: norm.pdf(x, 0, sigma)  # noqa: E731
    truth = max(hockey(mixed, plain), hockey(plain, mixed))
    assert truth - 1e-8 <= cost.delta(epsilon=e) <= truth + 1e-6


def test_delta_down_to_1e_20_is_read():
    for cost in (
        1000 * Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01),
        100 * Cost.laplace(scale=2, sensitivity=1),
        100 * Cost.randomized_response(0.1),
        10 * Cost.discrete_gaussian(sigma=8, sensitivity=1),
        800 * Cost.gaussian(sigma=25, sensitivity=1),
    ):
        readings = [cost.bounds(delta=F(1, 10**n)) for n in (5, 10, 15, 20)]
        uppers = [r.upper for r in readings]
        assert uppers == sorted(uppers)
        assert all(r.lower > 0.99 * r.upper for r in readings)


@pytest.mark.parametrize(
    ("cost", "delta", "value"),
    [
        (800 * Cost.gaussian(sigma=25, sensitivity=1), 1e-7, 6.148799),
        (100 * Cost.gaussian(sigma=5, sensitivity=1), 1e-5, 9.997256),
        (Cost.gaussian(sigma=10, sensitivity=1), 1e-5, 0.340669),
        (Cost.zcdp(0.64), 1e-7, 6.513957),
        (Cost.zcdp(2), 1e-5, 10.72482),
        (100 * Cost.laplace(scale=10, sensitivity=1), 1e-5, 4.220347),
        (100 * Cost.laplace(scale=2, sensitivity=1), 1e-5, 28.501646),
        (1000 * Cost.laplace(scale=1, sensitivity=1), 1e-5, 474.302447),
        (1000 * Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01), 1e-5, 1.82824),
        (1000 * Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01), 1e-6, 2.12452),
        (10**5 * Cost.gaussian(sigma=0.8, sensitivity=1).sampled(0.001), 1e-5, 2.57496),
        (
            50 * Cost.laplace(scale=10, sensitivity=1)
            + 50 * Cost.gaussian(sigma=10, sensitivity=1)
            + 20 * Cost.randomized_response(0.2)
            + 30 * Cost.discrete_gaussian(sigma=8, sensitivity=1),
            1e-6,
            7.671279,
        ),
    ],
)
def test_check_values(cost, delta, value):
    assert cost.epsilon(delta=delta) == pytest.approx(value, rel=1e-5)


def test_a_single_laplace_answer_at_delta():
    for e, delta in [(1, 1e-3), (0.5, 0.01), (3, 1e-6)]:
        assert Cost.laplace(scale=1 / F(e), sensitivity=1).epsilon(delta=delta) == pytest.approx(
            e + 2 * math.log1p(-delta), rel=1e-9
        )


def test_pure_readings_are_exact():
    assert (3 * Cost.pure(0.1)).epsilon(delta=0) == 0.3
    assert (Cost.laplace(scale=3, sensitivity=1) + Cost.exponential(F(2, 3))).epsilon(delta=0) == 1.0
    assert Cost.pure(1).delta(epsilon=1) == 0.0
    assert (10 * Cost.pure(0.1)).delta(epsilon=1) == 0.0
    assert Cost.pure(1).bounds(delta=0) == (1.0, 1.0, "closed form")


def test_mu_and_rho_of_gaussian_noise():
    assert (Cost.gdp(3) + Cost.gaussian(sigma=1, sensitivity=4)).mu == 5.0
    assert (800 * Cost.gaussian(sigma=25, sensitivity=1)).rho == 0.64
    assert (2 * Cost.gdp(1)).mu == pytest.approx(math.sqrt(2), rel=1e-15)
    assert F((2 * Cost.gdp(1)).mu) ** 2 >= 2


def test_renyi_divergence_of_known_laws():
    assert Cost.gaussian(sigma=2, sensitivity=1).renyi_divergence(3) == pytest.approx(3 / 8, rel=1e-12)
    assert Cost.zcdp(0.1).renyi_divergence(5) == pytest.approx(0.5, rel=1e-12)
    curve = Cost.renyi({2: 0.1, 8: 0.4})
    assert curve.renyi_divergence(2) == pytest.approx(0.1, rel=1e-12)
    assert curve.renyi_divergence(4) <= 0.4 * (1 + 1e-12)
    assert curve.renyi_divergence(9) == math.inf
    assert Cost.pure(1).renyi_divergence(10**6) <= 1 + 1e-9


def test_a_statement_is_what_a_two_parameter_budget_can_hold():
    run = 1000 * Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01)
    stated = run.stated(delta=1e-6)
    assert run.epsilon(delta=1e-6) <= stated.spend.epsilon <= run.epsilon(delta=1e-6) * (1 + 1e-11)
    assert len(repr(stated)) < 60
    assert stated.spend.delta == F(1, 10**6)
    assert stated.fits(Budget(epsilon=2.2, delta=1e-6))
    assert run.fits(Budget(epsilon=2.2, delta=1e-6))
    assert not run.fits(Budget(epsilon=2.1, delta=1e-6))
    assert not run.fits(Budget(epsilon=2.2))


def test_spend_holds_numbers_of_bounded_size():
    spend = (7 * Cost.laplace(scale=F(1, 3), sensitivity=1).sampled(0.001)).spend
    assert isinstance(spend, Spend)
    assert all(x.denominator.bit_length() <= 1000 for x in (spend.epsilon, spend.delta, spend.rho))


def test_extreme_parameters_are_charged_safely():
    tiny = Cost.gaussian(sigma=F(10) ** 250, sensitivity=F(1, 10**50)).spend
    assert 0 < tiny.rho <= F(1, 10**60)
    huge = Cost.gaussian(sigma=F(1, 10**250), sensitivity=F(10) ** 50).spend
    assert huge.rho is None
    assert Cost.pure(F(10) ** 200).group(10**6).spend.epsilon == F(10) ** 206
    assert Cost.pure(F(1, 10**200)).spend.epsilon == F(1, 10**200)


def test_a_cost_shows_itself():
    cost = 3 * Cost.pure(0.1) + Cost.gaussian(sigma=2, sensitivity=1).sampled(0.01)
    page = cost._repr_html_()
    assert "Cost.gaussian(sigma=2, sensitivity=1).sampled(0.01)" in page
    assert "<script" not in page
    from rich.console import Console

    console = Console(width=120, record=True, file=StringIO())
    console.print(Cost.pure(0.1))
    assert "odds move by at most" in console.export_text()


# -- refusals

REFUSED = {
    "sigma 0": lambda: Cost.gaussian(sigma=0, sensitivity=1),
    "sigma nan": lambda: Cost.gaussian(sigma=float("nan"), sensitivity=1),
    "sigma inf": lambda: Cost.gaussian(sigma=float("inf"), sensitivity=1),
    "sigma true": lambda: Cost.gaussian(sigma=True, sensitivity=1),
    "sensitivity -1": lambda: Cost.laplace(scale=1, sensitivity=-1),
    "a half step": lambda: Cost.discrete_laplace(scale=1, sensitivity=0.5),
    "no dimension": lambda: Cost.discrete_gaussian(sigma=1, sensitivity=1, dimension=0),
    "less than a step": lambda: Cost.discrete_gaussian(sigma=1, sensitivity=0.5, dimension=3),
    "epsilon 0": lambda: Cost.pure(0),
    "epsilon text": lambda: Cost.pure("1"),
    "epsilon denormal": lambda: Cost.pure(5e-324),
    "delta 1": lambda: Cost.approximate(1, 1),
    "delta -1": lambda: Cost.approximate(1, -1),
    "rho -1": lambda: Cost.zcdp(-1),
    "mu 0": lambda: Cost.gdp(0),
    "no orders": lambda: Cost.renyi({}),
    "order 1": lambda: Cost.renyi({1: 0.1}),
    "a list": lambda: Cost.renyi([(2, 0.1)]),
    "q 0": lambda: Cost.pure(1).sampled(0),
    "q 1.1": lambda: Cost.pure(1).sampled(1.1),
    "q nan": lambda: Cost.pure(1).sampled(float("nan")),
    "n 0": lambda: Cost.pure(1).shuffled(0),
    "m 0": lambda: Cost.pure(1).group(0),
    "m 1.5": lambda: Cost.pure(1).group(1.5),
    "k -1": lambda: -1 * Cost.pure(1),
    "k 0.5": lambda: 0.5 * Cost.pure(1),
    "k true": lambda: True * Cost.pure(1),
    "no branches": Cost.parallel,
    "a number as branch": lambda: Cost.parallel(Cost.pure(1), 2),
    "delta 1 asked": lambda: Cost.pure(1).epsilon(delta=1),
    "delta -1 asked": lambda: Cost.pure(1).epsilon(delta=-1e-9),
    "epsilon -1 asked": lambda: Cost.pure(1).delta(epsilon=-1),
    "order 1 asked": lambda: Cost.pure(1).renyi_divergence(1),
    "fpr 2": lambda: Cost.pure(1).tradeoff(2),
    "bounds of nothing": lambda: Cost.pure(1).bounds(),
    "bounds of both": lambda: Cost.pure(1).bounds(delta=0.1, epsilon=1),
    "adjacency": lambda: Cost.pure(1, adjacency="swap"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_parameters_are_refused_by_code(case):
    with pytest.raises(TacitError) as refusal:
        REFUSED[case]()
    assert refusal.value.code == "bad-parameter"


NO_GUARANTEE = {
    "epsilon at 0": lambda: Cost.gaussian(sigma=1, sensitivity=1).epsilon(delta=0),
    "odds": lambda: Cost.gaussian(sigma=1, sensitivity=1).odds,
    "bits": lambda: Cost.zcdp(1).bits,
    "odds with delta": lambda: Cost.approximate(1, 1e-6).odds,
    "mu of laplace": lambda: Cost.laplace(scale=1, sensitivity=1).mu,
    "mu of lattice": lambda: Cost.discrete_gaussian(sigma=1, sensitivity=1).mu,
    "rho of a curve": lambda: Cost.renyi({2: 0.1}).rho,
    "rho with delta": lambda: Cost.approximate(1, 1e-6).rho,
    "epsilon below the leak": lambda: Cost.approximate(1, 1e-3).epsilon(delta=1e-6),
    "sampled rho": lambda: Cost.zcdp(1).sampled(0.1),
    "sampled curve": lambda: Cost.renyi({2: 0.1}).sampled(0.1),
    "sampled sum with rho": lambda: (Cost.pure(1) + Cost.zcdp(1)).sampled(0.1),
    "sampled group of a curve": lambda: Cost.renyi({2: 0.1}).group(2).sampled(0.1),
    "sampled under replace": lambda: Cost.pure(1, adjacency="replace").sampled(0.1),
    "branches under replace": lambda: Cost.parallel(
        Cost.pure(1, adjacency="replace"), Cost.pure(2, adjacency="replace")
    ),
    "an idle branch under replace": lambda: Cost.parallel(
        Cost.pure(1, adjacency="replace"), Cost.zero("replace")
    ),
    "shuffled sample": lambda: Cost.pure(1).sampled(0.1).shuffled(1),
    "shuffled sample of coins": lambda: Cost.randomized_response(1).sampled(0.1).shuffled(1000),
    "shuffled sum with a sample": lambda: (Cost.pure(1) + Cost.pure(1).sampled(0.1)).shuffled(100),
    "shuffled repeated sample": lambda: (3 * Cost.pure(1).sampled(0.1)).shuffled(100),
    "shuffled group of a sample": lambda: Cost.pure(1).sampled(0.1).group(2).group(3).shuffled(100),
    "shuffled branches": lambda: Cost.parallel(Cost.pure(1), Cost.exponential(1)).shuffled(100),
    "shuffled equal branches": lambda: Cost.parallel(Cost.pure(1), Cost.pure(1)).shuffled(100),
    "shuffled branch beside an idle one": lambda: Cost.parallel(Cost.pure(1), Cost.zero()).shuffled(100),
    "shuffled stored branches": lambda: Cost.from_json(
        Cost.parallel(Cost.pure(1), Cost.pure(1)).to_json()
    ).shuffled(100),
    "shuffled stated sample": lambda: Cost.pure(1).sampled(0.1).stated(delta=0).shuffled(100),
    "shuffled stated group of samples": lambda: (
        (2 * Cost.pure(1).sampled(0.1).group(2)).stated(delta=0).group(2).shuffled(100)
    ),
    "shuffled stated branches": lambda: (
        Cost.parallel(Cost.pure(1), Cost.pure(1)).stated(delta=0).shuffled(100)
    ),
    "shuffled group of branches": lambda: Cost.parallel(Cost.pure(1), Cost.pure(2)).group(2).shuffled(100),
    "shuffled branches of samples": lambda: Cost.parallel(
        Cost.pure(1).sampled(0.1), Cost.laplace(scale=1, sensitivity=1)
    ).shuffled(100),
    "shuffled gaussian": lambda: Cost.gaussian(sigma=1, sensitivity=1).shuffled(100),
    "shuffled approximate": lambda: Cost.approximate(1, 1e-6).shuffled(100),
}


@pytest.mark.parametrize("case", NO_GUARANTEE)
def test_what_cannot_be_promised_is_refused_with_a_way_out(case):
    with pytest.raises(TacitError) as refusal:
        NO_GUARANTEE[case]()
    assert refusal.value.code == "no-guarantee"
    assert str(refusal.value.fix)


def test_adjacencies_do_not_mix():
    one, other = Cost.pure(1), Cost.pure(1, adjacency="replace")
    assert one != other
    for mix in (
        lambda: one + other,
        lambda: Cost.parallel(one, other),
        lambda: one + Cost.pure(1).shuffled(10),
    ):
        with pytest.raises(TacitError) as refusal:
            mix()
        assert refusal.value.code == "adjacency-mixed"


def test_numpy_counts_multiply_a_cost():
    assert np.int64(3) * Cost.pure(1) == Cost.pure(1) * np.int32(3) == 3 * Cost.pure(1)


def test_the_empty_cost_reveals_nothing():
    nothing = Cost.zero()
    assert nothing.epsilon(delta=0) == nothing.epsilon(delta=1e-6) == nothing.delta(epsilon=0) == 0.0
    assert nothing.rho == nothing.mu == nothing.kl == nothing.bits == nothing.advantage == 0.0
    assert nothing.loss_exceeds(0.1) == 0.0
    assert nothing.odds == 1.0
    assert nothing.tradeoff(0.25) == pytest.approx(0.75, abs=1e-12)
    assert nothing.renyi_divergence(2) == 0.0
    assert nothing.spend == Spend(0, 0, 0)
    assert not nothing.parts


def test_costs_add_to_costs_only():
    with pytest.raises(TypeError):
        Cost.pure(1) + 1
    with pytest.raises(TypeError):
        1 + Cost.pure(1)
    with pytest.raises(TypeError):
        Cost.pure(1) * Cost.pure(1)


# -- stored costs


def test_the_corpus_of_stored_costs_stays_readable():
    for stored in json.loads(CORPUS.read_text()):
        cost = Cost.from_json(stored["cost"])
        assert repr(cost) == stored["repr"]
        assert cost.to_json() == stored["cost"]
        for delta, epsilon in stored["epsilon"].items():
            assert cost.bounds(delta=F(delta)).lower <= epsilon * (1 + 1e-9)
            assert cost.epsilon(delta=F(delta)) <= epsilon * (1 + 1e-6)  # never worse than when it was stored


def test_stored_sums_keep_their_order():
    """Ledgers compare and hash stored costs, so the order of parts is the same in every release."""
    one = {"sensitivity": 1}
    laws = {
        "approximate": Cost.approximate(1, 1e-6),
        "bounded-range": Cost.exponential(1),
        "discrete-gaussian": Cost.discrete_gaussian(sigma=1, **one),
        "discrete-laplace": Cost.discrete_laplace(scale=1, **one),
        "gdp": Cost.gdp(1),
        "gaussian": Cost.gaussian(sigma=1, **one),
        "group": Cost.renyi({2: 0.1}).group(2),
        "laplace": Cost.laplace(scale=1, **one),
        "parallel": Cost.parallel(Cost.pure(1), Cost.gdp(1)),
        "pure": Cost.pure(1),
        "randomized-response": Cost.randomized_response(1),
        "renyi": Cost.renyi({2: 0.1}),
        "sampled": Cost.pure(1).sampled(0.1),
        "zcdp": Cost.zcdp(1),
    }
    stored = sum(reversed(laws.values()), Cost.zero()).to_json()
    assert [part["law"] for part in stored["parts"]] == list(laws)


PURE_JSON = {"version": 1, "adjacency": "add/remove", "parts": [{"law": "pure", "epsilon": "1", "times": 1}]}


@pytest.mark.parametrize(
    "change",
    [
        {"adjacency": "swap"},
        {"adjacency": None},
        {"parts": None},
        {"parts": {}},
        {"parts": [1]},
        {"parts": [{"law": "pure", "epsilon": "1"}]},
        {"parts": [{"law": "pure", "epsilon": "1", "times": 0}]},
        {"parts": [{"law": "pure", "epsilon": "1", "times": -1}]},
        {"parts": [{"law": "pure", "epsilon": "1", "times": 1.5}]},
        {"parts": [{"law": "pure", "epsilon": "1", "times": True}]},
        {"parts": [{"law": "pure", "epsilon": "-1", "times": 1}]},
        {"parts": [{"law": "pure", "epsilon": 1, "times": 1}]},
        {"parts": [{"law": "pure", "epsilon": "0", "times": 1}]},
        {"parts": [{"law": "nosuch", "epsilon": "1", "times": 1}]},
        {"parts": [{"law": None, "epsilon": "1", "times": 1}]},
        {"parts": [{"law": ["pure"], "epsilon": "1", "times": 1}]},
        {"parts": [{"law": "pure", "epsilon": "1", "more": 1, "times": 1}]},
        {"parts": [{"law": "renyi", "curve": [["2"]], "times": 1}]},
        {"parts": [{"law": "renyi", "curve": "x", "times": 1}]},
        {"parts": [{"law": "parallel", "branches": [], "times": 1}]},
        {"parts": [{"law": "shuffled", "n": "10", "epsilon0": "1", "times": 1}]},
        {"more": 1},
    ],
    ids=str,
)
def test_damaged_stored_costs_are_refused(change):
    with pytest.raises(TacitError) as refusal:
        Cost.from_json({**PURE_JSON, **change})
    assert refusal.value.code == "bad-parameter"


def test_stored_costs_that_promise_nothing_are_refused_like_those_made_by_hand():
    sampled = {"law": "sampled", "q": "1/10", "parts": [{"law": "zcdp", "rho": "1", "times": 1}], "times": 1}
    with pytest.raises(TacitError) as refusal:
        Cost.from_json({**PURE_JSON, "parts": [sampled]})
    assert refusal.value.code == "no-guarantee"


def test_a_deeply_nested_stored_cost_is_refused_and_does_not_exhaust_the_stack():
    part = PURE_JSON["parts"][0]
    for _ in range(5000):
        part = {"law": "group", "m": 2, "parts": [part], "times": 1}
    with pytest.raises(TacitError):
        Cost.from_json({**PURE_JSON, "parts": [part]})


@pytest.mark.long
def test_losses_whose_chances_lie_below_the_smallest_float_still_have_a_cost():
    """Two costs that hypothesis found: a pair of which no mass is left, and one that reaches no delta."""
    noise = Cost.parallel(Cost.laplace(scale=2, sensitivity=3.8), Cost.pure(0.15))
    inner = Cost.gaussian(sigma=0.05, sensitivity=2.3) + noise + Cost.randomized_response(0.05)
    large = Cost.gaussian(sigma=0.05, sensitivity=Fraction(53, 19)) + Cost.pure(0.05) + inner.sampled(0.1)
    assert 0.99 < float(large.delta(epsilon=0)) <= 1
    choice = Cost.parallel(
        14 * Cost.exponential(Fraction(69, 19)), Cost.laplace(scale=3.7, sensitivity=Fraction(69, 19))
    )
    assert 0 < float((13 * choice).epsilon(delta=1e-3)) <= 13 * 14 * 69 / 19


@pytest.mark.parametrize(
    "delta",
    [np.ones_like, lambda e: np.where(e < 0, -np.expm1(e), np.where(e < 300, 5e-324, 0.0))],
    ids=["all of it infinite", "below the smallest float"],
)
def test_a_curve_without_masses_that_floats_can_hold_is_left_to_another_method(delta):
    with pytest.raises(NotConverged):
        connect_dots(Curve(delta, delta, -400.0, 400.0), np.linspace(-400.0, 400.0, 401))
