"""The filter over Renyi orders (version 2): how much fits, what an adversary reaches, and what is stored."""

import json
import math
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting import Budget, Cost, Filter, Spend, queries_within
from tacit.accounting._mixture import mixture
from tacit.accounting._remaining import count_of
from tacit.errors import TacitError

F = Fraction
STEP = Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01)


def second(budget):
    """Return a filter of version 2; the filters of today are in `test_filter_union`."""
    return Filter.start(budget, version=2)


def stored_by_version_1(budget, epsilon="0", delta="0", rho="0"):
    return {"version": 1, "budget": budget.to_json(), "epsilon": epsilon, "delta": delta, "rho": rho}


# -- how much fits: the table of docs/explanation/algebra.md

TABLE = {
    "Laplace noise, scale 100": Cost.laplace(scale=100, sensitivity=1),
    "Gaussian noise, sigma 100": Cost.gaussian(sigma=100, sensitivity=1),
    "discrete Laplace noise, scale 20": Cost.discrete_laplace(scale=20, sensitivity=1),
    "discrete Gaussian noise, sigma 20": Cost.discrete_gaussian(sigma=20, sensitivity=1),
    "exponential mechanism, epsilon 0.1": Cost.exponential(0.1),
    "sampled Gaussian, q 0.01, sigma 1": STEP,
    "sampled Gaussian, q 0.001, sigma 0.8": Cost.gaussian(sigma=0.8, sensitivity=1).sampled(0.001),
    "sampled Laplace, q 0.01, scale 1": Cost.laplace(scale=1, sensitivity=1).sampled(0.01),
    "10,000 shuffled reports, epsilon 1": Cost.randomized_response(1).shuffled(10_000),
    "any mechanism, epsilon 0.5": Cost.pure(0.5),
}


def rows():
    """Read the table: the question, epsilon, how many fit one by one, how many if declared, the part."""
    page = (Path(__file__).parents[3] / "docs/explanation/algebra.md").read_text()
    found = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.endswith("% |")
    ]
    return [(name, *(int(cell.strip(" %").replace(",", "")) for cell in cells)) for name, *cells in found]


def test_the_table_in_the_documentation_lists_every_kind():
    assert {name for name, *_ in rows()} == set(TABLE)


@pytest.mark.parametrize(("name", "epsilon", "fits", "optimum", "part"), rows())
def test_one_by_one_pays_the_part_that_the_documentation_shows(name, epsilon, fits, optimum, part):
    budget, cost = Budget(epsilon, 1e-6), TABLE[name]
    many = Filter.start(budget).how_many(cost)
    assert many == fits
    assert part == round(100 * many / optimum)
    before = second(budget).how_many(cost)
    assert round(100 * before / optimum) >= 63
    assert before >= many > 0.91 * before  # the price of the union; most of it for samples
    assert (many * cost).fits(budget)


@pytest.mark.parametrize(("name", "epsilon", "fits", "optimum", "part"), rows()[:3])
def test_the_figures_for_declared_sums_are_the_optimum(name, epsilon, fits, optimum, part):
    assert queries_within(Budget(epsilon, 1e-6), TABLE[name]) == optimum


@pytest.mark.long
@pytest.mark.parametrize(("name", "epsilon", "fits", "optimum", "part"), rows()[3:])
def test_the_other_figures_for_declared_sums_are_the_optimum(name, epsilon, fits, optimum, part):
    assert queries_within(Budget(epsilon, 1e-6), TABLE[name]) >= optimum * 0.999


@pytest.mark.parametrize(
    ("cost", "epsilon", "least"),
    [
        (STEP, 3, 1_290),
        (STEP, 8, 10_600),
        (Cost.gaussian(sigma=0.8, sensitivity=1).sampled(0.001), 3, 66_000),
        (Cost.laplace(scale=100, sensitivity=1), 1, 450),
        (Cost.gaussian(sigma=100, sensitivity=1), 1, 450),
        (Cost.gaussian(sigma=100, sensitivity=1), 8, 19_300),
        (Cost.discrete_gaussian(sigma=100, sensitivity=1), 1, 450),
        (Cost.discrete_gaussian(sigma=1, sensitivity=1).sampled(0.01), 3, 1_290),
    ],
)
def test_the_filter_reaches_its_targets_with_half_of_delta_left_for_answers(cost, epsilon, least):
    filter_ = second(Budget(epsilon, 1e-6))
    assert filter_.how_many(cost) >= least
    stated = filter_.after(Spend(0, F(1, 2 * 10**6)))  # all of the delta that answers may spend
    assert stated.how_many(cost) == filter_.how_many(cost)


