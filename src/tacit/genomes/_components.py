"""Principal components: noisy products of all pairs of variants, and an eigen-decomposition of these."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.core import Forecast, Plan, Goal
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Choose, Set
from tacit.genomes._cohort_task import CohortTask
from tacit.genomes._component_table import PrincipalComponents
from tacit.genomes._frequencies import COUNT_SHARE, Centres, call_values, read_centres, reference_document
from tacit.genomes._frequency_reading import plain_cells, read_sizes, site_keys
from tacit.genomes._gram import clipped_products
from tacit.genomes._protection import check_unit
from tacit.report import percent

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.genomes._cohort import Cohort
    from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace

__all__ = ["ComponentTask", "plan_components", "product_sensitivity"]

#: The largest number of variants: their pairs and the decomposition must fit into memory.
MOST_VARIANTS = 2_000
#: The share of the cost that goes to the means of the variants, with a reference and without one.
MEAN_SHARE = {True: Fraction(1, 10), False: Fraction(1, 4)}


@dataclass(frozen=True, slots=True)
class ComponentTask(CohortTask):
    """The task of components: the noisy number of people, where it is private, sums, and products of pairs.

    One person moves the products by at most `product_sensitivity`; docs/proofs/genomes.md, section 6.
    """

    statistics: ClassVar[tuple[str, ...]] = ("allele sums", "products of pairs of variants")

    cohort: Cohort
    centres: Centres
    places: NDArray[np.int64]
    wanted: int
    counting: DiscreteGaussian | DiscreteLaplace | None
    adding: DiscreteGaussian | DiscreteLaplace
    pairing: DiscreteGaussian | DiscreteLaplace

    @property
    def question(self) -> JSON:
        """Variants, centres, bound. How many components are read off is no part of it: more are free."""
        return {
            "genomes": "components",
            **self.cohort.public_facts,
            "places": hashlib.sha256(self.places.astype("<i8").tobytes()).hexdigest(),
            "grid": self.centres.grid,
            "centres": self.centres.digest,
            "clip_squared": self.centres.clip_squared,
        }

    @property
    def sum_noises(self) -> tuple[DiscreteGaussian | DiscreteLaplace, ...]:
        """The noise of the sums, and of the products."""
        return self.adding, self.pairing

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the number of people, if that is private, the sums, and the products of each pair."""
        source = self.cohort._source  # noqa: SLF001
        if self.counting:
            yield np.array([source.people()], np.int64)
        values = call_values(self.centres, calls=False)[0, 0]
        clip = self.centres.clip_squared if self.centres.clips else None
        sums, products = clipped_products(source, self.places, values, clip)
        yield sums
        yield products[np.triu_indices(len(products))]

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> PrincipalComponents:
        """Return the eigenvectors of the noisy covariance with the largest eigenvalues.

        The agreement is 1 minus the sum of (noise between two eigenvectors / gap of their eigenvalues)^2, to
        first order in the noise; the noise of the sums comes in by the product of the sums.
        """
        wide = len(self.places)
        sizes, _ = read_sizes(self.cohort, self.counting, (), noisy, confidence)
        people = max(1.0, float(sizes[0]))
        sums = np.asarray(noisy[-2], np.float64)
        spread = np.zeros((wide, wide))
        spread[np.triu_indices(wide)] = np.asarray(noisy[-1], np.float64)
        spread = spread + np.triu(spread, 1).T - np.outer(sums, sums) / people
        levels, vectors = np.linalg.eigh(spread)
        levels, vectors = levels[::-1], vectors[:, ::-1]
        pair, mean = self.pairing.variance, self.adding.variance / people**2
        along = (sums @ vectors) ** 2
        agreement = tuple(_agreement(levels, i, pair + mean * (along + along[i])) for i in range(self.wanted))
        vectors = vectors[:, : self.wanted]
        vectors = vectors * np.where(vectors[np.abs(vectors).argmax(axis=0), range(self.wanted)] < 0, -1, 1)
        noise = 2 * math.sqrt(pair) + math.sqrt(mean * along.sum())
        whole = max(float(np.trace(spread)), 1.0)
        shares = tuple(float(one) for one in np.clip(levels[: self.wanted] / whole, 0, 1))
        alone = min(1.0, noise * math.sqrt(wide) / whole)
        middle = self.centres.middle[0] / self.centres.grid + sums / people / self.centres.grid
        keys = {
            name: tuple(column[i] for i in self.places) for name, column in site_keys(self.cohort).items()
        }
        names = [f"component_{i + 1}" for i in range(self.wanted)]
        return PrincipalComponents(
            keys,
            {
                "centre": plain_cells(np.clip(middle, 0, 2), None),
                **{name: plain_cells(vectors[:, i], None) for i, name in enumerate(names)},
            },
            float(confidence),
            {
                "centre": "copies to subtract from a person's calls before you multiply with the loadings",
                **{
                    name: _note(share, alone, near)
                    for name, share, near in zip(names, shares, agreement, strict=True)
                },
            },
            shares=shares,
            noise=alone,
            agreement=agreement,
        )


