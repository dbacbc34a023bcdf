"""Precision and kernels: which type a layer computes in, and how far a rounded norm may be off.

Kernels for NVIDIA devices are PyTorch operations; where one does not apply, plain PyTorch takes over. They
round operands to bfloat16, so they serve the precisions ``tf32`` and ``bfloat16`` only. In ``float32`` every
product is exact.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from tacit.parameters import Choice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from tacit.learn.layers._convolutions import ConvolutionJob


#: ``float32`` (exact products), ``tf32`` (tensor cores with 10 bits), ``bfloat16`` (16-bit copies).
Precision: TypeAlias = Literal["float32", "tf32", "bfloat16"]
#: By how much a contribution may be longer than its computed norm says; the bound shrinks by as much.
#: A scaled operand is rounded to bfloat16 once, each number by less than 2^-8 of it, also in ``tf32`` on a
#: device with kernels. TF32 itself truncates by less than 2^-10. In float32 only sums of squares are rounded.
MARGINS: Final[dict[Precision, float]] = {"float32": 1e-5, "tf32": 2**-8, "bfloat16": 2**-8}
_ROUNDED: ContextVar[bool] = ContextVar("rounded", default=False)
#: About how many programs keep a device busy.
BUSY: Final = 528
#: The largest image whose norms come from inner products of its positions.
MAX_POSITIONS: Final = 64
#: Below so many channels, taps and channels together are the lines of a gradient.
FEW_CHANNELS: Final = 16
#: The share of a kernel's blocks that a gradient must fill.
FULL: Final = 0.45
#: As `tacit.learn.layers._bookkeeping.CANCELLED`, for operands of eight bits.
CANCELLED: Final = 1e-4
#: The largest squared length of an operand beside which nothing that matters is lost: a gradient with a
#: longer one counts as not finite.
EXTREME: Final = 1e28


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


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def kernels_apply(value: Tensor) -> bool:
    """Say whether a tensor is on a device with kernels and may be rounded to bfloat16."""
    return value.is_cuda and may_round() and _has_triton()


def rounded(value: Tensor) -> Tensor:
    """Return a copy in bfloat16 where the kernels apply: norms and sums then see the same values."""
    if not kernels_apply(value) or (value.dtype == torch.bfloat16 and value.is_contiguous()):
        return value
    return formed_once(value.to(torch.bfloat16, memory_format=torch.contiguous_format).contiguous())


def formed_once(value: Tensor) -> Tensor:
    """Return the same tensor; a compiled step writes it to memory once, and all that need it read it there.

    A compiler would else form a copy for the norm and another one for the sum, both in the forward pass.
    """
    return value.as_strided(value.shape, value.stride())


def _kind() -> Any:
    """Return the type in which kernels multiply; Triton's interpreter, for tests, knows float32 only."""
    import triton.language as tl

    return tl.float32 if os.environ.get("TRITON_INTERPRET") == "1" else tl.bfloat16


def unless_extreme(squares: Tensor, largest: Tensor) -> Tensor:
    """Return squared norms; infinity where the largest squared length of an operand is extreme.

    The square of a number below 1e-23 is zero in single precision. Beside an operand of length 1e19 the
    product would be long, and appear to be zero.
    """
    return torch.where(largest <= EXTREME, squares, torch.inf)


# Gram matrices


def gram_kernel(left: Tensor, right: Tensor) -> Tensor:
    """Return the squared norms of ``right^T left`` for each unit."""
    return _gram_squares(left.contiguous(), right.contiguous())  # type: ignore[no-any-return]


@torch.library.custom_op("tacit::gram_squares", mutates_args=())
def _gram_squares(left: Tensor, right: Tensor) -> Tensor:
    from tacit.learn.layers import _triton_kernels as kernels

    left, right = left.contiguous(), right.contiguous()
    units, rows, inputs = left.shape
    block = 128 if units * _tiles(rows, 128) >= BUSY // 2 else 64
    block = 32 if rows <= 32 else block
    tiles = _tiles(rows, block)
    squares, lengths, extremes = (
        torch.empty(units, tiles, device=left.device, dtype=torch.float32) for _ in range(3)
    )
    kernels.gram_norms[units, tiles](
        left, right, squares, lengths, extremes, rows, inputs, right.shape[2], tiles,
        BLOCK=block, DEPTH=64, KIND=_kind(), num_warps=8 if block == 128 else 4, num_stages=3,
    )  # fmt: skip
    bounded = torch.maximum(squares.sum(1), CANCELLED * lengths.sum(1).square())
    return unless_extreme(bounded, extremes.amax(1))


@_gram_squares.register_fake
def _(left: Tensor, right: Tensor) -> Tensor:  # noqa: ARG001
    return torch.empty(left.shape[0], device=left.device, dtype=torch.float32)


