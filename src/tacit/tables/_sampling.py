"""A sample of a table's units: each is kept with probability p, in secret, and the plan costs less for it.

The probability is k/2^32: the first 32 bits of a keyed hash of the unit's name are compared with k. A unit is
in the sample with all its rows, in every statement of one release, or with none. So the release is the
mechanism on the sample, and its cost is the mechanism's cost, sampled (docs/proofs/tables.md).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting import Cost
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Set
from tacit.mechanisms import sampling_secret
from tacit.tables._steps import Ask

if TYPE_CHECKING:
    from tacit.core import Unit

MOST_SAMPLED = 2**32


def read_sample(share: Number) -> int:
    """Round a probability to a whole number of 2^-32.

    Examples
    --------
    >>> read_sample(0.25) == 2**30
    True
    """
    p = rational("share", share)
    k = round(p * MOST_SAMPLED)
    if not 0 < k < MOST_SAMPLED:
        raise bad_parameter(
            "share", "between 0 and 1, such as 0.05 for 5 percent", share, fix=Set(share=0.05)
        )
    return k


def share_of_sample(sample: int) -> Fraction:
    """Return the exact probability that a unit is kept."""
    return Fraction(sample, MOST_SAMPLED)


def check_sample(unit: Unit, adjacency: str) -> None:
    """Refuse samples for which the cost is not proven, or which cannot be drawn."""
    if adjacency != "add/remove":
        raise TacitError(
            "not-allowed",
            "a sample needs the adjacency add/remove",
            why="the lower cost of a sample is proven for a unit that is added or removed, not replaced",
            fix="ask without the sample, or declare the adjacency add/remove",
        )
    if unit.is_row:
        raise TacitError(
            "not-allowed",
            "a sample is drawn by the name of the unit, but here each row is a unit and has no name",
            why="the same rows must be in the sample for every number of the answer",
            fix="ask without the sample, or declare the column that names the unit",
        )


def drawn_sample() -> tuple[tuple[str], ...]:
    """Draw the secret of one sample, as the small table that the statements read."""
    return ((sampling_secret(),),)


def inner_ask(ask: Ask, sample: int) -> Ask:
    """Return what the mechanisms on the sample may cost, so that the whole costs what was asked for.

    For (epsilon, delta) with probability q they may cost (ln(1 + (exp(epsilon) - 1)/q), delta/q).
    """
    q = share_of_sample(sample)
    if ask.epsilon is None:
        raise TacitError(
            "not-allowed",
            "Tacit knows the cost of a sample in epsilon, but not in rho",
            why="how much a sample lowers the cost depends on more than rho alone",
            fix=Set(epsilon=0.5),
        )
    guess = Fraction(math.log1p(math.expm1(float(ask.epsilon)) / float(q)))
    while Cost.pure(guess).sampled(q).epsilon(delta=0) > ask.epsilon:
        guess *= 1 - Fraction(1, 2**40)
    if not ask.delta / q < 1:
        raise bad_parameter(
            "delta", f"below the share of the sample, {float(q):g}", float(ask.delta), fix=Set(delta=1e-6)
        )
    return Ask(guess, ask.delta / q, laplace=True)


def amplified_ask(inner: Ask, sample: int) -> Ask:
    """Return what mechanisms that cost so much on the sample cost in all."""
    q = share_of_sample(sample)
    whole = Cost.pure(inner.epsilon or 0).sampled(q).epsilon(delta=0)
    return Ask(Fraction(whole), inner.delta * q)
