"""How many further charges fit: the quick count is that of a plain search."""

from fractions import Fraction

import pytest

from tacit.accounting import Budget, Cost, Filter
from tacit.accounting._remaining import _MANY, _multiple, _without_rounding, count_of

BUDGETS = [
    Budget(epsilon=3),
    Budget(epsilon=3, delta=1e-6),
    Budget(rho=0.5),
    Budget(rho=Fraction(1, 2), delta=1e-6),
]
COSTS = [
    *(Cost.pure(Fraction(1, n)) for n in (1, 3, 7, 12345)), Cost.pure(5), Cost.pure(Fraction(1, 10**9)),
    *(Cost.gaussian(sigma=sigma, sensitivity=1) for sigma in (1, 50, 1000)),
    Cost.approximate(Fraction(1, 10), 1e-8),
]  # fmt: skip


def plain_search(state, spend):
    one = _without_rounding(state, spend)

    def fits(times):
        return state.added(_multiple(one, times)).within

    low, high = 0, 1
    while high <= _MANY and fits(high):
        low, high = high, 2 * high
    while high - low > 1 and low < _MANY:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("version", [1, 2])
def test_the_count_is_that_of_a_plain_search(budget, version):
    start = Filter.start(budget, version=version)
    states = [start, start.charged(start.spend_of(Cost.pure(Fraction(1, 3)))),
              start.charged(start.spend_of(Cost.gaussian(sigma=3, sensitivity=1)))]  # fmt: skip
    for state in states:
        for cost in COSTS if state is not None else ():
            spend = state.spend_of(cost)
            assert count_of(state, spend) == plain_search(state, spend), (state, cost)
