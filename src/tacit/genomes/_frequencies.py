"""Allele frequencies: sums of calls around a public reference, clipped per person, with Gaussian noise.

Free post-processing turns the noisy sums into frequencies with intervals. The release has one line for each
variant, which VCF files can hold as well; its figure has one point with its interval for each variant, and a
colour for each cluster.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import AnswerTable, Cells, Forecast, interval_words, is_hidden, without_hidden
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Code, Say, Set
from tacit.genomes._cohort_draft import check_unit, draft_sums, people_noise
from tacit.genomes._sums import clipped_sums
from tacit.parameters import Omitted
from tacit.report import short_percent
from tacit.show import MOST_SERIES, Chart, ChartAxis, ChartSeries, Figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON, Draft, Goal, Value
    from tacit.genomes._cohort import Cohort
    from tacit.genomes._cohort_draft import Noise


#: The part of the chance of missing the truth that goes to each of several noisy numbers.
_SMALL = Fraction(1, 10)
#: Steps of the grid in one allele, around a public reference.
GRID = 16
#: By how many standard deviations the default bound exceeds the expected squared norm, or by 10 %.
_SPREADS = 2.4
_NO_CLIP = Omitted("without a reference", fix=Set(reference="frequency"))


@dataclass(frozen=True, slots=True, repr=False)
class AlleleFrequencies(AnswerTable):
    """Frequencies of the counted alleles, with an interval for each variant (and cluster).

    Parameters
    ----------
    spent
        What the release cost, for the file that it is written to: ``{"rho": 0.1}``.
    """

    kind: ClassVar[str] = "allele-frequencies"
    described: ClassVar[str] = "a table of allele frequencies"
    spent: tuple[tuple[str, float], ...] = ()

    def to_json(self) -> JSON:
        """Return the frequencies as JSON."""
        return {**AnswerTable.to_json(self), "spent": dict(self.spent)}  # type: ignore[dict-item]

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the frequencies back; raises ``ValueError`` where they are none."""
        table = super(AlleleFrequencies, cls).from_json(document)
        spent = tuple((str(name), float(value)) for name, value in document["spent"].items())
        return replace(table, spent=spent)

    def to_vcf(self, path: str | Path | None = None) -> str:
        """Return the frequencies as VCF text, and write it to a file if a path is given.

        The fields are AF, AF_LOW, AF_HIGH and AF_RHO (or AF_EPSILON and AF_DELTA). There are no AC, AN and
        NS, which are exact counts, and no genotypes. Of several clusters each has a field of its own:
        AF_north.
        """
        text = "".join(f"{line}\n" for line in self._vcf_lines())
        if path is not None:
            try:
                Path(path).write_text(text, encoding="utf-8")
            except OSError:
                raise TacitError(
                    "cannot-write", f"{path} could not be written", fix=Say("choose another file")
                ) from None
        return text

    def _vcf_lines(self) -> list[str]:
        if "chromosome" not in self.keys:
            raise TacitError(
                "bad-parameter",
                "a VCF file needs the chromosome, position and alleles of each variant",
                why="the variants of this cohort are only numbered",
                fix=Code("tc.genotypes(..., variants=table)"),
            )
        level = short_percent(self.confidence)
        clusters = list(dict.fromkeys(self.keys.get("cluster", (None,))))
        spent = [(f"AF_{name.upper()}", value) for name, value in self.spent]
        tags = ["AF" if cluster is None else f"AF_{_tag(str(cluster))}" for cluster in clusters]
        every = [tag + end for tag in tags for end in ("", "_LOW", "_HIGH")] + [tag for tag, _ in spent]
        if len(set(every)) < len(every):  # clusters such as a b and a_b, a and a_LOW, or RHO
            tags = [f"{tag}_{number}" for number, tag in enumerate(tags, 1)]
        lines = ["##fileformat=VCFv4.3", "##source=Tacit, differentially private frequencies"]
        chromosomes = dict.fromkeys(_cell(cluster) for cluster in self.keys["chromosome"])
        lines += [f"##contig=<ID={cluster}>" for cluster in chromosomes]
        for tag, cluster in zip(tags, clusters, strict=True):
            whom = "" if cluster is None else f" in {_quoted(str(cluster))}"
            lines += [
                f'##INFO=<ID={tag},Number=A,Type=Float,Description="Noisy allele frequency{whom}">',
                f'##INFO=<ID={tag}_LOW,Number=A,Type=Float,Description="Low end, {level} for the noise">',
                f'##INFO=<ID={tag}_HIGH,Number=A,Type=Float,Description="High end, {level} for the noise">',
            ]
        lines += [
            f'##INFO=<ID={tag},Number=1,Type=Float,Description="Cost of all frequencies together">'
            for tag, _ in spent
        ]
        lines.append("#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO")
        return lines + self._records(tags, [f"{tag}={value:.6g}" for tag, value in spent])

    def _records(self, tags: list[str], spent: list[str]) -> list[str]:
        """Return the line of each variant; the clusters of a variant stand beside each other."""
        cells, names = self.columns["frequency"], ("chromosome", "position", "id", "ref", "alt")
        records = []
        for start in range(0, len(self), len(tags)):
            info = []
            for i, tag in enumerate(tags, start):
                ends = zip(
                    (tag, f"{tag}_LOW", f"{tag}_HIGH"), (cells.value, cells.low, cells.high), strict=True
                )
                info += [f"{name}={_number(values[i])}" for name, values in ends]
            site = [_cell(self.keys[name][start]) for name in names]
            records.append("\t".join([*site, ".", ".", ";".join([*info, *spent])]))
        return records

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the frequencies in the order of the variants, with their intervals; a colour per cluster."""
        if what not in {None, "frequency"} or "frequency" not in self.columns:
            return AnswerTable.figures(self, what)
        return (frequency_figure(self),)


def _number(value: Value) -> str:
    """Return a number of a VCF field; a dot where the noise hides it."""
    return f"{value:.6g}" if isinstance(value, int | float) else "."


def _cell(value: object) -> str:
    """Return a cell that stays one: a tab or the end of a line in a name would start another."""
    return "_".join(str(value).split()) or "."


def _tag(name: str) -> str:
    """Return a name as the tag of a VCF field: letters, digits, underscores."""
    return "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in name)


def _quoted(name: str) -> str:
    """Return a name for a description in quotes: one line, with quotes and backslashes escaped."""
    line = "".join(sign if sign.isprintable() else " " for sign in name)
    return line.replace("\\", "\\\\").replace('"', '\\"')


_MAX_VARIANTS = 100  # variants in one figure: more cannot be told apart


def frequency_figure(table: AlleleFrequencies) -> Figure:
    """Return the first 100 variants; at most 8 clusters."""
    cells = table.columns["frequency"]
    labels = [str(one) for one in table.keys.get("cluster", ("",) * len(table))]
    clusters = list(dict.fromkeys(labels))
    max_variants = min(_MAX_VARIANTS, len(table) // max(1, len(clusters)))
    series = []
    for number, cluster in enumerate(clusters[:MOST_SERIES]):
        rows = [i for i, label in enumerate(labels) if label == cluster][:max_variants]
        at = [place + 0.3 * (number - (len(clusters) - 1) / 2) for place in range(1, len(rows) + 1)]
        ends = ((part[i] for i in rows) for part in (cells.value, cells.low, cells.high))
        series.append(ChartSeries.of("points", at, ends, label=cluster, colour=number))
    top = min(1.0, 1.15 * max((high or 0 for high in cells.high), default=1.0))
    legend = "cluster" if clusters != [""] else ""
    x, y = ChartAxis("variant", ends=(0.0, max_variants + 1.0)), ChartAxis("frequency", ends=(0.0, top))
    more = (
        "" if max_variants * max(1, len(clusters)) == len(table) else f" of the first {max_variants} variants"
    )
    chart = Chart(tuple(series), x, y, legend=legend)
    return Figure(f"allele frequencies{more}", (chart,), (interval_words(table),))


@dataclass(frozen=True, slots=True, eq=False)
class AlleleSums:
    """What the noisy sums of alleles are of, so that frequencies can be read off them.

    Parameters
    ----------
    centres
        What was subtracted from each call.
    clusters
        The clusters by which it was asked; none for everybody.
    calls
        Whether missing calls are released too.
    counting, adding
        The noise of the numbers of people, where they are private, and of the sums.
    spent
        What was promised, by its name.
    """

    cohort: Cohort
    centres: Centres
    clusters: tuple[str, ...]
    calls: bool
    counting: Noise | None
    adding: Noise
    spent: tuple[tuple[str, float], ...]


def read_frequencies(allele: AlleleSums, noisy: Sequence[Any], confidence: Fraction) -> AlleleFrequencies:
    """Return f = c/2 + S/(2 n) for each variant, where S is the noisy sum around the centre c.

    With private n, or with call counts, the interval is the hull over all values of S, n and the missing
    calls that their own intervals hold; their chances of missing add up to 1 - confidence.
    """
    centres, miss = allele.centres, 1 - confidence
    sums = np.asarray(noisy[-1], np.float64) / centres.grid
    others = int(allele.counting is not None) + int(allele.calls)
    half = allele.adding.half_width(1 - miss * (1 - _SMALL * others)) / centres.grid
    sizes, spread = read_sizes(allele.cohort, allele.counting, allele.clusters, noisy, 1 - miss * _SMALL)
    calls, calls_half = sizes[:, None], np.full_like(sums[:, 0], spread)
    if allele.calls:
        lost = allele.adding.half_width(1 - miss * _SMALL) / centres.grid
        calls, calls_half = calls - sums[:, 1], calls_half + lost
    middle = centres.middle / (2 * centres.grid)
    low, high = _hull(sums[:, 0], half, calls, calls_half)
    value = middle + sums[:, 0] / (2 * np.maximum(calls, 1))
    cut = [np.clip(part, 0, 1).T.ravel() for part in (value, middle + low / 2, middle + high / 2)]
    notes = {"frequency": _note(allele)} if _note(allele) else {}
    hidden = hidden_groups(sizes, allele.counting, len(allele.cohort.sites))
    cells = without_hidden(Cells(*(tuple(part.tolist()) for part in cut)), hidden)
    return AlleleFrequencies(
        site_keys(allele.cohort, allele.clusters),
        {"frequency": cells},
        float(confidence),
        notes,
        spent=allele.spent,
    )


def _note(allele: AlleleSums) -> str:
    parts = []
    if not allele.calls:
        parts.append("missing calls count as the centre, which pulls a frequency toward it")
    if allele.centres.clips:
        parts.append("calls of people above the limit are scaled down, with the same effect")
    return "; ".join(parts)


def _hull(
    sums: NDArray[np.float64], half: float, calls: NDArray[np.float64], calls_half: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of S/n over S within half, and n within wide, of what was released; n >= 1."""
    fewest, largest = np.maximum(calls - calls_half, 1), np.maximum(calls + calls_half, 1)
    below, above = sums - half, sums + half
    return below / np.where(below < 0, fewest, largest), above / np.where(above < 0, largest, fewest)


