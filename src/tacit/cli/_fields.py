"""The commands ``tacit genome``, ``tacit graph`` and ``tacit map``, which read their files in special ways.

``genome`` answers frequencies, Hardy-Weinberg tests, missing calls, components and associations; ``graph``
answers questions about the edges in a file; ``map`` writes points as a private map, in any of the map's
formats.
"""

from __future__ import annotations

import csv
import math
import re
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli._app import app
from tacit.cli._field_command import Given, Terms, asks, rows_of
from tacit.cli._options import read_limit_option, with_options
from tacit.cli._output import OutputFiles, say, show_json
from tacit.errors import TacitError, bad_parameter, missing_file
from tacit.fixes import Say

if TYPE_CHECKING:
    from tacit.core import Question, Release
    from tacit.genomes import Cohort, SummaryStatistics
    from tacit.graphs import Graph
    from tacit.maps import PointMap


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


_GraphFile = Annotated[
    Path,
    typer.Argument(
        metavar="EDGES", help="The edge list: a .csv or .parquet with one connection in each row."
    ),
]
_GraphAsk = Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")]
_GraphUnit = Annotated[
    str,
    typer.Option(
        "--unit", help="Who is protected: edge (one connection), or node (a person with all connections)."
    ),
]
_GraphNodes = Annotated[
    str | None, typer.Option("--nodes", help="The number of nodes, or @FILE with one name on each line.")
]
_GraphBound = Annotated[int | None, typer.Option("--degree-bound", help="The most edges of a node.")]
_GraphPromise = Annotated[
    bool, typer.Option("--promised", help="You promise the degree bound; certificates say so.")
]
_GraphDirected = Annotated[bool, typer.Option("--directed", help="Edges have a direction.")]
_GraphGroups = Annotated[
    list[str] | None,
    typer.Option("--group", help='Public groups: "class=classes.csv", a file of nodes and labels.'),
]
_GraphWeight = Annotated[
    str | None, typer.Option("--weight", help='A column and the largest weight of a pair: "minutes=60".')
]
_GraphDegree = Annotated[
    float | None,
    typer.Option("--mean-degree", help="A public guess: how many edges a node has; for the verdict."),
]
_GraphColumns = Annotated[
    str | None,
    typer.Option("--columns", help='The columns with the two nodes: "from,to"; by default the first two.'),
]


@app.command(cls=asks("graph", also=("verdict",), group="by"))
@with_options
def graph(
    edges: _GraphFile, ask: _GraphAsk, terms: Terms, files: OutputFiles, given: Given, *, unit: _GraphUnit,
    nodes: _GraphNodes = None, degree_bound: _GraphBound = None, promised: _GraphPromise = False,
    directed: _GraphDirected = False, group: _GraphGroups = None, weight: _GraphWeight = None,
    mean_degree: _GraphDegree = None, columns: _GraphColumns = None,
) -> None:  # fmt: skip
    """Ask about friendships, contacts or other connections; the same question again is free."""
    import tacit as tc

    files.check()
    dataset_name = terms.begin(edges)
    if not edges.exists():
        raise missing_file(edges, "unknown-table")
    ends = _end_columns(columns)
    declare = partial(
        tc.graph, edges, name=dataset_name, unit=unit, nodes=_nodes(nodes), degree_bound=degree_bound,
        promised=promised, directed=directed, groups=_groups(group), weight=_weight(weight),
        mean_degree=mean_degree, source_column=ends[0], target_column=ends[1],
    )  # fmt: skip
    if ask == "verdict":
        _show_verdict(declare(budget=tc.Budget(epsilon=1)), terms)
    else:
        terms.answer(dataset_name, declare, given.question(ask), files, rows_of)


def _show_verdict(opened_graph: Graph, terms: Terms) -> None:
    if terms.epsilon is None:
        raise bad_parameter("--epsilon", "given with verdict", None, fix=Say("--epsilon 1"))
    verdict = opened_graph.verdict(epsilon=terms.epsilon)
    if terms.as_json:
        show_json({"verdict": verdict.word, "text": verdict.text, "relative_error": verdict.relative_error})
        return
    say(verdict.text)


def _end_columns(text: str | None) -> tuple[str | None, str | None]:
    if text is None:
        return None, None
    source_column, comma, second = text.partition(",")
    if not comma or not source_column.strip() or not second.strip():
        raise bad_parameter("--columns", "two names with a comma", text, fix=Say("--columns from,to"))
    return source_column.strip(), second.strip()


def _nodes(text: str | None) -> int | list[str] | None:
    """Read the number of nodes, or a file of their names."""
    if text is None:
        return None
    if text.startswith("@"):
        return [line.strip() for line in _text(Path(text[1:])).splitlines() if line.strip()]
    try:
        return int(text)
    except ValueError:
        raise bad_parameter("--nodes", "a number, or @FILE", text, fix=Say("--nodes 1000")) from None


def _groups(texts: list[str] | None) -> dict[str, dict[str, str]] | None:
    """Read files of nodes and labels, each with a header."""
    import csv

    groups: dict[str, dict[str, str]] = {}
    for text in texts or ():
        name, equals, path = text.partition("=")
        if not equals or not name or not path:
            fix = Say("--group class=classes.csv")
            raise bad_parameter("--group", "a name and a file with = between them", text, fix=fix)
        rows = list(csv.reader(_text(Path(path)).splitlines()))[1:]
        groups[name] = {row[0].strip(): row[1].strip() for row in rows if len(row) > 1}
    return groups or None


