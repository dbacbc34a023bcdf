"""The noisy integers of a release, as inference reads them: found by column, checked, in units of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import AnswerTable
from tacit.errors import TacitError
from tacit.fixes import Choose, Code, Either, Say
from tacit.mechanisms import GaussianLaw, LaplaceLaw, LinearNoise

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.core import MeasuredIntegers, Release
    from tacit.inference._sampling_intervals import Floats

#: Deviations of its noise that a number of rows must reach before anything is divided by it.
CLEAR = 3.0
_COUNTS = frozenset({"rows", "units", "units with a value"})


@dataclass(frozen=True, slots=True)
class NoisyLines:
    """The noisy integers behind one column, in rows.

    Parameters
    ----------
    name
        The column; of a histogram, the name without its cells.
    measured
        What was measured.
    values
        One line of numbers for each group.
    noise
        The noise on each number, with the variance of the lattice law that was drawn.
    labels
        The group of each line: a value, or a tuple where there are several keys.
    level
        The confidence of the release.
    """

    name: str
    measured: MeasuredIntegers
    values: Floats
    noise: LinearNoise
    labels: tuple[Any, ...]
    level: float

    @property
    def bounds(self) -> tuple[float, float]:
        """The lower bound of the values and the width of their range."""
        [(low, high), *_] = self.measured.ranges
        return low, high - low

    @property
    def failing(self) -> float:
        """How often an interval may miss."""
        return 1 - self.level


def noisy_lines(
    release: Release[Any], column: str | None, fits: Callable[[MeasuredIntegers], bool], noun: str
) -> NoisyLines:
    """Find the integers behind a column, or behind the only one that fits; refuse clusters.

    Parameters
    ----------
    release
        The release of a table question.
    column
        The name of the column; of a histogram, the name that it was given. None: the only one that fits.
    fits
        Whether integers can answer.
    noun
        What is needed, in words, for the refusal.
    """
    answer = getattr(release, "content", release)
    if not isinstance(answer, AnswerTable):
        raise TacitError(
            "bad-parameter",
            f"a release of the kind {getattr(answer, 'kind', type(answer).__name__)!r} has no {noun}",
            fix=Code('dataset.group_by("arm").agg(sbp=tc.mean("sbp")).plan(epsilon=1).release()'),
        )
    by_column = {name: one for one in answer.measured for name in _names(one) if fits(one)}
    if column is None and len(by_column) == 1:
        [column] = by_column
    if column not in by_column:
        raise _nothing_fits(answer, column, by_column, noun)
    integers = by_column[column]
    _check_units(integers)
    keys = list(zip(*answer.keys.values(), strict=True)) if answer.keys else [()] * len(answer)
    labels = tuple(key[0] if len(key) == 1 else key for key in keys)
    values = np.array(integers.integers, dtype=np.float64) / float(integers.weight)
    return NoisyLines(
        column, integers, values.reshape(len(labels), -1), _noise_of(integers), labels, answer.confidence
    )


def _names(integers: MeasuredIntegers) -> list[str]:
    """Return what the integers are called: their columns, or the name that the cells share."""
    if integers.statistic == "cells":
        return sorted({name.rsplit("[", 1)[0] for name in integers.columns})
    return list(integers.columns)


def _nothing_fits(
    answer: AnswerTable, column: str | None, by_column: dict[str, Any], noun: str
) -> TacitError:
    if len(by_column) > 1 or (by_column and column is not None):
        return TacitError(
            "unknown-column",
            f"say which column: {', '.join(by_column)}",
            fix=Choose(tuple(by_column), given=column or ""),
        )
    chosen = not answer.measured and bool(answer.columns)
    return TacitError(
        "not-allowed",
        f"the release has no {noun}",
        why="the release does not hold its noisy integers: its lines were chosen or added up after the "
        "noise, its groups were selected privately, or an older version saved it"
        if chosen
        else "none of its columns was measured in a way that allows this",
        fix=Either(
            Code('tc.mean("sbp", spread=True)'), Say("ask with public keys, without HAVING, LIMIT or totals")
        ),
    )


def _check_units(integers: MeasuredIntegers) -> None:
    """Refuse where one unit may stand behind several rows: they are not independent."""
    if integers.rows_per_unit == 1:
        return
    several = (
        "rows of one person may belong to different units"
        if integers.rows_per_unit is None
        else f"up to {integers.rows_per_unit:,} rows of one unit count"
    )
    raise TacitError(
        "not-allowed",
        f"sampling cannot be covered here: {several}",
        why="rows of one unit resemble each other, so they say less about the population than the same "
        "number of rows of different units; intervals and tests would claim too much",
        fix=Either(
            Code('dataset.per_unit(x=tc.mean("x")).agg(m=tc.mean("x"))'), Code("dataset.limit(rows=1)")
        ),
    )


def _noise_of(integers: MeasuredIntegers) -> LinearNoise:
    """Return the noise in rows; Laplace terms get the variance of the lattice law."""
    weight = float(integers.weight)
    laplace = [LaplaceLaw(scale).variance for law, scale in integers.noise if law == "laplace"]
    gaussian = [GaussianLaw(scale).variance for law, scale in integers.noise if law == "gaussian"]
    return LinearNoise(
        tuple(math.sqrt(one / 2) / weight for one in laplace), math.sqrt(sum(gaussian)) / weight
    )


def spread_lines(release: Release[Any], column: str | None) -> NoisyLines:
    """Find the three parts of a mean, or the two of a yes/no column."""
    return noisy_lines(
        release,
        column,
        lambda one: one.statistic == "squares" or (one.statistic == "moments" and one.yes_no),
        "mean whose spread was measured",
    )


def counted(release: Release[Any], column: str | None) -> NoisyLines:
    """Find counts of rows or units, the cells of a histogram, or the two parts of a yes/no column."""
    return noisy_lines(
        release,
        column,
        lambda one: one.statistic in _COUNTS | {"cells"} or (one.statistic == "moments" and one.yes_no),
        "counts",
    )


def line_of(lines: NoisyLines, group: Any) -> int:
    """Return the place of a group; None stands for the only one."""
    if group is None and len(lines.labels) == 1:
        return 0
    if group in lines.labels:
        return lines.labels.index(group)
    raise TacitError(
        "bad-parameter",
        f"the release has no group {group!r}",
        fix=Choose(tuple(str(label) for label in lines.labels), given=str(group)),
    )


def enough_rows(rows: Floats, required: float, noun: str) -> None:
    """Refuse where a noisy number of rows is too small; name the n or the epsilon that would do."""
    fewest = float(np.min(rows))
    if fewest >= required:
        return
    times = required / max(fewest, 1.0)
    raise TacitError(
        "too-noisy",
        f"{noun} has about {max(fewest, 0):,.0f} rows; at this noise {math.ceil(required):,} are needed",
        why="below that, noise decides: the answer would be wrong more often than it says",
        fix=Say(
            f"{math.ceil(required):,} rows, or {times:.2g} times the epsilon, or coarser groups"
            if fewest >= 1
            else f"{math.ceil(required):,} rows, a larger epsilon, or coarser groups"
        ),
    )
