"""Survival curves and the log-rank test: the question, its design, and the content of a release.

Noisy counts lie on public time bins. The cells of a group are (event, censored) for each bin and one cell for
who is still followed at the end; a unit is in one of them. At risk in bin j is everyone who is in it or
later, less half of those censored in it. With d events and r at risk, log S = sum log(1 - d/r). Its variance
is Greenwood's plus the noise of the cells through their gradient. A curve ends where the noise hides how many
are at risk (docs/proofs/regression.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np

from tacit.algebra import Call, Column, Literal, RowCounts, TableQuestion, lit, resolve, scope
from tacit.core import Content, Draft, Forecast, Goal
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Code, Say, Set
from tacit.inference._estimate import (
    COVERED,
    NOISE_AND_SAMPLING,
    Estimate,
    check_read,
    estimate_table,
    p_words,
)
from tacit.inference._measured_rows import check_one_row, count_noise, noise_of, task_of
from tacit.mechanisms import LinearNoise, linear_half_width, linear_tail
from tacit.parameters import Listed, Omitted, RealNumber
from tacit.report import Report, ReportTable, short_percent
from tacit.show import MOST_SERIES, Chart, ChartAxis, ChartSeries, Figure
from tacit.tables import read_axes, read_rows, rows_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.algebra import Node, Relation
    from tacit.core import JSON, AnswerTable, Value
    from tacit.exact import Number
    from tacit.tables import Axis, Rows, TableDataset

    _Array = NDArray[np.float64]


_CLEAR_DEVIATIONS = 3.0  # standard deviations of its noise that a number of rows must exceed
_FALLEN = 2.0  # half-widths that -log S must have before the log-log scale serves
_MIN_ROWS = 5.0  # rows that must be at risk; for a curve, as many must be left after the events of the bin
_START_DEVIATIONS = 5.0  # standard deviations of its noise that the number of rows at the start must exceed
_CURVE = "Kaplan-Meier on binned times, noise and Greenwood's variance"
_TEST = "log-rank test on binned times, with noise"
_SHIFTED = 0.15  # a part of the interval by which the time of censoring inside bins may move a value unsaid
_MAX_BINS = 200
_CUTS = Listed(
    "cuts of the time", "[0, 13, 26, 39, 52]", least=2, most=_MAX_BINS + 1, rising=True,
    each=RealNumber(zero=True, negative=True),
)  # fmt: skip
#: The key of a group: its name, a number or a boolean.
SurvivalGroupKey: TypeAlias = "str | float | bool | np.generic"


@dataclass(frozen=True, slots=True)
class CurveSets:
    """The share without the event after each bin, for many releases; NaN where the curve has ended.

    ``shift`` is the value less what it would be if all who are censored in a bin stayed to the end of it.
    """

    value: _Array
    low: _Array
    high: _Array
    shift: _Array


@dataclass(frozen=True, slots=True)
class LogRank:
    """The log-rank test of many releases; ``shown`` where both groups start with enough rows."""

    statistic: _Array
    p_value: _Array
    shown: NDArray[np.bool_]


def rows_at_start(bins: int, noise: LinearNoise) -> float:
    """Return how many rows a group needs at the start."""
    return float(_START_DEVIATIONS * np.sqrt(2.0) * noise.scale * np.sqrt(2 * bins + 1))


def _at_risk(cells: _Array) -> tuple[_Array, _Array, _Array]:
    """Return events, those at risk, and for each bin the weights of the cells in those at risk."""
    size = cells.shape[-1]
    bins = (size - 1) // 2
    weights = np.zeros((bins, size))
    for j in range(bins):
        weights[j, 2 * j :] = 1.0
        weights[j, 2 * j + 1] = 0.5
    return cells[:, 0:-1:2], cells @ weights.T, weights


def _bins_read(risk: _Array, weights: _Array, noise: LinearNoise) -> NDArray[np.bool_]:
    """Return which bins are read: up to the first in which the noise hides those at risk, or few are.

    It looks at who is at risk when the bin begins, never at the events in it: a rule that looked at them
    would choose bins by their outcome.
    """
    spread = np.sqrt(2.0) * noise.scale * np.sqrt((weights**2).sum(axis=1))
    clear = risk > np.maximum(_CLEAR_DEVIATIONS * spread, _MIN_ROWS)
    clear &= (risk[:, 0] > rows_at_start(len(weights), noise))[:, None]
    return np.asarray(np.logical_and.accumulate(clear, axis=1))


def _bins_shown(risk: _Array, weights: _Array, events: _Array, noise: LinearNoise) -> NDArray[np.bool_]:
    """Return after which bins a curve is shown: up to the first after which the noise hides those left.

    Where nearly all have had the event, log S is not smooth in the counts, and a share near 0 would be shown
    only where the noise happens to leave somebody.
    """
    remaining = risk - np.maximum(events, 0.0)
    spread = np.sqrt(2.0) * noise.scale * np.sqrt((weights**2).sum(axis=1))
    clear = _bins_read(risk, weights, noise) & (remaining > np.maximum(_CLEAR_DEVIATIONS * spread, _MIN_ROWS))
    return np.asarray(np.logical_and.accumulate(clear, axis=1))


def curve_sets(cells: _Array, noise: LinearNoise, failing: float) -> CurveSets:
    """Return the curve of one group with pointwise intervals, for each line of noisy cells.

    Guarantee: free post-processing; intervals cover noise and sampling together.

    Parameters
    ----------
    cells
        One line for each release: events and censored of each bin in turn, then who is followed to the end.
    noise
        The noise on each cell.
    failing
        How often the interval at one time may miss.
    """
    events, risk, weights = _at_risk(cells)
    visible = _bins_shown(risk, weights, events, noise)
    r, d = np.where(visible, risk, 1.0), np.where(visible, events, 0.0)
    logs = np.cumsum(np.log1p(-d / r), axis=1)
    greenwood = np.maximum(np.cumsum(d / (r * (r - d)), axis=1), 0.0)
    gradient = (d / (r * (r - d)))[:, :, None] * weights
    for j in range(weights.shape[0]):
        gradient[:, j, 2 * j] -= 1 / (r - d)[:, j]
    gradient = np.cumsum(gradient, axis=1)
    laplace = (gradient[..., None] * np.array(noise.laplace)).reshape(*gradient.shape[:2], -1)
    normal = np.sqrt(greenwood + noise.normal**2 * (gradient**2).sum(axis=-1))
    half = linear_half_width(failing, laplace, normal)
    noisy = 2 * noise.scale**2 * (gradient**2).sum(axis=-1)
    factor = half / np.sqrt(np.maximum(greenwood + noisy, 1e-300))
    low, high = _ends(logs, half, factor, noisy, r)
    value = np.minimum(np.exp(logs), 1.0)
    later = np.maximum(cells[:, 1:-1:2], 0.0) / 2  # censored in the bin, who would be at risk to its end
    shift = value - np.minimum(np.exp(np.cumsum(np.log1p(-d / (r + later)), axis=1)), 1.0)
    return CurveSets(*(np.where(visible, one, np.nan) for one in (value, low, high, shift)))


def _ends(logs: _Array, half: _Array, factor: _Array, noisy: _Array, risk: _Array) -> tuple[_Array, _Array]:
    """Return the ends of the intervals of S.

    On the log-log scale where the curve has clearly fallen. Where events are few, Greenwood's variance says
    little; then every -log S is kept from which the estimate differs by no more than its error there, with
    the variance -log S / r of few events.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        x = -logs
        fallen = x > _FALLEN * half
        ratio = np.where(fallen, half / np.where(fallen, x, 1.0), 0.0)
        k2 = factor**2 / risk
        root = factor * np.sqrt(np.maximum(x / risk + k2 / (4 * risk) + noisy, 0.0))
        lower, upper = np.maximum(x + k2 / 2 - root, 0.0), np.maximum(x + k2 / 2 + root, 0.0)
        low = np.where(fallen, np.exp(-x * np.exp(ratio)), np.exp(-upper))
        high = np.where(fallen, np.exp(-x * np.exp(-ratio)), np.exp(-lower))
    return low, high


