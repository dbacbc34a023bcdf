"""Local randomizers: each respondent's own device draws the report, so nobody has to trust the collector.

The odds of a local randomizer are whole numbers A : B with B = 2^32, which a browser can draw as well. The
draws of k-ary randomized response give the true answer with an exact chance, else another, all alike.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tacit import noise
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count
from tacit.fixes import Code, Say, Set
from tacit.mechanisms._mechanism import Mechanism, exactly_one
from tacit.parameters import Integer, Probability, RealNumber

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from tacit.accounting import Cost


#: B, the weight of every answer but the favoured ones.
UNIT_ODDS: Final = 1 << 32
_MAX_EPSILON = 500


def read_odds(epsilon: Number | None, odds: int | None) -> tuple[int, Fraction, Fraction]:
    """Return A, the actual epsilon ln(A/B) rounded up, and the epsilon that was asked for.

    The actual epsilon is never above what was asked: A/B <= exp(epsilon), and where rounding ln(A/B) up would
    pass the request, the request itself is an upper bound.
    """
    if exactly_one(epsilon=epsilon, odds=odds) == "odds":
        odds = Integer(UNIT_ODDS + 1, instead=2 * UNIT_ODDS).read("odds", odds)
        actual = log_up(Fraction(odds, UNIT_ODDS))
        if actual > _MAX_EPSILON:
            raise bad_parameter("odds", f"at most exp({_MAX_EPSILON}) times {UNIT_ODDS}", "more")
        return odds, actual, actual
    request = RealNumber(
        above=0, most=_MAX_EPSILON, instead=1, why="such a report would nearly always be the true answer"
    ).read("epsilon", epsilon)
    favour = largest_odds(request)
    if favour == UNIT_ODDS:
        raise bad_parameter(
            "epsilon",
            "at least 1e-9 for a report",
            epsilon,
            why="the odds are whole numbers to 2^32; below this epsilon they would be 1 : 1",
            fix=Set(epsilon=0.1),
        )
    return favour, min(request, log_up(Fraction(favour, UNIT_ODDS))), request


def largest_odds(epsilon: Fraction) -> int:
    """Return floor(2^32 exp(epsilon)), exactly: digits are added until both ends of the error agree.

    Examples
    --------
    >>> largest_odds(Fraction(1))
    11674931554
    """
    digits = 60 + int(epsilon)
    while True:
        with localcontext() as context:
            context.prec = digits
            estimate = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp() * UNIT_ODDS
            # far above the rounding of quotient, exponential and product
            spread = estimate.scaleb(8 - digits)
            low = (estimate - spread).to_integral_value(ROUND_FLOOR)
            if low == (estimate + spread).to_integral_value(ROUND_FLOOR):
                return int(low)
        digits *= 2


def log_up(ratio: Fraction) -> Fraction:
    """Return |ln ratio| rounded up to 25 significant digits.

    Examples
    --------
    >>> float(log_up(Fraction(1, 3)))
    1.0986122886681098
    """
    with localcontext() as context:
        gap = abs(ratio.numerator - ratio.denominator)
        # a ratio near 1 needs the digits before which its logarithm has zeros
        context.prec = 60 + max(0, ratio.denominator.bit_length() - gap.bit_length()) // 3
        above = abs((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()) * (1 + Decimal(10) ** -45)
        context.prec = 25
        context.rounding = ROUND_CEILING
        return Fraction(+above)


class LocalRandomizer(Mechanism):
    """A mechanism that runs at the respondent: the true answer goes in, a report comes out.

    Guarantee: any report is at most exp(epsilon) times as likely under one true answer as under another
    (local privacy; two surveys are neighbours if one respondent's answer is replaced). `epsilon` is the
    actual one of the whole-number odds from which reports are drawn, rounded up, and never above `asked`.

    Examples
    --------
    >>> import tacit as tc
    >>> coin = tc.mechanisms.SubsetSelection(epsilon=1, size=2)
    >>> isinstance(coin, LocalRandomizer), coin.epsilon <= coin.asked == 1, round(float(coin.epsilon), 9)
    (True, True, 1.0)
    """

    __slots__ = ()

    epsilon: Fraction
    asked: Fraction

    @property
    def cost(self) -> Cost:
        """What one report reveals about its respondent, whatever two answers are compared (replace)."""
        from tacit.accounting import Cost

        return Cost.pure(self.epsilon, adjacency="replace")

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the law and its parameters, exactly: equal documents mean equal chances."""

    @classmethod
    @abstractmethod
    def from_json(cls, document: Mapping[str, Any]) -> LocalRandomizer:
        """Rebuild the randomizer that `to_json` describes."""

    @abstractmethod
    def describe(self) -> str:
        """Return a short phrase for people."""

    @abstractmethod
    def probability(self, report: object, *, truth: int) -> Fraction:
        """Return P(report given truth), exactly."""

    def privacy_loss(self, output: object, a: int, b: int) -> float:
        """Return ln P(output | truth a) / P(output | truth b)."""
        ratio = self.probability(output, truth=a) / self.probability(output, truth=b)
        return math.log(ratio.numerator) - math.log(ratio.denominator)


class SupportRandomizer(LocalRandomizer):
    """A local randomizer for a list of answers: a report supports some of them, the true one more often.

    Guarantee: that of its class (`SubsetSelection`, `LinearHashing`). A report supports the true answer with
    probability `p` and any other answer with probability `q`, exactly, so that (N/n - q)/(p - q) is an
    unbiased estimate of an answer's share when N of n reports support it.

    Examples
    --------
    >>> import tacit as tc
    >>> poll = tc.mechanisms.SubsetSelection(epsilon=2, size=4)
    >>> reports = poll.release([0] * 500 + [3] * 500)
    >>> bool(abs(poll.shares(poll.supports(reports), 1000)[3] - 0.5) < 0.2)
    True
    """

    __slots__ = ()

    size: int

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """The probability that a report supports the true answer."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """The probability that a report supports an answer that is not true."""

    @abstractmethod
    def read_reports(self, reports: object) -> NDArray[Any]:
        """Return reports as an array, from an array or a list of reports as JSON; refuse malformed ones."""

    @abstractmethod
    def supports(self, reports: object) -> NDArray[np.int64]:
        """Return for each answer how many reports support it."""

    def shares(self, supports: ArrayLike, respondents: int) -> NDArray[np.float64]:
        """Return unbiased estimates of the shares; they may lie below 0 or above 1."""
        n = count("respondents", respondents, zero=False)
        p, q = self.p, self.q
        return (np.asarray(supports) / n - float(q)) / float(p - q)

    def variance(self, share: Number, respondents: int, *, sampling: bool) -> float:
        """Return the variance of one estimated share.

        Parameters
        ----------
        share
            The true share of the answer, from 0 to 1.
        respondents
            The number of reports.
        sampling
            True adds the sampling of the respondents from a large population (share (1 - share)/n more).

        Examples
        --------
        >>> import tacit as tc
        >>> states = tc.mechanisms.SubsetSelection(epsilon=1, size=51)
        >>> round(states.variance(0, 64_600, sampling=False) ** 0.5, 5)
        0.00736
        """
        f, n = Probability().read("share", share), count("respondents", respondents, zero=False)
        p, q = self.p, self.q
        coins = f * p * (1 - p) + (1 - f) * q * (1 - q)
        if sampling:
            coins += f * (1 - f) * (p - q) ** 2
        return float(coins / (n * (p - q) ** 2))

    @property
    def liar_factor(self) -> float:
        """How far a share moves, for each share of respondents who all lie in its favour: (1 - q)/(p - q).

        A fraction x of liars moves a share by at most x times this factor in expectation.
        """
        return float((1 - self.q) / (self.p - self.q))

    @property
    def why(self) -> str:
        """In words: how this randomizer compares with the others for the same list and epsilon."""
        from tacit.mechanisms.local._randomizer_choice import compare

        return compare(self)

    @property
    def worst_pair(self) -> tuple[int, int]:
        """Any two different answers; these are the first and the last."""
        return 0, self.size - 1

    @abstractmethod
    def supported(self, reports: NDArray[Any], answer: int) -> NDArray[np.bool_]:
        """Return for each report whether it supports one answer."""

    def release_many(self, value: object, count: int) -> NDArray[np.int64]:
        """Return `count` independent reports as rows of numbers: for auditors only.

        The first column says whether the report supports the first answer (1), the last (-1), or both or none
        (0): the event on which the odds are largest. The others are the report itself.
        """
        truths = np.full(count, read_answers(value, self.size)[0], np.int64)
        reports = self.read_reports(self.release(truths))
        a, b = self.worst_pair
        contrast = self.supported(reports, a).astype(np.int64) - self.supported(reports, b)
        return np.column_stack([contrast, self._numbers(reports)])

    @abstractmethod
    def _numbers(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Return reports as rows of whole numbers."""


def several(value: object) -> bool:
    """Return whether a value holds the answers of several respondents (a list, an array, a column)."""
    return isinstance(value, list | tuple | range) or getattr(value, "ndim", 0) > 0


def read_answers(values: object, size: int, *, lowest: int = 0) -> NDArray[np.int64]:
    """Read true answers as places from `lowest` on: whole numbers, or floats that are whole.

    The refusal shows neither the answer nor whose it is.
    """
    if isinstance(values, np.ma.MaskedArray):  # a mask is not an answer, and NumPy would drop it
        raise unknown_answer()
    try:
        array = np.atleast_1d(np.asarray(values))
        array = _of_one_type(array) if array.dtype == object else array
    except (TypeError, ValueError, OverflowError):
        raise unknown_answer() from None
    kind = array.dtype.kind
    if array.ndim != 1 or kind not in "iufb" or (kind == "b" and (size, lowest) != (2, 0)):
        raise unknown_answer()
    if kind == "f" and not bool(np.all(np.isfinite(array) & (array == np.rint(array)))):
        raise unknown_answer()
    if array.size and not (lowest <= array.min() and array.max() <= lowest + size - 1):
        raise unknown_answer()
    return array.astype(np.int64)


def _of_one_type(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of Python objects as booleans, whole numbers or floats; missing values become NaN."""
    kinds = set(map(type, array.ravel().tolist()))
    if kinds <= {bool, np.bool_}:
        return array.astype(np.bool_)
    if any(issubclass(kind, bool | np.bool_ | str | bytes) for kind in kinds):
        raise unknown_answer()
    integral = all(issubclass(kind, int | np.integer) for kind in kinds)
    return array.astype(np.int64 if integral else np.float64)


def unknown_answer() -> TacitError:
    """Build the refusal of an answer outside the declared ones, without showing it."""
    return TacitError(
        "unknown-category",
        "an answer is not one of the declared answers",
        why="the answers are public and fixed before anyone responds",
        fix=Say("declare every possible answer before the survey, and one for people who do not answer"),
    )


def bad_report(sentence: str) -> TacitError:
    """Build the refusal of a report that this randomizer cannot have drawn."""
    return TacitError(
        "bad-report",
        sentence,
        why="a report that the randomizer cannot draw would move the estimates further than any honest one",
        fix=Code("randomizer.release(answers)"),
    )


def respond(truths: NDArray[np.int64], size: int, chance: Fraction) -> NDArray[np.int64]:
    """Return each truth with probability exactly `chance`, else one of the other `size` - 1 answers."""
    honest = noise.bernoulli(chance, truths.size)
    other = noise.uniform_below(size - 1, truths.size)
    other += other >= truths
    return np.where(honest, truths, other)