def test_one_question_in_rho_leaves_most_of_epsilon():
    filter_ = second(Budget(epsilon=3, delta=1e-6))
    left = filter_.after(filter_.spend_of(Cost.zcdp(0.01))).remaining
    assert left.epsilon > 2.2  # 0.58 by the sum of rho


def test_a_thousand_sampled_steps_fit_where_their_rho_does_not():
    filter_ = second(Budget(epsilon=8, delta=1e-5))
    training = 1000 * STEP
    assert training.spend.rho == 500
    after = filter_.after(filter_.spend_of(training))
    assert after.how_many(STEP) > 10_000
    assert after.admits(after.spend_of(Cost.pure(1)))
    with pytest.raises(TacitError):
        Filter.from_json(stored_by_version_1(Budget(8, 1e-5))).after(training.spend)


def test_queries_training_and_shuffled_reports_share_one_budget():
    filter_ = second(Budget(epsilon=3, delta=1e-6))
    for cost in (
        Cost.discrete_laplace(scale=10, sensitivity=1),
        300 * STEP,
        Cost.randomized_response(1).shuffled(10_000),
        Cost.approximate(0.2, 1e-7),
        Cost.renyi({6: 0.01, 10: 0.02}),
        Cost.exponential(0.3),
    ):
        filter_ = filter_.after(filter_.spend_of(cost))
    assert filter_.epsilon is None
    assert filter_.remaining.epsilon > 0.7


# -- how many


@pytest.mark.parametrize("budget", [Budget(1), Budget(1, 1e-6), Budget(rho=0.2), Budget(rho=0.2, delta=1e-6)])
@pytest.mark.parametrize(
    "cost",
    [
        Cost.pure(0.05),
        Cost.zcdp(0.003),
        Cost.approximate(0.01, 1e-7),
        Cost.pure(F(1, 7**90)) + Cost.pure(0.1),
    ],
)
def test_how_many_counts_charges_one_by_one(budget, cost):
    filter_ = second(budget)
    filter_ = filter_.after(Spend(F(1, 30))) if filter_.admits(Spend(F(1, 30))) else filter_
    promised, many, spend = filter_.how_many(cost), 0, filter_.spend_of(cost)
    while filter_.admits(spend):
        filter_, many = filter_.after(spend), many + 1
    assert promised == many


def test_how_many_of_a_cost_that_reveals_nothing_has_an_end():
    assert second(Budget(1, 1e-6)).how_many(0 * Cost.pure(1)) == 2**40


def test_how_many_never_promises_more_than_rounded_sums_hold():
    awkward, first = F(1, 100) + F(1, 7**300), F(1, 5**200)
    filter_ = second(Budget(10 * awkward + first)).after(Spend(epsilon=first))
    many = count_of(filter_, Spend(epsilon=awkward))
    for _ in range(many):
        filter_ = filter_.after(Spend(epsilon=awkward))
    assert many == 9  # the tenth would fit without the rounding of long sums
    assert not filter_.admits(Spend(epsilon=awkward))


# -- the interface


def test_only_budgets_with_epsilon_and_delta_have_orders():
    assert second(Budget(1)).orders == ()
    assert second(Budget(rho=1)).orders == ()
    assert second(Budget(rho=1, delta=1e-6)).orders == ()
    assert len(second(Budget(1, 1e-6)).orders) == 4


@pytest.mark.parametrize(
    ("epsilon", "delta", "orders"),
    [
        (F(1), F(1, 10**6), "15 20 24 101"),
        (F(3), F(1, 10**6), "6 8 10 39"),
        (F(8), F(1, 10**6), "3 4 5 17"),
        (F(8), F(1, 10**5), "3 7/2 4 29/2"),
        (F(1, 10), F(1, 10**9), "199 257 318 1371"),
        (F(20), F(1, 10**6), "2 5/2 3 17/2"),
    ],
)
def test_the_orders_of_a_budget_never_change(epsilon, delta, orders):
    assert " ".join(str(order) for order in mixture(epsilon, delta).orders) == orders


