"""Odds that explain a cost: what an attacker can believe after a release, and how well any test can do.

Figures are rounded outwards, so a bound never looks better than it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from tacit.bisection import halved
from tacit.errors import TacitError
from tacit.parameters import Probability, RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting import Cost
    from tacit.exact import Number


@dataclass(frozen=True, slots=True)
class Belief:
    """The smallest and the largest belief that an attacker with a given prior can reach."""

    prior: float
    at_most: float
    at_least: float


def believe(prior: float, loss: float) -> Belief:
    """Return the beliefs that are reachable if the log-odds move by at most `loss` in either direction.

    Bayes: posterior odds = prior odds x likelihood ratio, and the ratio lies in [exp(-loss), exp(loss)].

    Examples
    --------
    >>> round(believe(0.5, 0.5).at_most, 4)
    0.6225
    """
    Probability().read("prior", prior)
    return Belief(prior, *(_moved(prior, sign * loss) for sign in (1, -1)))


def _moved(prior: float, shift: float) -> float:
    if prior in {0.0, 1.0}:
        return prior
    return 1 / (1 + math.exp(min(700.0, -shift) + math.log1p(-prior) - math.log(prior)))


def pure_epsilon(cost: Cost) -> float | None:
    """Return the epsilon of a pure cost, or None where no finite epsilon holds without a delta."""
    epsilon = epsilon_at(cost, 0)
    return epsilon if math.isfinite(epsilon) else None


def epsilon_at(cost: Cost, delta: Number) -> float:
    """Return the epsilon at `delta`, or infinity where the cost gives no guarantee at that delta."""
    try:
        return cost.epsilon(delta=delta)
    except TacitError as refusal:
        if refusal.code != "no-guarantee":
            raise
        return math.inf


def exceeded_with(cost: Cost, probability: float) -> float | None:
    """Return the smallest t, rounded up, with P(loss > t) <= `probability`; None if there is no such t."""
    low, high = 0.0, 1.0
    while cost.loss_exceeds(high) > probability:
        low, high = high, 2 * high
        if high > 512:  # a factor of 10^222 is not a limit worth stating
            return None
    return halved(lambda t: cost.loss_exceeds(t) <= probability, low, high, times=18)[1]


def best_test(cost: Cost) -> Callable[[float], float]:
    """Return a function from the rate of false alarms to the largest rate of true alarms of any test.

    The bound is that of `Cost.tradeoff`, but the curve of delta is computed once for many rates: for every e,
    true <= exp(e) false + delta(e) and 1 - false <= exp(e) (1 - true) + delta(e) (Wasserman and Zhou 2010).
    """
    top = epsilon_at(cost, 0)
    if math.isinf(top):
        top = epsilon_at(cost, 1e-9)
    top = min(top, 50.0)
    curve = [(top * step / 32, cost.delta(epsilon=top * step / 32)) for step in range(33)]

    def most_true_alarms(rate: float) -> float:
        limits = ((math.exp(e) * rate + delta, 1 - math.exp(-e) * (1 - rate - delta)) for e, delta in curve)
        return min(1.0, max(rate, min(min(pair) for pair in limits)))

    return most_true_alarms


def read_share(name: str, value: Number, *, example: Number = 0.5) -> float:
    """Read a probability that is greater than 0 and less than 1; `example` is a valid parameter."""
    return float(RealNumber(above=0, below=1, instead=example).read(name, value))


def shown_odds(chance: float) -> str:
    """Write an upper bound on a chance as odds out of 100; the odds shown are never below the bound.

    Between 55 % and 95 % the odds are whole numbers, followed by the percentage, rounded up, where it is not
    whole. Near even odds and near certainty whole numbers would hide the difference, so the odds get
    decimals, rounded up.

    Examples
    --------
    >>> shown_odds(0.5), shown_odds(0.6224594), shown_odds(0.75)
    ('50:50', '62:38 (62.3 %)', '75:25')
    >>> shown_odds(0.5025), shown_odds(0.9933072), shown_odds(0.99995)
    ('50.3:49.7', '99.4:0.6', '99.995:0.005')
    """
    hundred = 100 * chance
    if chance in {0.0, 0.5, 1.0}:
        return f"{hundred:.0f}:{100 - hundred:.0f}"
    if 55 <= hundred <= 95:
        yes, exact = math.floor(hundred + 0.5), _percents_up(hundred, 1)
        return f"{yes}:{100 - yes}" + ("" if exact == f"{yes}.0" else f" ({exact} %)")
    detail = min(abs(hundred - 50), hundred, 100 - hundred) / 2
    digits = next((d for d in range(1, 13) if 10.0**-d <= detail), 12)
    hundredths = Decimal(_percents_up(hundred, digits))
    sides = (f"{side.normalize():f}" for side in (hundredths, 100 - hundredths))
    return ":".join(sides)


def _percents_up(hundred: float, digits: int) -> str:
    """Round a percentage up to this many digits; a tolerance of 1e-9 of the last digit keeps exact values."""
    return str(Decimal(math.ceil(hundred * 10**digits - 1e-9)).scaleb(-digits))


def shown_factor(loss: float) -> str:
    """Write exp(loss), rounded up.

    Examples
    --------
    >>> shown_factor(0.01), shown_factor(0.5), shown_factor(3)
    ('1.0101', '1.6488', '20.09')
    >>> shown_factor(60), shown_factor(1e9)
    ('1.15e+26', 'exp(1e+09)')
    """
    if loss > 700:  # more than a float can hold
        return f"exp({number_up(loss)})"
    factor = math.exp(loss)
    digits = 4 if factor < 10 else 2 if factor < 1e4 else 0
    if factor >= 1e12:
        return number_up(factor, 3)
    return f"{math.ceil(factor * 10**digits) / 10**digits:,.{digits}f}"


def at_most(share: float, digits: int = 2) -> str:
    """Write an upper bound as a percentage, rounded up.

    Examples
    --------
    >>> at_most(0.24491866), at_least(0.37754067)
    ('24.50 %', '37.75 %')
    """
    return f"{math.ceil(share * 10 ** (digits + 2) - 1e-9) / 10**digits:.{digits}f} %"


def at_least(share: float, digits: int = 2) -> str:
    """Write a lower bound as a percentage, rounded down."""
    return f"{math.floor(share * 10 ** (digits + 2) + 1e-9) / 10**digits:.{digits}f} %"


def number_up(value: float, digits: int = 4) -> str:
    """Write a number with this many significant digits, rounded up.

    Examples
    --------
    >>> number_up(0.5), number_up(1.06069), number_up(123456.7)
    ('0.5', '1.061', '1.235e+05')
    """
    if not math.isfinite(value) or value <= 0:
        return f"{value:g}"
    rounded = f"{value:.{digits}g}"
    if float(rounded) >= value * (1 - 1e-12):
        return rounded
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return f"{float(rounded) + step:.{digits}g}"
