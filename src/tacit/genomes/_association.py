"""The k SNPs that are most strongly associated with a disease, chosen by their distance to significance."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from tacit.core import AnswerTable, Cells, Draft, Forecast, Step, Task
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Either, Say
from tacit.genomes._arrays import as_number
from tacit.genomes._cohort_draft import missing_source
from tacit.genomes._distances import SCORE_SENSITIVITY, SCORE_STEPS, AssociationTest
from tacit.genomes._protection import check_unit
from tacit.mechanisms import TopK
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import Goal
    from tacit.genomes._blocks import GenotypeSource
    from tacit.genomes._cohort import Cohort
    from tacit.genomes._sites import SiteList


def missing_genotypes(frequency: Sequence[float] | None, variants: int) -> NDArray[np.int64]:
    """Return what a missing call counts as: the likeliest genotype at the public frequency, else 0 copies.

    Examples
    --------
    >>> missing_genotypes([0.1, 0.5, 0.9, float("nan")], 4).tolist(), missing_genotypes(None, 2).tolist()
    ([0, 1, 2, 0], [0, 0])
    """
    if frequency is None:
        return np.zeros(variants, np.int64)
    p = np.nan_to_num(np.asarray(frequency, np.float64), nan=0.0)
    return np.asarray(np.argmax(np.stack([(1 - p) ** 2, 2 * p * (1 - p), p**2]), axis=0), np.int64)


def draft_top_snps(cohort: Cohort, goal: Goal, k: int, test: str, threshold: Fraction) -> Draft[AnswerTable]:
    """Draft the choice of k SNPs by their distance to significance; the scores of all go into one choice.

    Everything here is a public fact, also who is a case (1) and a control (0); others (-1) are not counted.
    """
    check_unit(cohort, "choices of SNPs")
    source, variants = cohort._source, len(cohort.sites)  # noqa: SLF001 - a part of the cohort
    Integer(1, variants, f"there are {variants:,} variants", instead=variants).read("k", k)
    status, level = read_status(cohort), float(threshold)
    chosen = AssociationTest.at(
        test, cases=int((status == 1).sum()), controls=int((status == 0).sum()), threshold=level
    )
    assert goal.epsilon is not None  # noqa: S101 - the only total that choices take
    noise = TopK(goal.epsilon, k=k, sensitivity=SCORE_SENSITIVITY, adjacency="replace", grid=1)
    label = {
        "statistic": f"people from significance, {test} test",
        "assumes": "who is a case and who is a control is public",
    }
    task = Task(
        document={
            "genomes": "top SNPs",
            "test": test,
            "threshold": str(threshold),
            "cases": chosen.cases,
            "controls": chosen.controls,
            "status": hashlib.sha256(status.tobytes()).hexdigest(),
            "frequency": _digest(source.sites.numbers.get("frequency")),
            **cohort.public_facts,
        },
        open=lambda _: _scores(source, chosen, status),
        steps=(Step(noise, lambda scores, _: scores, label),),
        reading=lambda noisy, confidence: _read_choice(source.sites, noisy[0], confidence),
        unavailable=lambda: missing_source(source),
    )
    behind = noise.half_width(goal.confidence, candidates=variants) / SCORE_STEPS
    return Draft(
        task=task,
        asked=f"the {k} SNPs with the strongest association ({test} test, p below {level:g})",
        forecast=[
            Forecast(
                "variant", f"the {k} SNPs with the highest scores", noise.describe(), None,
                note=f"each lies at most {behind:,.0f} people behind the best SNP that is left",
                caution="a SNP that is listed need not be significant",
            )
        ],
        facts=[
            ("test", (f"{test}, significant at p below {level:g}; {chosen.cases:,} cases, "
                     f"{chosen.controls:,} controls")),
            ("score", "how many people must change before a SNP's verdict changes"),
            ("public", "who is a case and who is a control; the site list"),
            ("protected", ("one person's genotypes at all SNPs, compared with any other genotypes of a "
                          "person with the same status")),
            ("missing calls", ("count as the likeliest genotype at the public frequency; without a "
                              "frequency, as 0 copies")),
        ],
    )  # fmt: skip


def _scores(source: GenotypeSource, test: AssociationTest, status: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the score of every SNP, in thousandths of a person."""
    counts = source.table_counts_of([status == 1, status == 0])
    tables, missing = counts[:, :, :3].copy(), counts[:, :, 3]
    stand_in = missing_genotypes(source.sites.numbers.get("frequency"), tables.shape[1])
    for copies in (0, 1, 2):
        tables[:, :, copies] += np.where(stand_in == copies, missing, 0)
    return test.scores(tables[0], tables[1])


def _read_choice(sites: SiteList, places: Sequence[int], confidence: Fraction) -> AnswerTable:
    """Return the chosen SNPs, best first."""
    blank = (None,) * len(places)
    named = [sites.label(place) if sites.names[place] == "." else sites.names[place] for place in places]
    return AnswerTable(
        {
            "rank": tuple(range(1, len(places) + 1)),
            "variant": tuple(named),
            "chromosome": tuple(sites.chromosome[place] for place in places),
            "position": tuple(sites.position[place] for place in places),
        },
        {"number": Cells(tuple(place + 1 for place in places), blank, blank)},
        float(confidence),
        notes={
            "number": "the place of the variant in the site list, from 1; a variant that is picked need "
            "not be significant"
        },
    )


def read_status(cohort: Cohort) -> NDArray[np.int8]:
    """Return who is a case (1) and a control (0), -1 for neither; refuse unless all of it is public."""
    given = cohort._phenotype  # noqa: SLF001 - the parts of a cohort
    if given is None:
        raise TacitError(
            "bad-parameter",
            "the cohort has no phenotype",
            why="an association test compares cases with controls",
            fix=Code('tc.genotypes(..., phenotype=[1, 0, ...], status="public", people=2_000)'),
        )
    if cohort.status != "public" or cohort.people is None:
        raise TacitError(
            "not-allowed",
            "this test needs a public case status, and a public number of people",
            why="if a person's status changed, the numbers of cases and controls would move, and with them "
            "the scores of all SNPs: no bound on that change is proven",
            fix=Either(
                Code('tc.genotypes(..., status="public", people=2_000)'),
                Code('tc.genotypes(..., name="phenotypes", unit="phenotype").summary_statistics()'),
                Say("protect the phenotypes instead of the genotypes"),
            ),
        )
    listed = np.asarray([_case(one) for one in given], np.int8)
    if not (listed == 1).any() or not (listed == 0).any():
        raise bad_parameter("phenotype", "1 for cases and 0 for controls, some of each", "other values",
                            fix=Code("phenotype=[1, 0, 0, 1]"))  # fmt: skip
    return listed


def _case(value: object) -> int:
    """Read one public status: 1, 0, or -1 for anything else."""
    number = as_number(value)
    return int(number) if number in {0.0, 1.0} else -1


def _digest(numbers: Sequence[float] | None) -> str | None:
    return None if numbers is None else hashlib.sha256(repr(tuple(numbers)).encode()).hexdigest()