def test_the_caps_of_a_budget_never_change():
    caps = {
        tuple(place for place, _ in reading.shares): float(reading.cap)
        for reading in mixture(F(3), F(1, 10**6)).readings
    }
    assert caps == {
        (0,): 0.10708989554816613,
        (1,): 1.1859329638859055,
        (2,): 1.6905043614786546,
        (3,): 2.6558709622647667,
        (0, 1, 2): 1.6473170759329614,
    }


def test_a_spend_without_a_curve_is_read_by_its_rho_and_epsilon():
    filter_ = second(Budget(3, 1e-6))
    plain, full = Cost.pure(0.5).spend, filter_.spend_of(Cost.pure(0.5))
    assert filter_.added(plain).curve == filter_.added(full).curve
    gaussian = Cost.gaussian(sigma=10, sensitivity=1)
    assert filter_.added(gaussian.spend).curve == filter_.added(filter_.spend_of(gaussian)).curve
    some = Spend(rho=1, curve=[(6, F(1, 100))])
    assert dict(filter_.added(some).curve) == {6: F(1, 100), 8: 8, 10: 10, 39: 39}
    unknown = Spend(rho=1, curve=[(6, None), (8, F(1, 10)), (10, F(1, 10)), (39, None)])
    assert dict(filter_.added(unknown).curve) == {6: 6, 8: F(1, 10), 10: F(1, 10), 39: 39}
    nothing = filter_.added(Spend(curve=[(8, F(1, 10))]))
    assert [value for _, value in nothing.curve] == [None, F(1, 10), None, None]
    assert nothing.within
    assert not filter_.added(Spend()).within


def test_adding_never_asks_and_within_answers():
    filter_ = second(Budget(1, 1e-6)).added(Spend(epsilon=5))
    assert not filter_.within
    assert not filter_.added(Spend(0)).within
    assert second(Budget(1, 1e-6)).within


@pytest.mark.parametrize(
    "curve", [[(1, 0.1)], [(0.5, 0.1)], [(3, 0.1), (2, 0.1)], [(2, 0.1), (2, 0.1)], [(2, -1)], [(2,)]]
)
def test_a_spend_refuses_orders_that_are_not_orders(curve):
    with pytest.raises(TacitError) as refusal:
        Spend(rho=1, curve=curve)
    assert refusal.value.code == "bad-parameter"


@pytest.mark.parametrize("version", [0, 4, "1", None])
def test_a_filter_starts_by_a_rule_that_exists(version):
    with pytest.raises(TacitError) as refusal:
        Filter.start(Budget(1, 1e-6), version=version)
    assert refusal.value.code == "bad-parameter"


def test_a_refused_training_run_is_told_to_take_fewer_steps():
    filter_ = second(Budget(3, 1e-6))
    with pytest.raises(TacitError, match="fewer steps") as refusal:
        filter_.after(filter_.spend_of(5000 * STEP))
    assert refusal.value.code == "budget-exceeded"


# -- stored


def test_filters_with_orders_are_stored_as_version_2_and_resumed_exactly():
    filter_ = second(Budget(3, 1e-6))
    for cost in (STEP, Cost.pure(F(1, 3)), Cost.renyi({8: 0.1})):
        stored = json.loads(json.dumps(filter_.to_json()))
        assert stored["version"] == 2
        assert Filter.from_json(stored) == filter_
        filter_ = filter_.after(filter_.spend_of(cost))
    assert second(Budget(1)).to_json()["version"] == 1
    spend = second(Budget(3, 1e-6)).spend_of(STEP)
    assert Spend.from_json(json.loads(json.dumps(spend.to_json()))) == spend
    assert eval(repr(spend), {"Spend": Spend, "Fraction": Fraction}) == spend


