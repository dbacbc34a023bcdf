"""The randomized response mechanism: respondents protect their own answers with coins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import noise
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Set
from tacit.mechanisms._mechanism import Interval, Mechanism, confidence_level, exactly_one, show
from tacit.mechanisms.local._local_randomizer import log_up
from tacit.parameters import Listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Cost


@dataclass(frozen=True, slots=True)
class ResponseEstimate:
    """An unbiased estimate with its interval; `value` may lie outside [0, 1], the interval does not."""

    value: float
    interval: Interval[float]
    answers: int

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.interval.low

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.interval.high

    def __repr__(self) -> str:
        at = f"{self.interval.confidence:.4g}"
        return (
            f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}] ({at} confidence, {self.answers:,} answers)"
        )


@dataclass(frozen=True, init=False, repr=False, slots=True)
class RandomizedResponse(Mechanism):
    """Report the truth with probability p, else one of the other answers, each as likely.

    Guarantee: epsilon = |ln(p (k-1) / (1-p))|, pure, for each respondent, whoever collects the answers
    (local privacy; Warner 1965, k-ary: Kairouz, Bonawitz, Ramage 2016).

    Argument: every answer has probability p or (1-p)/(k-1) whatever the truth; the ratio is exp(+-epsilon).
    With `p` given the coin is exactly p and epsilon is rounded up; with `epsilon` given the answer is drawn
    with odds exactly exp(epsilon) : 1.

    Parameters
    ----------
    epsilon, p
        One of the two: the promise, or the probability of a true answer.
    categories
        The possible answers, public: a number k (answers 0 .. k-1) or a sequence of labels. By default no
        and yes (False and True).

    Examples
    --------
    >>> import tacit as tc
    >>> survey = tc.mechanisms.RandomizedResponse.coins()
    >>> survey.probability(True, truth=True), survey.probability(True, truth=False)
    (Fraction(3, 4), Fraction(1, 4))
    >>> survey.cost.epsilon(delta=0)  # ln 3, rounded up
    1.0986122886681098
    >>> answers = survey.release([True] * 300 + [False] * 700)
    >>> found = survey.estimate(answers)     # 95 of 100 such intervals cover the true share, 0.3
    >>> found.low < found.value < found.high
    True
    """

    categories: tuple[Any, ...]
    p: Fraction | None
    epsilon: Fraction

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        p: Number | None = None,
        categories: int | Sequence[Any] = (False, True),
    ) -> None:
        labels = (
            tuple(range(count("categories", categories)))
            if isinstance(categories, int)
            else tuple(categories)
        )
        Listed("answers", '["yes", "no"]', least=2, different=True).read("categories", labels)
        if exactly_one(epsilon=epsilon, p=p) == "epsilon":
            truth, spent = None, rational("epsilon", epsilon)  # type: ignore[arg-type]
        else:
            truth = rational("p", p)  # type: ignore[arg-type]
            if truth >= 1 or truth * len(labels) == 1:
                raise bad_parameter(
                    "p",
                    f"below 1 and other than 1/{len(labels)}",
                    p,
                    why="answers that are always true are not private, and random answers are useless",
                    fix=Set(p=0.75),
                )
            spent = log_up(truth * (len(labels) - 1) / (1 - truth))
        for name, value in (("categories", labels), ("p", truth), ("epsilon", spent)):
            object.__setattr__(self, name, value)

    @classmethod
    def coins(cls, heads: Number = Fraction(1, 2)) -> RandomizedResponse:
        """Return the two-coin survey: heads, answer truly; tails, let a second, fair coin answer.

        With fair coins P(yes given yes) = 3/4, P(yes given no) = 1/4, and epsilon = ln 3. `heads` biases
        the first.
        """
        bias = rational("heads", heads)
        return cls(p=bias + (1 - bias) / 2)

    @property
    def cost(self) -> Cost:
        """What one answer reveals about its respondent, whatever two truths are compared (replace)."""
        from tacit.accounting import Cost

        k = len(self.categories)
        if k == 2 or (self.p is not None and self.p * k < 1):  # a lie may be likelier than the truth
            return Cost.randomized_response(self.epsilon, adjacency="replace")
        return Cost.randomized_response(self.epsilon, categories=k, adjacency="replace")

    def to_json(self) -> dict[str, Any]:
        """Return the law and its parameters, exactly: equal documents mean equal chances."""
        return {
            "mechanism": "randomized-response",
            "epsilon": str(self.epsilon),
            "p": None if self.p is None else str(self.p),
            "categories": [str(category) for category in self.categories],
            "cost": self.cost.to_json(),
        }

    @property
    def _truth(self) -> float:
        """The probability of a true answer, as a float."""
        k = len(self.categories)
        return float(self.p) if self.p is not None else 1 / (1 + (k - 1) * math.exp(-self.epsilon))

    def probability(self, answer: object, *, truth: object) -> Fraction | float:
        """Return P(answer given truth): exact where `p` was given."""
        same = self._place(answer) == self._place(truth)
        others = len(self.categories) - 1
        if self.p is not None:
            return self.p if same else (1 - self.p) / others
        return self._truth if same else -math.expm1(math.log(self._truth)) / others

    def privacy_loss(self, output: object, a: object, b: object) -> float:
        """Return ln P(output | truth a) / P(output | truth b)."""
        return math.log(self.probability(output, truth=a)) - math.log(self.probability(output, truth=b))

    def release(self, value: object) -> Any:
        """Return one respondent's answer, or an array of answers for an array of truths."""
        if isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0:
            return self._labels()[self._randomize(self._places(value))]
        return self.categories[int(self._randomize(np.array([self._place(value)]))[0])]

    def release_many(self, value: object, count: int) -> NDArray[np.int64]:
        """Return `count` independent answers (as places in `categories`): for auditors only."""
        return self._randomize(np.full(count, self._place(value), dtype=np.int64))

    def _randomize(self, truths: NDArray[np.int64]) -> NDArray[np.int64]:
        k = len(self.categories)
        if self.p is not None:
            honest = np.asarray(noise.bernoulli(self.p, truths.shape))
            shift = np.where(honest, 0, 1 + np.asarray(noise.uniform_below(k - 1, truths.shape)))
        else:
            shift = np.asarray(noise.select([1] + [0] * (k - 1), 1 / self.epsilon, truths.shape))
        return np.asarray((truths + shift) % k, dtype=np.int64)

    def _labels(self) -> NDArray[Any]:
        if all(isinstance(label, bool) for label in self.categories):
            return np.array(self.categories, dtype=bool)
        if all(isinstance(label, int) for label in self.categories):
            return np.array(self.categories, dtype=np.int64)
        labels = np.empty(len(self.categories), dtype=object)
        labels[:] = self.categories
        return labels

    def _place(self, label: object) -> int:
        try:
            return self.categories.index(label)
        except ValueError:
            raise TacitError(
                "unknown-category",
                "an answer is not one of the declared categories",
                why="the categories are public and fixed before anyone answers",
                fix=Set(categories=["no", "yes", "no answer"]),
            ) from None

    def _places(self, labels: Any) -> NDArray[np.int64]:
        if isinstance(labels, np.ma.MaskedArray):  # a mask is not an answer, and NumPy would drop it
            self._place(object())
        array = np.asarray(labels)
        if array.dtype == bool and self.categories == (False, True):
            return array.astype(np.int64)
        if array.dtype.kind in "iu" and self.categories == tuple(range(len(self.categories))):
            if array.size and (array.min() < 0 or array.max() >= len(self.categories)):
                self._place(None)
            return array.astype(np.int64)
        table = {label: place for place, label in enumerate(self.categories)}
        flat = [table.get(label, -1) for label in np.asarray(labels, dtype=object).ravel().tolist()]
        if -1 in flat:
            self._place(object())
        return np.array(flat, dtype=np.int64).reshape(array.shape)

    @property
    def variance(self) -> float:
        """The variance that the coins add to one unbiased answer, at its largest over truths."""
        p = self._truth
        q = (1 - p) / (len(self.categories) - 1)
        return max(p * (1 - p), q * (1 - q)) / (p - q) ** 2

    def estimate(
        self, answers: object, confidence: Number = 0.95, *, category: object = None
    ) -> ResponseEstimate:
        """Return an unbiased estimate of the proportion of `category` (by default the last), with interval.

        The interval covers coins and sampling: answers from independent people, drawn from a population or
        given. It is Clopper and Pearson's for the rate of reports, mapped through p and q, so that it
        covers at least as often as stated.
        """
        level = confidence_level(confidence)
        label = self.categories[-1] if category is None else category
        several = isinstance(answers, list | tuple) or getattr(answers, "ndim", 0) > 0
        places = self._places(answers if several else [answers])
        Listed("answers", "[True, False]").read("answers", places)
        hits = int(np.count_nonzero(places == self._place(label)))
        low, high = _clopper_pearson(hits, places.size, float(1 - level) / 2)
        p = self._truth
        q = (1 - p) / (len(self.categories) - 1)
        ends = sorted((end - q) / (p - q) for end in (low, high))
        interval = Interval(
            max(0.0, ends[0]), min(1.0, max(0.0, ends[1])), float(level), "coins and sampling"
        )
        return ResponseEstimate((hits / places.size - q) / (p - q), interval, places.size)

    def error(self, confidence: Number, *, answers: int) -> float:
        """Return the half-width of the proportion from `answers` answers, by Hoeffding's inequality."""
        level = confidence_level(confidence)
        number = count("answers", answers, zero=False)
        p = self._truth
        q = (1 - p) / (len(self.categories) - 1)
        return math.sqrt(math.log(2 / float(1 - level)) / (2 * number)) / abs(p - q)

    def interval(self, released: object, confidence: Number) -> Interval[float]:
        """Return the interval of `estimate` for an array of answers."""
        return self.estimate(released, confidence).interval

    @property
    def worst_pair(self) -> tuple[Any, Any]:
        """Any two different truths."""
        return self.categories[0], self.categories[1]

    def __repr__(self) -> str:
        return (
            f"RandomizedResponse(epsilon={show(self.epsilon)}, {len(self.categories)} categories; "
            f"truth with probability {self._truth:.4g})"
        )


def _clopper_pearson(hits: int, trials: int, error: float) -> tuple[float, float]:
    """Return the exact interval (Clopper and Pearson 1934), each end wrong with chance `error`."""
    from scipy.special import betainccinv, betaincinv

    low = float(betaincinv(hits, trials - hits + 1, error)) if hits else 0.0
    high = float(betainccinv(hits + 1, trials - hits, error)) if hits < trials else 1.0
    return low * (1 - 1e-9), min(1.0, high * (1 + 1e-9))
