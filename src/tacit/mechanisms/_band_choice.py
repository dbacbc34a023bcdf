"""The band choice: independent or correlated noise, by the predicted error of totals at equal privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.exact import Number, count, rational
from tacit.mechanisms._bands import band_coefficients, coefficient_norm, totals_error
from tacit.mechanisms._mechanism import check_delta, exactly_one

if TYPE_CHECKING:
    from fractions import Fraction

_MOST_BANDS = 512


@dataclass(frozen=True, slots=True)
class BandChoice:
    """A number of bands and groups, and what it promises.

    Attributes
    ----------
    bands, groups
        For `BandedSteps`; one band in one group is `SampledSteps`.
    multiple
        The noise in multiples of what one sample of a unit moves.
    error
        The predicted root mean square error of totals, in clips.
    ratio
        This error over that of independent noise on Poisson samples, at the same promise (for a promise of
        `rho`, without samples).
    """

    bands: int
    groups: int
    multiple: float
    error: float
    ratio: float


def choose_bands(
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    rate: Number,
    steps: int,
    sampled: bool = True,
    most_bands: int = _MOST_BANDS,
) -> BandChoice:
    """Return the number of bands whose running totals have the smallest predicted error at equal privacy.

    The error is that of the totals of the steps, which plain gradient descent follows; it is computed from
    public numbers alone. Of several choices within 2 % of the smallest error, the one with the fewest bands
    is returned, because each band needs memory.

    Parameters
    ----------
    epsilon, delta, rho
        The promise; `rho` only without sampling.
    rate, steps
        How often a unit is sampled in a step, and how many steps there are.
    sampled
        False where no unit can be sampled at random: then a unit is in every (1 / rate)-th step.
    most_bands
        How many past sums there is memory for, and one.

    Examples
    --------
    >>> one_epoch = choose_bands(epsilon=1, delta=1e-6, rate=1 / 256, steps=256)
    >>> one_epoch.bands, round(one_epoch.ratio, 2)
    (8, 0.62)
    >>> choose_bands(epsilon=1, delta=1e-6, rate=64 / 256, steps=256).bands
    1
    """
    share, n = rational("rate", rate), count("steps", steps, zero=False)
    most = max(1, int(1 / share))

    def error(bands: int, groups: int, together: Number) -> tuple[float, float]:
        multiple = float(noise_multiple(epsilon, delta, rho, rate=together, steps=-(-n // groups)))
        c = band_coefficients(n, bands)
        return multiple, multiple * coefficient_norm(c) * totals_error(c, n)

    start = (1, 1, share) if rho is None else (1, most, 1)
    multiple, independent = error(*start)
    tried = [BandChoice(1, 1, multiple, independent, 1.0)] if sampled else []
    bands = 2 if sampled else 1
    while bands <= min(most, n, count("most_bands", most_bands, zero=False)):
        groups = bands if sampled else most
        multiple, predicted = error(bands, groups, groups * share if sampled else 1)
        tried.append(BandChoice(bands, groups, multiple, predicted, predicted / independent))
        if len(tried) > 3 and min(one.error for one in tried[:-2]) < 0.95 * min(tried[-2].error, predicted):
            break  # the error rises again
        bands *= 2
    smallest = min(one.error for one in tried)
    return next(one for one in tried if one.error <= smallest / 0.98)


def noise_multiple(
    epsilon: Number | None, delta: Number | None, rho: Number | None, *, rate: Number, steps: int
) -> Fraction:
    """Return the smallest sigma, in multiples of the sensitivity, with which steps keep a promise."""
    from tacit.accounting import Budget, sigma_for

    check_delta(exactly_one(epsilon=epsilon, rho=rho), delta)
    target = Budget(rho=rho) if epsilon is None else Budget(epsilon=epsilon, delta=delta)  # type: ignore[arg-type]
    return rational("sigma", sigma_for(target, sensitivity=1, queries=steps, q=rate))