def _tiles(rows: int, block: int) -> int:
    side = -(-rows // block)
    return side * (side + 1) // 2


# convolutions


class RoundedConvolution:
    """The gradient of a two-dimensional convolution from bfloat16 copies of its operands."""

    def __init__(self, job: ConvolutionJob) -> None:
        self.x, self.grad = (
            formed_once(value.to(torch.bfloat16).contiguous(memory_format=torch.channels_last))
            for value in (job.x, job.grad)
        )
        self.units = job.units
        self.kernel = [int(side) for side in job.weight.shape[2:]]
        steps = job.steps
        self.steps = [*steps.stride, *steps.padding, *steps.dilation]
        positions, taps = self.grad[0, 0].numel(), self.kernel[0] * self.kernel[1]
        channels, filters = self.x.shape[1], self.grad.shape[1]
        inner = positions * (channels * taps + filters)
        self.few = positions <= MAX_POSITIONS and self.units == len(self.x) and inner < job.weight.numel()

    def squares(self) -> Tensor:
        """Return the squared norms."""
        if self.few:
            return _position_squares(self.x, self.grad, self.kernel, self.steps)  # type: ignore[no-any-return]
        return _convolution_squares(self.x, self.grad, self.kernel, self.steps, self.units)  # type: ignore[no-any-return]

    def total(self, factors: Tensor) -> Tensor:
        """Return the weighted sum."""
        factors = factors.repeat_interleave(self.x.shape[0] // self.units)
        if self.few or not _fills_blocks(self.x.shape[1], self.grad.shape[1]):  # the library is faster
            expanded = factors[:, None, None, None]
            grad = torch.where(expanded > 0, self.grad * expanded, 0.0)
            return _library_total(self.x, grad, self.kernel, self.steps)  # type: ignore[no-any-return]
        return _convolution_total(self.x, self.grad, factors, self.kernel, self.steps)  # type: ignore[no-any-return]


def rounded_convolution(job: ConvolutionJob) -> RoundedConvolution | None:
    """Return the gradient for the kernels, or nothing where they do not apply."""
    if not kernels_apply(job.x) or job.steps.groups != 1 or job.x.dim() != 4:
        return None
    return RoundedConvolution(job)


@torch.library.custom_op("tacit::convolution_squares", mutates_args=())
def _convolution_squares(x: Tensor, grad: Tensor, kernel: list[int], steps: list[int], units: int) -> Tensor:
    from tacit.learn.layers import _triton_kernels as kernels

    x, grad = (value.contiguous(memory_format=torch.channels_last) for value in (x, grad))
    if x.shape[1] < FEW_CHANNELS:
        return _line_squares(x, grad, kernel, steps, units)
    blocks = _Blocks(x, grad, kernel)
    squares = torch.empty(units, blocks.groups * blocks.count, device=x.device, dtype=torch.float32)
    kernels.convolution_norms[units, blocks.groups, blocks.count](
        x, grad, squares, *blocks.shapes, x.shape[0] // units, *steps, **blocks.options
    )
    return squares.sum(1)


@_convolution_squares.register_fake
def _(x: Tensor, grad: Tensor, kernel: list[int], steps: list[int], units: int) -> Tensor:  # noqa: ARG001
    return torch.empty(units, device=x.device, dtype=torch.float32)


def _line_squares(x: Tensor, grad: Tensor, kernel: list[int], steps: list[int], units: int) -> Tensor:
    from tacit.learn.layers import _triton_kernels as kernels

    channels, filters = x.shape[1], grad.shape[1]
    lines, tall = _side(channels * kernel[0] * kernel[1]), _side(filters)
    lines = min(lines, 64)
    filter_blocks = -(-filters // tall)
    count = -(-channels * kernel[0] * kernel[1] // lines) * filter_blocks
    squares = torch.empty(units, count, device=x.device, dtype=torch.float32)
    kernels.line_norms[units, count](
        x, grad, squares, *x.shape[2:], *grad.shape[2:], channels, filters, filter_blocks,
        x.shape[0] // units, *steps, ROWS=kernel[0], COLUMNS=kernel[1], BLOCK=64, FILTERS=tall, LINES=lines,
        KIND=_kind(), num_warps=4, num_stages=3,
    )  # fmt: skip
    return squares.sum(1)


def _fills_blocks(channels: int, filters: int) -> bool:
    """Say whether a gradient fills the blocks of the kernels, or whether most of their work would be lost."""
    width, height = _side(channels), _side(filters)
    room = -(-channels // width) * width * -(-filters // height) * height
    return channels * filters >= FULL * room


@torch.library.custom_op("tacit::position_squares", mutates_args=())
def _position_squares(x: Tensor, grad: Tensor, kernel: list[int], steps: list[int]) -> Tensor:
    from tacit.learn.layers import _triton_kernels as kernels

    x, grad = (value.contiguous(memory_format=torch.channels_last) for value in (x, grad))
    squares, lengths, extremes = (torch.empty(len(x), device=x.device, dtype=torch.float32) for _ in range(3))
    block = next(side for side in (16, 32, MAX_POSITIONS) if grad[0, 0].numel() <= side)
    kernels.position_norms[len(x),](
        x, grad, squares, lengths, extremes, *x.shape[2:], *grad.shape[2:], x.shape[1], grad.shape[1], *steps,
        ROWS=kernel[0], COLUMNS=kernel[1], BLOCK=block, DEPTH=64, KIND=_kind(), num_warps=4, num_stages=3,
    )  # fmt: skip
    return unless_extreme(torch.maximum(squares, CANCELLED * lengths.square()), extremes)


@_position_squares.register_fake
def _(x: Tensor, grad: Tensor, kernel: list[int], steps: list[int]) -> Tensor:  # noqa: ARG001
    return torch.empty(x.shape[0], device=x.device, dtype=torch.float32)


@torch.library.custom_op("tacit::convolution_total", mutates_args=())
def _convolution_total(
    x: Tensor, grad: Tensor, factors: Tensor, kernel: list[int], steps: list[int]
) -> Tensor:
    from tacit.learn.layers import _triton_kernels as kernels

    x, grad = (value.contiguous(memory_format=torch.channels_last) for value in (x, grad))
    blocks = _Blocks(x, grad, kernel)
    examples = x.shape[0]
    parts = max(1, min(examples, -(-BUSY // (blocks.groups * blocks.count))))
    share = -(-examples // parts)
    parts = -(-examples // share)
    shape = (parts, *kernel, grad.shape[1], x.shape[1])
    sums = torch.empty(shape, device=x.device, dtype=torch.float32)
    kernels.convolution_sums[parts, blocks.groups, blocks.count](
        x, grad, factors.float().contiguous(), sums, examples, share, *blocks.shapes, *steps, **blocks.options
    )
    return sums.sum(0).permute(2, 3, 0, 1).contiguous()


@torch.library.custom_op("tacit::library_total", mutates_args=())
def _library_total(x: Tensor, grad: Tensor, kernel: list[int], steps: list[int]) -> Tensor:
    """Add up weight gradients with PyTorch's own function, on a wide input that lives no longer than this.

    A compiler would form the wide input in the forward pass, and keep it until here.
    """
    weight = grad.new_empty(grad.shape[1], x.shape[1], *kernel)
    gradients = torch.ops.aten.convolution_backward(
        grad, x.float(), weight, None, steps[:2], steps[2:4], steps[4:], False, [0, 0], 1,  # noqa: FBT003
        [False, True, False],
    )  # fmt: skip
    return gradients[1].contiguous()  # type: ignore[no-any-return]


@_library_total.register_fake
def _(x: Tensor, grad: Tensor, kernel: list[int], steps: list[int]) -> Tensor:  # noqa: ARG001
    return torch.empty(grad.shape[1], x.shape[1], *kernel, device=x.device, dtype=torch.float32)


@_convolution_total.register_fake
def _(x: Tensor, grad: Tensor, factors: Tensor, kernel: list[int], steps: list[int]) -> Tensor:  # noqa: ARG001
    return torch.empty(grad.shape[1], x.shape[1], *kernel, device=x.device, dtype=torch.float32)


class _Blocks:
    """How a weight gradient is cut into blocks of filters, channels and taps."""

    def __init__(self, x: Tensor, grad: Tensor, kernel: list[int]) -> None:
        channels, filters = x.shape[1], grad.shape[1]
        width, height = _side(channels), _side(filters)
        taps = 3 if kernel[1] % 3 == 0 and width * height <= 64 * 64 else 1
        self.groups = kernel[0] * kernel[1] // taps
        channel_blocks = -(-channels // width)
        self.count = channel_blocks * -(-filters // height)
        self.shapes = [*x.shape[2:], *grad.shape[2:], channels, filters, channel_blocks]
        self.options: dict[str, Any] = {
            "COLUMNS": kernel[1], "TAPS": taps, "BLOCK": 64, "FILTERS": height, "CHANNELS": width,
            "KIND": _kind(), "num_warps": 8 if width * height > 64 * 64 else 4, "num_stages": 3,
        }  # fmt: skip


def _side(size: int) -> int:
    """Return the side of a block that suits a number of channels."""
    return next((side for side in (16, 32, 64) if size <= side), 128 if size > 64 else 64)
