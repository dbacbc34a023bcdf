"""Laplace and geometric noise on the integers, drawn exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from tacit.noise import _geometric
from tacit.noise._bulk import strips
from tacit.noise._parameters import Sampler, read

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from tacit.exact import Number
    from tacit.noise._parameters import DrawShape, NumberOrArray


def _bulk_geometric(scale: Fraction, count: int) -> NDArray[np.int64]:
    return strips(scale.numerator, scale.denominator, 1, signed=False).draw(count, "geometric noise")


def _bulk_laplace(scale: Fraction, count: int) -> NDArray[np.int64]:
    return strips(scale.numerator, scale.denominator, 1, signed=True).draw(count, "discrete Laplace noise")


_GEOMETRIC = Sampler("geometric noise", _geometric.geometric_one, _bulk_geometric, _geometric.geometric_many)
_LAPLACE = Sampler("discrete Laplace noise", _geometric.laplace_one, _bulk_laplace, _geometric.laplace_many)


@overload
def geometric(scale: Number, size: None = None) -> int: ...
@overload
def geometric(scale: NumberOrArray, size: int | tuple[int, ...]) -> NDArray[np.int64]: ...
@overload
def geometric(scale: Sequence[Any] | np.ndarray[Any, Any], size: DrawShape = None) -> NDArray[np.int64]: ...
def geometric(scale: NumberOrArray, size: DrawShape = None) -> int | NDArray[np.int64]:
    """Draw integers k >= 0 with probability exactly proportional to exp(-k / scale).

    Parameters
    ----------
    scale
        A positive number up to 2^60, exact (a float at its decimal reading), or one per element.
    size
        None for one Python int of any size, or the shape of an array of 64-bit integers. A draw that does not
        fit into 64 bits is refused with code ``does-not-fit``; it never overflows.

    Examples
    --------
    >>> bool((geometric(2.5, size=1000) >= 0).all())
    True
    """
    return _GEOMETRIC.draw("scale", read("scale", scale), size)


@overload
def discrete_laplace(scale: Number, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: NumberOrArray, size: int | tuple[int, ...]) -> NDArray[np.int64]: ...
@overload
def discrete_laplace(
    scale: Sequence[Any] | np.ndarray[Any, Any], size: DrawShape = None
) -> NDArray[np.int64]: ...
def discrete_laplace(scale: NumberOrArray, size: DrawShape = None) -> int | NDArray[np.int64]:
    """Draw integers k with probability exactly proportional to exp(-|k| / scale).

    Added to an integer of sensitivity D, this noise is epsilon-private for epsilon = D / scale
    (Ghosh, Roughgarden, Sundararajan 2009).

    Parameters
    ----------
    scale
        A positive number up to 2^60, exact (a float at its decimal reading), or one per element.
    size
        None for one Python int of any size, or the shape of an array of 64-bit integers. A draw that does not
        fit into 64 bits is refused with code ``does-not-fit``; it never overflows.

    Examples
    --------
    >>> discrete_laplace(10, size=(2, 3)).shape
    (2, 3)
    >>> type(discrete_laplace(2**60))
    <class 'int'>
    """
    return _LAPLACE.draw("scale", read("scale", scale), size)
