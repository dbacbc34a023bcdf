"""The content of a training release: the weights, and a model that has them."""

from __future__ import annotations

import copy
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tacit.core import Content, plain_table
from tacit.errors import TacitError
from tacit.fixes import Code, Say
from tacit.learn._arrays import from_document, to_document
from tacit.show import Chart, ChartAxis, ChartSeries, Figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    import torch
    from numpy.typing import NDArray
    from torch import nn

    from tacit.core import JSON, AnswerTable


class TrainedModel(Content):
    """Trained weights: every parameter that was trained, under its name in the model.

    Parameters that were frozen, and buffers, are those of the model that was given; they are not in the
    release. A release that was read from a file has no model yet: `into` puts the weights into one.

    Parameters
    ----------
    weights
        The trained parameters by name.
    about
        Public facts about the training, such as the number of steps taken.
    model, device
        A model to put the weights into, where there is one, and where it predicts.
    """

    kind: ClassVar[str] = "trained-model"
    described: ClassVar[str] = "a trained model"
    __slots__ = ("_device", "_model", "_ready", "about", "weights")

    def __init__(
        self,
        weights: Mapping[str, NDArray[Any]],
        about: Mapping[str, JSON],
        model: nn.Module | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.weights = dict(weights)
        self.about = dict(about)
        self._model = model
        self._device = device
        self._ready: nn.Module | None = None

    @property
    def model(self) -> nn.Module:
        """The model with the trained weights, ready to predict (in evaluation mode)."""
        if self._ready is None:
            if self._model is None:
                raise TacitError(
                    "bad-parameter",
                    "this release has weights, but not the model that they belong to",
                    why="a file holds weights alone; the code of a model is not released",
                    fix=Code("release.into(model)"),
                )
            self._ready = self.into(copy.deepcopy(self._model)).to(self._device).eval()
        return self._ready

    def into(self, model: nn.Module) -> nn.Module:
        """Put the weights into a model of the same architecture, and return it."""
        import torch

        parameters = dict(model.named_parameters())
        strange = [
            name
            for name, array in self.weights.items()
            if name not in parameters or tuple(parameters[name].shape) != array.shape
        ]
        if strange:
            raise TacitError(
                "bad-parameter",
                f"the weights do not fit into this model: {', '.join(strange[:3])}",
                why="it has no parameter of this name, or one of another shape",
                fix=Say("build the model as it was built for the training"),
            )
        with torch.no_grad():
            for name, array in self.weights.items():
                parameters[name].copy_(torch.from_numpy(array))
        return model

    def state(self) -> dict[str, torch.Tensor]:
        """Return the trained parameters as tensors by name."""
        import torch

        return {name: torch.from_numpy(array.copy()) for name, array in self.weights.items()}

    def predict(self, *inputs: Any) -> NDArray[np.generic]:
        """Return the outputs of the model for arrays or tensors, one line for each example."""
        import torch

        model = self.model
        like = next(model.parameters())
        ready = [torch.as_tensor(one) for one in inputs]
        ready = [
            one.to(like.device, like.dtype) if one.is_floating_point() else one.to(like.device)
            for one in ready
        ]
        with torch.no_grad():
            predictions: NDArray[np.generic] = model(*ready).cpu().numpy()
        return predictions

    @property
    def size(self) -> int:
        """How many numbers were trained."""
        return sum(array.size for array in self.weights.values())

    def to_json(self) -> JSON:
        """Return weights and facts as JSON."""
        return {
            "weights": {name: to_document(array) for name, array in self.weights.items()},
            "about": self.about,
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the weights back; raises ``ValueError`` where they are none."""
        return cls(
            {str(name): from_document(one) for name, one in document["weights"].items()},
            dict(document["about"]),
        )

    def __repr__(self) -> str:
        done, steps = self.about.get("taken"), self.about.get("steps")
        through = (
            f", after {done:,} of {steps:,} steps" if isinstance(done, int) and isinstance(steps, int) else ""
        )
        many = len(self.weights)
        parameters = f"{many:,} parameter{'' if many == 1 else 's'}"
        return f"trained model: {self.size:,} numbers in {parameters}{through}"

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the trained parameters: how many numbers each has, and its shape."""
        arrays = self.weights.values()
        about: dict[str, list[Any]] = {
            "numbers": [int(one.size) for one in arrays],
            "shape": [" x ".join(map(str, one.shape)) for one in arrays],
        }
        yield "parameters", plain_table({"parameter": list(self.weights)}, about)

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the loss of the public examples over the steps, if the training watched any."""
        del what
        watched: Any = self.about.get("watched")
        if not watched:
            return ()
        steps, losses = zip(*watched, strict=True)
        chart = Chart((ChartSeries("line", steps, losses),), ChartAxis("step"), ChartAxis("loss"))
        return (Figure("loss of public examples", (chart,)),)

    def without_figure(self) -> TacitError:
        """Say how a training watches public examples."""
        return TacitError(
            "bad-parameter",
            "the training watched no public examples, so there is no loss to draw",
            why="the loss of private examples would need its own noise and its own cost",
            fix=Code("tc.learn.Trainer(..., watch=(public_X, public_y))"),
        )

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write the parameters and their shapes for a notebook."""
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{' x '.join(map(str, array.shape)) or '1'}</td></tr>"
            for name, array in self.weights.items()
        )
        return (
            f"<p>{escape(self.text(marks))}</p><table><tr><th>parameter</th><th>shape</th></tr>{rows}</table>"
        )
