"""Regression on randomized answers: the likelihood of what was reported, not of what was true.

A report says yes with probability ``p`` if the truth is yes and ``q`` if it is not, both known. The logistic
model mixes the two (Scheers and Dayton 1988). In the linear model the truth is a predictor that nobody sees:
its normal mixture is fitted together with the chance of the truth given the other predictors. A model that
takes the truth as independent of the others (Heck and Moshagen 2018) is biased where it is not.

Public columns enter as they are, texts as one column for each value but the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code
from tacit.mechanisms import Design
from tacit.parameters import ColumnName, Listed
from tacit.report import Report, Reportable, ReportTable, short_percent
from tacit.surveys._estimates import mean_scores, normal_quantile
from tacit.surveys._results import people

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from tacit.surveys._reports import Reports
    from tacit.surveys._survey_questions import SurveyQuestion

    Floats = NDArray[np.float64]


_STEPS = 200
_SMALL = 1e-12
_LARGEST = 1e3  # log odds: beyond, a coefficient runs away
_MOST_VALUES = 50


def logistic_parts(
    theta: Floats, z: Floats, x: Floats, high: Floats, low: Floats, *, honesty: bool
) -> tuple[float, Floats, Floats, Floats]:
    """Return log-likelihood, gradient, expected and observed information."""
    from scipy.special import expit

    count = x.shape[1]
    top = np.full(len(z), theta[-1]) if honesty else high
    share = expit(x @ theta[:count])
    chance = np.clip(low + (top - low) * share, _SMALL, 1 - _SMALL)
    slope = share * (1 - share)
    gradient = x * ((top - low) * slope)[:, None]
    if honesty:
        gradient = np.column_stack([gradient, share])
    score = (z - chance) / (chance * (1 - chance))
    value = float(np.sum(z * np.log(chance) + (1 - z) * np.log1p(-chance)))
    expected = gradient.T @ (gradient / (chance * (1 - chance))[:, None])
    observed = gradient.T @ (gradient * (z / chance**2 + (1 - z) / (1 - chance) ** 2)[:, None])
    observed[:count, :count] -= x.T @ (x * (score * (top - low) * slope * (1 - 2 * share))[:, None])
    if honesty:
        cross = x.T @ (score * slope)
        observed[:count, -1] -= cross
        observed[-1, :count] -= cross
    return value, gradient.T @ score, expected, observed


@dataclass(frozen=True, slots=True)
class AnswerMixture:
    """The joint likelihood of outcome and report; parameters: b, c, ln sigma, g."""

    y: Floats
    x: Floats
    other: Floats
    odds: Floats

    def _split(self, theta: Floats) -> tuple[Floats, float, float, Floats]:
        k = self.x.shape[1]
        return theta[:k], float(theta[k]), float(np.exp(theta[k + 1])), theta[k + 2 :]

    def _logs(self, theta: Floats) -> Floats:
        b, c, sigma, g = self._split(theta)
        line = self.other @ g
        chance = np.stack([-np.logaddexp(0, line), -np.logaddexp(0, -line)])
        residual = (self.y - self.x @ b - np.array([[0.0], [c]])) / sigma
        with np.errstate(divide="ignore"):
            logs = np.log(self.odds) + chance - residual**2 / 2 - np.log(sigma) - np.log(2 * np.pi) / 2
        return np.asarray(logs)

    def value(self, theta: Floats) -> float:
        return float(np.logaddexp.reduce(self._logs(theta), axis=0).sum())

    def weights(self, theta: Floats) -> Floats:
        """Return P(s = 1 | everything seen) for each respondent."""
        logs = self._logs(theta)
        return np.asarray(np.exp(logs[1] - np.logaddexp.reduce(logs, axis=0)))

    def gradient(self, theta: Floats) -> Floats:
        from scipy.special import expit

        b, c, sigma, g = self._split(theta)
        w = self.weights(theta)
        base = self.y - self.x @ b
        squares = (1 - w) * base**2 + w * (base - c) ** 2
        return np.concatenate(
            [
                self.x.T @ (base - c * w) / sigma**2,
                [np.sum(w * (base - c)) / sigma**2, np.sum(squares) / sigma**2 - len(self.y)],
                self.other.T @ (w - expit(self.other @ g)),
            ]
        )

    def information(self, theta: Floats) -> Floats:
        """Return the observed information, by central differences of the exact gradient."""
        steps = 1e-5 * np.maximum(1.0, np.abs(theta))
        columns = [
            (self.gradient(theta - h * e) - self.gradient(theta + h * e)) / (2 * h)
            for h, e in zip(steps, np.eye(len(theta)), strict=True)
        ]
        columns_of_scores = np.stack(columns)
        return np.asarray((columns_of_scores + columns_of_scores.T) / 2)

    def fitted(self) -> Floats:
        """Return the maximum: steps of EM from the report itself, then Newton's."""
        w = self.odds[1] / self.odds.sum(axis=0)
        theta = np.zeros(self.x.shape[1] + 2 + self.other.shape[1])
        for _ in range(30):
            theta = self._maximised(w, theta)
            w = self.weights(theta)

        def parts(theta: Floats) -> tuple[float, Floats, Floats, Floats]:
            information = self.information(theta)
            return self.value(theta), self.gradient(theta), information, information

        return climb(theta, parts)[0]

    def _maximised(self, w: Floats, theta: Floats) -> Floats:
        """Return the parameters that are best if s is one with chance w."""
        x, k = self.x, self.x.shape[1]
        moments = np.zeros((k + 1, k + 1))
        moments[:k, :k] = x.T @ x
        moments[:k, k] = moments[k, :k] = x.T @ w
        moments[k, k] = w.sum()
        b = _solved(moments, np.append(x.T @ self.y, w @ self.y))
        base = self.y - x @ b[:k]
        sigma = np.sqrt(np.mean((1 - w) * base**2 + w * (base - b[k]) ** 2))
        g = _logistic_shares(w, self.other, theta[k + 2 :])
        return np.concatenate([b, [np.log(max(float(sigma), _SMALL))], g])


