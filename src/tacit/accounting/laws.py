"""The laws of privacy loss that a cost is made of, as frozen data in exact rationals.

A law names a pair of output distributions (or a family of pairs) that dominates what a mechanism shows of
one unit, in both directions: what is true of the pair is true of every pair of neighbours. A cost is a sum
of laws, kept as *parts*: a tuple of (law, how often) in one canonical order, so that equal sums are equal
values.

Scalars and vectors. `Laplace`, `DiscreteLaplace`, `Gaussian` and `DiscreteGaussian` are the laws of one
number that moves by at most ``sensitivity``: the log-density of each is concave, so the loss is monotone in
the output and a smaller move is dominated by a larger one. A Gaussian vector with an L2 bound is the same
as one number (rotate it); the other three are not, and `tacit.accounting.Cost` says what holds for vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction  # noqa: TC003 - field types stay resolvable
from typing import TYPE_CHECKING, TypeAlias

from tacit.errors import bad_parameter
from tacit.exact import count, rational

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "GDP",
    "ZCDP",
    "Approximate",
    "BoundedRange",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "Group",
    "Laplace",
    "Law",
    "Parallel",
    "Parts",
    "Pure",
    "RandomizedResponse",
    "Renyi",
    "Sampled",
    "Shuffled",
    "canonical",
]


@dataclass(frozen=True, slots=True)
class Gaussian:
    """N(0, sigma^2) against N(sensitivity, sigma^2); mu = sensitivity / sigma."""

    sigma: Fraction
    sensitivity: Fraction

    def __post_init__(self) -> None:
        _positive(self, "sigma", "sensitivity")


@dataclass(frozen=True, slots=True)
class Laplace:
    """Laplace noise of the given scale, moved by sensitivity; epsilon = sensitivity / scale."""

    scale: Fraction
    sensitivity: Fraction

    def __post_init__(self) -> None:
        _positive(self, "scale", "sensitivity")


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """P(x) ~ exp(-|x| / scale) on the whole numbers, moved by a whole sensitivity."""

    scale: Fraction
    sensitivity: Fraction

    def __post_init__(self) -> None:
        _positive(self, "scale", "sensitivity")
        _whole_move(self.sensitivity)


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """P(x) ~ exp(-x^2 / (2 sigma^2)) on the whole numbers, moved by a whole sensitivity."""

    sigma: Fraction
    sensitivity: Fraction

    def __post_init__(self) -> None:
        _positive(self, "sigma", "sensitivity")
        _whole_move(self.sensitivity)


@dataclass(frozen=True, slots=True)
class RandomizedResponse:
    """A bit, told truly with probability e^epsilon / (1 + e^epsilon)."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _positive(self, "epsilon")


@dataclass(frozen=True, slots=True)
class BoundedRange:
    """The losses of one pair of neighbours lie in an interval of length epsilon (exponential mechanism)."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _positive(self, "epsilon")


@dataclass(frozen=True, slots=True)
class Pure:
    """Any epsilon-DP mechanism; dominated by `RandomizedResponse` of the same epsilon."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _positive(self, "epsilon")


