"""Response designs of social scientists: yes-or-no questions that a card, a die or a birthday disguises.

The estimates from disguised answers come with intervals. Designs of two groups have no epsilon.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import noise
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, read_fraction
from tacit.fixes import Code, Set
from tacit.mechanisms._mechanism import confidence_level, show
from tacit.mechanisms.local._local_randomizer import (
    LocalRandomizer,
    bad_report,
    log_up,
    read_answers,
    several,
)
from tacit.parameters import Integer, Probability, RealNumber

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Cost


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
        with suppress(ValueError, ArithmeticError):  # what is not a number is refused as text
            # never Fraction(text): it writes out all digits of "1e999999999"
            value = read_fraction(value.strip()) if "/" in value else Decimal(value)
    return Probability(instead="1/6").read(name, value)


def open_chance(name: str, value: Number | str) -> Fraction:
    """Read a probability that is neither 0 nor 1."""
    return RealNumber(above=0, below=1, instead="2/3").read(name, read_chance(name, value))


def two_chances(p1: Number | str, p2: Number | str) -> tuple[Fraction, Fraction]:
    """Read the probabilities of two groups, which must differ."""
    chance, other = open_chance("p1", p1), open_chance("p2", p2)
    if chance == other:
        raise bad_parameter("p1 and p2", "different", p1, fix=Set(p1="1/6", p2="5/6"))
    return chance, other


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


_MAX_DRAWS = 100


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Design(LocalRandomizer):
    """A yes-or-no question with its coin: the probability of every answer, given no and given yes.

    Guarantee: epsilon is the largest |ln P(answer given yes) / P(answer given no)|, rounded up, for each
    respondent, whoever collects the answers, provided that nobody else sees the coin. A design with an answer
    that only one of the two groups can give has no epsilon: such an answer proves something. It is for
    reading old data; `epsilon`, `cost` and `release` refuse it.

    Parameters
    ----------
    no, yes
        The probabilities of the answers of respondents whose truth is no, and of those whose truth is yes.
    name
        What the design is called.
    draws
        Given where an answer is a number of red cards: out of how many draws (`kuk`).

    Examples
    --------
    >>> import tacit as tc
    >>> dice = tc.mechanisms.Design.forced(truth="2/3", yes="1/6", no="1/6")
    >>> dice.estimate(yes=412, of=1000).value, round(float(dice.epsilon), 6)
    (0.368, 1.609438)
    >>> dice.release([True] * 3 + [False] * 4).shape
    (7,)
    """

    name: str
    no: tuple[Fraction, ...]
    yes: tuple[Fraction, ...]
    draws: int

    def __init__(
        self,
        *,
        no: Sequence[Number | str],
        yes: Sequence[Number | str],
        name: str = "own",
        draws: int | None = None,
    ) -> None:
        rows = [tuple(read_chance("a probability", one) for one in row) for row in (no, yes)]
        if len(rows[0]) != len(rows[1]) or len(rows[0]) < 2 or any(sum(row) != 1 for row in rows):
            raise bad_parameter(
                "no and yes", "two lists of the same length that each add up to 1", [no, yes],
                fix=Code('Design(no=["3/4", "1/4"], yes=["1/4", "3/4"])'),
            )  # fmt: skip
        if rows[0] == rows[1]:
            raise bad_parameter(
                "no and yes", "different", "the same probabilities twice",
                why="the answers would say nothing about the truth", fix=Code("Design.warner(0.75)"),
            )  # fmt: skip
        times = int(len(rows[0]) == 2) if draws is None else count("draws", draws)
        for field, value in (("name", name), ("no", rows[0]), ("yes", rows[1]), ("draws", times)):
            object.__setattr__(self, field, value)

    # -- designs with an epsilon

    @classmethod
    def _two(cls, name: str, yes_given_no: Fraction, yes_given_yes: Fraction) -> Design:
        return cls(name=name, no=(1 - yes_given_no, yes_given_no), yes=(1 - yes_given_yes, yes_given_yes))

    @classmethod
    def warner(cls, p: Number | str) -> Design:
        """Return Warner's design (1965): the statement with probability p, else its opposite; true or false.

        Examples
        --------
        >>> Design.warner(0.75).estimate(yes=412, of=1000).value
        0.324
        """
        chance = open_chance("p", p)
        return cls._two("warner", 1 - chance, chance)

    @classmethod
    def mirrored(cls, p: Number | str) -> Design:
        """Return two mirrored questions, the sensitive one with probability p: Warner's design on paper."""
        chance = open_chance("p", p)
        return cls._two("mirrored", 1 - chance, chance)

    @classmethod
    def crosswise(cls, p: Number | str) -> Design:
        """Ask "is your answer to both questions the same?", beside an innocuous one (Yu, Tian, Tang 2008).

        The innocuous question has prevalence p. "The same" counts as yes. A birthday as coin is
        only as secret as the birthday.
        """
        chance = open_chance("p", p)
        return cls._two("crosswise", 1 - chance, chance)

    @classmethod
    def forced(cls, *, truth: Number | str, yes: Number | str, no: Number | str) -> Design:
        """Ask for the truth, a forced yes or a forced no, with these probabilities (Boruch 1971).

        The rarer of the forced answers decides epsilon. Without one of them the design has no epsilon.
        """
        chances = open_chance("truth", truth), read_chance("yes", yes), read_chance("no", no)
        if sum(chances) != 1:
            raise bad_parameter(
                "truth, yes and no", "probabilities that add up to 1", [truth, yes, no],
                fix=Set(truth="2/3", yes="1/6", no="1/6"),
            )  # fmt: skip
        return cls._two("forced", chances[1], chances[0] + chances[1])

    @classmethod
    def unrelated(cls, *, asked: Number | str, prevalence: Number | str) -> Design:
        """Ask the sensitive question with probability `asked`, else an innocuous one (Greenberg et al. 1969).

        `prevalence` is the known share of yes to the innocuous question.
        """
        chance, share = open_chance("asked", asked), open_chance("prevalence", prevalence)
        other = (1 - chance) * share
        return cls._two("unrelated", other, chance + other)

    @classmethod
    def kuk(cls, p1: Number | str, p2: Number | str, *, draws: int = 1) -> Design:
        """Ask for the colour of a card, from the first deck if the truth is yes, else the second (Kuk 1990).

        `p1` and `p2` are the shares of red cards. With several draws (with replacement) a report is the
        number of red cards; epsilon grows with the number of draws.
        """
        red = two_chances(p1, p2)
        times = Integer(1, _MAX_DRAWS, instead=3).read("draws", draws)
        no, yes = (
            tuple(math.comb(times, r) * p**r * (1 - p) ** (times - r) for r in range(times + 1))
            for p in (red[1], red[0])
        )
        return cls(no=no, yes=yes, name="kuk", draws=times)

    # -- designs for reading old data

    @classmethod
    def mangat(cls, p: Number | str) -> Design:
        """Let people with the attribute say yes, the others toss Warner's coin (Mangat 1994). No epsilon."""
        return cls._two("mangat", 1 - open_chance("p", p), Fraction(1))

    @classmethod
    def triangular(cls, p: Number | str) -> Design:
        """Ask for yes to either question, the innocuous one of share p (Yu, Tian, Tang 2008). No epsilon."""
        return cls._two("triangular", open_chance("p", p), Fraction(1))

    @staticmethod
    def lie_detector(p1: Number | str, p2: Number | str) -> TwoGroupDesign:
        """Ask two groups by Mangat's design, and estimate the share of honest yeses.

        Moshagen, Musch, Erdfelder 2012.
        """
        return TwoGroupDesign("lie detector", two_chances(p1, p2))

    @staticmethod
    def unrelated_unknown(p1: Number | str, p2: Number | str) -> TwoGroupDesign:
        """Ask two groups, with an unrelated question of unknown prevalence (Greenberg et al. 1969)."""
        return TwoGroupDesign("unrelated, unknown prevalence", two_chances(p1, p2))

    # -- privacy

    @property
    def epsilon(self) -> Fraction:  # type: ignore[override]
        """The largest loss of any answer, rounded up; refused where an answer proves something."""
        worst = Fraction(1)
        for a, b in zip(self.no, self.yes, strict=True):
            if a == b == 0:
                continue
            if not a or not b:
                raise no_epsilon(self.name)
            worst = max(worst, a / b, b / a)
        return log_up(worst)

    @property
    def cost(self) -> Cost:
        """What one answer reveals about its respondent (replace): Warner's coin, or any with this epsilon."""
        from tacit.accounting import Cost

        if len(self.no) == 2 and self.no == self.yes[::-1]:
            return Cost.randomized_response(self.epsilon, adjacency="replace")
        return Cost.pure(self.epsilon, adjacency="replace")

    @property
    def asked(self) -> Fraction:  # type: ignore[override]
        """The same as `epsilon`: the coin of a design is exact."""
        return self.epsilon

    @property
    def private(self) -> bool:
        """Whether the design has an epsilon."""
        return all((a > 0) == (b > 0) for a, b in zip(self.no, self.yes, strict=True))

    @property
    def p(self) -> Fraction:
        """The chance of yes (of one red card) given yes."""
        return self._mean(self.yes)

    @property
    def q(self) -> Fraction:
        """The chance of yes (of one red card) given no."""
        return self._mean(self.no)

    def _mean(self, row: tuple[Fraction, ...]) -> Fraction:
        if not self.draws:
            raise bad_parameter(
                "design", "one with two answers", f"{len(row)} answers", fix=Code("Design.warner(0.75)")
            )
        return sum((place * chance for place, chance in enumerate(row)), Fraction(0)) / self.draws

    def to_json(self) -> dict[str, Any]:
        """Return the law and its parameters, exactly: equal documents mean equal chances."""
        return {
            "mechanism": "response-design",
            "name": self.name,
            "no": [str(one) for one in self.no],
            "yes": [str(one) for one in self.yes],
            "draws": self.draws,
            "cost": self.cost.to_json() if self.private else None,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Design:
        """Rebuild the design that `to_json` describes."""
        return cls(no=document["no"], yes=document["yes"], name=document["name"], draws=document["draws"])

    def describe(self) -> str:
        """Return a short phrase for people."""
        return f"{self.name} design" if self.draws < 2 else f"{self.name} design, {self.draws} draws"

    def probability(self, report: object, *, truth: int) -> Fraction:
        """Return P(report given truth), exactly."""
        [answer] = self.read_reports([report])
        row = self.yes if read_answers(truth, 2)[0] else self.no
        return row[int(answer)]

    # -- reports

    def release(self, value: object) -> Any:
        """Return one answer, or an array of answers: 0 is no and 1 is yes, or the number of red cards."""
        _ = self.epsilon  # a design without one releases nothing
        truths = read_answers(value, 2)
        reports = np.empty(truths.size, np.int64)
        for truth, row in enumerate((self.no, self.yes)):
            where = truths == truth
            reports[where] = _draw(row, int(np.count_nonzero(where)))
        return reports if several(value) else int(reports[0])

    def release_many(self, value: object, count: int) -> NDArray[np.int64]:
        """Return `count` independent answers of one truth: for auditors only."""
        return np.asarray(self.release(np.full(count, read_answers(value, 2)[0])))

    def read_reports(self, reports: object) -> NDArray[np.int64]:
        """Return answers as an array of whole numbers; refuse those that the design does not have."""
        array = np.asarray(reports)
        if isinstance(reports, np.ma.MaskedArray) or array.ndim != 1 or array.dtype.kind not in "iubf":
            raise bad_report("an answer is not one of those that the design has")
        try:
            return read_answers(array, len(self.no))
        except TacitError:
            raise bad_report("an answer is not one of those that the design has") from None

    @property
    def worst_pair(self) -> tuple[int, int]:
        """No and yes."""
        return 0, 1

    # -- estimates

    def estimate(self, *, yes: int, of: int, confidence: Number = 0.95) -> DesignEstimate:
        """Return the estimated share of people whose truth is yes.

        Parameters
        ----------
        yes
            How many answers were yes; for Kuk's design, how many cards were red.
        of
            How many people answered.
        confidence
            The confidence of the interval: Wilson's for the share of yeses, mapped through the coin; for
            several draws the normal one.

        Examples
        --------
        >>> Design.kuk(0.8, 0.2, draws=3).estimate(yes=1236, of=1000)
        0.3533 +- 0.0194 [0.3153, 0.3914] (0.95 confidence, 1,000 respondents)
        """
        n, hits = count("of", of, zero=False), count("yes", yes)
        p, q, draws = float(self.p), float(self.q), self.draws
        if n < 2 or hits > n * draws:
            raise wrong_counts(yes, of, fix=Set(yes=412, of=1000))
        rate = Fraction(hits, n * draws)
        value = float((rate - self.q) / (self.p - self.q))
        level, share = float(rate), min(1.0, max(0.0, value))
        square = level * (1 - level) / ((draws * n - 1) * (p - q) ** 2)
        square += (1 - 1 / draws) * share * (1 - share) / (n - 1)
        at = confidence_level(confidence)
        z = normal_quantile(at)
        if draws == 1:
            ends = sorted((end - q) / (p - q) for end in wilson(level, n, z))
        else:
            ends = [value - z * math.sqrt(square), value + z * math.sqrt(square)]
        low, high = (min(1.0, max(0.0, end)) for end in ends)
        return DesignEstimate(value, math.sqrt(square), low, high, float(at), n)

    def variance(self, share: Number, respondents: int, *, sampling: bool) -> float:
        """Return the variance of the estimated share, for the coins alone or with sampling of respondents."""
        f, n = Probability().read("share", share), count("respondents", respondents, zero=False)
        p, q = self.p, self.q
        coins = (f * p * (1 - p) + (1 - f) * q * (1 - q)) / (self.draws * (p - q) ** 2)
        return float((coins + (f * (1 - f) if sampling else 0)) / n)

    def __repr__(self) -> str:
        spent = f"epsilon={show(self.epsilon)}" if self.private else "no epsilon"
        return f"Design({self.name}, {spent})"


def _draw(row: tuple[Fraction, ...], size: int) -> NDArray[np.int64]:
    """Draw answers with these probabilities, exactly: one coin for each answer against the later ones."""
    answers = np.full(size, len(row) - 1, np.int64)
    rows = np.arange(size)
    rest = Fraction(1)
    for answer, (chance, _) in enumerate(pairwise(row)):
        hit = noise.bernoulli(chance / rest if rest else Fraction(0), rows.size)
        answers[rows[hit]] = answer
        rows = rows[~hit]
        rest -= chance
    return answers
