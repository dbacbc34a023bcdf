"""How well bounds and limits are found that nobody declared: `bounds="auto"`, `limits={"rows": "auto"}`.

The finder is Tacit's (`tacit.strategies`), the intervals are Tacit's (`mean_sets`). The noise is NumPy's,
because what is measured here is accuracy, over some hundred thousand draws. Errors are errors of the mean of
all values, cut or not. They are compared with those of the best bounds, which are chosen on a grid of quarter
octaves by somebody who knows the data: the median error of their noise, plus what they cut below, plus what
they cut above. A draw is "beyond 10" if it has an answer with an error of more than ten times this.

    python benchmarks/first_minutes.py [--draws 200] [--part bounds missing wrong checks fresh groups ...]
"""

import argparse
import math
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

import tacit as tc
from first_minutes_data import FRESH, INVENTED, KNOWN, DataSet, columns, rows_per_unit
from tacit.mechanisms import LinearNoise, mean_sets
from tacit.strategies import (
    LIMIT_SHARE,
    NARROWING_SHARE,
    OCTAVE_SHARE,
    WIDENING,
    CellNoise,
    OctaveCells,
    answer_share,
    choose_limit,
    find_bounds,
    find_group_bounds,
    round_numbers,
)

SAMPLES = 4  # fresh rows of each data set
COLUMNS = [(200, 1), (2_000, 0.1), (2_000, 1), (20_000, 1), (200_000, 1), (200_000, 5)]
AS_STATED = Fraction(1)
Pair = tuple[float, float]


def laplace(rng: np.random.Generator, scale: float, size) -> np.ndarray:
    """Draw discrete Laplace noise."""
    p = -math.expm1(-1 / scale)
    return rng.geometric(p, size) - rng.geometric(p, size)


