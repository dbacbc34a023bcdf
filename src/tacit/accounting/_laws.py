"""The laws of privacy loss in accounting, of which a cost is made: frozen data in exact rationals.

A law names a pair of output distributions (or a family of pairs) that dominates what a mechanism shows of
one unit, in both directions: what holds for the pair holds for every pair of neighbours. A cost is a sum of
laws, kept as *parts*: a tuple of (law, number of times) in one canonical order, so that equal sums are equal
values. The fields of laws are read as exact numbers, or refused with what is wrong.

Scalars and vectors: `LaplaceLoss`, `DiscreteLaplaceLoss`, `GaussianLoss` and `DiscreteGaussianLoss` are the
laws of one number that moves by at most ``sensitivity``. The log-density of each is concave, so the loss is
monotone in the output, and a larger move dominates a smaller one. A Gaussian vector with an L2 bound is
equivalent to one number (rotate it). The other three are not; `tacit.accounting.Cost` states what holds for
their vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias, get_args

from tacit.errors import bad_parameter
from tacit.exact import count, rational
from tacit.fixes import Set
from tacit.parameters import Choice, Delta, Integer, Listed, RealNumber, Share

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


#: The laws of the number of runs of which the best is shown.
RUN_LAWS: Final = ("logarithmic", "geometric", "poisson")
_GAMMA: Final = RealNumber(above=0, below=1, instead=0.027)


def read_positive(law: object, *names: str) -> None:
    """Read the named fields as exact positive rationals."""
    for name in names:
        object.__setattr__(law, name, rational(name, getattr(law, name)))


def checked_runs(runs: str, parameter: Fraction) -> None:
    """Refuse a law of the number of runs that is unknown, or a parameter outside its range."""
    Choice(RUN_LAWS).read("law", runs)
    if runs != "poisson":
        _GAMMA.read("gamma", parameter)


def several_categories(categories: int) -> int:
    """Read a number of categories, at least 2."""
    return Integer(2, instead=3).read("categories", categories)


def check_not_empty(name: str, costs: Collection[object], example: str) -> None:
    """Refuse a cost that would be made of no other cost."""
    Listed("costs", example).read(name, costs)


def check_whole_move(sensitivity: Fraction) -> None:
    """Refuse a move that is not a whole number of grid steps."""
    if sensitivity.denominator != 1:
        raise bad_parameter(
            "sensitivity",
            "a whole number of grid steps",
            float(sensitivity),
            why="whole-number noise protects moves by whole steps; round real numbers to the grid first",
            fix=Set(sensitivity=-(-sensitivity.numerator // sensitivity.denominator)),
        )


@dataclass(frozen=True, slots=True)
class GaussianLoss:
    """N(0, sigma^2) against N(sensitivity, sigma^2); mu = sensitivity / sigma."""

    sigma: Fraction
    sensitivity: Fraction

    def __post_init__(self) -> None:
        read_positive(self, "sigma", "sensitivity")


@dataclass(frozen=True, slots=True)
class LaplaceLoss:
    """Laplace noise of the given scale, moved by sensitivity; epsilon = sensitivity / scale."""

    scale: Fraction
    sensitivity: Fraction

    def __post_init__(self) -> None:
        read_positive(self, "scale", "sensitivity")


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceLoss:
    """P(x) ~ exp(-|x| / scale) on the whole numbers, moved by a whole sensitivity."""

    scale: Fraction
    sensitivity: Fraction

    def __post_init__(self) -> None:
        read_positive(self, "scale", "sensitivity")
        check_whole_move(self.sensitivity)


@dataclass(frozen=True, slots=True)
class DiscreteGaussianLoss:
    """P(x) ~ exp(-x^2 / (2 sigma^2)) on the whole numbers, moved by a whole sensitivity."""

    sigma: Fraction
    sensitivity: Fraction

    def __post_init__(self) -> None:
        read_positive(self, "sigma", "sensitivity")
        check_whole_move(self.sensitivity)


@dataclass(frozen=True, slots=True)
class DiscreteGaussianVectorLoss:
    """Discrete Gaussian noise on several whole numbers, whose move has at most this squared length.

    No move is known to dominate the others, so the loss has no single pair. But every move of squared length
    s has ``E_Q[(P/Q)^k] = exp(k (k-1) s / (2 sigma^2))`` at whole k, and a reflection exchanges its two laws.
    Only these facts may be used: the law also stands for discrete Gaussians with the same quotient
    ``s / sigma^2``, such as the sum of several shares of noise.
    """

    sigma: Fraction
    squared: Fraction

    def __post_init__(self) -> None:
        read_positive(self, "sigma", "squared")
        check_whole_move(self.squared)


@dataclass(frozen=True, slots=True)
class RandomizedResponseLoss:
    """One bit, reported truthfully with probability e^epsilon / (1 + e^epsilon)."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        read_positive(self, "epsilon")


