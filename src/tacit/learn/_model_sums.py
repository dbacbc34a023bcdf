"""Sums of a model's gradients over samples of units, and the steps that follow from noisy sums."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from tacit.learn._adaptive_clip import AdaptiveClip
from tacit.learn._arrays import to_document
from tacit.learn._gradient_sums import GradientSums, SampledRows
from tacit.learn._ranks import SharedGradientSums
from tacit.learn._step_check import CheckedOptimizer
from tacit.learn._training_settings import NoisySettings
from tacit.learn._training_setup import as_model_input
from tacit.learn._training_state import read_state, write_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from tacit.learn._training_setup import TrainingSetup


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
        found = self._blocks.add_up(rows, scale, careful=False)
        if len(sample) and bool(found.strange):
            found = self._blocks.add_up(rows, scale, careful=True)
        if isinstance(rule, AdaptiveClip):
            torch._foreach_mul_(found.sums, math.sqrt(1 - rule.share))
            found.sums.append(found.balance * math.sqrt(rule.share))
        return found.sums

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
        shown = [as_model_input(one.to(setup.device), like.dtype) for one in setup.watch]
        with torch.no_grad():
            output = self.model.eval()(*shown[: setup.inputs])
            loss = self._blocks.clipped.step.losses(output, *shown[setup.inputs :]).mean()
        for module, mode in modes:
            module.training = mode
        self.watched.append((self.taken, float(loss)))

    def result(self) -> dict[str, Any]:
        """Return the trained parameters by name, or their moving average, and the watched losses."""
        held = self._average or [one.detach() for one in self._blocks.parameters]
        named = zip(self._names, held, strict=True)
        weights = {name: to_document(one.float().cpu().numpy()) for name, one in named}
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
