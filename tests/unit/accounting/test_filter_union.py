"""The union of filters: promised pairs beside Renyi orders, each with its share of delta.

Limits of the search below: one direction, at most two kinds of question and one leak, a few dozen questions,
budgets with a delta of 0.02 or more. A search proves nothing; `docs/proofs/filters.md` has the proof.
"""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tacit.accounting import Budget, Cost, Filter, Spend, calibrate
from tacit.accounting._filters import SHARES, PromisedPairs, _add
from tacit.errors import TacitError

F = Fraction
HALF = F(1, 2)


def gaussian(epsilon, delta):
    """Return the cost of one Gaussian answer with this promise, and the promise."""
    promise = Budget(epsilon, delta)
    sigma = calibrate(lambda s: Cost.gaussian(sigma=s, sensitivity=1), promise)
    return Cost.gaussian(sigma=sigma, sensitivity=1), promise


# -- what is left: budget, promise, then (left for one question, questions like this one) of version 2 and now

TABLE = [
    ((1, 1e-6), (0.5, 1e-7), ("0.4010", 2), ("0.5000", 2)),
    ((3, 1e-6), (1, 1e-7), ("1.7692", 6), ("2.0000", 6)),
    ((8, 1e-5), (1, 1e-6), ("6.7208", 40), ("7.0000", 38)),
    ((1, 1e-6), (0.1, 1e-8), ("0.8584", 94), ("0.9000", 89)),
]


@pytest.mark.parametrize(("budget", "promise", "before", "now"), TABLE)
def test_what_is_left_after_one_gaussian_question(budget, promise, before, now):
    cost, promised = gaussian(*promise)
    for version, expected in ((2, before), (3, now)):
        start = Filter.start(Budget(*budget), version=version)
        left = start.after(start.spend_of(cost, promised)).left(cost, promised)
        assert (f"{float(left.remaining.epsilon):.4f}", left.more) == expected


@pytest.mark.parametrize(("budget", "promise", "before", "now"), TABLE)
def test_both_numbers_are_what_the_filter_admits(budget, promise, before, now):
    cost, promised = gaussian(*promise)
    state = Filter.start(Budget(*budget))
    spend = state.spend_of(cost, promised)
    state = state.after(spend)
    left = state.left(cost, promised)
    one = Budget(left.remaining.epsilon, promise[1])
    assert state.admits(Spend(promise=one))
    assert not state.admits(Spend(promise=Budget(one.epsilon + F(1, 10**9), promise[1])))
    for _ in range(left.more):
        state = state.after(spend)
    assert not state.admits(spend)


@pytest.mark.parametrize(
    ("budget", "percent"), [((1, 1e-6), 5.50), ((3, 1e-6), 4.82), ((8, 1e-5), 5.15), ((0.5, 1e-9), 3.85)]
)
def test_the_price_is_a_few_percent_of_rho(budget, percent):
    rhos = [float(Filter.start(Budget(*budget), version=version).remaining.rho) for version in (2, 3)]
    assert round(100 * (1 - rhos[1] / rhos[0]), 2) == percent


def test_the_words_name_one_question_or_some_like_this_one():
    cost, promise = gaussian(0.5, 1e-7)
    state = Filter.start(Budget(1, 1e-6))
    assert str(state.left(cost, promise)) == "one more question of up to epsilon 1; or 3 more like this one"
    for expected in (
        "one more question of up to epsilon 0.5; or 2 more like this one",
        "one more question of up to epsilon 0.221107; or 1 more like this one",
    ):
        state = state.after(state.spend_of(cost, promise))
        assert str(state.left(cost, promise)).split(";")[1] == expected.split(";")[1]
    state = state.after(state.spend_of(cost, promise))
    assert str(state.left(cost, promise)).endswith("; none like this one")
    assert str(state.left()) == str(state.remaining)


# -- the rule