def _logistic_shares(shares: Floats, x: Floats, start: Floats) -> Floats:
    """Return the coefficients of a logistic model for answers that are known up to a chance."""
    ones, none = np.ones(len(shares)), np.zeros(len(shares))

    def parts(theta: Floats) -> tuple[float, Floats, Floats, Floats]:
        return logistic_parts(theta, shares, x, ones, none, honesty=False)

    return climb(start, parts)[0]


def climb(
    start: Floats, parts: Callable[[Floats], tuple[float, Floats, Floats, Floats]]
) -> tuple[Floats, float, Floats]:
    """Climb to the maximum; steps that do not climb are halved. Return it with the observed information."""
    theta = start
    value, gradient, expected, observed = parts(theta)
    for _ in range(_STEPS):
        step = _solved(expected, gradient)
        if not np.all(np.isfinite(step)) or gradient @ step <= 0:
            step = gradient / max(float(np.abs(gradient).max()), 1.0)
        size, climbed = 1.0, parts(theta + step)
        while size > 1e-10 and not (np.isfinite(climbed[0]) and climbed[0] >= value - 1e-12 * abs(value)):
            size /= 2
            climbed = parts(theta + size * step)
        if size <= 1e-10:
            break
        step_length = float(np.abs(size * step).max())
        theta, (value, gradient, expected, observed) = theta + size * step, climbed
        if step_length < 1e-10 * max(1.0, float(np.abs(theta).max())):
            break
    return theta, value, observed


def _solved(matrix: Floats, right: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(matrix, right))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0])


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
        level = short_percent(self.confidence)
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


def fit_logistic_on(
    reports: Reports, question: str, *, on: Sequence[str], answer: Any, confidence: float
) -> Regression:
    """Fit whether the truth is one answer; see `Reports.logistic`."""
    outcome_question = reports.survey[question]
    rows, reported = reports.answered[outcome_question.name]
    yes, p, q = _yes(outcome_question, reported, answer)
    names, x = _predictors(reports, on, rows)
    return fit_logistic(yes, x, p=p, q=q, names=names, confidence=confidence)


