"""The ``tacit genome`` command: frequencies, Hardy-Weinberg tests and missing calls of a cohort."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli._app import app
from tacit.cli._context import note_dataset, note_ledger
from tacit.cli._output import JsonOption, say, show_json
from tacit.cli._output_files import OutputFiles
from tacit.errors import TacitError
from tacit.fixes import Say

if TYPE_CHECKING:
    from tacit.core import Plan
    from tacit.genomes import Cohort

__all__ = ["genome"]

genome = typer.Typer(
    name="genome",
    help="Ask about genotypes: allele frequencies, Hardy-Weinberg tests, missing calls.",
    no_args_is_help=True,
)
app.add_typer(genome)

_GenomeSource = Annotated[
    Path, typer.Argument(metavar="COHORT", help="A .bed, .vcf, .vcf.gz, .bcf or .zarr with genotypes.")
]
_GenomeEpsilon = Annotated[float | None, typer.Option("--epsilon", "-e", help="What the question may cost.")]
_GenomeDelta = Annotated[float, typer.Option("--delta", help="Allow Gaussian noise, with this delta.")]
_GenomeRho = Annotated[
    float | None, typer.Option("--rho", help="Instead of epsilon: the cost in rho (zCDP).")
]
_GenomeBudget = Annotated[
    float | None,
    typer.Option("--budget", help="The whole budget, in rho or epsilon; for a cohort that is new."),
]  # fmt: skip
_GenomeName = Annotated[
    str | None, typer.Option("--name", help="The cohort's name; by default that of the file.")
]
_GenomeVariants = Annotated[
    Path | None,
    typer.Option("--variants", help="A public .csv or .tsv: chromosome, position, ref, alt, frequency."),
]
_GenomeClusters = Annotated[
    Path | None, typer.Option("--clusters", help="A text file with the cluster of each person, one a line.")
]
_GenomeNames = Annotated[
    str | None, typer.Option("--cluster-names", help="The public names of the clusters: north,south.")
]
_GenomePeople = Annotated[
    int | None, typer.Option("--people", help="How many people there are, if that is public.")
]
_GenomeLedger = Annotated[str, typer.Option("--ledger", help="Where the budget is kept.")]
_GenomeOut = Annotated[
    Path | None, typer.Option("--out", help="Write the answer to this file (.vcf, .csv, .parquet).")
]
_GenomeTable = Annotated[
    Path | None, typer.Option("--out", help="Write the answer to this file (.csv, .parquet).")
]
_GenomePlot = Annotated[
    Path | None, typer.Option("--plot", help="Draw it into this file (.png, .svg, .pdf).")
]
_GenomeCertificate = Annotated[
    Path | None, typer.Option("--certificate", help="Write the certificate to this file (.json).")
]
_GenomeOnlyPlan = Annotated[bool, typer.Option("--plan", help="Show cost and error only; charges nothing.")]
_TABLES = (".csv", ".parquet")


@genome.command()
def frequencies(
    cohort: _GenomeSource, *, epsilon: _GenomeEpsilon = None, delta: _GenomeDelta = 0, rho: _GenomeRho = None,
    by: Annotated[str | None, typer.Option("--by", help="cluster, for frequencies by cluster.")] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", help="A column of --variants: public frequencies.")
    ] = None,
    clip: Annotated[
        float | None, typer.Option("--clip", help="With a reference: the largest norm of one person.")
    ] = None,
    calls: Annotated[bool, typer.Option("--calls", help="Release missing calls too.")] = False,
    budget: _GenomeBudget = None, name: _GenomeName = None, variants: _GenomeVariants = None,
    clusters: _GenomeClusters = None, cluster_names: _GenomeNames = None, people: _GenomePeople = None,
    ledger: _GenomeLedger = "tacit.ledger", out: _GenomeOut = None, plot: _GenomePlot = None,
    certificate: _GenomeCertificate = None, only_plan: _GenomeOnlyPlan = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Release the frequency of an allele at every variant, with intervals."""
    files = OutputFiles(out, plot, certificate, (".vcf", *_TABLES))
    files.check()
    goal: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho}
    opened = _opened(cohort, goal, budget, name, variants, clusters, cluster_names, people, ledger)
    if files.out is not None and files.out.suffix.lower() == ".vcf" and opened.sites.numbered:
        raise TacitError(
            "bad-parameter", "a VCF file needs the chromosome, position and alleles of each variant",
            why="the variants of this cohort are only numbered", fix=Say("--variants table.csv"),
        )  # fmt: skip
    made = opened.frequencies(**goal, by=by, reference=reference, clip=clip, calls=calls)
    _answer(opened, made, files, only_plan=only_plan, as_json=as_json)


