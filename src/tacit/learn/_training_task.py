"""The tasks of training: all steps in one draw, or in instalments with a checkpoint after each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.learn._arrays import from_document
from tacit.learn._trained_model import TrainedModel

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from fractions import Fraction

    from tacit.core import JSON
    from tacit.learn._examples import Examples
    from tacit.learn._training_setup import TrainingSetup
    from tacit.learn._training_steps import TrainingSteps

__all__ = ["CheckpointTask", "TrainingTask"]


@dataclass(frozen=True, slots=True)
class TrainingTask:
    """All steps of a training, in one draw."""

    data: Examples
    setup: TrainingSetup
    document: Mapping[str, JSON]

    @property
    def question(self) -> JSON:
        """What is trained, from which start, and how."""
        return {"learn": "training", **self.document}

    @property
    def mechanisms(self) -> tuple[TrainingSteps, ...]:
        """The steps."""
        return (self.setup.settings.mechanism(self.setup.settings.steps),)

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the sums over the private examples, which the mechanism asks step by step."""
        from tacit.learn._model_sums import ModelSums

        yield ModelSums(self.setup, self.data._arrays, self.data.units())  # noqa: SLF001 - tasks may

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> TrainedModel:
        """Read the trained weights."""
        del confidence
        return read_model(self.setup, noisy[0], self.setup.settings.steps)


@dataclass(frozen=True, slots=True)
class CheckpointTask:
    """The steps of a training in instalments: each continues where the last stored one stopped."""

    data: Examples
    setup: TrainingSetup
    document: Mapping[str, JSON]

    @property
    def question(self) -> JSON:
        """What is trained, from which start, how, and with how many checkpoints."""
        return {"learn": "training", "checkpoints": self.instalments, **self.document}

    @property
    def instalments(self) -> int:
        """One for each checkpoint."""
        return self.setup.settings.checkpoints

    def mechanisms_of(self, number: int) -> tuple[TrainingSteps, ...]:
        """Return the steps of one instalment."""
        return (self.setup.settings.mechanism(self.setup.settings.steps_of(number)),)

    def integers_of(
        self, number: int, noisy: Mapping[int, Sequence[Any]], state: bytes
    ) -> Generator[Any, Any, bytes | None]:
        """Yield the sums, which start from the state of the last stored instalment; return the new state."""
        from tacit.learn._model_sums import ModelSums

        del number, noisy
        sums = ModelSums(self.setup, self.data._arrays, self.data.units(), state)  # noqa: SLF001 - tasks may
        yield sums
        return sums.state()

    def read_of(self, number: int, noisy: Mapping[int, Sequence[Any]], confidence: Fraction) -> TrainedModel:
        """Read the weights of a checkpoint."""
        del confidence
        through = sum(self.setup.settings.steps_of(one) for one in range(1, number + 1) if one in noisy)
        return read_model(self.setup, noisy[number][0], through)


def read_model(setup: TrainingSetup, noisy: Any, taken: int) -> TrainedModel:
    """Read trained weights from what was stored: pairs of names and documents."""
    stored = dict(noisy)
    weights = {name: from_document(dict(pairs)) for name, pairs in stored["weights"]}
    about: dict[str, JSON] = {"taken": taken, "steps": setup.settings.steps, "watched": stored["watched"]}
    return TrainedModel(weights, about, setup.model)
