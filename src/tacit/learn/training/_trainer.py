"""Private training of PyTorch models: from a model, a loss and an optimizer to a plan and its release.

Training steps are timed on invented examples, which shows how long a training run will take.
"""

from __future__ import annotations

import copy
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tacit.accounting import RISKS
from tacit.core import Goal, Question
from tacit.errors import TacitError
from tacit.exact import count, rational
from tacit.fixes import Either, Say, Set
from tacit.learn._examples import Examples, check_examples
from tacit.learn._questions import TRAIN
from tacit.learn.estimators._fits import read_delta
from tacit.learn.layers._kernels import read_precision
from tacit.learn.layers._trials import invented
from tacit.learn.training._gradient_sums import is_shared, release_shared
from tacit.learn.training._mechanisms import TrainingSteps
from tacit.learn.training._model_check import check_model, check_optimizer
from tacit.learn.training._optimizer_steps import ModelSums
from tacit.learn.training._settings import (
    NO_DEFAULT,
    NoiseRequest,
    NoisySettings,
    TrainingSettings,
    noisy_settings,
    read_amount,
    read_clip,
)
from tacit.learn.training._setup import Augmentation, TrainingSetup, tensor_of
from tacit.learn.training._trained_model import TrainedModel
from tacit.parameters import Integer, Omitted, RealNumber, exactly_one

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from torch import nn

    from tacit.core import Plan, Release, Run
    from tacit.exact import Number
    from tacit.learn.training._settings import AdaptiveClip


_SPREAD = 3  # standard deviations of the sample's size for which a fixed block leaves room


def seconds_per_step(setup: TrainingSetup, arrays: Sequence[Any], steps: int, warm: int) -> float:
    """Take steps as in training, with sample and noise, on invented examples; return the seconds for each.

    There are as many units as declared. They share few examples, so that these fit into memory.
    """
    few = setup.physical * setup.per_unit
    shapes = tuple(tensor_of(one[:0]) for one in arrays)
    tensors = [one.to(given.device) for one, given in zip(invented(shapes, few), shapes, strict=True)]
    rows = np.arange(setup.settings.size * setup.per_unit).reshape(-1, setup.per_unit) % few
    sums = ModelSums(setup, tensors, rows)
    bound, rate = setup.settings.bound, setup.settings.rate
    mechanism = TrainingSteps(sigma=bound, sensitivity=bound, rate=rate, steps=1)  # any noise takes as long
    began = 0.0
    for step in range(-warm, steps):
        if not step:
            _wait(setup.device)
            began = time.perf_counter()
        sums.taken = 0  # a schedule may be shorter than the timing
        sums.update(mechanism.noisy(sums.sums(mechanism.draw(sums.units))))
    _wait(setup.device)
    return (time.perf_counter() - began) / steps


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Trainer(Question[TrainedModel]):
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
    epsilon, delta
        What the training may cost, delta at most 1 / size: here or in `plan`.
    noise
        Instead of epsilon: the noise as a multiple of the clip. It needs delta here.
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
    ...     batch=20, steps=10,
    ... )
    >>> release = trainer.plan(epsilon=1, delta=1e-6).release()
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
        delta: Number | None = None,
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
        check_examples(data)
        data.refuse_untyped()
        check_optimizer(model, optimizer)
        rate, n_steps = read_amount(data.size, batch, sampling_rate, steps, epochs)
        settings = TrainingSettings(
            size=data.size, rate=rate, steps=n_steps, average=_decay(average), clip=read_clip(clip),
            checkpoints=_parts(checkpoints, n_steps), precision=read_precision(precision),
        )  # fmt: skip
        multiplier = None if noise is None else rational("noise", noise)
        wish = NoiseRequest(multiplier, noise_kind, bands, charge)
        trained = sum(one.numel() for one in model.parameters() if one.requires_grad)
        self.data, self._given = data, (epsilon, delta)
        self._has_goal = (epsilon, delta, noise) != (None, None, None)
        if self._has_goal:  # one that cannot be kept is refused at once
            noisy_settings(settings, wish, _goal(settings, wish, trained, epsilon, delta), trained)
        physical = _block(settings, physical_batch, data.per_unit)
        model_device = next(model.parameters()).device
        copies = copy.deepcopy((model, optimizer))
        loss = copy.deepcopy(loss) if isinstance(loss, torch.nn.Module) else loss
        copies[0].cpu()  # the memory of the device is for the training
        copies[1].load_state_dict(copies[1].state_dict())  # the state goes to where the parameters are
        setup = TrainingSetup(
            *(copies[0], loss, copies[1], settings), data.per_unit,
            inputs=max(1, len(data._arrays) - 1),  # noqa: SLF001 - the field's own dataset
            physical=physical, device=torch.device(model_device if device is None else device),
            compile=compile, augment=augment,
            schedule=() if schedule is None else tuple(float(schedule(t)) for t in range(n_steps)),
            watch=tuple(torch.as_tensor(one) for one in watch),
        )  # fmt: skip
        self.setup = check_model(setup, data._arrays)  # noqa: SLF001
        arguments = {"setup": self.setup, "document": self.setup.document(), "wish": wish}
        super().__init__(data, TRAIN, TRAIN.read(arguments))

    @property
    def settings(self) -> TrainingSettings:
        """How the training samples and clips, with the noise where the trainer has a goal of its own."""
        if not self._has_goal:
            return self.setup.settings
        return noisy_settings(self.setup.settings, self.arguments["wish"], self._goal(), self.setup.size)

    def __repr__(self) -> str:
        settings = self.settings
        noise = ""
        if isinstance(settings, NoisySettings):
            noise = f", noise={float(settings.multiplier):.4g}"
        return (
            f"Trainer({type(self.setup.model).__name__}, {self.setup.size:,} numbers, data={self.data!r}, "
            f"steps={settings.steps:,}{noise})"
        )

    def plan(
        self, *, epsilon: Number | None = None, delta: Number | None = None, **goal: Any
    ) -> Plan[TrainedModel]:
        """Return the plan: noise, steps, cost and expected signal; it touches no data.

        With several checkpoints it is the plan of a run, and `Plan.run` gives one after another.

        Parameters
        ----------
        epsilon, delta
            What the training may cost, delta at most 1 / size; by default what the trainer was made with.
        goal
            Instead of epsilon: a risk (``advantage``, ``attack`` or ``belief``), as in
            `tacit.core.Question.plan`.
        """
        if goal and not goal.keys() & {*RISKS}:
            return super().plan(epsilon=epsilon, delta=delta or 0, **goal)  # refused: nothing else is taken
        if goal:
            fixed = self.arguments["wish"].multiplier
            Omitted("with a risk", why="the risk sets the noise").read("noise", fixed)
            small = read_delta(self._given[1] if delta is None else delta, self.setup.settings.size)
            return super().plan(epsilon=epsilon, delta=small, **goal)
        return self.planned(self._goal(epsilon, delta))

    def release(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        who: str = "",
        purpose: str = "",
    ) -> Release[TrainedModel]:
        """Plan and release; of several checkpoints, the next one.

        Where ``torch.distributed`` has several processes, call it on all of them, with the same examples:
        the first one charges the ledger, draws and adds noise, and all of them compute.

        Parameters
        ----------
        epsilon, delta
            As in `plan`.
        who, purpose
            Recorded in the ledger.
        """
        shared = is_shared()
        goal, setup = self._goal(epsilon, delta), replace(self.setup, shared=shared)
        plan = TRAIN.ask(self.data, **{**self.arguments, "setup": setup}).planned(goal)

        def drawn() -> Release[TrainedModel]:
            if setup.settings.checkpoints == 1:
                return plan.release(who=who, purpose=purpose)
            return plan.run(who=who, purpose=purpose).next()

        return release_shared(setup, self.data._arrays, plan.hash, drawn) if shared else drawn()  # noqa: SLF001

    def _goal(self, epsilon: Number | None = None, delta: Number | None = None) -> Goal:
        """Return the goal that is given here, or with which the trainer was made."""
        defaults = self._given
        epsilon, delta = defaults[0] if epsilon is None else epsilon, defaults[1] if delta is None else delta
        return _goal(self.setup.settings, self.arguments["wish"], self.setup.size, epsilon, delta)

    def resume(
        self,
        checkpoint: Release[TrainedModel],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
    ) -> Run[TrainedModel]:
        """Continue the run that a checkpoint belongs to; a checkpoint of another run is refused.

        The run goes on after the last instalment that its ledger has stored, with the state that is kept
        there. Nothing is drawn twice, and nothing is charged again.

        Parameters
        ----------
        checkpoint
            A release of the run.
        epsilon, delta
            As in `plan`.
        """
        plan = self.plan(epsilon=epsilon, delta=delta)
        stated = checkpoint.certificate.fields.get("plan")
        if stated != plan.hash:
            raise TacitError(
                "plan-differs",
                "the checkpoint belongs to another run",
                why="its certificate names another plan: another model, start, dataset or setting",
                fix=Say("make the trainer as it was made for that run"),
            )
        return plan.run()

    def seconds_per_step(self, steps: int = 5, *, warm: int = 2) -> float:
        """Return how long a step takes here, measured on invented examples: free, and it touches no data.

        Parameters
        ----------
        steps, warm
            How many steps are timed, and how many are taken before, for example to compile.
        """
        timed = count("steps", steps, zero=False), count("warm", warm)
        return seconds_per_step(self.setup, self.data._arrays, *timed)  # noqa: SLF001 - types and shapes