def test_budgets_of_one_kind_have_one_rule():
    for budget in (Budget(1), Budget(rho=1), Budget(rho=1, delta=1e-6)):
        start = Filter.start(budget)
        assert (start.version, start.members, start.promised) == (1, (start,), None)
        promise = Budget(0.5, 1e-7)
        for spend in (Spend(0.5), Spend(rho=0.01), Spend(0.5, 1e-8, 0.01)):
            with_promise = Spend(spend.epsilon, spend.delta, spend.rho, (), promise)
            assert start.added(with_promise) == start.added(spend)


def test_the_shares_of_delta_add_up_to_one():
    assert sum(SHARES) == 1
    pairs, orders = Filter.start(Budget(3, 1e-6)).members
    assert isinstance(pairs, PromisedPairs)
    assert pairs.budget.delta + orders.budget.delta == F(1, 10**6)
    assert orders == Filter.start(Budget(3, 5e-7), version=2)


def test_a_charge_needs_one_filter_that_admits_all_charges():
    cost, promise = gaussian(0.5, 1e-7)
    state = Filter.start(Budget(1, 1e-6))
    spend = state.spend_of(cost, promise)
    for _ in range(2):
        state = state.after(spend)
    assert [member.within for member in state.members] == [True, True]
    assert [member.within for member in state.after(spend).members] == [False, True]
    assert [member.within for member in state.added(spend).added(spend).members] == [False, False]


def test_a_plan_in_rho_ends_the_promised_pairs_for_good():
    state = Filter.start(Budget(1, 1e-6)).after(Spend(rho=F(1, 1000)))
    assert state.promised[0] is None
    assert not state.members[0].within
    assert state.remaining == state.members[1].remaining
    assert state.after(Spend(0.1)).promised[0] is None


def test_the_verdict_is_monotone():
    costs = [gaussian(0.5, 1e-7), gaussian(0.1, 1e-8), (Cost.pure(0.2), None), (Cost.zcdp(0.01), None)]
    start = Filter.start(Budget(1, 1e-6))
    spends = [start.spend_of(*one) for one in costs]
    for first in spends:
        state, before = start, True
        for spend in [first] * 3 + spends * 3:
            state = state.added(spend)
            assert before or not state.within
            before = state.within


def test_a_pure_or_stated_cost_promises_what_it_is():
    assert Cost.pure(0.5).spend.promised == (HALF, 0)
    assert Cost.approximate(0.5, 1e-7).spend.promised == (HALF, F(1, 10**7))
    assert Cost.zcdp(0.1).spend.promised == (None, 0)
    assert Spend(0.5, promise=Budget(0.5, 1e-7)).promise is None  # it says no more
    smaller = Cost.laplace(scale=2, sensitivity=1) * 4
    assert smaller.spend_at((), Budget(1.9, 0.1)).promised == (F(19, 10), F(1, 10))


def test_a_promise_that_the_cost_does_not_keep_is_refused():
    cost, _ = gaussian(0.5, 1e-7)
    start = Filter.start(Budget(1, 1e-6))
    for promise in (Budget(0.49, 1e-7), Budget(0.5, 0.9e-7), Budget(0.5)):
        with pytest.raises(TacitError, match="does not keep the promise"):
            start.spend_of(cost, promise)
    assert start.spend_of(cost, Budget(rho=0.1)).promise is None


def test_the_state_is_stored_exactly_and_older_programs_refuse_it():
    cost, promise = gaussian(0.5, 1e-7)
    state = Filter.start(Budget(1, 1e-6))
    for _ in range(3):
        stored = json.loads(json.dumps(state.to_json()))
        assert stored["version"] == 3
        assert Filter.from_json(stored) == state
        state = state.after(state.spend_of(cost, promise))
    ended = state.added(Spend(rho=1))
    assert Filter.from_json(json.loads(json.dumps(ended.to_json()))) == ended
    spend = state.spend_of(cost, promise)
    assert Spend.from_json(json.loads(json.dumps(spend.to_json()))) == spend
    assert eval(repr(spend), {"Spend": Spend, "Budget": Budget, "Fraction": Fraction}) == spend
    for damage in ({"version": 2}, {"promised": ["0"]}, {"promised": "0"}, {"promised": ["-1", "0"]}):
        with pytest.raises(TacitError):
            Filter.from_json({**state.to_json(), **damage})


