"""What a plan of synthetic rows says before anything is charged: all of it public.

Intervals for the noise on cells of measured tables, and on sums of cells, are proven in docs/proofs/synth.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tacit.core import Forecast
from tacit.mechanisms import DiscreteGaussian, GaussianLaw, ResidualNoise
from tacit.synth._choices import KEPT_SHARE
from tacit.tables import CrossNoise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.synth._choices import SynthDesign
    from tacit.synth._columns import SyntheticColumn
    from tacit.synth._model import Columns
    from tacit.synth._synthesis import SynthMechanism


_FIRST = Fraction(19, 20)  # of the allowed error, for the first measurement of a table
METHODS = {
    "aim": "AIM: the table that the model misses most is chosen privately and measured, round after round",
    "mst": "MST: a tree of pairs of columns is chosen privately, then measured",
    "tables": "all tables are measured together, none is chosen",
}
_LISTED = 40


def interval_level(
    method: str, confidence: float | Fraction, order: int = 1, *, final: bool = False
) -> Fraction:
    """Return the level of the interval of the first, second ... measurement that holds a table.

    Whether AIM measures a table again depends on the noise before. So the allowed error is shared out: 19/20
    to the first measurement, half of the rest to the second, and so on. The measurement of the last round
    takes all that is left: nothing follows, and this is known before its noise is drawn. All these intervals
    hold together with the stated confidence, and any of them may be shown. The other methods measure once.

    Examples
    --------
    >>> interval_level("mst", 0.95), interval_level("aim", 0.95), interval_level("aim", 0.95, 2)
    (Fraction(19, 20), Fraction(381, 400), Fraction(799, 800))
    >>> interval_level("aim", 0.95, final=True), interval_level("aim", 0.95, 2, final=True)
    (Fraction(19, 20), Fraction(399, 400))
    """
    exact = Fraction(confidence).limit_denominator(10**9)
    if method != "aim":
        return exact
    remaining = Fraction(1) if order == 1 else (1 - _FIRST) / 2 ** (order - 2)
    share = remaining if final else (_FIRST if order == 1 else remaining / 2)
    return 1 - (1 - exact) * share


def half_width(sigma: float, cells: int, level: float | Fraction) -> int:
    """Return the half-width of an interval for a sum of noisy cells of one measurement.

    One cell: the smallest that the law of the noise allows. Several: the smallest for the discrete Gaussian
    with the variance of the sum, at a level that makes up for the difference between the two laws; or a bound
    on the tail, which is smaller where the noise is hardly ever more than 1.

    Examples
    --------
    >>> half_width(10, 1, 0.95), half_width(10, 4, 0.95), half_width(1, 1, 0.95)
    (20, 39, 2)
    """
    exact = Fraction(level).limit_denominator(10**12)
    ratio = _ratio(sigma, cells)
    bound = DiscreteGaussian(sigma=Fraction(sigma), sensitivity=1).half_width(exact, copies=cells)
    if cells == 1 or ratio == math.inf:
        return bound
    return min(bound, _law(sigma, cells).reaches((1 - exact) / Fraction(ratio)))


def covering(sigma: float, cells: int, level: float | Fraction) -> float:
    """Return how often the interval of `half_width` covers: at least so often, and hardly more.

    It is above the level asked for, because half-widths are whole numbers.

    Examples
    --------
    >>> round(covering(1, 1, 0.95), 4), round(covering(10, 4, 0.95), 4)
    (0.9909, 0.9518)
    """
    width, ratio = half_width(sigma, cells, level), _ratio(sigma, cells)
    coverage = 0.0 if ratio == math.inf else 1 - _law(sigma, cells).exceeds(width) * ratio
    return max(float(level), coverage)


def _law(sigma: float, cells: int) -> GaussianLaw:
    """Return the discrete Gaussian with the variance of a sum; a little wider, against rounding."""
    return GaussianLaw(Fraction(sigma) if cells == 1 else Fraction(sigma * math.sqrt(cells) * (1 + 1e-12)))


def _ratio(sigma: float, cells: int) -> float:
    """Return how far the law of a sum of discrete Gaussians is from a discrete Gaussian, at most.

    It is the product, for i = 2 ... cells, of (1 + t)/(1 - t), with t = 2x/(1 - x) and
    x = exp(-2 pi^2 sigma^2 (i - 1)/i): no probability, of a number or of a set, differs by a larger factor.
    """
    if cells == 1:
        return 1.0
    i = np.arange(2, cells + 1, dtype=np.float64)
    x = np.exp(-2 * math.pi**2 * sigma**2 * (i - 1) / i)
    t = 2 * x / (1 - x)
    if t.max() >= 0.5:
        return math.inf
    return math.exp(float((np.log1p(t) - np.log1p(-t)).sum()) * (1 + 1e-9))


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
        mark = " (kept)" if at in design.keep else ""
        return Forecast(
            table_name(columns, at), f"rows in each of {design.cells(at):,} cells{mark}", noise, error
        )

    if isinstance(mechanism, ResidualNoise):
        noise = CrossNoise(design.sizes, "gaussian", mechanism.sets, mechanism.sigmas)
        half_widths = [(at, noise.half_width(at, float(confidence))) for at in design.all_tables()[:_LISTED]]
        return [line(at, mechanism.describe(), error) for at, error in half_widths]
    level = interval_level(design.method, confidence, final=len(design.sizes) == 1)
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
        combinations = "1 combination is" if cells == 1 else f"{cells:,} combinations are"
        facts.append(
            (
                "never",
                f"{combinations} declared impossible: no synthetic row has {'it' if cells == 1 else 'one'}",
            )
        )
    if invented := [column.name for column in columns if column.invented]:
        facts.append(("invented", f"values of {', '.join(invented)} inside a cell are made up evenly"))
    return facts


def _choices(design: SynthDesign) -> list[tuple[str, str]]:
    if design.method == "mst":
        columns_per_table, tables = 2, len(design.sizes) * (len(design.sizes) - 1) // 2
        rounds = f"{len(design.sizes) - 1} of them"
    else:
        columns_per_table, tables = design.up_to, len(design.workload())
        rounds = f"one in each round; at most {16 * len(design.sizes):,} rounds, as the noise decides"
    return [
        ("may be chosen", f"{tables:,} tables of up to {columns_per_table} columns: {rounds}"),
        ("largest model", f"{design.size:,} cells"),
        ("not covered", "tables that are not measured have no interval: the release says which"),
    ]
