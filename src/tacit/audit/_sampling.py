"""Sampling for audits: many independent outputs of a mechanism on one input, in batches where possible."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np

from tacit.errors import bad_parameter
from tacit.fixes import Code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

NOT_A_NUMBER = -1e300  # represents NaN; the infinities become -2e300 and 1e300, so all three stay distinct
_CELLS = 2_000_000  # the largest number of output numbers in memory at once


@runtime_checkable
class _Batched(Protocol):
    def release_many(self, value: object, count: int) -> object: ...


@runtime_checkable
class _Releases(Protocol):
    def release(self, value: object) -> object: ...


#: What can be audited: a mechanism, a function of a value and a number that returns as many outputs, or a
#: function of the value that returns one.
AuditTarget: TypeAlias = object


def _drawer(target: AuditTarget) -> Callable[[object, int], object]:
    """Return ``draw(value, n)``, which uses the fastest way that the target offers."""
    if isinstance(target, _Batched):
        return target.release_many
    if isinstance(target, _Releases):
        return _one_by_one(target.release)
    if callable(target):
        function = cast("Callable[..., object]", target)
        match _size_of(function):
            case "by name":
                return lambda value, n: function(value, size=n)
            case "second":
                return function
        return _one_by_one(function)
    raise bad_parameter(
        "target",
        "a mechanism or a function of the data",
        target,
        fix=Code("audit(lambda value, size: ..., a, b)"),
    )


def _size_of(function: Callable[..., object]) -> Literal["by name", "second", "none"]:
    """Say how a function takes the number of outputs: as ``size``, as its second argument, or not at all."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "none"
    if any(one.name == "size" for one in parameters):
        return "by name"
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in parameters if one.kind in places and one.default is inspect.Parameter.empty]
    return "second" if len(needed) >= 2 else "none"


def takes_batches(target: AuditTarget) -> bool:
    """Return whether a target returns many outputs from one call."""
    if isinstance(target, _Batched):
        return True
    return not isinstance(target, _Releases) and callable(target) and _size_of(target) != "none"


def single_outputs(target: AuditTarget, value: object, count: int) -> list[object]:
    """Draw outputs with one call each: a seed that is set inside the call repeats them."""
    draw = _drawer(target)
    outputs: list[object] = []
    for _ in range(count):
        outputs += list(cast("list[object]", draw(value, 1)))
    return outputs


def _one_by_one(function: Callable[..., object]) -> Callable[[object, int], object]:
    return lambda value, n: [function(value) for _ in range(n)]


def batches(
    target: AuditTarget, value: object, count: int, *, repeat: int = 1
) -> Iterator[NDArray[np.generic] | list[object]]:
    """Yield batches of raw outputs, `count` in total; each output holds `repeat` independent runs."""
    draw = _drawer(target)
    first = min(count, 1000)
    width = 1
    done = 0
    while done < count:
        step = first if done == 0 else min(count - done, max(1000, _CELLS // width))
        raw = draw(value, step * repeat)
        if not isinstance(raw, np.ndarray):
            raw = list(cast("list[object]", raw))
        _check_count(len(raw), step * repeat)
        if repeat > 1:
            rows = as_rows(raw)
            raw = rows.reshape(step, -1) if isinstance(rows, np.ndarray) else _bundle(rows, repeat)
        if isinstance(raw, np.ndarray) and raw.ndim > 1:
            width = max(1, raw[0].size)
        elif repeat > 1:
            width = repeat
        yield raw
        done += step


def _bundle(rows: list[object], repeat: int) -> list[object]:
    return [tuple(rows[i : i + repeat]) for i in range(0, len(rows), repeat)]


def as_rows(raw: NDArray[np.generic] | list[object]) -> NDArray[np.float64] | list[object]:
    """Read a batch as a matrix of numbers with one row per output, or else as a list of labels."""
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "biuf":
        numbers = raw
    else:
        outputs = list(raw)
        try:
            numbers = np.asarray(outputs)
        except ValueError:  # ragged: outputs of different lengths are labels
            numbers = np.empty(0, dtype=object)
        if numbers.dtype.kind not in "biuf":
            return [_label(one) for one in outputs]
    matrix = np.ascontiguousarray(numbers.reshape(len(numbers), -1), dtype=np.float64)
    return np.nan_to_num(matrix, nan=NOT_A_NUMBER, posinf=-NOT_A_NUMBER, neginf=2 * NOT_A_NUMBER)


def _check_count(got: int, wanted: int) -> None:
    if got != wanted:
        raise bad_parameter(
            "target",
            f"a function that returns {wanted} outputs when asked for {wanted}",
            f"{got} outputs",
            fix=Code("def f(value, size): return mechanism.release_many(value, size)"),
        )


def _label(output: object) -> object:
    """Make an output hashable; equal outputs get equal labels."""
    if isinstance(output, np.ndarray):
        return (output.shape, output.tobytes())
    if isinstance(output, list | tuple):
        return tuple(_label(part) for part in output)
    try:
        hash(output)
    except TypeError:
        return repr(output)
    return output