@dataclass(frozen=True, slots=True)
class Approximate:
    """Any (epsilon, delta)-DP mechanism: infinite loss with probability delta, else `Pure` (epsilon >= 0)."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", rational("epsilon", self.epsilon, zero=True))
        _positive(self, "delta")
        if self.delta >= 1:
            raise bad_parameter("delta", "below 1", self.delta, fix="delta=1e-6")


@dataclass(frozen=True, slots=True)
class ZCDP:
    """Renyi divergence of every order a > 1 at most a * rho; nothing more is known."""

    rho: Fraction

    def __post_init__(self) -> None:
        _positive(self, "rho")


@dataclass(frozen=True, slots=True)
class Renyi:
    """Renyi divergence of each listed order at most the listed value; nothing more is known."""

    curve: tuple[tuple[Fraction, Fraction], ...]

    def __post_init__(self) -> None:
        points: dict[Fraction, Fraction] = {}
        for order, divergence in self.curve:
            exact = rational("order", order)
            if exact <= 1:
                raise bad_parameter("order", "above 1", order, fix="{2: 0.1}")
            points[exact] = min(points.get(exact, value := rational("divergence", divergence)), value)
        if not points:
            raise bad_parameter("curve", "at least one order with its divergence", {}, fix="{2: 0.1}")
        object.__setattr__(self, "curve", tuple(sorted(points.items())))


@dataclass(frozen=True, slots=True)
class GDP:
    """Any mu-GDP mechanism: dominated by N(0, 1) against N(mu, 1)."""

    mu: Fraction

    def __post_init__(self) -> None:
        _positive(self, "mu")


@dataclass(frozen=True, slots=True)
class Sampled:
    """Each unit takes part with probability q (Poisson), one draw for all parts: (1-q) Q + q P against Q."""

    q: Fraction
    parts: Parts

    def __post_init__(self) -> None:
        _positive(self, "q")
        if self.q > 1:
            raise bad_parameter("q", "in (0, 1]", self.q, fix="q=0.01")
        object.__setattr__(self, "parts", canonical(self.parts))


@dataclass(frozen=True, slots=True)
class Shuffled:
    """n local reports in random order, each epsilon0-DP for any two values it may hold (replace)."""

    n: int
    epsilon0: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", count("n", self.n, zero=False))
        _positive(self, "epsilon0")


@dataclass(frozen=True, slots=True)
class Group:
    """What m units together see of the parts, by the triangle inequality for m neighbours in a row."""

    m: int
    parts: Parts

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", count("m", self.m, zero=False))
        object.__setattr__(self, "parts", canonical(self.parts))


@dataclass(frozen=True, slots=True)
class Parallel:
    """A unit takes part in one of the branches; which one is settled before any answer is seen."""

    branches: tuple[Parts, ...]

    def __post_init__(self) -> None:
        branches = {canonical(branch) for branch in self.branches}
        if not branches:
            raise bad_parameter("branches", "at least one cost", (), fix="Cost.parallel(a, b)")
        object.__setattr__(self, "branches", tuple(sorted(branches, key=_parts_key)))


Law: TypeAlias = (
    Gaussian
    | Laplace
    | DiscreteLaplace
    | DiscreteGaussian
    | RandomizedResponse
    | BoundedRange
    | Pure
    | Approximate
    | ZCDP
    | Renyi
    | GDP
    | Sampled
    | Shuffled
    | Group
    | Parallel
)

#: A sum of laws: (law, how often), each law once, in one order.
Parts: TypeAlias = tuple[tuple[Law, int], ...]


def canonical(parts: Iterable[tuple[Law, int]]) -> Parts:
    """Merge equal laws and put them in the one order that makes equal sums equal.

    Examples
    --------
    >>> a, b = Pure(Fraction(1)), GDP(Fraction(1))
    >>> canonical([(a, 1), (b, 1), (a, 2)]) == canonical([(b, 1), (a, 3)])
    True
    """
    total: dict[Law, int] = {}
    for law, times in parts:
        if count("times", times):
            total[law] = total.get(law, 0) + times
    return tuple(sorted(total.items(), key=lambda part: (_key(part[0]), part[1])))


def _key(law: Law) -> tuple[object, ...]:
    """Return a sortable key: the law's name, then its fields, which so meet their own kind only."""
    name = type(law).__name__
    match law:
        case Sampled(q, parts):
            return (name, q, _parts_key(parts))
        case Group(m, parts):
            return (name, m, _parts_key(parts))
        case Parallel(branches):
            return (name, tuple(_parts_key(branch) for branch in branches))
        case _:
            return (name, *(getattr(law, field) for field in law.__slots__))


def _parts_key(parts: Parts) -> tuple[object, ...]:
    return tuple((_key(law), times) for law, times in parts)


def _positive(law: object, *names: str) -> None:
    """Read the named fields as exact positive rationals."""
    for name in names:
        object.__setattr__(law, name, rational(name, getattr(law, name)))


def _whole_move(sensitivity: Fraction) -> None:
    if sensitivity.denominator != 1:
        raise bad_parameter(
            "sensitivity",
            "a whole number of grid steps",
            float(sensitivity),
            why="noise on the whole numbers protects whole moves; a real number is put on the grid first",
            fix=f"sensitivity={-(-sensitivity.numerator // sensitivity.denominator)}",
        )
