"""Filters against an exact model, with hostile values; budgets and spends at the door."""

import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tacit.accounting import Budget, Cost, Filter, Spend
from tacit.accounting._zcdp import largest_pure, pure_rho, rho_cap
from tacit.accounting.numeric._arithmetic import below, round_up
from tacit.errors import TacitError
from tacit.fixes import Either, Say, Set

F = Fraction

HOSTILE = [
    -1,
    -0.1,
    float("nan"),
    float("inf"),
    -math.inf,
    True,
    False,
    "1",
    None,
    5e-324,
    1j,
    [1],
    F(-1, 3),
    Decimal("NaN"),
]

awkward = st.one_of(
    st.fractions(min_value=0, max_value=2, max_denominator=1000),
    st.sampled_from([F(1, 10**17), F(1, 3), F(1, 7), F(1, 10**60), F(1, 3**200), F(2) ** -1000, F(0)]),
    st.floats(min_value=1e-300, max_value=2).map(lambda x: F(repr(x))),
)
small = st.one_of(
    st.just(F(0)),
    st.fractions(min_value=0, max_value=F(1, 1000), max_denominator=10**9),
    st.sampled_from([F(1, 10**6), F(1, 10**9), F(1, 10**20), F(5, 10**7)]),
)
budgets = st.one_of(
    st.fractions(min_value=F(1, 100), max_value=5, max_denominator=100).map(Budget),
    st.fractions(min_value=F(1, 100), max_value=5, max_denominator=100).map(lambda r: Budget(rho=r)),
    st.builds(
        Budget,
        st.fractions(min_value=F(1, 100), max_value=5, max_denominator=100),
        st.sampled_from([F(1, 10**6), F(1, 100), F(1, 10**12)]),
    ),
    st.builds(
        lambda r, d: Budget(rho=r, delta=d),
        st.fractions(min_value=F(1, 100), max_value=5, max_denominator=100),
        st.sampled_from([F(1, 10**6), F(1, 100)]),
    ),
)


def true_cap(epsilon: F, delta: F) -> mpmath.mpf:
    """Return the largest rho of Canonne, Kamath and Steinke's conversion, to 25 digits."""
    with mpmath.workdps(40):
        e, d = (
            mpmath.mpf(epsilon.numerator) / epsilon.denominator,
            mpmath.mpf(delta.numerator) / delta.denominator,
        )

        log_d = mpmath.log(d)

        def allows(u, of=mpmath, e=e, log_d=log_d):
            z = of.exp(u)
            return (e + of.log1p(1 / z) + (log_d + of.log1p(z)) / z) / (1 + z)

        def peak(low, high, rounds, function):
            g = (mpmath.sqrt(5) - 1) / 2
            x, y = high - g * (high - low), low + g * (high - low)
            at_x, at_y = function(x), function(y)
            for _ in range(rounds):
                if at_x >= at_y:
                    high, y, at_y = y, x, at_x
                    at_x = function(x := high - g * (high - low))
                else:
                    low, x, at_x = x, y, at_y
                    at_y = function(y := low + g * (high - low))
            return (low + high) / 2

        def roughly(u):
            return allows(float(u), math, float(e), float(log_d))

        centre = max((u / 2 for u in range(-60, 160)), key=roughly)
        centre = peak(mpmath.mpf(centre - 1), mpmath.mpf(centre + 1), 40, roughly)
        return max(mpmath.mpf(0), allows(peak(centre - 0.001, centre + 0.001, 75, allows)))


def fits_in(filter_, left):
    """Say for each kind of charge whether what is said to remain is admitted."""
    charges = [Spend(0, left.delta, 0)]
    charges += [] if left.epsilon is None else [Spend(epsilon=left.epsilon)]
    charges += [] if left.rho is None else [Spend(rho=left.rho)]
    return [filter_.admits(charge) for charge in charges]


def first_version(budget):
    """Return the filter of an account that an earlier release opened: it keeps the rule of that release."""
    return Filter.from_json(
        {"version": 1, "budget": budget.to_json(), "epsilon": "0", "delta": "0", "rho": "0"}
    )


def high_precision(value):
    return mpmath.mpf(value.numerator) / value.denominator


def largest_divergence(epsilon, rho, order):
    """Return the Renyi divergence that epsilon and rho allow, to 40 digits; None if neither is finite."""
    with mpmath.workdps(60):
        known = [] if rho is None else [high_precision(order * rho)]
        if epsilon is not None:
            e, a = high_precision(epsilon), high_precision(order)
            far = mpmath.log((1 + mpmath.exp((1 - 2 * a) * e)) / (1 + mpmath.exp(-e)))
            known.append(e + far / (a - 1))
        return min(known, default=None)


