"""The ``tacit genome`` command: frequencies, Hardy-Weinberg tests, missing calls and components."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli._app import app
from tacit.cli._context import note_dataset, note_ledger
from tacit.cli._first_budget import check_first_cost, find_account, given_budget, left_now, whole_budget
from tacit.cli._output import JsonOption, say, show_json
from tacit.cli._output_files import OutputFiles
from tacit.errors import TacitError
from tacit.fixes import Say

if TYPE_CHECKING:
    from tacit.core import Plan
    from tacit.genomes import Cohort

genome = typer.Typer(
    name="genome",
    help="Ask about genotypes: allele frequencies, tests of SNPs, ancestry, missing calls.",
    no_args_is_help=True,
)
app.add_typer(genome)

GenomeSource = Annotated[
    Path, typer.Argument(metavar="COHORT", help="A .bed, .vcf, .vcf.gz, .bcf or .zarr with genotypes.")
]
_GenomeEpsilon = Annotated[float | None, typer.Option("--epsilon", "-e", help="What the question may cost.")]
_GenomeDelta = Annotated[float, typer.Option("--delta", help="Allow Gaussian noise, with this delta.")]
_GenomeRho = Annotated[
    float | None, typer.Option("--rho", help="Instead of epsilon: the cost in rho (zCDP).")
]
GenomeBudget = Annotated[
    float | None,
    typer.Option("--budget", help="The whole budget, in rho or epsilon; needed for a new cohort."),
]  # fmt: skip
GenomeName = Annotated[
    str | None, typer.Option("--name", help="The cohort's name; by default that of the file.")
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
GenomeLedger = Annotated[str, typer.Option("--ledger", help="Where the budget is kept.")]
_GenomeOut = Annotated[
    Path | None, typer.Option("--out", help="Write the answer to this file (.vcf, .csv, .parquet).")
]
GenomeTable = Annotated[
    Path | None, typer.Option("--out", help="Write the answer to this file (.csv, .parquet).")
]
GenomePlot = Annotated[Path | None, typer.Option("--plot", help="Draw it into this file (.png, .svg, .pdf).")]
GenomeCertificate = Annotated[
    Path | None, typer.Option("--certificate", help="Write the certificate to this file (.json).")
]
GenomeOnlyPlan = Annotated[bool, typer.Option("--plan", help="Show cost and error only; charges nothing.")]
_TABLES = (".csv", ".parquet")


@genome.command()
def frequencies(
    cohort: GenomeSource, *, epsilon: _GenomeEpsilon = None, delta: _GenomeDelta = 0, rho: _GenomeRho = None,
    by: Annotated[str | None, typer.Option("--by", help="cluster, for frequencies by cluster.")] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", help="A column of --variants: public frequencies.")
    ] = None,
    clip: Annotated[
        float | None, typer.Option("--clip", help="With a reference: the largest norm of one person.")
    ] = None,
    calls: Annotated[bool, typer.Option("--calls", help="Release missing calls too.")] = False,
    budget: GenomeBudget = None, name: GenomeName = None, variants: GenomeVariants = None,
    clusters: _GenomeClusters = None, cluster_names: _GenomeNames = None, people: _GenomePeople = None,
    ledger: GenomeLedger = "tacit.ledger", out: _GenomeOut = None, plot: GenomePlot = None,
    certificate: GenomeCertificate = None, only_plan: GenomeOnlyPlan = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Release the frequency of an allele at every variant, with intervals."""
    files = OutputFiles(out, plot, certificate, (".vcf", *_TABLES))
    files.check()
    goal: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho}
    opened = open_cohort(
        cohort, goal, budget, name or cohort_name(cohort), ledger, variants=variants, people=people,
        only_plan=only_plan, clusters=None if clusters is None else read_labels("--clusters", clusters),
        cluster_names=None if cluster_names is None else [one.strip() for one in cluster_names.split(",")],
    )  # fmt: skip
    if files.out is not None and files.out.suffix.lower() == ".vcf" and opened.sites.numbered:
        raise TacitError(
            "bad-parameter", "a VCF file needs the chromosome, position and alleles of each variant",
            why="the variants of this cohort are only numbered", fix=Say("--variants table.csv"),
        )  # fmt: skip
    asked: dict[str, Any] = {"by": by, "reference": reference, "clip": clip, "calls": calls}
    made = opened.frequencies(**asked).plan(**goal)
    answer_plan(opened, made, files, ledger=ledger, only_plan=only_plan, as_json=as_json)


