"""The output of summary statistics: files, which are also read back, and figures.

The GWAS summary-statistics format (GWAS-SSF) is a table with tabs, and a description as YAML beside it. The
figures are a Manhattan plot, a quantile plot, and the largest effects.
"""

from __future__ import annotations

import hashlib
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Code
from tacit.genomes._sites import plain_chromosome
from tacit.genomes._summary_statistics import SummaryStatistics
from tacit.report import percent
from tacit.show import GREY, RED, Chart, ChartAxis, ChartSeries, Figure, chosen, numbers

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray


_CHROMOSOME_CODES = {"X": "23", "Y": "24", "MT": "25", "M": "25"}
_CHROMOSOME_NAMES = {"23": "X", "24": "Y", "25": "MT"}
_MISSING = frozenset({"", "NA", "#NA", "nan", "NaN"})
_NEEDED = ("chromosome", "base_pair_location", "effect_allele", "other_allele", "beta", "standard_error")
_NOTE = (
    "differentially private: the phenotype of each participant was randomised once. Standard errors and "
    "effect_allele_frequency use a public reference, not this cohort; n and info are not given."
)
_COLOURS = (0, 7)  # of the palette: chromosomes beside each other have different ones
_THRESHOLD = float(-np.log10(5e-8))  # the usual significance for a whole genome
_MAX_POINTS = 4_000  # half of them the smallest p-values, and every so-manyth of the others
_MAX_EFFECTS = 12


def write_gwas_ssf(statistics: SummaryStatistics, path: str | os.PathLike[str]) -> None:
    """Write the table, and ``<path>-meta.yaml`` beside it."""
    columns = _columns(statistics)
    lines = [
        "\t".join(columns),
        *("\t".join(map(_cell, line)) for line in zip(*columns.values(), strict=True)),
    ]
    data = ("\n".join(lines) + "\n").encode()
    described = {
        "data_file_name": Path(path).name,
        "file_type": "GWAS-SSF v1.0",
        "data_file_md5sum": hashlib.md5(data, usedforsecurity=False).hexdigest(),
        "is_harmonised": "false",
        "is_sorted": "false",
        "sample_size": str(statistics.people),
        "power_share": repr(statistics.share),
        "confidence": repr(statistics.confidence),
        "effect": statistics.outcome,
        "effect_for_each": statistics.per,
        "author_notes": _NOTE,
    }
    try:
        Path(path).write_bytes(data)
        text = "".join(f"{name}: {_quoted(value)}\n" for name, value in described.items())
        _beside(path).write_text(text, encoding="utf-8")
    except OSError as failed:
        raise TacitError(
            "cannot-write",
            f"the file {Path(path).name} could not be written",
            why=failed.strerror or "the operating system refused",
            fix="name a folder that exists and that you may write to",
        ) from None


def _columns(statistics: SummaryStatistics) -> dict[str, list[str]]:
    """Return the columns as text, in the order of the format."""
    sites = statistics.sites
    p = statistics.p_value
    tiny = bool((p[~np.isnan(p)] == 0).any())
    low, high = statistics.intervals
    frequency = statistics.frequency
    chromosomes = [plain_chromosome(str(one)) for one in sites["chromosome"]]
    ids = zip(chromosomes, sites["position"], sites["other_allele"], sites["effect_allele"], strict=True)
    return {
        "chromosome": [_CHROMOSOME_CODES.get(one.upper(), one) for one in chromosomes],
        "base_pair_location": [str(one) for one in sites["position"]],
        "effect_allele": list(sites["effect_allele"]),
        "other_allele": list(sites["other_allele"]),
        "beta": _written(statistics.beta),
        "standard_error": _written(statistics.error),
        "effect_allele_frequency": ["NA"] * len(p) if frequency is None else _written(frequency),
        **(
            {"neg_log_10_p_value": _written(statistics.neg_log_10_p_value)}
            if tiny
            else {"p_value": _written(p)}
        ),
        "ci_upper": _written(high),
        "ci_lower": _written(low),
        "rsid": [one if str(one).startswith("rs") else "NA" for one in sites["name"]],
        "variant_id": ["_".join(map(str, one)) for one in ids],
    }