def logrank(first: _Array, second: _Array, noise: LinearNoise) -> LogRank:
    """Test whether two groups have the same hazards, for each pair of lines of noisy cells.

    Parameters
    ----------
    first, second
        The noisy cells of the two groups; see `curve_sets`.
    noise
        The noise on each cell.
    """
    (d1, r1, weights), (d0, r0, _) = _at_risk(first), _at_risk(second)
    visible = _bins_read(r1, weights, noise) & _bins_read(r0, weights, noise)
    r1, r0 = np.where(visible, r1, 1.0), np.where(visible, r0, 1.0)
    d1, d0 = np.where(visible, d1, 0.0), np.where(visible, d0, 0.0)
    r, d = r1 + r0, d1 + d0
    a, h = r1 / r, d / r
    u = (d1 - a * d).sum(axis=1)
    ties = np.where(
        visible, r / np.maximum(r - 1, 1.0), 1.0
    )  # events in one bin are drawn without putting back
    variance = np.maximum((a * (1 - a) * d * (1 - h) * ties).sum(axis=1), 0.0)
    g1 = np.einsum("rj,jc->rc", np.where(visible, -h * (1 - a), 0.0), weights)
    g0 = np.einsum("rj,jc->rc", np.where(visible, h * a, 0.0), weights)
    g1[:, 0:-1:2] += np.where(visible, 1 - a, 0.0)
    g0[:, 0:-1:2] -= np.where(visible, a, 0.0)
    g = np.concatenate([g1, g0], axis=1)
    laplace = (g[:, :, None] * np.array(noise.laplace)).reshape(len(g), -1)
    normal = np.sqrt(variance + noise.normal**2 * (g**2).sum(axis=1))
    return LogRank(u, linear_tail(u, laplace, normal), visible[:, 0])


