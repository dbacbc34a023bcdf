"""Estimates from disguised answers: their intervals, and the designs of two groups, which have no epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, read_fraction
from tacit.fixes import Code, Set
from tacit.mechanisms._mechanism import confidence_level
from tacit.parameters import Probability, RealNumber


@dataclass(frozen=True, slots=True)
class DesignEstimate:
    """A prevalence read from disguised answers; `value` may lie outside [0, 1], the interval does not.

    Attributes
    ----------
    value, standard_error
        The unbiased estimate and its standard error, with n - 1 as the R packages for such designs have it.
    low, high, confidence
        The interval, for the coins and the sampling of respondents.
    respondents
        How many people answered.
    other
        In designs of two groups, the second number that they estimate.
    """

    value: float
    standard_error: float
    low: float
    high: float
    confidence: float
    respondents: int
    other: float | None = None

    def __repr__(self) -> str:
        at = f"{self.confidence:.4g} confidence, {self.respondents:,} respondents"
        return f"{self.value:.4f} +- {self.standard_error:.4f} [{self.low:.4f}, {self.high:.4f}] ({at})"


@dataclass(frozen=True, slots=True)
class TwoGroupDesign:
    """A design with a second unknown number, for which two groups got different coins: for old data only.

    It has no epsilon: the chance of an answer depends on the unknown number, and may be 0 for one group.

    Examples
    --------
    >>> import tacit as tc
    >>> found = tc.mechanisms.Design.lie_detector("1/6", "5/6").estimate(yes=(373, 398), of=(564, 692))
    >>> round(found.value, 6), round(found.standard_error, 6), round(found.other, 6)
    (0.870695, 0.041118, 0.635806)
    """

    name: str
    chances: tuple[Fraction, Fraction]

    @property
    def cost(self) -> None:
        """Refused: the design has no epsilon."""
        raise no_epsilon(self.name)

    @property
    def epsilon(self) -> None:
        """Refused: the design has no epsilon."""
        raise no_epsilon(self.name)

    def estimate(
        self, *, yes: tuple[int, int], of: tuple[int, int], confidence: Number = 0.95
    ) -> DesignEstimate:
        """Return the estimated share of people whose truth is yes, from the yeses of both groups.

        `other` is the share of honest answers among them (lie detector), or the prevalence of the unrelated
        question.
        """
        (y1, y2), (n1, n2) = (
            [count("yes", one) for one in yes],
            [count("of", one, zero=False) for one in of],
        )
        if min(n1, n2) < 2 or y1 > n1 or y2 > n2:
            raise wrong_counts(yes, of, fix=Set(yes=(190, 240), of=(500, 500)))
        p1, p2 = self.chances
        a, b = Fraction(y1, n1), Fraction(y2, n2)
        if self.name == "lie detector":  # yes = share * honest + (1 - share)(1 - p)
            weights = 1 / (p2 - p1), -1 / (p2 - p1)
            value = 1 - (a - b) / (p2 - p1)
            other = (a - (1 - value) * (1 - p1)) / value if value else None
        else:  # yes = p * share + (1 - p) * prevalence
            weights = (1 - p2) / (p1 - p2), -(1 - p1) / (p1 - p2)
            value = weights[0] * a + weights[1] * b
            other = (b * p1 - a * p2) / (p1 - p2)
        square = weights[0] ** 2 * a * (1 - a) / (n1 - 1) + weights[1] ** 2 * b * (1 - b) / (n2 - 1)
        at = confidence_level(confidence)
        width = normal_quantile(at) * math.sqrt(square)
        low, high = (min(1.0, max(0.0, float(value) + end)) for end in (-width, width))
        second = None if other is None else float(other)
        return DesignEstimate(float(value), math.sqrt(square), low, high, float(at), n1 + n2, second)


def read_chance(name: str, value: Number | str) -> Fraction:
    """Read a probability; text such as "1/6" is a fraction."""
    if isinstance(value, str):
        try:  # never Fraction(text): it writes out all digits of "1e999999999"
            value = read_fraction(value.strip()) if "/" in value else Decimal(value)
        except (ValueError, ArithmeticError):
            raise bad_parameter(name, "a probability", value, fix=Set(**{name: "1/6"})) from None
    return Probability(instead="1/6").read(name, value)


def open_chance(name: str, value: Number | str) -> Fraction:
    """Read a probability that is neither 0 nor 1."""
    return RealNumber(above=0, below=1, instead="2/3").read(name, read_chance(name, value))


def two_chances(p1: Number | str, p2: Number | str) -> tuple[Fraction, Fraction]:
    """Read the probabilities of two groups, which must differ."""
    first, second = open_chance("p1", p1), open_chance("p2", p2)
    if first == second:
        raise bad_parameter("p1 and p2", "different", p1, fix=Set(p1="1/6", p2="5/6"))
    return first, second


def wilson(rate: float, n: int, z: float) -> tuple[float, float]:
    """Return Wilson's interval for a rate (Wilson 1927)."""
    middle = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return middle - half, middle + half


def normal_quantile(confidence: Fraction) -> float:
    """Return z such that a standard normal lies within z with this probability."""
    from scipy.special import ndtri

    return float(-ndtri(float(1 - confidence) / 2))


def wrong_counts(yes: object, of: object, *, fix: Set) -> TacitError:
    """Build the refusal of yeses that so many people cannot have given."""
    return bad_parameter("yes and of", "counts of yeses and of at least two people", [yes, of], fix=fix)


def no_epsilon(name: str) -> TacitError:
    """Build the refusal of a design in which an answer proves something."""
    return TacitError(
        "no-guarantee",
        f"the {name} design has no epsilon",
        why="an answer that some respondents cannot give proves something about those who give it",
        fix=Code("Design.warner(0.75), or any design in which both groups can give every answer"),
    )
