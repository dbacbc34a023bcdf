"""A linear regression as a release holds it: the noisy integers, and every number that is read off them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.algebra import MomentProducts, PartProducts
from tacit.errors import bad_parameter
from tacit.fixes import Choose, Set
from tacit.inference._estimate import NOISE, NOISE_AND_SAMPLING, Estimate, percent_words
from tacit.inference._regression import coefficient_sets, moments_of, part_moments, product_moments
from tacit.mechanisms import LinearNoise, linear_half_width
from tacit.parameters import Choice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.core import JSON

_SPREAD = 1 / 9  # the variance of a scaled column that plans expect: a third of half its range, squared
_SEEN = 3.0  # standard deviations of noise by which a number must be clear of zero
_METHOD = "least squares on noisy moments, Fieller set, errors of equal variance"


@dataclass(frozen=True, slots=True)
class MeasuredColumn:
    """A column of a regression: a number between public bounds, or one with two public values.

    Parameters
    ----------
    name
        The column.
    low, high
        Its bounds, or its two values.
    two
        Whether it has two values only.
    key, against
        Of text: the value that counts as 1, and the one that counts as 0.
    """

    name: str
    low: float
    high: float
    two: bool = False
    key: str = ""
    against: str = ""

    @property
    def label(self) -> str:
        """The coefficient's name."""
        return f"{self.name} {self.key}" if self.key else self.name

    @property
    def words(self) -> str:
        """What is public about the column."""
        if self.key:
            return f"{self.name}: {self.key} against {self.against}"
        joined = "or" if self.two else "to"
        return f"{self.name}: {self.low:g} {joined} {self.high:g}"

    @property
    def half(self) -> float:
        """Half its range."""
        return (self.high - self.low) / 2

    @property
    def middle(self) -> float:
        """The middle of its range."""
        return (self.high + self.low) / 2