@dataclass(frozen=True, eq=False, repr=False)
class SurvivalCurves(Content):
    """Survival curves by group.

    It holds noisy counts and public facts. Everything else follows from them, free.

    Parameters
    ----------
    time, event
        The columns that were read.
    by
        The column of the groups; empty for one curve.
    groups
        The groups; one, named "all", without ``by``.
    cuts
        The public cuts of the time.
    integers
        For each group the noisy counts: events and censored of each bin in turn, then those followed to the
        last cut.
    noise
        The noise on each count.
    level
        How often intervals cover.
    """

    kind: ClassVar[str] = "survival-curves"
    described: ClassVar[str] = "survival curves"
    time: str
    event: str
    by: str
    groups: tuple[str, ...]
    cuts: tuple[float, ...]
    integers: tuple[int, ...]
    noise: LinearNoise
    level: float

    def _cells(self, group: str) -> NDArray[np.float64]:
        lines = np.array(self.integers, dtype=np.float64).reshape(len(self.groups), -1)
        return np.asarray(lines[self.groups.index(group)][None])

    def _read_group(self, group: SurvivalGroupKey | None) -> str:
        """Return the name of a group; numbers and booleans also name the group that is written like them.

        Without a key, it is the only group.
        """
        if group is None and len(self.groups) > 1:
            raise bad_parameter("group", "given", None, fix=Choose(self.groups))
        if group is None:
            return self.groups[0]
        plain: Any = group.item() if isinstance(group, np.generic) else group
        if plain in self.groups:
            return str(plain)
        for name in self.groups:
            if isinstance(plain, int | float) and _number(name) == plain:
                return name
            if isinstance(plain, bool) and name.lower() == str(plain).lower():
                return name
        raise bad_parameter(
            "a group", f"one of {self.by or 'all'}", group, fix=Choose(self.groups, given=str(plain))
        )

    @property
    def rows_needed(self) -> int:
        """About how many rows a group needs for a curve."""
        return math.ceil(rows_at_start(len(self.cuts) - 1, self.noise))

    @cached_property
    def curves(self) -> dict[str, list[Estimate]]:
        """For each group the share without the event at the end of each bin.

        A bin without value has too few rows at risk for the noise.
        """
        return {group: self._curve(group) for group in self.groups}

    def _curve(self, group: str) -> list[Estimate]:
        sets = curve_sets(self._cells(group), self.noise, 1 - self.level)
        points = []
        for j, end in enumerate(self.cuts[1:]):
            value, low, high = (float(one[0, j]) for one in (sets.value, sets.low, sets.high))
            where = f" of those with {self.by} {group}" if self.by else ""
            if math.isnan(value):
                sentence = f"The noise hides the curve{where} at {self.time} {end:g}."
                points.append(
                    Estimate(None, None, None, self.level, NOISE_AND_SAMPLING, _CURVE, None, sentence)
                )
                continue
            sentence = (
                f"At {self.time} {end:g}, {short_percent(value, 3)}{where} had not had the event "
                f"{self.event} ({short_percent(self.level)} confidence interval {100 * low:.3g} to "
                f"{short_percent(high, 3)}, {COVERED})."
            )
            method = _CURVE
            if abs(float(sets.shift[0, j])) > _SHIFTED * (high - low):
                method += (
                    f"; {value - sets.shift[0, j]:.3g} if the censored people stayed to the end of their "
                    "bins: put the cuts just after the visits, or use narrower bins"
                )
            points.append(Estimate(value, low, high, self.level, NOISE_AND_SAMPLING, method, None, sentence))
        return points

    def at(self, time: float, group: SurvivalGroupKey | None = None) -> Estimate:
        """Return the share without the event at one of the cuts, in one of the groups."""
        if time not in self.cuts[1:]:
            cuts = tuple(f"{cut:g}" for cut in self.cuts[1:])
            raise bad_parameter("time", "one of the cuts", time, fix=Choose(cuts, given=f"{time:g}"))
        return self.curves[self._read_group(group)][self.cuts.index(time) - 1]

    def median(self, group: SurvivalGroupKey | None = None) -> Estimate:
        """Return the time by which half have had the event, as the cut at which the curve falls to a half.

        The curve falls to a half somewhere in a bin. The interval holds all bins in which it may do so, from
        the first cut to the last one; without an upper end, the curve may stay above a half.
        """
        name = self._read_group(group)
        curve = [one for one in self.curves[name] if one.value is not None]

        def first(end: str) -> float | None:
            below = [cut for cut, one in zip(self.cuts[1:], curve, strict=False) if getattr(one, end) <= 0.5]
            return below[0] if below else None

        value, reached, high = first("value"), first("low"), first("high")
        low = None if reached is None else self.cuts[self.cuts.index(reached) - 1]
        where = f" of those with {self.by} {name}" if self.by else ""
        if value is None:
            sentence = f"Fewer than half{where} had the event {self.event} as far as the curve is seen."
        else:
            ends = (
                f"{low:g} to {high:g}" if low is not None and high is not None else f"from {low or value:g}"
            )
            sentence = (
                f"Half{where} had the event {self.event} by {self.time} {value:g} "
                f"({short_percent(self.level)} confidence interval {ends}, {COVERED})."
            )
        return Estimate(value, low, high, self.level, NOISE_AND_SAMPLING, _CURVE, None, sentence)

    def logrank(
        self, first: SurvivalGroupKey | None = None, second: SurvivalGroupKey | None = None
    ) -> Estimate:
        """Test whether two groups have the event equally fast.

        The value is the number of events in the first group beyond what is expected if both are alike.

        Parameters
        ----------
        first, second
            The two groups; not needed where there are two.
        """
        if first is None and second is None and len(self.groups) == 2:
            first, second = self.groups
        pair = (
            None if first is None or second is None else (self._read_group(first), self._read_group(second))
        )
        if pair is None or pair[0] == pair[1]:
            raise TacitError(
                "bad-parameter",
                f"a log-rank test needs two different groups (groups here: {len(self.groups)})",
                fix=Code("release.logrank(first, second)" if self.by else 'survival(..., by="arm")'),
            )
        first, second = pair
        cells, other = self._cells(first), self._cells(second)
        test = logrank(cells, other, self.noise)
        if not test.shown[0]:
            fewest = max(1.0, min(float(cells.sum()), float(other.sum())))
            factor = max(2.0, self.rows_needed / fewest)
            raise TacitError(
                "too-noisy",
                f"the noise hides how many of {first} or {second} are at risk, so a test would say nothing",
                why="a p-value from so few rows would not hold its level",
                fix=Say(
                    f"about {self.rows_needed:,} rows in each group, or {factor:.2g} times the epsilon, are "
                    "enough"
                ),
            )
        p, u = float(test.p_value[0]), float(test.statistic[0])
        more = "more" if u >= 0 else "fewer"
        sentence = (
            f"Those with {self.by} {first} had {abs(u):.3g} {more} events than if they were like those with "
            f"{self.by} {second} ({p_words(p)}, {COVERED})."
        )
        return Estimate(u, None, None, self.level, NOISE_AND_SAMPLING, _TEST, p, sentence)

    def report(self) -> Report:
        """Return the curves as a table, medians and the test."""
        lines = []
        for j, end in enumerate(self.cuts[1:]):
            cells = [_cell(self.curves[group][j]) for group in self.groups]
            lines.append((f"{end:g}", *cells))
        sentences = [self.median(group).sentence for group in self.groups]
        if len(self.groups) == 2:
            try:
                sentences.append(self.logrank().sentence)
            except TacitError as refused:
                sentences.append(f"No log-rank test: {refused.what}; {refused.fix}.")
        title = f"Share without the event {self.event}" + (f" by {self.by}" if self.by else "")
        return Report(
            title,
            tuple(sentences),
            (ReportTable("", (self.time, *self.groups), tuple(lines)),),
            (f"{short_percent(self.level)} intervals cover {NOISE_AND_SAMPLING}, each time by itself.",),
        )

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the report for a terminal."""
        return "\n".join([self.report().text(), *marks])

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write the report for a notebook."""
        return self.report().html() + "".join(f"<p>{escape(mark)}</p>" for mark in marks)

    def __repr__(self) -> str:
        return self.text()

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the points of all curves, one line for each group and time."""
        by, times = self.by or "group", self.cuts[1:]
        keys: dict[str, tuple[Value, ...]] = {
            by: tuple(group for group in self.groups for _ in times),
            self.time if self.time != by else f"{self.time} (time)": tuple(times) * len(self.groups),
        }
        points = [one for group in self.groups for one in self.curves[group]]
        yield f"share without the event {self.event}", estimate_table(keys, "share", points)

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the curves as steps with their bands."""
        del what
        return (_curves_figure(self),)

    def to_json(self) -> JSON:
        """Return the noisy counts and the public facts."""
        return {
            "time": self.time, "event": self.event, "by": self.by, "groups": list(self.groups),
            "cuts": list(self.cuts), "integers": list(self.integers), "level": self.level,
            "noise": {"laplace": list(self.noise.laplace), "normal": self.noise.normal},
        }  # fmt: skip

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the content back."""
        groups, cuts = tuple(map(str, document["groups"])), tuple(map(float, document["cuts"]))
        integers = tuple(map(int, document["integers"]))
        if len(integers) != len(groups) * (2 * len(cuts) - 1):
            raise ValueError("not survival curves")
        noise = LinearNoise(
            tuple(map(float, document["noise"]["laplace"])), float(document["noise"]["normal"])
        )
        time, event, by = (str(document[name]) for name in ("time", "event", "by"))
        curves = cls(time, event, by, groups, cuts, integers, noise, float(document["level"]))
        check_read(curves.noise, curves.level)
        curves.report()  # raises now where a part of the document cannot be read
        return curves


def _curves_figure(curves: SurvivalCurves) -> Figure:
    """Return the curves as steps with their bands, as far as the noise leaves enough at risk."""
    series = []
    for number, (group, curve) in enumerate(list(curves.curves.items())[:MOST_SERIES]):
        visible = [one for one in curve if one.value is not None]
        # the last value is reached, not kept
        times = [*curves.cuts[: len(visible) + 1], curves.cuts[len(visible)]]
        ends = ((1.0, *(getattr(one, end) for one in visible)) for end in ("value", "low", "high"))
        series.append(
            ChartSeries.of("steps", times, ends, label=str(group) if curves.by else "", colour=number)
        )
    x = ChartAxis(curves.time, ends=(float(curves.cuts[0]), float(curves.cuts[-1])))
    chart = Chart(
        tuple(series), x, ChartAxis("share without the event", ends=(0.0, 1.02)), legend=curves.by or ""
    )
    return Figure(
        "share without the event", (chart,), (f"{short_percent(curves.level)} intervals {COVERED}",)
    )


def _number(name: str) -> float | None:
    """Return the number that a group's name writes, if it writes one."""
    try:
        return float(name.replace(",", ""))
    except ValueError:
        return None


