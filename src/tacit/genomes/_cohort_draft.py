"""What questions about a cohort share: the number of people before the sums, a file that may be gone.

What a cohort's account protects decides which questions it answers: whole people, or phenotypes alone.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from tacit.core import Content, Draft, Step, Task
from tacit.errors import TacitError, missing_file
from tacit.fixes import Code, Say
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON, Forecast, Goal, SharedReadings
    from tacit.genomes._cohort import Cohort
    from tacit.genomes._genotypes import GenotypeSource


#: The units of a cohort: everything that it has of one person, or the phenotype of one participant alone.
PROTECTED = ("person", "phenotype")


def check_unit(cohort: Cohort, question: str, unit: Literal["person", "phenotype"] = "person") -> None:
    """Refuse a question whose guarantee is not that of the cohort's account; a public fact decides.

    A cost is always for the declared unit, so what one account has paid adds up to one promise.
    """
    if str(cohort.unit) == unit:
        return

    def named(suffix: str) -> str:
        return json.dumps(f"{cohort.name} {suffix}", ensure_ascii=False)

    if unit == "phenotype":
        raise TacitError(
            "not-allowed",
            f"{question} protect phenotypes alone, and the cohort {cohort.name!r} protects whole people",
            why="they use genotypes without noise, but a charge to this account promises that genotypes and "
            "participation are protected too",
            fix=Code(f'tc.genotypes(..., name={named("phenotypes")}, unit="phenotype")'),
        )
    raise TacitError(
        "not-allowed",
        f"{question} protect whole people, and the cohort {cohort.name!r} protects phenotypes alone",
        why="this account protects only phenotypes: genotypes and participation count as known",
        fix=Code(f'tc.genotypes(..., name={named("people")}, unit="person")'),
    )


C = TypeVar("C", bound=Content)
Noise: TypeAlias = DiscreteGaussian | DiscreteLaplace

#: The share of the cost that goes to the number of people, where it is private.
_COUNT_SHARE = Fraction(1, 20)
_PEOPLE = "number of people"


def people_noise(cohort: Cohort, goal: Goal, *, clusters: bool = False) -> tuple[Noise | None, Fraction]:
    """Return the noise of the numbers of people, None where they are public, and the share of the cost left.

    Of a public total, one person who is replaced moves two numbers of clusters by one.
    """
    if (cohort.cluster_sizes if clusters else cohort.people) is not None:
        return None, Fraction(1)
    people_moved = cohort.moved
    noise = goal.part(_COUNT_SHARE).noise(
        l1=people_moved, l2_squared=people_moved, adjacency=cohort.adjacency
    )
    return noise, 1 - _COUNT_SHARE


def draft_sums(
    cohort: Cohort,
    *,
    document: Mapping[str, JSON],
    words: str,
    counting: Noise | None,
    adding: Mapping[str, Noise],
    summed: Callable[[NDArray[np.int64]], Mapping[str, NDArray[np.int64]]],
    reading: Callable[[Sequence[Any], Fraction], C],
    forecast: Sequence[Forecast] | Callable[[], Sequence[Forecast]],
    facts: Sequence[tuple[str, str]] | Callable[[], Sequence[tuple[str, str]]],
    clusters: tuple[str, ...] = (),
) -> Draft[C]:
    """Draft sums over the people of a cohort.

    Parameters
    ----------
    document, words
        The question beside the public facts of the cohort, and in words.
    counting
        The noise of the numbers of people, where they are private.
    adding, summed
        The noise of each kind of sums by its name; and the sums, from the group of each person, -1 for none.
    clusters
        The groups; none if all people are one.
    """
    source = cohort._source  # noqa: SLF001 - a part of the cohort

    def opened(_: SharedReadings) -> Mapping[str, NDArray[np.int64]]:
        people = source.people()
        groups = cohort._cluster_codes(people) if clusters else np.zeros(people, np.int64)  # noqa: SLF001
        sizes = np.bincount(groups[groups >= 0], minlength=max(1, len(clusters))).astype(np.int64)
        return {_PEOPLE: sizes, **summed(groups)}

    noises = ({_PEOPLE: counting} if counting else {}) | dict(adding)
    task = Task(
        document={**cohort.public_facts, **document},
        open=opened,
        steps=tuple(_sum_step(name, noise) for name, noise in noises.items()),
        reading=reading,
        unavailable=lambda: missing_source(source),
    )
    return Draft(task=task, asked=words, forecast=forecast, facts=facts)


def _sum_step(name: str, noise: Noise) -> Step[Mapping[str, NDArray[np.int64]]]:
    return Step(noise, lambda sums, _: sums[name], {"statistic": name})


def missing_source(source: GenotypeSource) -> TacitError | None:
    """Return the refusal of a draw whose file is not there now, for ``unavailable`` of a task."""
    if not source.missing_file:
        return None
    return missing_file(
        source.missing_file,
        "bad-genotypes",
        why="the genotypes are read from it when they are released",
        fix=Say("put the file back"),
    )
