"""Uniform noise: uniform whole numbers and random orders."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.noise import _bits
from tacit.noise._parameters import broadcast, does_not_fit, read_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.noise._parameters import DrawShape

_BLOCK = 1 << 15
_NONE = np.empty(0, np.intp)


@overload
def uniform_below(n: int, size: None = None) -> int: ...
@overload
def uniform_below(
    n: int | Sequence[int] | NDArray[Any], size: int | tuple[int, ...]
) -> NDArray[np.int64]: ...
@overload
def uniform_below(n: Sequence[int] | NDArray[Any], size: DrawShape = None) -> NDArray[np.int64]: ...
def uniform_below(n: int | Sequence[int] | NDArray[Any], size: DrawShape = None) -> int | NDArray[np.int64]:
    """Draw whole numbers from 0 to n - 1, each with probability exactly 1/n.

    Parameters
    ----------
    n
        A positive whole number, or one per element.
    size
        None for one Python int (n of any size), or the shape of an array of 64-bit integers (n up to 2^63).

    Examples
    --------
    >>> uniform_below(1)
    0
    >>> bool((uniform_below([2, 20, 200], size=(5, 3)) < [2, 20, 200]).all())
    True
    """
    if size is None and type(n) is int and n > 0:
        return one_below(n)
    shape = read_size(size)
    if isinstance(n, list | tuple | np.ndarray):
        limits = _limits(n)
        if shape is not None:
            limits = broadcast("n", limits, shape)
        return _below(np.ascontiguousarray(limits).ravel()).reshape(limits.shape)
    limit = count("n", n, zero=False)  # type: ignore[arg-type]
    if shape is None:
        return one_below(limit)
    if limit > 2**63:
        raise does_not_fit("uniform numbers")
    if limit <= 2**32:
        return _below_short(limit, math.prod(shape)).reshape(shape)
    return _below(np.full(math.prod(shape), limit, np.uint64)).reshape(shape)


def _limits(n: Sequence[int] | NDArray[Any]) -> NDArray[np.uint64]:
    items = n if isinstance(n, np.ndarray) else np.array(n, dtype=object)
    if items.dtype == object:
        integers = [count("n", item, zero=False) for item in items.flat]
        if integers and max(integers) > 2**63:
            raise does_not_fit("uniform numbers")
        return np.array(integers, np.uint64).reshape(items.shape)
    integral = items.dtype.kind in "iu"
    if not integral or (items.size and items.min() < 1):
        form = int(items.min()) if integral else items.dtype.name
        raise bad_parameter("n", "positive whole numbers", form, fix=Set(n=10))
    if items.size and int(items.max()) > 2**63:
        raise does_not_fit("uniform numbers")
    return items.astype(np.uint64)


def one_below(limit: int) -> int:
    """Draw one whole number below `limit`: as many bits as limit - 1 has, until the result is below."""
    bits = (limit - 1).bit_length()
    if bits == 0:
        return 0
    while True:
        number = 0
        for word in _bits.words(-(-bits // 64)):
            number = (number << 64) | word
        number >>= -bits % 64
        if number < limit:
            return number


def _below(limits: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Draw one number below each limit (at most 2^63): 64 bits under the limit's mask, until below."""
    masks = limits - np.uint64(1)
    for shift in (1, 2, 4, 8, 16, 32):
        masks |= masks >> np.uint64(shift)
    out = np.empty(limits.size, np.uint64)
    pending = np.arange(limits.size)
    while pending.size:
        fresh = np.empty(pending.size, np.uint64)
        _bits.fill(fresh)
        fresh &= masks[pending]
        out[pending] = fresh
        pending = pending[fresh >= limits[pending]]
    return out.astype(np.int64)


def _below_short(limit: int, size: int) -> NDArray[np.int64]:
    """Draw below one limit of at most 2^32: the high half of 32 random bits times the limit (Lemire 2019).

    Products with a low half below 2^32 mod limit are drawn again. Of the others, exactly floor(2^32 / limit)
    lead to each result.
    """
    out = np.empty(size, np.int64)
    uneven = 2**32 % limit
    for start in range(0, size, _BLOCK):
        part = out[start : start + _BLOCK]
        product = _products(part.size, limit)
        part[:] = product >> np.uint64(32)
        pending = np.flatnonzero(product.astype(np.uint32) < uneven) if uneven else _NONE
        while pending.size:
            product = _products(pending.size, limit)
            part[pending] = product >> np.uint64(32)
            pending = pending[product.astype(np.uint32) < uneven]
    return out


def _products(size: int, limit: int) -> NDArray[np.uint64]:
    """Return fresh words of 32 bits, each times the limit."""
    fresh = np.empty(size, np.uint32)
    _bits.fill(fresh)
    return fresh * np.uint64(limit)


def permutation(n: int) -> NDArray[np.int64]:
    """Draw a random order of 0 .. n - 1; every order has the same probability.

    Each position gets 64 random bits, and the positions are sorted by them. If two are equal, all are drawn
    again: given that all differ, every order is equally likely by symmetry.

    Examples
    --------
    >>> sorted(permutation(4).tolist())
    [0, 1, 2, 3]
    """
    length = count("n", n)
    read_size(length)
    keys = np.empty(length, np.uint64)
    while True:
        _bits.fill(keys)
        order = np.argsort(keys)
        ordered = keys[order]
        if not (ordered[1:] == ordered[:-1]).any():
            return order.astype(np.int64)
