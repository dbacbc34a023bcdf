"""How a cost is built in accounting: a constructor for each law of noise and each kind of guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, SupportsIndex

from tacit.accounting import _laws
from tacit.accounting._adjacency import ADD_REMOVE, Adjacency
from tacit.accounting._budget import read_delta
from tacit.accounting._noise_shares import rounded_within, share_leak
from tacit.accounting._numbers import exact_number, whole_number
from tacit.errors import TacitError
from tacit.fixes import Set
from tacit.parameters import Instance, RealNumber

if TYPE_CHECKING:
    from typing import Self

    from tacit.accounting._laws import Parts
    from tacit.exact import Number


_CURVE = Instance(Mapping, "curve={2: 0.1}", "orders with their divergences")
_GRID_STEPS = RealNumber(least=1, instead=1, why="whole-number noise protects moves by whole grid steps")


class Constructors:
    """The constructors of a cost; `Cost` inherits them."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __init__(self, parts: Parts, adjacency: Adjacency = ADD_REMOVE) -> None: ...

    @classmethod
    def zero(cls, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Return the cost of revealing nothing."""
        return cls((), adjacency)

    @classmethod
    def laplace(
        cls,
        *,
        scale: Number,
        sensitivity: Number,
        dimension: SupportsIndex = 1,
        adjacency: Adjacency = ADD_REMOVE,
    ) -> Self:
        """Cost of continuous Laplace noise: for teaching; a release charges the lattice law that it samples.

        For a vector (``dimension`` above 1, L1 sensitivity), only its pure epsilon is known.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> Cost.laplace(scale=2, sensitivity=1).epsilon(delta=0)
        0.5
        """
        law = _laws.LaplaceLoss(exact_number("scale", scale), exact_number("sensitivity", sensitivity))
        if whole_number("dimension", dimension) > 1:
            return cls(((_laws.PureLoss(law.sensitivity / law.scale), 1),), adjacency)
        return cls(((law, 1),), adjacency)

    @classmethod
    def gaussian(cls, *, sigma: Number, sensitivity: Number, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Cost of continuous Gaussian noise on a number, or on a vector with an L2 sensitivity.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> Cost.gaussian(sigma=10, sensitivity=1).mu
        0.1
        """
        return cls(
            (
                (
                    _laws.GaussianLoss(
                        exact_number("sigma", sigma), exact_number("sensitivity", sensitivity)
                    ),
                    1,
                ),
            ),
            adjacency,
        )

    @classmethod
    def discrete_laplace(
        cls,
        *,
        scale: Number,
        sensitivity: Number,
        dimension: SupportsIndex = 1,
        adjacency: Adjacency = ADD_REMOVE,
    ) -> Self:
        """Cost of discrete Laplace noise on a whole number, in grid steps.

        At sensitivity 1 it equals randomized response. In a vector with L1 sensitivity 1, one number moves by
        1, so the cost is that of one number. With a larger L1 sensitivity and ``dimension`` above 1, only its
        pure epsilon is known.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> round(Cost.discrete_laplace(scale=1, sensitivity=1).rho, 3)
        0.462
        """
        law = _laws.DiscreteLaplaceLoss(
            exact_number("scale", scale), exact_number("sensitivity", sensitivity)
        )
        if whole_number("dimension", dimension) > 1 and law.sensitivity > 1:
            return cls(((_laws.PureLoss(law.sensitivity / law.scale), 1),), adjacency)
        return cls(((law, 1),), adjacency)

    @classmethod
    def discrete_gaussian(
        cls,
        *,
        sigma: Number,
        sensitivity: Number,
        dimension: SupportsIndex = 1,
        shares: SupportsIndex = 1,
        adjacency: Adjacency = ADD_REMOVE,
    ) -> Self:
        """Cost of discrete Gaussian noise on whole numbers, in grid steps.

        One number (``dimension=1``) has the curve of the discrete law. In a vector with an L2 sensitivity,
        several numbers move at once, and only rho = sensitivity^2 / (2 sigma^2) is known (Canonne, Kamath
        and Steinke 2020), so a vector reads as `Cost.zcdp` of this rho. Samples of it are read at whole Renyi
        orders, where a discrete vector has the values of a continuous one. Numbers move by whole steps, so
        the squared length of a move is whole: a sensitivity whose square is within 1e-12 of a whole number
        counts as its root, and any other square is rounded up (1.73 stands for the root of 3).

        With ``shares``, the noise is the sum of that many independent draws of this sigma, as when each of
        several hospitals adds its share. The sum is nearly one discrete Gaussian with the total variance. The
        difference is a delta: with ``dimension`` numbers and a sigma of 20 grid steps, it is below 1e-60.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> Cost.discrete_gaussian(sigma=8, sensitivity=1).rho == Cost.gaussian(sigma=8, sensitivity=1).rho
        True
        >>> Cost.discrete_gaussian(sigma=8, sensitivity=2**0.5, dimension=10).rho
        0.015625
        >>> Cost.discrete_gaussian(sigma=8, sensitivity=4, dimension=10, shares=4).spend.rho
        Fraction(1, 32)
        """
        spread, move = exact_number("sigma", sigma), exact_number("sensitivity", sensitivity)
        parties, numbers = whole_number("shares", shares), whole_number("dimension", dimension)
        if parties > 1:
            leak = share_leak(spread, parties, numbers)
            if leak >= 1:
                raise _too_little_noise(spread)
            # t s / (t sigma)^2 = s / (t sigma^2), without a root; see `DiscreteGaussianVectorLoss`
            law = _laws.DiscreteGaussianVectorLoss(parties * spread, parties * _whole_square(move))
            return cls(((law, 1), (_laws.ApproximateLoss(Fraction(0), leak), 1)), adjacency)
        if numbers == 1:
            return cls(((_laws.DiscreteGaussianLoss(spread, move), 1),), adjacency)
        squared = _whole_square(move)
        if squared == 1:  # one number moves by 1
            return cls(((_laws.DiscreteGaussianLoss(spread, squared), 1),), adjacency)
        return cls(((_laws.DiscreteGaussianVectorLoss(spread, squared), 1),), adjacency)

    @classmethod
    def gaussian_shares(
        cls,
        *,
        sigma: Number,
        sensitivity: Number,
        shares: SupportsIndex,
        dimension: SupportsIndex,
        adjacency: Adjacency = ADD_REMOVE,
    ) -> Self:
        """Cost of a sum of shares of discrete Gaussian noise that are many grid steps wide.

        Read as the cost of the continuous Gaussian, with its whole privacy curve, plus a delta. The delta
        falls with the fourth power of sigma: 1000 numbers with noise of a million grid steps need less than
        1e-20. `Cost.discrete_gaussian` is for narrower noise.

        Parameters
        ----------
        sigma
            The sigma of one share, in grid steps.
        sensitivity
            How far one unit can move the numbers together, in L2, in grid steps.
        shares, dimension
            How many shares are hidden in the sum, and how many numbers there are.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> shared = Cost.gaussian_shares(sigma=2**20, sensitivity=2**20, shares=9, dimension=1000)
        >>> whole = Cost.gaussian(sigma=3, sensitivity=1)
        >>> round(shared.epsilon(delta=1e-6), 6) == round(whole.epsilon(delta=1e-6), 6)
        True
        """
        spread, move = exact_number("sigma", sigma), exact_number("sensitivity", sensitivity)
        found = rounded_within(spread, whole_number("shares", shares), whole_number("dimension", dimension))
        if found is None:
            raise _too_little_noise(spread)
        wide, leak = found
        return cls(
            ((_laws.GaussianLoss(wide, move), 1), (_laws.ApproximateLoss(Fraction(0), leak), 1)), adjacency
        )

    @classmethod
    def randomized_response(
        cls, epsilon: Number, *, categories: SupportsIndex | None = None, adjacency: Adjacency = ADD_REMOVE
    ) -> Self:
        """Cost of one bit that is reported truthfully with probability e^epsilon / (1 + e^epsilon).

        With ``categories``, cost of one of k answers, each wrong one as likely as the others: the truth has
        probability e^epsilon / (e^epsilon + k - 1). More categories reveal less.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> twenty = 100 * Cost.randomized_response(1, categories=20)
        >>> twenty.epsilon(delta=1e-6) < 0.5 * (100 * Cost.randomized_response(1)).epsilon(delta=1e-6)
        True
        """
        if categories is not None:
            law = _laws.CategoricalResponseLoss(
                exact_number("epsilon", epsilon), whole_number("categories", categories, zero=True)
            )
            return cls(((law, 1),), adjacency)
        return cls(((_laws.RandomizedResponseLoss(exact_number("epsilon", epsilon)), 1),), adjacency)

    @classmethod
    def exponential(cls, epsilon: Number, *, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Cost of the exponential mechanism: losses within an interval of length epsilon; rho = epsilon^2/8.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> Cost.exponential(1).rho
        0.125
        """
        return cls(((_laws.BoundedRangeLoss(exact_number("epsilon", epsilon)), 1),), adjacency)

    @classmethod
    def pure(cls, epsilon: Number, *, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Cost of any epsilon-DP mechanism.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> (Cost.pure(0.1) + Cost.pure(0.2)).epsilon(delta=0)
        0.3
        """
        return cls(((_laws.PureLoss(exact_number("epsilon", epsilon)), 1),), adjacency)

    @classmethod
    def approximate(cls, epsilon: Number, delta: Number, *, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Cost of any (epsilon, delta)-DP mechanism; epsilon may be 0, and delta 0 is `Cost.pure`.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> leaks_all_with_probability_one_in_a_thousand = Cost.approximate(0, 0.001)
        """
        mass = read_delta(delta)
        if mass == 0:
            return cls.pure(epsilon, adjacency=adjacency)
        return cls(
            ((_laws.ApproximateLoss(exact_number("epsilon", epsilon, zero=True), mass), 1),), adjacency
        )

    @classmethod
    def zcdp(cls, rho: Number, *, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Cost of any rho-zCDP mechanism (zero-concentrated differential privacy)."""
        return cls(((_laws.ZCDPLoss(exact_number("rho", rho)), 1),), adjacency)

    @classmethod
    def renyi(cls, curve: Mapping[Number, Number], *, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Cost of a mechanism known by Renyi divergences, as ``{order: divergence}`` with orders above 1.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> Cost.renyi({2: 0.1, 8: 0.4}).renyi_divergence(4) <= 0.4
        True
        """
        curve = _CURVE.read("curve", curve)
        points = ((exact_number("order", a), exact_number("divergence", d)) for a, d in curve.items())
        return cls(((_laws.RenyiLoss(tuple(points)), 1),), adjacency)

    @classmethod
    def gdp(cls, mu: Number, *, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Cost of any mu-GDP mechanism (Gaussian differential privacy)."""
        return cls(((_laws.GDPLoss(exact_number("mu", mu)), 1),), adjacency)


def _too_little_noise(sigma: Fraction) -> TacitError:
    return TacitError(
        "no-guarantee",
        f"shares of discrete Gaussian noise with sigma {float(sigma):.6g} do not add up to such noise",
        why="each share must spread over several grid steps",
        fix=Set(sigma=20),
    )


def _whole_square(move: Fraction) -> Fraction:
    """Return the whole squared length of moves by whole steps with this L2 sensitivity."""
    squared = move * move
    near = round(squared)
    if near and abs(squared - near) <= Fraction(near, 10**12):
        return Fraction(near)
    if squared < 1:
        _GRID_STEPS.read("sensitivity", move)  # refuses
    return Fraction(-(-squared.numerator // squared.denominator))