@genome.command("hardy-weinberg")
def hardy_weinberg(
    cohort: GenomeSource, *, epsilon: _GenomeEpsilon = None, delta: _GenomeDelta = 0, rho: _GenomeRho = None,
    budget: GenomeBudget = None, name: GenomeName = None, variants: GenomeVariants = None,
    people: _GenomePeople = None, ledger: GenomeLedger = "tacit.ledger", out: GenomeTable = None,
    certificate: GenomeCertificate = None, only_plan: GenomeOnlyPlan = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Test Hardy-Weinberg equilibrium at every variant; p-values allow for the noise."""
    files = OutputFiles(out, None, certificate)
    files.check()
    goal: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho}
    opened = open_cohort(
        cohort, goal, budget, name or cohort_name(cohort), ledger, variants=variants, people=people,
        only_plan=only_plan,
    )  # fmt: skip
    answer_plan(
        opened,
        opened.hardy_weinberg().plan(**goal),
        files,
        ledger=ledger,
        only_plan=only_plan,
        as_json=as_json,
    )


@genome.command()
def missingness(
    cohort: GenomeSource, *, epsilon: _GenomeEpsilon = None, delta: _GenomeDelta = 0, rho: _GenomeRho = None,
    clip: Annotated[
        float | None, typer.Option("--clip", help="A person with more missing calls than this counts less.")
    ] = None,
    budget: GenomeBudget = None, name: GenomeName = None, variants: GenomeVariants = None,
    people: _GenomePeople = None, ledger: GenomeLedger = "tacit.ledger", out: GenomeTable = None,
    certificate: GenomeCertificate = None, only_plan: GenomeOnlyPlan = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Release the share of missing calls at every variant."""
    files = OutputFiles(out, None, certificate)
    files.check()
    goal: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho}
    opened = open_cohort(
        cohort, goal, budget, name or cohort_name(cohort), ledger, variants=variants, people=people,
        only_plan=only_plan,
    )  # fmt: skip
    made = opened.missingness(clip=clip).plan(**goal)
    answer_plan(opened, made, files, ledger=ledger, only_plan=only_plan, as_json=as_json)


@genome.command()
def components(
    cohort: GenomeSource, *, epsilon: _GenomeEpsilon = None, delta: _GenomeDelta = 0, rho: _GenomeRho = None,
    k: Annotated[int, typer.Option("--k", "-k", help="How many components.")] = 2,
    reference: Annotated[
        str | None, typer.Option("--reference", help="A column of --variants: public frequencies.")
    ] = None,
    clip: Annotated[
        float | None, typer.Option("--clip", help="With a reference: the largest norm of one person.")
    ] = None,
    budget: GenomeBudget = None, name: GenomeName = None, variants: GenomeVariants = None,
    people: _GenomePeople = None, ledger: GenomeLedger = "tacit.ledger", out: GenomeTable = None,
    certificate: GenomeCertificate = None, only_plan: GenomeOnlyPlan = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Release the loadings of principal components, which mostly show ancestry."""
    files = OutputFiles(out, None, certificate)
    files.check()
    goal: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho}
    opened = open_cohort(
        cohort, goal, budget, name or cohort_name(cohort), ledger, variants=variants, people=people,
        only_plan=only_plan,
    )  # fmt: skip
    made = opened.components(k, reference=reference, clip=clip).plan(**goal)
    answer_plan(opened, made, files, ledger=ledger, only_plan=only_plan, as_json=as_json)


def open_cohort(
    source: Path, goal: dict[str, Any], budget: float | None, name: str, ledger: str, *, only_plan: bool,
    **facts: Any,
) -> Cohort:  # fmt: skip
    """Declare the cohort; its budget is the one that is given, or that of its account.

    For a plan alone the ledger is in memory: nothing is made on the disk, and no budget is needed.
    """
    import tacit as tc
    from tacit.core import Goal

    goal = {"epsilon": None, "delta": 0, "rho": None} | goal
    Goal.read(**goal)  # refuses a cost that is missing before anything is opened
    note_dataset(None, None, name)
    note_ledger(ledger)
    if only_plan or find_account(name, ledger) is None:  # the file is checked before a budget is asked for
        trial = tc.genotypes(source, name=name, budget=given_budget(budget or 1, goal), **facts)
        if only_plan:
            return trial
    whole = whole_budget(name, ledger, budget, goal)
    check_first_cost(name, ledger, whole, goal)
    return tc.genotypes(source, name=name, budget=whole, ledger=ledger, **facts)


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


def answer_plan(
    opened: Cohort, made: Plan[Any], files: OutputFiles, *, ledger: str, only_plan: bool, as_json: bool
) -> None:
    """Show the plan, or release and write what was asked for."""
    from tacit.core import plan_text

    if only_plan:
        facts = {"asked": made.asked, "facts": dict(made.facts), "hash": made.hash}
        show_json(facts) if as_json else say(plan_text(made, left=False), *left_now(opened.name, ledger))
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
    say(repr(drawn), f"left: {opened.remaining}", *opened.account_notes)
    files.report()
