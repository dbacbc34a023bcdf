"""The display of a cost in accounting: as the expression that builds it, and as a table of its readings."""

from __future__ import annotations

import math
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

from tacit.accounting import _laws
from tacit.accounting._charge import mean_runs
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

    from tacit.accounting._cost import Cost
    from tacit.accounting._laws import LossLaw, Parts


_ADJACENCY = {"add/remove": "one unit added or removed", "replace": "one unit's data replaced"}


def expression(parts: Parts, adjacency: str) -> str:
    """Return the Python expression that builds the cost.

    Examples
    --------
    >>> from fractions import Fraction
    >>> expression(((_laws.PureLoss(Fraction(1, 10)), 3),), "add/remove")
    '3 * Cost.pure(0.1)'
    """
    if not parts:
        return "Cost.zero()" if adjacency == "add/remove" else f'Cost.zero("{adjacency}")'
    return " + ".join(
        _law(law, adjacency) if times == 1 else f"{times} * {_law(law, adjacency)}" for law, times in parts
    )


def _law(law: LossLaw, adjacency: str) -> str:
    more = "" if adjacency == "add/remove" else f', adjacency="{adjacency}"'
    match law:
        case _laws.SampledLoss(q, inner):
            return f"{_whole(inner, adjacency)}.sampled({shown(q)})"
        case _laws.GroupLoss(m, inner):
            return f"{_whole(inner, adjacency)}.group({m})"
        case _laws.ShuffledLoss(n, epsilon0):
            return f"Cost.pure({shown(epsilon0)}{more}).shuffled({n})"
        case _laws.ShuffledResponseLoss(n, epsilon, k):
            return f"Cost.randomized_response({shown(epsilon)}, categories={k}{more}).shuffled({n})"
        case _laws.ParallelLoss(branches):
            each = [expression(branch, adjacency) for branch in branches]
            return f"Cost.parallel({', '.join(each if len(each) > 1 else [*each, 'Cost.zero()'])})"
        case _laws.BestOfLoss(runs, parameter, candidates):
            each = [expression(one, adjacency) for one in candidates]
            value = f"gamma={shown(parameter)}"
            if runs != "logarithmic":
                value = f"runs={shown(mean_runs(runs, parameter))}"
            return f'Cost.best_of({", ".join(each)}, {value}, law="{runs}")'
        case _:
            return _constructor(law, more)


def _constructor(law: LossLaw, more: str) -> str:
    """Return the call that builds a law without other laws in it."""
    match law:
        case _laws.GaussianLoss(sigma, s):
            return f"Cost.gaussian(sigma={shown(sigma)}, sensitivity={shown(s)}{more})"
        case _laws.LaplaceLoss(scale, s):
            return f"Cost.laplace(scale={shown(scale)}, sensitivity={shown(s)}{more})"
        case _laws.DiscreteLaplaceLoss(scale, s):
            return f"Cost.discrete_laplace(scale={shown(scale)}, sensitivity={shown(s)}{more})"
        case _laws.DiscreteGaussianLoss(sigma, s):
            return f"Cost.discrete_gaussian(sigma={shown(sigma)}, sensitivity={shown(s)}{more})"
        case _laws.DiscreteGaussianVectorLoss(sigma, squared):
            root = shown(Fraction(repr(math.sqrt(squared))))
            return f"Cost.discrete_gaussian(sigma={shown(sigma)}, sensitivity={root}, dimension=2{more})"
        case _laws.RandomizedResponseLoss(epsilon):
            return f"Cost.randomized_response({shown(epsilon)}{more})"
        case _laws.CategoricalResponseLoss(epsilon, k):
            return f"Cost.randomized_response({shown(epsilon)}, categories={k}{more})"
        case _laws.BoundedRangeLoss(epsilon):
            return f"Cost.exponential({shown(epsilon)}{more})"
        case _laws.PureLoss(epsilon):
            return f"Cost.pure({shown(epsilon)}{more})"
        case _laws.ApproximateLoss(epsilon, delta):
            return f"Cost.approximate({shown(epsilon)}, {shown(delta)}{more})"
        case _laws.ZCDPLoss(rho):
            return f"Cost.zcdp({shown(rho)}{more})"
        case _laws.GDPLoss(mu):
            return f"Cost.gdp({shown(mu)}{more})"
        case _laws.RenyiLoss(curve):
            points = ", ".join(f"{shown(order)}: {shown(value)}" for order, value in curve)
            return f"Cost.renyi({{{points}}}{more})"
    raise TypeError(type(law).__name__)


def words(law: LossLaw) -> str:
    """Return the kind of a law in words, for messages.

    Examples
    --------
    >>> words(_laws.ZCDPLoss(Fraction(1, 10)))
    'a part known only by rho'
    """
    match law:
        case _laws.GaussianLoss():
            return "Gaussian noise"
        case _laws.LaplaceLoss():
            return "Laplace noise"
        case _laws.DiscreteLaplaceLoss():
            return "discrete Laplace noise"
        case _laws.DiscreteGaussianLoss() | _laws.DiscreteGaussianVectorLoss():
            return "discrete Gaussian noise"
        case _laws.RandomizedResponseLoss() | _laws.CategoricalResponseLoss():
            return "randomized response"
        case _laws.ZCDPLoss():
            return "a part known only by rho"
        case _laws.RenyiLoss():
            return "a part known only by a Renyi curve"
        case _laws.SampledLoss():
            return "a sample"
        case _laws.GroupLoss():
            return "a group"
        case _laws.ShuffledLoss() | _laws.ShuffledResponseLoss():
            return "shuffled reports"
        case _laws.ParallelLoss():
            return "parallel branches"
        case _laws.BestOfLoss():
            return "the best of several runs"
        case _:
            return "a part known only by epsilon"


def _whole(parts: Parts, adjacency: str) -> str:
    text = expression(parts, adjacency)
    return text if len(parts) == 1 and parts[0][1] == 1 else f"({text})"


def rows(cost: Cost) -> list[tuple[str, str]]:
    """Return the readings of the cost, line by line; those that do not exist are skipped."""
    lines = [("made of", repr(cost)), ("neighbours differ by", _ADJACENCY[cost.adjacency])]
    readings: dict[str, Callable[[], float]] = {
        "epsilon": lambda: cost.epsilon(delta=0),
        "odds move by at most": lambda: cost.odds,
        "epsilon at delta 1e-6": lambda: cost.epsilon(delta=1e-6),
        "rho (zCDP)": lambda: cost.rho,
        "attacker's advantage": lambda: cost.advantage,
    }
    for name, reading in readings.items():
        try:
            lines.append((name, f"{reading():.6g}"))
        except TacitError:
            continue
    return lines


def html(cost: Cost) -> str:
    """Return a small HTML table for notebooks."""
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(value)}</td></tr>"
        for name, value in rows(cost)
    )
    return f"<table><caption>Cost</caption>{body}</table>"


def table(cost: Cost) -> Table:
    """Return a table for the terminal."""
    from rich.table import Table

    out = Table(title="Cost", show_header=False)
    for name, value in rows(cost):
        out.add_row(name, value)
    return out


def shown(value: Fraction) -> str:
    """Show a number as people write it: as a short exact decimal if there is one, else as a fraction.

    Examples
    --------
    >>> shown(Fraction(1, 10)), shown(Fraction(3)), shown(Fraction(1, 3))
    ('0.1', '3', 'Fraction(1, 3)')
    """
    if value.denominator == 1 and value < 10**16:
        return str(value.numerator)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isfinite(number) and Fraction(repr(number)) == value:
        return repr(number)
    return repr(value)
