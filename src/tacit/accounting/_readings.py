"""The readings of a cost in accounting, certified: epsilon, delta, rho, mu, Renyi; a ledger's charge."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from tacit.accounting import _worst_case
from tacit.accounting._budget import Spend, read_delta
from tacit.accounting._charge import charge
from tacit.accounting._display import words
from tacit.accounting._laws import GaussianLoss, GDPLoss, ParallelLoss, Parts
from tacit.accounting._meaning import Meaning
from tacit.accounting._renyi_curve import divergence_of_sum
from tacit.accounting.numeric import Bracket, float_down, float_up, on_grid
from tacit.errors import TacitError
from tacit.exact import Number, rational
from tacit.fixes import Code, Either, Set
from tacit.parameters import RealNumber, exactly_one


class Readings(Meaning):
    """The readings of a cost in the parameters of the theory; `Cost` inherits them."""

    __slots__ = ()

    def epsilon(self, *, delta: Number) -> float:
        """Return the certified epsilon at delta; ``delta=0`` for costs with a finite pure epsilon.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> 6.1487 < (800 * Cost.gaussian(sigma=25, sensitivity=1)).epsilon(delta=1e-7) < 6.52
        True
        """
        mass = read_delta(delta)
        if mass == 0:
            return float_up(self._pure("epsilon at delta 0"))
        upper = _worst_case.epsilon_bounds(self.parts, mass).upper
        if upper == float("inf"):
            leak = charge(self.parts).delta
            raise TacitError(
                "no-guarantee",
                f"no finite epsilon holds at delta {float(mass):.6g}",
                why=f"with probability up to {float(leak):.6g}, this cost guarantees nothing" if leak else "",
                fix=Set(delta=float(f"{float(min(2 * leak, Fraction(1, 2))) if leak else 1e-6:.6g}")),
            )
        return upper

    def delta(self, *, epsilon: Number) -> float:
        """Return the certified delta at epsilon.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> Cost.pure(1).delta(epsilon=1)
        0.0
        """
        return _worst_case.delta_bounds(self.parts, rational("epsilon", epsilon, zero=True)).upper

    def bounds(self, *, delta: Number | None = None, epsilon: Number | None = None) -> Bracket:
        """Return certified lower and upper values: of epsilon at delta, or of delta at epsilon.

        ``method`` names the method. If no tight method converged, it names the next safe bound, which is
        never smaller.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> low, high, _ = Cost.gaussian(sigma=1, sensitivity=1).bounds(delta=1e-5)
        >>> low <= high
        True
        """
        exactly_one("an interval of a cost", fix=Set(delta=1e-6), delta=delta, epsilon=epsilon)
        if epsilon is not None:
            return _worst_case.delta_bounds(self.parts, rational("epsilon", epsilon, zero=True), lower=True)
        mass = read_delta(delta)  # type: ignore[arg-type] # one of the two is given
        if mass == 0:
            exact = self._pure("epsilon at delta 0")
            known = not _worst_case.has_group(self.parts)  # for a group, only an upper bound is known
            return Bracket(float_down(exact) if known else 0.0, float_up(exact), "closed form")
        return _worst_case.epsilon_bounds(self.parts, mass, lower=True)

    @property
    def rho(self) -> float:
        """The smallest known rho of zCDP, rounded up; refused if none is finite or if delta is not 0."""
        whole = charge(self.parts)
        if whole.rho is None or whole.delta:
            raise TacitError(
                "no-guarantee",
                f"this cost has no {'finite rho' if whole.rho is None else 'rho: its delta is not 0'}",
                why="rho bounds the Renyi divergence of every order and allows no exceptions, not even "
                "unlikely ones",
                fix=Code("cost.spend  # epsilon, delta and rho as a ledger charges them"),
            )
        return float_up(whole.rho)

    @property
    def mu(self) -> float:
        """The mu of Gaussian differential privacy; it is exact for Gaussian noise and mu-GDP costs only.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> (Cost.gdp(3) + Cost.gdp(4)).mu
        5.0
        """
        return _root_up(_mu2(self.parts))

    def renyi_divergence(self, order: Number) -> float:
        """Return the certified Renyi divergence of an order above 1, the larger of both directions.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> Cost.zcdp(0.1).renyi_divergence(3) < 0.300001
        True
        """
        exact = RealNumber(above=1, instead=2, why="at order 1 it is the Kullback-Leibler divergence").read(
            "order", order
        )
        return _worst_case.renyi_divergence(self.parts, float(exact))

    @property
    def spend(self) -> Spend:
        """What a ledger charges: epsilon, delta and rho, exact or rounded up; None if not finite.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> Cost.laplace(scale=2, sensitivity=1).spend.epsilon
        Fraction(1, 2)
        """
        return _spend_at(self.parts, ())

    def spend_at(self, orders: tuple[Fraction, ...]) -> Spend:
        """Return what a ledger charges to a filter with these Renyi orders: `spend` with its curve.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> Cost.gaussian(sigma=10, sensitivity=1).spend_at((Fraction(4),)).curve
        ((Fraction(4, 1), Fraction(1, 50)),)
        """
        return _spend_at(self.parts, orders)

    def _pure(self, asked: str) -> Fraction:
        whole = charge(self.parts)
        if whole.epsilon is None or whole.delta:
            raise TacitError(
                "no-guarantee",
                f"{asked} is not finite: this cost is not pure",
                why="whatever epsilon you choose, a larger privacy loss has a small probability",
                fix=Either(
                    Code("cost.epsilon(delta=1e-6)"),
                    Code("cost.loss_exceeds(1)  # the chance of a loss above 1"),
                ),
            )
        return whole.epsilon


@lru_cache(maxsize=4096)
def _spend_at(parts: Parts, orders: tuple[Fraction, ...]) -> Spend:
    whole = charge(parts)
    curve = [(order, _bounded(divergence_of_sum(parts, order))) for order in orders]
    return Spend(_bounded(whole.epsilon), on_grid(whole.delta), _bounded(whole.rho), curve)


def _mu2(parts: Parts) -> Fraction:
    """Return the sum of the mu^2 of Gaussian parts; of branches, the largest, because mu orders Gaussians."""
    squared = Fraction(0)
    for law, times in parts:
        match law:
            case GaussianLoss(sigma, sensitivity):
                squared += times * (sensitivity / sigma) ** 2
            case GDPLoss(mu):
                squared += times * mu**2
            case ParallelLoss(branches):
                squared += times * max(_mu2(branch) for branch in branches)
            case _:
                raise TacitError(
                    "no-guarantee",
                    f"mu is exact for Gaussian noise only, and this cost contains {words(law)}",
                    fix=Either(Code("cost.epsilon(delta=1e-6)"), Code("cost.rho")),
                )
    return squared


def _bounded(value: Fraction | None) -> Fraction | None:
    """Put a number on the ledger's grid; a number larger than any budget counts as not finite."""
    return None if value is None or value > 2**1000 else on_grid(value)


def _root_up(value: Fraction) -> float:
    """Return the smallest double whose decimal reading is at least the square root."""
    scaled = math.isqrt(value.numerator * value.denominator << 256)
    root = float(Fraction(scaled, value.denominator << 128))
    while Fraction(repr(root)) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root