def read_sizes(
    cohort: Cohort, counting: Any, clusters: tuple[str, ...], noisy: Sequence[Any], confidence: Fraction
) -> tuple[NDArray[np.float64], float]:
    """Return how many people each group has, public or noisy, and the half-width of that."""
    if counting is None:
        public = cohort.cluster_sizes if clusters else (cohort.people,)
        return np.asarray(public, np.float64), 0.0
    return np.asarray(noisy[0], np.float64), float(counting.half_width(confidence))


def hidden_groups(sizes: NDArray[np.float64], counting: Any, sites: int) -> list[bool]:
    """Return of each line, variants first, whether the noise hides what is divided by its group's people."""
    if counting is None:
        return [False] * (sites * len(sizes))
    return [is_hidden(one, counting.variance) for one in sizes.tolist()] * sites


def site_keys(cohort: Cohort, clusters: tuple[str, ...] = ()) -> dict[str, tuple[Value, ...]]:
    """Return the key columns of an answer: the variants, and beside each its clusters."""
    sites, copies = cohort.sites, max(1, len(clusters))
    columns: dict[str, tuple[Value, ...]] = {
        "chromosome": sites.chromosome, "position": sites.position, "id": sites.names,
        "ref": sites.ref, "alt": sites.alt,
    }  # fmt: skip
    if sites.numbered:
        columns = {"variant": sites.position}
    keys = {name: tuple(one for one in column for _ in range(copies)) for name, column in columns.items()}
    return keys | ({"cluster": clusters * len(sites)} if clusters else {})


