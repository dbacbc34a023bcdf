"""The tasks of training: all steps in one draw, or in instalments with a checkpoint after each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.learn._arrays import from_document
from tacit.learn._trained_model import TrainedModel
from tacit.learn._unit_rows import unit_names

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from fractions import Fraction

    from tacit.core import JSON
    from tacit.learn._correlated_steps import CorrelatedSteps
    from tacit.learn._examples import Examples
    from tacit.learn._training_setup import TrainingSetup
    from tacit.learn._training_steps import TrainingSteps

__all__ = ["CheckpointTask", "TrainingTask", "numerics_in_words"]


def numerics_in_words(setup: TrainingSetup) -> str:
    """Return what a plan and a certificate say about the floats of a training."""
    kernels = "" if setup.slots is None else f"; {setup.slots.words()}"
    return (
        "idealised: sums and noise are floats, so one unit can move a sum by a little more than the clip "
        f"(measured: up to 1.0016 times, if its rows nearly cancel){kernels}"
    )


@dataclass(frozen=True, slots=True)
class TrainingTask:
    """All steps of a training run, in one draw."""

    data: Examples
    setup: TrainingSetup
    document: Mapping[str, JSON]

    @property
    def question(self) -> JSON:
        """What is trained, from which start, and how."""
        return {"learn": "training", **self.document}

    @property
    def mechanisms(self) -> tuple[TrainingSteps | CorrelatedSteps, ...]:
        """The steps."""
        settings = self.setup.settings
        return (settings.mechanism(settings.steps) if settings.bands == 1 else settings.correlated(),)

    @property
    def numerics(self) -> str:
        """What the certificate says about floats."""
        return numerics_in_words(self.setup)

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the sums over the private examples, which the mechanism asks step by step."""
        from tacit.learn._model_sums import ModelSums

        yield ModelSums(self.setup, self.data._arrays, self.data.units())  # noqa: SLF001 - tasks may

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> TrainedModel:
        """Read the trained weights."""
        del confidence
        return read_model(self.setup, noisy[0])


@dataclass(frozen=True, slots=True)
class CheckpointTask:
    """The steps of a training run in instalments: each continues where the last stored one stopped."""

    data: Examples
    setup: TrainingSetup
    document: Mapping[str, JSON]

    @property
    def question(self) -> JSON:
        """What is trained, from which start, how, and with how many checkpoints."""
        return {"learn": "training", "checkpoints": self.instalments, **self.document}

    @property
    def composition(self) -> str:
        """The costs of instalments add up; correlated noise is one mechanism that spans all of them."""
        return "sum" if self.setup.settings.bands == 1 else "once"

    @property
    def instalments(self) -> int:
        """One for each checkpoint."""
        return self.setup.settings.checkpoints

    @property
    def numerics(self) -> str:
        """What the certificates say about floats."""
        return numerics_in_words(self.setup)

    def mechanisms_of(self, number: int) -> tuple[TrainingSteps | CorrelatedSteps, ...]:
        """Return the steps of one instalment."""
        settings = self.setup.settings
        return (
            settings.mechanism(settings.steps_of(number)) if settings.bands == 1 else settings.correlated(),
        )

    def integers_of(
        self, number: int, noisy: Mapping[int, Sequence[Any]], state: bytes
    ) -> Generator[Any, Any, bytes | None]:
        """Yield the sums, which start from the state of the last stored instalment; return the new state."""
        from tacit.learn._model_sums import ModelSums

        del noisy
        rows = self.data.units()
        sums = ModelSums(self.setup, self.data._arrays, rows, state)  # noqa: SLF001 - tasks may
        sums.part = number
        if self.setup.settings.bands > 1:
            sums.names = unit_names(self.data._arrays, self.data._owners, rows)  # noqa: SLF001
        yield sums
        return sums.state()

    def read_of(self, number: int, noisy: Mapping[int, Sequence[Any]], confidence: Fraction) -> TrainedModel:
        """Read the weights of a checkpoint."""
        del confidence
        return read_model(self.setup, noisy[number][0])


def read_model(setup: TrainingSetup, noisy: Any) -> TrainedModel:
    """Read trained weights from what was stored: pairs of names and documents."""
    stored = dict(noisy)
    weights = {name: from_document(dict(pairs)) for name, pairs in stored["weights"]}
    about: dict[str, JSON] = {name: stored[name] for name in ("taken", "watched")}
    about["steps"] = setup.settings.steps
    return TrainedModel(weights, about, setup.model, setup.device)