def reading_of_orders(budget, sums):
    """Return whether some order alone keeps the budget, and whether the mixture of all of them does.

    The mixture: tail * sum of w exp((a-1)(epsilon + x - S)) + exp(-x) >= 1 for every x >= 0.
    """
    weights = [F(7, 100), F(30, 100), F(59, 100), F(4, 100)]
    logs, steps, alone = [], [], False
    with mpmath.workdps(40):
        e, tail = high_precision(budget.epsilon), high_precision(budget.delta / 2)
        for (a, total), weight in zip(sums, weights, strict=True):
            if total is not None:
                z = high_precision(a) - 1
                price = mpmath.log(tail * high_precision(weight))
                logs.append(price + z * (e - total))
                steps.append(z)
                best = -mpmath.log(z + 1) + z * mpmath.log(z / (z + 1))
                alone |= bool(total <= (e + (price - best) / z) * (1 - mpmath.mpf(10) ** -12))
        if not logs:
            return False, False
        low, high = mpmath.mpf(0), mpmath.mpf(400)
        for _ in range(110):
            x = (low + high) / 2
            slope = sum(z * mpmath.exp(log + z * x) for log, z in zip(logs, steps, strict=True)) - mpmath.exp(
                -x
            )
            low, high = (x, high) if slope < 0 else (low, x)
        least = sum(mpmath.exp(log + z * low) for log, z in zip(logs, steps, strict=True)) + mpmath.exp(-low)
        return alone, bool(least >= 1 - mpmath.mpf(10) ** -25)


class FilterAgainstModel(RuleBasedStateMachine):
    """Charge what hypothesis thinks of; the model adds Fractions and knows the rules, nothing else."""

    def __init__(self):
        super().__init__()
        self.filter, self.ever_long = None, False

    @precondition(lambda self: self.filter is None)
    @rule(budget=budgets, version=st.sampled_from([1, 2, 3]))
    def open(self, budget, version):
        self.budget = budget
        self.filter = first_version(budget) if version == 1 else Filter.start(budget, version=version)
        self.epsilon, self.delta, self.rho = F(0), F(0), F(0)
        self.promised = (F(0), F(0))
        self.sums = [(order, mpmath.mpf(0)) for order in self.filter.orders]

    def fits(self, epsilon, delta, rho, sums):
        """Return whether the sums keep the budget, and whether the filter may also refuse."""
        b = self.budget
        if self.filter.version == 3:
            pairs, share = self.new_promised, Budget(b.epsilon, b.delta / 2)
            if pairs[0] is not None and pairs[0] <= b.epsilon and pairs[1] <= b.delta / 2:
                return True, False
            return self.fits_one(share, epsilon, delta, rho, sums)
        return self.fits_one(b, epsilon, delta, rho, sums)

    def fits_one(self, b, epsilon, delta, rho, sums):
        """Return the same for a filter that is not a union."""
        if sums and not (epsilon is not None and epsilon <= b.epsilon) and delta <= b.delta / 2:
            alone, together = reading_of_orders(b, sums)
            return together, alone != together
        if b.rho is not None:
            return rho is not None and rho <= b.rho and delta <= b.delta, False
        if epsilon is not None and epsilon <= b.epsilon and delta <= b.delta / 2:
            return True, False
        left = b.delta / 2 - delta
        if left <= 0 or rho is None or sums:
            return False, False
        cap = true_cap(b.epsilon, left)
        at = mpmath.mpf(rho.numerator) / rho.denominator
        return bool(at <= cap), bool(abs(at - cap) <= cap * mpmath.mpf(10) ** -12)

    @precondition(lambda self: self.filter is not None)
    @rule(
        epsilon=st.one_of(st.none(), awkward),
        delta=small,
        rho=st.one_of(st.none(), awkward),
        scale=st.sampled_from([1, 10, 1000]),
        promise=st.one_of(st.none(), st.tuples(st.sampled_from([F(1, 3), F(1, 50)]), small)),
    )
    def charge(self, epsilon, delta, rho, scale, promise):
        spend = Spend(
            None if epsilon is None else epsilon / scale,
            delta,
            None if rho is None else rho / scale,
            promise=None if promise is None else Budget(*promise),
        )
        assert spend.delta >= delta
        pair = (spend.epsilon, spend.delta)
        if promise is not None and (pair[0] is None or pair[0] > promise[0] or pair[1] > promise[1]):
            pair = promise
        old = self.promised
        self.new_promised = (
            None if old[0] is None or pair[0] is None else old[0] + pair[0], old[1] + pair[1],
        )  # fmt: skip
        new = (
            None if self.epsilon is None or spend.epsilon is None else self.epsilon + spend.epsilon,
            self.delta + spend.delta,
            None if self.rho is None or spend.rho is None else self.rho + spend.rho,
        )
        with mpmath.workdps(60):
            sums = [
                (order, None if total is None or more is None else total + more)
                for order, total in self.sums
                for more in [largest_divergence(spend.epsilon, spend.rho, order)]
            ]
        fits, close = self.fits(*new, sums)
        admitted = self.filter.admits(spend)
        if not close:
            assert admitted == fits
        assert fits or not admitted
        before = self.filter
        if admitted:
            self.filter = before.after(spend)
            self.epsilon, self.delta, self.rho = new
            self.promised = self.new_promised
            self.sums = sums
        else:
            with pytest.raises(TacitError) as refusal:
                before.after(spend)
            assert refusal.value.code == "budget-exceeded"
            assert before == self.filter

    @precondition(lambda self: self.filter is not None)
    @rule(value=st.sampled_from(HOSTILE), field=st.sampled_from(["epsilon", "delta", "rho"]))
    def hostile(self, value, field):
        assume(not (value is None and field != "delta"))
        before = self.filter
        with pytest.raises(TacitError) as refusal:
            Spend(**{field: value})
        assert refusal.value.code == "bad-parameter"
        with pytest.raises(TacitError):
            self.filter.admits(value)
        assert self.filter is before

    @precondition(lambda self: self.filter is not None)
    @rule()
    def store_and_resume(self):
        self.filter = Filter.from_json(json.loads(json.dumps(self.filter.to_json())))

    @precondition(lambda self: self.filter is not None)
    @rule()
    def what_remains_fits(self):
        assert all(fits_in(self.filter, self.filter.remaining))

    @invariant()
    def sums_are_exact_or_rounded_up(self):
        if self.filter is None:
            return
        for mine, model in (
            (self.filter.epsilon, self.epsilon),
            (self.filter.delta, self.delta),
            (self.filter.rho, self.rho),
            *(() if self.filter.version < 3 else zip(self.filter.promised, self.promised, strict=True)),
        ):
            assert (mine is None) == (model is None)
            if mine is not None:
                self.ever_long |= model.denominator.bit_length() > 1000
                assert model <= mine <= model + F(100, 10**28) if self.ever_long else mine == model


