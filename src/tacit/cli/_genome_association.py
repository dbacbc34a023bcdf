"""``tacit genome top`` and ``tacit genome summary``: SNPs that go with a disease or a trait."""

from __future__ import annotations

import csv
import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli._genome import (
    GenomeBudget,
    GenomeCertificate,
    GenomeLedger,
    GenomeName,
    GenomeOnlyPlan,
    GenomePlot,
    GenomeSource,
    GenomeTable,
    GenomeVariants,
    answer_plan,
    cohort_name,
    genome,
    open_cohort,
    read_labels,
    read_lines,
)
from tacit.cli._output import JsonOption, show_json
from tacit.cli._output_files import OutputFiles
from tacit.errors import TacitError
from tacit.fixes import Say

if TYPE_CHECKING:
    from tacit.core import Release
    from tacit.genomes import SummaryStatistics

__all__: list[str] = []

_Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="What the question may cost.")]
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
_Ssf = Annotated[Path | None, typer.Option("--out", help="Write the GWAS summary-statistics format (.tsv).")]


@genome.command()
def top(
    cohort: GenomeSource, *, epsilon: _Epsilon,
    status: _Status,
    k: Annotated[int, typer.Option("--k", "-k", help="How many SNPs to choose.")] = 5,
    test: Annotated[str, typer.Option("--test", help="allelic or trend.")] = "allelic",
    threshold: Annotated[
        float, typer.Option("--threshold", help="The p-value below which a SNP is significant.")
    ] = 5e-8,
    budget: GenomeBudget = None, name: GenomeName = None, variants: GenomeVariants = None,
    ledger: GenomeLedger = "tacit.ledger", out: GenomeTable = None, certificate: GenomeCertificate = None,
    only_plan: GenomeOnlyPlan = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Choose the SNPs with the strongest association; protects genotypes; who is a case is public."""
    files = OutputFiles(out, None, certificate)
    files.check()
    listed = read_labels("--status", status)
    opened = open_cohort(
        cohort, {"epsilon": epsilon}, budget, name or cohort_name(cohort), ledger, variants=variants,
        only_plan=only_plan, phenotype=listed, status="public", people=len(listed),
    )  # fmt: skip
    chosen: Any = test
    made = opened.top_snps(k, test=chosen, threshold=threshold).plan(epsilon=epsilon)
    answer_plan(opened, made, files, ledger=ledger, only_plan=only_plan, as_json=as_json)


@genome.command()
def summary(
    cohort: GenomeSource, *, epsilon: _Epsilon,
    phenotype: _Phenotype,
    trait: Annotated[
        str | None, typer.Option("--trait", help="For a numeric trait: public mean and deviation, 170,10.")
    ] = None,
    covariates: _Covariates = None,
    adjust: Annotated[
        str | None, typer.Option("--adjust", help="Columns of --covariates to adjust for: age,sex.")
    ] = None,
    budget: GenomeBudget = None, name: GenomeName = None, variants: GenomeVariants = None,
    ledger: GenomeLedger = "tacit.ledger",
    out: _Ssf = None,
    plot: GenomePlot = None, certificate: GenomeCertificate = None, only_plan: GenomeOnlyPlan = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Test every SNP against a phenotype; protects only phenotypes, so it has a separate account."""
    files = OutputFiles(out, plot, certificate, (".tsv",))
    files.check()
    opened = open_cohort(
        cohort, {"epsilon": epsilon}, budget, name or f"{cohort_name(cohort)} phenotypes", ledger,
        variants=variants, only_plan=only_plan, unit="phenotype",
        phenotype=read_labels("--phenotype", phenotype),
        covariates=None if covariates is None else _columns(covariates),
    )  # fmt: skip
    made = opened.summary_statistics(
        covariates=[one.strip() for one in adjust.split(",")] if adjust else (),
        trait=None if trait is None else _pair(trait),
    ).plan(epsilon=epsilon)
    if only_plan or not as_json:
        answer_plan(opened, made, files, ledger=ledger, only_plan=only_plan, as_json=as_json)
        return
    drawn = made.release()
    files.save(drawn.content, drawn.certificate, lambda path: drawn.plot().savefig(path))
    _show(drawn)


def _show(drawn: Release[SummaryStatistics]) -> None:
    """Print one row for each SNP; a number that does not exist is null."""
    columns = drawn.content.to_dict()
    rows = [
        {
            name: None if isinstance(one, float) and math.isnan(one) else one
            for name, one in zip(columns, line, strict=True)
        }
        for line in zip(*columns.values(), strict=True)
    ]
    show_json({
        "rows": rows,
        "confidence": drawn.content.confidence,
        "certificate": dict(drawn.certificate.fields),
    })  # fmt: skip


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