@dataclass(frozen=True, slots=True)
class BoundedRangeLoss:
    """The losses of one pair of neighbours lie in an interval of length epsilon (exponential mechanism)."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        read_positive(self, "epsilon")


@dataclass(frozen=True, slots=True)
class PureLoss:
    """Any epsilon-DP mechanism; dominated by `RandomizedResponseLoss` of the same epsilon."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        read_positive(self, "epsilon")


@dataclass(frozen=True, slots=True)
class ApproximateLoss:
    """Any (epsilon, delta)-DP mechanism: infinite loss with probability delta, else `PureLoss`."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", rational("epsilon", self.epsilon, zero=True))
        read_positive(self, "delta")
        Delta(zero=False).read("delta", self.delta)


@dataclass(frozen=True, slots=True)
class ZCDPLoss:
    """Renyi divergence of every order a > 1 at most a * rho; nothing more is known."""

    rho: Fraction

    def __post_init__(self) -> None:
        read_positive(self, "rho")


@dataclass(frozen=True, slots=True)
class RenyiLoss:
    """Renyi divergence of each listed order at most the listed value; nothing more is known."""

    curve: tuple[tuple[Fraction, Fraction], ...]

    def __post_init__(self) -> None:
        points: dict[Fraction, Fraction] = {}
        for order, divergence in self.curve:
            exact = rational("order", order)
            RealNumber(above=1, instead=2).read("order", order)
            points[exact] = min(points.get(exact, value := rational("divergence", divergence)), value)
        Listed("orders with their divergences", "[(2, 0.1)]").read("curve", [*points])
        object.__setattr__(self, "curve", tuple(sorted(points.items())))


@dataclass(frozen=True, slots=True)
class GDPLoss:
    """Any mu-GDP mechanism: dominated by N(0, 1) against N(mu, 1)."""

    mu: Fraction

    def __post_init__(self) -> None:
        read_positive(self, "mu")


@dataclass(frozen=True, slots=True)
class SampledLoss:
    """Each unit takes part with probability q (Poisson), one draw for all parts: (1-q) Q + q P against Q."""

    q: Fraction
    parts: Parts

    def __post_init__(self) -> None:
        read_positive(self, "q")
        Share(instead=0.01).read("q", self.q)
        object.__setattr__(self, "parts", canonical(self.parts))


@dataclass(frozen=True, slots=True)
class ShuffledLoss:
    """A shuffle of n local reports, each epsilon0-DP for any two values of the report (replace)."""

    n: int
    epsilon0: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", count("n", self.n, zero=False))
        read_positive(self, "epsilon0")


@dataclass(frozen=True, slots=True)
class GroupLoss:
    """What the parts reveal about m units together, by the triangle inequality over m neighbours."""

    m: int
    parts: Parts

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", count("m", self.m, zero=False))
        object.__setattr__(self, "parts", canonical(self.parts))


@dataclass(frozen=True, slots=True)
class ParallelLoss:
    """A unit takes part in one of the branches; which one is fixed before anyone sees an answer."""

    branches: tuple[Parts, ...]

    def __post_init__(self) -> None:
        branches = {canonical(branch) for branch in self.branches}
        check_not_empty("branches", branches, "[a, b]")
        object.__setattr__(self, "branches", tuple(sorted(branches, key=_parts_key)))


@dataclass(frozen=True, slots=True)
class CategoricalResponseLoss:
    """One of several answers; the true one is e^epsilon times as likely as each of the others."""

    epsilon: Fraction
    categories: int

    def __post_init__(self) -> None:
        read_positive(self, "epsilon")
        object.__setattr__(self, "categories", several_categories(self.categories))


@dataclass(frozen=True, slots=True)
class ShuffledResponseLoss:
    """A shuffle of n reports, each a `CategoricalResponseLoss` about one person (replace)."""

    n: int
    epsilon0: Fraction
    categories: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", count("n", self.n, zero=False))
        read_positive(self, "epsilon0")
        object.__setattr__(self, "categories", several_categories(self.categories))


@dataclass(frozen=True, slots=True)
class BestOfLoss:
    """The best of a random number of runs, each of one of the candidates; the others stay hidden.

    ``runs`` is the law of their number, ``parameter`` its gamma (or the mean of a Poisson law). Which
    candidate a run uses is drawn independently of the data.
    """

    runs: str
    parameter: Fraction
    candidates: tuple[Parts, ...]

    def __post_init__(self) -> None:
        read_positive(self, "parameter")
        checked_runs(self.runs, self.parameter)
        candidates = {canonical(one) for one in self.candidates}
        check_not_empty("candidates", candidates, "[a, b]")
        object.__setattr__(self, "candidates", tuple(sorted(candidates, key=_parts_key)))


_GRID_STEPS = RealNumber(least=1, instead=1, why="whole-number noise protects moves by whole grid steps")


#: One law, listed in the canonical order of sums. Stored costs are compared and hashed in this order, so it
#: never changes; a new law goes to the end.
LossLaw: TypeAlias = (
    ApproximateLoss
    | BoundedRangeLoss
    | DiscreteGaussianLoss
    | DiscreteLaplaceLoss
    | GDPLoss
    | GaussianLoss
    | GroupLoss
    | LaplaceLoss
    | ParallelLoss
    | PureLoss
    | RandomizedResponseLoss
    | RenyiLoss
    | SampledLoss
    | ShuffledLoss
    | ZCDPLoss
    | DiscreteGaussianVectorLoss
    | CategoricalResponseLoss
    | ShuffledResponseLoss
    | BestOfLoss
)
_ORDER_OF_LAWS: Final = {law: place for place, law in enumerate(get_args(LossLaw))}

#: A sum of laws: (law, number of times), each law once, in the canonical order.
Parts: TypeAlias = tuple[tuple[LossLaw, int], ...]


def canonical(parts: Iterable[tuple[LossLaw, int]]) -> Parts:
    """Merge equal laws and sort them, so that equal sums are equal values.

    Examples
    --------
    >>> a, b = PureLoss(Fraction(1)), GDPLoss(Fraction(1))
    >>> canonical([(a, 1), (b, 1), (a, 2)]) == canonical([(b, 1), (a, 3)])
    True
    """
    return merged([(law, times) for law, times in parts if count("times", times)])


def merged(parts: Sequence[tuple[LossLaw, int]]) -> Parts:
    """Merge and sort parts of canonical sums, whose numbers of times are known to be above 0."""
    if len(parts) == 1:
        _key(parts[0][0])  # what is no law has none
        return tuple(parts)
    total: dict[LossLaw, int] = {}
    for law, times in parts:
        total[law] = total.get(law, 0) + times
    return tuple(sorted(total.items(), key=lambda part: (_key(part[0]), part[1])))


def _key(law: LossLaw) -> tuple[object, ...]:
    """Return a sortable key: the law's place in the order, then its fields."""
    index = _ORDER_OF_LAWS[type(law)]
    match law:
        case SampledLoss(q, parts):
            return (index, q, _parts_key(parts))
        case GroupLoss(m, parts):
            return (index, m, _parts_key(parts))
        case ParallelLoss(branches):
            return (index, tuple(_parts_key(branch) for branch in branches))
        case BestOfLoss(runs, parameter, candidates):
            return (index, runs, parameter, tuple(_parts_key(one) for one in candidates))
        case _:
            return (index, *(getattr(law, field) for field in law.__slots__))


def _parts_key(parts: Parts) -> tuple[object, ...]:
    return tuple((_key(law), times) for law, times in parts)


def whole_square(move: Fraction) -> Fraction:
    """Return the whole squared length of moves by whole steps with this L2 sensitivity."""
    squared = move * move
    rounded = round(squared)
    if rounded and abs(squared - rounded) <= Fraction(rounded, 10**12):
        return Fraction(rounded)
    if squared < 1:
        _GRID_STEPS.read("sensitivity", move)  # refuses
    return Fraction(-(-squared.numerator // squared.denominator))