TestFilterAgainstModel = FilterAgainstModel.TestCase
TestFilterAgainstModel.settings = settings(max_examples=60, stateful_step_count=25)


@pytest.mark.long
class TestFilterAgainstModelLong(FilterAgainstModel.TestCase):
    settings = settings(max_examples=1500, stateful_step_count=60)


def test_a_hundred_thousand_tiny_charges_add_up_exactly():
    filter_ = Filter.start(Budget(epsilon=2)).after(Spend(epsilon=1))
    tiny = Spend(epsilon=1e-17)
    for _ in range(10**5):
        filter_ = filter_.after(tiny)
    assert filter_.epsilon == 1 + F(1, 10**12)
    assert filter_.spent.epsilon == 1 + F(1, 10**12)


def test_ten_tenths_are_one_and_the_eleventh_is_refused():
    filter_ = Filter.start(Budget(epsilon=1))
    for _ in range(10):
        filter_ = filter_.after(Cost.pure(0.1).spend)
    assert filter_.remaining.epsilon == 0
    assert not filter_.admits(Spend(epsilon=1e-300))


@pytest.mark.parametrize(("cap", "cost"), [(1, F(1, 7)), (F(7, 3), F(1, 9)), (1, F(3, 10)), (5, F(7, 11))])
def test_a_pure_budget_holds_exactly_floor_of_cap_over_cost(cap, cost):
    filter_, wins = Filter.start(Budget(epsilon=cap)), 0
    while filter_.admits(Spend(epsilon=cost)):
        filter_, wins = filter_.after(Spend(epsilon=cost)), wins + 1
    assert wins == F(cap) // cost