def fit_linear_on(
    reports: Reports, outcome: str, *, on: Sequence[str], answer: Any, confidence: float
) -> Regression:
    """Fit a number; see `Reports.linear`."""
    questions = {question.name: question for question in reports.survey.questions}
    randomized = [name for name in _listed(on) if name in questions]
    if outcome in questions:
        if randomized:
            raise _one_randomized()
        randomized_question = questions[outcome]
        rows, reported = reports.answered[outcome]
        names, x = _predictors(reports, on, rows)
        return fit_unbiased(mean_scores(randomized_question, reported), x, names=names, confidence=confidence)
    if len(randomized) != 1:
        raise _one_randomized()
    randomized_question = questions[randomized[0]]
    rows, reported = reports.answered[randomized_question.name]
    yes, p, q = _yes(randomized_question, reported, answer)
    names, x = _predictors(reports, [name for name in on if name != randomized_question.name], rows)
    y = _numbers(reports, outcome)[rows]
    column_names = [*names, f"{randomized_question.name}={_answer(randomized_question, answer)}"]
    return fit_linear(y, yes, x, p=p, q=q, names=column_names, confidence=confidence)


def _answer(question: SurveyQuestion, answer: Any) -> Any:
    return question.answers[-1] if answer is None else answer


def _yes(question: SurveyQuestion, reported: Any, answer: Any) -> tuple[NDArray[np.bool_], float, float]:
    """Return whether each report supports the answer, and with which chance it does if true and if not."""
    if not question.gives_shares:
        raise TacitError(
            "bad-parameter",
            f"the answer to {question.name!r} is a number, and this model needs a list of answers",
            why="the report of a number lies near the number and does not name an answer",
            fix="make it the outcome of a linear model, or ask for groups such as ages 18 to 29",
        )
    index = question.place_of(_answer(question, answer))
    if isinstance(question.law, Design):
        if question.law.draws != 1:
            raise bad_parameter("question", "one with a single draw for a regression", question.name)
        p, q = float(question.law.p), float(question.law.q)
        return (reported == 1, p, q) if index == 1 else (reported == 0, 1 - q, 1 - p)
    randomizer = question.support
    return randomizer.supported(reported, index), float(randomizer.p), float(randomizer.q)


def _listed(on: Sequence[str]) -> Sequence[str]:
    return Listed("columns", '["age"]', 0, each=ColumnName()).read("on", on)


def _predictors(
    reports: Reports, on: Sequence[str], rows: NDArray[np.int64]
) -> tuple[list[str], NDArray[np.float64]]:
    names, columns = ["intercept"], [np.ones(len(rows))]
    for name in _listed(on):
        values = reports.column(name)[rows]
        if values.dtype.kind in "iufb":
            names.append(name)
            columns.append(_numbers(reports, name)[rows])
            continue
        levels = sorted(dict.fromkeys(values.tolist()), key=str)
        if len(levels) > _MOST_VALUES:
            raise bad_parameter("on", f"columns of numbers, or with at most {_MOST_VALUES} values", name)
        for value in levels[1:]:
            names.append(f"{name}={value}")
            columns.append((values == value).astype(float))
    return names, np.column_stack(columns)


def _numbers(reports: Reports, name: str) -> NDArray[np.float64]:
    values = reports.column(name)
    if values.dtype.kind not in "iufb" or not np.isfinite(values.astype(float)).all():
        raise TacitError(
            "bad-parameter",
            f"the column {name!r} has values that are not numbers",
            fix="first drop the respondents whose value in this column is missing or is not a number",
        )
    return values.astype(float)


def _one_randomized() -> TacitError:
    return TacitError(
        "bad-parameter",
        "a linear model has exactly one randomized column: the outcome, or one predictor",
        why="the joint likelihood of several randomized answers is not offered",
        fix=Code('reports.linear("income", on=["smokes", "age"])'),
    )
