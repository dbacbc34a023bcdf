"""A cohort: genotypes of people, who are protected, and the public facts about the variants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.genomes._association_questions import AssociationQuestions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.errors import TacitError
    from tacit.genomes._blocks import GenotypeSource
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

    def _cluster_codes(self, people: int) -> NDArray[np.int64]:
        """Return the cluster of each person by its place among the names, -1 for none; after a charge."""
        places = {name: place for place, name in enumerate(self.cluster_names)}
        codes = np.full(people, -1, np.int64)
        if self._labels is not None:
            listed = [places.get(str(label), -1) for label in list(self._labels)[:people]]
            codes[: len(listed)] = listed
        return codes


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