def test_sums_of_awkward_fractions_stay_short_and_never_shrink():
    filter_, exact = Filter.start(Budget(epsilon=10**6)), F(0)
    for prime in [p for p in range(3, 4000) if all(p % d for d in range(2, math.isqrt(p) + 1))]:
        filter_, exact = filter_.after(Spend(epsilon=F(1, prime))), exact + F(1, prime)
        assert filter_.epsilon.denominator.bit_length() <= 1000
    assert exact <= filter_.epsilon <= exact + F(1, 10**25)
    assert len(json.dumps(filter_.to_json())) < 5000


LONG = F(3**1000, 3**1000 + 1)  # its denominator is too long to be kept in a sum


@pytest.mark.parametrize(
    "budget",
    [
        Budget(LONG),
        Budget(rho=LONG, delta=LONG / 10**6),
        Budget(LONG, LONG / 10**6),
        Budget(1 + F(1, 3**1200), F(1, 7**300)),
        Budget(F(1, 67), F(1, 10**6)),
        Budget(rho=F(1, 67)),
    ],
)
@pytest.mark.parametrize(
    "first", [F(1, 10**300), F(1, 7**300), F(1, 211**80), F(1, 67) - F(1, 10**200), F(1, 67) - F(1, 10**61)]
)
@pytest.mark.parametrize("kind", ["epsilon", "rho"])
def test_what_remains_always_fits_also_where_sums_are_rounded(budget, first, kind):
    charge = Spend(**{kind: first})
    filter_ = Filter.start(budget)
    filter_ = filter_.after(charge) if filter_.admits(charge) else filter_
    left = filter_.remaining
    assert all(fits_in(filter_, left))
    # and it is the largest: nothing visible is lost to the rounding
    least = F(1, 10**27)
    if budget.rho is None and filter_.epsilon is not None:
        assert filter_.epsilon + left.epsilon >= budget.epsilon * (1 - least)
        assert filter_.delta + left.delta >= budget.delta / 2 * (1 - least) - F(1, 10**58)
    if budget.rho is not None:
        assert filter_.rho + left.rho >= budget.rho * (1 - least)


@pytest.mark.parametrize("left", [F(1, 10**60), F(3, 2 * 10**60), F(1, 10**61), F(1, 3**200), F(1, 10**45)])
def test_next_to_nothing_left_of_rho_is_named_and_refused_in_words(left):
    filter_ = Filter.start(Budget(rho=1)).after(Spend(rho=1 - left))
    assert filter_.remaining.rho == left
    assert all(fits_in(filter_, filter_.remaining))
    with pytest.raises(TacitError) as refusal:
        filter_.after(Spend(epsilon=1))
    assert refusal.value.code == "budget-exceeded"


@given(
    cap=st.fractions(min_value=F(1, 10**70), max_value=10**6),
    share=st.fractions(min_value=0, max_value=1),
    long=st.sampled_from([F(1), LONG, F(1, 211**140) + 1]),
)
def test_no_sum_up_to_what_lies_below_a_cap_is_rounded_beyond_it(cap, share, long):
    least = below(cap * long)
    assert least <= cap * long
    assert cap * long - least <= max(F(1, 10**59), cap * long / 10**27)
    assert round_up(least * share * LONG) <= least


def test_a_gaussian_cost_does_not_fit_a_pure_budget_and_the_refusal_says_why():
    with pytest.raises(TacitError, match="finite epsilon") as refusal:
        Filter.start(Budget(epsilon=1)).after(Cost.gaussian(sigma=100, sensitivity=1).spend)
    assert refusal.value.code == "budget-exceeded"
    assert "admits only costs with a finite epsilon" in str(refusal.value.fix)


def test_an_epsilon_delta_budget_takes_the_better_of_adding_epsilon_and_adding_rho():
    budget = Budget(epsilon=1, delta=1e-6)
    one_laplace = Cost.pure(1).spend  # fits by epsilon, its rho of 0.46 would not
    assert rho_cap(F(1), F(1, 2 * 10**6)) < one_laplace.rho
    assert Filter.start(budget).admits(one_laplace)
    many, filter_ = 0, first_version(budget)
    while filter_.admits(Cost.pure(0.01).spend):
        filter_, many = filter_.after(Cost.pure(0.01).spend), many + 1
    assert many > 400  # by epsilon alone it would be 100
    # the same as by rho alone: the branches do not add up
    assert many == rho_cap(F(1), F(1, 2 * 10**6)) // pure_rho(F(1, 100))


