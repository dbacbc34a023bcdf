"""Kernels for NVIDIA devices; each returns nothing where it does not apply, and plain PyTorch takes over."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from tacit.learn._layer_convolution import ConvolutionJob

__all__ = ["convolution_kernel", "gram_kernel"]


def gram_kernel(left: Tensor, right: Tensor) -> Tensor | None:  # noqa: ARG001
    """Return the squared norms of ``right^T left`` for each unit."""
    return None


def convolution_kernel(job: ConvolutionJob) -> Tensor | None:  # noqa: ARG001
    """Return the squared norms of a convolution's weight gradients for each unit."""
    return None