def _weight(text: str | None) -> tuple[str, tuple[int, float]] | None:
    if text is None:
        return None
    column, _, largest = text.rpartition("=")
    try:
        return column, (0, float(largest))
    except ValueError:
        fix = Say("--weight minutes=60")
        raise bad_parameter("--weight", "COLUMN=LARGEST", text, fix=fix) from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        raise TacitError(
            "bad-parameter", f"the file {path} cannot be read as text", fix=Say("check its name and folder")
        ) from None


_FORMATS = (".html", ".geojson", ".parquet", ".csv", ".png", ".json")
_KINDS = "--grid 64x64, --tree, --adaptive, --h3 7, --districts FILE or --hottest 5"


_MapSource = Annotated[Path, typer.Argument(metavar="FILE", help="A .csv or .parquet file with points.")]
_MapBox = Annotated[
    tuple[float, float, float, float],
    typer.Option(
        metavar="S W N E",
        help="The public box: south, west, north, east, in degrees. Across the 180th meridian, give an east "
        "above 180.",
    ),
]
_MapLat = Annotated[str, typer.Option(help="The column of latitudes.")]
_MapLon = Annotated[str, typer.Option(help="The column of longitudes.")]
_MapUnit = Annotated[
    str | None, typer.Option(help="The column that says whose point it is; by default, each row is a unit.")
]
_MapLimits = Annotated[
    list[str] | None,
    typer.Option("--limit", help="rows=5: how many points of one unit count; may be repeated."),
]
_MapGrid = Annotated[str | None, typer.Option(metavar="ROWSxCOLUMNS", help="Count in a grid: 64x64.")]
_MapTree = Annotated[bool, typer.Option("--tree", help="Use smaller regions where there are more points.")]
_MapAdaptive = Annotated[bool, typer.Option("--adaptive", help="An adaptive grid of two levels.")]
_MapH3 = Annotated[int | None, typer.Option(help="Count in H3 cells of this resolution.")]
_MapDistricts = Annotated[Path | None, typer.Option(help="Count in public polygons: a GeoJSON file.")]
_MapDistrictName = Annotated[str, typer.Option(help="The property that names a polygon.")]
_MapHottest = Annotated[
    int | None, typer.Option(help="Show this many hottest cells of --grid, without counts.")
]


@app.command("map")
@with_options
def map_(
    source: _MapSource, terms: Terms, files: OutputFiles, *, box: _MapBox, lat: _MapLat = "lat",
    lon: _MapLon = "lon",
    unit: _MapUnit = None, limits: _MapLimits = None, grid: _MapGrid = None, tree: _MapTree = False,
    adaptive: _MapAdaptive = False, h3: _MapH3 = None, districts: _MapDistricts = None,
    district_name: _MapDistrictName = "name", hottest: _MapHottest = None,
) -> None:  # fmt: skip
    """Release the points of a file as a private map. The same map again is free."""
    import tacit as tc

    files.check(*(_FORMATS if hottest is None else (".csv", ".parquet", ".json")))
    dataset_name = terms.begin(source)
    south, west, north, east = box
    declare = partial(
        tc.points, source, lat, lon, unit=tc.Unit(unit) if unit else tc.Unit.row(), name=dataset_name,
        box=((south, west), (north, east)),
        limits=dict(read_limit_option(text) for text in limits or ()) or None,
    )  # fmt: skip
    ask = partial(
        _asked, grid=grid, tree=tree, adaptive=adaptive, h3=h3, hottest=hottest,
        districts=None if districts is None else (districts, district_name),
    )  # fmt: skip
    terms.answer(dataset_name, declare, ask, files, lambda _: {})


def _asked(points: PointMap, **arguments: Any) -> Question[Any]:
    """Ask for the one kind of map that was named."""
    kinds = {kind: value for kind, value in arguments.items() if value is not None and value is not False}
    shape = kinds.pop("grid", None)
    if (shape is not None) + len(kinds) - ("hottest" in kinds and shape is not None) != 1:
        raise TacitError(
            "bad-parameter",
            "a map needs one kind of regions, got " + ("none" if not kinds and shape is None else "several"),
            why="each kind is a separate question with its own cost",
            fix=Say(f"give one of {_KINDS}"),
        )
    match kinds:
        case {"hottest": k}:
            return points.hottest(k, cells=_read_shape(shape or "64x64"))
        case {"tree": _}:
            return points.tree()
        case {"adaptive": _}:
            return points.adaptive_grid()
        case {"h3": resolution}:
            return points.h3(resolution)
        case {"districts": (path, called)}:
            return points.districts(path, name=called)
        case _:
            rows, columns = _read_shape(str(shape))
            return points.grid(rows, columns)


def _read_shape(text: str) -> tuple[int, int]:
    shape = re.fullmatch(r"(\d{1,6})x(\d{1,6})", text)
    if shape is None:
        raise TacitError(
            "bad-parameter", f"--grid must be ROWSxCOLUMNS, got {text!r}", fix=Say("--grid 64x64")
        )
    return int(shape[1]), int(shape[2])