def test_a_refused_promise_is_told_the_largest_that_fits():
    cost, promise = gaussian(0.5, 1e-7)
    state = Filter.start(Budget(1, 1e-6))
    state = state.after(state.spend_of(cost, promise))
    large, wanted = gaussian(0.9, 1e-7)
    with pytest.raises(TacitError) as refusal:
        state.after(state.spend_of(large, wanted))
    assert refusal.value.facts["promise"] == 0.5


# -- the largest delta that any adaptive strategy reaches, by dynamic programming


class Search:
    """All strategies that choose among some questions after they have seen every answer.

    A question is lattice noise, tilted: Q(k) is proportional to exp(-k^2 / (2 s^2)) on -K..K, and P is Q
    tilted by exp(k t). Its loss is k t less a constant, so a state is: how often each question was asked, and
    the sum of its answers. A leak shows everything with probability delta. Expectations are under P.
    """

    def __init__(self, budget, verdict=None, start=None):
        self.start = Filter.start(budget) if start is None else start
        self.verdict = verdict or (lambda state: state.within)
        self.epsilon = float(budget.epsilon)
        self.laws, self.spends = [], []

    def noise(self, spread, tilt, reach, *, delta):
        """Add noise; it promises the epsilon that its law has at this delta, in the worse direction."""
        k = np.arange(-reach, reach + 1)
        q = np.exp(-(k**2) / (2 * spread**2))
        q /= q.sum()
        p = q * np.exp(k * tilt)
        constant = math.log(p.sum())
        p /= p.sum()
        loss = k * tilt - constant

        def delta_at(epsilon):
            forth = (p * np.clip(-np.expm1(epsilon - loss), 0, None)).sum()
            back = (q * np.clip(-np.expm1(epsilon + loss), 0, None)).sum()
            return max(forth, back)

        low, high = 0.0, float(np.abs(loss).max())
        while high - low > 1e-9:
            middle = (low + high) / 2
            low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
        curve = []
        for order in self.start.orders:
            a = float(order)
            forth = np.log((p * np.exp((a - 1) * loss)).sum()) / (a - 1)
            back = np.log((q * np.exp(-(a - 1) * loss)).sum()) / (a - 1)
            curve.append((order, F(float(max(forth, back) * (1 + 1e-9)))))
        promise = Budget(F(high * (1 + 1e-9)), F(repr(delta)))
        self.laws.append((p, tilt, constant, reach))
        self.spends.append(Spend(curve=curve, promise=promise))

    def response(self, size):
        """Add randomized response: its answers are -1 and 1, with losses of this size."""
        p = 1 / (1 + math.exp(-size))
        self.laws.append((np.array([1 - p, 0, p]), size, 0.0, 1))
        self.spends.append(self.start.spend_of(Cost.randomized_response(F(repr(size)))))

    def leak(self, delta):
        self.laws.append(delta)
        self.spends.append(Spend(0, F(repr(delta))))

    def admitted(self):
        """Return every way in which the questions may have been asked; sums do not know the order."""
        found = {}

        def extend(state, asked):
            if asked in found or not self.verdict(state):
                return
            found[asked] = state
            for i, spend in enumerate(self.spends):
                extend(state.added(spend), (*asked[:i], asked[i] + 1, *asked[i + 1 :]))

        extend(self.start, (0,) * len(self.spends))
        return found

    def value(self):
        """Return the largest P(S) - exp(epsilon) Q(S)."""
        best = {}
        for asked in sorted(self.admitted(), key=sum, reverse=True):
            gain = self._gain(asked)
            axis = 0
            for i, law in enumerate(self.laws):
                later = best.get((*asked[:i], asked[i] + 1, *asked[i + 1 :]))
                if isinstance(law, tuple):
                    if later is not None:
                        gain = np.maximum(gain, self._mean(later, law[0], axis, gain.shape[axis]))
                    axis += 1
                elif later is not None:
                    gain = np.maximum(gain, law + (1 - law) * later)
            best[asked] = gain
        return float(best[(0,) * len(self.laws)].max())

    @staticmethod
    def _mean(later, p, axis, size):
        return sum(
            weight * np.take(later, range(place, place + size), axis=axis) for place, weight in enumerate(p)
        )

    def _gain(self, asked):
        noises = [(n, law) for n, law in zip(asked, self.laws, strict=True) if isinstance(law, tuple)]
        loss = np.zeros([2 * n * law[3] + 1 for n, law in noises])
        for place, (n, (_, tilt, constant, reach)) in enumerate(noises):
            shape = [1] * len(noises)
            shape[place] = -1
            loss = loss + (np.arange(-n * reach, n * reach + 1) * tilt - n * constant).reshape(shape)
        return np.clip(-np.expm1(np.minimum(0.0, self.epsilon - loss)), 0, None)