def test_a_filter_stored_by_version_1_keeps_its_rule_for_ever():
    stored = stored_by_version_1(Budget(3, 1e-6), epsilon="1/2", rho="1/100")
    filter_ = Filter.from_json(stored)
    assert filter_ == Filter.start(Budget(3, 1e-6), version=1).added(Spend(F(1, 2), 0, F(1, 100)))
    assert filter_.orders == ()
    assert filter_.to_json() == stored
    assert filter_.spend_of(STEP) == STEP.spend
    assert filter_.how_many(STEP) == 0
    # 0.1766 is the cap on the sum of rho that version 1 reads at delta / 2
    assert filter_.admits(Spend(rho=F(1656, 10000)))
    assert not filter_.admits(Spend(rho=F(168, 1000)))
    assert not filter_.after(Spend(0, F(4, 10**7))).admits(Spend(rho=F(1656, 10000)))


@pytest.mark.parametrize(
    "damage",
    [
        {"version": 1},
        {"version": 3},
        {"curve": []},
        {"curve": [["6", "0"], ["8", "0"], ["10", "0"]]},
        {"curve": [["6", "0"], ["8", "0"], ["8", "0"], ["39", "0"]]},
        {"curve": [["1", "0"], ["8", "0"], ["10", "0"], ["39", "0"]]},
        {"budget": Budget(1).to_json()},
        {"budget": Budget(rho=1).to_json()},
        {"curve": [["6", "-1"], ["8", "0"], ["10", "0"], ["39", "0"]]},
        {"curve": [["6"], ["8", "0"], ["10", "0"], ["39", "0"]]},
        {"curve": "6"},
    ],
)
def test_a_damaged_filter_is_refused(damage):
    with pytest.raises(TacitError) as refusal:
        Filter.from_json({**second(Budget(3, 1e-6)).to_json(), **damage})
    assert refusal.value.code in {"bad-parameter", "unknown-version"}


def test_an_account_keeps_its_orders_when_its_budget_grows():
    small, large = Budget(1, 1e-6), Budget(3, 1e-6)
    grown = replace(second(small).after(Spend(rho=F(1, 100))), budget=large)
    assert grown.orders == second(small).orders
    assert Filter.from_json(grown.to_json()) == grown
    # readings at these orders, for the larger epsilon: more than before, less than if it were opened now
    cost = Cost.gaussian(sigma=100, sensitivity=1)
    many = [one.how_many(cost) for one in (replace(grown, budget=small), grown, second(large))]
    assert many == sorted(many)
    assert many[0] < many[1] < many[2]
    assert (many[1] * cost + Cost.zcdp(F(1, 100))).fits(large)


# -- adversaries: the largest delta that any adaptive strategy reaches, by dynamic programming


class Attack:
    """All strategies that choose among a few questions and see every answer.

    A question is a pair of laws with two outcomes (probability under P, and the loss, of each), or a leak: a
    delta with which everything is shown. The state is how often each question was asked and how often it had
    its first outcome, so the loss is known exactly. The value is the largest P(S) - exp(epsilon) Q(S).
    """

    def __init__(self, filter_, epsilon):
        self.filter, self.epsilon, self.questions = filter_, epsilon, []

    def response(self, size):
        p = 1 / (1 + math.exp(-size))
        self._add(Cost.randomized_response(F(repr(size))), (p, size), (1 - p, -size))

    def sampled_response(self, size, rate, *, add):
        p = 1 / (1 + math.exp(-size))
        mixture_ = [(1 - rate) * (1 - p) + rate * p, (1 - rate) * p + rate * (1 - p)]
        plain = [1 - p, p]
        one, two = (plain, mixture_) if add else (mixture_, plain)
        outcomes = [(one[i], math.log(one[i] / two[i])) for i in (0, 1)]
        self._add(Cost.randomized_response(F(repr(size))).sampled(F(repr(rate))), *outcomes)

    def leak(self, delta):
        self.questions.append((self.filter.spend_of(Cost.approximate(0, F(repr(delta)))), None, delta))

    def _add(self, cost, first, second):
        self.questions.append((self.filter.spend_of(cost), first, second))

    def most(self):
        """Return how often each question fits alone."""
        return [count_of(self.filter, spend) for spend, *_ in self.questions]

    def value(self):
        """Return the largest delta, over all strategies."""
        known = {}
        for asked in self._admitted(self.filter, (), self.most()):
            losses = self._losses(asked)
            known[asked] = np.maximum(0.0, -np.expm1(np.minimum(0.0, self.epsilon - losses)))
        for asked in sorted(known, key=sum, reverse=True):
            best, axis = known[asked], 0
            for i, (_, first, second) in enumerate(self.questions):
                later = known.get((*asked[:i], asked[i] + 1, *asked[i + 1 :]))
                if first is None:
                    if later is not None:
                        best = np.maximum(best, second + (1 - second) * later)
                    continue
                if later is not None:
                    up, down = (np.take(later, range(s, s + asked[i] + 1), axis=axis) for s in (1, 0))
                    best = np.maximum(best, first[0] * up + second[0] * down)
                axis += 1
            known[asked] = best
        return float(known[(0,) * len(self.questions)].max())

    def _admitted(self, state, asked, most):
        """Yield how often the questions may have been asked, whatever the order: sums do not know it."""
        if len(asked) == len(self.questions):
            yield asked
            return
        for times in range(most[len(asked)] + 1):
            if not state.within:
                return
            yield from self._admitted(state, (*asked, times), most)
            state = state.added(self.questions[len(asked)][0])

    def _losses(self, asked):
        """Return the losses, one axis for each question that is not a leak: the number of first outcomes."""
        axes = [
            (n, first, second) for n, (_, first, second) in zip(asked, self.questions, strict=True) if first
        ]
        total = np.zeros([n + 1 for n, *_ in axes])
        for place, (n, first, second) in enumerate(axes):
            shape = [1] * len(axes)
            shape[place] = n + 1
            ups = np.arange(n + 1)
            total = total + (ups * first[1] + (n - ups) * second[1]).reshape(shape)
        return total


