"""The content of a regression: a table of coefficients with intervals, sentences and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tacit.core import Content
from tacit.inference._estimate import NOISE_AND_SAMPLING, check_read, estimate_table, p_words
from tacit.inference._linear_regression import LinearFit
from tacit.inference._logistic_regression import LogisticFit
from tacit.report import Report, ReportTable, short_percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.core import JSON, AnswerTable
    from tacit.inference._estimate import Estimate
    from tacit.show import Figure

_EQUAL_ERRORS = (
    "They assume that the outcome varies equally around the fit everywhere; where it does not, they are "
    "often too narrow."
)


@dataclass(frozen=True, eq=False, repr=False)
class RegressionTable(Content):
    """A regression: what was measured, and the coefficients that are read off it.

    It holds noisy integers and public facts. Everything else follows from them, free.

    Parameters
    ----------
    model
        The noisy integers of a linear or a logistic regression, and how they are read.
    """

    kind: ClassVar[str] = "regression"
    described: ClassVar[str] = "a regression table"
    model: LinearFit | LogisticFit

    @property
    def coefficients(self) -> dict[str, Estimate]:
        """The coefficients by column, each with its interval, p-value and sentence."""
        return self.model.coefficients

    @property
    def intercept(self) -> Estimate:
        """The fitted outcome (of a logistic regression its log-odds) where every column is 0."""
        return self.model.intercept

    @property
    def rows(self) -> Estimate:
        """How many rows were read, with an interval for the noise."""
        return self.model.rows

    def __getitem__(self, column: str) -> Estimate:
        return self.coefficients[column]

    def __len__(self) -> int:
        return len(self.coefficients)

    def __getattr__(self, name: str) -> Any:
        if name in {"predict", "correlation", "r_squared", "residual_spread", "odds_ratios"}:
            return getattr(self.model, name)
        raise AttributeError(name)

    def to_json(self) -> JSON:
        """Return the content as JSON: noisy integers and public facts."""
        return self.model.to_json()

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the content back."""
        kinds: dict[str, type[LinearFit | LogisticFit]] = {"linear": LinearFit, "logistic": LogisticFit}
        table = cls(kinds[document["fit"]].from_json(document))
        check_read(table.model.noise, table.model.level)
        table.report()  # raises now where a part of the document cannot be read
        return table

    def report(self) -> Report:
        """Return the table of coefficients and what it covers."""
        model = self.model
        lines = [(name, *_cells(one)) for name, one in self.coefficients.items()]
        lines.append(("(intercept)", *_cells(self.intercept)))
        level = short_percent(model.level)
        sentences = [one.sentence for one in self.coefficients.values()]
        extra: list[str] = []
        covered = f"Intervals and p-values cover {NOISE_AND_SAMPLING}, not dropped rows and clipping."
        if isinstance(model, LinearFit):
            extra = [model.residual_spread.sentence, model.r_squared.sentence]
            covered += f" {_EQUAL_ERRORS}"
        return Report(
            f"{model.fit.capitalize()} regression of {model.outcome}",
            (self.rows.sentence, *sentences, *extra),
            (ReportTable("", ("column", "coefficient", f"{level} interval", "p"), tuple(lines)),),
            (covered,),
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
        """Yield the coefficients."""
        estimates = {**self.coefficients, "(intercept)": self.intercept}
        yield (
            "coefficients",
            estimate_table({"column": tuple(estimates)}, "coefficient", list(estimates.values())),
        )

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the coefficients with their intervals."""
        from tacit.inference._estimate import coefficients_figure

        del what
        return (coefficients_figure(self),)


def _cells(estimate: Estimate) -> tuple[str, str, str]:
    """Write a coefficient, its interval and its p-value."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return "hidden by the noise", "unbounded", ""
    p = "" if estimate.p_value is None else p_words(estimate.p_value).removeprefix("p ").removeprefix("= ")
    return f"{estimate.value:.4g}", f"{estimate.low:.4g} to {estimate.high:.4g}", p
