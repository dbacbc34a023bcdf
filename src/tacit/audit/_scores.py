"""The scores of outputs in an audit: what an attacker looks at to distinguish two inputs.

Every score is fitted on the training half of the samples only; its events are counted on the other half.
The bound is therefore valid for every score, good or bad; a better score only makes the bound larger.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.audit._sampling import NOT_A_NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

ScoreArray: TypeAlias = NDArray[np.float64]
#: Outputs of a mechanism, one row each: a matrix of numbers, or a list of labels.
OutputRows: TypeAlias = ScoreArray | list[object]

_MOST_COLUMNS = 64
_LEARN = 20_000  # training rows of the logistic regression, per input


@dataclass(frozen=True, slots=True)
class OutputScore:
    """A named real function of outputs."""

    name: str
    of: Callable[[OutputRows], ScoreArray]
    #: For labels only: the labels whose score passes a test.
    members: Callable[[Callable[[float], bool]], list[object]] | None = None


def fit_scores(a: OutputRows, b: OutputRows) -> list[OutputScore]:
    """Fit every score on training outputs of the two inputs."""
    if isinstance(a, list) or isinstance(b, list):
        return [_labels(as_labels(a), as_labels(b))]
    scores = _columns(a)
    scores += [_histogram(a, b, score) for score in scores[:_MOST_COLUMNS]]
    atoms = _atoms(a, b)
    if atoms is not None:
        scores.append(atoms)
    joint = _joint(a, b)
    if joint is not None:
        scores.append(joint)
    scores.append(_learned(a, b))
    return scores


def as_labels(rows: OutputRows) -> list[object]:
    """Return outputs as hashable labels."""
    if isinstance(rows, list):
        return rows
    return [row[0] if len(row) == 1 else tuple(row) for row in rows.tolist()]


def repeated_outputs(one: OutputRows, other: OutputRows) -> tuple[OutputScore, int]:
    """Score 1 for outputs that occur at least twice on one input and never on the other, and count them."""
    width = _common_width(one, other)
    seen = Counter(_names(one, width))
    elsewhere = set(_names(other, width))
    chosen = {name: times for name, times in seen.items() if times > 1 and name not in elsewhere}
    labels = list(chosen)
    if width is not None:
        numbers = np.frombuffer(b"".join(map(bytes, chosen)), dtype=np.float64)  # type: ignore[arg-type]
        labels = as_labels(numbers.reshape(-1, width))
    others = set(labels)

    def of(rows: OutputRows) -> ScoreArray:
        alike = width is not None and _common_width(rows, rows) == width
        known, names = (chosen, _names(rows, width)) if alike else (others, as_labels(rows))
        return np.array([float(name in known) for name in names])

    score = OutputScore("an output seen on one input only", of, lambda _: labels)
    return score, sum(chosen.values())


def _common_width(one: OutputRows, other: OutputRows) -> int | None:
    """Return how many numbers an output has, if all outputs of both inputs have as many."""
    if isinstance(one, list) or isinstance(other, list) or one.shape[1] != other.shape[1]:
        return None
    return int(one.shape[1])


def _names(rows: OutputRows, width: int | None) -> list[object]:
    """Return what names an output: its bytes for numbers, which are quicker to look up, or its label."""
    return as_labels(rows) if width is None or isinstance(rows, list) else _row_bytes(rows)


def _row_bytes(rows: ScoreArray) -> list[object]:
    """Return the bytes of every row: equal where the numbers are equal, and quicker to look up than they."""
    whole = np.ascontiguousarray(rows, dtype=np.float64) + 0.0  # -0.0 becomes 0.0, which it equals
    return list(whole.view(np.dtype((np.void, whole.itemsize * whole.shape[1]))).ravel().tolist())


def _numbers(rows: OutputRows, width: int) -> ScoreArray:
    """Read rows as numbers; outputs that are not numbers, unlike all training outputs, get a far value."""
    if not isinstance(rows, list):
        return rows
    matrix = np.full((len(rows), width), NOT_A_NUMBER)
    for place, row in enumerate(rows):
        try:
            matrix[place] = np.asarray(row, dtype=np.float64).reshape(width)
        except (TypeError, ValueError):
            continue
    return matrix


# -- threshold scores ------------------------------------------------------------------------------


def _column(j: int, width: int) -> Callable[[OutputRows], ScoreArray]:
    return lambda rows: _numbers(rows, width)[:, j]


def _columns(a: ScoreArray) -> list[OutputScore]:
    """Return as scores each output number, the lowest set bit of each float, and summaries of a vector."""
    width = a.shape[1]
    names = ["output"] if width == 1 else [f"output[{j}]" for j in range(width)]
    scores = [OutputScore(names[j], _column(j, width)) for j in range(min(width, _MOST_COLUMNS))]
    if width > 1:
        scores.append(OutputScore("sum of outputs", lambda rows: _numbers(rows, width).sum(axis=1)))
        scores.append(OutputScore("largest output", lambda rows: _numbers(rows, width).max(axis=1)))
        scores.append(OutputScore("smallest output", lambda rows: _numbers(rows, width).min(axis=1)))
    scores += [OutputScore(f"lowest set bit of {names[j]}", _lowest_bit_of(j, width)) for j in _fractional(a)]
    return scores


def _fractional(a: ScoreArray) -> list[int]:
    """Return the first few columns that hold fractions; only their low bits are informative."""
    return [j for j in range(min(a.shape[1], _MOST_COLUMNS)) if bool(np.any(a[:, j] % 1 != 0))][:8]


def _lowest_bit_of(j: int, width: int) -> Callable[[OutputRows], ScoreArray]:
    return lambda rows: lowest_bit(_numbers(rows, width)[:, j])


def lowest_bit(x: ScoreArray) -> ScoreArray:
    """Return the exponent e of the lowest set bit: x is a multiple of 2^e but not of 2^(e+1); 2000 for 0."""
    mantissa, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = whole & -whole
    trailing = np.log2(np.maximum(lowest, 1).astype(np.float64))
    return np.where(whole == 0, 2000.0, exponent - 53 + trailing)


# -- histogram scores ------------------------------------------------------------------------------


def _log_ratio(count_a: NDArray[np.int64], count_b: NDArray[np.int64]) -> ScoreArray:
    """Return smoothed log-odds for each cell, shrunk towards 0 where there is little evidence."""
    ratio = np.log((count_a + 1.0) / (count_b + 1.0))
    spread = np.sqrt(1.0 / (count_a + 1.0) + 1.0 / (count_b + 1.0))
    return np.sign(ratio) * np.maximum(np.abs(ratio) - 2.0 * spread, 0.0) + 1e-6 * ratio


def _labels(a: list[object], b: list[object]) -> OutputScore:
    codes: dict[Hashable, int] = {}
    in_a = np.array([codes.setdefault(one, len(codes)) for one in a], dtype=np.int64)
    in_b = np.array([codes.setdefault(one, len(codes)) for one in b], dtype=np.int64)
    table = _log_ratio(np.bincount(in_a, minlength=len(codes)), np.bincount(in_b, minlength=len(codes)))
    by_label = {label: float(table[code]) for label, code in codes.items()}
    return OutputScore(
        "label, by its frequency",
        lambda rows: np.array([by_label.get(one, 0.0) for one in as_labels(rows)], dtype=np.float64),
        lambda test: [label for label, score in by_label.items() if test(score)],
    )


def _cuts(values: ScoreArray, cells: int) -> ScoreArray:
    """Return cut points: between all values if there are few, otherwise quantiles."""
    distinct = np.unique(values)
    if len(distinct) <= cells:
        return (distinct[1:] + distinct[:-1]) / 2 if len(distinct) > 1 else distinct
    return np.unique(np.quantile(values, np.linspace(0, 1, cells + 1)[1:-1]))


def _histogram(a: ScoreArray, b: ScoreArray, score: OutputScore) -> OutputScore:
    in_a, in_b = score.of(a), score.of(b)
    cuts = _cuts(np.concatenate([in_a[:200_000], in_b[:200_000]]), 256)
    cells = len(cuts) + 1
    table = _log_ratio(
        np.bincount(np.searchsorted(cuts, in_a, side="right"), minlength=cells),
        np.bincount(np.searchsorted(cuts, in_b, side="right"), minlength=cells),
    )
    return OutputScore(
        f"histogram of {score.name}", lambda rows: table[np.searchsorted(cuts, score.of(rows), side="right")]
    )


def _keys(rows: ScoreArray, mix: ScoreArray) -> ScoreArray:
    """Return a number for each row: equal for equal rows, and almost always different for different rows."""
    return np.asarray(np.where(rows == 0, 0.0, rows) @ mix)


def _atoms(a: ScoreArray, b: ScoreArray) -> OutputScore | None:
    """Score whole rows if few distinct rows occur, as in lists of yes and no answers."""
    if a.shape[1] == 1:
        return None
    mix = np.sqrt(np.arange(2, a.shape[1] + 2, dtype=np.float64)) + np.pi
    in_a, in_b = _keys(a, mix), _keys(b, mix)
    keys = np.unique(np.concatenate([in_a, in_b]))
    if len(keys) > max(64, len(a) // 20) or not np.all(np.isfinite(keys)):
        return None
    table = _log_ratio(
        np.bincount(np.searchsorted(keys, in_a), minlength=len(keys)),
        np.bincount(np.searchsorted(keys, in_b), minlength=len(keys)),
    )

    def of(rows: OutputRows) -> ScoreArray:
        wanted = _keys(_numbers(rows, len(mix)), mix)
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, table[place], 0.0)

    return OutputScore("whole output, by its frequency", of)


def _joint(a: ScoreArray, b: ScoreArray) -> OutputScore | None:
    """Score the cells of a joint histogram of two to five output numbers."""
    width = a.shape[1]
    if not 2 <= width <= 5:
        return None
    per_column = max(3, round(4096 ** (1 / width)))
    both = np.concatenate([a[:100_000], b[:100_000]])
    cuts = [_cuts(both[:, j], per_column) for j in range(width)]

    def cell(rows: ScoreArray) -> NDArray[np.int64]:
        place = np.zeros(len(rows), dtype=np.int64)
        for j, cut in enumerate(cuts):
            place = place * (len(cut) + 1) + np.searchsorted(cut, rows[:, j], side="right")
        return place

    cells = int(np.prod([len(cut) + 1 for cut in cuts]))
    table = _log_ratio(np.bincount(cell(a), minlength=cells), np.bincount(cell(b), minlength=cells))
    return OutputScore("joint histogram of the outputs", lambda rows: table[cell(_numbers(rows, width))])


# -- learned score ---------------------------------------------------------------------------------


def _bits(x: ScoreArray) -> ScoreArray:
    """Return the eight lowest bits of the significand and the position of the lowest set bit."""
    raw = np.ascontiguousarray(x).view(np.uint64)
    low = ((raw[:, None] >> np.arange(8, dtype=np.uint64)) & np.uint64(1)).astype(np.float64)
    return np.column_stack([low, np.clip(lowest_bit(x), -80, 20)])


def _features(rows: ScoreArray, fractional: list[int]) -> ScoreArray:
    """Return the features of the regression: numbers, absolute values, signs, products, bits of fractions."""
    used = np.clip(rows[:, :_MOST_COLUMNS], -1e150, 1e150)
    parts = [used, np.abs(used), np.sign(used)]
    parts += [_bits(np.ascontiguousarray(used[:, j])) for j in fractional]
    if used.shape[1] <= 8:
        parts += [
            (used[:, i] * used[:, j])[:, None] for i in range(used.shape[1]) for j in range(i, used.shape[1])
        ]
    return np.column_stack(parts)


def _learned(a: ScoreArray, b: ScoreArray) -> OutputScore:
    """Fit a logistic regression by Newton's method with a small ridge, like the classifiers of DP-Sniper."""
    size = min(len(a), len(b), _LEARN)
    width = a.shape[1]
    fractional = _fractional(a)
    raw = _features(np.concatenate([a[:size], b[:size]]), fractional)
    middle = np.median(raw, axis=0)
    spread = np.quantile(np.abs(raw - middle), 0.9, axis=0)
    spread[spread == 0] = 1.0

    def standard(rows: ScoreArray) -> ScoreArray:
        return np.asarray(np.clip((np.clip(rows, -1e300, 1e300) - middle) / spread, -8, 8))

    x = np.column_stack([standard(raw), np.ones(2 * size)])
    y = np.repeat([1.0, 0.0], size)
    weights = np.zeros(x.shape[1])
    ridge = 1e-3 * size * np.eye(x.shape[1])
    for _ in range(8):
        p = 1.0 / (1.0 + np.exp(-np.clip(x @ weights, -30, 30)))
        curvature = (x * (p * (1 - p))[:, None]).T @ x + ridge
        step = np.linalg.solve(curvature, x.T @ (y - p) - ridge @ weights)
        weights = weights + step
        if float(np.abs(step).max()) < 1e-3:
            break
    final = weights
    return OutputScore(
        "learned (logistic)",
        lambda rows: np.asarray(standard(_features(_numbers(rows, width), fractional)) @ final[:-1]),
    )
