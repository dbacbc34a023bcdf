"""Integer noise: mechanisms for whole numbers, without a grid and without rounding.

Discrete Laplace (geometric) noise, discrete Gaussian noise, and rounded Gaussian noise, which costs what
continuous Gaussian noise costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from tacit import noise
from tacit.bisection import first_integer
from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Set
from tacit.mechanisms._grid import fits
from tacit.mechanisms._input_values import in_64_bits, read_integers
from tacit.mechanisms._mechanism import (
    IntegerMechanism,
    check_delta,
    confidence_level,
    exactly_one,
    figure,
    half_width_of_sum,
    read_adjacency,
    show,
)
from tacit.mechanisms._noise_laws import GaussianLaw, LaplaceLaw, check_width, square_root_up
from tacit.mechanisms.additive._lattice_noise import SMALLEST_SCALE, LatticeNoise, laplace_cost, out_of_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Cost


class IntegerNoise(LatticeNoise, IntegerMechanism):
    """Integer noise on integers."""

    __slots__ = ()

    additive: ClassVar[bool] = True
    grid = Fraction(1)
    _rounding: ClassVar[Fraction] = Fraction(0)
    _law: LaplaceLaw | GaussianLaw

    def release(self, value: object) -> Any:
        """Return the integers plus noise, in the same shape: an int for an int, an array for an array.

        An array of 64-bit integers gives an array of the same kind: a sum beyond 64 bits becomes the nearest
        number that fits, which is closer to the truth. Lists and arrays of objects give arrays of Python
        ints. So the type of the result does not depend on private values.
        """
        integers = read_integers(value)
        if isinstance(integers, int):
            return integers + self._law.draw()
        draws = self.lattice(integers.size)[1].draws(integers.shape)
        return _sum(integers, draws, in_64_bits=in_64_bits(value) and integers.dtype == np.int64)

    def release_many(self, value: object, count: int) -> NDArray[Any]:
        """Return `count` independent outputs on the same value, each at the full cost: for auditors only."""
        integers = np.asarray(read_integers(value))
        _, law = self.lattice(integers.size)
        shape = (count, *integers.shape)
        return _sum(np.broadcast_to(integers, shape), law.draws(shape), in_64_bits=integers.dtype == np.int64)

    def half_width(self, confidence: Number, *, copies: int = 1) -> int:
        """Return an m such that the sum of `copies` noises stays within m; the smallest for one noise."""
        return half_width_of_sum(self._law, confidence_level(confidence), copies)

    def _check_size(self, scale: Fraction) -> None:
        """Refuse noise that does not fit into 64 bits, or that is next to nothing."""
        check_width(scale, power=56)
        if scale < SMALLEST_SCALE:
            raise out_of_range(scale)

    @property
    def worst_pair(self) -> tuple[int, int]:
        """Zero and the sensitivity."""
        return 0, int(self.sensitivity)


def _sum(integers: NDArray[Any], noise: NDArray[np.int64], *, in_64_bits: bool) -> NDArray[Any]:
    """Add the noise; sums in 64 bits stop at the ends of their range, others are Python ints."""
    if integers.dtype == np.int64 and fits(integers, noise):
        total = integers + noise
        return np.asarray(total if in_64_bits else total.astype(object))
    if not in_64_bits:
        return cast("NDArray[np.object_]", integers.astype(object) + noise.astype(object))
    return saturated_sum(integers, noise)


def saturated_sum(integers: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add 64-bit integers; a sum beyond 64 bits becomes the nearest number that fits.

    Examples
    --------
    >>> saturated_sum(np.array([2**62, 5]), np.array([2**62, -7])).tolist() == [2**63 - 1, -2]
    True
    """
    with np.errstate(over="ignore"):
        total = integers + noise
    wrapped = ((integers ^ total) & (noise ^ total)) < 0  # both have one sign and the sum has the other
    ends = np.iinfo(np.int64)
    return np.where(wrapped, np.where(noise < 0, ends.min, ends.max), total)


