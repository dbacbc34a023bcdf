"""A training holds few tensors of the size of its model at a time."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tacit import Budget, Unit
from tacit.learn import Trainer, examples
from tacit.learn.layers import _kernels
from tacit.learn.layers._clipped_step import traced_step
from tacit.learn.layers._clipped_sums import ClippedSums
from tacit.learn.layers._convolutions import ConvolutionJob, ConvolutionShape
from tacit.learn.training import _gradient_sums, _mechanisms, _optimizer_steps
from tacit.learn.training._optimizer_steps import ModelSums

SIDE = 64


class Largest(TorchDispatchMode):
    """Notes the most numbers that an operation has made anew."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        del types
        found = function(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor) and not found._is_view():
            given = {one.data_ptr() for one in args if isinstance(one, torch.Tensor)}
            self.numbers = max(self.numbers, 0 if found.data_ptr() in given else found.numel())
        return found


def test_a_check_of_a_step_copies_parameters_once_and_compares_them_in_parts(monkeypatch):
    monkeypatch.setattr(_optimizer_steps, "_PART", 256)
    first, second = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    with Largest() as most:
        found = _optimizer_steps._furthest(first, second)
    assert most.numbers == 256
    assert found == (first - second).abs().max()
    assert _optimizer_steps._furthest(torch.tensor(-3.0)) == 3
    assert _optimizer_steps._furthest(torch.zeros(0, 4)) == 0
    second[7, 7] = torch.nan
    assert _optimizer_steps._furthest(first, second).isnan()


def test_noise_on_a_device_is_drawn_in_parts(monkeypatch):
    monkeypatch.setattr(_mechanisms, "_AT_ONCE", 16)
    tensors = [
        torch.zeros(SIDE, SIDE),
        torch.zeros(()),
        torch.zeros(4, 2, 3, 3).contiguous(memory_format=torch.channels_last),
    ]
    with Largest() as most:
        _mechanisms._add_from_device(tensors, 1.0)
    assert most.numbers == 256
    assert all(bool((one != 0).all()) for one in tensors)


def test_the_sums_of_a_block_are_gone_when_the_next_one_runs(monkeypatch):
    model = nn.Linear(SIDE, SIDE)
    x = np.random.default_rng(0).normal(size=(40, SIDE)).astype(np.float32)
    data = examples(
        x, np.zeros(40, np.int64), unit=Unit.row(), size=40, budget=Budget(epsilon=10, delta=1e-2)
    )  # fmt: skip
    trainer = Trainer(
        model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1), data=data,
        batch=20, steps=2, noise=1, delta=1e-3, physical_batch=8,
    )  # fmt: skip
    sums = ModelSums(trainer.setup, data._arrays, data.units())
    gather, seen = _gradient_sums.GradientSums.gather, []

    def counted(self, block):
        gc.collect()
        held = [one for one in gc.get_objects() if type(one) is torch.Tensor]
        seen.append(sum(one.shape == (SIDE, SIDE) for one in held))
        return gather(self, block)

    monkeypatch.setattr(_gradient_sums.GradientSums, "gather", counted)
    gc.collect()
    gc.freeze()  # the objects of earlier tests are neither collected nor listed
    try:
        sums.sums(np.arange(40))
    finally:
        gc.unfreeze()
    assert len(seen) == 5
    assert max(seen) == seen[0]


def test_an_activation_that_will_be_rounded_is_kept_in_half_the_memory(monkeypatch):
    sums = ClippedSums(
        nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 2)), nn.CrossEntropyLoss(), clip=1
    )
    inputs, targets = (torch.randn(9, 4),), (torch.zeros(9).long(),)
    sums.prepare(inputs, targets)
    monkeypatch.setattr(_kernels, "kernels_apply", lambda _: True)  # as on a device
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda one: kept.append(one) or one, lambda one: one):
        sums.unchecked(inputs, targets, torch.ones(9))
    assert [one.dtype for one in kept if one.shape == (9, 4)] == [torch.bfloat16]
    # the second layer keeps its input rounded; the other tensor is what the activation function came from
    assert sorted(str(one.dtype) for one in kept if one.shape == (9, 6)) == [
        "torch.bfloat16",
        "torch.float32",
    ]


class Layers(nn.Module):
    """A convolution, a transposed convolution and a linear layer, with sizes that nothing else has."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(1, 13, 2), nn.ConvTranspose2d(13, 1, 2)
        self.head = nn.Linear(7, 2)

    def forward(self, x):
        return self.head(self.up(self.down(x).tanh()).tanh().mean((1, 2)))


def test_trial_steps_leave_nothing_behind():
    sums = ClippedSums(Layers(), nn.CrossEntropyLoss(), clip=1)
    sums.prepare((torch.zeros(9, 1, 7, 7),), (torch.zeros(9).long(),))
    assert sums.method == "book-keeping"
    gc.collect()
    held = [tuple(one.shape) for one in gc.get_objects() if issubclass(type(one), torch.Tensor)]
    assert not [shape for shape in held if shape[1:] in {(1, 7, 7), (13, 6, 6), (7,)} and shape[0] in {3, 5}]


def test_a_compiled_step_rounds_each_operand_once(monkeypatch):
    """An operand that is not marked is formed twice by a compiler: for the norm, and for the sum."""
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8))
    sums = ClippedSums(model, lambda out, wanted: (out - wanted).square().mean((1, 2)), clip=1)
    inputs, targets = (torch.randn(3, 2, 8),), (torch.randn(3, 2, 8),)
    layouts = sums.prepare(inputs, targets)
    monkeypatch.setattr(_kernels, "kernels_apply", lambda _: True)  # as on a device
    given = sums.step, sums.parameters, inputs, targets, torch.ones(3), sums.clip, layouts
    made = [one for one in traced_step(*given).graph.nodes if one.op == "call_function"]
    rounded = [
        one
        for one in made
        if one.target is torch.ops.aten._to_copy.default and one.kwargs.get("dtype") == torch.bfloat16
    ]
    first_time = [one for one in rounded if one.args[0].meta["val"].dtype == torch.float32][:4]
    assert len(first_time) == 4  # inputs and output gradients of two layers
    assert all(
        [user.target for user in one.users] == [torch.ops.aten.as_strided.default] for one in first_time
    )


def test_what_is_on_a_device_already_is_not_pinned():
    """``cuda`` and ``cuda:0`` are the same device, and PyTorch says that they differ."""
    there = SimpleNamespace(device=torch.device("cuda:0"), to=lambda device: ("there", str(device)))
    assert _gradient_sums._moved(there, torch.device("cuda")) == ("there", "cuda")


def test_sums_by_the_library_drop_units_with_factor_zero():
    """The library needs a wide input, which a compiled step must not form before it is needed."""
    steps = ConvolutionShape((2, 2), (1, 1), (1, 1), 1)
    x, weight = torch.randn(4, 5, 6, 6).bfloat16().float(), torch.randn(7, 5, 3, 3)
    grad = torch.randn(4, 7, 3, 3).bfloat16().float()
    exact = ConvolutionJob(x, grad, weight, steps, 2).gradients().double()
    rounded = _kernels.RoundedConvolution(ConvolutionJob(x, grad, weight, steps, 2))
    rounded.few = True
    factors = torch.tensor([0.5, 0.0])
    wanted = torch.tensordot(factors.double(), exact, dims=1)
    assert (rounded.total(factors) - wanted).norm() <= 1e-5 * wanted.norm()
    rounded.grad[2:] = torch.inf
    assert (rounded.total(factors) - wanted).norm() <= 1e-5 * wanted.norm()