def test_delta_is_split_between_the_two_ways_of_adding():
    budget = Budget(epsilon=1, delta=1e-6)
    half = Cost.approximate(0.1, F(1, 2 * 10**6)).spend
    fine_noise = Cost.gaussian(sigma=10**6, sensitivity=1).spend
    second = Filter.start(budget, version=2)
    for filter_ in (first_version(budget), second, Filter.start(budget)):
        assert filter_.admits(half)
        assert not filter_.after(half).admits(half)
    assert not first_version(budget).after(half).admits(fine_noise)
    assert second.after(half).admits(fine_noise)  # the tail has a half of its own
    after = Filter.start(budget).after(half)
    assert not after.admits(fine_noise)  # promised pairs have half of delta, leaks beside orders a quarter
    quarter = Cost.approximate(0.1, F(1, 4 * 10**6)).spend
    assert Filter.start(budget).after(quarter).admits(fine_noise)
    assert not Filter.start(budget).after(quarter).after(fine_noise).admits(quarter)


def test_a_charge_without_finite_rho_closes_the_rho_way_for_good():
    budget = Budget(rho=1, delta=1e-6)
    with pytest.raises(TacitError):
        Filter.start(budget).after(Cost.renyi({2: 0.1}).spend)


def test_order_of_charges_does_not_matter_for_exact_sums():
    spends = [Cost.pure(F(1, n)).spend for n in range(2, 30)]
    one = two = Filter.start(Budget(epsilon=10))
    for a, b in zip(spends, reversed(spends), strict=True):
        one, two = one.after(a), two.after(b)
    assert one == two


@pytest.mark.parametrize("bad", [0, *(value for value in HOSTILE if value is not None)])
def test_budgets_refuse_what_is_not_a_positive_number(bad):
    for field in ("epsilon", "rho"):
        with pytest.raises(TacitError) as refusal:
            Budget(**{field: bad})
        assert refusal.value.code == "bad-parameter"


@pytest.mark.parametrize("bad", [-1e-9, 1, 2, float("nan"), True, "1e-6"])
def test_budgets_refuse_a_delta_outside_zero_to_one(bad):
    with pytest.raises(TacitError):
        Budget(epsilon=1, delta=bad)


def test_a_budget_is_given_in_epsilon_or_in_rho():
    for given_ in ({}, {"epsilon": 1, "rho": 1}, {"delta": 1e-6}):
        with pytest.raises(TacitError, match="exactly one of epsilon and rho"):
            Budget(**given_)


def test_budgets_are_values():
    assert Budget(1) == Budget(epsilon=1.0) == Budget(epsilon=F(1), delta=0)
    assert len({Budget(0.1), Budget(epsilon=F(1, 10)), Budget(epsilon=0.1, delta=1e-6)}) == 2
    assert pickle.loads(pickle.dumps(Budget(rho=0.1))) == Budget(rho=0.1)
    with pytest.raises(AttributeError):
        Budget(1).epsilon = F(9)
    assert eval(
        repr(Budget(epsilon=F(1, 3), delta=1e-9)), {"Budget": Budget, "Fraction": Fraction}
    ) == Budget(F(1, 3), 1e-9)


@given(epsilon=st.fractions(min_value=0, max_value=50), rho=st.fractions(min_value=F(1, 10**6), max_value=20))
def test_certified_rho_is_above_and_its_inverse_below_the_truth(epsilon, rho):
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        truth = e * mpmath.tanh(e / 2)
        mine = pure_rho(epsilon)
        at = mpmath.mpf(mine.numerator) / mine.denominator
        assert truth <= at <= truth * (1 + mpmath.mpf(10) ** -25) + mpmath.mpf(10) ** -59
    assert pure_rho(largest_pure(rho)) <= rho
    assert pure_rho(largest_pure(rho) * (1 + F(1, 10**9))) > rho


@given(
    epsilon=st.fractions(min_value=F(1, 10**4), max_value=100, max_denominator=10**6),
    exponent=st.integers(min_value=1, max_value=60),
)
def test_the_rho_cap_is_certified_from_below_and_tight(epsilon, exponent):
    mine, truth = rho_cap(epsilon, F(1, 10**exponent)), true_cap(epsilon, F(1, 10**exponent))
    with mpmath.workdps(40):
        at = mpmath.mpf(mine.numerator) / mine.denominator
        assert at <= truth
        assert at >= truth * (1 - mpmath.mpf(10) ** -12)


