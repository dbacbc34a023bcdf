"""Logistic regression from a noisy table of cells and a yes/no outcome.

A release holds the table; everything is read off it. With y_c noisy yeses and n_c noisy rows in cell c, the
coefficients solve sum_c w_c x_c (y_c - p_c n_c) = 0, p_c = 1/(1 + exp(-x_c'b)). The equations are linear in
the noisy counts, so noise does not bias them, whatever the size of a cell; counts stay negative where the
noise made them so. The weights w_c, fixed before, hold back cells that are mostly noise. The variance is the
sandwich with n p (1 - p) for sampling and tau^2 (p^2 + (1 - p)^2) for noise (docs/proofs/regression.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.inference._estimate import COVERED, NOISE, NOISE_AND_SAMPLING, Estimate
from tacit.mechanisms import LinearNoise, linear_half_width, linear_tail
from tacit.report import short_percent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.core import JSON

    _Array = NDArray[np.float64]


_ROUNDS = 30  # of Newton's method
_FARTHEST = 12.0  # log-odds beyond which there is no solution
_CLEAR = 3.0  # standard deviations by which the information must be clear of the noise in it
_FEWEST = 3.0  # standard deviations by which yeses and noes must be clear of zero
_METHOD = "logistic regression on a noisy table, sandwich with noise"
_WANTED = 5.0  # yeses and noes, in standard deviations of their noise, that leave an answer


@dataclass(frozen=True, slots=True)
class LogisticSets:
    """The coefficients of many releases: values, covariances, and where the equations have a solution.

    Parameters
    ----------
    values
        One line of coefficients for each release.
    half
        The half-widths of their intervals.
    p_values
        Of the test that a coefficient is 0.
    solved
        Where the noise leaves a solution that can be trusted.
    """

    values: _Array
    half: _Array
    p_values: _Array
    solved: NDArray[np.bool_]


def logistic_sets(x: _Array, yes: _Array, no: _Array, noise: LinearNoise, failing: float) -> LogisticSets:
    """Fit each line of noisy counts.

    Parameters
    ----------
    x
        The variables of each cell, the first of them 1.
    yes, no
        The noisy counts; one line for each release, one number for each cell.
    noise
        The noise on each count.
    failing
        How often an interval may miss.
    """
    n = yes + no
    tau2 = 2 * noise.scale**2
    share = np.clip(yes.sum(axis=1) / np.maximum(n.sum(axis=1), 1.0), 0.01, 0.99)[:, None]
    sampling = np.maximum(n, 0.0) * share * (1 - share)
    w = sampling / np.maximum(sampling + tau2 * (share**2 + (1 - share) ** 2), 1e-9)
    clear = _FEWEST * np.sqrt(tau2 * x.shape[0])
    solved = (yes.sum(axis=1) > clear) & (no.sum(axis=1) > clear)
    b = np.zeros((len(yes), x.shape[1]))
    b[:, 0] = np.log(share[:, 0] / (1 - share[:, 0]))
    for _ in range(_ROUNDS):
        p = 1 / (1 + np.exp(-np.clip(b @ x.T, -30, 30)))
        score = np.einsum("rc,ca->ra", w * (yes - p * n), x)
        information = _information(w * n * p * (1 - p), x)
        step = np.linalg.solve(_safe(information), score[..., None])[..., 0]
        b = np.clip(b + np.clip(step, -2, 2), -50, 50)
    p = 1 / (1 + np.exp(-np.clip(b @ x.T, -30, 30)))
    information = _information(w * n * p * (1 - p), x)
    score = np.einsum("rc,ca->ra", w * (yes - p * n), x)
    step = np.linalg.solve(_safe(information), score[..., None])[..., 0]
    solved &= (np.abs(step).max(axis=1) < 1e-6) & (np.abs(b @ x.T).max(axis=1) < _FARTHEST)
    solved &= _clear(information, w * p * (1 - p), x, tau2)
    inverse = np.linalg.inv(np.where(solved[:, None, None], information, np.eye(x.shape[1])))
    return _sets(b, inverse, x, (w, n, p), noise, failing, solved)


def _sets(
    b: _Array, inverse: _Array, x: _Array, at: tuple[_Array, _Array, _Array], noise: LinearNoise,
    failing: float, solved: NDArray[np.bool_],
) -> LogisticSets:  # fmt: skip
    """Put the sandwich together, and take the reach of each coefficient from the law of its own noise."""
    w, n, p = at
    half, tails = np.zeros_like(b), np.ones_like(b)
    for a in range(b.shape[1]):
        influence = w * np.einsum("rb,cb->rc", inverse[:, a], x)  # what one yes more than expected moves
        sampling = np.sqrt(np.maximum((influence**2 * n * p * (1 - p)).sum(axis=1), 0.0))
        weights = np.concatenate([influence * (1 - p), -influence * p], axis=1)
        laplace = (weights[:, :, None] * np.array(noise.laplace)).reshape(len(b), -1)
        normal = np.hypot(sampling, noise.normal * np.sqrt((weights**2).sum(axis=1)))
        half[:, a] = linear_half_width(failing, laplace, normal)
        tails[:, a] = linear_tail(b[:, a], laplace, normal)
    return LogisticSets(b, half, tails, solved)


def _information(weights: _Array, x: _Array) -> _Array:
    return np.asarray(np.einsum("rc,ca,cb->rab", weights, x, x, optimize=True))


def _safe(information: _Array) -> _Array:
    """Return matrices that can be solved; those that cannot are found out afterwards."""
    size = np.abs(information).max(axis=(1, 2), initial=1e-9)[:, None, None]
    return np.asarray(information + 1e-9 * size * np.eye(information.shape[-1]))


def _clear(information: _Array, weights: _Array, x: _Array, tau2: float) -> NDArray[np.bool_]:
    """Say where the information is clear of the noise in it, in the directions that matter."""
    values, vectors = np.linalg.eigh(information)
    along = np.einsum("ca,rab->rcb", x, vectors)[:, :, 0]
    blur = np.sqrt(2 * tau2 * ((weights * along**2) ** 2).sum(axis=1))
    return np.asarray(values[:, 0] > _CLEAR * np.maximum(blur, 1e-12))


@dataclass(frozen=True, slots=True)
class LogisticColumn:
    """A column that explains: its places, and the number that each place has in each variable.

    Parameters
    ----------
    name
        The column.
    labels
        The variables that it makes: itself, or one for each value but the first.
    places
        For each place of the column, the values of its variables.
    meaning
        For each variable, what a step of 1 is, in words.
    """

    name: str
    labels: tuple[str, ...]
    places: tuple[tuple[float, ...], ...]
    meaning: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """The noisy counts of every combination of places and the outcome, no and yes."""

    fit: ClassVar[str] = "logistic"
    outcome: str
    columns: tuple[LogisticColumn, ...]
    integers: tuple[int, ...]
    noise: LinearNoise
    level: float

    @property
    def labels(self) -> tuple[str, ...]:
        """The variables."""
        return tuple(label for one in self.columns for label in one.labels)

    @cached_property
    def design(self) -> NDArray[np.float64]:
        """The variables of each cell, the first of them 1."""
        lines: list[tuple[float, ...]] = [()]
        for column in self.columns:
            lines = [(*line, *place) for line in lines for place in column.places]
        return np.array([(1.0, *line) for line in lines])

    @cached_property
    def _table(self) -> NDArray[np.float64]:
        return np.array(self.integers, dtype=np.float64).reshape(-1, 2)

    @property
    def rows_needed(self) -> int:
        """About how many rows leave an answer where yes and no are equally frequent."""
        return math.ceil(2 * _WANTED * math.sqrt(2) * self.noise.scale * math.sqrt(len(self.design)))

    @property
    def rows(self) -> Estimate:
        """How many rows have a place in every column."""
        n = float(self._table.sum())
        reach = float(self.noise.half_width(1 - self.level, np.ones(self._table.size)))
        sentence = f"About {max(n, 0):,.0f} rows have a value in every column."
        return Estimate(n, max(n - reach, 0.0), n + reach, self.level, NOISE, "noisy count", None, sentence)

    @cached_property
    def _all(self) -> list[Estimate]:
        """The intercept and the coefficients."""
        table = self._table
        sets = logistic_sets(self.design, table[None, :, 1], table[None, :, 0], self.noise, 1 - self.level)
        meanings = ["", *(words for one in self.columns for words in one.meaning)]
        if not sets.solved[0]:
            sentence = self._refusal()
            none = Estimate(None, None, None, self.level, NOISE_AND_SAMPLING, _METHOD, None, sentence)
            return [none] * len(meanings)
        estimates = []
        for a, meaning in enumerate(meanings):
            b, half = float(sets.values[0, a]), float(sets.half[0, a])
            sentence = self._sentence(meaning, b, half) if a else ""
            p = float(sets.p_values[0, a])
            estimates.append(
                Estimate(b, b - half, b + half, self.level, NOISE_AND_SAMPLING, _METHOD, p, sentence)
            )
        return estimates

    def _sentence(self, meaning: str, b: float, half: float) -> str:
        ratio, low, high = (math.exp(end) for end in (b, b - half, b + half))
        return (
            f"The odds of {self.outcome} were {ratio:.3g} times as high {meaning} "
            f"({short_percent(self.level)} confidence interval {low:.3g} to {high:.3g}, {COVERED})."
        )

    def _refusal(self) -> str:
        """Say what would do where the noise leaves no answer."""
        yes, no = (max(float(self._table[:, side].sum()), 1.0) for side in (1, 0))
        n, needed = yes + no, self.rows_needed / 2
        factor = max(2.0, needed / min(yes, no))
        return (
            f"The noise hides the odds of {self.outcome}. About {math.ceil(factor * n):,} rows, or "
            f"{factor:.2g} times the epsilon, would give an answer."
        )

    @property
    def coefficients(self) -> dict[str, Estimate]:
        """The coefficients, in log-odds, by variable."""
        return dict(zip(self.labels, self._all[1:], strict=True))

    @property
    def odds_ratios(self) -> dict[str, Estimate]:
        """The odds ratios by variable."""
        ratios = {}
        for label, estimate in self.coefficients.items():
            value, low, high = (
                None if end is None else math.exp(end)
                for end in (estimate.value, estimate.low, estimate.high)
            )
            ratios[label] = replace(estimate, value=value, low=low, high=high)
        return ratios

    @property
    def intercept(self) -> Estimate:
        """The log-odds where every variable is 0."""
        return self._all[0]

    def to_json(self) -> dict[str, JSON]:
        """Return what was measured: noisy counts and public facts."""
        return {
            "fit": self.fit,
            "outcome": self.outcome,
            "columns": [
                {"name": c.name, "labels": list(c.labels), "meaning": list(c.meaning),
                 "places": [list(place) for place in c.places]}
                for c in self.columns
            ],
            "integers": list(self.integers),
            "noise": {"laplace": list(self.noise.laplace), "normal": self.noise.normal},
            "level": self.level,
        }  # fmt: skip

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read it back."""
        columns = tuple(
            LogisticColumn(
                str(one["name"]), tuple(map(str, one["labels"])),
                tuple(tuple(map(float, place)) for place in one["places"]), tuple(map(str, one["meaning"])),
            )
            for one in document["columns"]
        )  # fmt: skip
        noise = LinearNoise(
            tuple(map(float, document["noise"]["laplace"])), float(document["noise"]["normal"])
        )
        integers = tuple(map(int, document["integers"]))
        fit = cls(str(document["outcome"]), columns, integers, noise, float(document["level"]))
        if 2 * len(fit.design) != len(integers):
            raise ValueError("not a regression")
        return fit
