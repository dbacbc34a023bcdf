"""Attacks on genomes, in the lab: membership by allele frequencies, beacons, and singling out by markers.

Allele frequencies reveal who took part (Homer and others 2008). A beacon answers whether anybody carries an
allele, and so reveals who is inside (Shringarpure 2015). A few markers single out one person. The markers
have public frequencies, and a public recipe generates the people.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, SupportsIndex

import numpy as np

from tacit.accounting import Cost
from tacit.audit.lab._worlds import (
    CONFIDENCE,
    FALSE_ALARMS,
    Power,
    Success,
    curve_table,
    from_trials,
    hashed_uniform,
    measure_power,
    noisy_counts,
    power_at,
    read_epsilons,
    read_trials,
)
from tacit.bisection import first_integer
from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.parameters import Choice, Integer, Listed
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from tacit.accounting import Adjacency
    from tacit.exact import Number
    from tacit.mechanisms import DiscreteGaussian
    from tacit.show import Figure


_GRID: Final = 16  # steps of one allele; frequencies are centred at a sixteenth of an allele
_BLOCK: Final = 100  # people at a time
_MISREAD: Final = 0.001  # the share of alleles that sequencing gets wrong
_CARRIED: Final = 20_000  # alleles of one genome from which the attacker picks the rarest
_ASKED_OF_TACIT: Final = 100
_SURE: Final = 0.95
_STEP: Final = 0.005  # of the logarithm of a probability
_MOST_MARKERS: Final = 120
#: The frequencies of the rarer allele: as informative as possible, and spread between 0.05 and 0.5.
_KINDS: Final = {"0.5": (0.5, 0.5), "0.05 to 0.5": (0.05, 0.5)}


@dataclass(frozen=True, slots=True, eq=False)
class MarkerSample:
    """Members of a study and as many outsiders from the same population, who do not exist.

    Attributes
    ----------
    reference
        The public frequency of the counted allele in the population, for each marker.
    members, outsiders
        The number of counted alleles (0, 1 or 2) for each person and marker.
    """

    reference: npt.NDArray[np.float64]
    members: npt.NDArray[np.int8]
    outsiders: npt.NDArray[np.int8]

    @classmethod
    def of(cls, people: int, snps: int) -> MarkerSample:
        """Generate a cohort; it is the same in every call."""
        reference = marker_frequencies(snps)
        sample = genotypes(reference, 2 * people)
        return cls(reference, sample[:people], sample[people:])

    @property
    def norm_squared(self) -> int:
        """The public limit on the squared length of one person's row, in grid steps: 1.1 times its mean."""
        return int(1.1 * _GRID**2 * float((2 * self.reference * (1 - self.reference)).sum()))

    def centred(self, people: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
        """Return what each person adds to the released sums: alleles above the reference, clipped in length.

        A longer row is scaled down and rounded toward zero, so that it never exceeds the limit.
        """
        rows = _GRID * people.astype(np.int64) - self._centre
        length = np.sqrt((rows.astype(np.float64) ** 2).sum(axis=1))
        shrink = np.minimum(1.0, np.sqrt(self.norm_squared) * (1 - 1e-12) / np.maximum(length, 1))
        return np.where((shrink < 1)[:, None], np.trunc(rows * shrink[:, None]), rows).astype(np.int64)

    def frequencies(self, sums: npt.NDArray[np.int64], people: int) -> npt.NDArray[np.float64]:
        """Read allele frequencies from centred sums, cut to what a cohort of this size can show."""
        alleles = (self._centre + sums / people) / (2 * _GRID)
        floor = 1 / (4 * people)
        return np.clip(alleles, floor, 1 - floor)

    @property
    def _centre(self) -> npt.NDArray[np.int64]:
        return np.rint(_GRID * 2 * self.reference).astype(np.int64)


def marker_frequencies(snps: int) -> npt.NDArray[np.float64]:
    """Return the frequencies of the rarer allele, spread evenly between 0.05 and 0.5."""
    return 0.05 + 0.45 * hashed_uniform(np.arange(snps), stream=60)


def genotypes(frequency: npt.NDArray[np.float64], people: int, stream: int = 61) -> npt.NDArray[np.int8]:
    """Draw 0, 1 or 2 alleles per person and marker, in the proportions of Hardy and Weinberg."""
    snps = frequency.size
    two, heterozygous = frequency**2, 1 - (1 - frequency) ** 2
    codes = np.empty((people, snps), dtype=np.int8)
    for start in range(0, people, _BLOCK):
        end = min(people, start + _BLOCK)
        level = hashed_uniform(np.arange(start * snps, end * snps), stream).reshape(end - start, snps)
        codes[start:end] = (level < heterozygous).astype(np.int8) + (level < two)
    return codes


_DELTA: Final = Fraction(1, 10**9)
_CELLS: Final = 2_000_000  # noisy counts at a time
_Z: Final = 1.6448536269514722  # a standard normal variable exceeds it with probability 5 %


@dataclass(frozen=True, slots=True, repr=False)
class GenomeMembership(Drawn, Reportable):
    """Whether a person's genome shows that the person took part in a study.

    Attributes
    ----------
    people
        The number of people in the study.
    adjacency
        The worlds that the attack compares: "add/remove" (the number of people is private) or "replace"
        (it is public). The bounds are for these worlds.
    exact, theory
        The share of members found in exact frequencies at 5 % false alarms, for each number of SNPs:
        measured, and by the formula Phi(sqrt(SNPs / people) - 1.645).
    rho, delta
        The cost of each release under zero-concentrated privacy, and the delta that goes with its epsilon.
    homer
        The power of the same attack against frequencies released with Tacit, with its bound.
    insider
        The power of an attacker who also knows the genomes of everybody else in the study.
    curve
        The insider's advantage, with its bound; epsilon goes with `delta`.
    """

    people: int
    adjacency: str
    exact: dict[int, float]
    theory: dict[int, float]
    rho: tuple[float, ...]
    delta: float
    homer: tuple[Power, ...]
    insider: tuple[Power, ...]
    curve: tuple[Success, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        largest = max(self.exact)
        lead = (
            (
                f"A study of {self.people:,} people publishes how frequent an allele is at each marker, and "
                "no other figure. The attacker has the genome of one person and the public frequencies of "
                f"the population, and may wrongly accuse 5 % of the outsiders. With {largest:,} exact "
                f"frequencies the attacker finds {percent(self.exact[largest], 0)} of the members."
            ),
            (
                f"With Tacit the same {largest:,} frequencies are released with noise. No attacker finds "
                "more members than the bound, not even an insider who knows the genomes of everybody else in "
                "the study."
            ),
        )
        rows = tuple(
            (f"{snps:,}", percent(self.exact[snps]), percent(self.theory[snps])) for snps in self.exact
        )
        noisy = tuple(
            (
                f"{point.epsilon:g}",
                f"{rho:.3g}",
                percent(homer.found),
                f"{percent(insider.found)} ({100 * insider.low:.1f} to {100 * insider.high:.1f})",
                percent(insider.bound),
                "yes" if homer.within_bound and insider.within_bound else "NO",
            )
            for point, rho, homer, insider in zip(self.curve, self.rho, self.homer, self.insider, strict=True)
        )
        header = ("epsilon", "rho", "members found", "by an insider", "bound", "within")
        note = (
            f"Blind guessing finds {percent(FALSE_ALARMS, 0)} of the members. Measured in "
            f"{self.curve[0].trials:,} trials in each world, with a {percent(CONFIDENCE)} interval. Epsilon "
            f"goes with delta {self.delta:g}. {_WORLDS[self.adjacency]}"
        )
        exact = ReportTable("exact frequencies", ("SNPs", "members found", "theory"), rows)
        tables = (exact, ReportTable("against Tacit", header, noisy))
        return Report("Genome membership attack", lead, tables, (note,))

    @property
    def unprotected(self) -> str:
        """What the answers give away without Tacit, in a few words."""
        largest = max(self.exact)
        return f"{percent(self.exact[largest], 0)} of members found in {largest:,} exact allele frequencies"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `epsilons`."""
        return self.curve

    def figures(self) -> tuple[Figure, ...]:
        """Return the members found over the number of SNPs, exact and with Tacit, and over epsilon."""
        from tacit.explain import genome_powers

        noisy = [(each.found, each.low, each.high, each.bound) for each in self.insider]
        epsilons = [point.epsilon for point in self.curve]
        return (genome_powers(self.exact, self.theory, epsilons, noisy, blind=FALSE_ALARMS),)


_WORLDS = {
    "add/remove": (
        "The number of people is private: the target is in the study of one world and absent in the other."
    ),
    "replace": (
        "The number of people is public, so in the other world somebody else takes the target's place. The "
        "noise is chosen for the stated rho, which is for adding or removing a person. If a person is "
        "replaced, rho is four times as large, and the bound is that of the larger rho."
    ),
}


def genome_membership(
    people: SupportsIndex = 1000,
    *,
    snps: Iterable[SupportsIndex] = (100, 1000, 3000, 10_000),
    adjacency: Adjacency = "add/remove",
    epsilons: Iterable[Number] = (0.1, 1, 4),
    trials: int = 2000,
) -> GenomeMembership:
    """Find out from allele frequencies whether a person took part in a study.

    The score is the likelihood ratio of the person's genome under the frequencies of the study and under
    those of the population (Homer and others 2008; Sankararaman and others 2009). Against Tacit, the sums of
    alleles above a public reference are clipped in length for each person and get discrete Gaussian noise.
    All epsilons go with delta 1e-9 and with people who are added or removed. The bound on the members found
    is Phi(mu - 1.645), where mu is sqrt(2 rho); if the number of people is public, mu is 2 sqrt(2 rho). (The
    bound is that of Gaussian noise. At these scales, noise on whole numbers differs from it by far less than
    floating-point numbers can show.)

    Parameters
    ----------
    people
        The number of people in the study, from 20 to 5,000.
    snps
        The numbers of markers whose frequencies are published; the largest is attacked with noise.
    adjacency
        "add/remove": the target is in the study of one world and absent in the other. "replace": another
        person takes the place, because the number of people is public.
    epsilons
        The costs at which the frequencies are released.
    trials
        The number of trials in each world, for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.genome_membership(100, snps=[1000], epsilons=[1], trials=500)
    >>> attack.exact[1000] > 0.85, attack.insider[0].within_bound
    (True, True)
    >>> round(attack.insider[0].bound, 3)
    0.071
    """
    from tacit.mechanisms import DiscreteGaussian

    promised, number = read_epsilons(epsilons), read_trials(trials)
    n = count("people", people)
    sizes = sorted({count("snps", size, zero=False) for size in snps})
    if not 20 <= n <= 5000 or not sizes or n * sizes[-1] > 20_000_000:
        raise bad_parameter(
            "people",
            "between 20 and 5,000, with at most 20 million genotypes",
            (n, sizes),
            fix=Set(people=1000, snps=(100, 1000, 10_000)),
        )
    Choice(tuple(_WORLDS)).read("adjacency", adjacency)
    cohort = MarkerSample.of(n, sizes[-1])
    worlds = _Worlds(cohort, replaced=adjacency == "replace")
    homers, insiders, curve, rhos = [], [], [], []
    for epsilon in promised:
        noise = DiscreteGaussian(epsilon=epsilon, delta=_DELTA, sensitivity_squared=cohort.norm_squared)
        sensitivity = (2 if adjacency == "replace" else 1) * noise.sensitivity
        cost = Cost.gaussian(sigma=noise.sigma, sensitivity=sensitivity)
        scores = [worlds.attack(noise, number, member=member) for member in (True, False)]
        homers.append(measure_power(cost, *(world.homer > _Z for world in scores)))
        insiders.append(measure_power(cost, *(world.insider > _Z for world in scores)))
        guesses = (world.insider > world.shift / 2 for world in scores)
        curve.append(from_trials(epsilon, *guesses, bound=cost.advantage))
        rhos.append(float(noise.sensitivity_squared / (2 * noise.sigma**2)))
    return GenomeMembership(
        people=n,
        adjacency=adjacency,
        exact={size: _exact_power(cohort, size) for size in sizes},
        theory={size: _theory(size / n) for size in sizes},
        rho=tuple(rhos),
        delta=float(_DELTA),
        homer=tuple(homers),
        insider=tuple(insiders),
        curve=tuple(curve),
    )


def _theory(ratio: float) -> float:
    from scipy.special import ndtr

    return float(ndtr(math.sqrt(ratio) - _Z))


def _weights(
    frequency: npt.NDArray[np.float64], reference: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the log-likelihood ratio of one allele at each marker, and of a genome without such alleles."""
    carrier, none = np.log(frequency / reference), np.log((1 - frequency) / (1 - reference))
    return carrier - none, 2 * none.sum(axis=-1)


def _exact_power(cohort: MarkerSample, size: int) -> float:
    """Attack exact frequencies of `size` markers, averaged over as many separate sets as there are."""
    n, powers = len(cohort.members), []
    for start in range(0, cohort.reference.size - size + 1, size):
        part = slice(start, start + size)
        frequency = cohort.members[:, part].sum(axis=0, dtype=np.int64) / (2 * n)
        frequency = np.clip(frequency, 1 / (4 * n), 1 - 1 / (4 * n))
        weights, base = _weights(frequency, cohort.reference[part])
        inside, outside = (
            people[:, part].astype(np.float64) @ weights + base
            for people in (cohort.members, cohort.outsiders)
        )
        powers.append(power_at(inside, outside))
    return float(np.mean(powers))


class _Scores(NamedTuple):
    """The scores of two attackers, one for each trial.

    Both scores have a standard normal law without the target; the target shifts the insider's by `shift`.
    """

    homer: npt.NDArray[np.float64]
    insider: npt.NDArray[np.float64]
    shift: npt.NDArray[np.float64]


class _Worlds:
    """The two worlds of each trial: the study with its target, and without the target."""

    def __init__(self, cohort: MarkerSample, *, replaced: bool) -> None:
        self.cohort, self.replaced = cohort, replaced
        self.inside, self.outside = cohort.centred(cohort.members), cohort.centred(cohort.outsiders)
        self.total = self.inside.sum(axis=0)

    def attack(self, noise: DiscreteGaussian, trials: int, *, member: bool) -> _Scores:
        """Release the frequencies afresh in each trial and score the target, as Homer and as the insider."""
        step = max(1, _CELLS // self.total.size)
        parts = [
            self._some(noise, np.arange(first, min(trials, first + step)) % len(self.inside), member=member)
            for first in range(0, trials, step)
        ]
        homer, insider, shift = (np.concatenate(side) for side in zip(*parts, strict=True))
        return _Scores(homer, insider, shift)

    def _some(self, noise: DiscreteGaussian, target: npt.NDArray[np.int64], *, member: bool) -> _Scores:
        mine = self.inside[target]
        other = self.outside[target] if self.replaced else np.zeros_like(mine)
        rest = self.total - mine
        released = np.asarray(noise.release(rest + (mine if member else other)), dtype=np.int64)
        frequency = self.cohort.frequencies(released, len(self.inside))
        homer = self._standardised(self.cohort.members[target], frequency)
        change = mine - other
        spread = float(noise.sigma) * np.sqrt((change**2).sum(axis=1))
        insider = np.einsum("ij,ij->i", released - rest - other, change) / spread
        return _Scores(homer, insider, spread / float(noise.sigma) ** 2)

    def _standardised(
        self, genomes: npt.NDArray[np.int8], frequency: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Return the likelihood ratio of each genome, compared with that of outsiders in the same release."""
        reference = self.cohort.reference
        weights, _ = _weights(frequency, reference)
        spread = np.sqrt((weights**2) @ (2 * reference * (1 - reference)))
        above: npt.NDArray[np.float64] = np.einsum("ij,ij->i", genomes - 2 * reference, weights)
        return above / spread


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
    asked_for = Listed("whole numbers", "(100, 1000)", each=Integer(1, 10_000))
    numbers = sorted(set(asked_for.read("questions", questions)))
    powers = {}
    for size in numbers:
        members, outsiders = (_random_questions(n, size, min(number, 2000), inside=side) for side in (1, 0))
        powers[size] = power_at(members, outsiders)
    few = min(10, numbers[-1])
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
    guesses: npt.NDArray[np.bool_] = 2 * (more >= 1).sum(axis=1) > more.shape[1]
    return guesses


def _random_questions(n: int, questions: int, trials: int, *, inside: int) -> npt.NDArray[np.float64]:
    """Score one new person in each trial, from answers about random alleles of this person."""
    step = max(1, 2_000_000 // questions)
    scores = []
    for start in range(0, trials, step):
        index = (
            np.arange(start * questions, min(trials, start + step) * questions) + inside * trials * questions
        )
        frequency = 0.5 * hashed_uniform(index, stream=70).reshape(-1, questions)
        scores.append(_score(n, frequency, hashed_uniform(index, stream=71).reshape(-1, questions), inside))
    return np.concatenate(scores)


def _rarest_questions(n: int, questions: int, trials: int, *, inside: int) -> npt.NDArray[np.float64]:
    """Score one new person in each trial, from answers about the rarest alleles of this person."""
    scores = np.empty(trials)
    for trial in range(trials):
        index = np.arange(_CARRIED) + (2 * trial + inside) * _CARRIED
        frequency = 0.5 * hashed_uniform(index, stream=73)
        rare = np.partition(frequency, questions - 1)[None, :questions]
        level = hashed_uniform(index[:questions], stream=74)[None, :]
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


@dataclass(frozen=True, slots=True, repr=False)
class SinglingOut(Drawn, Reportable):
    """How many genetic markers are enough to tell one person from all others.

    Attributes
    ----------
    crowds
        The numbers of people in the crowd.
    one
        For each kind of marker (by the frequency of its rarer allele), the number of markers that make one
        person unique in each crowd, with probability 95 %.
    everybody
        The same for all people of the crowd at once.
    alone
        The share of people who are unique by their first markers in a crowd of `simulated` people, for each
        number of markers of frequency 0.5: by the formula, and counted.
    simulated
        The number of simulated people.
    curve
        The attacker's success against Tacit: a noisy count of the people who have the target's markers.
    """

    crowds: tuple[int, ...]
    one: dict[str, tuple[int, ...]]
    everybody: dict[str, tuple[int, ...]]
    alone: dict[int, tuple[float, float]]
    simulated: int
    curve: tuple[Success, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        largest, common = self.crowds[-1], next(iter(self.one))
        lead = (
            (
                "A marker is a place in the genome where people differ: each person has 0, 1 or 2 copies of "
                f"an allele. {self.one[common][-1]} markers are enough to single out one person among "
                f"{largest:,}, and {self.everybody[common][-1]} tell all {largest:,} apart. A table without "
                "names that contains these markers is not anonymous."
            ),
            (
                "The exact number of people with all these markers is 1 or 0, and reveals whether the target "
                "is in the data. A noisy count from Tacit hides the difference of one person."
            ),
        )
        sizes = tuple(
            (f"{crowd:,}", kind, f"{self.one[kind][place]}", f"{self.everybody[kind][place]}")
            for place, crowd in enumerate(self.crowds)
            for kind in self.one
        )
        header = ("people", "frequency of the rarer allele", "to single out one", "to tell all apart")
        shares = tuple(
            (f"{markers}", percent(formula), percent(counted))
            for markers, (formula, counted) in self.alone.items()
        )
        tables = (
            ReportTable(f"markers needed, to be {percent(_SURE, 0)} sure", header, sizes),
            ReportTable(
                f"unique people among {self.simulated:,}", ("markers", "by the formula", "counted"), shares
            ),
            curve_table(self.curve),
        )
        note = "The markers are independent, and the people are unrelated. Relatives need a few markers more."
        return Report("Singling-out attack", lead, tables, (note,))

    @property
    def unprotected(self) -> str:
        """What the answers give away without Tacit, in a few words."""
        return f"{next(iter(self.one.values()))[-1]} markers single out one of {self.crowds[-1]:,} people"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `epsilons`."""
        return self.curve

    def figures(self) -> tuple[Figure, ...]:
        """Return the share of unique people over the number of markers, and the success against Tacit."""
        from tacit.explain import unique_people

        return (unique_people(self.alone, self.simulated, self.curve),)


def singling_out(
    crowds: Iterable[SupportsIndex] = (1000, 1_000_000),
    *,
    simulated: SupportsIndex = 1000,
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2, 4),
    trials: int = 20_000,
) -> SinglingOut:
    """Count the markers that single out one person, in closed form and among simulated people.

    A person whose genotypes together have probability P is unique among N unrelated people with probability
    (1 - P)^(N - 1); the figures average this over people (Hardy-Weinberg, independent markers). All N people
    differ with probability about exp(-N (N - 1) / 2 x M), where M is the probability that two people agree.

    Parameters
    ----------
    crowds
        The numbers of people, each from 10 to ten billion.
    simulated
        The number of people to simulate, from 10 to 20,000.
    epsilons
        The costs of the noisy count.
    trials
        The number of trials in each world, for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.singling_out(epsilons=[1], trials=1000)
    >>> attack.one["0.5"], attack.everybody["0.5"]
    ((11, 17), (17, 31))
    """
    exact, number = read_epsilons(epsilons), read_trials(trials)
    crowd_sizes = Listed("whole numbers", "(1000, 1_000_000)", each=Integer(10, 10**10, instead=1000))
    sizes = sorted(set(crowd_sizes.read("crowds", crowds)))
    few = Integer(10, 20_000, instead=1000).read("simulated", simulated)
    curve = tuple(
        from_trials(epsilon, *(noisy_counts(np.full(number, here), epsilon) >= 1 for here in (1, 0)))
        for epsilon in exact
    )
    people = genotypes(np.full(16, 0.5), few, stream=80)
    unique = {}
    for markers in (4, 6, 8, 10, 12, 16):
        _, size = np.unique(people[:, :markers], axis=0, return_counts=True)
        unique[markers] = (unique_share(spread(markers, (0.5, 0.5)), few), float((size == 1).sum() / few))
    return SinglingOut(
        crowds=tuple(sizes),
        one=_fewest(sizes, unique_share),
        everybody=_fewest(sizes, all_apart),
        alone=unique,
        simulated=few,
        curve=curve,
    )


def spread(markers: int, ends: tuple[float, float]) -> npt.NDArray[np.float64]:
    """Return the frequencies of this many markers, evenly spread between two ends."""
    low, high = ends
    return low + (high - low) * (np.arange(markers) + 0.5) / markers


def unique_share(frequency: npt.NDArray[np.float64], crowd: int) -> float:
    """Return the expected share of people who are unique in a crowd, by markers of these frequencies."""
    law = np.ones(1)
    for rare in frequency:
        chances = np.array([rare**2, 2 * rare * (1 - rare), (1 - rare) ** 2])
        law = np.convolve(law, np.bincount(np.rint(-np.log(chances) / _STEP).astype(np.int64), chances))
    probability = np.exp(-_STEP * np.arange(law.size))
    with np.errstate(divide="ignore"):
        return float((law * np.exp((crowd - 1) * np.log1p(-probability))).sum())


def all_apart(frequency: npt.NDArray[np.float64], crowd: int) -> float:
    """Return the probability that all people of a crowd differ, by markers of these frequencies."""
    agree = (frequency**4 + (2 * frequency * (1 - frequency)) ** 2 + (1 - frequency) ** 4).prod()
    return math.exp(-crowd * (crowd - 1) / 2 * float(agree))


def _fewest(
    crowds: list[int], chance: Callable[[npt.NDArray[np.float64], int], float]
) -> dict[str, tuple[int, ...]]:
    """Return the least number of markers with which `chance` is at least 95 %, for each kind and crowd."""

    def enough(crowd: int, ends: tuple[float, float]) -> int:
        # more markers never make people less distinct
        return first_integer(lambda markers: chance(spread(markers, ends), crowd) >= _SURE, 0, _MOST_MARKERS)

    return {kind: tuple(enough(crowd, ends) for crowd in crowds) for kind, ends in _KINDS.items()}
