"""The check of training steps: the parameters of the model move by what the optimizer says, and no more."""

from __future__ import annotations

import copy
from collections import defaultdict
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn

_EVERY = 50  # steps
_MOST = 2**24  # numbers that one check compares, or one parameter
_PART = 2**20  # numbers that are compared at once
_CLOSE = 1e-4  # of the largest step in a parameter


class CheckedOptimizer:
    """An optimizer whose steps are compared, now and then, with those of a copy that sees only the gradient.

    Peers have trained models whose optimizer held other tensors than the model, or whose weights something
    else changed, and nobody noticed. The copy starts from the parameters and the state before a step. Every
    parameter is compared in the first steps, and again every 50th step, a part of the model at a time.

    Examples
    --------
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> before = model.weight.item()
    >>> checked = CheckedOptimizer(model, torch.optim.SGD(model.parameters(), lr=0.5))
    >>> checked.step(["weight"], [torch.ones(1, 1)])
    >>> round(before - model.weight.item(), 4)
    0.5
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, every: int = _EVERY) -> None:
        self._model, self._optimizer, self._every = model, optimizer, every
        self._taken = 0
        self._waiting: list[str] = []

    def step(self, names: Sequence[str], gradients: Sequence[Tensor]) -> None:
        """Take a step with these gradients; raises ``RuntimeError`` if the model moves otherwise."""
        own = dict(self._model.named_parameters())
        held = {name: own[name] for name in names}
        if self._taken % self._every == 0:
            self._waiting = self._waiting or list(names)
        given = dict(zip(names, gradients, strict=True))
        expected = self._predict(held, given)
        for name, parameter in held.items():
            parameter.grad = given[name].to(parameter.dtype)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self._taken += 1
        after = dict(self._model.named_parameters())
        right = [
            _furthest(after[name].detach(), end) <= _CLOSE * way for name, (end, way) in expected.items()
        ]
        if right and not bool(torch.stack(right).all()):  # the device is asked once
            name = next(name for name, good in zip(expected, right, strict=True) if not bool(good))
            raise RuntimeError(f"the parameter {name} did not move as the optimizer says")

    def _predict(
        self, held: dict[str, nn.Parameter], given: dict[str, Tensor]
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Return where some parameters must be after the step, and how far each moves at most."""
        chosen: dict[str, nn.Parameter] = {}
        size = 0
        while self._waiting and (not chosen or size + held[self._waiting[0]].numel() <= _MOST):
            name = self._waiting.pop(0)
            chosen[name] = held[name]
            size += held[name].numel()
        if not chosen:
            return {}
        copies = {name: torch.nn.Parameter(one.detach().clone()) for name, one in chosen.items()}
        for name, one in copies.items():
            one.grad = given[name].to(one.dtype)
        twin = _twin(self._optimizer, {id(chosen[name]): one for name, one in copies.items()})
        if sum(len(group["params"]) for group in twin.param_groups) != len(chosen):
            raise RuntimeError("the optimizer does not hold the parameters of the model")
        twin.step()
        found = {}
        for name, one in copies.items():
            end, start = one.detach(), chosen[name].detach()
            found[name] = (end, _furthest(end, start) + 1e-6 * _furthest(start))
        return found


def _furthest(first: Tensor, second: Tensor | None = None) -> Tensor:
    """Return the largest distance of two tensors in a number, a part at a time: a whole copy takes memory."""
    found = first.new_zeros(())
    for place in range(0, len(first) if first.dim() else 1, rows := _rows_of(first)):
        part = first[place : place + rows] if first.dim() else first
        if second is not None:
            part = part - (second[place : place + rows] if second.dim() else second)
        found = torch.maximum(found, torch.linalg.vector_norm(part, torch.inf)) if part.numel() else found
    return found


def _rows_of(tensor: Tensor) -> int:
    """Return how many rows of a tensor hold about `_PART` numbers."""
    return max(1, _PART * len(tensor) // max(1, tensor.numel())) if tensor.dim() else 1


def _twin(optimizer: torch.optim.Optimizer, copies: dict[int, nn.Parameter]) -> torch.optim.Optimizer:
    """Return an optimizer with the same settings and state, on copies of some of the parameters."""
    twin = copy.copy(optimizer)
    twin.state = defaultdict(dict)
    twin.param_groups = []
    for group in optimizer.param_groups:
        own = [one for one in group["params"] if id(one) in copies]
        twin.param_groups.append({**group, "params": [copies[id(one)] for one in own]})
        for one in own:
            if one in optimizer.state:
                twin.state[copies[id(one)]] = copy.deepcopy(optimizer.state[one])
    return twin
