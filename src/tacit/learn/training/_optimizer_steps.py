"""Sums of a model's gradients over samples of units, and the steps that follow from noisy sums.

A step is checked: the parameters of the model move by what the optimizer says, and no more. Between
instalments, the state of a training run is kept as JSON bytes: weights, optimizer, average and clip.
"""

from __future__ import annotations

import copy
import json
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch

from tacit.learn._arrays import from_document, to_document
from tacit.learn.training._gradient_sums import GradientSums, SampledRows, SharedGradientSums
from tacit.learn.training._settings import AdaptiveClip, NoisySettings
from tacit.learn.training._setup import as_model_input

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from tacit.learn.training._setup import TrainingSetup


_EVERY = 50  # steps
_MAX_NUMBERS = 2**24  # numbers that one check compares, or one parameter
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
        parameters = dict(self._model.named_parameters())
        trained = {name: parameters[name] for name in names}
        if self._taken % self._every == 0:
            self._waiting = self._waiting or list(names)
        gradient_of = dict(zip(names, gradients, strict=True))
        expected = self._predict(trained, gradient_of)
        for name, parameter in trained.items():
            parameter.grad = gradient_of[name].to(parameter.dtype)
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
        self, trained: dict[str, nn.Parameter], gradient_of: dict[str, Tensor]
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Return where some parameters must be after the step, and how far each moves at most."""
        chosen: dict[str, nn.Parameter] = {}
        size = 0
        while self._waiting and (not chosen or size + trained[self._waiting[0]].numel() <= _MAX_NUMBERS):
            name = self._waiting.pop(0)
            chosen[name] = trained[name]
            size += trained[name].numel()
        if not chosen:
            return {}
        copies = {name: torch.nn.Parameter(parameter.detach().clone()) for name, parameter in chosen.items()}
        for name, parameter in copies.items():
            parameter.grad = gradient_of[name].to(parameter.dtype)
        twin = _twin(self._optimizer, {id(chosen[name]): parameter for name, parameter in copies.items()})
        if sum(len(group["params"]) for group in twin.param_groups) != len(chosen):
            raise RuntimeError("the optimizer does not hold the parameters of the model")
        twin.step()
        moves = {}
        for name, parameter in copies.items():
            end, start = parameter.detach(), chosen[name].detach()
            moves[name] = (end, _furthest(end, start) + 1e-6 * _furthest(start))
        return moves


def _furthest(tensor: Tensor, other: Tensor | None = None) -> Tensor:
    """Return the largest distance of two tensors in a number, a part at a time: a whole copy takes memory."""
    distance = tensor.new_zeros(())
    for start in range(0, len(tensor) if tensor.dim() else 1, rows := _rows_of(tensor)):
        part = tensor[start : start + rows] if tensor.dim() else tensor
        if other is not None:
            part = part - (other[start : start + rows] if other.dim() else other)
        distance = (
            torch.maximum(distance, torch.linalg.vector_norm(part, torch.inf)) if part.numel() else distance
        )
    return distance


def _rows_of(tensor: Tensor) -> int:
    """Return how many rows of a tensor hold about `_PART` numbers."""
    return max(1, _PART * len(tensor) // max(1, tensor.numel())) if tensor.dim() else 1


def _twin(optimizer: torch.optim.Optimizer, copies: dict[int, nn.Parameter]) -> torch.optim.Optimizer:
    """Return an optimizer with the same settings and state, on copies of some of the parameters."""
    twin = copy.copy(optimizer)
    twin.state = defaultdict(dict)
    twin.param_groups = []
    for group in optimizer.param_groups:
        parameters = [parameter for parameter in group["params"] if id(parameter) in copies]
        twin.param_groups.append({**group, "params": [copies[id(parameter)] for parameter in parameters]})
        for parameter in parameters:
            if parameter in optimizer.state:
                twin.state[copies[id(parameter)]] = copy.deepcopy(optimizer.state[parameter])
    return twin


def write_state(sums: ModelSums) -> bytes:
    """Write where the steps stand: a function of noisy sums, but kept secret with the run."""
    state = sums._optimizer.state_dict()["state"]  # noqa: SLF001 - a part of it
    return json.dumps(
        {
            "taken": sums.taken,
            "watched": sums.watched,
            "weights": [_document(one) for one in sums._blocks.parameters],  # noqa: SLF001
            "average": [_document(one) for one in sums._average],  # noqa: SLF001
            "clip": _document(sums._clip),  # noqa: SLF001
            "optimizer": {
                str(place): {n: _value(v) for n, v in held.items()} for place, held in state.items()
            },
        }
    ).encode()


def read_state(sums: ModelSums, state: bytes) -> None:
    """Continue from where the steps stood."""
    saved = json.loads(state)
    sums.taken = int(saved["taken"])
    sums.watched = [(int(step), float(loss)) for step, loss in saved["watched"]]
    with torch.no_grad():
        tensors = [*sums._blocks.parameters, *sums._average, sums._clip]  # noqa: SLF001
        for tensor, document in zip(
            tensors,
            [*saved["weights"], *saved["average"], saved["clip"]],
            strict=True,
        ):
            tensor.copy_(_tensor(document))
    optimizer = sums._optimizer  # noqa: SLF001
    states = {int(p): {n: _read(v) for n, v in entries.items()} for p, entries in saved["optimizer"].items()}
    optimizer.load_state_dict({**optimizer.state_dict(), "state": states})


def _document(tensor: Tensor) -> Any:
    """Write a tensor exactly; bfloat16, which NumPy does not have, in single precision."""
    stored = tensor.detach().cpu()
    return to_document((stored.float() if stored.dtype == torch.bfloat16 else stored).numpy())


def _tensor(document: Any) -> Tensor:
    return torch.from_numpy(from_document(document))


def _value(value: Any) -> Any:
    return {"tensor": _document(value)} if isinstance(value, torch.Tensor) else {"value": value}


def _read(document: Any) -> Any:
    return _tensor(document["tensor"]) if "tensor" in document else document["value"]


_LOOKS = 20  # how often the public loss is looked at
_WARM = 10  # the moving average of weights starts quickly and slows down over about so many steps


class ModelSums:
    """The private data of a training run, its model, and where its steps stand; a `StepSums`.

    One unit moves what `sums` returns by at most ``settings.bound`` in L2: its examples' summed gradient is
    clipped, and nothing else of the data enters. What `update` does follows from noisy sums alone.

    Parameters
    ----------
    setup
        Model, optimizer and settings.
    arrays
        The examples; the model's inputs first, then what goes to the loss.
    rows
        The places of each unit's examples, padded with -1.
    state
        Where an earlier instalment stopped; empty at the start.
    """

    def __init__(
        self, setup: TrainingSetup, arrays: Sequence[Any], rows: NDArray[np.int64], state: bytes = b""
    ) -> None:
        self.setup = setup
        self.model, optimizer = setup.start()
        self._rows = SampledRows.of(rows)
        settings = setup.settings
        self._blocks = (SharedGradientSums if setup.shared else GradientSums)(setup, self.model, arrays)
        self._names = setup.names
        self._checked = CheckedOptimizer(self.model, optimizer)
        self._optimizer = optimizer
        self._rates = [group["lr"] for group in optimizer.param_groups]
        start = settings.clip.start if isinstance(settings.clip, AdaptiveClip) else 1
        self._clip = torch.tensor(float(start), device=setup.device)
        self._average = [one.detach().clone() for one in self._blocks.parameters] if settings.average else []
        #: The number of the instalment; None where all steps are one draw.
        self.part: int | None = None
        #: What each unit is called, where later instalments must find it again.
        self.names: list[bytes] | None = None
        self.taken = 0
        self.watched: list[tuple[int, float]] = []
        if state:
            read_state(self, state)

    @property
    def units(self) -> int:
        """How many units there are: private."""
        return len(self._rows.places)

    def sums(self, sample: NDArray[np.int64]) -> list[Tensor]:
        """Return the sum of clipped gradients over the sampled units, and for an adaptive clip the count.

        The blocks are added up first, and then one look at all norms together says whether each gradient was
        finite. Where one was not, the blocks are computed again with care.
        """
        rule, rows = self.setup.settings.clip, self._rows.part(sample)
        scale = self._clip if isinstance(rule, AdaptiveClip) else None
        sample_sums = self._blocks.add_up(rows, scale, careful=False)
        if len(sample) and bool(sample_sums.strange):
            sample_sums = self._blocks.add_up(rows, scale, careful=True)
        if isinstance(rule, AdaptiveClip):
            torch._foreach_mul_(sample_sums.sums, math.sqrt(1 - rule.share))
            sample_sums.sums.append(sample_sums.balance * math.sqrt(rule.share))
        return sample_sums.sums

    def update(self, noisy: Sequence[Tensor]) -> None:
        """Take one step of the optimizer with a noisy sum, divided by the expected number of units."""
        settings, gradients = self.setup.settings, list(noisy)
        scale = 1 / float(settings.denominator)
        if isinstance(settings.clip, AdaptiveClip):
            count = gradients.pop() / math.sqrt(settings.clip.share)
            scale /= math.sqrt(1 - settings.clip.share)
            torch._foreach_mul_(gradients, self._clip * scale)
            self._move_clip(settings.clip, count)
        else:
            torch._foreach_mul_(gradients, scale)
        if self.setup.schedule:
            for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
                group["lr"] = rate * self.setup.schedule[self.taken]
        self._checked.step(self._names, gradients)
        self.taken += 1
        self._look()
        if self._average:
            decay = min(float(settings.average), (1 + self.taken) / (_WARM + self.taken))
            torch._foreach_lerp_(self._average, [p.detach() for p in self._blocks.parameters], 1 - decay)

    def _move_clip(self, rule: AdaptiveClip, count: Tensor) -> None:
        """Move the clip by the noisy share of norms below it."""
        share = (count / float(self.setup.settings.denominator) + 1) / 2
        self._clip *= torch.exp(-float(rule.rate) * (share - float(rule.quantile)))
        self._clip.clamp_(1e-6, 1e6)

    def _look(self) -> None:
        """Note the loss of the public examples now and then: it is computed from noisy weights alone."""
        setup, steps = self.setup, self.setup.settings.steps
        if not setup.watch or self.taken % max(1, steps // _LOOKS):
            return
        modes = [(one, one.training) for one in self.model.modules()]
        like = next(self.model.parameters())
        public = [as_model_input(one.to(setup.device), like.dtype) for one in setup.watch]
        with torch.no_grad():
            output = self.model.eval()(*public[: setup.inputs])
            loss = self._blocks.clipped.step.losses(output, *public[setup.inputs :]).mean()
        for module, mode in modes:
            module.training = mode
        self.watched.append((self.taken, float(loss)))

    def result(self) -> dict[str, Any]:
        """Return the trained parameters by name, or their moving average, and the watched losses."""
        averages = self._average or [one.detach() for one in self._blocks.parameters]
        weights_by_name = zip(self._names, averages, strict=True)
        weights = {name: to_document(one.float().cpu().numpy()) for name, one in weights_by_name}
        return {"weights": weights, "watched": [list(one) for one in self.watched], "taken": self.taken}

    def state(self) -> bytes:
        """Return where the steps stand, for the next instalment."""
        return write_state(self)

    def describe(self) -> str:
        """Return what a terminal shows: the cost of the steps so far, and the loss of public examples."""
        settings, text = (
            self.setup.settings,
            f"Training, step {self.taken:,} of {self.setup.settings.steps:,}",
        )
        if self.taken and isinstance(settings, NoisySettings):
            spent = settings.cost_of(self.taken).epsilon(delta=settings.delta)
            text += f", epsilon {spent:.3g} of {float(settings.epsilon):.3g}"
        return text + (f", public loss {self.watched[-1][1]:.3g}" if self.watched else "")
