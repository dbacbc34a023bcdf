"""The worlds of the attack lab: synthetic people, two worlds that differ in one person, success and power.

A fixed public recipe generates a census-like table. Success is measured over many trials, with an interval.
Power is the share of members that an attack finds at a fixed share of false alarms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, SupportsIndex

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.accounting import Cost
from tacit.audit._outputs import clopper_pearson
from tacit.errors import bad_parameter
from tacit.parameters import Integer, Listed, RealNumber
from tacit.report import ReportTable, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from fractions import Fraction

    from tacit.exact import Number


DIAGNOSES: Final = (
    "healthy", "hypertension", "back pain", "diabetes", "asthma", "depression",
    "arthritis", "migraine", "heart failure", "cancer", "HIV", "epilepsy",
)  # fmt: skip
_WEIGHTS: Final = np.array([24, 14, 12, 10, 9, 8, 7, 6, 4, 3, 2, 1]) / 100
_POSTCODES: Final = 100
_MOST_PEOPLE: Final = 1_000_000
#: The share of outsiders whom an attacker may wrongly call members.
FALSE_ALARMS: Final = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """One row for each person: four facts that a neighbour knows and two that nobody should learn.

    Attributes
    ----------
    age, sex, postcode, education
        What an attacker may know from other sources (quasi-identifiers); education in years.
    condition
        1 if the person has the sensitive condition, otherwise 0.
    diagnosis
        A position in `DIAGNOSES`; also sensitive.
    """

    age: npt.NDArray[np.int64]
    sex: npt.NDArray[np.int64]
    postcode: npt.NDArray[np.int64]
    education: npt.NDArray[np.int64]
    condition: npt.NDArray[np.int64]
    diagnosis: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        for field in fields(self):
            column = np.array(getattr(self, field.name), dtype=np.int64)
            if column.shape != (len(self.age),):
                raise bad_parameter(
                    field.name,
                    f"one value for each of the {len(self.age)} people",
                    column.shape,
                    fix="columns of equal length",
                )
            column.flags.writeable = False
            object.__setattr__(self, field.name, column)

    def __len__(self) -> int:
        return len(self.age)

    def known(self, *names: str) -> dict[str, npt.NDArray[np.int64]]:
        """Return the columns with these names, or all quasi-identifiers."""
        return {name: getattr(self, name) for name in names or ("age", "sex", "postcode", "education")}

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Yield the people one by one, as tuples in the order of the columns."""
        columns = (getattr(self, field.name).tolist() for field in fields(self))
        return zip(*columns, strict=True)


