"""The question for synthetic rows, declared once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.synth._synthesis_design import read_synthesize, synthesis_design
from tacit.tables import rows_question

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.synth._synthesis_design import SynthMethod
    from tacit.synth._synthetic_table import SyntheticTable
    from tacit.tables import BinsGiven, Rows, RowsQuestion

SYNTHESIZE = rows_question(
    name="synthesize", words="Synthetic rows", design=synthesis_design, read=read_synthesize,
    example="epsilon=1, delta=1e-9",
)  # fmt: skip


def synthesize(
    rows: Rows,
    columns: Sequence[str],
    *,
    bins: BinsGiven = None,
    keys: Mapping[str, Sequence[object]] | None = None,
    other: Sequence[str] = (),
    keep: Sequence[Sequence[str]] = (),
    never: Sequence[Mapping[str, object]] = (),
    method: SynthMethod = "auto",
    up_to: int | None = None,
    size: int = 200_000,
) -> RowsQuestion[SyntheticTable]:
    """Ask for invented rows that agree with measured tables of these columns; see `Rows.synthesize`."""
    return SYNTHESIZE.of(
        rows, columns, bins=bins, keys=keys, other=other, keep=keep, never=never, method=method, up_to=up_to,
        size=size,
    )  # fmt: skip