def _goal(
    settings: TrainingSettings,
    wish: NoiseRequest,
    trained: int,
    epsilon: Number | None,
    delta: Number | None,
) -> Goal:
    """Read a goal: delta with epsilon, or with the noise, from which epsilon follows."""
    small = read_delta(delta, settings.size)
    exactly_one(
        "a training", why=NO_DEFAULT, fix=Either(Set(epsilon=1), Set(noise=1.0)),
        epsilon=epsilon, noise=wish.multiplier,
    )  # fmt: skip
    if epsilon is None:  # of much noise it may be rounded to 0
        return Goal(epsilon=wish.reached(settings, small, trained), delta=small)
    return Goal.read(epsilon=epsilon, delta=small)


def _decay(average: Number) -> Fraction:
    return RealNumber(least=0, below=1, instead=0.999).read("average", average)


def _parts(checkpoints: int, steps: int) -> int:
    return Integer(1, steps, f"the number of steps is {steps:,}", instead=1).read("checkpoints", checkpoints)


def _block(settings: TrainingSettings, physical: int | None, per_unit: int) -> int:
    """Return how many units are computed at once: even parts of a sample that is seldom exceeded."""
    max_units = (
        count("physical_batch", physical, zero=False) if physical is not None else max(1, 512 // per_unit)
    )
    mean = float(settings.denominator)
    usual = max(1, math.ceil(mean + _SPREAD * math.sqrt(mean * (1 - float(settings.rate)))))
    even = math.ceil(usual / math.ceil(usual / max_units))
    return min(max_units, -(-even // 8) * 8)
