"""An invented cohort, to try things out: nobody in it exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.genomes._declaration import genotypes
from tacit.genomes._sites import SiteList

if TYPE_CHECKING:
    import os

    from tacit.accounting import Budget
    from tacit.genomes._cohort import Cohort
    from tacit.ledger import Ledger

_PEOPLE, _VARIANTS = 2_000, 60
_PAIRS = (("A", "G"), ("C", "T"), ("G", "A"), ("T", "C"))


def example_cohort(
    *, budget: Budget, name: str = "example", ledger: Ledger | str | os.PathLike[str] | None = None
) -> Cohort:
    """Return an invented cohort: 2,000 people of two valleys, 60 variants, 1 % of the calls missing.

    The column ``frequency`` of its variants is a public reference; the two valleys differ from it a little.

    Examples
    --------
    >>> import tacit as tc
    >>> cohort = example_cohort(budget=tc.Budget(rho=1))
    >>> len(cohort.sites), cohort.cluster_names
    (60, ('north', 'south'))
    """
    steps = _uniform(4 * _VARIANTS + 2 * _PEOPLE * _VARIANTS)
    reference = 0.05 + 0.45 * steps[:_VARIANTS]
    drift = 0.24 * (steps[_VARIANTS : 3 * _VARIANTS].reshape(2, -1) - 0.5) * np.sqrt(reference)
    own = np.clip(reference + drift, 0.01, 0.99)
    labels = ["north" if i % 5 < 3 else "south" for i in range(_PEOPLE)]
    chance = own[[("north", "south").index(label) for label in labels]]
    draws = steps[4 * _VARIANTS :].reshape(2, _PEOPLE, _VARIANTS)
    calls = (draws < chance).sum(axis=0).astype(np.int8)
    calls[(draws[0] * 1_000 % 1) < 0.01] = -1
    pairs = [_PAIRS[i % 4] for i in range(_VARIANTS)]
    sites = SiteList(
        tuple(str(1 + i // 20) for i in range(_VARIANTS)),
        tuple(1_000_000 + 37_000 * (i % 20) for i in range(_VARIANTS)),
        tuple(ref for ref, _ in pairs),
        tuple(alt for _, alt in pairs),
        tuple(f"rs{900_000 + i}" for i in range(_VARIANTS)),
        {"frequency": tuple(np.round(reference, 4).tolist())},
    )
    return genotypes(
        calls, variants=sites, clusters=labels, cluster_names=("north", "south"), name=name, budget=budget,
        ledger=ledger,
    )  # fmt: skip


def _uniform(count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return numbers in [0, 1) that are always the same: a counter, mixed (Steele 2014, SplitMix64)."""
    x = (np.arange(1, count + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) / np.float64(2**64)
