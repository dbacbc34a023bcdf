"""A logistic regression as a release holds it: a noisy table, and what is read off it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.inference._estimate import NOISE, NOISE_AND_SAMPLING, Estimate, percent_words
from tacit.inference._logistic_sets import logistic_sets
from tacit.mechanisms import LinearNoise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.core import JSON

_METHOD = "logistic regression on a noisy table, sandwich with noise"
_WANTED = 5.0  # yeses and noes, in standard deviations of their noise, that leave an answer


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
        for one in self.columns:
            lines = [(*line, *place) for line in lines for place in one.places]
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
        said = f"About {max(n, 0):,.0f} rows have a value in every column."
        return Estimate(n, max(n - reach, 0.0), n + reach, self.level, NOISE, "noisy count", None, said)

    @cached_property
    def _all(self) -> list[Estimate]:
        """The intercept and the coefficients."""
        table = self._table
        sets = logistic_sets(self.design, table[None, :, 1], table[None, :, 0], self.noise, 1 - self.level)
        meanings = ["", *(words for one in self.columns for words in one.meaning)]
        if not sets.solved[0]:
            said = self._refusal()
            none = Estimate(None, None, None, self.level, NOISE_AND_SAMPLING, _METHOD, None, said)
            return [none] * len(meanings)
        found = []
        for a, meaning in enumerate(meanings):
            b, half = float(sets.values[0, a]), float(sets.half[0, a])
            said = self._sentence(meaning, b, half) if a else ""
            p = float(sets.p_values[0, a])
            found.append(Estimate(b, b - half, b + half, self.level, NOISE_AND_SAMPLING, _METHOD, p, said))
        return found

    def _sentence(self, meaning: str, b: float, half: float) -> str:
        ratio, low, high = (math.exp(end) for end in (b, b - half, b + half))
        return (
            f"The odds of {self.outcome} were {ratio:.3g} times as high {meaning} "
            f"({percent_words(self.level)} confidence interval {low:.3g} to {high:.3g}, for privacy noise "
            "and chance in who was included)."
        )

    def _refusal(self) -> str:
        """Say what would do where the noise leaves no answer."""
        yes, no = (max(float(self._table[:, side].sum()), 1.0) for side in (1, 0))
        n, wanted = yes + no, self.rows_needed / 2
        factor = max(2.0, wanted / min(yes, no))
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
        made = {}
        for label, one in self.coefficients.items():
            value, low, high = (
                None if end is None else math.exp(end) for end in (one.value, one.low, one.high)
            )
            made[label] = replace(one, value=value, low=low, high=high)
        return made

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
        made = cls(str(document["outcome"]), columns, integers, noise, float(document["level"]))
        if 2 * len(made.design) != len(integers):
            raise ValueError("not a regression")
        return made
