"""The ``tacit genome`` command: frequencies, Hardy-Weinberg tests, missing calls, components.

``top`` and ``summary`` find SNPs that go with a disease or a trait.
"""

from __future__ import annotations

import csv
import math
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli._app import app
from tacit.cli._field_command import Given, Terms, asks, rows_of
from tacit.cli._options import with_options
from tacit.cli._output import OutputFiles
from tacit.errors import TacitError
from tacit.fixes import Say

if TYPE_CHECKING:
    from tacit.core import Release
    from tacit.genomes import Cohort, SummaryStatistics


genome = typer.Typer(
    name="genome",
    help="Ask about genotypes: allele frequencies, tests of SNPs, ancestry, missing calls.",
    no_args_is_help=True,
)
app.add_typer(genome)

GenomeSource = Annotated[
    Path, typer.Argument(metavar="COHORT", help="A .bed, .vcf, .vcf.gz, .bcf or .zarr with genotypes.")
]
GenomeVariants = Annotated[
    Path | None,
    typer.Option("--variants", help="A public .csv or .tsv: chromosome, position, ref, alt, frequency."),
]
_GenomeClusters = Annotated[
    Path | None,
    typer.Option("--clusters", help="A text file with the cluster of each person, one on each line."),
]
_GenomeNames = Annotated[
    str | None, typer.Option("--cluster-names", help="The public names of the clusters: north,south.")
]
_GenomePeople = Annotated[
    int | None, typer.Option("--people", help="How many people there are, if that is public.")
]


def _offer(name: str, question: str, summary: str, *more: str) -> None:
    """Make the command that asks one question about frequencies."""

    @genome.command(name, cls=asks("cohort", question), help=summary)
    @with_options
    def ask(
        cohort: GenomeSource, terms: Terms, files: OutputFiles, given: Given, *,
        variants: GenomeVariants = None,
        clusters: _GenomeClusters = None, cluster_names: _GenomeNames = None, people: _GenomePeople = None,
    ) -> None:  # fmt: skip
        files.check(*more, ".csv", ".parquet")
        dataset_name = terms.begin(cohort, cohort_name(cohort))
        declare = partial(
            open_cohort, cohort, files, name=dataset_name, variants=variants, people=people,
            clusters=None if clusters is None else read_labels("--clusters", clusters),
            cluster_names=None if cluster_names is None else [n.strip() for n in cluster_names.split(",")],
        )  # fmt: skip
        terms.answer(dataset_name, declare, given.question(), files, rows_of)


_offer(
    "frequencies", "frequencies",
    "Release the frequency of an allele at every variant, with intervals.", ".vcf",
)  # fmt: skip
_offer(
    "hardy-weinberg", "hardy_weinberg",
    "Test Hardy-Weinberg equilibrium at every variant; p-values allow for the noise.",
)  # fmt: skip
_offer("missingness", "missingness", "Release the share of missing calls at every variant.")
_offer(
    "components", "components", "Release the loadings of principal components, which mostly show ancestry."
)


def open_cohort(source: Path, files: OutputFiles, **facts: Any) -> Cohort:
    """Declare the cohort; refuse a VCF file of variants that are only numbered."""
    import tacit as tc

    opened_cohort = tc.genotypes(source, **facts)
    if opened_cohort.sites.numbered and any(path.suffix.lower() == ".vcf" for path in files.out or ()):
        raise TacitError(
            "bad-parameter", "a VCF file needs the chromosome, position and alleles of each variant",
            why="the variants of this cohort are only numbered", fix=Say("--variants table.csv"),
        )  # fmt: skip
    return opened_cohort


def cohort_name(source: Path) -> str:
    """Return the name of a cohort that is given none: that of its file."""
    return source.name.partition(".")[0]


def read_lines(option: str, path: Path) -> list[str]:
    """Read a text file with one value for each person, and nothing else in a line."""
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, ValueError):
        raise TacitError(
            "bad-parameter", f"{option} must be a text file that can be read, got {str(path)!r}",
            fix=Say(f"{option} {option[2:]}.txt"),
        ) from None  # fmt: skip


def read_labels(option: str, path: Path) -> list[str]:
    """Read the label of each person; refuse a table, which shows in its first line."""
    lines = read_lines(option, path)
    if lines and any(sign in lines[0] for sign in ",;\t"):
        raise TacitError(
            "bad-parameter", f"{option} must have one label in each line and nothing else, got a table",
            why="labels are in the order of the people in the file of genotypes, without a header",
            fix=Say("keep the column of the labels alone, in this order"),
        )  # fmt: skip
    return lines


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
    dataset_name = terms.begin(cohort, cohort_name(cohort))
    labels = read_labels("--status", status)
    declare = partial(
        open_cohort, cohort, files, name=dataset_name, variants=variants, phenotype=labels, status="public",
        people=len(labels),
    )  # fmt: skip
    terms.answer(dataset_name, declare, given.question(k=5), files, rows_of)


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
    dataset_name = terms.begin(cohort, f"{cohort_name(cohort)} phenotypes")
    declare = partial(
        open_cohort, cohort, files, name=dataset_name, variants=variants, unit="phenotype",
        phenotype=read_labels("--phenotype", phenotype),
        covariates=None if covariates is None else _columns(covariates),
    )  # fmt: skip
    listed = [one.strip() for one in adjust.split(",")] if adjust else ()
    scale = None if trait is None else _pair(trait)
    terms.answer(
        dataset_name,
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
