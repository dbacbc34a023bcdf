"""What a plan of synthetic rows says before anything is charged: all of it public."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.core import Forecast
from tacit.mechanisms import DiscreteGaussian, ResidualNoise
from tacit.synth._design import KEPT_SHARE
from tacit.synth._intervals import interval_level
from tacit.tables import CrossNoise

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from tacit.synth._columns import SyntheticColumn
    from tacit.synth._design import SynthDesign
    from tacit.synth._model import Columns
    from tacit.synth._task import SynthMechanism

METHODS = {
    "aim": "AIM: the table that the model misses most is chosen privately and measured, round after round",
    "mst": "MST: a tree of pairs of columns is chosen privately, then measured",
    "tables": "all tables are measured together, none is chosen",
}
_LISTED = 40


def table_name(columns: Sequence[SyntheticColumn], at: Sequence[int]) -> str:
    """Return the name of a table for people.

    Examples
    --------
    >>> from tacit.synth._columns import SyntheticColumn
    >>> table_name([SyntheticColumn("age", (1,)), SyntheticColumn("sex", (1,))], (0, 1))
    'age x sex'
    """
    return " x ".join(columns[i].name for i in at)


def plan_forecast(
    columns: Sequence[SyntheticColumn], design: SynthDesign, mechanism: SynthMechanism, confidence: Fraction
) -> list[Forecast]:
    """Return the tables that are measured for certain, each with its error."""

    def line(at: Columns, noise: str, error: float) -> Forecast:
        kept = " (kept)" if at in design.keep else ""
        return Forecast(
            table_name(columns, at), f"rows in each of {design.cells(at):,} cells{kept}", noise, error
        )

    if isinstance(mechanism, ResidualNoise):
        noise = CrossNoise(design.sizes, "gaussian", mechanism.sets, mechanism.sigmas)
        wide = [(at, noise.half_width(at, float(confidence))) for at in design.all_tables()[:_LISTED]]
        return [line(at, mechanism.describe(), error) for at, error in wide]
    level = interval_level(design.method, confidence, last=len(design.sizes) == 1)
    laws = [
        (at, DiscreteGaussian(sigma=sigma, sensitivity_squared=mechanism.moved_squared))
        for at, sigma in design.certain(mechanism)[:_LISTED]
    ]
    return [line(at, law.describe(), law.half_width(level)) for at, law in laws]


def plan_facts(
    columns: Sequence[SyntheticColumn], design: SynthDesign, mechanism: SynthMechanism
) -> list[tuple[str, str]]:
    """Return what may be chosen, how large the model may become, and what stays uncovered."""
    facts = [("method", METHODS[design.method])]
    if design.keep and design.method != "tables":
        facts.append(("kept tables", f"{100 * float(KEPT_SHARE):.0f} % of rho is reserved for them"))
    certain = len(design.all_tables() if isinstance(mechanism, ResidualNoise) else design.certain(mechanism))
    if certain > _LISTED:
        facts.append(("also measured", f"{certain - _LISTED:,} more tables"))
    if design.method == "tables":
        facts.append(("not covered", f"tables of more than {design.up_to} columns have no interval"))
    elif len(design.sizes) > 1:
        facts += _choices(design)
    if design.zeros:
        cells = sum(int(mask.sum()) for mask in design.zeros.values())
        what = "1 combination is" if cells == 1 else f"{cells:,} combinations are"
        facts.append(
            ("never", f"{what} declared impossible: no synthetic row has {'it' if cells == 1 else 'one'}")
        )
    if invented := [column.name for column in columns if column.invented]:
        facts.append(("invented", f"values of {', '.join(invented)} inside a cell are made up evenly"))
    return facts


def _choices(design: SynthDesign) -> list[tuple[str, str]]:
    if design.method == "mst":
        wide, tables = 2, len(design.sizes) * (len(design.sizes) - 1) // 2
        rounds = f"{len(design.sizes) - 1} of them"
    else:
        wide, tables = design.up_to, len(design.workload())
        rounds = f"one in each round; at most {16 * len(design.sizes):,} rounds, as the noise decides"
    return [
        ("may be chosen", f"{tables:,} tables of up to {wide} columns: {rounds}"),
        ("largest model", f"{design.size:,} cells"),
        ("not covered", "tables that are not measured have no interval: the release says which"),
    ]
