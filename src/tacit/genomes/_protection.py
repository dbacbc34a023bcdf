"""What a cohort's account protects, and so which questions it answers: whole people, or phenotypes alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from tacit.errors import TacitError
from tacit.fixes import Code

if TYPE_CHECKING:
    from tacit.genomes._cohort import Cohort

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
