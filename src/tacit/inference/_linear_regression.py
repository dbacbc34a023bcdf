"""Linear regression from noisy moments: estimates, and sets of slopes that noise and sampling allow.

A release holds the noisy integers; every number is read off them. The columns are scaled to u in [-1, 1]. The
moments of z = (1, x_1 .. x_p, y) are linear in the noisy integers, so every combination w'Mv of them is, and
the law of its noise is known for every n.

For the coefficient of column j, let the others be the best ones given b_j = b. Then T(b) = w'M v(b), with
w = x_j less its regression on the others and v(b) = y less what is fitted, has mean 0 at the true b, up to
products of two errors. The set holds every b at which T(b) is within its own noise and sampling error
(Fieller 1954); both are quadratic in b, so the set is an interval, or unbounded where the noise hides the
spread of x_j (docs/proofs/regression.md). Errors are taken to have one variance.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property, reduce
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.algebra import MomentProducts, PartProducts
from tacit.errors import bad_parameter
from tacit.fixes import Choose, Set
from tacit.inference._estimate import COVERED, NOISE, NOISE_AND_SAMPLING, Estimate
from tacit.mechanisms import LinearNoise, linear_half_width, linear_tail
from tacit.parameters import Choice
from tacit.report import short_percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON

    _Array = NDArray[np.float64]


_PARTS = {
    2: np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, 1.0]]),
    3: np.array([[1.0, 1.0, 1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 1.0]]),
}  # 1, u and u^2 on the parts of a column
_CLEAR = 1.5  # the least eigenvalue of the others' moments, in standard deviations of a moment's noise
_SHOWN_DEVIATIONS = (
    3.0  # what is left of x_j, in standard deviations of its noise: less is not shown as an interval
)
_LEAST_ROWS = 1.0
_SPREAD = 1 / 9  # the variance of a scaled column that plans expect: a third of half its range, squared
_CLEAR_OF_ZERO = 3.0  # standard deviations of noise by which a number must be clear of zero
_METHOD = "least squares on noisy moments, Fieller set, errors of equal variance"


@dataclass(frozen=True, slots=True)
class CoefficientSets:
    """A coefficient in many releases: its value, interval and p-value."""

    value: _Array
    low: _Array
    high: _Array
    p_value: _Array

    @property
    def bounded(self) -> NDArray[np.bool_]:
        """Where the noise leaves an interval."""
        return np.isfinite(self.low) & np.isfinite(self.high)


def part_moments(shape: Sequence[int]) -> _Array:
    """Return the moments of (1, columns) as combinations of the products of parts.

    Examples
    --------
    >>> m = part_moments((2, 3))  # a yes/no column and a number: six integers
    >>> m.shape, m[1, 2].tolist()
    ((3, 3, 6), [1.0, -0.0, -1.0, -1.0, 0.0, 1.0])
    """
    q = len(shape) + 1
    moments = np.empty((q, q, int(np.prod(shape))))
    for a in range(q):
        for b in range(q):
            powers = [(place == a) + (place == b) for place in range(1, q)]
            moments[a, b] = reduce(
                np.kron, [_PARTS[n][power] for n, power in zip(shape, powers, strict=True)]
            )
    return moments


def product_moments(q: int) -> _Array:
    """Return the moments of q variables as combinations of their q(q+1)/2 sums of products.

    Examples
    --------
    >>> product_moments(2)[0, 1].tolist()
    [0.0, 1.0, 0.0]
    """
    moments = np.zeros((q, q, q * (q + 1) // 2))
    for k, (a, b) in enumerate(combinations_with_replacement(range(q), 2)):
        moments[a, b, k] = moments[b, a, k] = 1.0
    return moments


def moments_of(combinations: _Array, numbers: _Array) -> _Array:
    """Return the moment matrix of each line of noisy numbers, which are in rows."""
    return np.asarray(np.einsum("abk,rk->rab", combinations, numbers, optimize=True))


def coefficient_sets(
    combinations: _Array, numbers: _Array, noise: LinearNoise, index: int, failing: float
) -> CoefficientSets:
    """Return one coefficient of the last variable on all others, for each line of noisy numbers.

    Guarantee: free post-processing. The interval covers the coefficient in the population with about
    1 - failing, for noise and sampling together; it is unbounded where the noise hides the answer.

    Parameters
    ----------
    combinations
        The moments of the variables as combinations of the numbers: of `part_moments` or `product_moments`,
        or of these after a linear change of the variables.
    numbers
        The noisy numbers, in rows; one line for each release.
    noise
        The noise on each of them, in rows.
    index
        Which variable's coefficient.
    failing
        How often the interval may miss.
    """
    m = moments_of(combinations, numbers)
    q = m.shape[-1]
    others = [a for a in range(q - 1) if a != index]
    w, v0, clear = _directions(m, others, index, noise, combinations)
    t0, h = _form(w, m, v0), _form(w, m, w)
    usable = clear & (h > 0)
    h = np.where(usable, h, 1.0)
    value = t0 / h
    rows = np.maximum(m[:, 0, 0], _LEAST_ROWS)
    free = np.maximum(rows - (q - 1), _LEAST_ROWS)
    rest = np.maximum(_form(v0, m, v0) - t0 * value, 0.0)
    g0, g1 = (np.einsum("ra,abk,rb->rk", w, combinations, v, optimize=True) for v in (v0, w))
    law = _StatisticLaw(noise, free, h, rest)
    factor, spread = law.critical(g0 - value[:, None] * g1, failing)
    k2, tau2 = (factor / spread) ** 2, 2 * noise.scale**2
    a = h * h - k2 * (h * h / free + tau2 * (g1**2).sum(axis=1))
    c = h * t0 - k2 * (h * t0 / free + tau2 * (g0 * g1).sum(axis=1))
    d = t0**2 - k2 * (h * (rest + t0 * value) / free + tau2 * (g0**2).sum(axis=1))
    visible = h > _SHOWN_DEVIATIONS * np.sqrt(tau2 * (g1**2).sum(axis=1))
    bounded = usable & visible & (a > 0)
    root = np.sqrt(np.maximum(c * c - a * d, 0.0))
    safe = np.where(bounded, a, 1.0)
    p = linear_tail(t0, *law.terms(g0, rest + t0 * value))
    return CoefficientSets(
        np.where(usable, value, np.nan),
        np.where(bounded, (c - root) / safe, -np.inf),
        np.where(bounded, (c + root) / safe, np.inf),
        np.where(usable, p, 1.0),
    )


@dataclass(frozen=True, slots=True)
class _StatisticLaw:
    """The law of T: normal sampling error and the noise of the numbers with their weights."""

    noise: LinearNoise
    free: _Array
    h: _Array
    rest: _Array

    def terms(self, g: _Array, rest: _Array) -> tuple[_Array, _Array]:
        """Return the Laplace weights and the normal spread of T, where so much of y is left."""
        laplace = (g[:, :, None] * np.array(self.noise.laplace)).reshape(len(g), -1)
        normal = self.noise.normal**2 * (g**2).sum(axis=1) + self.h * rest / self.free
        return laplace, np.sqrt(normal)

    def critical(self, g: _Array, failing: float) -> tuple[_Array, _Array]:
        """Return the half-width of T at the estimate, and its standard deviation.

        The part that is sampling error is widened to Student's t, because its variance is estimated.
        """
        from scipy.special import stdtrit

        laplace, normal = self.terms(g, self.rest)
        noise = 2 * self.noise.scale**2 * (g**2).sum(axis=1)
        sampled = self.h * self.rest / self.free
        spread = np.sqrt(np.maximum(noise + sampled, 1e-300))
        wider = stdtrit(self.free, 1 - failing / 2) / stdtrit(1e9, 1 - failing / 2)
        share = sampled / spread**2
        return linear_half_width(failing, laplace, normal) * (1 + share * (wider - 1)), spread


def _directions(
    m: _Array, others: list[int], index: int, noise: LinearNoise, combinations: _Array
) -> tuple[_Array, _Array, NDArray[np.bool_]]:
    """Return x_j less the others, y less the others, and where the others' moments are clear of the noise."""
    r, q = m.shape[:2]
    inner = m[:, others][:, :, others]
    tau = np.sqrt(2.0) * noise.scale
    blur = tau * np.sqrt((combinations[others][:, others] ** 2).sum(axis=-1).max(initial=0.0))
    clear = np.linalg.eigvalsh(inner)[:, 0] > _CLEAR * blur
    inner = np.where(clear[:, None, None], inner, np.eye(len(others)))
    sides = np.stack([m[:, others, index], m[:, others, q - 1]], axis=-1)
    solved = np.linalg.solve(inner, sides)
    w, v0 = np.zeros((r, q)), np.zeros((r, q))
    w[:, index], v0[:, q - 1] = 1.0, 1.0
    w[:, others], v0[:, others] = -solved[:, :, 0], -solved[:, :, 1]
    return w, v0, clear