def _agreement(levels: NDArray[np.float64], place: int, noise_squared: NDArray[np.float64]) -> float:
    gaps = np.delete(levels, place) - levels[place]
    with np.errstate(divide="ignore"):
        lost = float((np.delete(noise_squared, place) / gaps**2).sum())
    return max(0.0, 1.0 - lost) if levels[place] > 0 else 0.0


def _note(share: float, noise: float, agreement: float) -> str:
    text = (
        f"explains about {percent(share, 2)} of the variance; the largest component of noise alone would "
        f"explain {percent(noise, 2)}"
    )
    if agreement < 0.5:
        return text + "; it cannot be distinguished from the noise"
    return text + f"; squared cosine with the component of the exact data about {agreement:.3f}"


def product_sensitivity(clip_squared: int, largest: int, variants: int, moved: int) -> tuple[int, int]:
    """Return how far one person moves the products of all pairs: L1, and squared L2.

    ``largest`` bounds a single number of a person. docs/proofs/genomes.md, section 6.

    Examples
    --------
    >>> product_sensitivity(4, 1, 4, 1)      # four numbers of 1: ten products of 1
    (10, 10)
    """
    fourth = min(largest**2, clip_squared) * clip_squared
    return moved * ((variants + 1) * clip_squared // 2), moved * ((clip_squared**2 + fourth) // 2)


def plan_components(
    cohort: Cohort,
    goal: Goal,
    *,
    k: int,
    reference: object = None,
    clip: Number | None = None,
    variants: Sequence[object] | None = None,
) -> Plan[PrincipalComponents]:
    """Plan principal components; see `Cohort.components`."""
    check_unit(cohort, "principal components")
    places = read_places(cohort, variants)
    wanted, wide = count("k", k, zero=False), len(places)
    if wanted > wide:
        raise bad_parameter("k", f"at most the number of variants, {wide:,}", k, fix=Set(k=wide))
    centres = read_centres(cohort, (), reference, clip, places)
    moved, adjacency = cohort.moved, cohort.adjacency
    counting = None
    if cohort.people is None:
        counting = goal.part(COUNT_SHARE).noise(l1=1, l2_squared=1, adjacency=adjacency)
    mean_share = MEAN_SHARE[reference is not None]
    adding = goal.part(mean_share).noise(
        l1=math.isqrt(centres.clip_squared * wide) * moved,
        l2_squared=centres.clip_squared * moved**2,
        adjacency=adjacency,
    )
    largest = int(np.maximum(np.abs(centres.middle), np.abs(2 * centres.grid - centres.middle)).max())
    l1, l2_squared = product_sensitivity(centres.clip_squared, largest, wide, moved)
    left = 1 - mean_share - (COUNT_SHARE if counting else 0)
    pairing = goal.part(left).noise(l1=l1, l2_squared=l2_squared, adjacency=adjacency)
    task = ComponentTask(cohort, centres, places, wanted, counting, adding, pairing)
    return Plan.of(
        cohort,
        task,
        promised=goal.promised,
        forecast=lambda: _forecast(task),
        facts=lambda: _facts(task),
        confidence=float(goal.confidence),
        asked=f"{wanted} principal components of {wide:,} variants",
        request=lambda: {
            "kind": "components", "goal": goal.to_json(), "k": wanted,
            "reference": reference_document(reference),
            "clip": None if clip is None else str(rational("clip", clip)),
            "variants": None if variants is None else (places + 1).tolist(),
        },
    )  # fmt: skip


def read_places(cohort: Cohort, variants: Sequence[object] | None) -> NDArray[np.int64]:
    """Return the places of the variants that are used: names, or numbers from 1; by default all."""
    sites = len(cohort.sites)
    if variants is None:
        if sites > MOST_VARIANTS:
            raise TacitError(
                "bad-parameter",
                f"components use at most {MOST_VARIANTS:,} variants, and the cohort has {sites:,}",
                why="noise is added to each pair of variants and grows with their number; a few hundred "
                "variants that are far apart show ancestry",
                fix=Set(variants=list(range(1, sites + 1, -(-sites // MOST_VARIANTS)))[:5]),
            )
        return np.arange(sites)
    known = {name: place for place, name in enumerate(cohort.sites.names) if name != "."}
    found = []
    for one in [variants] if isinstance(variants, str) else variants:
        whole = isinstance(one, int | np.integer) and not isinstance(one, bool)
        place = int(one) - 1 if whole else known.get(str(one), -1)  # type: ignore[call-overload]
        if not 0 <= place < sites:
            raise bad_parameter(
                "variants", f"names of the site list, or numbers from 1 to {sites:,}", one,
                fix=Choose(tuple(known), given=str(one)) if known and not whole else Set(variants=[1, 2, 3]),
            )  # fmt: skip
        found.append(place)
    if not 1 <= len(found) <= MOST_VARIANTS or len(set(found)) != len(found):
        raise bad_parameter("variants", f"1 to {MOST_VARIANTS:,} different variants", len(found),
                            fix=Set(variants=[1, 2, 3]))  # fmt: skip
    return np.array(sorted(found), np.int64)


def _expected(task: ComponentTask) -> float:
    """Return the variance of one person's calls that the public centres let expect, in steps."""
    share = task.centres.middle[0] / (2 * task.centres.grid)
    return float((2 * share * (1 - share)).sum()) * task.centres.grid**2


def _forecast(task: ComponentTask) -> list[Forecast]:
    """Say below which share of the variance a component is lost in the noise."""
    noise = 2 * math.sqrt(task.pairing.variance * len(task.places)) / max(_expected(task), 1.0)
    what = "loadings of the variants on each component"
    if task.cohort.people is None:
        people = noise / 0.02
        note = f"with {people:,.0f} people, a component that explains less than 2 % of the variance is lost"
    elif (alone := noise / max(1, task.cohort.people)) > 0.2:
        note = "too few people, or too small a cost: the components will be noise"
    else:
        lost = f"less than about {percent(alone, 2)} of the variance"
        note = f"a component that explains {lost} is lost in the noise"
    caution = "" if task.centres.grid > 1 else "without a public reference the means add noise to this"
    return [Forecast("component", what, task.pairing.describe(), None, note, caution=caution)]


def _facts(task: ComponentTask) -> list[tuple[str, str]]:
    centres = task.centres
    norm = math.sqrt(centres.clip_squared) / centres.grid
    people = "public" if task.counting is None else f"private, noise added: {task.counting.describe()}"
    return [
        ("variants", f"{len(task.places):,} of {len(task.cohort.sites):,}, a public list"),
        (
            "limits",
            f"each person counts with a norm of at most {norm:.3g} alleles around the public centre"
            + (", larger ones are scaled down" if centres.clips else ", which nobody can exceed"),
        ),
        ("missing calls", "count as the centre"),
        ("means", f"released too: {task.adding.describe()}"),
        ("number of people", people),
        ("afterwards", "more components of the same variants at the same cost are free"),
    ]