def _cell(estimate: Estimate) -> str:
    if estimate.value is None:
        return "hidden by the noise"
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"


@dataclass(frozen=True, slots=True)
class SurvivalDesign:
    """Survival curves of rows.

    Parameters
    ----------
    rows
        The rows that are read, one for each unit.
    time, event
        The columns of the time and of the event.
    cuts
        The public cuts of the time.
    cell
        The expression of a row's cell.
    group
        The groups, or None.
    given
        What was asked, for the plan's document.
    """

    rows: Rows
    time: str
    event: str
    cuts: tuple[float, ...]
    cell: Node
    group: Axis | None
    given: Mapping[str, Any]

    @property
    def words(self) -> str:
        """The question in words."""
        by = "" if self.group is None else f" by {self.group.name}"
        return f"survival curves of {self.time} until {self.event}{by}"

    def draft(self, goal: Goal) -> Draft[SurvivalCurves]:
        """Draft the plan.

        Guarantee: each unit is in one cell, so one charge pays for all curves, medians and tests together.
        """
        cells = [float(i) for i in range(2 * len(self.cuts) - 1)]
        group = self.group
        by = (("cell", self.cell),) if group is None else ((group.name, group.node), ("cell", self.cell))
        heads: list[tuple[object, ...]] = [()] if group is None else [(value,) for value in group.values]
        keys = tuple((*head, cell) for head in heads for cell in cells)
        question = TableQuestion(self.rows.relation, by, keys, (), None, None)
        mechanism = count_noise(self.rows, question, goal)
        noise = noise_of(mechanism)
        groups, name = (("all",), "") if group is None else (group.labels, group.name)

        def reading(integers: list[int], level: Fraction) -> SurvivalCurves:
            return SurvivalCurves(
                self.time, self.event, name, groups, self.cuts, tuple(integers), noise, float(level)
            )

        needed = reading([0] * len(keys), goal.confidence).rows_needed
        return Draft(
            task=task_of(self.rows, question, RowCounts(), mechanism, asks="survival", reading=reading),
            forecast=lambda: [
                Forecast(
                    one, f"share without the event {self.event} by {self.time}", mechanism.describe(), None,
                    f"a curve needs about {needed:,} rows in its group",
                )
                for one in groups
            ],
            facts=lambda: [
                ("measured", f"{len(keys):,} counts: event or not in each bin, and who stays to the end"),
                ("intervals", "for privacy noise and for chance in who was included"),
            ],
            asked=self.words,
        )  # fmt: skip

    def request(self, goal: Goal) -> JSON:
        """Return the request of a plan."""
        return {"asks": "survival", "rows": rows_document(self.rows), "goal": goal.to_json(), **self.given}


