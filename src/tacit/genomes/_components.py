"""Principal components: noisy products of all pairs of variants, and an eigen-decomposition of these.

The release has loadings, and what the noise leaves of each component.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import AnswerTable, Forecast
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Set
from tacit.genomes._cohort_draft import check_unit, draft_sums, people_noise
from tacit.genomes._frequencies import Centres, call_values, plain_cells, read_centres, read_sizes, site_keys
from tacit.genomes._sums import clipped_products
from tacit.parameters import Integer, Listed
from tacit.report import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON, Draft, Goal
    from tacit.genomes._cohort import Cohort
    from tacit.genomes._cohort_draft import Noise


_PRODUCTS = "products of pairs of variants"
#: The largest number of variants: their pairs and the decomposition must fit into memory.
MAX_VARIANTS = 2_000
#: The share of the cost that goes to the means of the variants, with a reference and without one.
MEAN_SHARE = {True: Fraction(1, 10), False: Fraction(1, 4)}


@dataclass(frozen=True, slots=True, repr=False)
class PrincipalComponents(AnswerTable):
    """Loadings of the variants on each component, and the public numbers that say how far to trust them.

    A person's score is the sum of (copies - centre) x loading over the variants. Scores of the people in the
    cohort are not released.

    Parameters
    ----------
    shares
        The share of the variance that each component explains.
    noise
        The share that the largest component would seem to explain if there were nothing but noise.
    agreement
        How far each component agrees with that of the exact data: about the squared cosine between the two,
        to first order in the noise; 0 where the component cannot be told from the noise.
    """

    kind: ClassVar[str] = "principal-components"
    described: ClassVar[str] = "principal components"
    shares: tuple[float, ...] = ()
    noise: float = 0.0
    agreement: tuple[float, ...] = ()

    def to_json(self) -> JSON:
        """Return the components as JSON."""
        document: dict[str, JSON] = {
            "shares": list(self.shares), "noise": self.noise, "agreement": list(self.agreement),
        }  # fmt: skip
        return {**AnswerTable.to_json(self), **document}  # type: ignore[dict-item]

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the components back; raises ``ValueError`` where they are none."""
        table = super(PrincipalComponents, cls).from_json(document)
        return replace(
            table,
            shares=tuple(float(one) for one in document["shares"]),
            noise=float(document["noise"]),
            agreement=tuple(float(one) for one in document["agreement"]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class VariantProducts:
    """What the noisy products of pairs of variants are of, so that components can be read off them.

    Parameters
    ----------
    centres
        What was subtracted from each call.
    places
        The variants that are used.
    wanted
        How many components are read.
    counting, adding, pairing
        The noise of the number of people, where it is private, of the sums, and of the products.
    """

    cohort: Cohort
    centres: Centres
    places: NDArray[np.int64]
    wanted: int
    counting: Noise | None
    adding: Noise
    pairing: Noise

    def summed(self, _groups: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """Return the sums of the variants, and the products of each pair."""
        values = call_values(self.centres, calls=False)[0, 0]
        clip = self.centres.clip_squared if self.centres.clips else None
        sums, products = clipped_products(self.cohort._source, self.places, values, clip)  # noqa: SLF001
        return {"allele sums": sums, _PRODUCTS: products[np.triu_indices(len(products))]}

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> PrincipalComponents:
        """Return the eigenvectors of the noisy covariance with the largest eigenvalues.

        The agreement is 1 minus the sum of (noise between two eigenvectors / gap of their eigenvalues)^2, to
        first order in the noise; the noise of the sums comes in by the product of the sums.
        """
        size = len(self.places)
        sizes, _ = read_sizes(self.cohort, self.counting, (), noisy, confidence)
        people = max(1.0, float(sizes[0]))
        sums = np.asarray(noisy[-2], np.float64)
        spread = np.zeros((size, size))
        spread[np.triu_indices(size)] = np.asarray(noisy[-1], np.float64)
        spread = spread + np.triu(spread, 1).T - np.outer(sums, sums) / people
        levels, vectors = np.linalg.eigh(spread)
        levels, vectors = levels[::-1], vectors[:, ::-1]
        pair, mean = self.pairing.variance, self.adding.variance / people**2
        along = (sums @ vectors) ** 2
        agreement = tuple(_agreement(levels, i, pair + mean * (along + along[i])) for i in range(self.wanted))
        vectors = vectors[:, : self.wanted]
        vectors = vectors * np.where(vectors[np.abs(vectors).argmax(axis=0), range(self.wanted)] < 0, -1, 1)
        noise = 2 * math.sqrt(pair) + math.sqrt(mean * along.sum())
        total_spread = max(float(np.trace(spread)), 1.0)
        shares = tuple(float(one) for one in np.clip(levels[: self.wanted] / total_spread, 0, 1))
        noise_share = min(1.0, noise * math.sqrt(size) / total_spread)
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
                    name: _note(share, noise_share, near)
                    for name, share, near in zip(names, shares, agreement, strict=True)
                },
            },
            shares=shares,
            noise=noise_share,
            agreement=agreement,
        )


