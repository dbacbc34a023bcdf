"""``tacit genome top`` and ``tacit genome summary``: SNPs that go with a disease or a trait."""

from __future__ import annotations

import csv
import math
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli._field_command import Given, Terms, asks, rows_of
from tacit.cli._genome import (
    GenomeSource,
    GenomeVariants,
    cohort_name,
    genome,
    open_cohort,
    read_labels,
    read_lines,
)
from tacit.cli._output_files import OutputFiles
from tacit.cli._shared_options import with_options
from tacit.errors import TacitError
from tacit.fixes import Say

if TYPE_CHECKING:
    from tacit.core import Release
    from tacit.genomes import SummaryStatistics

__all__: list[str] = []

_Status = Annotated[
    Path, typer.Option("--status", help="A public text file, one line for each person: 1 case, 0 control.")
]
_Phenotype = Annotated[
    Path,
    typer.Option("--phenotype", help="A text file, one line for each person: 1 for a case, or a number."),
]
_Covariates = Annotated[
    Path | None, typer.Option("--covariates", help="A .csv with a header and one line for each person.")
]


@genome.command(cls=asks("cohort", "top_snps"))
@with_options
def top(
    cohort: GenomeSource,
    terms: Terms,
    files: OutputFiles,
    given: Given,
    *,
    status: _Status,
    variants: GenomeVariants = None,
) -> None:
    """Choose the SNPs with the strongest association; protects genotypes; who is a case is public."""
    files.check()
    called = terms.begin(cohort, cohort_name(cohort))
    listed = read_labels("--status", status)
    declare = partial(
        open_cohort, cohort, files, name=called, variants=variants, phenotype=listed, status="public",
        people=len(listed),
    )  # fmt: skip
    terms.answer(called, declare, given.question(k=5), files, rows_of)


@genome.command()
@with_options
def summary(
    cohort: GenomeSource, terms: Terms, files: OutputFiles, *, phenotype: _Phenotype,
    trait: Annotated[
        str | None, typer.Option("--trait", help="For a numeric trait: public mean and deviation, 170,10.")
    ] = None,
    covariates: _Covariates = None,
    adjust: Annotated[
        str | None, typer.Option("--adjust", help="Columns of --covariates to adjust for: age,sex.")
    ] = None,
    variants: GenomeVariants = None,
) -> None:  # fmt: skip
    """Test every SNP against a phenotype; protects only phenotypes, so it has a separate account."""
    files.check(".tsv")
    called = terms.begin(cohort, f"{cohort_name(cohort)} phenotypes")
    declare = partial(
        open_cohort, cohort, files, name=called, variants=variants, unit="phenotype",
        phenotype=read_labels("--phenotype", phenotype),
        covariates=None if covariates is None else _columns(covariates),
    )  # fmt: skip
    listed = [one.strip() for one in adjust.split(",")] if adjust else ()
    scale = None if trait is None else _pair(trait)
    terms.answer(
        called,
        declare,
        lambda opened: opened.summary_statistics(covariates=listed, trait=scale),
        files,
        _rows,
    )


def _rows(release: Release[SummaryStatistics]) -> dict[str, object]:
    """Return one row for each SNP; a number that does not exist is null."""
    columns = release.content.to_dict()
    rows = [
        {
            name: None if isinstance(one, float) and math.isnan(one) else one
            for name, one in zip(columns, line, strict=True)
        }
        for line in zip(*columns.values(), strict=True)
    ]
    return {"rows": rows, "confidence": release.content.confidence}


def _pair(text: str) -> tuple[Fraction, Fraction]:
    try:
        mean, deviation = (Fraction(one.strip()) for one in text.split(","))
    except (ValueError, ZeroDivisionError):
        raise TacitError(
            "bad-parameter", f"--trait must be a mean and a standard deviation, got {text!r}",
            fix=Say("--trait 170,10"),
        ) from None  # fmt: skip
    return mean, deviation


def _columns(path: Path) -> dict[str, list[str]]:
    """Read the covariates: columns by name."""
    header, *body = [*csv.reader(read_lines("--covariates", path))] or [[]]
    return {
        name.strip(): [line[i] if i < len(line) else "" for line in body] for i, name in enumerate(header)
    }
