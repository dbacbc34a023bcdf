"""Sums of a model's gradients over samples of units, and the steps that follow from noisy sums."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tacit.learn._adaptive_clip import AdaptiveClip
from tacit.learn._arrays import to_document
from tacit.learn._slow_sums import SlowSums, losses_of
from tacit.learn._step_check import CheckedOptimizer
from tacit.learn._training_settings import AUTOMATIC
from tacit.learn._training_state import read_state, write_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from tacit.learn._training_setup import TrainingSetup

__all__ = ["ModelSums"]

_LOOKS = 20  # how often the public loss is looked at
_WARM = 10  # the moving average of weights starts quickly and slows down over about so many steps


class ModelSums:
    """The private data of a training, its model, and where its steps stand; a `StepSums`.

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
        self._arrays = tuple(torch.as_tensor(one) for one in arrays)
        # a unit with fewer examples is filled up with its own first one, which then counts with weight 0
        self._rows = np.where(rows < 0, rows[:, :1], rows)
        self._full = rows >= 0
        settings = setup.settings
        bound = settings.clip if not isinstance(settings.clip, AdaptiveClip | str) else 1
        times = 1 if setup.augment is None else setup.augment.times
        self._sums = SlowSums(
            self.model, setup.loss, clip=float(bound) * settings.margin, per_unit=setup.per_unit * times
        )
        self._names = setup.names
        self._checked = CheckedOptimizer(self.model, optimizer)
        self._optimizer = optimizer
        self._rates = [group["lr"] for group in optimizer.param_groups]
        start = settings.clip.start if isinstance(settings.clip, AdaptiveClip) else AUTOMATIC
        self._clip = torch.tensor(float(start), device=setup.device)
        self._average = [one.detach().clone() for one in self._sums.parameters] if settings.average else []
        self.taken = 0
        self.watched: list[tuple[int, float]] = []
        if state:
            read_state(self, state)

    @property
    def units(self) -> int:
        """How many units there are: private."""
        return len(self._rows)

    def sums(self, sample: NDArray[np.int64]) -> list[Tensor]:
        """Return the sum of clipped gradients over the sampled units, and for an adaptive clip the count."""
        settings = self.setup.settings
        totals = [torch.zeros_like(one, dtype=torch.float32) for one in self._sums.parameters]
        below = torch.zeros((), device=self.setup.device)
        fixed = not isinstance(settings.clip, AdaptiveClip | str)
        for units, size in self._blocks(sample):
            inputs, targets, weights = self._gather(units, size)
            found, norms = self._sums(inputs, targets, weights if fixed else weights / self._clip)
            torch._foreach_add_(totals, found)
            if isinstance(settings.clip, AdaptiveClip):
                sign = torch.where(norms[: len(units)] <= 1, 1.0, -1.0)
                below += torch.where(norms[: len(units)].isfinite(), sign, 0.0).sum()
        if isinstance(settings.clip, AdaptiveClip):
            share = float(settings.clip.share)
            torch._foreach_mul_(totals, math.sqrt(1 - share))
            totals.append(below * math.sqrt(share))
        return totals

    def _blocks(self, sample: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], int]]:
        """Split a sample into parts of about equal length, each with the size that is computed at once."""
        if not len(sample):
            return []
        parts = -(-len(sample) // self.setup.physical)
        size = self.setup.physical if self.setup.compile else -(-len(sample) // parts)
        return [(sample[start : start + size], size) for start in range(0, len(sample), size)]

    def _gather(
        self, units: NDArray[np.int64], size: int
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], Tensor]:
        """Return inputs, targets and weights of some units, filled up with zeros to a fixed size.

        Nobody's example stands in for a missing unit: an infinite value in it would reach the others.
        """
        setup, missing = self.setup, (size - len(units)) * self._rows.shape[1]
        places = torch.from_numpy(self._rows[units].reshape(-1))
        full = torch.from_numpy(self._full[units].reshape(-1).astype(np.float32))
        dtype = next(self.model.parameters()).dtype
        made = []
        for array in self._arrays:
            one = _moved(array.index_select(0, _moved(places, array.device)), setup.device)
            one = one.to(dtype) if one.is_floating_point() else one
            made.append(torch.cat([one, one.new_zeros((missing, *one.shape[1:]))]) if missing else one)
        weights = torch.nn.functional.pad(_moved(full, setup.device), (0, missing))
        inputs, targets = tuple(made[: setup.inputs]), tuple(made[setup.inputs :])
        if setup.augment is not None:
            times = setup.augment.times
            inputs = setup.augment(inputs)
            targets = tuple(one.repeat_interleave(times, 0) for one in targets)
            weights = weights.repeat_interleave(times, 0) / times
        return inputs, targets, weights

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
            torch._foreach_lerp_(self._average, [p.detach() for p in self._sums.parameters], 1 - decay)

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
        shown = [one.to(setup.device, like.dtype if one.is_floating_point() else None) for one in setup.watch]
        with torch.no_grad():
            output = self.model.eval()(*shown[: setup.inputs])
            loss = losses_of(setup.loss)(output, *shown[setup.inputs :]).mean()
        for module, mode in modes:
            module.training = mode
        self.watched.append((self.taken, float(loss)))

    def result(self) -> dict[str, Any]:
        """Return the trained parameters by name, or their moving average, and the watched losses."""
        held = self._average or [one.detach() for one in self._sums.parameters]
        named = zip(self._names, held, strict=True)
        weights = {name: to_document(one.float().cpu().numpy()) for name, one in named}
        return {"weights": weights, "watched": [list(one) for one in self.watched]}

    def state(self) -> bytes:
        """Return where the steps stand, for the next instalment."""
        return write_state(self)

    def describe(self) -> str:
        """Return what a terminal shows: the cost of the steps so far, and the loss of public examples."""
        settings, text = (
            self.setup.settings,
            f"Training, step {self.taken:,} of {self.setup.settings.steps:,}",
        )
        if self.taken:
            spent = settings.mechanism(self.taken).cost.epsilon(delta=settings.delta)
            text += f", epsilon {spent:.3g} of {float(settings.epsilon):.3g}"
        return text + (f", public loss {self.watched[-1][1]:.3g}" if self.watched else "")


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    """Move a tensor without waiting for it."""
    if tensor.device == device or device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)
