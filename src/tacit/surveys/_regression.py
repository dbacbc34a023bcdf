"""Regression on randomized answers: the likelihood of what was reported, not of what was true.

A report says yes with probability ``p`` if the truth is yes and ``q`` if it is not, both known. The logistic
model mixes the two (Scheers and Dayton 1988). In the linear model the truth is a predictor that nobody sees:
its normal mixture is fitted together with the chance of the truth given the other predictors. A model that
takes the truth as independent of the others (Heck and Moshagen 2018) is biased where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import TacitError
from tacit.report import Report, Reportable, ReportTable
from tacit.surveys._intervals import normal_quantile
from tacit.surveys._likelihoods import AnswerMixture, climb, logistic_parts
from tacit.surveys._results import people

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_LARGEST = 1e3  # log odds: beyond, a coefficient runs away


@dataclass(frozen=True, slots=True, repr=False)
class Regression(Reportable):
    """Coefficients with standard errors and intervals, fitted to randomized answers.

    Parameters
    ----------
    kind
        What was fitted, in words.
    names, values, errors
        The coefficients, in the order of the model.
    z
        How many standard errors the intervals reach to each side.
    confidence
        How often an interval covers its coefficient, in large samples.
    respondents
        How many reports were used.
    log_likelihood
        Of the fitted model, or None where no likelihood was maximised.
    sigma
        The residual standard deviation of a linear model, or None.
    honesty
        The chance that a carrier answers truthfully, where it was estimated too, with its standard error.
    """

    kind: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    errors: tuple[float, ...]
    z: float
    confidence: float
    respondents: int
    log_likelihood: float | None = None
    sigma: float | None = None
    honesty: tuple[float, float] | None = None

    def __getitem__(self, name: str) -> float:
        return self.values[self._place(name)]

    def error(self, name: str) -> float:
        """Return the standard error of a coefficient."""
        return self.errors[self._place(name)]

    def interval(self, name: str) -> tuple[float, float]:
        """Return the interval of a coefficient."""
        value, error = self[name], self.error(name)
        return value - self.z * error, value + self.z * error

    def _place(self, name: str) -> int:
        from tacit.fixes import Choose

        if name not in self.names:
            raise TacitError(
                "unknown-column", f"the model has no predictor {name!r}", fix=Choose(self.names, given=name)
            )
        return self.names.index(name)

    def report(self) -> Report:
        """Return the coefficients as a table, and what the intervals cover."""
        rows = tuple(
            (
                name,
                f"{self[name]:.5g}",
                f"{self.error(name):.3g}",
                "[{:.4g}, {:.4g}]".format(*self.interval(name)),
            )
            for name in self.names
        )
        level = f"{self.confidence * 100:g} %"
        notes = [f"{level} intervals cover the randomizer and the sampling of respondents, in large samples."]
        if self.log_likelihood is not None:
            notes.append(f"Log-likelihood {self.log_likelihood:.5f}.")
        if self.sigma is not None:
            notes.append(f"Residual standard deviation {self.sigma:.4g}.")
        if self.honesty is not None:
            notes.append(
                "Carriers answer truthfully with chance {:.4g} (error {:.2g}).".format(*self.honesty)
            )
        table = ReportTable("", ("predictor", "coefficient", "error", f"{level} interval"), rows)
        return Report(self.kind, (f"{people(self.respondents)}.",), (table,), (" ".join(notes),))


def fit_logistic(
    answers: ArrayLike,
    predictors: ArrayLike,
    *,
    p: ArrayLike,
    q: ArrayLike,
    names: Sequence[str],
    confidence: float = 0.95,
    estimate_honesty: bool = False,
) -> Regression:
    """Fit P(truth is yes) = logistic(x'b) to randomized answers.

    Guarantee: maximum likelihood of the reports, P(yes) = p P(truth) + q (1 - P(truth)); standard errors from
    the observed information, so they cover the randomizer and the sampling of respondents.

    Parameters
    ----------
    answers
        Whether each report says yes.
    predictors
        One row for each respondent, with the column of ones if the model has an intercept.
    p, q
        P(report says yes) if the truth is yes and if it is not; one for all or one for each respondent.
    names
        Of the predictors.
    confidence
        Of the intervals.
    estimate_honesty
        Whether ``p`` is not known and is estimated too (the stochastic lie detector), starting at ``p``.

    Examples
    --------
    >>> x = np.column_stack([np.ones(400), np.arange(400) % 2])
    >>> yes = np.isin(np.arange(400) % 8, [1, 3, 5, 2, 4])  # 3 in 4 of the odd ones, 2 in 4 of the others
    >>> fit = fit_logistic(yes, x, p=0.9, q=0.2, names=["intercept", "odd"])
    >>> round(float(1 / (1 + np.exp(-fit["intercept"]))), 6)  # (0.5 - 0.2) / (0.9 - 0.2)
    0.428571
    """
    z = np.asarray(answers, dtype=float)
    x, back = _orthogonal(predictors)
    high, low = (np.broadcast_to(np.asarray(v, dtype=float), z.shape) for v in (p, q))
    start = np.zeros(x.shape[1] + int(estimate_honesty))
    if estimate_honesty:
        start[-1] = high.mean()

    def parts(theta: Floats) -> tuple[float, Floats, Floats, Floats]:
        return logistic_parts(theta, z, x, high, low, honesty=estimate_honesty)

    theta, value, information = climb(start, parts)
    if np.abs(theta).max() > _LARGEST:
        raise _not_identified()
    count = x.shape[1]
    turn = np.eye(len(theta))
    turn[:count, :count] = back
    values, errors = turn @ theta, _errors(information, turn)
    return Regression(
        "logistic regression on randomized answers",
        tuple(names), tuple(values[:count].tolist()), tuple(errors[:count].tolist()),
        normal_quantile(confidence), confidence, len(z), value,
        honesty=(float(values[-1]), float(errors[-1])) if estimate_honesty else None,
    )  # fmt: skip


def fit_linear(
    outcome: ArrayLike,
    answers: ArrayLike,
    predictors: ArrayLike,
    *,
    p: ArrayLike,
    q: ArrayLike,
    names: Sequence[str],
    confidence: float = 0.95,
    independent: bool = False,
) -> Regression:
    """Fit outcome = x'b + c s + normal error, where s is the true answer behind a randomized report.

    Guarantee: maximum likelihood of outcome and report together, with P(s) = logistic(g'x); standard errors
    from the observed information. The coefficient of s has the last of ``names``.

    Parameters
    ----------
    outcome
        A number for each respondent, public.
    answers, predictors, p, q, names, confidence
        As in `fit_logistic`; ``names`` has one more name, that of s, at its end.
    independent
        Whether s is independent of the predictors. Where that is wrong, the fit is biased.
    """
    y, z = (np.asarray(v, dtype=float) for v in (outcome, answers))
    x, back = _orthogonal(predictors)
    base = x.T @ y / len(y)  # least squares: only what is left of the outcome is fitted, in its own unit
    rest = y - x @ base
    unit = float(rest.std()) or 1.0
    high, low = (np.broadcast_to(np.asarray(v, dtype=float), z.shape) for v in (p, q))
    odds = np.stack([np.where(z > 0, low, 1 - low), np.where(z > 0, high, 1 - high)])
    other = np.ones((len(y), 1)) if independent else x  # orthogonal columns span the same chances
    model = AnswerMixture(rest / unit, x, other, odds)
    theta = model.fitted()
    count = x.shape[1] + 1
    turn = np.eye(len(theta))
    turn[: count - 1, : count - 1] = back
    turn[:count] *= unit
    values, errors = turn @ theta, _errors(model.information(theta), turn)
    values[: count - 1] += back @ base
    return Regression(
        "linear regression with a randomized predictor",
        tuple(names), tuple(values[:count].tolist()), tuple(errors[:count].tolist()),
        normal_quantile(confidence), confidence, len(y),
        model.value(theta) - len(y) * float(np.log(unit)), unit * float(np.exp(theta[count])),
    )  # fmt: skip


def fit_unbiased(
    outcome: ArrayLike, predictors: ArrayLike, *, names: Sequence[str], confidence: float = 0.95
) -> Regression:
    """Fit a linear model to unbiased numbers of a randomizer: least squares with robust standard errors.

    Guarantee: the randomizer adds noise of mean zero given the truth, so least squares stays unbiased; the
    errors (White 1980, with n/(n - k)) allow for its unequal variance.
    """
    y, x = np.asarray(outcome, dtype=float), np.asarray(predictors, dtype=float)
    inverse = np.linalg.pinv(x.T @ x)
    b = inverse @ (x.T @ y)
    residual = y - x @ b
    spare = len(y) - x.shape[1]
    if spare <= 0 or np.linalg.matrix_rank(x) < x.shape[1]:
        raise _not_identified()
    spread = inverse @ (x.T @ (x * residual[:, None] ** 2)) @ inverse * len(y) / spare
    return Regression(
        "linear regression on randomized numbers", tuple(names), tuple(b.tolist()),
        tuple(np.sqrt(np.diag(spread)).tolist()), normal_quantile(confidence), confidence, len(y),
    )  # fmt: skip


def _orthogonal(predictors: ArrayLike) -> tuple[Floats, Floats]:
    """Return predictors that are orthogonal and of size one, and the matrix that turns coefficients back.

    No unit of measurement and no far-off zero (such as a year) then matters to the search for the maximum.
    """
    x = np.asarray(predictors, dtype=float)
    if x.ndim != 2 or len(x) <= x.shape[1]:
        raise _not_identified()
    size = np.sqrt(np.mean(x**2, axis=0))
    q, r = np.linalg.qr(x / np.where(size > 0, size, 1.0))
    if not np.all(np.abs(np.diag(r)) > 1e-10 * np.sqrt(len(x))):
        raise _not_identified()
    back = np.linalg.inv(r) * np.sqrt(len(x)) / size[:, None]
    return q * np.sqrt(len(x)), back


def _errors(information: Floats, turn: Floats) -> Floats:
    """Return standard errors of ``turn`` times the parameters; refuse if the reports do not settle them."""
    values = np.linalg.eigvalsh(information)
    if not np.all(np.isfinite(values)) or values.min() <= 1e-9 * max(values.max(), 1.0):
        raise _not_identified()
    return np.asarray(np.sqrt(np.diag(turn @ np.linalg.inv(information) @ turn.T)))


def _not_identified() -> TacitError:
    return TacitError(
        "no-guarantee",
        "the reports do not determine the coefficients of this model",
        why="a predictor is a combination of others, or the reports are too few for their noise",
        fix="use fewer predictors, more respondents or a larger epsilon",
    )