class Sample:
    """The rows of one table, sorted, with the sums that clipping needs."""

    def __init__(self, values: np.ndarray, *, integer: bool = False) -> None:
        self.values = np.sort(values)
        self.sums = np.concatenate(([0.0], np.cumsum(self.values)))
        self.n, self.mean, self.cells = len(values), float(values.mean()), OctaveCells(integer=integer)
        self.counts = np.bincount(self.cells.indices(values), minlength=self.cells.size)
        self.part_counts = cache(self._part_counts)

    def clipped_mean(self, low, high) -> np.ndarray:
        """Return the mean of the values cut to bounds."""
        below = np.searchsorted(self.values, low, side="right")
        above = np.searchsorted(self.values, high, side="left")
        inside = self.sums[above] - self.sums[below]
        return (below * low + inside + (self.n - above) * high) / self.n

    def parts(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the two parts of a mean, in rows."""
        share = (self.clipped_mean(low, high) - low) / (high - low)
        return self.n * np.stack([1 - share, share], axis=-1)

    def _part_counts(self, ends) -> np.ndarray:
        at = np.searchsorted(self.values, [float(end) for end in ends], side="right")
        return np.diff(at)


def answers(sample: Sample, bounds: list[Pair], scale: float, rng: np.random.Generator) -> np.ndarray:
    """Return value, low and high of the mean for each pair of bounds, with noise of a scale in rows."""
    low, high = np.array(bounds, dtype=float).T
    parts = sample.parts(low, high) + rng.laplace(0, scale, (len(bounds), 2))
    sets = mean_sets(parts, LinearNoise((scale,)), 0.05)
    return np.array([low + np.clip(ends, 0, 1) * (high - low) for ends in sets])


@cache
def _median_noise() -> np.ndarray:
    """Return the median of |(1 - p) X - p Y| for Laplace X, Y, for p = 0, 1/50, ..., 1."""
    rng = np.random.default_rng(1)
    x, y = rng.laplace(0, 1, (2, 40_000))
    return np.array([np.median(abs((1 - p) * x - p * y)) for p in np.linspace(0, 1, 51)])


def oracle(sample: Sample, scale: float) -> float:
    """Return the error of the best bounds on the grid: of noise, and of what is cut below and above."""
    ends = [0.0]
    for sign in (-1, 1):
        sizes = sign * sample.values[sign * sample.values > 0]
        if len(sizes):
            first, last = (math.log2(sizes.min()), math.log2(sizes.max()))
            steps = np.arange(math.floor(4 * max(first, last - 60)), math.ceil(4 * last) + 2)
            ends += list(sign * np.exp2(steps / 4))
    low, high = np.meshgrid(np.sort(ends), np.sort(ends), indexing="ij")
    low, high = low[low < high], high[low < high]
    cut_below = _cut(sample, low, -1)
    cut_above = _cut(sample, high, 1)
    share = (sample.clipped_mean(low, high) - low) / (high - low)
    noise = (high - low) * scale / sample.n * np.interp(share, np.linspace(0, 1, 51), _median_noise())
    return float((noise + cut_below + cut_above).min())


def _cut(sample: Sample, ends: np.ndarray, sign: int) -> np.ndarray:
    """Return by how much bounds at these ends move the mean, on one side."""
    at = np.searchsorted(sample.values, ends, side="left" if sign > 0 else "right")
    if sign > 0:
        return (sample.sums[-1] - sample.sums[at] - (sample.n - at) * ends) / sample.n
    return (at * ends - sample.sums[at]) / sample.n


@dataclass(frozen=True)
class Search:
    """The bounds of many draws, None where there are none, and whether a second count was paid."""

    bounds: list[Pair | None]
    narrowed: list[bool]


def search(
    sample: Sample,
    draws: int,
    epsilon: float,
    rng: np.random.Generator,
    rows: int = 1,
    cut: Fraction | None = None,
) -> Search:
    """Search for bounds as a plan does."""
    widening = WIDENING["usual"] if cut is None else cut
    noise = CellNoise(rows / (epsilon * float(OCTAVE_SHARE)))
    fine = CellNoise(rows / (epsilon * float(NARROWING_SHARE)))
    noisy = sample.counts + laplace(rng, noise.scale, (draws, sample.cells.size))
    bounds: list[Pair | None] = []
    narrowed = []
    for line in noisy:
        outer = find_bounds(line, noise, sample.cells)
        narrowed.append(outer is not None and outer.narrows)
        if outer is None:
            bounds.append(None)
            continue
        ends = outer.bounds(widening)
        if outer.narrows:
            counts = sample.part_counts(outer.parts)
            ends = outer.narrow(counts + laplace(rng, fine.scale, len(counts)), fine, widening)
        bounds.append((float(ends[0]), float(ends[1])))
    return Search(bounds, narrowed)


def auto(
    sample: Sample,
    draws: int,
    epsilon: float,
    rng: np.random.Generator,
    rows: int = 1,
    cut: Fraction | None = None,
) -> tuple[np.ndarray, list[Pair | None]]:
    """Return value, low and high of the mean of each draw, NaN where no bounds were found; and the bounds."""
    result = search(sample, draws, epsilon, rng, rows, cut)
    ends = np.full((3, draws), np.nan)
    for narrowed in (False, True):
        which = [i for i in range(draws) if result.bounds[i] is not None and result.narrowed[i] is narrowed]
        if which:
            scale = rows / (epsilon * float(answer_share(narrowed=narrowed)))
            ends[:, which] = answers(sample, [result.bounds[i] for i in which], scale, rng)  # type: ignore[misc]
    return ends, result.bounds


def wide(sample: Sample, draws: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Answer with declared bounds ten times as wide as the values, with the whole epsilon."""
    pair = (10 * min(float(sample.values[0]), 0.0), 10 * max(float(sample.values[-1]), 0.0))
    return answers(sample, [pair] * draws, 1 / epsilon, rng)


def mechanism(sample: Sample, draws: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Answer with the bounds of `tc.mechanisms.Bounds`, for 30 % of epsilon."""
    bounds = tc.mechanisms.Bounds(epsilon=Fraction(3, 10) * Fraction(str(epsilon)))
    pairs = [bounds.release(sample.values) for _ in range(draws)]
    return answers(sample, pairs, 1 / (0.7 * epsilon), rng)


@dataclass(frozen=True)
class Ratio:
    """What one method does on one data set: ratio of the median error, shares of draws."""

    median: float
    beyond: float
    missing: float


def ratio(values: np.ndarray, means: np.ndarray, best: np.ndarray) -> Ratio:
    """Compare errors with those of the best bounds; a draw without an answer has no finite error."""
    missing = np.isnan(values)
    errors = np.where(missing, np.inf, abs(values - means) / best)
    return Ratio(float(np.median(errors)), float(((errors > 10) & ~missing).mean()), float(missing.mean()))


def measure(data: DataSet, n: int, epsilon: float, draws: int, seed: int) -> dict[str, Ratio]:
    """Measure all methods on one data set."""
    rng = np.random.default_rng([seed, n, int(10 * epsilon)])
    each, values, means, best = draws // SAMPLES, {}, [], []
    for _ in range(SAMPLES):
        sample = Sample(data.rows(rng, n), integer=data.integer)
        means += [sample.mean] * each
        best += [oracle(sample, 1 / epsilon)] * each
        few = max(each // 4, 5) if n > 20_000 else each
        for name, (cells, _, _) in {
            "wide": wide(sample, each, epsilon, rng),
            "Bounds": mechanism(sample, few, epsilon, rng).repeat(math.ceil(each / few), axis=1)[:, :each],
            "auto": auto(sample, each, epsilon, rng)[0],
            "rare": auto(sample, each, epsilon, rng, cut=WIDENING["rare"])[0],
        }.items():
            values.setdefault(name, []).append(cells)
    return {
        name: ratio(np.concatenate(lines), np.array(means), np.array(best)) for name, lines in values.items()
    }


def table_of_bounds(sets: list[DataSet], draws: int, *, single: bool) -> None:
    """Print ratios of errors, medians over data sets, and the rates of draws without bounds."""
    header = " | ".join(f"n={n:,}, epsilon {epsilon:g}" for n, epsilon in COLUMNS)
    results = {
        (n, epsilon): [measure(data, n, epsilon, draws, i) for i, data in enumerate(sets)]
        for n, epsilon in COLUMNS
    }
    print(
        f"\nratio to the best error, median over {len(sets)} data sets (beyond 10) [90th percentile, largest]"
    )
    print(f"| method | {header} |")
    for name in ("wide", "Bounds", "auto", "rare"):
        cells = []
        for column in COLUMNS:
            lines = [line[name] for line in results[column]]
            medians = np.array([line.median for line in lines])
            beyond = 100 * np.mean([line.beyond for line in lines])
            tail = "-" if not np.isfinite(medians).all() else f"{medians.max():.1f}"
            ninetieth = np.sort(medians)[math.ceil(0.9 * len(medians)) - 1]
            cells.append(f"{np.median(medians):.1f} ({beyond:.0f} %) [{ninetieth:.1f}, {tail}]")
        print(f"| {name} | {' | '.join(cells)} |")
    missing = [100 * np.mean([line["auto"].missing for line in results[column]]) for column in COLUMNS]
    print(f"| not found | {' | '.join(f'{share:.1f} %' for share in missing)} |")
    if single:
        print("\nauto, each data set: ratio (beyond 10, not found)")
        for i, data in enumerate(sets):
            lines = [results[column][i]["auto"] for column in COLUMNS]
            print(
                f"| {data.name} | "
                + " | ".join(f"{r.median:.2f} ({r.beyond:.0%}, {r.missing:.0%})" for r in lines)
                + " |"
            )


def table_of_missing(sets: list[DataSet], draws: int) -> None:
    """Print how often no bounds are found, by rows per unit of noise."""
    print("\nno bounds found, mean over data sets")
    for rows, n, epsilon in (
        (1, 200, 0.1), (1, 200, 0.5), (1, 2_000, 0.05), (1, 200, 1), (1, 2_000, 0.1), (1, 1_000, 1),
        (1, 2_000, 0.5), (1, 2_000, 1), (5, 200, 0.5), (5, 200, 1), (5, 2_000, 0.5), (5, 2_000, 1),
    ):  # fmt: skip
        shares = []
        for i, data in enumerate(sets):
            rng = np.random.default_rng([i, n, rows])
            number = n if rows == 1 else int(rng.integers(1, 6, n).sum())
            for _ in range(SAMPLES):
                sample = Sample(data.rows(rng, number), integer=data.integer)
                result = search(sample, draws // SAMPLES, epsilon, rng, rows)
                shares.append(np.mean([pair is None for pair in result.bounds]))
        people = f"{n:,} people with 1 to 5 rows, L=5" if rows == 5 else f"{n:,} rows"
        print(f"| {people}, epsilon {epsilon:g}, r={n * epsilon / rows:g} | {100 * np.mean(shares):.1f} % |")


def table_of_wrong_ranges(sets: list[DataSet], draws: int) -> None:
    """Print how often a range is far too wide, and how often it is too narrow and the interval hides this.

    Far too wide: 16 times the median range of the data set. Too narrow: what is cut moves the mean by more
    than 10 times the best error, and by more than half the width of the interval.
    """
    print(f"\nwrong ranges, {len(sets)} data sets: share of draws (data sets with more than 2 %)")
    print("| n, epsilon 1 | 16 times too wide | too narrow, not seen in the interval |")
    for n in (200, 1_000, 2_000, 20_000, 200_000):
        wide_share, narrow_share, names = [], [], []
        for i, data in enumerate(sets):
            rng = np.random.default_rng([i, n, 3])
            too_wide, too_narrow = [], []
            for _ in range(SAMPLES):
                sample = Sample(data.rows(rng, n), integer=data.integer)
                best = oracle(sample, 1)
                ends, bounds = auto(sample, draws // SAMPLES, 1, rng)
                answered = [(j, pair) for j, pair in enumerate(bounds) if pair is not None]
                widths = [high - low for _, (low, high) in answered]
                for (j, pair), width in zip(answered, widths, strict=True):
                    moved = abs(float(sample.clipped_mean(*pair)) - sample.mean)
                    too_wide.append(width > 16 * np.median(widths))
                    too_narrow.append(moved > 10 * best and moved > (ends[2, j] - ends[1, j]) / 2)
            wide_share.append(np.mean(too_wide or [0]))
            narrow_share.append(np.mean(too_narrow or [0]))
            if narrow_share[-1] > 0.02:
                names.append(f"{data.name} {narrow_share[-1]:.0%}")
        narrow = f"{np.mean(narrow_share):.1%} ({', '.join(names) or 'none'})"
        print(f"| {n:,} | {np.mean(wide_share):.1%} | {narrow} |")


def table_of_groups(draws: int) -> None:
    """Print errors of means by group, with bounds of all rows and with bounds of each group."""
    print("\nrelative error of means by group, epsilon 1: median / 90th percentile")
    print("| groups, people, spread | one search, 30 %, not widened | per group, same | per group, default |")
    rng = np.random.default_rng(11)
    for groups, people in ((10, 2_000), (50, 20_000), (50, 200_000), (100, 2_000), (50, 2_000)):
        for spread in (0, 1, 2):
            errors: dict[str, list[float]] = {"one": [], "each": [], "default": []}
            own = []
            for _ in range(max(draws // 20, 4)):
                scales = np.exp(spread * rng.normal(size=groups))
                samples = [Sample(s * rng.lognormal(0, 1, people // groups)) for s in scales]
                counts = np.array([sample.counts for sample in samples])
                noise = CellNoise(1 / 0.3)
                one = find_bounds(counts.sum(axis=0) + laplace(rng, noise.scale, counts.shape[1]), noise)
                noisy = counts + laplace(rng, noise.scale, counts.shape)
                ranges = find_group_bounds(noisy, noise)
                own.append(np.mean([r is not None and not r.pooled for r in ranges]))
                small = CellNoise(float(1 / OCTAVE_SHARE))
                default = find_group_bounds(counts + laplace(rng, small.scale, counts.shape), small)
                for name, chosen, widening, share in (
                    ("one", [one] * groups, AS_STATED, 0.7),
                    ("each", ranges, AS_STATED, 0.7),
                    ("default", default, WIDENING["usual"], float(answer_share(narrowed=True))),
                ):
                    for sample, outer in zip(samples, chosen, strict=True):
                        if outer is None:
                            errors[name].append(math.inf)
                            continue
                        low, high = map(float, outer.bounds(widening))
                        value = answers(sample, [(low, high)], 1 / share, rng)[0, 0]
                        errors[name].append(abs(value / sample.mean - 1))
            cells = [f"{100 * np.median(e):.2g} / {100 * np.quantile(e, 0.9):.2g} %" for e in errors.values()]
            missing = np.mean(~np.isfinite(errors["default"]))
            print(
                f"| {groups}, {people:,}, {spread} | {' | '.join(cells)} | "
                f"{np.mean(own):.0%} of groups have bounds of their own, {missing:.0%} have none |"
            )


def table_of_limits(draws: int) -> None:
    """Print errors of a count with the limit that the rule chooses, against those with the best limit."""
    populations, missing = rows_per_unit()
    print("\nnot available:", ", ".join(missing) or "none")
    print("root mean square (median) error of a count, and share beyond 10, against the best limit")
    print("| rows per person | epsilon | best limit | default 10 | auto |")
    rng = np.random.default_rng(5)
    candidates = round_numbers(1000)
    for name, rows in populations.items():
        counts = np.bincount(np.searchsorted(candidates, np.minimum(rows, 1000)), minlength=len(candidates))
        for epsilon in (0.1, 1):

            def squared(limit: int, share: float, rows=rows, epsilon=epsilon) -> float:
                cut = float((rows - np.minimum(rows, limit)).sum())
                return 2 * (limit / (share * epsilon)) ** 2 + cut**2

            best, limit = min((squared(limit, 1), limit) for limit in candidates)
            noise, share = CellNoise(1 / (epsilon * float(LIMIT_SHARE))), float(1 - LIMIT_SHARE)
            noisy = counts + laplace(rng, noise.scale, (5 * draws, len(candidates)))
            limits = [
                choose_limit(line, noise, candidates, math.sqrt(2) / (share * epsilon)) for line in noisy
            ]
            ratios = np.array([squared(chosen, share) for chosen in limits]) / best
            print(
                f"| {name}, {len(rows):,} | {epsilon:g} | {limit} | {math.sqrt(squared(10, 1) / best):.1f} | "
                f"{math.sqrt(ratios.mean()):.1f} ({math.sqrt(np.median(ratios)):.1f}), "
                f"{(ratios > 100).mean():.1%} |"
            )


COVERED = (
    "log-normal, s=1", "log-normal, s=2", "Pareto 1.5", "Pareto 2.5", "90 % zeros", "integers",
    "ceosal1.salary", "randhie.mdvis", "fair.affairs", "medpar.los", "rwm5yr.docvis", "rwm5yr.hhninc",
)  # fmt: skip


def table_of_coverage(sets: list[DataSet], draws: int) -> None:
    """Print what 95 % intervals for the noise cover: the mean of cut values, and the mean of all values."""
    sets = [data for data in sets if data.name in COVERED]
    print(
        f"\ncoverage of 95 % intervals at epsilon 1, low end 0, {len(sets)} data sets without negative values"
    )
    print(
        "| n | outer end | mean of cut values | mean of all values: mean (worst) | low end below it | error |"
    )
    for n in (2_000, 20_000, 200_000):
        for times in (1, Fraction(3, 2), 4, 8):
            clipped, full, below, errors = [], [], [], []
            for i, data in enumerate(sets):
                rng = np.random.default_rng([i, n, int(2 * times)])
                cells = []
                for _ in range(SAMPLES):
                    sample = Sample(data.rows(rng, n), integer=data.integer)
                    result = search(sample, draws // SAMPLES, 1, rng, cut=AS_STATED)
                    pairs = [(0.0, float(times) * pair[1]) for pair in result.bounds if pair]
                    value, low, high = answers(sample, pairs, float(1 / answer_share(narrowed=False)), rng)
                    cut = np.array([sample.clipped_mean(*pair) for pair in pairs])
                    cells.append(
                        np.stack([
                            (low <= cut) & (cut <= high), (low <= sample.mean) & (sample.mean <= high),
                            low <= sample.mean, abs(value / sample.mean - 1),
                        ])
                    )  # fmt: skip
                lines = np.concatenate(cells, axis=1)
                for store, line in zip((clipped, full, below), lines[:3], strict=True):
                    store.append(line.mean())
                errors.append(np.median(lines[3]))
            print(
                f"| {n:,} | x {float(times):g} | {100 * np.mean(clipped):.1f} % | "
                f"{100 * np.mean(full):.0f} ({100 * min(full):.0f}) % | "
                f"{100 * np.mean(below):.1f} % | {100 * np.median(errors):.2g} % |"
            )


def table_of_checks(sets: list[DataSet], draws: int) -> None:
    """Print the median bounds at 2,000 rows and epsilon 1."""
    print("\nmedian bounds at n=2,000, epsilon 1")
    for i, data in enumerate(sets):
        rng = np.random.default_rng(i)
        sample = Sample(data.rows(rng, 2_000), integer=data.integer)
        pairs = np.array([pair for pair in search(sample, draws, 1, rng).bounds if pair])
        print(f"| {data.name} | {np.median(pairs[:, 0]):g}..{np.median(pairs[:, 1]):g} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=200)
    parts = ("bounds", "missing", "wrong", "checks", "fresh", "groups", "limits", "cover")
    parser.add_argument("--part", nargs="*", default=list(parts), choices=parts)
    options = parser.parse_args()
    real, missing = columns(KNOWN)
    sets = [*INVENTED, *real]
    print(f"{len(sets)} data sets; not available:", ", ".join(missing) or "none")
    for part in options.part:
        start = time.process_time()
        match part:
            case "bounds":
                table_of_bounds(sets, options.draws, single=True)
            case "missing":
                table_of_missing(sets, options.draws)
            case "wrong":
                table_of_wrong_ranges(sets, options.draws)
            case "checks":
                table_of_checks(sets, options.draws)
            case "fresh":
                fresh, missing = columns(FRESH)
                print(
                    f"\n{len(fresh)} data sets chosen before the first run; not available:", missing or "none"
                )
                table_of_bounds(fresh, options.draws, single=True)
                table_of_missing(fresh, options.draws)
                table_of_wrong_ranges(fresh, options.draws)
            case "groups":
                table_of_groups(options.draws)
            case "limits":
                table_of_limits(options.draws)
            case "cover":
                table_of_coverage(sets, options.draws)
        print(f"({part}: {time.process_time() - start:.0f} CPU seconds)", flush=True)


if __name__ == "__main__":
    main()