@dataclass(frozen=True, eq=False)
class LinearFit:
    """The noisy moments of the columns of a linear regression; the last column is the outcome."""

    fit: ClassVar[str] = "linear"
    columns: tuple[MeasuredColumn, ...]
    #: The parts of each column, or of sums of products the largest value of 1 and of each column.
    shape: tuple[int, ...]
    weight: int
    integers: tuple[int, ...]
    noise: LinearNoise
    level: float

    @classmethod
    def measured(
        cls,
        columns: tuple[MeasuredColumn, ...],
        statistic: PartProducts | MomentProducts,
        integers: list[int],
        noise: LinearNoise,
        level: float,
    ) -> Self:
        """Read the noisy integers of a statistic; bounds are those of the grids."""
        on_grid = tuple(
            one if one.two else MeasuredColumn(one.name, float(g.lo * g.step), float(g.hi * g.step))
            for one, g in zip(columns, statistic.grids, strict=True)
        )
        if isinstance(statistic, PartProducts):
            return cls(on_grid, statistic.shape, statistic.weight, tuple(integers), noise, level)
        return cls(on_grid, statistic.bounds, 0, tuple(integers), noise, level)

    @property
    def outcome(self) -> str:
        """The column that is explained."""
        return self.columns[-1].name

    @cached_property
    def combinations(self) -> NDArray[np.float64]:
        """The moments of (1, scaled columns), in rows, as combinations of the integers."""
        if self.weight:
            return part_moments(self.shape) / float(self.weight)
        bound = np.array(self.shape, dtype=np.float64)
        return product_moments(len(self.shape)) / np.multiply.outer(bound, bound)[:, :, None]

    @cached_property
    def moments(self) -> NDArray[np.float64]:
        """The noisy moments, in rows."""
        return np.asarray(moments_of(self.combinations, self._numbers)[0])

    @property
    def _numbers(self) -> NDArray[np.float64]:
        return np.array([self.integers], dtype=np.float64)

    @property
    def rows_needed(self) -> int:
        """About how many rows leave an interval, where columns spread over a good part of their bounds."""
        blur = self._spread(self.combinations[1, 1])
        return max(1, math.ceil(_SEEN * blur / _SPREAD))

    def _spread(self, weights: NDArray[np.float64]) -> float:
        """Return the standard deviation of the noise of a combination."""
        return float(math.sqrt(2) * self.noise.scale * np.sqrt((weights**2).sum()))

    def _reach(self, weights: NDArray[np.float64]) -> float:
        """Return the half-width of the noise of a combination."""
        terms = np.multiply.outer(weights, np.array(self.noise.laplace)).ravel()
        normal = self.noise.normal * np.sqrt((weights**2).sum())
        return float(linear_half_width(1 - self.level, terms[None], np.array([normal]))[0])

    @property
    def rows(self) -> Estimate:
        """How many rows have a value in every column."""
        n, reach = float(self.moments[0, 0]), self._reach(self.combinations[0, 0])
        said = f"About {max(n, 0):,.0f} rows have a value in every column."
        return Estimate(n, max(n - reach, 0.0), n + reach, self.level, NOISE, "noisy count", None, said)

    @cached_property
    def coefficients(self) -> dict[str, Estimate]:
        """Each coefficient by its label, with an interval for noise and sampling."""
        outcome = self.columns[-1]
        found = {}
        for index, one in enumerate(self.columns[:-1], start=1):
            sets = coefficient_sets(self.combinations, self._numbers, self.noise, index, 1 - self.level)
            scale = outcome.half / one.half
            value, low, high = (float(end[0]) * scale for end in (sets.value, sets.low, sets.high))
            said = self._sentence(one, value, low, high)
            if math.isinf(low):
                found[one.label] = Estimate(
                    None, None, None, self.level, NOISE_AND_SAMPLING, _METHOD, None, said
                )
                continue
            p = float(sets.p_value[0])
            found[one.label] = Estimate(value, low, high, self.level, NOISE_AND_SAMPLING, _METHOD, p, said)
        return found

    def _sentence(self, one: MeasuredColumn, value: float, low: float, high: float) -> str:
        """Say what a coefficient means."""
        outcome = self.columns[-1].name
        others = [c.name for c in self.columns[:-1] if c is not one]
        equal = f", with {_listed(others)} held equal," if others else ""
        if math.isinf(low):
            n = max(float(self.moments[0, 0]), 1.0)
            factor = max(2.0, self.rows_needed / n)
            return (
                f"The noise hides how {outcome} changes with {one.name}: every value is possible. "
                f"About {max(self.rows_needed, math.ceil(factor * n)):,} rows, or {factor:.2g} times the "
                "epsilon, would give an interval."
            )
        step = f"for {one.key} than for {one.against}" if one.key else f"for each unit of {one.name}"
        if one.two and not one.key and (one.low, one.high) == (0.0, 1.0):
            step = f"where {one.name} is 1 than where it is 0"
        word, size, ends = ("higher", value, (low, high)) if value >= 0 else ("lower", -value, (-high, -low))
        return (
            f"{outcome} was {size:.3g} {word} {step}{equal} ({percent_words(self.level)} confidence interval "
            f"{ends[0]:.3g} to {ends[1]:.3g}, for privacy noise and chance in who was included)."
        ).replace(", (", " (")

    @property
    def intercept(self) -> Estimate:
        """The outcome where every column is 0, or has its first value."""
        return self.predict(**{one.name: one.against or 0 for one in self.columns[:-1]})

    def predict(self, **at: Any) -> Estimate:
        """Return the mean outcome at these values of the columns, on the fitted plane.

        Parameters
        ----------
        at
            A value for each column that explains.
        """
        place = np.array([self._scaled(one, at) for one in self.columns[:-1]])
        for name in at:
            if name not in {one.name for one in self.columns[:-1]}:
                names = tuple(one.name for one in self.columns[:-1])
                raise bad_parameter(
                    "a column", "one that explains the outcome", name, fix=Choose(names, given=name)
                )
        outcome, q = self.columns[-1], len(self.columns) + 1
        shift = np.eye(q)
        shift[1 : q - 1, 0] = -place
        moved = np.einsum("ab,bck,dc->adk", shift, self.combinations, shift, optimize=True)
        sets = coefficient_sets(moved, self._numbers, self.noise, 0, 1 - self.level)
        value, low, high = (
            outcome.middle + outcome.half * float(end[0]) for end in (sets.value, sets.low, sets.high)
        )
        where = ", ".join(f"{name} = {value}" for name, value in at.items())
        if math.isinf(low) or math.isnan(value):
            said = f"The noise hides the mean of {outcome.name} at {where}."
            return Estimate(None, None, None, self.level, NOISE_AND_SAMPLING, _METHOD, None, said)
        said = (
            f"The mean of {outcome.name} at {where} is {value:.4g} ({percent_words(self.level)} confidence "
            f"interval {low:.4g} to {high:.4g}, for privacy noise and chance in who was included)."
        )
        return Estimate(value, low, high, self.level, NOISE_AND_SAMPLING, _METHOD, None, said)

    def _scaled(self, one: MeasuredColumn, at: dict[str, Any]) -> float:
        """Return a value of a column on the scale from -1 to 1."""
        if one.name not in at:
            raise bad_parameter(
                "predict", f"given a value of {one.name}", at, fix=Set(**{one.name: one.middle})
            )
        given = at[one.name]
        if one.key:
            if given not in (one.key, one.against):
                names = (one.key, one.against)
                raise bad_parameter(
                    one.name, "one of its two values", given, fix=Choose(names, given=str(given))
                )
            return 1.0 if given == one.key else -1.0
        return (float(given) - one.middle) / one.half

    @cached_property
    def _residual(self) -> tuple[float, float, NDArray[np.float64]] | None:
        """Return the residual and the total sum of squares and the residual's weights, if they are seen."""
        m, q = self.moments, len(self.columns) + 1
        inner = m[: q - 1, : q - 1]
        if np.linalg.eigvalsh(inner)[0] <= _SEEN * self._spread(self.combinations[0, 1]):
            return None
        v = np.r_[-np.linalg.solve(inner, m[: q - 1, q - 1]), 1.0]
        weights = np.einsum("a,abk,b->k", v, self.combinations, v)
        return float(v @ m @ v), float(m[-1, -1] - m[0, -1] ** 2 / m[0, 0]), weights

    @property
    def residual_spread(self) -> Estimate:
        """The standard deviation of what the columns leave unexplained; its interval is for the noise."""
        known = self._residual
        if known is None:
            said = "The noise hides how much the columns leave unexplained."
            return Estimate(None, None, None, self.level, NOISE, "noisy moments", None, said)
        rest, _, weights = known
        free = max(float(self.moments[0, 0]) - len(self.columns), 1.0)
        reach, half = self._reach(weights), self.columns[-1].half
        ends = [half * math.sqrt(max(r, 0.0) / free) for r in (rest, rest - reach, rest + reach)]
        value, low, high = ends
        name = self.columns[-1].name
        said = f"Around the fitted values, {name} varies with a standard deviation of {value:.3g}."
        return Estimate(value, low, high, self.level, NOISE, "noisy moments", None, said)

    @property
    def r_squared(self) -> Estimate:
        """The part of the outcome's variance that the columns explain; its interval is for the noise."""
        known = self._residual
        around = self._reach(self.combinations[-1, -1]) if known is not None else 0.0
        if known is None or known[1] <= around:
            said = "The noise hides how much the columns explain."
            return Estimate(None, None, None, self.level, NOISE, "noisy moments", None, said)
        rest, total, weights = known
        left = rest / total
        mean = np.zeros(len(self.columns) + 1)
        mean[0], mean[-1] = -self.moments[0, -1] / self.moments[0, 0], 1.0
        spread = np.einsum("a,abk,b->k", mean, self.combinations, mean)
        reach = self._reach(weights - left * spread) / total
        value, low, high = (min(max(1 - x, 0.0), 1.0) for x in (left, left + reach, left - reach))
        said = f"The columns explain {100 * value:.3g} % of the variance of {self.columns[-1].name}."
        return Estimate(value, low, high, self.level, NOISE, "noisy moments", None, said)

    def correlation(self, first: str, second: str) -> Estimate:
        """Return Pearson's correlation of two columns, for noise and sampling (Fisher's z)."""
        names = [one.name for one in self.columns]
        for name in (first, second):
            Choice(tuple(names)).read("a column", name)
        a, b = names.index(first) + 1, names.index(second) + 1
        value, low, high = _correlation(self, a, b)
        method = "Fisher's z with noise"
        if math.isnan(value):
            times = max(1.1, self.rows_needed / max(float(self.moments[0, 0]), 1.0))
            said = (
                f"The noise hides how {first} and {second} go together. About {self.rows_needed:,} rows or "
                f"{times:.2g} times the epsilon would be enough if the values cover a good part of the "
                "bounds; narrower bounds help."
            )
            return Estimate(None, None, None, self.level, NOISE_AND_SAMPLING, method, None, said)
        said = (
            f"The correlation of {first} and {second} is {value:.3g} ({percent_words(self.level)} confidence "
            f"interval {low:.3g} to {high:.3g}, for privacy noise and chance in who was included)."
        )
        return Estimate(value, low, high, self.level, NOISE_AND_SAMPLING, method, None, said)

    def to_json(self) -> dict[str, JSON]:
        """Return what was measured: noisy integers and public facts."""
        return {
            "fit": self.fit,
            "columns": [asdict(one) for one in self.columns],
            "shape": list(self.shape),
            "weight": str(self.weight),
            "integers": [str(n) for n in self.integers],
            "noise": {"laplace": list(self.noise.laplace), "normal": self.noise.normal},
            "level": self.level,
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read it back."""
        columns = tuple(MeasuredColumn(**one) for one in document["columns"])
        noise = LinearNoise(
            tuple(map(float, document["noise"]["laplace"])), float(document["noise"]["normal"])
        )
        made = cls(
            columns, tuple(map(int, document["shape"])), int(document["weight"]),
            tuple(map(int, document["integers"])), noise, float(document["level"]),
        )  # fmt: skip
        pairs = len(made.shape) * (len(made.shape) + 1) // 2
        size = math.prod(made.shape) if made.weight else pairs
        if size != len(made.integers) or (made.weight and not set(made.shape) <= {2, 3}):
            raise ValueError("not a regression")
        return made


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _correlation(fit: LinearFit, a: int, b: int) -> tuple[float, float, float]:
    """Return the correlation of two variables and its interval; NaN where noise hides a spread."""
    m, n = fit.moments, float(fit.moments[0, 0])
    if n <= max(4.0, _SEEN * fit._spread(fit.combinations[0, 0])):  # noqa: SLF001 - its own reading
        return math.nan, math.nan, math.nan
    centred = {}
    for i, j in ((a, a), (b, b), (a, b)):
        left, right = np.zeros(len(m)), np.zeros(len(m))
        left[i], right[j] = 1.0, 1.0
        left[0], right[0] = left[0] - m[0, i] / n, right[0] - m[0, j] / n
        weights = np.einsum("a,abk,b->k", left, fit.combinations, right)
        centred[i, j] = float(left @ m @ right), weights
    (xx, gx), (yy, gy), (xy, gxy) = centred[a, a], centred[b, b], centred[a, b]
    seen = _SEEN * max(fit._spread(gx), fit._spread(gy))  # noqa: SLF001
    if min(xx, yy) <= seen:
        return math.nan, math.nan, math.nan
    r = min(max(xy / math.sqrt(xx * yy), -0.9999), 0.9999)
    gradient = gxy / math.sqrt(xx * yy) - r / 2 * (gx / xx + gy / yy)
    noise = fit._spread(gradient) / (1 - r * r)  # noqa: SLF001
    from statistics import NormalDist

    z = NormalDist().inv_cdf((1 + fit.level) / 2)
    half = z * math.sqrt(1 / (n - 3) + noise**2)
    return r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)
