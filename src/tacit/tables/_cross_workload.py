"""The noise of cross tables that are planned together: which noise, how much of it, at which epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from tacit.accounting import rho_cap
from tacit.mechanisms import DiscreteLaplace, ResidualNoise
from tacit.strategies import ResidualSets
from tacit.tables._cross_noise import CrossNoise
from tacit.tables._pricing import smallest_epsilon

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.algebra import Contribution
    from tacit.strategies import ColumnSet

Aim = Literal["largest", "sum"]

_MARGIN = 1 - 1e-6  # sigmas are rounded up by less than this
_SHARE_STEPS = 2**32
_FAR = 2**20
_MANY = 200  # largest tables from which on Gaussian noise is taken without comparing


@dataclass(frozen=True, slots=True)
class PaidNoise:
    """The mechanisms of a plan, the noise that they leave on tables, and what was asked for it."""

    mechanisms: tuple[ResidualNoise, ...] | tuple[DiscreteLaplace, ...]
    noise: CrossNoise
    promised: dict[str, Fraction]


@dataclass(frozen=True, slots=True)
class CrossWorkload:
    """The wanted tables, how much each matters, and what one unit can change.

    Parameters
    ----------
    sizes
        How many places each axis has.
    tables
        The wanted tables.
    weights
        What the variance of each counts.
    aim
        Whether the largest weighted variance of a cell is made small, or the sum over all cells.
    who
        The most that one unit can contribute.
    """

    sizes: tuple[int, ...]
    tables: tuple[ColumnSet, ...]
    weights: tuple[float, ...]
    aim: Aim
    who: Contribution

    def priced(self, epsilon: Fraction | None, delta: Fraction, rho: Fraction | None) -> PaidNoise:
        """Choose the noise for a cost: Gaussian with rho, Laplace with epsilon alone, else the better one."""
        promised = {k: v for k, v in (("epsilon", epsilon), ("delta", delta), ("rho", rho)) if v}
        if rho is not None:
            return self.gaussian(rho, promised)
        assert epsilon is not None  # noqa: S101 - the goal was read
        cap = rho_cap(epsilon, delta) if delta else Fraction(0)
        if not cap:
            return self._laplace(epsilon, promised)
        pure = self._laplace(epsilon, {"epsilon": epsilon})
        if len(pure.mechanisms) > _MANY:
            return self.gaussian(cap, promised)
        least = self._loss(np.array([pure.noise.variance(one) for one in self.tables]))
        return self.gaussian(cap, promised) if self._loss(self.gaussian_variances(cap)) <= least else pure

    def within(self, tolerances: NDArray[np.float64], delta: Fraction, confidence: float) -> PaidNoise:
        """Find the smallest epsilon at which each table stays within its error, with this confidence."""
        slack = float(tolerances.max())
        pure = self._laplace(Fraction(1, _FAR), {})  # so wide that the steps of the integers do not matter
        laplace = None
        if not delta or len(pure.mechanisms) <= _MANY:
            laplace = self._laplace_within(pure.noise, tolerances, confidence)
            if not delta:
                return self._laplace(laplace, {"epsilon": laplace})
        from scipy.special import ndtri

        z, cells = float(ndtri((1 + confidence) / 2)), _planned(self).cells
        spread = np.sqrt(self._variances_at_one())

        def fits(epsilon: float) -> bool:
            cap = float(rho_cap(Fraction(epsilon), delta))
            wide = z * spread / math.sqrt(cap) + 0.5 / cells if cap else np.array([math.inf])
            return bool((wide <= tolerances * _MARGIN).all())

        gaussian = smallest_epsilon(fits, slack)
        if laplace is not None and gaussian > laplace:
            return self._laplace(laplace, {"epsilon": laplace})
        return self.gaussian(rho_cap(gaussian, delta), {"epsilon": gaussian, "delta": delta})

    def _laplace_within(
        self, pure: CrossNoise, tolerances: NDArray[np.float64], confidence: float
    ) -> Fraction:
        """Find the smallest epsilon with Laplace noise, from the noise at an epsilon of 1 / _FAR."""
        steps = np.array([pure.step(one) for one in self.tables])
        at_one = np.array([pure.half_width(one, confidence) for one in self.tables]) / _FAR
        whole = len(pure.sets) == 1  # every cell is then a sum of noisy integers

        def kept(epsilon: float) -> bool:
            wide = np.floor(at_one / epsilon + 0.5) if whole else at_one / epsilon + steps
            return bool((wide <= tolerances * (1 if whole else _MARGIN)).all())

        return smallest_epsilon(kept, float(tolerances.max()))

    def alone(self, noise: CrossNoise, promised: dict[str, Fraction], confidence: float) -> float:
        """Return the error of every table if each were measured by itself, with an equal share."""
        count = len(self.tables)
        if noise.law == "laplace":
            scale = Fraction(self.who.l1(1) * count) / promised["epsilon"]
            one = DiscreteLaplace(scale=scale, sensitivity=1)
            return float(one.half_width(Fraction(confidence).limit_denominator(10**9)))
        from scipy.special import ndtri

        rho = promised.get("rho") or rho_cap(promised["epsilon"], promised["delta"])
        return float(ndtri((1 + confidence) / 2)) * math.sqrt(self.who.l2_squared(1) * count / (2 * rho))

    def _loss(self, variances: NDArray[np.float64]) -> float:
        weighted = variances * np.array(self.weights)
        return float(weighted.max() if self.aim == "largest" else (_planned(self).cells * weighted).sum())

    def _variances_at_one(self) -> NDArray[np.float64]:
        """Return the variances of the Gaussian plan at rho = 1."""
        plan, squares = _planned(self), _squares(self)
        per_row = plan.rho(squares)
        if self.who.adjacency == "replace":
            per_row = max(per_row, plan.replaced(squares))
        return plan.variances(squares) * self.who.total**2 * per_row

    def gaussian_variances(self, rho: Fraction) -> NDArray[np.float64]:
        """Return the variance of a cell of each table, with Gaussian noise at this rho."""
        return self._variances_at_one() / float(rho)

    def gaussian(self, rho: Fraction, promised: dict[str, Fraction]) -> PaidNoise:
        """Measure residuals with Gaussian noise."""
        made = ResidualNoise.planned(
            _planned(self), _squares(self), rho=rho, rows=self.who.total, adjacency=self.who.adjacency
        )
        return PaidNoise((made,), CrossNoise(self.sizes, "gaussian", made.sets, made.sigmas), promised)

    def _laplace(self, epsilon: Fraction, promised: dict[str, Fraction]) -> PaidNoise:
        """Measure the largest wanted tables, each with its share of epsilon."""
        wanted = set(self.tables)
        parts = {part for one in wanted for k in range(len(one)) for part in combinations(one, k)}
        sets = tuple(sorted(wanted - parts, key=lambda one: (len(one), one)))
        made = tuple(
            DiscreteLaplace(epsilon=epsilon * share, sensitivity=self.who.l1(1), adjacency=self.who.adjacency)
            for share in self._shares(sets)
        )
        noise = CrossNoise(self.sizes, "laplace", sets, tuple(one.scale for one in made))
        return PaidNoise(made, noise, promised)

    def _shares(self, sets: tuple[ColumnSet, ...]) -> list[Fraction]:
        """Share epsilon among the measured tables by the weights of what is read off them.

        Alone, a table of share e has variance in proportion to 1/e^2. So roots of weights make the largest
        weighted variance least, and cube roots of weight times cells the sum.
        """
        if self.aim == "largest" and len(set(self.weights)) == 1:
            return [Fraction(1, len(sets))] * len(sets)
        weighed = dict(zip(self.tables, self.weights, strict=True))
        each = []
        for one in sets:
            if self.aim == "largest":
                most = max(w for table, w in weighed.items() if set(table) <= set(one))
                each.append(math.sqrt(most))
            else:
                each.append((weighed[one] * math.prod(self.sizes[i] for i in one)) ** (1 / 3))
        if len(set(each)) == 1:
            return [Fraction(1, len(sets))] * len(sets)
        total = sum(each)
        parts = [max(1, math.floor(e / total * _SHARE_STEPS)) for e in each]
        return [Fraction(part, max(_SHARE_STEPS, sum(parts))) for part in parts]


@lru_cache(maxsize=8)
def _sets(sizes: tuple[int, ...], tables: tuple[ColumnSet, ...]) -> ResidualSets:
    return ResidualSets.of(sizes, tables)


@lru_cache(maxsize=8)
def _squares_of(
    sizes: tuple[int, ...], tables: tuple[ColumnSet, ...], weights: tuple[float, ...], aim: Aim
) -> NDArray[np.float64]:
    plan = _sets(sizes, tables)
    return plan.least_largest(np.array(weights)) if aim == "largest" else plan.least_sum(np.array(weights))


def _planned(work: CrossWorkload) -> ResidualSets:
    return _sets(work.sizes, work.tables)


def _squares(work: CrossWorkload) -> NDArray[np.float64]:
    return _squares_of(work.sizes, work.tables, work.weights, work.aim)
