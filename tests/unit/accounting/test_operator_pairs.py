"""Every pair of operators against small mechanisms whose laws are written out: no reading is below the truth.

A mechanism maps a number of units to the law of its answer. Operators act on mechanisms as they act on
people: a sample draws each unit, a group moves several at once, branches hold a unit each.
"""

import math
from itertools import combinations_with_replacement, product

import pytest

from tacit.accounting import Cost
from tacit.errors import TacitError

REACH = 2
EPSILONS = (0.0, 0.05, 0.3, 0.8, 1.5, 2.5)


def clamped(weight):
    """Return the mechanism that adds noise to the number of units and clamps the answer."""

    def law(units):
        found: dict[object, float] = {}
        noise = {x: weight(x) for x in range(-60, 61)}
        total = math.fsum(noise.values())
        for x, mass in noise.items():
            at = min(max(x + units, -REACH), REACH)
            found[at] = found.get(at, 0.0) + mass / total
        return found

    return law


def rounded_laplace(x):
    """The mass that continuous noise of scale 1 has nearest to x."""
    return -math.expm1(-0.5) if x == 0 else math.exp(-abs(x)) * math.sinh(0.5)


def coin(e):
    yes = 1 / (1 + math.exp(-e))
    return lambda units: {1: yes, 0: 1 - yes} if units else {1: 1 - yes, 0: yes}


def chosen(e):
    """The exponential mechanism: the quality of x is its distance from the number of units."""

    def law(units):
        weights = {x: math.exp(-e / 2 * abs(x - units)) for x in range(3)}
        return {x: w / sum(weights.values()) for x, w in weights.items()}

    return law


def leaky(e, d):
    """With probability d the number of units is revealed."""

    def law(units):
        noisy = clamped(lambda x: math.exp(-e * abs(x)))(units)
        return {**{x: (1 - d) * p for x, p in noisy.items()}, ("all", units): d}

    return law


def sampled(f, q):
    def law(units):
        found: dict[object, float] = {}
        for k in range(units + 1):
            weight = math.comb(units, k) * q**k * (1 - q) ** (units - k)
            for x, p in f(k).items():
                found[x] = found.get(x, 0.0) + weight * p
        return found

    return law


def both(f, g):
    return lambda units: {(x, y): p * r for x, p in f(units).items() for y, r in g(units).items()}


def twice(law):
    return both(lambda _: law, lambda _: law)(0)


def exact_delta(p, q, e):
    return math.fsum(max(0.0, p.get(x, 0.0) - math.exp(e) * q.get(x, 0.0)) for x in {*p, *q})


# A claim: its cost, and the mechanisms that it must cover (several: a unit may be in any of the branches).
BASES = {
    "pure": (Cost.pure(1), [clamped(lambda x: math.exp(-abs(x))), coin(1.0)]),
    "approximate": (Cost.approximate(0.5, 0.01), [leaky(0.5, 0.01)]),
    "laplace": (Cost.laplace(scale=1, sensitivity=1), [clamped(rounded_laplace)]),
    "discrete_laplace": (
        Cost.discrete_laplace(scale=2, sensitivity=1),
        [clamped(lambda x: math.exp(-abs(x) / 2))],
    ),
    "gaussian": (Cost.discrete_gaussian(sigma=2, sensitivity=1), [clamped(lambda x: math.exp(-x * x / 8))]),
    "exponential": (Cost.exponential(1), [chosen(1.0)]),
    "randomized_response": (Cost.randomized_response(0.7), [coin(0.7)]),
}
OTHER = (Cost.randomized_response(0.4), [coin(0.4)])

OPERATORS = {
    "sampled": lambda c, fs: (c.sampled(0.3), [sampled(f, 0.3) for f in fs]),
    "group": lambda c, fs: (c.group(2), [lambda units, f=f: f(2 * units) for f in fs]),
    "parallel": lambda c, fs: (Cost.parallel(c, OTHER[0]), [*fs, *OTHER[1]]),
    "sum": lambda c, fs: (c + OTHER[0], [both(f, g) for f in fs for g in OTHER[1]]),
    "scalar": lambda c, fs: (2 * c, [both(f, g) for f, g in combinations_with_replacement(fs, 2)]),
}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("first", "second"), list(product(OPERATORS, repeat=2)))
def test_two_operators_cover_the_mechanisms_they_speak_of(base, first, second):
    cost, mechanisms = OPERATORS[second](*OPERATORS[first](*BASES[base]))
    found = {e: cost.delta(epsilon=e) for e in EPSILONS}
    for f, units in product(mechanisms, (0, 1)):
        with_unit, without = f(units + 1), f(units)
        for e in EPSILONS:
            truth = max(exact_delta(with_unit, without, e), exact_delta(without, with_unit, e))
            assert found[e] >= truth * (1 - 1e-9) - 1e-13, (base, first, second, units, e)


def shuffle(f, values):
    """Return the law of the sorted reports of these values."""
    found: dict[object, float] = {}
    for reports in product(*(f(v).items() for v in values)):
        answer = tuple(sorted(x for x, _ in reports))
        found[answer] = found.get(answer, 0.0) + math.prod(p for _, p in reports)
    return found


SHUFFLED = {
    "once": (lambda c: c, 1, 1),
    "scalar": (lambda c: 2 * c, 2, 1),
    "sum": (lambda c: c + Cost.pure(0.1, adjacency="replace"), 1, 1),
    "group": (lambda c: c.group(2), 1, 2),
}


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("then", SHUFFLED)
@pytest.mark.parametrize(
    "base", ["pure", "discrete_laplace", "exponential", "randomized_response", "laplace"]
)
def test_shuffled_reports_cover_any_two_values(base, then, n):
    operator, often, changed = SHUFFLED[then]
    cost, mechanisms = BASES[base]
    whole = operator(cost.shuffled(n))
    f, moved = mechanisms[-1], min(changed, n)
    before, after = shuffle(f, [0] * n), shuffle(f, [1] * moved + [0] * (n - moved))
    if often == 2:
        before, after = twice(before), twice(after)
    for e in EPSILONS:
        truth = max(exact_delta(before, after, e), exact_delta(after, before, e))
        assert whole.delta(epsilon=e) >= truth * (1 - 1e-9) - 1e-13


@pytest.mark.parametrize("first", ["sampled", "parallel"])
@pytest.mark.parametrize("second", OPERATORS)
@pytest.mark.parametrize(
    "base", ["pure", "laplace", "discrete_laplace", "exponential", "randomized_response"]
)
def test_reports_that_hold_only_for_added_units_are_never_shuffled(base, first, second):
    """A report that is drawn with probability 0.1 and else says "nothing" differs by 1 between two values."""
    cost, _ = OPERATORS[second](*OPERATORS[first](*BASES[base]))
    for n in (1, 100):
        with pytest.raises(TacitError) as refusal:
            cost.shuffled(n)
        assert refusal.value.code == "no-guarantee"