def _agreement(levels: NDArray[np.float64], component: int, noise_squared: NDArray[np.float64]) -> float:
    gaps = np.delete(levels, component) - levels[component]
    with np.errstate(divide="ignore"):
        lost = float((np.delete(noise_squared, component) / gaps**2).sum())
    return max(0.0, 1.0 - lost) if levels[component] > 0 else 0.0


def _note(share: float, noise: float, agreement: float) -> str:
    text = (
        f"explains about {percent(share, 2)} of the variance; the largest component of noise alone would "
        f"explain {percent(noise, 2)}"
    )
    if agreement < 0.5:
        return text + "; it cannot be distinguished from the noise"
    return text + f"; squared cosine with the component of the exact data about {agreement:.3f}"


def product_sensitivity(clip_squared: int, largest: int, variants: int, people: int) -> tuple[int, int]:
    """Return how far one person moves the products of all pairs: L1, and squared L2.

    ``largest`` bounds a single number of a person. docs/proofs/genomes.md, section 6.

    Examples
    --------
    >>> product_sensitivity(4, 1, 4, 1)      # four numbers of 1: ten products of 1
    (10, 10)
    """
    fourth = min(largest**2, clip_squared) * clip_squared
    return people * ((variants + 1) * clip_squared // 2), people * ((clip_squared**2 + fourth) // 2)


def draft_components(
    cohort: Cohort, goal: Goal, k: int, reference: Any, clip: Fraction | None,
    variants: Sequence[object] | None,
) -> Draft[PrincipalComponents]:  # fmt: skip
    """Draft components: the noisy number of people, where it is private, sums, and products of pairs.

    One person moves the products by at most `product_sensitivity`; docs/proofs/genomes.md, section 6. How
    many components are read off is no part of the document: more of them are free.
    """
    check_unit(cohort, "principal components")
    places = read_places(cohort, variants)
    size = len(places)
    Integer(1, size, f"the number of variants is {size:,}", instead=size).read("k", k)
    centres = read_centres(cohort, (), reference, clip, places)
    people_moved, adjacency = cohort.moved, cohort.adjacency
    counting, share = people_noise(cohort, goal)
    mean_share = MEAN_SHARE[reference is not None]
    adding = goal.part(mean_share).noise(
        l1=math.isqrt(centres.clip_squared * size) * people_moved,
        l2_squared=centres.clip_squared * people_moved**2,
        adjacency=adjacency,
    )
    largest = int(np.maximum(np.abs(centres.middle), np.abs(2 * centres.grid - centres.middle)).max())
    l1, l2_squared = product_sensitivity(centres.clip_squared, largest, size, people_moved)
    pairing = goal.part(share - mean_share).noise(l1=l1, l2_squared=l2_squared, adjacency=adjacency)
    pairs = VariantProducts(cohort, centres, places, k, counting, adding, pairing)
    return draft_sums(
        cohort, counting=counting,
        adding={"allele sums": adding, _PRODUCTS: pairing},
        document={
            "genomes": "components",
            "places": hashlib.sha256(places.astype("<i8").tobytes()).hexdigest(),
            "grid": centres.grid, "centres": centres.digest, "clip_squared": centres.clip_squared,
        },
        words=f"{k} principal components of {size:,} variants", summed=pairs.summed, reading=pairs.read,
        forecast=lambda: _forecast(pairs), facts=lambda: _facts(pairs),
    )  # fmt: skip


def read_places(cohort: Cohort, variants: Sequence[object] | None) -> NDArray[np.int64]:
    """Return the places of the variants that are used: names, or numbers from 1; by default all."""
    sites = len(cohort.sites)
    if variants is None:
        if sites > MAX_VARIANTS:
            raise TacitError(
                "bad-parameter",
                f"components use at most {MAX_VARIANTS:,} variants, and the cohort has {sites:,}",
                why="noise is added to each pair of variants and grows with their number; a few hundred "
                "variants that are far apart show ancestry",
                fix=Set(variants=list(range(1, sites + 1, -(-sites // MAX_VARIANTS)))[:5]),
            )
        return np.arange(sites)
    indices = {name: index for index, name in enumerate(cohort.sites.names) if name != "."}
    selected = []
    for variant in [variants] if isinstance(variants, str) else variants:
        is_number = isinstance(variant, int | np.integer) and not isinstance(variant, bool)
        index = int(variant) - 1 if is_number else indices.get(str(variant), -1)  # type: ignore[call-overload]
        if not 0 <= index < sites:
            raise bad_parameter(
                "variants", f"names of the site list, or numbers from 1 to {sites:,}", variant,
                fix=Choose(tuple(indices), given=str(variant))
                if indices and not is_number else Set(variants=[1, 2, 3]),
            )  # fmt: skip
        selected.append(index)
    distinct = Listed("variants", "[1, 2, 3]", most=MAX_VARIANTS, different=True).read("variants", selected)
    return np.array(sorted(distinct), np.int64)


def _expected(pairs: VariantProducts) -> float:
    """Return the variance of one person's calls that the public centres let expect, in steps."""
    share = pairs.centres.middle[0] / (2 * pairs.centres.grid)
    return float((2 * share * (1 - share)).sum()) * pairs.centres.grid**2


def _forecast(pairs: VariantProducts) -> list[Forecast]:
    """Say below which share of the variance a component is lost in the noise."""
    noise = 2 * math.sqrt(pairs.pairing.variance * len(pairs.places)) / max(_expected(pairs), 1.0)
    words = "loadings of the variants on each component"
    if pairs.cohort.people is None:
        people = noise / 0.02
        note = f"with {people:,.0f} people, a component that explains less than 2 % of the variance is lost"
    elif (noise_share := noise / max(1, pairs.cohort.people)) > 0.2:
        note = "too few people, or too small a cost: the components will be noise"
    else:
        lost = f"less than about {percent(noise_share, 2)} of the variance"
        note = f"a component that explains {lost} is lost in the noise"
    caution = "" if pairs.centres.grid > 1 else "without a public reference the means add noise to this"
    return [Forecast("component", words, pairs.pairing.describe(), None, note, caution=caution)]


def _facts(pairs: VariantProducts) -> list[tuple[str, str]]:
    centres = pairs.centres
    norm = math.sqrt(centres.clip_squared) / centres.grid
    people = "public" if pairs.counting is None else f"private, noise added: {pairs.counting.describe()}"
    return [
        ("variants", f"{len(pairs.places):,} of {len(pairs.cohort.sites):,}, a public list"),
        (
            "limits",
            f"each person counts with a norm of at most {norm:.3g} alleles around the public centre"
            + (", larger ones are scaled down" if centres.clips else ", which nobody can exceed"),
        ),
        ("missing calls", "count as the centre"),
        ("means", f"released too: {pairs.adding.describe()}"),
        ("number of people", people),
        ("afterwards", "more components of the same variants at the same cost are free"),
    ]
