"""The task of synthetic rows: coded rows go to the mechanism, noisy tables and choices come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tacit.core import Step, Task
from tacit.mechanisms import AdaptiveTables, ResidualNoise
from tacit.synth._choosing import SteppedTables, steps_of
from tacit.synth._synthetic_table import SyntheticTable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from tacit.synth._columns import SyntheticColumn
    from tacit.synth._design import SynthDesign
    from tacit.tables import CodedRows, CodedSource

SynthMechanism: TypeAlias = AdaptiveTables | ResidualNoise


def synth_task(
    source: CodedSource, columns: tuple[SyntheticColumn, ...], design: SynthDesign, mechanism: SynthMechanism
) -> Task[CodedRows, SyntheticTable]:
    """Return the task with one step: it takes all steps of a method, or measures all residuals at once.

    The rows, the axes and the design identify it; names of columns do not.
    """
    step: Step[CodedRows]
    if isinstance(mechanism, ResidualNoise):
        sets = mechanism.sets
        step = Step(
            mechanism,
            lambda rows, _: [rows.table(one) for one in sets],
            {"statistic": "residuals of cross tables"},
        )
    else:
        step = Step(
            mechanism,
            lambda rows, _: SteppedTables(rows, steps_of(design, mechanism)),
            {"statistic": "cells of chosen cross tables"},
        )

    def reading(noisy: Sequence[Any], confidence: Fraction) -> SyntheticTable:
        [steps] = noisy
        if isinstance(mechanism, ResidualNoise):
            parts = zip(mechanism.sets, mechanism.sigmas, steps, strict=True)
            steps = [
                ["residual", list(at), str(sigma), np.array(drawn).ravel().tolist()]
                for at, sigma, drawn in parts
            ]
        return SyntheticTable(columns, design, tuple(steps), float(confidence), source.left_out())

    return Task(
        document=lambda: {"synthesize": design.to_json(), "of": source.identity()},
        open=source.read,
        steps=(step,),
        reading=reading,
        blocks=source.blocks,
        statements=lambda: source.sql,
        unavailable=source.unavailable,
    )
