"""Private training of PyTorch models: from a model, a loss and an optimizer to a plan and its release."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from tacit.core import Forecast, Plan
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count, rational
from tacit.fixes import Code, Say, Set
from tacit.learn._adaptive_clip import AdaptiveClip
from tacit.learn._examples import Examples
from tacit.learn._model_check import check_model, check_optimizer
from tacit.learn._precision import read_precision
from tacit.learn._ranks import is_shared, release_shared
from tacit.learn._training_settings import (
    TrainingSettings,
    check_delta_of_size,
    cost_of_steps,
    read_amount,
    read_bands,
    read_charge,
    read_clip,
    read_multiplier,
)
from tacit.learn._training_setup import Augmentation, TrainingSetup
from tacit.learn._training_task import CheckpointTask, TrainingTask, numerics_in_words
from tacit.report import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from torch import nn

    from tacit.core import Release, Run
    from tacit.exact import Number
    from tacit.learn._trained_model import TrainedModel

__all__ = ["Trainer"]

_SPREAD = 3  # standard deviations of the sample's size for which a fixed block leaves room


class Trainer:
    """Train a PyTorch model so that its weights protect each unit.

    Guarantee
    ---------
    The released weights are private for one unit within epsilon and delta. Each step draws every unit with
    the same probability, clips the summed gradient of each unit's examples, adds Gaussian noise once, and
    divides by the expected number of units. The mechanism that draws is the one that is charged. Sums and
    noise are floats, so the certificate says that the numerics are idealised: a unit can move a sum by up to
    1.0016 times the clip if its rows nearly cancel (measured). That kernels compute a unit in the same way
    whoever else is there is tested before the charge, and not proven. A unit whose gradient is not
    finite, or on whose examples the model or the loss fails (an unknown label, say), adds zero: no record can
    end a training run. docs/proofs/training.md.

    Parameters
    ----------
    model
        The model; it is copied, and never changed. Parameters without gradient stay as they are.
    loss
        Called with the model's output and the targets: a loss of ``torch.nn``, or a function that returns
        one value for each example.
    optimizer
        An optimizer of the model's parameters.
    data
        Examples with a declared unit: the last array goes to the loss, the others to the model.
    clip
        The largest norm of a unit's gradient; or ``"automatic"``, which gives all of them norm 1; or an
        `AdaptiveClip`.
    batch, sampling_rate
        The expected number of units in a step, or the probability of each; one of both.
    steps, epochs
        How many steps, or how often each unit is drawn on average; one of both.
    epsilon, noise
        What the training may cost, or the noise as a multiple of the clip; one of both.
    delta
        At most 1 / size.
    noise_kind, bands
        ``"independent"`` noise for each step; ``"correlated"``, where later noise takes back a part of the
        noise of some steps before (``bands`` of them, or as many as help most), which needs as many copies
        of the model in memory and helps with few epochs or a large epsilon; ``"auto"`` takes the one with
        the smaller predicted error of the sum of all steps.
    charge
        ``"steps"`` charges the ledger with the steps, which add up well with other releases. ``"total"``
        charges one pair of epsilon and delta, which fits a budget of this epsilon and twice this delta. The
        first charge of a budget may take all of it in either way.
    checkpoints
        In how many instalments the training is released; with more than one, the plan is a run.
    physical_batch
        How many units are computed at once: a block with fewer is filled up. It changes memory and speed
        alone. Where tests show that rows are not separate, Tacit computes one unit at a time.
    precision
        ``"float32"``, ``"tf32"`` or ``"bfloat16"``.
    compile
        Whether to compile the computation of a block, which then has a fixed size.
    augment
        A `tacit.learn.Augmentation`: variants of each example, averaged before the clip.
    average
        The decay of a moving average of the weights, which is then released in place of the last weights.
    schedule
        A function from the number of a step, from 0, to a factor for the learning rate.
    watch
        Public examples, arrays as in ``data``: their loss may be shown.
    device
        Where to train; by default, where the model is. The trainer copies the model there, so a model that
        stays on the processor leaves more memory of a device.

    Examples
    --------
    >>> import numpy as np, torch, tacit as tc
    >>> patients = tc.learn.examples(
    ...     np.zeros((100, 3)), np.zeros(100, dtype=int), unit=tc.Unit.row(), size=100,
    ...     budget=tc.Budget(epsilon=2, delta=1e-6),
    ... )
    >>> model = torch.nn.Linear(3, 2)
    >>> trainer = Trainer(
    ...     model, torch.nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1), data=patients,
    ...     batch=20, steps=10, epsilon=1, delta=1e-6,
    ... )
    >>> release = trainer.plan().release()
    >>> release.size, release.predict(np.zeros((4, 3))).shape
    (8, (4, 2))
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Any,
        optimizer: torch.optim.Optimizer,
        *,
        data: Examples,
        delta: Number,
        clip: Number | str | AdaptiveClip = 1,
        batch: Number | None = None,
        sampling_rate: Number | None = None,
        steps: int | None = None,
        epochs: Number | None = None,
        epsilon: Number | None = None,
        noise: Number | None = None,
        charge: str = "steps",
        noise_kind: str = "independent",
        bands: int | None = None,
        checkpoints: int = 1,
        physical_batch: int | None = None,
        precision: str = "float32",
        compile: bool = False,  # noqa: A002 - PyTorch's own word
        augment: Augmentation | None = None,
        average: Number = 0,
        schedule: Callable[[int], float] | None = None,
        watch: Sequence[Any] = (),
        device: str | torch.device | None = None,
    ) -> None:
        check_data(data)
        check_optimizer(model, optimizer)
        small = check_delta_of_size(delta, data.size)
        rate, taken = read_amount(data.size, batch, sampling_rate, steps, epochs)
        parts = _parts(checkpoints, taken)
        trained = sum(one.numel() for one in model.parameters() if one.requires_grad)
        width = read_bands(noise_kind, bands, rate, taken, epsilon, noise, small, trained)
        multiplier, self.promised = read_multiplier(
            lambda given: cost_of_steps(given, taken, rate, width), epsilon, noise, small
        )  # fmt: skip
        self.data = data
        self.settings = TrainingSettings(
            size=data.size, rate=rate, steps=taken, multiplier=multiplier, average=_decay(average),
            checkpoints=parts, stated=read_charge(charge, small, parts), clip=read_clip(clip),
            precision=read_precision(precision), epsilon=self.promised["epsilon"], delta=small, bands=width,
        )  # fmt: skip
        physical = _block(self.settings, physical_batch, data.per_unit)
        own = next(model.parameters()).device
        kept = copy.deepcopy((model, optimizer))
        loss = copy.deepcopy(loss) if isinstance(loss, torch.nn.Module) else loss
        kept[0].cpu()  # the memory of the device is for the training
        kept[1].load_state_dict(kept[1].state_dict())  # the state goes to where the parameters are
        self.setup = TrainingSetup(
            *(kept[0], loss, kept[1], self.settings), data.per_unit,
            inputs=max(1, len(data._arrays) - 1),  # noqa: SLF001 - the field's own dataset
            physical=physical, device=torch.device(own if device is None else device), compile=compile,
            augment=augment,
            schedule=() if schedule is None else tuple(float(schedule(t)) for t in range(taken)),
            watch=tuple(torch.as_tensor(one) for one in watch),
        )  # fmt: skip
        self.setup = check_model(self.setup, data._arrays)  # noqa: SLF001
        self._document = self.setup.document()

    def __repr__(self) -> str:
        settings = self.settings
        return (
            f"Trainer({type(self.setup.model).__name__}, {self.setup.size:,} numbers, data={self.data!r}, "
            f"steps={settings.steps:,}, noise={float(settings.multiplier):.4g})"
        )

    def plan(self) -> Plan[TrainedModel]:
        """Return the plan: noise, steps, cost and expected signal; it touches no data.

        With several checkpoints it is the plan of a run, and `Plan.run` gives one after another.
        """
        return self._plan(self.setup)

    def release(self, *, who: str = "", purpose: str = "") -> Release[TrainedModel]:
        """Plan and release; of several checkpoints, the next one.

        Where ``torch.distributed`` has several processes, call it on all of them, with the same examples:
        the first one charges the ledger, draws and adds noise, and all of them compute.

        Parameters
        ----------
        who, purpose
            Recorded in the ledger.
        """
        shared = is_shared()
        plan = self._plan(replace(self.setup, shared=shared))

        def drawn() -> Release[TrainedModel]:
            if self.settings.checkpoints == 1:
                return plan.release(who=who, purpose=purpose)
            return plan.run(who=who, purpose=purpose).next()

        return release_shared(self.setup, self.data._arrays, plan.hash, drawn) if shared else drawn()  # noqa: SLF001

    def resume(self, checkpoint: Release[TrainedModel]) -> Run[TrainedModel]:
        """Continue the run that a checkpoint belongs to; a checkpoint of another run is refused.

        The run goes on after the last instalment that its ledger has stored, with the state that is kept
        there. Nothing is drawn twice, and nothing is charged again.
        """
        plan = self.plan()
        stated = checkpoint.certificate.fields.get("plan")
        if stated != plan.hash:
            raise TacitError(
                "plan-differs",
                "the checkpoint belongs to another run",
                why="its certificate names another plan: another model, start, dataset or setting",
                fix=Say("make the trainer as it was made for that run"),
            )
        return plan.run()

    def _plan(self, setup: TrainingSetup) -> Plan[TrainedModel]:
        kind = TrainingTask if self.settings.checkpoints == 1 else CheckpointTask
        return Plan.of(
            self.data,
            kind(self.data, setup, self._document),
            promised=self.promised,
            forecast=self._forecast,
            facts=self._facts,
            asked=f"train {type(self.setup.model).__name__} with {self.settings.steps:,} steps",
        )

    def seconds_per_step(self, steps: int = 5, *, warm: int = 2) -> float:
        """Return how long a step takes here, measured on invented examples: free, and it touches no data.

        Parameters
        ----------
        steps, warm
            How many steps are timed, and how many are taken before, for example to compile.
        """
        from tacit.learn._step_timing import seconds_per_step

        timed = count("steps", steps, zero=False), count("warm", warm)
        return seconds_per_step(self.setup, self.data._arrays, *timed)  # noqa: SLF001 - types and shapes

    def _forecast(self) -> list[Forecast]:
        ratio = self.settings.signal_to_noise(self.setup.size)
        settings = self.settings
        mechanism = settings.mechanism(settings.steps) if settings.bands == 1 else settings.correlated()
        note = (
            f"in a step the signal is at most {ratio:.2g} times the noise (if all gradients agree); larger "
            "batches and fewer parameters help"
        )
        return [Forecast("weights", f"{self.setup.size:,} trained numbers", mechanism.describe(), None, note)]

    def _facts(self) -> list[tuple[str, str]]:
        settings = self.settings
        rate, noun = percent(float(settings.rate), 2), self.data.unit.noun
        clip = {
            str: "each gradient counts with norm 1",
            AdaptiveClip: "it follows a quantile of the norms, which costs a part of the same noise",
        }.get(type(settings.clip), f"{float(settings.bound):g}")
        many = "1 example" if self.data.per_unit == 1 else f"up to {self.data.per_unit} examples"
        noise = f"{float(settings.multiplier):.4g} times the clip, added once in each step"
        if settings.bands > 1:
            noise += f"; a part of it is taken back in the {settings.bands - 1} steps after it"
        return [
            ("noise", noise),
            ("sampling", f"each of {settings.steps:,} steps draws each {noun} with probability {rate}"),
            ("empty steps", "a step that draws nobody is taken too, with noise alone"),
            ("clip", f"{clip}; it bounds the summed gradient of {many} of one {noun}"),
            (
                "denominator",
                f"{float(settings.denominator):g}, the expected number of {noun}s in a step; it is public",
            ),
            ("numerics", numerics_in_words(self.setup)),
        ]


