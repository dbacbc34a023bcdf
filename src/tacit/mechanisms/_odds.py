"""The odds of a local randomizer: whole numbers A : B with B = 2^32, which a browser can draw as well."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from tacit.errors import bad_parameter
from tacit.fixes import Set
from tacit.mechanisms._mechanism import exactly_one
from tacit.parameters import Integer, RealNumber

if TYPE_CHECKING:
    from tacit.exact import Number

#: B, the weight of every answer but the favoured ones.
UNIT_ODDS: Final = 1 << 32
_MOST_EPSILON = 500


def read_odds(epsilon: Number | None, odds: int | None) -> tuple[int, Fraction, Fraction]:
    """Return A, the actual epsilon ln(A/B) rounded up, and the epsilon that was asked for.

    The actual epsilon is never above what was asked: A/B <= exp(epsilon), and where rounding ln(A/B) up would
    pass the request, the request itself is an upper bound.
    """
    if exactly_one(epsilon=epsilon, odds=odds) == "odds":
        odds = Integer(UNIT_ODDS + 1, instead=2 * UNIT_ODDS).read("odds", odds)
        actual = log_up(Fraction(odds, UNIT_ODDS))
        if actual > _MOST_EPSILON:
            raise bad_parameter("odds", f"at most exp({_MOST_EPSILON}) times {UNIT_ODDS}", "more")
        return odds, actual, actual
    asked = RealNumber(
        above=0, most=_MOST_EPSILON, instead=1, why="such a report would nearly always be the true answer"
    ).read("epsilon", epsilon)
    made = largest_odds(asked)
    if made == UNIT_ODDS:
        raise bad_parameter(
            "epsilon",
            "at least 1e-9 for a report",
            epsilon,
            why="the odds are whole numbers to 2^32; below this epsilon they would be 1 : 1",
            fix=Set(epsilon=0.1),
        )
    return made, min(asked, log_up(Fraction(made, UNIT_ODDS))), asked


def largest_odds(epsilon: Fraction) -> int:
    """Return floor(2^32 exp(epsilon)), exactly: digits are added until both ends of the error agree.

    Examples
    --------
    >>> largest_odds(Fraction(1))
    11674931554
    """
    digits = 60 + int(epsilon)
    while True:
        with localcontext() as context:
            context.prec = digits
            near = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp() * UNIT_ODDS
            spread = near.scaleb(8 - digits)  # far above the rounding of quotient, exponential and product
            low = (near - spread).to_integral_value(ROUND_FLOOR)
            if low == (near + spread).to_integral_value(ROUND_FLOOR):
                return int(low)
        digits *= 2


def log_up(ratio: Fraction) -> Fraction:
    """Return |ln ratio| rounded up to 25 significant digits.

    Examples
    --------
    >>> float(log_up(Fraction(1, 3)))
    1.0986122886681098
    """
    with localcontext() as context:
        gap = abs(ratio.numerator - ratio.denominator)
        # a ratio near 1 needs the digits before which its logarithm has zeros
        context.prec = 60 + max(0, ratio.denominator.bit_length() - gap.bit_length()) // 3
        above = abs((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()) * (1 + Decimal(10) ** -45)
        context.prec = 25
        context.rounding = ROUND_CEILING
        return Fraction(+above)
