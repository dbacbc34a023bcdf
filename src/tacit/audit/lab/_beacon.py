"""The attack lab on beacons: "does anybody carry this allele?" reveals who is inside (Shringarpure 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, SupportsIndex

import numpy as np

from tacit.audit.lab._people import hashed_uniform
from tacit.audit.lab._power import FALSE_ALARMS, power_at
from tacit.audit.lab._success import (
    Success,
    curve_table,
    from_trials,
    noisy_counts,
    read_epsilons,
    read_trials,
)
from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from tacit.exact import Number
    from tacit.show import Figure

_MISREAD: Final = 0.001  # the share of alleles that sequencing gets wrong
_CARRIED: Final = 20_000  # alleles of one genome from which the attacker picks the rarest
_ASKED_OF_TACIT: Final = 100


@dataclass(frozen=True, slots=True, repr=False)
class BeaconAttack(Drawn, Reportable):
    """Whether a beacon, which answers only yes or no, reveals that a person's genome is in its database.

    Attributes
    ----------
    people
        The number of people in the database.
    random, rarest
        The share of members found at 5 % false alarms, for each number of questions: about random alleles of
        the person, and about the person's rarest alleles.
    asked
        The number of questions that the attacker asks Tacit.
    curve
        The attacker's success against noisy counts of carriers; epsilon is the total of all questions.
    """

    people: int
    random: dict[int, float]
    rarest: dict[int, float]
    asked: int
    curve: tuple[Success, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        few, many = min(self.rarest), max(self.random)
        lead = (
            (
                f"A beacon holds the genomes of {self.people:,} people. It says only whether anybody in it "
                "carries an allele. The attacker has the genome of one person, asks about alleles of this "
                f"person, and may wrongly accuse {percent(FALSE_ALARMS, 0)} of the outsiders. After {many:,} "
                f"questions the attacker finds {percent(self.random[many], 0)} of the members. {few} "
                f"questions about the rarest alleles find {percent(self.rarest[few], 0)}."
            ),
            (
                f"Tacit answers {self.asked:,} such questions with noisy counts of carriers, which together "
                "cost epsilon. The bound holds even for an attacker who knows everybody else in the database."
            ),
        )
        rows = (
            *(("random alleles", f"{asked:,}", percent(share)) for asked, share in self.random.items()),
            *(("rarest alleles", f"{asked:,}", percent(share)) for asked, share in self.rarest.items()),
        )
        exact = ReportTable("exact yes or no", ("asked about", "questions", "members found"), rows)
        return Report("Beacon attack", lead, (exact, curve_table(self.curve)))

    @property
    def unprotected(self) -> str:
        """What the answers give away without Tacit, in a few words."""
        few = min(self.rarest)
        return f"{percent(self.rarest[few], 0)} of members found by {few} yes-or-no questions"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `epsilons`."""
        return self.curve

    def figures(self) -> tuple[Figure, ...]:
        """Return the members found over the number of questions, and the success against Tacit."""
        from tacit.explain import beacon_powers

        return (beacon_powers(self.random, self.rarest, self.curve, blind=FALSE_ALARMS),)


