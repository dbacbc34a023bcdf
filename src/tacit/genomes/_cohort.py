"""A cohort: genotypes of people, who are protected, public facts about the variants, and its questions."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from tacit.core import ANY_TOTAL, Argument, Dataset, DatasetKind, Goal, QuestionKind, WireForm, plannable
from tacit.exact import rational, read_fraction
from tacit.genomes._association import draft_top_snps
from tacit.genomes._components import draft_components, read_places
from tacit.genomes._frequencies import draft_frequencies, reference_document
from tacit.genomes._quality_control import draft_hardy_weinberg, draft_missingness
from tacit.genomes._summary_statistics import draft_summary_statistics, read_covariates
from tacit.parameters import Anything, Choice, ColumnName, Flag, Integer, RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON, AnswerTable, Question
    from tacit.exact import Number
    from tacit.genomes._components import PrincipalComponents
    from tacit.genomes._frequencies import AlleleFrequencies
    from tacit.genomes._genotypes import GenotypeSource
    from tacit.genomes._sites import SiteList
    from tacit.genomes._summary_statistics import SummaryStatistics


_PURE: frozenset[str] = frozenset()


def _exact(value: Fraction | None) -> JSON:
    return None if value is None else str(value)


def _read_exact(document: Any) -> Any:
    """Read a number, or several, or none."""
    if document is None:
        return None
    return tuple(map(read_fraction, document)) if isinstance(document, list) else read_fraction(document)


def _known_as(
    kind: str, takes: frozenset[str] = ANY_TOTAL, **writers: Callable[[Question[Any]], JSON]
) -> WireForm:
    """Return the form of a question: its kind and its goal, with its arguments beside them.

    Parameters
    ----------
    writers
        How each argument is written that is not JSON already.
    """

    def write(question: Question[Any], goal: Goal) -> JSON:
        arguments = {name: of(question) for name, of in writers.items()}
        return {"kind": kind, "goal": goal.to_json(), **question.arguments, **arguments}

    def read(_dataset: object, request: Mapping[str, Any]) -> tuple[dict[str, Any], Goal] | None:
        if request.get("kind") != kind:
            return None
        arguments = {name: value for name, value in request.items() if name not in {"kind", "goal"}}
        exact = {
            name: _read_exact(arguments[name]) for name in ("clip", "threshold", "trait") if name in arguments
        }
        return arguments | exact, Goal.from_json(request["goal"], takes)

    return WireForm(write, read)


def _clip(question: Question[Any]) -> JSON:
    return _exact(question.arguments["clip"])


def _reference(question: Question[Any]) -> JSON:
    return reference_document(question.arguments["reference"])


def _variants(question: Question[Any]) -> JSON:
    """Write the variants as their numbers."""
    cohort: Any = question.dataset
    variants = question.arguments["variants"]
    return None if variants is None else [int(place) + 1 for place in read_places(cohort, variants)]


def _covariates(question: Question[Any]) -> JSON:
    cohort: Any = question.dataset
    return list(read_covariates(cohort, question.arguments["covariates"]))


def _trait(question: Question[Any]) -> JSON:
    trait = question.arguments["trait"]
    return None if trait is None else [str(rational("trait", one, zero=True, negative=True)) for one in trait]


_REFERENCE = Argument(
    "reference", Anything("a column of the variants, or public frequencies"),
    words="the public frequencies around which calls are counted",
    served=ColumnName(words="a column of the variants"),
)  # fmt: skip

FREQUENCIES = QuestionKind(
    name="frequencies", words="The frequency of an allele at every variant", draft=draft_frequencies,
    arguments=(
        Argument("by", Choice(("cluster",)), words="cluster, for frequencies by cluster"),
        _REFERENCE,
        Argument("clip", RealNumber(), words="with a reference: the largest norm of one person"),
        Argument("calls", Flag(), default=False, words="whether missing calls are released too"),
    ),
    wire=_known_as("frequencies", clip=_clip, reference=_reference),
)  # fmt: skip
HARDY_WEINBERG = QuestionKind(
    name="hardy_weinberg", words="Test Hardy-Weinberg equilibrium at every variant",
    draft=draft_hardy_weinberg, wire=_known_as("hardy-weinberg"),
)  # fmt: skip
MISSINGNESS = QuestionKind(
    name="missingness", words="The share of missing calls at every variant", draft=draft_missingness,
    arguments=(
        Argument("clip", RealNumber(), words="a person with more missing calls than this counts less"),
    ),
    wire=_known_as("missingness", clip=_clip),
)  # fmt: skip
COMPONENTS = QuestionKind(
    name="components", words="The loadings of principal components", draft=draft_components, served=False,
    arguments=(
        Argument("k", Integer(1), default=2, words="how many components"),
        _REFERENCE,
        Argument("clip", RealNumber(), words="with a reference: the largest norm of one person"),
        Argument("variants", Anything("names or numbers of variants"), words="the variants to use"),
    ),
    wire=_known_as("components", clip=_clip, reference=_reference, variants=_variants),
)  # fmt: skip
TOP_SNPS = QuestionKind(
    name="top_snps", words="Choose the SNPs with the strongest association", draft=draft_top_snps,
    takes=_PURE,
    arguments=(
        Argument("k", Integer(1), needed=True, words="how many SNPs"),
        Argument("test", Choice(("allelic", "trend")), default="allelic", words="which test scores them"),
        Argument("threshold", RealNumber(), default=Fraction(5, 10**8),
                 words="the p-value below which a SNP is significant"),
    ),
    wire=_known_as("top-snps", _PURE, threshold=lambda question: _exact(question.arguments["threshold"])),
)  # fmt: skip
SUMMARY_STATISTICS = QuestionKind(
    name="summary_statistics", words="Effects and p-values of all SNPs, from randomised phenotypes",
    draft=draft_summary_statistics, takes=_PURE, served=False,
    arguments=(
        Argument("covariates", Anything("names of declared covariates"), default=()),
        Argument("trait", Anything("the public mean and standard deviation of a trait")),
    ),
    wire=_known_as("summary-statistics", _PURE, covariates=_covariates, trait=_trait),
)  # fmt: skip

COHORT = DatasetKind(
    name="cohort",
    label="genotypes of a cohort",
    questions=(FREQUENCIES, HARDY_WEINBERG, MISSINGNESS, COMPONENTS, TOP_SNPS, SUMMARY_STATISTICS),
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cohort(Dataset):
    """People with their genotypes; made by `tacit.genotypes`.

    Every method below asks a question. Its `plan` takes ``rho`` or ``epsilon`` (with ``delta``), or for
    choices of SNPs and summary statistics ``epsilon`` alone, and shows the cost and the error; ``release()``
    then answers it.

    Parameters
    ----------
    sites
        The public variants, in order.
    people
        How many people there are, if that is public; else None.
    cluster_names
        The public names of the clusters; who is in which is not shown.
    cluster_sizes
        How many people each cluster has, if that is public; else None.
    status
        Whether the phenotype is public ("public") or protected ("protected").
    """

    kind: ClassVar[str] = "cohort"

    sites: SiteList
    people: int | None
    cluster_names: tuple[str, ...]
    cluster_sizes: tuple[int, ...] | None
    status: str
    _source: GenotypeSource
    _labels: Any = field(default=None)
    _phenotype: Any = field(default=None)
    _covariates: Any = field(default=None)

    @property
    def public_facts(self) -> Mapping[str, JSON]:
        """What every question of the cohort names: the site list, and which numbers of people are public."""
        return {
            "sites": self.sites.digest,
            "variants": len(self.sites),
            "people": self.people,
            "cluster_names": list(self.cluster_names),
            "cluster_sizes": None if self.cluster_sizes is None else list(self.cluster_sizes),
        }

    @property
    def moved(self) -> int:
        """How many people's numbers neighbours differ in: one if somebody joins, two if one is replaced."""
        return 1 if self.adjacency == "add/remove" else 2

    @plannable
    def frequencies(
        self, *, by: str | None = None, reference: object = None, clip: Number | None = None,
        calls: bool = False,
    ) -> Question[AlleleFrequencies]:  # fmt: skip
        """Ask for the frequency of the counted allele at every variant.

        Guarantee: all frequencies together cost one person what is asked for, however many variants there
        are. Calls are counted as the difference from a public centre, each person's differences are scaled
        down to a public norm, and Gaussian noise is added to their sums (docs/proofs/genomes.md). A plan with
        epsilon alone has much more noise than one with rho, or with epsilon and delta.

        Parameters
        ----------
        by
            "cluster" for frequencies by cluster; this costs no more.
        reference
            The public frequencies around which calls are counted: a column of the variants, one for each
            cluster by name, or numbers. The closer they are, the less noise. None centres at one copy.
        clip
            With a reference, the largest norm of one person, in alleles. By default 10 % more of the
            square than the reference lets expect, and more if there are few variants.
        calls
            Whether missing calls are released too, to undo their pull toward the centre. Of rare alleles
            without a reference this doubles the variance of the noise.

        Examples
        --------
        >>> import tacit as tc
        >>> cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
        >>> release = cohort.frequencies(by="cluster", reference="frequency").plan(rho=0.1).release()
        >>> cells = release["frequency"]
        >>> cells.low[0] <= cells.value[0] <= cells.high[0]
        True
        """
        return FREQUENCIES.ask(self, by=by, reference=reference, clip=clip, calls=calls)

    @plannable
    def hardy_weinberg(self) -> Question[AnswerTable]:
        """Ask for a test of Hardy-Weinberg equilibrium at every variant, whose p-values allow for the noise.

        Guarantee: all tests together cost one person what is asked for (docs/proofs/genomes.md, section 4).

        Examples
        --------
        >>> import tacit as tc
        >>> cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
        >>> tested = cohort.hardy_weinberg().plan(rho=0.5).release()
        >>> 0 <= tested["p_value"].value[0] <= 1
        True
        """
        return HARDY_WEINBERG.ask(self)

    @plannable
    def missingness(self, *, clip: Number | None = None) -> Question[AnswerTable]:
        """Ask for the share of missing calls at every variant.

        Guarantee: all shares together cost one person what is asked for (docs/proofs/genomes.md, section 5).

        Parameters
        ----------
        clip
            The number of missing calls above which a person counts less; by default nobody does, and the
            noise allows for a person who has only missing calls.

        Examples
        --------
        >>> import tacit as tc
        >>> cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
        >>> shares = cohort.missingness(clip=10).plan(rho=0.5).release()
        >>> list(shares.columns)
        ['missing']
        """
        return MISSINGNESS.ask(self, clip=clip)

    @plannable
    def components(
        self, k: int = 2, *, reference: object = None, clip: Number | None = None,
        variants: Sequence[object] | None = None,
    ) -> Question[PrincipalComponents]:  # fmt: skip
        """Ask for the loadings of the first k principal components of the calls, which mostly show ancestry.

        Guarantee: all components together cost one person what is asked for. Noise is added to the sums of
        the products of each pair of variants, where each person is scaled down to a public norm; everything
        else is computed from these (docs/proofs/genomes.md, section 6). Scores of people are not released.
        A plan with epsilon alone has far too much noise in most cases.

        Parameters
        ----------
        k
            How many components; more of them are free afterwards.
        reference, clip
            As in `frequencies`: the public centres, and the largest norm of one person.
        variants
            The variants to use, by name or by number from 1: at most 2,000. By default all. Take variants
            that are far apart; more variants mean more noise in each pair.

        Examples
        --------
        >>> import tacit as tc
        >>> cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
        >>> found = cohort.components(2, reference="frequency").plan(rho=0.5).release()
        >>> list(found.columns), len(found.shares)
        (['centre', 'component_1', 'component_2'], 2)
        """
        return COMPONENTS.ask(self, k=k, reference=reference, clip=clip, variants=variants)

    @plannable
    def top_snps(
        self, k: int, *, test: Literal["allelic", "trend"] = "allelic", threshold: Number = Fraction(5, 10**8)
    ) -> Question[AnswerTable]:
        """Ask for the k SNPs with the strongest association with a public case status.

        Guarantee: epsilon for the genotypes of one person at all SNPs, compared with any other genotypes of a
        person with the same status. SNPs are scored by how many people must change before the verdict at the
        threshold changes (docs/proofs/gwas.md, "Distance to significance").

        Parameters
        ----------
        k
            How many SNPs to choose.
        test
            ``"allelic"`` (counts of alleles) or ``"trend"`` (Cochran-Armitage).
        threshold
            The p-value below which a SNP is significant.

        Examples
        --------
        >>> import numpy as np
        >>> import tacit as tc
        >>> rng = np.random.default_rng(1)
        >>> status = np.repeat([1, 0], 1_000)
        >>> calls = rng.binomial(2, 0.3, (2_000, 50))
        >>> calls[:1_000, 7] = rng.binomial(2, 0.6, 1_000)      # the eighth SNP matters
        >>> cohort = tc.genotypes(
        ...     calls, phenotype=status, status="public", people=2_000, budget=tc.Budget(epsilon=1)
        ... )
        >>> cohort.top_snps(1).plan(epsilon=1).release()["number"].value
        (8,)
        """
        return TOP_SNPS.ask(self, k=k, test=test, threshold=threshold)

    @plannable
    def summary_statistics(
        self, *, covariates: Sequence[str] = (), trait: tuple[Number, Number] | None = None
    ) -> Question[SummaryStatistics]:
        """Ask for effects and p-values of all SNPs, from phenotypes that are randomised once.

        Guarantee: epsilon for the phenotype of each participant, whatever else is known. It does not protect
        genotypes, covariates or participation. So only a cohort declared with ``unit="phenotype"`` answers
        it, and account and certificate say what is protected. With the same epsilon, the same cohort and
        other covariates it is the same plan, which is free once it is paid for.

        Parameters
        ----------
        covariates
            Names of the declared covariates that the tests adjust for.
        trait
            The public mean and standard deviation of a phenotype that is a number. By default the phenotype
            is a disease: 1 for cases, and everything else for controls.

        Examples
        --------
        >>> import numpy as np
        >>> import tacit as tc
        >>> rng = np.random.default_rng(1)
        >>> calls = rng.binomial(2, 0.4, (5_000, 20))
        >>> sick = rng.random(5_000) < 0.2 + 0.3 * calls[:, 3]
        >>> cohort = tc.genotypes(calls, unit="phenotype", phenotype=sick, budget=tc.Budget(epsilon=2))
        >>> release = cohort.summary_statistics().plan(epsilon=2).release()
        >>> int(np.argmin(release.p_value))
        3
        """
        return SUMMARY_STATISTICS.ask(self, covariates=covariates, trait=trait)

    def _cluster_codes(self, people: int) -> NDArray[np.int64]:
        """Return the cluster of each person by its place among the names, -1 for none; after a charge."""
        places: dict[str | None, int] = {name: place for place, name in enumerate(self.cluster_names)}
        codes = np.full(people, -1, np.int64)
        if self._labels is not None:
            codes_listed = [places.get(_label(label), -1) for label in list(self._labels)[:people]]
            codes[: len(codes_listed)] = codes_listed
        return codes


def _label(label: object) -> str | None:
    """Return the label of a person as text; None where it has none. No label makes it fail."""
    try:
        return str(label)
    except Exception:  # noqa: BLE001 - no value makes a paid release fail
        return None
