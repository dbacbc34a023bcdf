"""Precision: which type a layer computes in, and how far a rounded norm may be off."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import torch

from tacit.parameters import Choice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from torch import Tensor

#: ``float32`` (exact products), ``tf32`` (tensor cores with 10 bits), ``bfloat16`` (16-bit copies).
Precision: TypeAlias = Literal["float32", "tf32", "bfloat16"]
#: By how much a contribution may be longer than its computed norm says; the bound shrinks by as much.
#: A scaled operand is rounded to bfloat16 once, each number by less than 2^-8 of it, also in ``tf32`` on a
#: device with kernels. TF32 itself truncates by less than 2^-10. In float32 only sums of squares are rounded.
MARGINS: Final[dict[Precision, float]] = {"float32": 1e-5, "tf32": 2**-8, "bfloat16": 2**-8}
_ROUNDED: ContextVar[bool] = ContextVar("rounded", default=False)


def read_precision(precision: str) -> Precision:
    """Return the precision, or refuse one that is unknown."""
    return Choice(get_args(Precision)).read("precision", precision)  # type: ignore[return-value]


def norm_margin(precision: Precision) -> float:
    """Return by how much a contribution may exceed its computed norm, relative to it."""
    return MARGINS[precision]


@contextmanager
def computing(precision: Precision, device: torch.device) -> Iterator[None]:
    """Compute in a precision inside the block."""
    token = _ROUNDED.set(precision != "float32")
    try:
        with _tensor_cores(device, allowed=precision != "float32"):
            yield
    finally:
        _ROUNDED.reset(token)


def may_round() -> bool:
    """Say whether products may be formed from operands that were rounded to bfloat16."""
    return _ROUNDED.get()


@contextmanager
def _tensor_cores(device: torch.device, *, allowed: bool) -> Iterator[None]:
    if device.type == "cuda":
        before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
        try:
            yield
        finally:
            torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
    else:
        yield


def autocast_dtype(value: Tensor) -> torch.dtype | None:
    """Return the type that autocast asks matrix products to use, or nothing outside of it."""
    kind = value.device.type
    if value.is_floating_point() and torch.is_autocast_enabled(kind):
        return torch.get_autocast_dtype(kind)
    return None


def without_autocast(value: Tensor) -> AbstractContextManager[Any]:
    """Leave autocast: the layer has cast its operands itself."""
    if torch.is_autocast_enabled(value.device.type):
        return torch.autocast(value.device.type, enabled=False)
    return nullcontext()