def plain_cells(values: NDArray[np.float64], half: NDArray[np.float64] | float | None) -> Cells:
    """Return a column with intervals of this half-width, or with none."""
    column = values.tolist()
    if half is None:
        nothing = (None,) * len(column)
        return Cells(tuple(column), nothing, nothing)
    return Cells(tuple(column), tuple((values - half).tolist()), tuple((values + half).tolist()))


def error_of_shares(half: float, *, clusters: bool = False) -> str:
    """Say how far off a share will be if the number of people is private, with an example.

    Examples
    --------
    >>> error_of_shares(17.5)
    'about 17.5 divided by the number of people (0.018 for 1,000 people)'
    """
    whose = " of the cluster" if clusters else ""
    return f"about {half:.3g} divided by the number of people{whose} ({half / 1000:.2g} for 1,000 people)"


@dataclass(frozen=True, slots=True)
class Centres:
    """What is subtracted from each call, and the bound on one person's norm.

    Parameters
    ----------
    grid
        Steps in one allele: 16, or 1 around one copy.
    middle
        Group x variant: the centre, in steps.
    clip_squared
        The bound on the squared norm of one person, in steps.
    clips
        Whether a person can exceed it.
    """

    grid: int
    middle: NDArray[np.int64]
    clip_squared: int
    clips: bool

    @property
    def digest(self) -> str:
        """A digest of the centres, which is part of the question."""
        return hashlib.sha256(self.middle.astype("<i8").tobytes()).hexdigest()