@pytest.mark.parametrize(
    "damage",
    [
        {"version": 2},
        {"version": None},
        {"version": True},
        {"version": "1"},
    ],
)
def test_unknown_versions_are_refused_by_code(damage):
    for value in (Budget(1), Spend(1), Filter.start(Budget(1)), Cost.pure(1)):
        stored = {**value.to_json(), **damage}
        with pytest.raises(TacitError) as refusal:
            type(value).from_json(stored)
        assert refusal.value.code == "unknown-version"


@pytest.mark.parametrize(
    "text", ["-1", "1/0", "0.5", "NaN", "1e3", "", " 1", "1/-2", 1, 0.5, None, True, "9" * 3000]
)
def test_stored_numbers_are_exact_or_refused(text):
    for value in (Budget(1), Filter.start(Budget(1))):
        with pytest.raises(TacitError) as refusal:
            type(value).from_json({**value.to_json(), "delta": text})
        assert refusal.value.code == "bad-parameter"


def test_a_stored_filter_with_fields_missing_or_added_is_refused():
    stored = Filter.start(Budget(1)).to_json()
    for damaged in ({**stored, "more": 1}, {k: v for k, v in stored.items() if k != "rho"}, [], None, "x"):
        with pytest.raises(TacitError):
            Filter.from_json(damaged)


@pytest.mark.parametrize(
    ("budget", "spent", "told"),
    [
        (Budget(epsilon=3), Spend(epsilon=1), "epsilon 2 of 3"),
        (
            Budget(epsilon=1),
            Spend(epsilon=Fraction(1, 3)),
            "epsilon 0.666666 of 1",
        ),  # down: it must still fit
        (Budget(epsilon=3, delta=1e-6), Spend(epsilon=1), "one more question of up to epsilon 2"),
        (Budget(epsilon=3, delta=1e-6), Spend(epsilon=3), "nothing of epsilon 3"),
        (Budget(rho=0.1), Spend(rho=0.04), "rho 0.06 of 0.1"),
    ],
)
def test_what_is_left_is_told_in_the_terms_that_were_declared(budget, spent, told):
    left = Filter.start(budget).after(spent).remaining
    assert str(left) == told
    assert "of=" not in repr(left)


@pytest.mark.parametrize(
    ("budget", "spend", "advice"),
    [
        (Budget(epsilon=1), Spend(epsilon=2), Set.at_most(epsilon=1)),
        (
            Budget(epsilon=1),
            Spend(epsilon=0.5, delta=1e-9),
            Say("ask a question that needs no delta, over groups that are public"),
        ),
        (Budget(epsilon=1, delta=1e-6), Spend(epsilon=0.5, delta=1e-6), Set.at_most(delta=5e-07)),
        (Budget(rho=0.1), Spend(rho=1), Set.at_most(rho=0.1)),
    ],
)
def test_a_refused_charge_says_what_would_fit(budget, spend, advice):
    with pytest.raises(TacitError) as refusal:
        Filter.start(budget).after(spend)
    without_delta = spend.delta and not budget.delta
    larger = "a budget with a delta" if without_delta else "a larger budget"
    assert refusal.value.fix == Either(advice, Say(f"ask the curator for {larger}"))
    assert ("this budget has no delta" in refusal.value.what) == bool(without_delta)


@pytest.mark.parametrize("charged", [Spend(epsilon=F(1, 3)), Spend(epsilon=F(2, 7))])
def test_the_value_that_a_refusal_offers_fits(charged):
    filter_ = Filter.start(Budget(epsilon=1)).after(charged)
    with pytest.raises(TacitError) as refusal:
        filter_.after(Spend(epsilon=2))
    assert filter_.admits(Spend(**refusal.value.fix.fixes[0].values))


def test_a_refused_delta_says_that_half_is_reserved():
    with pytest.raises(TacitError) as refusal:
        Filter.start(Budget(epsilon=1, delta=1e-6)).after(Spend(epsilon=0.5, delta=1e-6))
    assert "half of the budget's delta is reserved" in refusal.value.why
    with pytest.raises(TacitError) as refusal:
        Filter.start(Budget(epsilon=1, delta=1e-6)).after(Spend(epsilon=2))
    assert "half" not in refusal.value.why


def test_where_nothing_is_left_the_refusal_says_so_and_not_at_most_zero():
    spent = Filter.start(Budget(epsilon=1)).after(Spend(epsilon=1))
    with pytest.raises(TacitError) as refusal:
        spent.after(Spend(epsilon=0.1))
    assert "nothing of epsilon 1" in refusal.value.what
    assert "repeat a question that was already answered" in str(refusal.value.fix)
    assert not any(isinstance(fix, Set) for fix in refusal.value.fix.fixes)
