"""How a training is planned: all steps in one draw, or in instalments with a checkpoint after each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tacit.core import Draft, Forecast, RunTask, Step, Task
from tacit.learn._arrays import from_document
from tacit.learn._examples import unit_names
from tacit.learn.estimators._fits import check_fit_goal
from tacit.learn.training._settings import (
    AdaptiveClip,
    NoiseRequest,
    NoisySettings,
    noisy_settings,
)
from tacit.learn.training._trained_model import TrainedModel
from tacit.report import percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from tacit.core import JSON, DrawnBefore, Goal, Noisy
    from tacit.learn._examples import Examples
    from tacit.learn.training._optimizer_steps import ModelSums
    from tacit.learn.training._setup import TrainingSetup


def numerics_in_words(setup: TrainingSetup) -> str:
    """Return what a plan and a certificate say about the floats of a training."""
    kernels = "" if setup.slots is None else f"; {setup.slots.words()}"
    return (
        "idealised: sums and noise are floats, so one unit can move a sum by a little more than the clip "
        f"(measured: up to 1.0016 times, if its rows nearly cancel){kernels}"
    )


def draft_training(
    data: Examples, goal: Goal, *, setup: TrainingSetup, document: Mapping[str, JSON], wish: NoiseRequest
) -> Draft[TrainedModel]:
    """Draft a training, with the noise that keeps the promise."""
    check_fit_goal(goal, data.size)
    settings = noisy_settings(setup.settings, wish, goal, setup.size)
    noisy = replace(setup, settings=settings)
    make = _in_one_draw if settings.checkpoints == 1 else _in_instalments
    return Draft(
        task=make(data, noisy, settings, document),
        asked=f"train {type(setup.model).__name__} with {settings.steps:,} steps",
        forecast=lambda: _forecast(settings, setup.size),
        facts=lambda: _facts(data, noisy, settings),
        promised={"epsilon": settings.epsilon, "delta": settings.delta},
    )


def _in_one_draw(
    data: Examples, setup: TrainingSetup, settings: NoisySettings, document: Mapping[str, JSON]
) -> Task[ModelSums, TrainedModel]:
    """Return all steps as one draw."""

    def sums(_: object) -> ModelSums:
        from tacit.learn.training._optimizer_steps import ModelSums

        return ModelSums(setup, data._arrays, data.units())  # noqa: SLF001 - of this room

    return Task(
        document={"learn": "training", **document},
        open=sums,
        steps=(Step(settings.mechanism_of(None), lambda sums, _: sums),),
        reading=lambda noisy, _: read_model(setup, noisy[0]),
        numerics=numerics_in_words(setup),
    )


def _in_instalments(
    data: Examples, setup: TrainingSetup, settings: NoisySettings, document: Mapping[str, JSON]
) -> RunTask[ModelSums, TrainedModel]:
    """Return the steps in instalments: each continues where the last stored one stopped."""

    def sums(before: DrawnBefore) -> ModelSums:
        from tacit.learn.training._optimizer_steps import ModelSums

        rows = data.units()
        sums_of_model = ModelSums(setup, data._arrays, rows, before.state)  # noqa: SLF001 - of this room
        sums_of_model.part = before.number
        if settings.bands > 1:
            sums_of_model.names = unit_names(data._arrays, data._owners, rows)  # noqa: SLF001
        return sums_of_model

    def reading(number: int, noisy: Mapping[int, Sequence[Noisy]], _: Fraction) -> TrainedModel:
        return read_model(setup, noisy[number][0])

    return RunTask(
        document={"learn": "training", "checkpoints": settings.checkpoints, **document},
        instalments=settings.checkpoints,
        steps_of=lambda number: (Step(settings.mechanism_of(number), lambda sums, _: sums),),
        open=sums,
        reading=reading,
        left=lambda sums: sums.state(),
        composition="sum" if settings.bands == 1 else "once",
        numerics=numerics_in_words(setup),
    )


def read_model(setup: TrainingSetup, noisy: Any) -> TrainedModel:
    """Read trained weights from what was stored: pairs of names and documents."""
    stored = dict(noisy)
    weights = {name: from_document(dict(pairs)) for name, pairs in stored["weights"]}
    about: dict[str, JSON] = {name: stored[name] for name in ("taken", "watched")}
    about["steps"] = setup.settings.steps
    return TrainedModel(weights, about, setup.model, setup.device)


def _forecast(settings: NoisySettings, size: int) -> list[Forecast]:
    """Say how much of the signal is left."""
    ratio, mechanism = settings.signal_to_noise(size), settings.mechanism_of(None)
    note = (
        f"in a step the signal is at most {ratio:.2g} times the noise (if all gradients agree); larger "
        "batches and fewer parameters help"
    )
    return [Forecast("weights", f"{size:,} trained numbers", mechanism.describe(), None, note)]


def _facts(data: Examples, setup: TrainingSetup, settings: NoisySettings) -> list[tuple[str, str]]:
    """Say how the noise, the sample and the clip are chosen."""
    rate, noun = percent(float(settings.rate), 2), data.unit.noun
    clip = {
        str: "each gradient counts with norm 1",
        AdaptiveClip: "it follows a quantile of the norms, which costs a part of the same noise",
    }.get(type(settings.clip), f"{float(settings.bound):g}")
    many = "1 example" if data.per_unit == 1 else f"up to {data.per_unit} examples"
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
        ("numerics", numerics_in_words(setup)),
    ]