def attack(epsilon, delta, *, scale=1):
    """Return an attack on a budget; a scale above 1 opens too large a budget, which it must break."""
    return Attack(second(Budget(F(repr(epsilon)) * F(repr(scale)), delta)), epsilon)


def small_attacks(scale=1):
    one = attack(1.0, 0.02, scale=scale)
    one.response(0.1)
    one.leak(0.005)
    two = attack(1.0, 0.02, scale=scale)
    two.response(0.05)
    two.response(0.3)
    two.leak(0.005)
    three = attack(3.0, 0.02, scale=scale)
    three.response(0.3)
    three.response(1.0)
    three.leak(0.01)
    four = attack(3.0, 0.02, scale=scale)
    four.sampled_response(2.0, 0.2, add=False)
    four.response(0.4)
    five = attack(3.0, 0.02, scale=scale)
    five.sampled_response(2.0, 0.2, add=True)
    five.sampled_response(2.0, 0.2, add=False)
    return [one, two, three, four, five]


@pytest.mark.parametrize("which", range(5))
def test_no_adaptive_strategy_reaches_more_than_delta(which):
    tried = small_attacks()[which]
    assert max(tried.most()) >= 5
    assert tried.value() <= 0.02


def test_the_best_strategies_come_close():
    assert small_attacks()[1].value() > 0.7 * 0.02


@pytest.mark.parametrize("which", range(5))
def test_the_attack_breaks_a_filter_whose_caps_are_too_large(which):
    assert small_attacks(scale=1.5)[which].value() > 0.02


@pytest.mark.long
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.5, 0.01), (1.0, 0.001), (3.0, 0.001), (3.0, 0.05), (0.1, 0.1)]
)
def test_no_adaptive_strategy_reaches_more_than_delta_at_larger_scale(epsilon, delta):
    for sizes, rates in (
        ((epsilon / 10, epsilon / 2), ()),
        ((epsilon / 4,), (0.1,)),
        ((epsilon / 20,), ()),
    ):
        tried = attack(epsilon, F(repr(delta)))
        for size in sizes:
            tried.response(size)
        for rate in rates:
            tried.sampled_response(1.5, rate, add=False)
            tried.sampled_response(1.5, rate, add=True)
        tried.leak(delta / 4)
        assert tried.value() <= delta


# -- random mixes, read by the accountant of declared sums