def call_values(centres: Centres, *, calls: bool) -> NDArray[np.int64]:
    """Return what each call adds: group, part (alleles, missing calls), variant, call.

    A missing call adds nothing to the alleles: it counts as the centre.
    """
    middle = centres.middle
    alleles = centres.grid * np.arange(3) - middle[..., None]
    values = np.zeros((len(middle), 1 + calls, middle.shape[1], 4), np.int64)
    values[:, 0, :, :3] = alleles
    if calls:
        values[:, 1, :, 3] = centres.grid
    return values


def draft_frequencies(
    cohort: Cohort, goal: Goal, *, by: str | None, reference: Any, clip: Fraction | None, calls: bool
) -> Draft[AlleleFrequencies]:
    """Draft the frequencies of all variants: noisy numbers of people, where they are private, and noisy sums.

    One person moves the sums by at most the root of ``clip_squared``, in one cluster; docs/proofs/genomes.md,
    sections 1 to 3.
    """
    check_unit(cohort, "allele frequencies")
    clusters = read_by(cohort, by)
    centres = read_centres(cohort, clusters, reference, clip)
    people_moved, sites = cohort.moved, len(cohort.sites)
    counting, share = people_noise(cohort, goal, clusters=bool(clusters))
    adding = goal.part(share).noise(
        l1=math.isqrt(centres.clip_squared * sites) * people_moved,
        l2_squared=centres.clip_squared * people_moved**2,
        adjacency=cohort.adjacency,
    )
    spent = tuple((name, float(value)) for name, value in goal.promised.items())
    sums = AlleleSums(cohort, centres, clusters, calls, counting, adding, spent)

    def summed(groups: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        shape = (max(1, len(clusters)), 1 + calls, sites, 4)
        values = np.broadcast_to(call_values(centres, calls=calls), shape)
        clip_squared = centres.clip_squared if centres.clips else None
        return {"allele sums": clipped_sums(cohort._source, values, groups, clip_squared)}  # noqa: SLF001 - a part of it

    return draft_sums(
        cohort, clusters=clusters, counting=counting, adding={"allele sums": adding}, summed=summed,
        document={
            "genomes": "frequencies", "grid": centres.grid, "centres": centres.digest,
            "clip_squared": centres.clip_squared, "clusters": list(clusters), "calls": calls,
        },
        words=f"allele frequencies of {sites:,} variants" + (f" by {by}" if by else ""),
        reading=lambda noisy, level: read_frequencies(sums, noisy, level),
        forecast=lambda: _forecast(sums, goal),
        facts=lambda: _facts(sums, reference),
    )  # fmt: skip


def read_by(cohort: Cohort, by: str | None) -> tuple[str, ...]:
    """Return the clusters that a question is asked by; none if it is asked of everybody."""
    if by is not None and not cohort.cluster_names:
        raise TacitError(
            "bad-parameter",
            "frequencies by cluster need a cohort that was declared with clusters",
            fix=Code("tc.genotypes(..., clusters=labels, cluster_names=names)"),
        )
    return () if by is None else cohort.cluster_names


def read_centres(
    cohort: Cohort,
    clusters: tuple[str, ...],
    reference: object,
    clip: Fraction | None,
    places: NDArray[np.int64] | None = None,
) -> Centres:
    """Read the public reference and choose the bound: above what it lets expect of the squared norm.

    ``places`` are the variants that are used; by default all.
    """
    used = np.arange(len(cohort.sites)) if places is None else places
    sites = len(used)
    if reference is None:
        _NO_CLIP.read("clip", None if clip is None else float(clip))
        return Centres(1, np.ones((max(1, len(clusters)), sites), np.int64), sites, clips=False)
    references: dict[str, object]
    if isinstance(reference, Mapping):
        if set(reference) != set(clusters) or not clusters:
            raise bad_parameter("reference", "a column for each cluster, of frequencies by cluster",
                                sorted(map(str, reference)),
                                fix=Set(reference=dict.fromkeys(clusters or ("north", "south"), "frequency")),
                                )  # fmt: skip
        references = {name: reference[name] for name in clusters}
    else:
        references = dict.fromkeys(clusters or ("",), reference)
    shares = np.array([_shares(cohort, one) for one in references.values()])[:, used]
    middle = np.floor(2 * GRID * shares + 0.5).astype(np.int64)
    furthest = np.maximum(middle, 2 * GRID - middle)
    worst = int((furthest**2).sum(axis=1).max())
    if clip is None:
        each = 2 * shares * (1 - shares)  # the variance of a call in equilibrium; its square varies by
        expected, spread = each.sum(axis=1), np.sqrt((each - each**2).sum(axis=1))
        enough = np.maximum(1.1 * expected, expected + _SPREADS * spread).max()
        squared = max(GRID**2, math.ceil(GRID**2 * float(enough)))
    else:
        squared = max(1, math.floor((GRID * clip) ** 2))
    return Centres(GRID, middle, min(squared, worst), clips=squared < worst)


def _shares(cohort: Cohort, reference: Any) -> NDArray[np.float64]:
    """Return the public frequency of each variant; where it is not known, one half."""
    if isinstance(reference, str):
        if reference not in cohort.sites.numbers:
            raise TacitError(
                "unknown-column",
                f"the table of variants has no numeric column {reference!r}",
                why="the reference is public, so it is read from the declared variants",
                fix=Choose(tuple(cohort.sites.numbers), given=reference)
                if cohort.sites.numbers else Set(reference=None),
            )  # fmt: skip
        reference = cohort.sites.numbers[reference]
    try:
        shares = np.array(reference, np.float64)
    except (TypeError, ValueError):
        shares = np.empty(0)
    shares = np.where(np.isnan(shares), 0.5, shares)
    if shares.shape != (len(cohort.sites),) or (shares < 0).any() or (shares > 1).any():
        raise bad_parameter(
            "reference", f"{len(cohort.sites):,} frequencies between 0 and 1, or the name of a column",
            "something else", fix=Set(reference="frequency"),
        )  # fmt: skip
    return shares


def reference_document(reference: Any) -> JSON:
    """Write a reference for the request of a plan."""
    if reference is None or isinstance(reference, str):
        return reference
    if isinstance(reference, Mapping):
        return {str(name): reference_document(one) for name, one in reference.items()}
    return [None if math.isnan(one) else float(one) for one in np.asarray(reference, np.float64).tolist()]


def _forecast(sums: AlleleSums, goal: Goal) -> list[Forecast]:
    """Say what to expect, where the number of people is public; else in people."""
    half = sums.adding.half_width(goal.confidence)
    cohort, steps = sums.cohort, 2 * sums.centres.grid
    sizes = cohort.cluster_sizes if sums.clusters else (None if cohort.people is None else (cohort.people,))
    noise = sums.adding.describe()
    if sizes is None or min(sizes) == 0:
        note = error_of_shares(half / steps, clusters=bool(sums.clusters))
        return [Forecast("frequency", "frequency of the counted allele", noise, None, note)]
    return [Forecast("frequency", "frequency of the counted allele", noise, half / steps / min(sizes))]


def _facts(sums: AlleleSums, reference: object) -> list[tuple[str, str]]:
    cohort, centres = sums.cohort, sums.centres
    centre = "one copy of the allele" if reference is None else "the public reference"
    if isinstance(reference, str):
        centre = f"twice the public column {reference}"
    norm = math.sqrt(centres.clip_squared) / centres.grid
    bound = f"each person counts with a norm of at most {norm:.3g} alleles"
    facts = [
        ("variants", f"{len(cohort.sites):,}, a public list"),
        ("centre", f"calls are counted as the difference from {centre}"),
        (
            "limits",
            bound + (", larger ones are scaled down" if centres.clips else ", which nobody can exceed"),
        ),
        ("missing calls", "released too, and corrected for" if sums.calls else "count as the centre"),
    ]
    if sums.clusters:
        facts.append(
            ("clusters", f"{', '.join(sums.clusters)}: a public list; each person is in at most one")
        )
    people = "public" if sums.counting is None else f"private, noise added: {sums.counting.describe()}"
    return [*facts, ("number of people", people)]
