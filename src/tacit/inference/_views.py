"""The view of a release whose intervals cover noise and sampling; the released values stay as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import AnswerTable, Cells
from tacit.errors import TacitError
from tacit.fixes import Code
from tacit.inference._estimate import NOISE, NOISE_AND_SAMPLING
from tacit.inference._means import mean_ends
from tacit.inference._measurements import noisy_lines
from tacit.inference._sampling_intervals import count_sets
from tacit.parameters import Choice

if TYPE_CHECKING:
    from tacit.core import MeasuredIntegers, Release
    from tacit.inference._sampling_intervals import Sets

_COUNTED = frozenset({"rows", "units", "units with a value", "cells"})
_POISSON = "as if rows came one by one, independently"
_NONE = "no interval for sampling, because its spread was not measured or has no rule here"


def with_intervals(release: Release[Any], covers: str) -> Release[Any]:
    """Return the release with intervals for ``"noise"`` or for ``"sampling"`` (noise and sampling)."""
    answer = release.content
    chosen = Choice(("noise", "sampling")).read("covers", covers)
    covers_words = NOISE if chosen == "noise" else NOISE_AND_SAMPLING
    if getattr(answer, "covers", NOISE) == covers_words:
        return release
    if not isinstance(answer, AnswerTable) or covers == "noise":
        raise TacitError(
            "bad-parameter",
            "this view has no other intervals",
            fix=Code("the release that the view was made from"),
        )
    columns, notes = dict.fromkeys(answer.columns), dict(answer.notes)
    interval_columns: dict[str, Cells] = {}
    for integers in answer.measured:
        for name, (word, index) in integers.columns.items():
            ends = _ends(release, integers, name, word, index)
            if ends is not None:
                _, low, high = ends
                interval_columns[name] = Cells(answer[name].value, tuple(low.tolist()), tuple(high.tolist()))
                if integers.statistic in _COUNTED:
                    notes[name] = "; ".join(part for part in (notes.get(name, ""), _POISSON) if part)
    if not interval_columns:
        noisy_lines(release, None, lambda _: False, "column whose sampling can be covered")
    for name in columns:
        if name not in interval_columns:
            empty = (None,) * len(answer)
            interval_columns[name] = Cells(answer[name].value, empty, empty)
            notes[name] = "; ".join(part for part in (notes.get(name, ""), _NONE) if part)
    view = replace(
        answer,
        columns={name: interval_columns[name] for name in columns},
        notes=notes,
        covers=NOISE_AND_SAMPLING,
    )
    return release.changed(view, "the rows count as a sample")


def _ends(release: Release[Any], integers: MeasuredIntegers, name: str, word: str, index: int) -> Sets | None:
    """Return values and ends of one column, where there is a rule for it."""
    column = name.rsplit("[", 1)[0] if integers.statistic == "cells" else name
    lines = noisy_lines(release, column, lambda one: one is integers, "counts")
    if integers.statistic in _COUNTED:
        return count_sets(np.ascontiguousarray(lines.values[:, index]), lines.noise, lines.failing)
    if word == "mean" and (integers.yes_no or integers.statistic == "squares"):
        return mean_ends(lines)
    return None