def survival_design(
    rows: Rows,
    *,
    time: str,
    event: str,
    bins: Sequence[Number],
    by: str | None = None,
    keys: Sequence[object] | None = None,
) -> SurvivalDesign:
    """Read a question for survival curves; see `survival`."""
    check_one_row(rows, "a survival curve")
    cuts = [float(cut) for cut in _CUTS.read("bins", bins)]
    if by is None:
        Omitted("where by is omitted", fix=Set(by="arm")).read("keys", keys)
    group = None
    if by is not None:
        own_keys = None if keys is None else {by: keys}
        [group] = read_axes(rows, [by], keys=own_keys, missing=False)
    arguments = {
        "time": time, "event": event, "bins": cuts, "by": by, "keys": None if keys is None else list(keys),
    }  # fmt: skip
    cell = _cell_number(rows.relation, time, event, tuple(cuts))
    return SurvivalDesign(rows, time, event, tuple(cuts), cell, group, arguments)


def _cell_number(relation: Relation, time: str, event: str, cuts: tuple[float, ...]) -> Node:
    """Write the number of a row's cell: in bin j 2j for an event, 2j + 1 for censored; then the rest."""
    facts = scope(relation)
    value = resolve(Column(time), facts, "number")
    resolve(Column(event), facts)  # refuses a column that does not exist
    if facts[event].kind == "text":
        raise TacitError(
            "bad-parameter",
            f"{event} is text; an event is true or false, or 1 or 0",
            fix=Code(f"rows.with_columns(happened=\"{event} = 'yes'\")"),
        )
    number = facts[event].kind == "number" and facts[event].stored != "boolean"
    happened = resolve(Column(event), facts, "number" if number else "boolean")
    if number:
        happened = Call("eq", (happened, lit(1)))
    parts: list[Node] = []
    for j, cut in enumerate(cuts[1:]):
        inside = Call("lt", (value, Literal(cut, "number")))
        yes = Call("case", (happened, Literal(2.0 * j, "number"), Literal(2.0 * j + 1, "number")))
        parts += [inside, yes]
    inner = Call("case", (*parts, Literal(2.0 * len(cuts) - 2, "number")))
    present = Call("and", tuple(Call("not", (Call("is_null", (one,)),)) for one in (value, happened)))
    return resolve(Call("case", (present, inner, Literal(None, "number"))), facts, "number")


def read_survival(dataset: TableDataset, request: Any) -> tuple[SurvivalDesign, Goal]:
    """Read survival curves back from a request."""
    arguments = {name: request[name] for name in ("time", "event", "bins", "by", "keys")}
    design = survival_design(read_rows(dataset, request["rows"]), **arguments)
    return design, Goal.from_json(request["goal"])
