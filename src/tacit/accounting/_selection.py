"""Private selection in accounting: a random number of runs, of which only the best is shown.

Papernot and Steinke (2022) bound the Renyi divergence of the result by that of one run.
`docs/proofs/costs.md` has the argument.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from tacit.accounting.numeric import exp_down, log_down, log_up, round_up
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable

#: The Renyi orders at which the curve of a selection is read.
ORDERS: Final[tuple[Fraction, ...]] = (
    *(Fraction(k, 20) for k in range(21, 41)),
    *(Fraction(k, 4) for k in range(9, 32)),
    *(Fraction(k) for k in range(8, 65)),
    *(Fraction(math.floor(64 * 1.15**k)) for k in range(1, 53)),
)


def tail_power(runs: str) -> int:
    """Return 1 + eta of a truncated negative binomial law: 1 for logarithmic, 2 for geometric.

    Examples
    --------
    >>> tail_power("logarithmic"), tail_power("geometric")
    (1, 2)
    """
    return 1 + (runs == "geometric")


def mean_runs(runs: str, parameter: Fraction) -> Fraction:
    """Return the mean number of runs, rounded up; the parameter is gamma, or the mean of a Poisson law.

    Examples
    --------
    >>> round(float(mean_runs("logarithmic", Fraction("0.02692"))), 2)
    10.0
    >>> mean_runs("geometric", Fraction(1, 10))
    Fraction(10, 1)
    """
    match runs:
        case "poisson":
            return parameter
        case "geometric":
            return 1 / parameter
        case _:
            low = log_down(1 / parameter)  # 0 where gamma is too near to 1
            most = 1 / parameter  # since log(1 / gamma) >= 1 - gamma
            return min(most, round_up((1 / parameter - 1) / low)) if low > 0 else most


def gamma_for(runs: str, mean: Fraction) -> Fraction:
    """Return the gamma whose mean number of runs is the given one, to six digits for the logarithmic law.

    Examples
    --------
    >>> [float(gamma_for("logarithmic", Fraction(mean))) for mean in (5, 10, 50)]
    [0.0699203, 0.0269183, 0.00352944]
    """
    RealNumber(above=1, instead=10, why="it is the mean of a random number of runs").read("runs", mean)
    if runs == "geometric":
        return 1 / mean
    target = float(min(mean, Fraction(10**12)))
    low, high = -40.0, 0.0  # log of gamma; the mean falls as gamma grows
    for _ in range(100):
        middle = (low + high) / 2
        found = math.expm1(-middle) / -middle
        low, high = (low, middle) if found < target else (middle, high)
    return Fraction(f"{math.exp((low + high) / 2):.6g}")


def largest_ratio(
    runs: str, gamma: Fraction, curve: Callable[[Fraction], Fraction | None]
) -> Fraction | None:
    """Return the least bound over orders b: (1 + eta) ((1 - 1/b) D_b + log(1/gamma) / b); None if not finite.

    It bounds how much more often one dataset stops at a given quality than its neighbour, in logarithms.
    """
    hidden = log_up(1 / gamma)
    best: Fraction | None = None
    for order in ORDERS:
        value = curve(order)
        if value is None:
            break
        found = tail_power(runs) * ((1 - 1 / order) * value + hidden / order)
        if best is not None and found > 2 * best:
            break  # the first term only grows
        best = found if best is None else min(best, found)
    return best


def selected_epsilon(runs: str, parameter: Fraction, epsilon: Fraction) -> Fraction:
    """Return the pure epsilon of the best of several runs that are epsilon-DP each.

    Examples
    --------
    >>> selected_epsilon("logarithmic", Fraction(1, 10), Fraction(1))
    Fraction(2, 1)
    """
    if runs != "poisson":
        return (1 + tail_power(runs)) * epsilon
    near = exp_down(-epsilon)
    return round_up(epsilon + parameter * (1 - near) / (1 + near))
