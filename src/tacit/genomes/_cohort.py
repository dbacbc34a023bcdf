"""A cohort: genotypes of people, who are protected, and the public facts about the variants."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Goal
from tacit.genomes._association_questions import AssociationQuestions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON, AnswerTable, Plan
    from tacit.errors import TacitError
    from tacit.exact import Number
    from tacit.genomes._blocks import GenotypeSource
    from tacit.genomes._component_table import PrincipalComponents
    from tacit.genomes._frequency_table import AlleleFrequencies
    from tacit.genomes._sites import SiteList

__all__ = ["Cohort", "missing_source"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cohort(AssociationQuestions):
    """People with their genotypes; made by `tacit.genotypes`.

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

    def frequencies(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        by: str | None = None,
        reference: object = None,
        clip: Number | None = None,
        calls: bool = False,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[AlleleFrequencies]:
        """Plan the frequency of the counted allele at every variant.

        Guarantee: all frequencies together cost one person what is asked for, however many variants there
        are. Calls are counted as the difference from a public centre, each person's differences are scaled
        down to a public norm, and Gaussian noise is added to their sums (docs/proofs/genomes.md).

        Parameters
        ----------
        epsilon, delta, rho
            The total cost: rho, or epsilon with delta. Epsilon alone gives much more noise.
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
        confidence
            How often each interval covers the noise.

        Examples
        --------
        >>> import tacit as tc
        >>> cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
        >>> release = cohort.frequencies(rho=0.1, by="cluster", reference="frequency").release()
        >>> cells = release["frequency"]
        >>> cells.low[0] <= cells.value[0] <= cells.high[0]
        True
        """
        from tacit.genomes._frequencies import plan_frequencies

        goal = Goal.read(epsilon=epsilon, delta=delta, rho=rho, confidence=confidence)
        return plan_frequencies(self, goal, by=by, reference=reference, clip=clip, calls=calls)

    def hardy_weinberg(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:
        """Plan a test of Hardy-Weinberg equilibrium at every variant, whose p-values allow for the noise.

        Parameters
        ----------
        epsilon, delta, rho, confidence
            As in `frequencies`.

        Examples
        --------
        >>> import tacit as tc
        >>> cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
        >>> tested = cohort.hardy_weinberg(rho=0.5).release()
        >>> 0 <= tested["p_value"].value[0] <= 1
        True
        """
        from tacit.genomes._hardy_weinberg import plan_hardy_weinberg

        return plan_hardy_weinberg(
            self, Goal.read(epsilon=epsilon, delta=delta, rho=rho, confidence=confidence)
        )

    def missingness(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        clip: Number | None = None,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:
        """Plan the share of missing calls at every variant.

        Parameters
        ----------
        epsilon, delta, rho, confidence
            As in `frequencies`.
        clip
            The number of missing calls above which a person counts less; by default nobody does, and the
            noise allows for a person who has only missing calls.

        Examples
        --------
        >>> import tacit as tc
        >>> cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
        >>> shares = cohort.missingness(rho=0.5, clip=10).release()
        >>> list(shares.columns)
        ['missing']
        """
        from tacit.genomes._missingness import plan_missingness

        goal = Goal.read(epsilon=epsilon, delta=delta, rho=rho, confidence=confidence)
        return plan_missingness(self, goal, clip=clip)

    def components(
        self,
        k: int = 2,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        reference: object = None,
        clip: Number | None = None,
        variants: Sequence[object] | None = None,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[PrincipalComponents]:
        """Plan the loadings of the first k principal components of the calls, which mostly show ancestry.

        Guarantee: all components together cost one person what is asked for. Noise is added to the sums of
        the products of each pair of variants, where each person is scaled down to a public norm; everything
        else is computed from these (docs/proofs/genomes.md, section 6). Scores of people are not released.

        Parameters
        ----------
        k
            How many components; more of them are free afterwards.
        epsilon, delta, rho, confidence
            As in `frequencies`. Epsilon alone gives far too much noise in most cases.
        reference, clip
            As in `frequencies`: the public centres, and the largest norm of one person.
        variants
            The variants to use, by name or by number from 1: at most 2,000. By default all. Take variants
            that are far apart; more variants mean more noise in each pair.

        Examples
        --------
        >>> import tacit as tc
        >>> cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
        >>> found = cohort.components(2, rho=0.5, reference="frequency").release()
        >>> list(found.columns), len(found.shares)
        (['centre', 'component_1', 'component_2'], 2)
        """
        from tacit.genomes._components import plan_components

        goal = Goal.read(epsilon=epsilon, delta=delta, rho=rho, confidence=confidence)
        return plan_components(self, goal, k=k, reference=reference, clip=clip, variants=variants)

    def _rebuild(self, request: Any) -> Plan[Any]:
        """Make a plan from its request: the question's name, its goal, and its other parameters by name."""
        given = dict(request)
        goal = Goal.from_json(given.pop("goal"))
        options: dict[str, Any] = {
            name: Fraction(v) if name == "clip" and v else v for name, v in given.items() if name != "kind"
        }
        match given["kind"]:
            case "frequencies":
                from tacit.genomes._frequencies import plan_frequencies

                return plan_frequencies(self, goal, **options)
            case "hardy-weinberg":
                from tacit.genomes._hardy_weinberg import plan_hardy_weinberg

                return plan_hardy_weinberg(self, goal)
            case "missingness":
                from tacit.genomes._missingness import plan_missingness

                return plan_missingness(self, goal, **options)
            case "components":
                from tacit.genomes._components import plan_components

                return plan_components(self, goal, **options)
        return self._rebuild_association(request)

    def _cluster_codes(self, people: int) -> NDArray[np.int64]:
        """Return the cluster of each person by its place among the names, -1 for none; after a charge."""
        places: dict[str | None, int] = {name: place for place, name in enumerate(self.cluster_names)}
        codes = np.full(people, -1, np.int64)
        if self._labels is not None:
            listed = [places.get(_label(label), -1) for label in list(self._labels)[:people]]
            codes[: len(listed)] = listed
        return codes


def _label(given: object) -> str | None:
    """Return the label of a person as text; None where it has none. No label makes it fail."""
    try:
        return str(given)
    except Exception:  # noqa: BLE001 - no value makes a paid release fail
        return None


def missing_source(source: GenotypeSource) -> TacitError | None:
    """Return the refusal of a draw whose file is not there now, for ``unavailable`` of a task."""
    from tacit.errors import TacitError
    from tacit.fixes import Say

    if not source.missing_file:
        return None
    return TacitError(
        "bad-genotypes",
        f"there is no file {source.missing_file}",
        why="the genotypes are read from it when they are released",
        fix=Say("put the file back"),
    )
