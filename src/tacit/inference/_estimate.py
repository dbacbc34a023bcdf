"""The answer of an inference: a number, its interval, a p-value where there is a test, one sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING

from tacit.core import AnswerTable, Cells, shown_cell
from tacit.report import short_percent
from tacit.show import GREY, Chart, ChartAxis, ChartSeries, Figure, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import JSON, Value
    from tacit.inference._regression_table import RegressionTable
    from tacit.mechanisms import LinearNoise


#: What an interval or a p-value covers.
NOISE = "noise"
NOISE_AND_SAMPLING = "noise and sampling"
#: How a sentence says it.
COVERED = "for privacy noise and chance in who was included"


@dataclass(frozen=True, slots=True, repr=False)
class Estimate:
    """What a release says about one number, or one hypothesis.

    It is read off released integers alone: free post-processing, which never charges.

    Parameters
    ----------
    value
        The estimate; of a test without one, its statistic.
    low, high
        The ends of the interval; None where a test has none.
    level
        How often such an interval covers the truth: 0.95.
    covers
        What the interval or the p-value covers: ``"noise"``, or ``"noise and sampling"``.
    method
        How it was computed, in a few words.
    p_value
        How often a result as extreme comes from noise and sampling alone, if there is no effect.
    sentence
        The answer in one sentence.

    Examples
    --------
    >>> found = Estimate(4.1, 1.9, 6.3, 0.95, "noise and sampling", "two means", 3e-4, "The mean was lower.")
    >>> found
    The mean was lower.
    estimate 4.1, 95 % interval 1.9 to 6.3 (covers noise and sampling), p = 0.0003; two means
    """

    value: float | None
    low: float | None
    high: float | None
    level: float
    covers: str
    method: str
    p_value: float | None = None
    sentence: str = ""

    def text(self) -> str:
        """Write the answer for a terminal: the sentence, then the numbers."""
        value, low, high = shown_cell(self.value, self.low, self.high)
        noun = "estimate" if self.p_value is None or self.low is not None else "test statistic"
        parts = [] if self.value is None else [f"{noun} {value}"]
        if low:
            parts.append(f"{short_percent(self.level)} interval {low} to {high} (covers {self.covers})")
        if self.p_value is not None:
            parts.append(p_words(self.p_value))
        numbers = "; ".join(part for part in (", ".join(parts), self.method) if part)
        return "\n".join(part for part in (self.sentence, numbers) if part)

    def html(self) -> str:
        """Write the answer for a notebook."""
        return "".join(f"<p>{escape(line)}</p>" for line in self.text().splitlines())

    def to_json(self) -> dict[str, JSON]:
        """Return the answer as JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()


def p_words(p: float) -> str:
    """Write a p-value for people; very small ones as a bound."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def check_read(noise: LinearNoise, level: float) -> None:
    """Raise ``ValueError`` where a document's noise or level of confidence is none."""
    scales = (*noise.laplace, noise.normal)
    if len(scales) > 20 or not all(0 <= one < 1e100 for one in scales) or not 0 < level < 1:
        raise ValueError("not the noise of a release")


def estimate_table(
    keys: dict[str, tuple[Value, ...]], name: str, estimates: Sequence[Estimate]
) -> AnswerTable:
    """Return estimates as lines; an end that is open or hidden by the noise is empty."""
    columns = {
        name: Cells(*(numbers(getattr(one, end) for one in estimates) for end in ("value", "low", "high")))
    }
    if any(one.p_value is not None for one in estimates):
        nothing = (None,) * len(estimates)
        columns["p"] = Cells(tuple(one.p_value for one in estimates), nothing, nothing)
    level, covers = (estimates[0].level, estimates[0].covers) if estimates else (0.95, NOISE)
    notes = {"p": "a p-value has no interval"} if "p" in columns else {}
    return AnswerTable(keys, columns, float(level), notes, covers=covers)


def coefficients_figure(table: RegressionTable) -> Figure:
    """Return each coefficient in its own units with its interval; those that the noise hides have none."""
    ends = ((getattr(one, end) for one in table.coefficients.values()) for end in ("value", "low", "high"))
    zero = ChartSeries("across", (), (0.0,), colour=GREY, dashed=True)
    names = tuple(table.coefficients)
    hidden = ", ".join(name for name, one in table.coefficients.items() if one.value is None)
    units = "change of the outcome for each unit" if table.model.fit == "linear" else "log-odds"
    chart = Chart(
        (zero, ChartSeries.of("points", range(len(names)), ends)),
        ChartAxis("", names),
        ChartAxis(units),
        sideways=True,
    )
    words = [f"{short_percent(table.model.level)} intervals {COVERED}"]
    words += [f"hidden by the noise: {hidden}"] if hidden else []
    return Figure("coefficients", (chart,), tuple(words))