def beacon(
    people: SupportsIndex = 1000,
    *,
    questions: Iterable[SupportsIndex] = (100, 1000, 5000),
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2, 4),
    trials: int = 2000,
) -> BeaconAttack:
    """Ask a beacon about alleles of one person, and decide whether the person is in it.

    An allele of frequency f is absent from N other people with probability D = (1 - f)^(2N). The attacker
    adds ln((1 - e D') / (1 - D)) for each yes and ln(e D' / D) for each no, where D' = (1 - f)^(2N - 2) and
    e = 0.001 is the rate of misread alleles (Shringarpure and Bustamante 2015). The frequencies of a person's
    alleles are spread evenly between 0 and 0.5, as in a population of constant size. Against Tacit, one
    person changes the count of carriers of each asked allele by 1, so each of the 100 counts costs
    epsilon / 100.

    Parameters
    ----------
    people
        The number of people in the database.
    questions
        The numbers of questions about random alleles of the person, each at most 10,000.
    epsilons
        The total costs of all noisy counts together.
    trials
        The number of people to attack in each world.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.beacon(questions=[5000], epsilons=[1], trials=200)
    >>> attack.random[5000] > 0.95, attack.rarest[10], attack.curve[0].within_bound
    (True, 1.0, True)
    """
    exact, number = read_epsilons(epsilons), read_trials(trials)
    n = count("people", people, zero=False)
    asked = sorted({count("questions", each, zero=False) for each in questions})
    if not asked or asked[-1] > 10_000:
        raise bad_parameter(
            "questions", "numbers between 1 and 10,000", asked, fix=Set(questions=(100, 1000))
        )
    powers = {}
    for size in asked:
        members, outsiders = (_random_questions(n, size, min(number, 2000), inside=side) for side in (1, 0))
        powers[size] = power_at(members, outsiders)
    few = min(10, asked[-1])
    members, outsiders = (_rarest_questions(n, few, min(number, 500), inside=side) for side in (1, 0))
    carriers = np.floor(n * hashed_uniform(np.arange(_ASKED_OF_TACIT), stream=72)).astype(np.int64)
    curve = []
    for epsilon in exact:
        worlds = (
            noisy_counts(np.tile(carriers + here, (number, 1)), epsilon / _ASKED_OF_TACIT) - carriers
            for here in (1, 0)
        )
        curve.append(from_trials(epsilon, *(_likelier(more) for more in worlds)))
    return BeaconAttack(n, powers, {few: power_at(members, outsiders)}, _ASKED_OF_TACIT, tuple(curve))


def _likelier(more: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Say in which trials most counts are above those without the target: the likelihood ratio test."""
    said: npt.NDArray[np.bool_] = 2 * (more >= 1).sum(axis=1) > more.shape[1]
    return said


def _random_questions(n: int, asked: int, trials: int, *, inside: int) -> npt.NDArray[np.float64]:
    """Score one new person in each trial, from answers about random alleles of this person."""
    step = max(1, 2_000_000 // asked)
    scores = []
    for first in range(0, trials, step):
        index = np.arange(first * asked, min(trials, first + step) * asked) + inside * trials * asked
        frequency = 0.5 * hashed_uniform(index, stream=70).reshape(-1, asked)
        scores.append(_score(n, frequency, hashed_uniform(index, stream=71).reshape(-1, asked), inside))
    return np.concatenate(scores)


def _rarest_questions(n: int, asked: int, trials: int, *, inside: int) -> npt.NDArray[np.float64]:
    """Score one new person in each trial, from answers about the rarest alleles of this person."""
    scores = np.empty(trials)
    for trial in range(trials):
        index = np.arange(_CARRIED) + (2 * trial + inside) * _CARRIED
        frequency = 0.5 * hashed_uniform(index, stream=73)
        rare = np.partition(frequency, asked - 1)[None, :asked]
        level = hashed_uniform(index[:asked], stream=74)[None, :]
        scores[trial] = _score(n, rare, level, inside)[0]
    return scores


def _score(
    n: int, frequency: npt.NDArray[np.float64], level: npt.NDArray[np.float64], inside: int
) -> npt.NDArray[np.float64]:
    """Return the log-likelihood ratio of a beacon's answers about alleles that the target carries."""
    log_absent = 2 * n * np.log1p(-frequency)  # nobody else carries the allele
    log_missed = np.log(_MISREAD) + (2 * n - 2) * np.log1p(-frequency)
    absent, missed = np.exp(log_absent), np.exp(log_missed)
    no = level < (missed if inside else absent)
    ratio = np.where(no, log_missed - log_absent, np.log1p(-missed) - np.log1p(-absent))
    score: npt.NDArray[np.float64] = ratio.sum(axis=1)
    return score
