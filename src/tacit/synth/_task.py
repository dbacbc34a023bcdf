"""The task of synthetic rows: coded rows go to the mechanism, noisy tables and choices come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tacit.mechanisms import AdaptiveTables, ResidualNoise
from tacit.synth._choosing import SteppedTables, steps_of
from tacit.synth._synthetic_table import SyntheticTable

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from fractions import Fraction

    from tacit.core import JSON
    from tacit.errors import TacitError
    from tacit.synth._columns import SyntheticColumn
    from tacit.synth._design import SynthDesign
    from tacit.tables import CodedSource

__all__ = ["SynthMechanism", "SynthTask"]

SynthMechanism: TypeAlias = AdaptiveTables | ResidualNoise


@dataclass(frozen=True, slots=True)
class SynthTask:
    """A `tacit.core.Task` with one mechanism: it takes all steps, or measures all residuals at once."""

    source: CodedSource
    columns: tuple[SyntheticColumn, ...]
    design: SynthDesign
    mechanism: SynthMechanism

    @property
    def question(self) -> JSON:
        """The rows, the axes and the design; names of columns are not in it."""
        return {"synthesize": self.design.to_json(), "of": self.source.identity()}

    @property
    def mechanisms(self) -> Sequence[Any]:
        """The one mechanism."""
        return [self.mechanism]

    @property
    def labels(self) -> tuple[dict[str, JSON], ...]:
        """What the integers are."""
        if isinstance(self.mechanism, ResidualNoise):
            return ({"statistic": "residuals of cross tables"},)
        return ({"statistic": "cells of chosen cross tables"},)

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks of the data that the question reads."""
        return self.source.blocks

    @property
    def sql(self) -> tuple[str, ...]:
        """The statement that will run."""
        return self.source.sql

    def unavailable(self) -> TacitError | None:
        """Return why nothing can be drawn."""
        return self.source.unavailable()

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the exact tables, all of them or with the steps; the mechanism alone asks these."""
        if isinstance(self.mechanism, ResidualNoise):
            rows = self.source.read()
            yield [rows.table(one) for one in self.mechanism.sets]
            return
        yield SteppedTables(self.source.read(), steps_of(self.design, self.mechanism))

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> SyntheticTable:
        """Keep the noisy tables and choices with the public design."""
        [steps] = noisy
        if isinstance(self.mechanism, ResidualNoise):
            parts = zip(self.mechanism.sets, self.mechanism.sigmas, steps, strict=True)
            steps = [
                ["residual", list(at), str(sigma), np.array(drawn).ravel().tolist()]
                for at, sigma, drawn in parts
            ]
        return SyntheticTable(
            self.columns, self.design, tuple(steps), float(confidence), self.source.left_out()
        )
