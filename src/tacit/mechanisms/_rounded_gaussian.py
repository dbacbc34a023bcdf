"""The rounded Gaussian mechanism: integer noise that costs what continuous Gaussian noise costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit import noise
from tacit.exact import Number, count, rational
from tacit.mechanisms._integer_noise import IntegerNoise
from tacit.mechanisms._mechanism import (
    check_delta,
    confidence_level,
    exactly_one,
    figure,
    read_adjacency,
    show,
)
from tacit.mechanisms._noise_laws import check_width
from tacit.mechanisms._roots import square_root_up

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Cost

_SLACK = 1e-11  # the relative error of erfc and its argument, always added to tails


@dataclass(frozen=True, slots=True)
class RoundedGaussianLaw:
    """The law of round(X) for a real Gaussian X of deviation sigma, exactly.

    Examples
    --------
    >>> law = RoundedGaussianLaw(Fraction(2))
    >>> law.half_width(Fraction(95, 100)), round(law.exceeds(4), 4), round(law.variance, 4)
    (4, 0.0244, 4.0833)
    """

    sigma: Fraction

    def __post_init__(self) -> None:
        check_width(self.sigma)

    def draw(self) -> int:
        """Draw one number exactly."""
        return noise.rounded_gaussian(self.sigma)

    def draws(self, shape: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Draw an array exactly."""
        return noise.rounded_gaussian(self.sigma, shape)

    def exceeds(self, steps: int) -> float:
        """Return P(|round(X)| > steps) = P(|X| > steps + 1/2), an upper value within a part in 10^10."""
        return self._beyond(steps + 0.5) if steps >= 0 else 1.0

    def _beyond(self, distance: float, copies: int = 1) -> float:
        """Return P(|sum of `copies` X| > distance), an upper value."""
        spread = float(self.sigma) * math.sqrt(2 * copies)
        return min(1.0, math.erfc(distance / spread) * (1 + _SLACK)) if distance > 0 else 1.0

    def half_width(self, confidence: Fraction, copies: int = 1) -> int:
        """Return an m that the sum of `copies` numbers stays within; the smallest for one number.

        Each rounding adds at most 1/2, and the sum of the real numbers is Gaussian.
        """
        from scipy.special import ndtri

        allowed = float(1 - confidence)
        rounding = -0.5 if copies == 1 else copies / 2
        normal = float(-ndtri(max(allowed, 1e-300) / 2)) * float(self.sigma) * math.sqrt(copies)
        low = high = max(-1, math.ceil(normal * (1 - 1e-9) + rounding) - 2)
        step = 1
        while high < 0 or self._beyond(high - rounding, copies) > allowed:
            low, high, step = high, high + step, 2 * step
        while high - low > 1:
            middle = (low + high) // 2
            fits = self._beyond(middle - rounding, copies) <= allowed
            low, high = (low, middle) if fits else (middle, high)
        return high

    @property
    def variance(self) -> float:
        """Sigma squared and 1/12; for small sigmas the exact sum of (2k + 1) P(|round(X)| > k)."""
        sigma = float(self.sigma)
        if sigma > 4:  # differs by less than exp(-300)
            return sigma**2 + 1 / 12
        return sum((2 * k + 1) * math.erfc((k + 0.5) / (sigma * math.sqrt(2))) for k in range(180))

    def loss(self, from_a: float, from_b: float) -> float:
        """Return ln P(output | a) / P(output | b) for an output that lies this many steps from each."""
        return self._log_chance(abs(from_a)) - self._log_chance(abs(from_b))

    def _log_chance(self, steps: float) -> float:
        """Return ln P(round(X) = steps) for steps >= 0."""
        from scipy.special import log_ndtr

        sigma = float(self.sigma)
        z = steps / sigma
        if sigma > 1e4 and z < 100:  # a narrow cell: its density, with the second derivative
            curved = 1 + (z * z - 1) / (24 * sigma**2)
            return -z * z / 2 - math.log(sigma * math.sqrt(2 * math.pi)) + math.log(curved)
        near, far = (float(log_ndtr(-(steps + end) / sigma)) for end in (-0.5, 0.5))
        return near + math.log(-math.expm1(far - near))