def random_cost(rng):
    kind = rng.randrange(9)
    match kind:
        case 0:
            return Cost.gaussian(sigma=rng.choice([2, 5, 20]), sensitivity=1)
        case 1:
            return Cost.laplace(scale=rng.choice([2, 10, 40]), sensitivity=1)
        case 2:
            return Cost.randomized_response(rng.choice([F(1, 20), F(1, 4), 1]))
        case 3:
            q, sigma = rng.choice([(F(1, 100), 1), (F(1, 10), 2), (F(1, 1000), F(4, 5))])
            return Cost.gaussian(sigma=sigma, sensitivity=1).sampled(q)
        case 4:
            return Cost.approximate(rng.choice([0, F(1, 10)]), F(1, 10**8))
        case 5:
            return Cost.zcdp(rng.choice([F(1, 100), F(1, 10)]))
        case 6:
            return Cost.gdp(rng.choice([F(1, 10), F(1, 2)]))
        case 7:
            return Cost.discrete_gaussian(sigma=rng.choice([3, 10]), sensitivity=1)
        case _:
            return Cost.discrete_laplace(scale=rng.choice([4, 20]), sensitivity=1)


def admitted_mix(rng):
    """Charge random costs, many times each, until little is left; return the budget and the sum of costs."""
    budget = Budget(rng.choice([F(1, 2), 1, 3, 8]), rng.choice([F(1, 10**4), F(1, 10**6), F(1, 10**9)]))
    filter_, total = second(budget), 0
    kinds = [random_cost(rng) for _ in range(rng.randint(1, 3))]
    for place, cost in enumerate(kinds):
        spend = filter_.spend_of(cost)
        many = count_of(filter_, spend)
        many = many if place == len(kinds) - 1 else rng.randint(0, many)
        if many:
            whole = filter_.spend_of(many * cost)
            filter_, total = filter_.after(whole), total + many * cost
    return budget, total


def check_mixes(seed, times):
    rng = random.Random(seed)
    largest = 0.0
    for _ in range(times):
        budget, total = admitted_mix(rng)
        if isinstance(total, Cost) and total.parts:
            found = total.delta(epsilon=budget.epsilon)
            assert found <= float(budget.delta), (budget, total)
            largest = max(largest, found / float(budget.delta))
    return largest


def test_no_admitted_mix_reads_above_its_budget():
    assert check_mixes(1, 150) > 0.2  # mixes come close enough for the test to mean something


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_no_admitted_mix_of_a_hundred_thousand_reads_above_its_budget(seed):
    check_mixes(seed, 10_000)


@given(
    epsilon=st.fractions(min_value=F(1, 50), max_value=30, max_denominator=100),
    exponent=st.integers(min_value=1, max_value=30),
)
def test_every_cap_is_certified_by_the_mixture(epsilon, exponent):
    """At the cap of a reading, the mixture covers 1 - exp(-x) for every x (sums that just use up the cap)."""
    delta = F(1, 10**exponent)
    found = mixture(epsilon, delta)
    weights = dict(enumerate([0.07, 0.30, 0.59, 0.04]))
    steps = [float(order) - 1 for order in found.orders]
    assert sorted(found.orders) == list(found.orders)
    assert found.readings
    rng = random.Random(exponent)
    x = np.concatenate([[0.0], np.geomspace(1e-6, 300, 4000)])
    for reading in found.readings:
        assert sum(share for _, share in reading.shares) == 1
        # any split of the cap among the orders of the reading must pass
        split = [rng.random() for _ in reading.shares]
        whole = sum(part * float(share) for part, (_, share) in zip(split, reading.shares, strict=True))
        cover = np.zeros_like(x)
        for part, (place, _) in zip(split, reading.shares, strict=True):
            total = float(reading.cap) * part / whole
            power = math.log(delta / 2 * F(repr(weights[place]))) + steps[place] * (
                float(epsilon) + x - total
            )
            cover = cover + np.exp(np.minimum(power, 5.0))
        assert (cover >= -np.expm1(-x) * (1 - 1e-9) - 1e-15).all()


@pytest.mark.parametrize("epsilon", [10, 30, 40, 100, 700])
def test_a_large_budget_is_not_reported_as_spent(epsilon):
    filter_ = second(Budget(epsilon=epsilon, delta=1e-5)).after(Spend(rho=Fraction(28, 1000)))
    left = filter_.remaining.epsilon
    assert 0.85 * epsilon < left < epsilon
    assert filter_.admits(Spend(left))
    assert "nothing" not in str(filter_.remaining)
