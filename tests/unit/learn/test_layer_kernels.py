"""The kernels for devices agree with plain PyTorch; without a device they run in Triton's interpreter."""

from __future__ import annotations

import os

import pytest
import torch

pytest.importorskip("triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu" and not os.environ.get("TRITON_INTERPRET"):
    pytest.skip("needs a CUDA device, or TRITON_INTERPRET=1", allow_module_level=True)

from tacit.learn.layers import _kernels as kernels  # noqa: E402
from tacit.learn.layers._convolutions import ConvolutionJob, ConvolutionShape  # noqa: E402


@pytest.fixture(autouse=True)
def in_single_precision(monkeypatch):
    """Keep PyTorch's own convolutions, which make some of the sums, from rounding to TF32."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def rounded(*shape):
    return torch.randn(shape, device=DEVICE).bfloat16().float()


@pytest.mark.parametrize(
    ("units", "rows", "inputs", "outputs"), [(2, 70, 33, 50), (3, 20, 16, 16), (1, 130, 8, 40)]
)
def test_gram_norms(units, rows, inputs, outputs):
    left, right = rounded(units, rows, inputs), rounded(units, rows, outputs)
    wanted = torch.bmm(right.double().mT, left.double()).square().sum((1, 2))
    torch.testing.assert_close(kernels.gram_kernel(left, right).double(), wanted, rtol=1e-5, atol=0)


@pytest.mark.parametrize("rows", [20, 70])
def test_a_gram_norm_of_an_extreme_and_a_tiny_operand_is_not_taken_for_nothing(rows):
    """The squares of the tiny rows are zero in single precision, so the product of the matrices is zero."""
    left, right = (torch.full((3, rows, 16), 2.6e-23, device=DEVICE) for _ in range(2))
    right[0], right[1, -1], right[2] = 1.0, 2e18, torch.nan
    found = kernels.gram_kernel(left, right)
    assert found[0] < 1e-30
    assert torch.isinf(found[1])
    assert not torch.isfinite(found[2])
    assert not torch.isfinite(kernels.gram_kernel(right, left)[1:]).any()


CONVOLUTIONS = [
    (4, 3, 16, 8, 3, 1, 1, 1, 4),
    (4, 20, 70, 7, 3, 2, 1, 1, 2),
    (4, 16, 16, 6, 1, 1, 0, 1, 4),
    (2, 70, 20, 6, 3, 1, 1, 1, 2),
    (2, 5, 6, 9, 2, 1, 0, 2, 2),
]
FEW_POSITIONS = [
    (3, 20, 70, 4, 3, 1, 1, 1, 3),
    (2, 40, 40, 5, 3, 2, 1, 1, 2),
    (2, 140, 300, 6, 1, 1, 0, 1, 2),
]
FEW_CHANNELS = [
    (4, 3, 20, 9, 3, 2, 1, 1, 2),
    (2, 15, 70, 7, 3, 1, 1, 1, 2),
    (2, 1, 5, 12, 5, 1, 2, 2, 1),
]


def convolved(case):
    examples, channels, filters, side, kernel, stride, padding, dilation, units = case
    x = rounded(examples, channels, side, side)
    weight = torch.randn(filters, channels, kernel, kernel, device=DEVICE)
    steps = ConvolutionShape((stride,) * 2, (padding,) * 2, (dilation,) * 2, 1)
    grad = rounded(*steps.apply(x, weight, None).shape)
    exact = ConvolutionJob(x.double(), grad.double(), weight, steps, units).gradients().double()
    return kernels.RoundedConvolution(ConvolutionJob(x, grad, weight, steps, units)), exact


@pytest.mark.parametrize("case", FEW_POSITIONS)
def test_norms_from_inner_products_of_few_positions(case):
    fast, exact = convolved(case)
    assert fast.few
    found = kernels._position_squares(fast.x, fast.grad, fast.kernel, fast.steps)
    torch.testing.assert_close(found.double(), exact.flatten(1).square().sum(1), rtol=1e-5, atol=0)
    factors = torch.rand(fast.units, device=DEVICE)
    wanted = torch.tensordot(factors.double(), exact, dims=1)
    assert (fast.total(factors) - wanted).norm() <= 1e-5 * wanted.norm()


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_norm_from_few_positions_is_not_taken_for_nothing_either():
    fast, _ = convolved(FEW_POSITIONS[0])
    fast.x[:] = 2.6e-23
    fast.grad[0], fast.grad[1, 3, 1, 2], fast.grad[2] = 1.0, 2e18, 1.0
    fast.x[2, 5, 0, 0] = 2e18
    found = kernels._position_squares(fast.x, fast.grad, fast.kernel, fast.steps)
    assert found[0] < 1e-30
    assert torch.isinf(found[1:]).all()


@pytest.mark.parametrize("case", FEW_CHANNELS)
def test_norms_where_taps_and_channels_are_the_lines(case):
    fast, exact = convolved(case)
    found = kernels._line_squares(fast.x, fast.grad, fast.kernel, fast.steps, fast.units)
    torch.testing.assert_close(found.double(), exact.flatten(1).square().sum(1), rtol=1e-5, atol=0)


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution_norms_and_sums(case):
    examples, units = case[0], case[-1]
    fast, exact = convolved(case)
    squares = exact.flatten(1).square().sum(1)
    torch.testing.assert_close(fast.squares().double(), squares, rtol=1e-5, atol=0)
    factors = torch.rand(units, device=DEVICE)
    factors[0] = 0
    wanted = torch.tensordot(factors.double(), exact, dims=1)
    assert (fast.total(factors) - wanted).norm() <= 1e-5 * wanted.norm()
    fast.x[0] = torch.inf  # the kernel drops a unit with factor zero, whatever its gradient is
    each = factors.repeat_interleave(examples // units)
    found = kernels._convolution_total(fast.x, fast.grad, each, fast.kernel, fast.steps)
    assert (found - wanted).norm() <= 1e-5 * wanted.norm()
