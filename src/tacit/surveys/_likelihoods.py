"""The likelihoods of randomized answers, and the climb to their maximum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_STEPS = 200
_SMALL = 1e-12


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
    first = x * ((top - low) * slope)[:, None]
    if honesty:
        first = np.column_stack([first, share])
    score = (z - chance) / (chance * (1 - chance))
    value = float(np.sum(z * np.log(chance) + (1 - z) * np.log1p(-chance)))
    expected = first.T @ (first / (chance * (1 - chance))[:, None])
    observed = first.T @ (first * (z / chance**2 + (1 - z) / (1 - chance) ** 2)[:, None])
    observed[:count, :count] -= x.T @ (x * (score * (top - low) * slope * (1 - 2 * share))[:, None])
    if honesty:
        cross = x.T @ (score * slope)
        observed[:count, -1] -= cross
        observed[-1, :count] -= cross
    return value, first.T @ score, expected, observed


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
        found = np.stack(columns)
        return np.asarray((found + found.T) / 2)

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
        size, found = 1.0, parts(theta + step)
        while size > 1e-10 and not (np.isfinite(found[0]) and found[0] >= value - 1e-12 * abs(value)):
            size /= 2
            found = parts(theta + size * step)
        if size <= 1e-10:
            break
        moved = float(np.abs(size * step).max())
        theta, (value, gradient, expected, observed) = theta + size * step, found
        if moved < 1e-10 * max(1.0, float(np.abs(theta).max())):
            break
    return theta, value, observed


def _solved(matrix: Floats, right: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(matrix, right))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0])
