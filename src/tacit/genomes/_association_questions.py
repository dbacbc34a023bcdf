"""The questions of a cohort about associations between genotypes and a phenotype."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, cast

from tacit.core import Dataset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import AnswerTable, Plan
    from tacit.exact import Number
    from tacit.genomes._cohort import Cohort
    from tacit.genomes._summary_statistics import SummaryStatistics

__all__ = ["AssociationQuestions"]


class AssociationQuestions(Dataset):
    """What a cohort with a phenotype can be asked; `Cohort` has these methods."""

    __slots__ = ()

    def top_snps(
        self,
        k: int,
        *,
        test: Literal["allelic", "trend"] = "allelic",
        threshold: Number = Fraction(5, 10**8),
        epsilon: Number,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:
        """Plan the choice of the k SNPs with the strongest association with a public case status.

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
        epsilon, confidence
            The total cost, and how often the forecast must hold.

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
        >>> cohort.top_snps(1, epsilon=1).release()["number"].value
        (8,)
        """
        from tacit.genomes._association import plan_top_snps

        return plan_top_snps(
            cast("Cohort", self), k, test=test, threshold=threshold, epsilon=epsilon, confidence=confidence
        )

    def summary_statistics(
        self,
        *,
        covariates: Sequence[str] = (),
        trait: tuple[Number, Number] | None = None,
        epsilon: Number,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[SummaryStatistics]:
        """Plan effects and p-values of all SNPs, from phenotypes that are randomised once.

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
        epsilon, confidence
            The total cost, and how often the interval of an effect covers it.

        Examples
        --------
        >>> import numpy as np
        >>> import tacit as tc
        >>> rng = np.random.default_rng(1)
        >>> calls = rng.binomial(2, 0.4, (5_000, 20))
        >>> sick = rng.random(5_000) < 0.2 + 0.3 * calls[:, 3]
        >>> cohort = tc.genotypes(calls, unit="phenotype", phenotype=sick, budget=tc.Budget(epsilon=2))
        >>> release = cohort.summary_statistics(epsilon=2).release()
        >>> int(np.argmin(release.p_value))
        3
        """
        from tacit.genomes._summary_planning import plan_summary_statistics

        return plan_summary_statistics(
            cast("Cohort", self), covariates=covariates, trait=trait, epsilon=epsilon, confidence=confidence
        )

    def _rebuild_association(self, request: Any) -> Plan[Any]:
        """Make a plan from the request of one of these questions."""
        given = dict(request)
        goal = given.pop("goal")
        exact: dict[str, Any] = {name: Fraction(goal[name]) for name in ("epsilon", "confidence")}
        match given.pop("kind"):
            case "top-snps":
                level = Fraction(given.pop("threshold"))
                return self.top_snps(given.pop("k"), threshold=level, **exact, **given)
            case "summary-statistics":
                trait = given.pop("trait")
                pair = None if trait is None else (Fraction(trait[0]), Fraction(trait[1]))
                return self.summary_statistics(trait=pair, **exact, **given)
            case other:
                raise KeyError(other)
