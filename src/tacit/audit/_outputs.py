"""What an audit sees of a mechanism: many independent outputs, their scores, and the events that are tested.

A score is what an attacker looks at to distinguish two inputs. An event is a threshold on a score; it is
chosen on half of the samples and counted on the other half.
"""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tacit.errors import bad_parameter
from tacit.fixes import Code

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator


NOT_A_NUMBER = -1e300  # represents NaN; the infinities become -2e300 and 1e300, so all three stay distinct
_CELLS = 2_000_000  # the largest number of output numbers in memory at once


@runtime_checkable
class _Batched(Protocol):
    def release_many(self, value: object, count: int) -> object: ...


@runtime_checkable
class _Releases(Protocol):
    def release(self, value: object) -> object: ...


#: What can be audited: a mechanism, a function of a value and a number that returns as many outputs, or a
#: function of the value that returns one.
AuditTarget: TypeAlias = object


def _drawer(target: AuditTarget) -> Callable[[object, int], object]:
    """Return ``draw(value, n)``, which uses the fastest way that the target offers."""
    if isinstance(target, _Batched):
        return target.release_many
    if isinstance(target, _Releases):
        return _one_by_one(target.release)
    if callable(target):
        function = cast("Callable[..., object]", target)
        match _size_of(function):
            case "by name":
                return lambda value, n: function(value, size=n)
            case "second":
                return function
        return _one_by_one(function)
    raise bad_parameter(
        "target",
        "a mechanism or a function of the data",
        target,
        fix=Code("audit(lambda value, size: ..., a, b)"),
    )


