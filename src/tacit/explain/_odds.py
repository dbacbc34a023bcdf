"""Odds that explain a cost: what an attacker can believe after a release, and how well any test can do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Set
from tacit.parameters import Probability

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting import Cost


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
    for _ in range(18):
        middle = (low + high) / 2
        if cost.loss_exceeds(middle) > probability:
            low = middle
        else:
            high = middle
    return high


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


def read_share(name: str, value: Number, *, example: object = 0.5) -> float:
    """Read a probability that is greater than 0 and less than 1; `example` is a valid parameter."""
    share = rational(name, value)
    if share >= 1:
        raise bad_parameter(name, "greater than 0 and less than 1", value, fix=Set(**{name: example}))
    return float(share)
