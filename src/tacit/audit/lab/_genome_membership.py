"""The attack lab on genomes: allele frequencies reveal who took part (Homer and others 2008)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, SupportsIndex

import numpy as np

from tacit.accounting import Cost
from tacit.audit.lab._markers import MarkerSample
from tacit.audit.lab._power import FALSE_ALARMS, Power, measure_power, power_at
from tacit.audit.lab._success import CONFIDENCE, Success, from_trials, read_epsilons, read_trials
from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.parameters import Choice
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from tacit.accounting import Adjacency
    from tacit.exact import Number
    from tacit.mechanisms import DiscreteGaussian
    from tacit.show import Figure

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
        most = max(self.exact)
        lead = (
            (
                f"A study of {self.people:,} people publishes how frequent an allele is at each marker, and "
                "no other figure. The attacker has the genome of one person and the public frequencies of "
                f"the population, and may wrongly accuse 5 % of the outsiders. With {most:,} exact "
                f"frequencies the attacker finds {percent(self.exact[most], 0)} of the members."
            ),
            (
                f"With Tacit the same {most:,} frequencies are released with noise. No attacker finds more "
                "members than the bound, not even an insider who knows the genomes of everybody else in the "
                "study."
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
        most = max(self.exact)
        return f"{percent(self.exact[most], 0)} of members found in {most:,} exact allele frequencies"

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
        moved = (2 if adjacency == "replace" else 1) * noise.sensitivity
        cost = Cost.gaussian(sigma=noise.sigma, sensitivity=moved)
        scores = [worlds.attack(noise, number, member=member) for member in (True, False)]
        homers.append(measure_power(cost, *(world.homer > _Z for world in scores)))
        insiders.append(measure_power(cost, *(world.insider > _Z for world in scores)))
        said = (world.insider > world.shift / 2 for world in scores)
        curve.append(from_trials(epsilon, *said, bound=cost.advantage))
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
    one, none = np.log(frequency / reference), np.log((1 - frequency) / (1 - reference))
    return one - none, 2 * none.sum(axis=-1)


def _exact_power(cohort: MarkerSample, size: int) -> float:
    """Attack exact frequencies of `size` markers, averaged over as many separate sets as there are."""
    n, found = len(cohort.members), []
    for first in range(0, cohort.reference.size - size + 1, size):
        part = slice(first, first + size)
        frequency = cohort.members[:, part].sum(axis=0, dtype=np.int64) / (2 * n)
        frequency = np.clip(frequency, 1 / (4 * n), 1 - 1 / (4 * n))
        weights, base = _weights(frequency, cohort.reference[part])
        inside, outside = (
            people[:, part].astype(np.float64) @ weights + base
            for people in (cohort.members, cohort.outsiders)
        )
        found.append(power_at(inside, outside))
    return float(np.mean(found))


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