@dataclass(frozen=True, init=False, repr=False, slots=True)
class DiscreteLaplace(IntegerNoise):
    """Add discrete Laplace noise (two-sided geometric) to a count, or to an array of counts.

    Guarantee: epsilon = sensitivity / scale, pure, where neighbours move the counts by at most
    `sensitivity` together, in L1. A count with sensitivity 1 costs exactly randomized response.

    Argument: P(k) is proportional to exp(-|k| / scale), and |k - u| differs from |k| by at most |u| (Ghosh,
    Roughgarden, Sundararajan 2009). For an array the scalar law dominates (docs/proofs/mechanisms.md, lemma
    1).

    Parameters
    ----------
    epsilon, scale
        One of the two; scale = sensitivity / epsilon.
    sensitivity
        A whole number: the most that one unit can move the counts, in L1.
    adjacency
        The neighbours that the sensitivity is stated for; the cost records them.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.DiscreteLaplace(epsilon=0.5, sensitivity=1)
    >>> m.error(0.95), round(m.variance, 2)
    (6.0, 7.84)
    >>> isinstance(m.release(120), int)
    True
    """

    sensitivity: Fraction
    epsilon: Fraction
    adjacency: Adjacency
    scale: Fraction = field()  # the noise scale, sensitivity / epsilon
    _law: LaplaceLaw

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        scale: Number | None = None,
        sensitivity: int,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        promise = exactly_one(epsilon=epsilon, scale=scale)
        movement = Fraction(count("sensitivity", sensitivity, zero=False))
        parameter = rational(promise, epsilon if promise == "epsilon" else scale)  # type: ignore[arg-type]
        spent = parameter if promise == "epsilon" else movement / parameter
        noise_scale = movement / spent
        self._check_size(noise_scale)
        object.__setattr__(self, "sensitivity", movement)
        object.__setattr__(self, "epsilon", spent)
        object.__setattr__(self, "adjacency", read_adjacency(adjacency))
        object.__setattr__(self, "scale", noise_scale)
        object.__setattr__(self, "_law", LaplaceLaw(noise_scale))

    @property
    def cost(self) -> Cost:
        """The cost of the lattice law: never above pure epsilon, and below it for sensitivities above 1."""
        return laplace_cost(self.epsilon, int(self.sensitivity), self.adjacency)

    def lattice(self, size: int = 1) -> tuple[Fraction, LaplaceLaw]:
        """Return the grid, which is 1, and the law; they do not depend on `size`."""
        del size
        return Fraction(1), self._law

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact scale and sensitivity, and the cost."""
        return {
            "mechanism": "discrete-laplace",
            "scale": str(self.scale),
            "sensitivity": int(self.sensitivity),
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the law in a few words.

        Examples
        --------
        >>> DiscreteLaplace(epsilon=0.5, sensitivity=1).describe()
        'discrete Laplace, scale 2'
        """
        return f"discrete Laplace, scale {figure(self.scale * unit)}"

    def __repr__(self) -> str:
        return (
            f"DiscreteLaplace(epsilon={show(self.epsilon)}, sensitivity={show(self.sensitivity)}, "
            f"scale={show(self.scale)}; within {show(self.error(0.95))} at 95 %)"
        )