def check_data(data: object) -> None:
    """Refuse data that does not say who is protected."""
    if not isinstance(data, Examples):
        raise bad_parameter(
            "data", "examples with a declared unit", type(data).__name__,
            why="without a unit nobody knows whose influence is to be bounded",
            fix=Code("tc.learn.examples(X, y, unit=tc.Unit.row(), size=1000, budget=budget)"),
        )  # fmt: skip


def _decay(average: Number) -> Fraction:
    decay = rational("average", average, zero=True)
    if decay >= 1:
        raise bad_parameter("average", "in [0, 1)", average, fix=Set(average=0.999))
    return decay


def _parts(checkpoints: int, steps: int) -> int:
    parts = count("checkpoints", checkpoints, zero=False)
    if parts > steps:
        raise bad_parameter("checkpoints", f"at most the number of steps, {steps}", parts,
                            fix=Set(checkpoints=1))  # fmt: skip
    return parts


def _block(settings: TrainingSettings, physical: int | None, per_unit: int) -> int:
    """Return how many units are computed at once: even parts of a sample that is seldom exceeded."""
    most = count("physical_batch", physical, zero=False) if physical is not None else max(1, 512 // per_unit)
    mean = float(settings.denominator)
    usual = max(1, math.ceil(mean + _SPREAD * math.sqrt(mean * (1 - float(settings.rate)))))
    even = math.ceil(usual / math.ceil(usual / most))
    return min(most, -(-even // 8) * 8)
