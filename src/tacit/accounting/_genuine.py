"""Genuine costs in accounting: a cost made anew of Tacit's own laws and plain exact numbers, or a refusal."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, cast, get_args

from tacit.accounting._cost import Cost
from tacit.accounting._json import DEEPEST
from tacit.accounting._laws import LossLaw
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code
from tacit.parameters import Instance

_LAWS = frozenset(get_args(LossLaw))

_COST = Instance(Cost, "cost=tc.Cost.pure(0.5)", why="a bare number does not say what it bounds")

_LONGEST = 2**4096  # no number of a cost is longer


def genuine(cost: object) -> Cost:
    """Return an equal cost, made anew of Tacit's own laws and plain numbers; refuse what is not made of them.

    Guarantee: the result holds no object of the caller's own class, and every check of a law was done again.
    So what it says, what it writes and what it takes from a budget are the same cost, whatever was put into
    the caller's object after its own checks, and `Cost.from_json` reads what it writes.

    Examples
    --------
    >>> genuine(Cost.pure(1).sampled(0.1)) == Cost.pure(1).sampled(0.1)
    True
    """
    cost = _COST.read("cost", cost)
    if type(cost) is not Cost:
        raise _not_genuine(cost)
    try:
        copy = Cost(_rebuilt(cost.parts, 0), _rebuilt(cost.adjacency, 0))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise _not_genuine(cost) from None
    if copy.parts != cost.parts:  # both are of plain classes now; equal laws stand apart, or out of order
        raise _not_genuine(cost)
    return copy


def _rebuilt(value: object, depth: int) -> Any:
    """Return laws, tuples, numbers and texts made anew; a class that is not one of these is refused."""
    kind = type(value)
    if kind is tuple:
        if depth > DEEPEST:
            must_be = f"nested at most {DEEPEST} levels deep"
            raise bad_parameter("cost", must_be, "a deeper one", fix=Code("cost=tc.Cost.pure(0.5)"))
        return tuple([_rebuilt(one, depth) for one in cast("tuple[object, ...]", value)])
    if kind in _LAWS:
        fields = cast("Any", kind).__slots__  # a curve is no level of its own
        return kind(*[_rebuilt(getattr(value, name), depth + (name != "curve")) for name in fields])
    if kind is str or (kind is int and 0 < cast("int", value) < _LONGEST):
        return value
    if kind is Fraction:
        exact = cast("Fraction", value)
        if type(exact.numerator) is type(exact.denominator) is int and exact.denominator > 0:
            return Fraction(exact.numerator, exact.denominator)
    raise TypeError(kind)


def _not_genuine(cost: Cost) -> TacitError:
    return bad_parameter(
        "cost",
        "a Cost made of Tacit's own laws",
        type(cost),
        why="a subclass, or a law of another package, could record one cost and charge another",
        fix=Code("cost=tc.Cost.pure(0.5)"),
    )