def read_gwas_ssf(path: str | os.PathLike[str]) -> SummaryStatistics:
    r"""Read summary statistics back, with what the YAML file beside them says if it is there.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> columns = "chromosome base_pair_location effect_allele other_allele beta standard_error"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "lines.tsv"
    ...     _ = file.write_text("\t".join(columns.split()) + "\n1\t752566\tA\tG\t0.04\t0.01\n")
    ...     read_gwas_ssf(file).z.round(6).tolist()
    [4.0]
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        raise _unreadable(path, "the file cannot be read as text") from None
    header = lines[0].split("\t") if lines else []
    absent = next((name for name in _NEEDED if name not in header), None)
    if absent is not None:
        raise _unreadable(path, f"it has no column {absent}")
    rows = [line.split("\t") for line in lines[1:] if line]
    if any(len(row) != len(header) for row in rows):
        raise _unreadable(path, "a line has another number of cells than the first line")
    column = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    try:
        sites: dict[str, tuple[Any, ...]] = {
            "chromosome": tuple(_CHROMOSOME_NAMES.get(one, one) for one in column["chromosome"]),
            "position": tuple(int(one) for one in column["base_pair_location"]),
            "effect_allele": tuple(column["effect_allele"]),
            "other_allele": tuple(column["other_allele"]),
            "name": tuple("." if one in _MISSING else one for one in column.get("rsid", ["."] * len(rows))),
        }
        beta, error = _read_numbers(column["beta"]), _read_numbers(column["standard_error"])
        frequencies = _read_numbers(column.get("effect_allele_frequency", ["NA"] * len(rows)))
        description = _read_description(path)
        people, share = int(description.get("sample_size", 0)), float(description.get("power_share", 1))
        confidence = float(description.get("confidence", 0.95))
    except ValueError:
        raise _unreadable(path, "a cell that must be a number is not one") from None
    return SummaryStatistics(
        sites, beta / error, error, None if np.isnan(frequencies).all() else frequencies,
        description.get("effect", "effect"), people, share, confidence,
    )  # fmt: skip


def _read_description(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the lines of the YAML file that are a name and a value."""
    try:
        lines = _beside(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return {}
    pairs = (line.partition(": ") for line in lines if ": " in line and not line.startswith((" ", "#", "-")))
    return {name: value.strip().strip('"') for name, _, value in pairs}


def _beside(path: str | os.PathLike[str]) -> Path:
    return Path(path).with_name(Path(path).name + "-meta.yaml")


def _quoted(value: str) -> str:
    """Write text of YAML in quotes, and numbers and truth values without them."""
    plain = value in {"true", "false"} or value.replace(".", "", 1).isdigit()
    return value if plain else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _cell(value: str) -> str:
    """Return a cell that stays one: a tab or the end of a line in a name would start another."""
    return "_".join(value.split()) or "NA"


def _written(values: Sequence[float] | Any) -> list[str]:
    return ["NA" if math.isnan(one) else f"{one:.6g}" for one in np.asarray(values, np.float64).tolist()]


def _read_numbers(cells: Sequence[str]) -> Any:
    return np.array([math.nan if one in _MISSING else float(one) for one in cells], np.float64)


def _unreadable(path: str | os.PathLike[str], why: str) -> TacitError:
    return TacitError(
        "bad-release",
        f"{Path(path).name} is not a GWAS summary-statistics file",
        why=why,
        fix=Code('release.to_gwas_ssf("lines.tsv")'),
    )


def gwas_figures(statistics: SummaryStatistics, kind: str | None) -> tuple[Figure, ...]:
    """Return the figures, or the one of this name."""
    drawings = {"manhattan": _manhattan, "qq": _quantiles, "effects": _effects}
    return chosen(kind, {name: partial(make, statistics) for name, make in drawings.items()})


def _manhattan(statistics: SummaryStatistics) -> Figure:
    """Show -log10 p of every SNP along the genome, with the usual threshold of 5e-8."""
    height = statistics.neg_log_10_p_value
    names = np.array([str(chromosome) for chromosome in statistics.sites["chromosome"]])
    position = np.asarray(statistics.sites["position"], np.float64)
    chromosomes = sorted(set(names.tolist()), key=_order)
    spans = [float(np.ptp(position[names == chromosome])) for chromosome in chromosomes]
    start, series, ticks = 0.0, [], []
    shown_sites = _sites_to_draw(height)
    for number, chromosome in enumerate(chromosomes):
        rows = np.flatnonzero((names == chromosome) & shown_sites)
        x = start + position[rows] - position[names == chromosome].min()
        series.append(ChartSeries("points", x.tolist(), numbers(height[rows]), colour=_COLOURS[number % 2]))
        ticks.append((start + spans[number] / 2, chromosome))
        start += spans[number] + max(0.01 * sum(spans), 1.0)
    series.append(ChartSeries("across", (), (_THRESHOLD,), label="p = 5e-8", colour=RED, dashed=True))
    along = "chromosome" if chromosomes != ["."] else "variant"
    chart = Chart(
        tuple(series), ChartAxis(along, ticks=tuple(ticks)), ChartAxis("-log10 p", ends=(0.0, None))
    )
    return _figure(statistics, "p-values", chart)


def _sites_to_draw(height: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which SNPs are drawn: all, or the highest ones and a part of the others."""
    if height.size <= _MAX_POINTS:
        return np.ones(height.size, bool)
    chosen_sites: NDArray[np.bool_] = np.arange(height.size) % (2 * height.size // _MAX_POINTS) == 0
    chosen_sites[np.argsort(np.nan_to_num(height))[-_MAX_POINTS // 2 :]] = True
    return chosen_sites


def _quantiles(statistics: SummaryStatistics) -> Figure:
    """Show the observed p-values against those expected without any association, with a 95 % band."""
    from scipy.stats import beta, chi2

    observed = np.sort(statistics.neg_log_10_p_value[~np.isnan(statistics.z)])[::-1]
    n = len(observed)
    drawn_ranks = np.unique(np.geomspace(1, n, 500).astype(int))[::-1] if n else np.zeros(0, int)
    expected = -np.log10(drawn_ranks / (n + 1))
    low, high = (-np.log10(beta.ppf(q, drawn_ranks, n + 1 - drawn_ranks)) for q in (0.975, 0.025))
    band = ChartSeries("line", expected.tolist(), expected.tolist(), low.tolist(), high.tolist(),
                  "95 % band without association", GREY)  # fmt: skip
    points = ChartSeries("points", expected.tolist(), observed[drawn_ranks - 1].tolist(), colour=_COLOURS[0])
    note = ""
    if n:
        note = f"inflation (lambda) {np.nanmedian(statistics.z**2) / chi2.ppf(0.5, 1):.2f}"
    return _figure(
        statistics,
        "p-values against chance",
        Chart((band, points), ChartAxis("expected -log10 p"), ChartAxis("observed -log10 p"), note=note),
    )


def _effects(statistics: SummaryStatistics) -> Figure:
    """Show the effects of the SNPs with the smallest p-values, with their intervals."""
    order = np.argsort(-np.nan_to_num(np.abs(statistics.z), nan=-1.0), kind="stable")[:_MAX_EFFECTS]
    low, high = statistics.intervals
    sites = statistics.sites
    names = tuple(
        str(sites["name"][i])
        if sites["name"][i] != "."
        else f"{sites['chromosome'][i]}:{sites['position'][i]}"
        for i in order
    )
    ends = (part[order] for part in (statistics.beta, low, high))
    series = (
        ChartSeries("across", (), (0.0,), colour=GREY),
        ChartSeries.of("points", range(len(names)), ends),
    )
    label = f"{statistics.outcome} for each {statistics.per}"
    chart = Chart(series, ChartAxis("", names), ChartAxis(label), sideways=True)
    return _figure(statistics, "largest effects", chart, f"{percent(statistics.confidence, 0)} intervals")


def _figure(statistics: SummaryStatistics, what: str, chart: Chart, *words: str) -> Figure:
    return Figure(f"{what} of {len(statistics):,} SNPs, phenotypes randomised", (chart,), words)


def _order(name: str) -> tuple[int, str]:
    """Order chromosomes by number, then the others by name."""
    plain = plain_chromosome(name)
    return (int(plain), "") if plain.isdigit() else (10**6, plain)