def settings(build=Search):
    """Return searches over a few small budgets, each with the delta that it may not exceed."""
    found = []
    for epsilon, delta, size, tilt in (
        (1, 0.002, 0.1, None),
        (1, 0.02, 0.15, None),
        (3, 0.02, 0.3, None),
        (1, 0.02, 0.15, 0.1),
        (3, 0.02, 0.3, 0.2),
        (3, 0.002, 0.2, 0.15),
    ):
        search = build(Budget(epsilon, F(repr(delta))))
        search.response(size)
        if tilt is not None:
            search.noise(2.0, tilt, 4, delta=delta / 50)
        search.leak(delta / 2)
        found.append((search, delta))
    return found


def without_split(budget):
    """The broken twin: every filter of the union has the whole delta."""
    start = replace(Filter.start(budget, version=2), promised=(F(0), F(0)))

    def verdict(state):
        pairs = PromisedPairs(budget, *state.promised)
        return pairs.within or replace(state, promised=None).within

    return Search(budget, verdict, start)


@pytest.mark.parametrize("which", range(6))
def test_no_adaptive_strategy_reaches_more_than_delta(which):
    search, delta = settings()[which]
    assert search.value() <= delta


@pytest.mark.parametrize("which", range(6))
def test_the_search_breaks_a_union_without_a_split(which):
    search, delta = settings(without_split)[which]
    assert search.value() > delta


def test_the_best_strategies_use_half_of_delta_and_no_more():
    shares = [search.value() / delta for search, delta in settings()]
    assert 0.5 < max(shares) < 0.6


# -- broken twins


def test_the_promised_delta_is_added_up(monkeypatch):
    """A twin that forgets it is found by the sum; the search is too weak to see it."""
    promise = Budget(0.01, 1e-7)
    spend = Spend(rho=F(1, 10**6), promise=promise)

    def admitted():
        state, total = Filter.start(Budget(1, 1e-6)), F(0)
        state = state.added(Spend(rho=F(1, 10)))  # ends the other filter
        state = replace(state, promised=(F(0), F(0)))
        while state.admits(spend) and total < 1:
            state, total = state.after(spend), total + promise.delta
        return total, state

    total, state = admitted()
    assert total == state.promised[1] == F(5, 10**7)
    with monkeypatch.context() as twin:
        twin.setattr(Filter, "_promised_with", lambda _, old, one: (_add(old[0], one.promised[0]), old[1]))
        total, state = admitted()
    assert total > F(5, 10**7) > state.promised[1]


def test_a_verdict_that_mixes_the_filters_breaks_the_budget():
    """A twin that reads early charges by promises and late ones by orders admits twice the budget."""
    cost, promise = gaussian(0.5, 1e-7)
    budget = Budget(1, 1e-6)
    start = Filter.start(budget)
    spend = start.spend_of(cost, promise)

    def mixed(times):
        early, late = start, start
        for number in range(times):
            if number < 2:
                early = early.added(spend)
            else:
                late = late.added(spend)
        return early.members[0].within and late.members[1].within

    honest = max(times for times in range(20) if start.how_many(cost, promise) >= times)
    twin = max(times for times in range(20) if mixed(times))
    assert (honest, twin) == (3, 5)
    assert (honest * cost).fits(budget)
    assert not (twin * cost).fits(budget)