@genome.command("hardy-weinberg")
def hardy_weinberg(
    cohort: _GenomeSource, *, epsilon: _GenomeEpsilon = None, delta: _GenomeDelta = 0, rho: _GenomeRho = None,
    budget: _GenomeBudget = None, name: _GenomeName = None, variants: _GenomeVariants = None,
    people: _GenomePeople = None, ledger: _GenomeLedger = "tacit.ledger", out: _GenomeTable = None,
    certificate: _GenomeCertificate = None, only_plan: _GenomeOnlyPlan = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Test Hardy-Weinberg equilibrium at every variant; p-values allow for the noise."""
    files = OutputFiles(out, None, certificate)
    files.check()
    goal: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho}
    opened = _opened(cohort, goal, budget, name, variants, None, None, people, ledger)
    _answer(opened, opened.hardy_weinberg(**goal), files, only_plan=only_plan, as_json=as_json)


@genome.command()
def missingness(
    cohort: _GenomeSource, *, epsilon: _GenomeEpsilon = None, delta: _GenomeDelta = 0, rho: _GenomeRho = None,
    clip: Annotated[
        float | None, typer.Option("--clip", help="Missing calls above which a person counts less.")
    ] = None,
    budget: _GenomeBudget = None, name: _GenomeName = None, variants: _GenomeVariants = None,
    people: _GenomePeople = None, ledger: _GenomeLedger = "tacit.ledger", out: _GenomeTable = None,
    certificate: _GenomeCertificate = None, only_plan: _GenomeOnlyPlan = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Release the share of missing calls at every variant."""
    files = OutputFiles(out, None, certificate)
    files.check()
    goal: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho}
    opened = _opened(cohort, goal, budget, name, variants, None, None, people, ledger)
    made = opened.missingness(**goal, clip=clip)
    _answer(opened, made, files, only_plan=only_plan, as_json=as_json)


def _opened(
    source: Path, goal: dict[str, Any], budget: float | None, name: str | None,
    variants: Path | None, clusters: Path | None, cluster_names: str | None, people: int | None, ledger: str,
) -> Cohort:  # fmt: skip
    """Declare the cohort; its budget is that of its account, or the one that is given."""
    import tacit as tc
    from tacit.core import PlanGoal
    from tacit.ledger import open_ledger

    PlanGoal.read(**goal)  # refuses a cost that is missing before anything is opened
    called = name or source.name.partition(".")[0]
    note_dataset(None, None, called)
    note_ledger(ledger)
    books = open_ledger(ledger)
    try:
        whole = books.account(called).budget
    except TacitError as unknown:
        if unknown.code != "unknown-account":
            raise
        if budget is None:
            raise TacitError(
                "bad-parameter",
                f"the cohort {called!r} is new, and its whole budget is not given",
                why="there is no default budget; it says what may be learned in total",
                fix=Say("--budget 1"),
            ) from None
        in_rho = goal["rho"] is not None
        whole = tc.Budget(rho=budget) if in_rho else tc.Budget(budget, goal["delta"] or 0)
    return tc.genotypes(
        source, name=called, budget=whole, variants=variants, people=people, ledger=books,
        clusters=None if clusters is None else _lines(clusters),
        cluster_names=None if cluster_names is None else [one.strip() for one in cluster_names.split(",")],
    )  # fmt: skip


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        raise TacitError(
            "bad-parameter", f"--clusters must be a text file that can be read, got {str(path)!r}",
            fix=Say("--clusters clusters.txt"),
        ) from None  # fmt: skip


def _answer(opened: Cohort, made: Plan[Any], files: OutputFiles, *, only_plan: bool, as_json: bool) -> None:
    """Show the plan, or release and write what was asked for."""
    if only_plan:
        facts = {"asked": made.asked, "facts": dict(made.facts), "hash": made.hash}
        show_json(facts) if as_json else say(repr(made))
        return
    drawn = made.release()
    files.save(drawn.content, drawn.certificate, lambda path: drawn.plot().savefig(path))
    if as_json:
        show_json({
            "rows": list(drawn.content),
            "confidence": drawn.content.confidence,
            "certificate": dict(drawn.certificate.fields),
        })  # fmt: skip
        return
    say(repr(drawn), f"left: {opened.remaining}")
    files.report()
