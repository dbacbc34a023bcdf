"""What votes of teachers reveal, read from the votes themselves: for teaching, because it is itself private.

Where nearly all teachers agree, noise hardly ever changes the label, and less is revealed than the cost of
the plan says (Papernot 2018, theorem 6). But this smaller figure depends on the votes. It may be published
only with noise of its own, by smooth sensitivity (docs/proofs/pate.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Set
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ORDERS = (1.25, 1.5, 1.75, *range(2, 65), *range(72, 257, 8), 320, 384, 512)
_CELLS = 8  # of the search for the smooth sensitivity, in one vote's step
_FURTHEST = 5_000  # steps; beyond them the largest possible change counts
_MIN_SENSITIVITY = 1e-12  # a smooth sensitivity below it is raised to it


def log_doubt(votes: Any, sigma: float) -> NDArray[np.float64]:
    """Return ln q for each line of votes: q bounds the chance that noise changes the label.

    It is the sum over the other classes of erfc((n* - n_j) / (2 sigma)) / 2, at most 1 - 1/m.

    Examples
    --------
    >>> float(log_doubt([250] + [0] * 9, 40).round(6))
    -10.019228
    """
    from scipy.special import log_ndtr, logsumexp

    counts = np.sort(np.asarray(votes, dtype=np.float64), axis=-1)
    gaps = counts[..., -1:] - counts[..., :-1]
    chance = logsumexp(log_ndtr(-gaps / (sigma * math.sqrt(2))), axis=-1)
    return np.asarray(np.minimum(chance, math.log1p(-1 / counts.shape[-1])))


def divergence_of_doubt(log_q: Any, sigma: float, order: float) -> NDArray[np.float64]:
    """Return the Renyi divergence of one noisy label for each ln q (Papernot 2018, theorem 6, proposition 8).

    It is never above order / sigma^2, which holds for all votes.

    Examples
    --------
    >>> [f"{divergence_of_doubt(-10.019228, 40, order):.4g}" for order in (2, 10, 20, 50)]
    ['1.527e-05', '2.333e-05', '5.321e-05', '0.002083']
    """
    logs = np.asarray(log_q, dtype=np.float64)
    plain = order / sigma**2
    upper = np.maximum(sigma * np.sqrt(-logs), 1 + 1e-9)  # mu_2; mu_1 is one more
    e1, e2 = (upper + 1) / sigma**2, upper / sigma**2
    allowed = (upper - 1) * e2 - upper * np.log((upper + 1) / (upper - 1))
    power = (logs + e2) * (upper - 1) / upper
    holds = (upper + 1 >= order) & (logs <= allowed) & (power < 0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        keep = np.log1p(-np.exp(logs))
        agree = keep - np.log(-np.expm1(np.minimum(power, 0)))
        differ = e1 - logs / upper
        total = np.logaddexp(keep + (order - 1) * agree, logs + (order - 1) * differ)
        divergence = np.clip(total / (order - 1), 0, plain)
    return np.where(holds, divergence, plain)


def published_cost(order: float, beta: float, spread: float) -> float:
    """Return the Renyi divergence of f + S * spread * N(0, 1), S the beta-smooth sensitivity of f.

    Neighbours have means at most the smaller S apart, and deviations whose quotient lies within exp(beta).

    Examples
    --------
    >>> round(published_cost(10, 0.01, 20), 4)
    0.0164
    """
    factor = 1 - order * -math.expm1(-2 * beta)
    if factor <= 0:
        return math.inf
    mean = order * math.exp(-2 * beta) / (2 * spread**2 * factor)
    distances = []
    for log_ratio in (-beta, beta):
        variance = 1 + order * math.expm1(2 * log_ratio)
        distances.append(log_ratio + (2 * log_ratio - math.log(variance)) / (2 * (order - 1)))
    return mean + max(0.0, *distances)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class VoteReading:
    """What a series of noisy labels reveals, read from the exact votes: **for teaching**.

    The data-dependent epsilon is itself private. Use it on votes that you made up or that are public; Tacit
    charges, filters and certifies by the figure that holds for all votes. `published` is the only form in
    which the figure of private votes could be shown.

    Parameters
    ----------
    votes
        How many teachers vote for each class (columns) on each query (rows).
    sigma
        The deviation of the noise on each number of votes.
    delta
        At which delta epsilon is read.

    Examples
    --------
    >>> import tacit as tc
    >>> clear = tc.learn.VoteReading([[250, 0, 0]] * 100, sigma=40, delta=1e-5)
    >>> round(clear.data_independent, 3), round(clear.data_dependent, 3)
    (1.356, 0.191)
    """

    votes: NDArray[np.int64]
    sigma: float
    delta: float

    def __init__(self, votes: Any, *, sigma: Number, delta: Number) -> None:
        counts = np.asarray(votes)
        if counts.ndim != 2 or counts.shape[1] < 2 or not len(counts) or counts.dtype.kind not in "iu":
            raise bad_parameter(
                "votes", "whole numbers: a line for each query, a column for each class", votes,
                fix=Set(votes=[[90, 10], [40, 60]]),
            )  # fmt: skip
        object.__setattr__(self, "votes", counts)
        object.__setattr__(self, "sigma", float(rational("sigma", sigma)))
        object.__setattr__(self, "delta", float(rational("delta", delta)))

    @property
    def data_independent(self) -> float:
        """The epsilon that holds for all votes: what a plan is charged."""
        from tacit.accounting import Cost

        answer_cost = Cost.gaussian(sigma=self.sigma, sensitivity=math.sqrt(2))
        return (len(self.votes) * answer_cost).epsilon(delta=self.delta)

    @property
    def data_dependent(self) -> float:
        """The epsilon of these votes by Renyi divergences: private itself, never to be published."""
        return min(_converted(self.divergence(order), order, self.delta) for order in _ORDERS)

    def divergence(self, order: float) -> float:
        """Return the data-dependent Renyi divergence of all labels together: private itself."""
        return float(divergence_of_doubt(self._doubts(), self.sigma, order).sum())

    def smooth_sensitivity(self, order: float, beta: float) -> float:
        """Return a beta-smooth bound on how far one teacher can move `divergence` at this order.

        It is the largest exp(-beta d) times the largest change that one more step makes d steps from here.
        """
        top = len(self.votes) * order / self.sigma**2  # no change is larger
        steps = min(_FURTHEST, math.ceil(max(0.0, math.log(top / _MIN_SENSITIVITY)) / beta))
        depths, often = np.unique(self._depths(), return_counts=True)
        reach = sum(k * self._largest_steps(x, steps, order) for x, k in zip(depths, often, strict=True))
        weighed = np.exp(-beta * np.arange(steps + 1)) * reach
        return max(float(weighed.max()), math.exp(-beta * (steps + 1)) * top, _MIN_SENSITIVITY)

    def published(self, order: float, *, beta: float, spread: float) -> tuple[float, float]:
        """Return the noisy divergence at this order, and the divergence that its publication adds.

        The noise is Gaussian with ``spread`` times the smooth sensitivity, in floats (numerics: idealised).
        An upper value for a report needs a margin of a few deviations on top.

        Examples
        --------
        >>> reading = VoteReading([[250, 0, 0]] * 100, sigma=40, delta=1e-5)
        >>> noisy, added = reading.published(10, beta=0.02, spread=10)
        >>> round(added, 4)
        0.0845
        """
        from tacit.mechanisms import RoundedGaussian

        RealNumber(above=1, instead=10).read("order", order)
        limit = -math.log1p(-1 / order) / 2 * (1 - 1e-9)  # below it the cost is finite, rounded as it may be
        why = f"at order {order:g}, the noise of neighbours would differ too much"
        RealNumber(above=0, below=limit, why=why, instead=float(f"{0.2 / order:.2g}")).read("beta", beta)
        extra_cost = published_cost(order, beta, spread)
        draw = int(RoundedGaussian(sigma=2**30, sensitivity=1).release(0)) / 2**30
        return self.divergence(order) + draw * spread * self.smooth_sensitivity(order, beta), extra_cost

    def _doubts(self) -> NDArray[np.float64]:
        return log_doubt(self.votes, self.sigma)

    def _depths(self) -> NDArray[np.float64]:
        """Return x with q = (m - 1) erfc(x) / 2 for each query: one teacher moves x by at most 1 / sigma."""
        from scipy.special import ndtri_exp

        return np.asarray(-ndtri_exp(self._doubts() - math.log(self.votes.shape[1] - 1)) / math.sqrt(2))

    def _largest_steps(self, x: float, steps: int, order: float) -> NDArray[np.float64]:
        """Return the largest change of the divergence by one step, from anywhere within d = 0, 1, ... of x.

        The divergence does not rise with x, so its values at the ends of a cell bound the change inside.
        """
        from scipy.special import log_ndtr

        classes = self.votes.shape[1]
        fine = self.sigma * _CELLS  # cells of one grid for all votes, so that the bound is smooth itself
        at = (math.floor(x * fine) + np.arange(-(steps + 1) * _CELLS, (steps + 1) * _CELLS + 2)) / fine
        logs = np.minimum(log_ndtr(-at * math.sqrt(2)) + math.log(classes - 1), math.log1p(-1 / classes))
        values = divergence_of_doubt(logs, self.sigma, order)
        changes = values[: -_CELLS - 1] - values[_CELLS + 1 :]
        middle = (steps + 1) * _CELLS
        down = np.maximum.accumulate(changes[:middle][::-1])[_CELLS - 1 :: _CELLS]
        up = np.maximum.accumulate(changes[middle:])[::_CELLS]
        return np.maximum(down[: steps + 1], up[: steps + 1])

    def __repr__(self) -> str:
        return (
            f"{len(self.votes):,} noisy labels, sigma {self.sigma:g}, delta {self.delta:g}\n"
            f"  epsilon for all votes:   {self.data_independent:.4g} (charged)\n"
            f"  epsilon of these votes:  {self.data_dependent:.4g} (for teaching: it is itself private)"
        )


def _converted(divergence: float, order: float, delta: float) -> float:
    """Return epsilon at delta (Canonne, Kamath and Steinke 2020)."""
    return max(0.0, divergence + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1))
