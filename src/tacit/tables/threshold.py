"""Private keys: which groups exist is told only of groups with enough units, within delta.

A unit reaches at most k groups. Numbers of units get discrete Laplace noise with a = exp(-epsilon/k); a
group appears if its noisy number is at least 1 + t. Groups that both neighbours have are epsilon-private
together (L1 sensitivity k). A group that only the larger neighbour has holds one unit, the one in question;
it appears with probability P(noise >= t) = a^t / (1+a), and there are at most k of them: delta = k a^t /
(1+a). Groups without units never appear.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import TYPE_CHECKING

from tacit.errors import bad_parameter

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = ["threshold"]

_DIGITS = 60


def threshold(epsilon: Fraction, delta: Fraction, groups: int, *, times: int = 1) -> int:
    """Return 1 + t: the smallest noisy number of units at which a group may be shown.

    Parameters
    ----------
    epsilon
        Of the noisy numbers of units under add/remove.
    delta
        The total probability with which a group may be shown wrongly.
    groups
        The most groups one unit reaches.
    times
        2 under replace: the group of two of the add/remove cost, (2 epsilon, delta (1 + exp(epsilon))).

    Examples
    --------
    >>> from fractions import Fraction
    >>> threshold(Fraction(1), Fraction(1, 10**6), 1)
    15
    """
    if not 0 < delta < 1:
        raise bad_parameter("delta", "between 0 and 1", float(delta), fix="delta=1e-6")
    with localcontext() as context:
        context.prec = _DIGITS
        per_step = Decimal(epsilon.numerator) / Decimal(epsilon.denominator) / groups
        allowed = Decimal(delta.numerator) / Decimal(delta.denominator)
        if times == 2:
            whole = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
            allowed /= 1 + whole.exp()
        t = max(1, math.floor(math.log(groups / float(allowed)) / float(per_step)) - 2)
        while not _holds(t, per_step, groups, allowed):
            t += 1
        while t > 1 and _holds(t - 1, per_step, groups, allowed):
            t -= 1
    return 1 + t


def _holds(t: int, per_step: Decimal, groups: int, allowed: Decimal) -> bool:
    """Check k a^t <= delta (1 + a), every rounding against us."""
    slack = Decimal(10) ** (10 - _DIGITS)
    with localcontext() as context:
        context.rounding = ROUND_CEILING
        left = groups * (-per_step * t).exp() * (1 + slack)
    with localcontext() as context:
        context.rounding = ROUND_FLOOR
        right = allowed * (1 + (-per_step).exp()) * (1 - slack)
    return left <= right