def _form(a: _Array, m: _Array, b: _Array) -> _Array:
    return np.asarray(np.einsum("ra,rab,rb->r", a, m, b, optimize=True))


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
    #: What one row adds to the integers of its parts; 0 for sums of products.
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
        return max(1, math.ceil(_CLEAR_OF_ZERO * blur / _SPREAD))

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
        sentence = f"About {max(n, 0):,.0f} rows have a value in every column."
        return Estimate(n, max(n - reach, 0.0), n + reach, self.level, NOISE, "noisy count", None, sentence)

    @cached_property
    def coefficients(self) -> dict[str, Estimate]:
        """Each coefficient by its label, with an interval for noise and sampling."""
        outcome = self.columns[-1]
        estimates = {}
        for index, column in enumerate(self.columns[:-1], start=1):
            sets = coefficient_sets(self.combinations, self._numbers, self.noise, index, 1 - self.level)
            scale = outcome.half / column.half
            value, low, high = (float(end[0]) * scale for end in (sets.value, sets.low, sets.high))
            sentence = self._sentence(column, value, low, high)
            if math.isinf(low):
                estimates[column.label] = Estimate(
                    None, None, None, self.level, NOISE_AND_SAMPLING, _METHOD, None, sentence
                )
                continue
            p = float(sets.p_value[0])
            estimates[column.label] = Estimate(
                value, low, high, self.level, NOISE_AND_SAMPLING, _METHOD, p, sentence
            )
        return estimates

    def _sentence(self, column: MeasuredColumn, value: float, low: float, high: float) -> str:
        """Say what a coefficient means."""
        outcome = self.columns[-1].name
        others = [c.name for c in self.columns[:-1] if c is not column]
        equal = f", with {_listed(others)} held equal," if others else ""
        if math.isinf(low):
            n = max(float(self.moments[0, 0]), 1.0)
            factor = max(2.0, self.rows_needed / n)
            return (
                f"The noise hides how {outcome} changes with {column.name}: every value is possible. "
                f"About {max(self.rows_needed, math.ceil(factor * n)):,} rows, or {factor:.2g} times the "
                "epsilon, would give an interval."
            )
        step = (
            f"for {column.key} than for {column.against}" if column.key else f"for each unit of {column.name}"
        )
        if column.two and not column.key and (column.low, column.high) == (0.0, 1.0):
            step = f"where {column.name} is 1 than where it is 0"
        word, size, ends = ("higher", value, (low, high)) if value >= 0 else ("lower", -value, (-high, -low))
        return (
            f"{outcome} was {size:.3g} {word} {step}{equal} ({short_percent(self.level)} confidence interval "
            f"{ends[0]:.3g} to {ends[1]:.3g}, {COVERED})."
        ).replace(", (", " (")  # no comma before the interval

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
        point = np.array([self._scaled(one, at) for one in self.columns[:-1]])
        for name in at:
            if name not in {one.name for one in self.columns[:-1]}:
                names = tuple(one.name for one in self.columns[:-1])
                raise bad_parameter(
                    "a column", "one that explains the outcome", name, fix=Choose(names, given=name)
                )
        outcome, q = self.columns[-1], len(self.columns) + 1
        shift = np.eye(q)
        shift[1 : q - 1, 0] = -point
        shifted = np.einsum("ab,bck,dc->adk", shift, self.combinations, shift, optimize=True)
        sets = coefficient_sets(shifted, self._numbers, self.noise, 0, 1 - self.level)
        value, low, high = (
            outcome.middle + outcome.half * float(end[0]) for end in (sets.value, sets.low, sets.high)
        )
        where = ", ".join(f"{name} = {value}" for name, value in at.items())
        if math.isinf(low) or math.isnan(value):
            sentence = f"The noise hides the mean of {outcome.name} at {where}."
            return Estimate(None, None, None, self.level, NOISE_AND_SAMPLING, _METHOD, None, sentence)
        sentence = (
            f"The mean of {outcome.name} at {where} is {value:.4g} ({short_percent(self.level)} confidence "
            f"interval {low:.4g} to {high:.4g}, {COVERED})."
        )
        return Estimate(value, low, high, self.level, NOISE_AND_SAMPLING, _METHOD, None, sentence)

    def _scaled(self, column: MeasuredColumn, at: dict[str, Any]) -> float:
        """Return a value of a column on the scale from -1 to 1."""
        if column.name not in at:
            raise bad_parameter(
                "predict", f"given a value of {column.name}", at, fix=Set(**{column.name: column.middle})
            )
        number = at[column.name]
        if column.key:
            if number not in (column.key, column.against):
                names = (column.key, column.against)
                raise bad_parameter(
                    column.name, "one of its two values", number, fix=Choose(names, given=str(number))
                )
            return 1.0 if number == column.key else -1.0
        return (float(number) - column.middle) / column.half

    @cached_property
    def _residual(self) -> tuple[float, float, NDArray[np.float64]] | None:
        """Return the residual and the total sum of squares and the residual's weights, if they are seen."""
        m, q = self.moments, len(self.columns) + 1
        inner = m[: q - 1, : q - 1]
        if np.linalg.eigvalsh(inner)[0] <= _CLEAR_OF_ZERO * self._spread(self.combinations[0, 1]):
            return None
        v = np.r_[-np.linalg.solve(inner, m[: q - 1, q - 1]), 1.0]
        weights = np.einsum("a,abk,b->k", v, self.combinations, v)
        return float(v @ m @ v), float(m[-1, -1] - m[0, -1] ** 2 / m[0, 0]), weights

    @property
    def residual_spread(self) -> Estimate:
        """The standard deviation of what the columns leave unexplained; its interval is for the noise."""
        residual = self._residual
        if residual is None:
            sentence = "The noise hides how much the columns leave unexplained."
            return Estimate(None, None, None, self.level, NOISE, "noisy moments", None, sentence)
        rest, _, weights = residual
        free = max(float(self.moments[0, 0]) - len(self.columns), 1.0)
        reach, half = self._reach(weights), self.columns[-1].half
        ends = [half * math.sqrt(max(r, 0.0) / free) for r in (rest, rest - reach, rest + reach)]
        value, low, high = ends
        name = self.columns[-1].name
        sentence = f"Around the fitted values, {name} varies with a standard deviation of {value:.3g}."
        return Estimate(value, low, high, self.level, NOISE, "noisy moments", None, sentence)

    @property
    def r_squared(self) -> Estimate:
        """The part of the outcome's variance that the columns explain; its interval is for the noise."""
        residual = self._residual
        around = self._reach(self.combinations[-1, -1]) if residual is not None else 0.0
        if residual is None or residual[1] <= around:
            sentence = "The noise hides how much the columns explain."
            return Estimate(None, None, None, self.level, NOISE, "noisy moments", None, sentence)
        rest, total, weights = residual
        unexplained = rest / total
        mean = np.zeros(len(self.columns) + 1)
        mean[0], mean[-1] = -self.moments[0, -1] / self.moments[0, 0], 1.0
        spread = np.einsum("a,abk,b->k", mean, self.combinations, mean)
        reach = self._reach(weights - unexplained * spread) / total
        value, low, high = (
            min(max(1 - x, 0.0), 1.0) for x in (unexplained, unexplained + reach, unexplained - reach)
        )
        sentence = (
            f"The columns explain {short_percent(value, 3)} of the variance of {self.columns[-1].name}."
        )
        return Estimate(value, low, high, self.level, NOISE, "noisy moments", None, sentence)

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
            sentence = (
                f"The noise hides how {first} and {second} go together. About {self.rows_needed:,} rows or "
                f"{times:.2g} times the epsilon would be enough if the values cover a good part of the "
                "bounds; narrower bounds help."
            )
            return Estimate(None, None, None, self.level, NOISE_AND_SAMPLING, method, None, sentence)
        sentence = (
            f"The correlation of {first} and {second} is {value:.3g} ({short_percent(self.level)} confidence "
            f"interval {low:.3g} to {high:.3g}, {COVERED})."
        )
        return Estimate(value, low, high, self.level, NOISE_AND_SAMPLING, method, None, sentence)

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
        fit = cls(
            columns, tuple(map(int, document["shape"])), int(document["weight"]),
            tuple(map(int, document["integers"])), noise, float(document["level"]),
        )  # fmt: skip
        pairs = len(fit.shape) * (len(fit.shape) + 1) // 2
        size = math.prod(fit.shape) if fit.weight else pairs
        if size != len(fit.integers) or (fit.weight and not set(fit.shape) <= {2, 3}):
            raise ValueError("not a regression")
        return fit


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _correlation(fit: LinearFit, a: int, b: int) -> tuple[float, float, float]:
    """Return the correlation of two variables and its interval; NaN where noise hides a spread."""
    m, n = fit.moments, float(fit.moments[0, 0])
    if n <= max(4.0, _CLEAR_OF_ZERO * fit._spread(fit.combinations[0, 0])):  # noqa: SLF001 - its own reading
        return math.nan, math.nan, math.nan
    centred = {}
    for i, j in ((a, a), (b, b), (a, b)):
        left, right = np.zeros(len(m)), np.zeros(len(m))
        left[i], right[j] = 1.0, 1.0
        left[0], right[0] = left[0] - m[0, i] / n, right[0] - m[0, j] / n
        weights = np.einsum("a,abk,b->k", left, fit.combinations, right)
        centred[i, j] = float(left @ m @ right), weights
    (xx, gx), (yy, gy), (xy, gxy) = centred[a, a], centred[b, b], centred[a, b]
    clear = _CLEAR_OF_ZERO * max(fit._spread(gx), fit._spread(gy))  # noqa: SLF001
    if min(xx, yy) <= clear:
        return math.nan, math.nan, math.nan
    r = min(max(xy / math.sqrt(xx * yy), -0.9999), 0.9999)
    gradient = gxy / math.sqrt(xx * yy) - r / 2 * (gx / xx + gy / yy)
    noise = fit._spread(gradient) / (1 - r * r)  # noqa: SLF001
    from statistics import NormalDist

    z = NormalDist().inv_cdf((1 + fit.level) / 2)
    half = z * math.sqrt(1 / (n - 3) + noise**2)
    return r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)