@dataclass(frozen=True, init=False, repr=False, slots=True)
class RoundedGaussian(IntegerNoise):
    """Add rounded Gaussian noise to whole numbers, any number of them.

    Guarantee: exactly that of continuous Gaussian noise of deviation sigma, where neighbours move the numbers
    by at most `sensitivity` in L2, whatever their number: on integers, x + round(Z) = round(x + Z), which is
    computed from the continuous mechanism's output. So sums of many releases and samples are charged by the
    tight curve of the Gaussian mechanism, which the discrete Gaussian's curve is only for one number.

    Parameters
    ----------
    epsilon, delta
        Calibrate sigma to this promise; or give `rho`, or `sigma`.
    rho, sigma
        See above.
    sensitivity
        The most that one unit can move the numbers, in L2, in whole steps.
    adjacency
        The neighbours that the sensitivity is stated for; the cost records them.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.RoundedGaussian(sigma=2, sensitivity=1)
    >>> m.cost == tc.Cost.gaussian(sigma=2, sensitivity=1), m.error(0.95), round(m.variance, 4)
    (True, 4.0, 4.0833)
    >>> m.release([120, 80]).shape
    (2,)
    """

    sensitivity: Fraction
    sigma: Fraction
    adjacency: Adjacency
    _law: RoundedGaussianLaw  # type: ignore[assignment]

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        sigma: Number | None = None,
        sensitivity: Number,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        object.__setattr__(self, "sensitivity", rational("sensitivity", sensitivity))
        object.__setattr__(self, "adjacency", read_adjacency(adjacency))
        spread = self._calibrated(epsilon=epsilon, delta=delta, rho=rho, sigma=sigma)
        self._check_size(spread)
        object.__setattr__(self, "sigma", spread)
        object.__setattr__(self, "_law", RoundedGaussianLaw(spread))

    def _calibrated(
        self, *, epsilon: Number | None, delta: Number | None, rho: Number | None, sigma: Number | None
    ) -> Fraction:
        """Return the sigma for the one promise that is given."""
        from tacit.accounting import Budget, sigma_for

        given = exactly_one(epsilon=epsilon, rho=rho, sigma=sigma)
        check_delta(given, delta)
        match given:
            case "sigma":
                return rational("sigma", sigma)  # type: ignore[arg-type]
            case "rho":
                return square_root_up(self.sensitivity**2 / (2 * rational("rho", rho)))  # type: ignore[arg-type]
            case _:
                target = Budget(epsilon=epsilon, delta=delta)  # type: ignore[arg-type]
                return rational("sigma", sigma_for(target, sensitivity=1)) * self.sensitivity

    @property
    def cost(self) -> Cost:
        """The cost of continuous Gaussian noise."""
        from tacit.accounting import Cost

        return Cost.gaussian(sigma=self.sigma, sensitivity=self.sensitivity, adjacency=self.adjacency)

    @property
    def scale(self) -> Fraction:
        """The parameter sigma."""
        return self.sigma

    def lattice(self, size: int = 1) -> tuple[Fraction, RoundedGaussianLaw]:  # type: ignore[override]
        """Return the grid, which is 1, and the law."""
        del size
        return Fraction(1), self._law

    def half_width(self, confidence: Number, *, copies: int = 1) -> int:
        """Return an m such that the sum of `copies` noises stays within m; the smallest for one noise."""
        return self._law.half_width(confidence_level(confidence), count("copies", copies, zero=False))

    @property
    def worst_pair(self) -> tuple[int, int]:
        """Zero and the sensitivity, rounded down to a whole number."""
        return 0, max(1, math.floor(self.sensitivity))

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact sigma and sensitivity, and the cost."""
        return {
            "mechanism": "rounded-gaussian",
            "sigma": str(self.sigma),
            "sensitivity": str(self.sensitivity),
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the law in a few words.

        Examples
        --------
        >>> RoundedGaussian(sigma=2, sensitivity=1).describe()
        'rounded Gaussian, sigma 2'
        """
        return f"rounded Gaussian, sigma {figure(self.sigma * unit)}"

    def __repr__(self) -> str:
        return (
            f"RoundedGaussian(sigma={show(self.sigma)}, sensitivity={show(self.sensitivity)}; "
            f"within {show(self.error(0.95))} at 95 %)"
        )
