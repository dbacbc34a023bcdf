"""A training holds few tensors of the size of its model at a time."""

from __future__ import annotations

import gc

import numpy as np
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tacit import Budget, Unit
from tacit.learn import Trainer, _gradient_sums, _layer_kernels, _step_check, _training_steps, examples
from tacit.learn._clipped_sums import ClippedSums
from tacit.learn._model_sums import ModelSums

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
    monkeypatch.setattr(_step_check, "_PART", 256)
    first, second = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    with Largest() as most:
        found = _step_check._furthest(first, second)
    assert most.numbers == 256
    assert found == (first - second).abs().max()
    assert _step_check._furthest(torch.tensor(-3.0)) == 3
    assert _step_check._furthest(torch.zeros(0, 4)) == 0
    second[7, 7] = torch.nan
    assert _step_check._furthest(first, second).isnan()


def test_noise_on_a_device_is_drawn_in_parts(monkeypatch):
    monkeypatch.setattr(_training_steps, "_AT_ONCE", 16)
    tensors = [
        torch.zeros(SIDE, SIDE),
        torch.zeros(()),
        torch.zeros(4, 2, 3, 3).contiguous(memory_format=torch.channels_last),
    ]
    with Largest() as most:
        _training_steps._add_from_device(tensors, 1.0)
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

    def counted(self, block, size):
        gc.collect()
        held = [one for one in gc.get_objects() if type(one) is torch.Tensor]
        seen.append(sum(one.shape == (SIDE, SIDE) for one in held))
        return gather(self, block, size)

    monkeypatch.setattr(_gradient_sums.GradientSums, "gather", counted)
    sums.sums(np.arange(40))
    assert len(seen) == 5
    assert max(seen) == seen[0]


def test_an_activation_that_will_be_rounded_is_kept_in_half_the_memory(monkeypatch):
    sums = ClippedSums(
        nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 2)), nn.CrossEntropyLoss(), clip=1
    )
    inputs, targets = (torch.randn(9, 4),), (torch.zeros(9).long(),)
    sums.prepare(inputs, targets)
    monkeypatch.setattr(_layer_kernels, "kernels_apply", lambda _: True)  # as on a device
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda one: kept.append(one) or one, lambda one: one):
        sums.unchecked(inputs, targets, torch.ones(9))
    assert [one.dtype for one in kept if one.shape == (9, 4)] == [torch.bfloat16]
    # the second layer keeps its input rounded; the other tensor is what the activation function came from
    assert sorted(str(one.dtype) for one in kept if one.shape == (9, 6)) == [
        "torch.bfloat16",
        "torch.float32",
    ]