@dataclass(frozen=True, init=False, repr=False, slots=True)
class DiscreteGaussian(IntegerNoise):
    """Add discrete Gaussian noise to a count, or to an array of counts.

    Guarantee: rho = sensitivity^2 / (2 sigma^2), zero-concentrated, where neighbours move the counts by at
    most `sensitivity` in L2, whatever their number (Canonne, Kamath, Steinke 2020, theorem 14). For a
    single count (``size=1``) the whole privacy curve of the lattice law is charged, which is tighter; it
    does not hold for several.

    Parameters
    ----------
    epsilon, delta
        Calibrate sigma to this promise; or give `rho`, or `sigma`.
    rho, sigma
        See above.
    sensitivity
        A whole number for ``size=1``; else a number, the most that one unit can move the counts, in L2.
    sensitivity_squared
        Instead of `sensitivity`: its square, a whole number, exactly.
    size
        1 for a single count at a time; by default any number of counts is allowed.
    adjacency
        The neighbours that the sensitivity is stated for; the cost records them.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.DiscreteGaussian(rho=0.125, sensitivity=1)
    >>> m.sigma, m.error(0.95), round(m.variance, 6)
    (Fraction(2, 1), 4.0, 4.0)
    >>> m.release([120, 80]).shape
    (2,)
    """

    sensitivity: Fraction
    sensitivity_squared: Fraction
    sigma: Fraction
    size: int | None
    adjacency: Adjacency
    _law: GaussianLaw

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        sigma: Number | None = None,
        sensitivity: Number | None = None,
        sensitivity_squared: int | None = None,
        size: int | None = None,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        if size is not None and count("size", size, fix=Set(size=None)) != 1:
            raise bad_parameter("size", "1 or None (any number of counts)", size, fix=Set(size=None))
        movement, squared = _read_move(sensitivity, sensitivity_squared)
        if size == 1 and movement.denominator != 1:
            raise bad_parameter(
                "sensitivity", "a whole number for a single count", sensitivity, fix=Set(sensitivity=1)
            )
        for name, value in (
            ("sensitivity", movement),
            ("sensitivity_squared", squared),
            ("size", size),
            ("adjacency", read_adjacency(adjacency)),
        ):
            object.__setattr__(self, name, value)
        spread = self._calibrated(epsilon=epsilon, delta=delta, rho=rho, sigma=sigma)
        self._check_size(spread)
        object.__setattr__(self, "sigma", spread)
        object.__setattr__(self, "_law", GaussianLaw(spread))

    def _calibrated(
        self, *, epsilon: Number | None, delta: Number | None, rho: Number | None, sigma: Number | None
    ) -> Fraction:
        """Return the sigma for the one promise that is given."""
        from tacit.accounting import Budget, calibrate

        promise = exactly_one(epsilon=epsilon, rho=rho, sigma=sigma)
        check_delta(promise, delta)
        match promise:
            case "sigma":
                return rational("sigma", sigma)  # type: ignore[arg-type]
            case "rho":
                return square_root_up(self.sensitivity_squared / (2 * rational("rho", rho)))  # type: ignore[arg-type]
            case _:
                target = Budget(epsilon=epsilon, delta=delta)  # type: ignore[arg-type]
                return rational("sigma", calibrate(lambda s: self._charge(rational("sigma", s)), target))

    def _charge(self, sigma: Fraction) -> Cost:
        from tacit.accounting import Cost

        if self.size == 1:
            movement = int(self.sensitivity)
            return Cost.discrete_gaussian(sigma=sigma, sensitivity=movement, adjacency=self.adjacency)
        return Cost.zcdp(self.sensitivity_squared / (2 * sigma**2), adjacency=self.adjacency)

    @property
    def cost(self) -> Cost:
        """The curve of the lattice law for a single count, else rho."""
        return self._charge(self.sigma)

    @property
    def scale(self) -> Fraction:
        """The parameter sigma."""
        return self.sigma

    def lattice(self, size: int = 1) -> tuple[Fraction, GaussianLaw]:
        """Return the grid, which is 1, and the law."""
        if self.size == 1 and size > 1:
            raise bad_parameter(
                "value",
                "a single count",
                f"{size} of them",
                why="the curve charged for one count does not hold for several",
                fix=Set(size=None),
            )
        return Fraction(1), self._law

    @property
    def worst_pair(self) -> tuple[int, int]:
        """Zero and the sensitivity, rounded down to a whole number."""
        return 0, max(1, math.isqrt(math.floor(self.sensitivity_squared)))

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact sigma and squared sensitivity, and the cost."""
        return {
            "mechanism": "discrete-gaussian",
            "sigma": str(self.sigma),
            "sensitivity_squared": str(self.sensitivity_squared),
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the law in a few words.

        Examples
        --------
        >>> DiscreteGaussian(rho=0.125, sensitivity=1).describe()
        'discrete Gaussian, sigma 2'
        """
        return f"discrete Gaussian, sigma {figure(self.sigma * unit)}"

    def __repr__(self) -> str:
        return (
            f"DiscreteGaussian(sigma={show(self.sigma)}, sensitivity={show(self.sensitivity)}; "
            f"within {show(self.error(0.95))} at 95 %)"
        )


def _read_move(sensitivity: Number | None, squared: int | None) -> tuple[Fraction, Fraction]:
    """Return the L2 sensitivity (rounded up where only its square is given) and its exact square."""
    if exactly_one(sensitivity=sensitivity, sensitivity_squared=squared) == "sensitivity":
        movement = rational("sensitivity", sensitivity)  # type: ignore[arg-type]
        return movement, movement**2
    square = Fraction(count("sensitivity_squared", squared, zero=False))  # type: ignore[arg-type]
    return square_root_up(square), square


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
        return first_integer(lambda m: self._beyond(m - rounding, copies) <= allowed, low, high)

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
        upper, lower = (float(log_ndtr(-(steps + end) / sigma)) for end in (-0.5, 0.5))
        return upper + math.log(-math.expm1(lower - upper))


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

        promise = exactly_one(epsilon=epsilon, rho=rho, sigma=sigma)
        check_delta(promise, delta)
        match promise:
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