def hashed_uniform(index: npt.ArrayLike, stream: int) -> npt.NDArray[np.float64]:
    """Map whole numbers evenly to [0, 1) by a public hash (SplitMix64); the result is not random.

    The people of the lab and the questions of the attackers come from this function: anyone can repeat them,
    and nothing secret depends on them. Noise that protects people always comes from `tacit.noise`.

    Examples
    --------
    >>> hashed_uniform([0, 1, 2], stream=7).round(3).tolist()
    [0.953, 0.231, 0.355]
    """
    with np.errstate(over="ignore"):
        z = np.asarray(index, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = z + np.uint64(stream + 1) * np.uint64(0xD1B54A32D192ED03)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def synthetic_people(n: SupportsIndex = 5000) -> People:
    """Generate `n` people who do not exist; they are the same in every call.

    Age, education and place have skewed distributions, as in a census. The condition becomes more common with
    age and differs between places; about one person in four has it.

    Parameters
    ----------
    n
        The number of people, at most a million.

    Examples
    --------
    >>> people = synthetic_people(5000)
    >>> len(people), round(float(people.condition.mean()), 2)
    (5000, 0.26)
    """
    size = Integer(1, _MOST_PEOPLE, instead=5000).read("n", n)
    index = np.arange(size)
    age = 18 + np.floor(73 * hashed_uniform(index, 1) ** 1.35)
    postcode = np.floor(_POSTCODES * hashed_uniform(index, 2) ** 1.8)
    learner = (hashed_uniform(index, 3) + hashed_uniform(index, 4)) / 2
    education = np.floor(8 + 12 * learner - np.where(age > 65, 1.5, 0))
    lean = 0.03 * (age - 52) + 1.2 * (hashed_uniform(postcode, 5) - 0.5) - 0.08 * (education - 13) - 1.1
    condition = hashed_uniform(index, 6) < 1 / (1 + np.exp(-lean))
    diagnosis = np.searchsorted(np.cumsum(_WEIGHTS), hashed_uniform(index, 7) * 0.999999, side="right")
    return People(
        age=age.astype(np.int64),
        sex=(hashed_uniform(index, 8) < 0.51).astype(np.int64),
        postcode=1000 + postcode.astype(np.int64),
        education=np.maximum(education, 6).astype(np.int64),
        condition=condition.astype(np.int64),
        diagnosis=diagnosis.astype(np.int64),
    )


def village() -> People:
    """Return the textbook case: nine people, three in each postcode; all three in 1003 have the condition.

    Examples
    --------
    >>> people = village()
    >>> people.condition[people.postcode == 1003].tolist()
    [1, 1, 1]
    """
    return People(
        age=np.array([34, 29, 41, 52, 47, 38, 61, 58, 66]),
        sex=np.array([0, 1, 0, 1, 1, 0, 0, 1, 0]),
        postcode=np.array([1001, 1001, 1001, 1002, 1002, 1002, 1003, 1003, 1003]),
        education=np.array([12, 16, 10, 13, 9, 15, 11, 14, 8]),
        condition=np.array([0, 1, 0, 1, 0, 0, 1, 1, 1]),
        diagnosis=np.array([0, 3, 1, 3, 0, 2, 3, 3, 3]),
    )


#: Each interval misses the true value with probability at most 1 - CONFIDENCE.
CONFIDENCE = 0.999


@dataclass(frozen=True, slots=True)
class Success:
    """How well an attack did against a release with cost epsilon.

    Attributes
    ----------
    epsilon
        The total cost of everything that the attacker saw.
    advantage
        The measured P(says yes | yes) - P(says yes | no). 0 is blind guessing, 1 is certainty.
    low, high
        An interval that contains the true advantage with probability `confidence`.
    bound
        The largest advantage of any attacker at this cost: tanh(epsilon / 2) for a pure cost.
    trials
        The number of trials in each world.
    confidence
        The confidence of the interval.
    """

    epsilon: float
    advantage: float
    low: float
    high: float
    bound: float
    trials: int
    confidence: float = CONFIDENCE

    @property
    def accuracy(self) -> float:
        """The share of right guesses if both worlds are equally likely."""
        return (1 + self.advantage) / 2

    @property
    def within_bound(self) -> bool:
        """Whether the measurement is compatible with the promise."""
        return self.low <= self.bound


def from_trials(
    epsilon: Fraction,
    yes: npt.NDArray[np.bool_],
    no: npt.NDArray[np.bool_],
    *,
    bound: float | None = None,
    confidence: float = CONFIDENCE,
) -> Success:
    """Compare how often the attacker says yes in the world where yes is true and in the other world.

    The bound is that of the pure cost `epsilon`, unless `bound` states that of another cost. Both shares get
    Clopper-Pearson bounds, each side at a quarter of the error probability; the interval of their difference
    holds by the union bound.
    """
    error = (1 - confidence) / 4  # two shares, two sides
    (hit_low, hit_high), (alarm_low, alarm_high) = (
        (float(side) for side in clopper_pearson(int(guesses.sum()), guesses.size, error))
        for guesses in (yes, no)
    )
    return Success(
        epsilon=float(epsilon),
        advantage=float(yes.mean() - no.mean()),
        low=hit_low - alarm_high,
        high=hit_high - alarm_low,
        bound=_bound(epsilon) if bound is None else bound,
        trials=yes.size,
        confidence=confidence,
    )


def from_means(
    epsilon: Fraction, shares: npt.NDArray[np.float64], *, confidence: float = CONFIDENCE
) -> Success:
    """Convert the share of right guesses in each independent trial (prior 50:50) to an advantage.

    The interval is the empirical Bernstein bound (Maurer and Pontil 2009, theorem 4) on both sides. It
    assumes only that the trials are independent and that the shares lie in [0, 1].
    """
    n = shares.size
    mean, variance = float(shares.mean()), float(shares.var(ddof=1))
    slack = math.log(4 / (1 - confidence))
    half = math.sqrt(2 * variance * slack / n) + 7 * slack / (3 * (n - 1))
    low, high = max(0.0, mean - half), min(1.0, mean + half)
    return Success(
        epsilon=float(epsilon),
        advantage=2 * mean - 1,
        low=2 * low - 1,
        high=2 * high - 1,
        bound=_bound(epsilon),
        trials=n,
        confidence=confidence,
    )


def curve_table(curve: Iterable[Success], title: str = "against Tacit") -> ReportTable:
    """Return a table of a success curve and its bound."""
    rows = tuple(
        (
            f"{point.epsilon:g}",
            f"{point.advantage:.3f}",
            f"{point.low:.3f} to {point.high:.3f}",
            f"{point.bound:.3f}",
            "yes" if point.within_bound else "NO",
        )
        for point in curve
    )
    header = ("epsilon", "attacker's advantage", f"{percent(CONFIDENCE)} interval", "bound", "within")
    return ReportTable(title, header, rows)


def read_epsilons(epsilons: Iterable[Number]) -> tuple[Fraction, ...]:
    """Read the epsilons to attack at; there must be at least one."""
    positive = Listed("positive numbers", "(0.1, 1)", each=RealNumber())
    return tuple(positive.read("epsilons", epsilons))


def read_trials(trials: int) -> int:
    """Read the number of trials: enough for an interval, and few enough for the memory."""
    return Integer(100, 10_000_000, instead=20_000).read("trials", trials)


def noisy_counts(counts: npt.NDArray[np.int64], epsilon: Fraction) -> npt.NDArray[np.int64]:
    """Release each count independently at `epsilon`, with sensitivity 1 and exact discrete Laplace noise."""
    return counts + noise.discrete_laplace(1 / epsilon, size=counts.shape)


def _bound(epsilon: Fraction) -> float:
    return Cost.pure(epsilon).advantage


@dataclass(frozen=True, slots=True)
class Power:
    """How many members an attacker finds who may wrongly accuse 5 % of the outsiders.

    Attributes
    ----------
    found
        The measured share of members whom the attacker finds.
    low, high
        An interval that contains the true share with probability `confidence`.
    bound
        The largest share that any attacker can find, if exactly 5 % of the outsiders are accused.
    ceiling
        The same bound for the measured false alarms: at the upper end of their interval.
    trials
        The number of trials in each world.
    confidence
        The confidence of the interval.
    """

    found: float
    low: float
    high: float
    bound: float
    ceiling: float
    trials: int
    confidence: float = CONFIDENCE

    @property
    def within_bound(self) -> bool:
        """Whether the measurement is compatible with the promise."""
        return self.low <= self.ceiling


def strongest_power(cost: Cost, false_alarms: float = FALSE_ALARMS) -> float:
    """Return the largest share of members that any attacker finds at this cost and share of false alarms."""
    return 1 - cost.tradeoff(min(1.0, false_alarms))


def power_at(members: npt.NDArray[np.float64], outsiders: npt.NDArray[np.float64]) -> float:
    """Return the share of members whose score is above that of 95 % of the outsiders."""
    return float((members > np.quantile(outsiders, 1 - FALSE_ALARMS, method="higher")).mean())


def measure_power(
    cost: Cost,
    flagged: npt.NDArray[np.bool_],
    alarms: npt.NDArray[np.bool_],
    *,
    confidence: float = CONFIDENCE,
) -> Power:
    """Compare how often the attacker accuses members (`flagged`) and outsiders (`alarms`) in a release.

    The trials are independent, and the attacker's threshold does not depend on them. Each share has a
    Clopper-Pearson interval at half of the error probability.
    """
    error = (1 - confidence) / 4  # two shares, two sides
    low, high = (float(side) for side in clopper_pearson(int(flagged.sum()), flagged.size, error))
    worst = float(clopper_pearson(int(alarms.sum()), alarms.size, error)[1])
    return Power(
        found=float(flagged.mean()),
        low=low,
        high=high,
        bound=strongest_power(cost),
        ceiling=strongest_power(cost, worst),
        trials=flagged.size,
        confidence=confidence,
    )
