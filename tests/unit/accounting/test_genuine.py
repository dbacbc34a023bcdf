"""A cost that a ledger charges is made anew of Tacit's own laws and plain numbers, or refused."""

from fractions import Fraction

import pytest

from tacit.accounting import Cost, genuine
from tacit.accounting._laws import GroupLoss, PureLoss
from tacit.errors import TacitError

HALF = Fraction(1, 2)
COSTS = [
    Cost.zero(),
    Cost.laplace(scale=2, sensitivity=1),
    Cost.gaussian(sigma=2, sensitivity=1),
    Cost.discrete_laplace(scale=2, sensitivity=3),
    Cost.discrete_gaussian(sigma=8, sensitivity=1),
    Cost.discrete_gaussian(sigma=8, sensitivity=2, dimension=10),
    Cost.randomized_response(1),
    Cost.randomized_response(1, categories=20),
    Cost.randomized_response(1, categories=20).shuffled(100),
    Cost.randomized_response(1).shuffled(100),
    Cost.exponential(1),
    Cost.pure(0.1),
    Cost.approximate(0, 0.001),
    Cost.zcdp(0.1),
    Cost.renyi({2: 0.1, 8: 0.4}),
    Cost.gdp(1),
    5 * Cost.pure(1).sampled(0.01) + Cost.zcdp(0.2).group(3),
    Cost.parallel(Cost.pure(1), 2 * Cost.gdp(1)),
]


class Half(Fraction):
    """A fraction of its own class, which is nothing where a charge multiplies it."""

    def __mul__(self, other):
        return Fraction(0)


class Twice(int):
    """A whole number that is small where it is multiplied."""

    def __mul__(self, other):
        return other


class SameAsAny(PureLoss):
    """A law that says it equals every other."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


class Adjacency(str):
    """A text that equals every other."""

    __slots__ = ()

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


def bent(parts, adjacency="add/remove"):
    """Return a cost into which somebody put other parts after its checks."""
    cost = Cost.pure(0.5)
    object.__setattr__(cost, "parts", parts)
    object.__setattr__(cost, "adjacency", adjacency)
    return cost


def with_field(value):
    """Return a law whose epsilon somebody replaced after its checks."""
    law = PureLoss(HALF)
    object.__setattr__(law, "epsilon", value)
    return law


def fraction(numerator, denominator):
    """Return a fraction into which somebody put other numbers."""
    made = Fraction(1, 3)
    made._numerator, made._denominator = numerator, denominator
    return made


def nested(depth):
    """Return parts in which groups of groups stand that deep."""
    parts = ((PureLoss(HALF), 1),)
    for _ in range(depth):
        parts = ((GroupLoss(2, parts), 1),)
    return parts


def tuples(depth):
    """Return tuples in tuples, without a law."""
    parts = ()
    for _ in range(depth):
        parts = (parts,)
    return parts


FORGED = {
    "a subclass": type("Same", (Cost,), {})(((PureLoss(HALF), 1),)),
    "no cost": HALF,
    "a law of its own": bent(((SameAsAny(HALF), 1),)),
    "a fraction of its own": bent(((with_field(Half(1, 2)), 1),)),
    "an unreduced fraction": bent(((with_field(fraction(2, 4)), 1),)),
    "a fraction of other numbers": bent(((with_field(fraction(Twice(1), 2)), 1),)),
    "a negative denominator": bent(((with_field(fraction(-1, -2)), 1),)),
    "a denominator of zero": bent(((with_field(fraction(1, 0)), 1),)),
    "a negative number": bent(((with_field(-HALF), 1),)),
    "zero": bent(((with_field(Fraction(0)), 1),)),
    "a float": bent(((with_field(0.5), 1),)),
    "a whole number of its own": bent(((PureLoss(HALF), Twice(3)),)),
    "a boolean": bent(((PureLoss(HALF), True),)),
    "never": bent(((PureLoss(HALF), 0),)),
    "a negative number of times": bent(((PureLoss(HALF), -1),)),
    "a number too long to write": bent(((PureLoss(HALF), 10**5000),)),
    "equal laws apart": bent(((PureLoss(HALF), 1), (PureLoss(HALF), 1))),
    "out of order": bent(((PureLoss(HALF), 1), (PureLoss(HALF / 2), 1))),
    "a list": bent([(PureLoss(HALF), 1)]),
    "a law alone": bent((PureLoss(HALF),)),
    "a number for a law": bent(((HALF, 1),)),
    "an adjacency of its own": bent(((PureLoss(HALF), 1),), Adjacency("nobody")),
    "no adjacency": bent(((PureLoss(HALF), 1),), "nobody"),
    "a law of another adjacency": bent(Cost.pure(1).sampled(0.1).parts, "replace"),
    "too deep": bent(nested(17)),
    "tuples without end": bent(tuples(100_000)),
    "a text for a number": bent(((with_field("1/2"), 1),)),
    "three for a part": bent(((PureLoss(HALF), 1, 1),)),
    "nothing in its place": object.__new__(Cost),
}


@pytest.mark.parametrize("cost", COSTS, ids=repr)
def test_a_cost_is_made_anew_and_equal(cost):
    made = genuine(cost)
    assert made == cost == Cost.from_json(made.to_json())
    assert made is not cost


@pytest.mark.parametrize("cost", FORGED.values(), ids=FORGED)
def test_a_forged_cost_is_refused(cost):
    with pytest.raises(TacitError) as refusal:
        genuine(cost)
    assert refusal.value.code in {"bad-parameter", "no-guarantee"}


def test_what_may_be_nested_can_be_read_again():
    deepest = bent(nested(16))
    assert Cost.from_json(genuine(deepest).to_json()) == deepest