def _size_of(function: Callable[..., object]) -> Literal["by name", "second", "none"]:
    """Say how a function takes the number of outputs: as ``size``, as its second argument, or not at all."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "none"
    if any(one.name == "size" for one in parameters):
        return "by name"
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in parameters if one.kind in places and one.default is inspect.Parameter.empty]
    return "second" if len(needed) >= 2 else "none"


def takes_batches(target: AuditTarget) -> bool:
    """Return whether a target returns many outputs from one call."""
    if isinstance(target, _Batched):
        return True
    return not isinstance(target, _Releases) and callable(target) and _size_of(target) != "none"


def single_outputs(target: AuditTarget, value: object, count: int) -> list[object]:
    """Draw outputs with one call each: a seed that is set inside the call repeats them."""
    draw = _drawer(target)
    outputs: list[object] = []
    for _ in range(count):
        outputs += list(cast("list[object]", draw(value, 1)))
    return outputs


def _one_by_one(function: Callable[..., object]) -> Callable[[object, int], object]:
    return lambda value, n: [function(value) for _ in range(n)]


def batches(
    target: AuditTarget, value: object, count: int, *, repeat: int = 1
) -> Iterator[NDArray[np.generic] | list[object]]:
    """Yield batches of raw outputs, `count` in total; each output holds `repeat` independent runs."""
    draw = _drawer(target)
    size = min(count, 1000)
    width = 1
    done = 0
    while done < count:
        step = size if done == 0 else min(count - done, max(1000, _CELLS // width))
        raw = draw(value, step * repeat)
        if not isinstance(raw, np.ndarray):
            raw = list(cast("list[object]", raw))
        _check_count(len(raw), step * repeat)
        if repeat > 1:
            rows = as_rows(raw)
            raw = rows.reshape(step, -1) if isinstance(rows, np.ndarray) else _bundle(rows, repeat)
        if isinstance(raw, np.ndarray) and raw.ndim > 1:
            width = max(1, raw[0].size)
        elif repeat > 1:
            width = repeat
        yield raw
        done += step


def _bundle(rows: list[object], repeat: int) -> list[object]:
    return [tuple(rows[i : i + repeat]) for i in range(0, len(rows), repeat)]


def as_rows(raw: NDArray[np.generic] | list[object]) -> NDArray[np.float64] | list[object]:
    """Read a batch as a matrix of numbers with one row per output, or else as a list of labels."""
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "biuf":
        numbers = raw
    else:
        outputs = list(raw)
        try:
            numbers = np.asarray(outputs)
        except ValueError:  # ragged: outputs of different lengths are labels
            numbers = np.empty(0, dtype=object)
        if numbers.dtype.kind not in "biuf":
            return [_label(one) for one in outputs]
    matrix = np.ascontiguousarray(numbers.reshape(len(numbers), -1), dtype=np.float64)
    return np.nan_to_num(matrix, nan=NOT_A_NUMBER, posinf=-NOT_A_NUMBER, neginf=2 * NOT_A_NUMBER)


def _check_count(got: int, expected: int) -> None:
    if got != expected:
        raise bad_parameter(
            "target",
            f"a function that returns {expected} outputs when asked for {expected}",
            f"{got} outputs",
            fix=Code("def f(value, size): return mechanism.release_many(value, size)"),
        )


def _label(output: object) -> object:
    """Make an output hashable; equal outputs get equal labels."""
    if isinstance(output, np.ndarray):
        return (output.shape, output.tobytes())
    if isinstance(output, list | tuple):
        return tuple(_label(part) for part in output)
    try:
        hash(output)
    except TypeError:
        return repr(output)
    return output


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


def repeated_outputs(rows_a: OutputRows, other: OutputRows) -> tuple[OutputScore, int]:
    """Score 1 for outputs that occur at least twice on one input and never on the other, and count them."""
    width = _common_width(rows_a, other)
    counts = Counter(_names(rows_a, width))
    elsewhere = set(_names(other, width))
    chosen = {name: times for name, times in counts.items() if times > 1 and name not in elsewhere}
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


def _common_width(rows_a: OutputRows, other: OutputRows) -> int | None:
    """Return how many numbers an output has, if all outputs of both inputs have as many."""
    if isinstance(rows_a, list) or isinstance(other, list) or rows_a.shape[1] != other.shape[1]:
        return None
    return int(rows_a.shape[1])


def _names(rows: OutputRows, width: int | None) -> list[object]:
    """Return what names an output: its bytes for numbers, which are quicker to look up, or its label."""
    return as_labels(rows) if width is None or isinstance(rows, list) else _row_bytes(rows)


def _row_bytes(rows: ScoreArray) -> list[object]:
    """Return the bytes of every row: equal where the numbers are equal, and quicker to look up than they."""
    contiguous = np.ascontiguousarray(rows, dtype=np.float64) + 0.0  # -0.0 becomes 0.0, which it equals
    return list(
        contiguous.view(np.dtype((np.void, contiguous.itemsize * contiguous.shape[1]))).ravel().tolist()
    )


def _numbers(rows: OutputRows, width: int) -> ScoreArray:
    """Read rows as numbers; outputs that are not numbers, unlike all training outputs, get a far value."""
    if not isinstance(rows, list):
        return rows
    matrix = np.full((len(rows), width), NOT_A_NUMBER)
    for index, row in enumerate(rows):
        try:
            matrix[index] = np.asarray(row, dtype=np.float64).reshape(width)
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
    integers = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = integers & -integers
    trailing = np.log2(np.maximum(lowest, 1).astype(np.float64))
    return np.where(integers == 0, 2000.0, exponent - 53 + trailing)


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
        row_keys = _keys(_numbers(rows, len(mix)), mix)
        index = np.minimum(np.searchsorted(keys, row_keys), len(keys) - 1)
        return np.where(keys[index] == row_keys, table[index], 0.0)

    return OutputScore("whole output, by its frequency", of)


def _joint(a: ScoreArray, b: ScoreArray) -> OutputScore | None:
    """Score the cells of a joint histogram of two to five output numbers."""
    width = a.shape[1]
    if not 2 <= width <= 5:
        return None
    per_column = max(3, round(4096 ** (1 / width)))
    pooled = np.concatenate([a[:100_000], b[:100_000]])
    cuts = [_cuts(pooled[:, j], per_column) for j in range(width)]

    def cell(rows: ScoreArray) -> NDArray[np.int64]:
        index = np.zeros(len(rows), dtype=np.int64)
        for j, cut in enumerate(cuts):
            index = index * (len(cut) + 1) + np.searchsorted(cut, rows[:, j], side="right")
        return index

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


HitCounts: TypeAlias = NDArray[np.int64]
_TRIED = 400  # thresholds tried per score
_STRICT = 5.0  # standard deviations of safety margin when events are chosen
_RARELY = 8  # how often training must meet an output that the other input never shows
_KEPT = 12  # events kept for the first goal; every event uses up a little of the confidence


def clopper_pearson(hits: HitCounts | int, trials: int, error: float) -> tuple[ScoreArray, ScoreArray]:
    """Return one-sided bounds on a probability, lower and upper, each wrong with probability at most `error`.

    Clopper and Pearson (1934): exact for every probability. The returned floats are moved outwards by one
    part in 10^9, to cover rounding inside the inverse beta function.

    Examples
    --------
    >>> low, high = clopper_pearson(50, 100, 0.025)
    >>> round(float(low), 3), round(float(high), 3)
    (0.398, 0.602)
    """
    from scipy.special import betainccinv, betaincinv

    hit = np.asarray(hits, dtype=np.float64)
    low = np.where(hit > 0, betaincinv(np.maximum(hit, 1), trials - hit + 1, error), 0.0)
    high = np.where(hit < trials, betainccinv(hit + 1, np.maximum(trials - hit, 1), error), 1.0)
    return np.maximum(low * (1 - 1e-9), 0.0), np.minimum(high * (1 + 1e-9), 1.0)


@dataclass(frozen=True, slots=True)
class Event:
    """A set of outputs: those whose score is at or above (or at or below) a threshold."""

    score: OutputScore
    threshold: float
    above: bool
    swapped: bool  # the event is more likely on b than on a

    def __str__(self) -> str:
        if self.score.members is not None:
            labels = self.score.members(self._passes)
            return f"output in {{{', '.join(map(repr, labels[:4]))}{', ...' if len(labels) > 4 else ''}}}"
        return f"{self.score.name} {'>=' if self.above else '<='} {self.threshold:.6g}"

    def _passes(self, score: float) -> bool:
        return score >= self.threshold if self.above else score <= self.threshold

    def holds_for(self, scores: ScoreArray) -> NDArray[np.bool_]:
        """Return which of these scores are in the event."""
        return scores >= self.threshold if self.above else scores <= self.threshold

    def inside(self, rows: OutputRows) -> NDArray[np.bool_]:
        """Return which outputs are in the event."""
        return self.holds_for(self.score.of(rows))


@dataclass(frozen=True, slots=True)
class Tally:
    """How often an event occurred among the test outputs of one input (`hits`) and of the other."""

    event: str
    swapped: bool
    hits: int
    trials: int
    other_hits: int
    other_trials: int


def choose_events(a: OutputRows, b: OutputRows, *, delta: float, epsilons: tuple[float, ...]) -> list[Event]:
    """Choose the events that prove most on the training outputs.

    The goals are the largest epsilon at `delta` and the largest delta at each of `epsilons`. For each goal
    the best few combinations of score, threshold, side and direction are kept.
    """
    candidates: list[tuple[list[float], Event]] = []
    for score in fit_scores(a, b):
        in_a, in_b = np.sort(score.of(a)), np.sort(score.of(b))
        cuts = _thresholds(in_a, in_b)
        at_least = (
            len(in_a) - np.searchsorted(in_a, cuts, "left"),
            len(in_b) - np.searchsorted(in_b, cuts, "left"),
        )
        at_most = np.searchsorted(in_a, cuts, "right"), np.searchsorted(in_b, cuts, "right")
        for above, (hits_a, hits_b) in ((True, at_least), (False, at_most)):
            for swapped in (False, True):
                hits_here, other = (hits_b, hits_a) if swapped else (hits_a, hits_b)
                sizes = (len(in_b), len(in_a)) if swapped else (len(in_a), len(in_b))
                goals = _goals(hits_here, other, sizes, delta, epsilons, _STRICT)
                best = np.unique(np.argmax(goals, axis=1))
                candidates += [
                    (goals[:, k].tolist(), Event(score, float(cuts[k]), above, swapped))
                    for k in best.tolist()
                ]
    best_events: dict[int, Event] = {}
    for goal in range(1 + len(epsilons)):
        order = sorted(range(len(candidates)), key=lambda k: -candidates[k][0][goal])
        number = _KEPT if goal == 0 else 2
        best_events |= {k: candidates[k][1] for k in order[:number]}
    return list(best_events.values())


def rare_events(a: OutputRows, b: OutputRows, *, promised: float) -> list[tuple[float, Event]]:
    """Return outputs that training met several times on one input and never on the other, with their rate.

    Promised odds of exp(epsilon) explain that seldom, so it is worth counting them on many new outputs.
    """
    events = []
    for swapped, (outputs, other) in enumerate(((a, b), (b, a))):
        score, hits = repeated_outputs(outputs, other)
        if hits >= _RARELY and hits > 2 * np.exp(min(promised, 50.0)):
            events.append((hits / len(outputs), Event(score, 0.5, above=True, swapped=bool(swapped))))
    return events


def _thresholds(in_a: ScoreArray, in_b: ScoreArray) -> ScoreArray:
    """Return candidate thresholds: quantiles of both samples, closer together near the ends."""
    tail = np.geomspace(1e-5, 0.02, _TRIED // 8)
    places = np.concatenate([tail, np.linspace(0.02, 0.98, _TRIED // 4), 1 - tail])
    return np.unique(np.concatenate([_at(in_a, places), _at(in_b, places)]))


def _at(ordered: ScoreArray, places: ScoreArray) -> ScoreArray:
    return ordered[np.minimum((places * len(ordered)).astype(np.int64), len(ordered) - 1)]


def _goals(
    hits: HitCounts,
    other: HitCounts,
    sizes: tuple[int, int],
    delta: float,
    epsilons: tuple[float, ...],
    z: float,
) -> ScoreArray:
    """Estimate what each event can prove, by normal bounds, which are accurate enough for the choice."""
    p, q = hits / sizes[0], other / sizes[1]
    low = p - z * np.sqrt(p * (1 - p) / sizes[0]) - z**2 / (2 * sizes[0])
    high = q + z * np.sqrt(q * (1 - q) / sizes[1]) + z**2 / (2 * sizes[1])
    rows = [np.log(np.maximum(low - delta, 1e-12) / high)]
    rows += [low - np.exp(epsilon) * high for epsilon in epsilons]
    return np.stack(rows)
