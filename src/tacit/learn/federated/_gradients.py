"""Models that hospitals train together: weights as one vector, and gradients example by example.

PyTorch models give their gradients as NumPy arrays. Each unit's gradient is clipped on a public grid of
integers, so that its norm is exact.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from tacit.core import needs
from tacit.exact import count
from tacit.parameters import Choice, Instance

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tacit.core import JSON


#: A gradient of the length of the clip is this many grid steps long.
CLIP_STEPS = 2**20
#: With at most so many numbers, a sum of squares fits into 64 bits.
MAX_WEIGHTS = 2**22
_LABEL_TYPES = ("int64", "float32", "float64")
_MARGIN = 1 - 2.0**-40  # a computed norm may be wrong in its last bits


def clip_whole(gradients: NDArray[np.float64], clip: float) -> NDArray[np.int64]:
    """Return gradients as whole grid steps of ``clip / 2**20``, each line at most ``2**20`` long.

    Guarantee: the squared length of each line, computed in integers, is at most 2**40; whatever the floats
    were. Numbers are cut off toward zero, which never makes a line longer. A line that is not finite, or is
    too long all the same, becomes zero.

    Examples
    --------
    >>> clip_whole(np.array([[3.0, 4.0], [0.0, 0.5], [np.nan, 0.0]]), 1.0).tolist()
    [[629145, 838860], [0, 524288], [0, 0]]
    """
    exact = np.asarray(gradients, dtype=np.float64)
    with np.errstate(all="ignore"):
        largest = np.abs(exact).max(axis=1, keepdims=True, initial=0.0)
        unit = exact / np.where(largest > 0, largest, 1.0)
        norms = np.sqrt((unit * unit).sum(axis=1, keepdims=True))
        shrunk = np.minimum(largest * norms / clip, _MARGIN) / np.where(norms > 0, norms, 1.0)
        steps = np.trunc(unit * (shrunk * CLIP_STEPS))
    steps[~np.isfinite(steps).all(axis=1)] = 0.0
    clipped: NDArray[np.int64] = np.clip(steps, -CLIP_STEPS, CLIP_STEPS).astype(np.int64)
    clipped[np.einsum("ij,ij->i", clipped, clipped) > CLIP_STEPS**2] = 0
    return clipped


class GradientModel(Protocol):
    """What a study asks of a model.

    The gradient of an example must be a function of the weights and of this example alone. In floats, this
    rarely holds to the last bit for several examples at once: a product of matrices rounds in another order
    if there are more lines. Hospitals therefore ask for one example at a time, unless the model has an
    attribute ``separate`` that is True. It says that each line is, bit for bit, what it would be alone.
    """

    @property
    def dimension(self) -> int:
        """How many weights there are."""

    def document(self) -> JSON:
        """Return the model as a document of public facts: equal documents mean equal models."""

    def start(self) -> NDArray[np.float64]:
        """Return the weights before the first round."""

    def gradients(
        self, weights: NDArray[np.float64], X: NDArray[Any], y: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Return the gradient of the loss of each example, one line for each."""

    def predict(self, weights: NDArray[np.float64], X: NDArray[Any]) -> NDArray[Any]:
        """Return what the model predicts for each example."""

    def example(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return two invented examples of the right shape, for checks that touch no data."""


@dataclass(frozen=True, slots=True)
class Softmax:
    """Softmax regression, the logistic regression of several classes, with labels 0, 1, ...

    An example whose label is not one of the classes, or with a feature that is not a finite number, counts
    as nothing. The gradient of an example is the same, bit for bit, whatever other examples are there.

    Parameters
    ----------
    features
        How many features an example has.
    classes
        How many classes there are.

    Examples
    --------
    >>> model = Softmax(features=2, classes=3)
    >>> model.dimension
    9
    >>> model.gradients(model.start(), np.array([[1.0, 2.0]]), np.array([0])).round(2).tolist()
    [[-0.67, 0.33, 0.33, -1.33, 0.67, 0.67, -0.67, 0.33, 0.33]]
    """

    features: int
    classes: int
    separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        count("features", self.features, zero=False)
        count("classes", self.classes, zero=False)

    @property
    def dimension(self) -> int:
        """One weight for each feature and class, and one for each class alone."""
        return (self.features + 1) * self.classes

    def document(self) -> JSON:
        """Return the kind and the two numbers."""
        return {"kind": "softmax", "features": self.features, "classes": self.classes}

    def start(self) -> NDArray[np.float64]:
        """Return zeros."""
        return np.zeros(self.dimension)

    def gradients(
        self, weights: NDArray[np.float64], X: NDArray[Any], y: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Return the gradient of the logistic loss of each example; not a number where there is none."""
        inputs = self._inputs(X)
        labels = np.asarray(y, dtype=np.float64).reshape(-1, 1)
        with np.errstate(all="ignore"):
            residual = self._chances(weights, inputs) - (labels == np.arange(self.classes))
            valid = (labels == np.floor(labels)) & (labels >= 0) & (labels < self.classes)
            residual = np.where(valid, residual, np.nan)
            return (inputs[:, :, None] * residual[:, None, :]).reshape(len(inputs), -1)

    def predict(self, weights: NDArray[np.float64], X: NDArray[Any]) -> NDArray[np.int64]:
        """Return the class with the largest probability."""
        likely: NDArray[np.int64] = np.argmax(self._chances(weights, self._inputs(X)), axis=1)
        return likely

    def example(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return two invented examples."""
        return np.stack([np.linspace(0, 1, self.features), np.linspace(1, -1, self.features)]), np.array(
            [0, self.classes - 1]
        )

    def _inputs(self, X: NDArray[Any]) -> NDArray[np.float64]:
        features = np.asarray(X, dtype=np.float64).reshape(-1, self.features)
        return np.column_stack([features, np.ones(len(features))])

    def _chances(self, weights: NDArray[np.float64], inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of the classes; feature by feature, so that no line depends on others."""
        table = np.asarray(weights).reshape(self.features + 1, self.classes)
        total = np.zeros((self.classes, len(inputs)))
        for feature, line in zip(np.ascontiguousarray(inputs.T), table, strict=True):
            total += feature * line[:, None]
        scores = np.ascontiguousarray(total.T)
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances: NDArray[np.float64] = odds / odds.sum(axis=1, keepdims=True)
        return chances


class TorchGradients:
    """A PyTorch model and its loss, for a study.

    The gradients are computed in floats; the hospital then clips them in whole numbers, so the guarantee
    does not depend on how PyTorch rounds. The gradient of an example must not depend on other examples: a
    model with batch normalisation is refused when a hospital joins.

    Parameters
    ----------
    model
        The model; its weights are those before the first round. All hospitals must have equal ones.
    loss
        A function of the outputs and the labels of some examples that returns one number, their mean.
    shape
        The shape of the features of one example.
    labels
        The type of a label: ``"int64"`` for classes, ``"float32"`` for numbers.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    >>> model = TorchGradients(net, torch.nn.functional.cross_entropy, shape=(4,))
    >>> X, y = model.example()
    >>> model.dimension, model.gradients(model.start(), X, y).shape
    (58, (2, 58))
    """

    def __init__(
        self, model: Any, loss: Callable[[Any, Any], Any], *, shape: tuple[int, ...], labels: str = "int64"
    ) -> None:
        needs("TorchGradients", "torch", "tacit[torch]")
        from torch.nn import Module

        self._model = Instance(Module, "torch.nn.Linear(4, 2)", "a model of PyTorch").read("model", model)
        self._loss = loss
        self._shape = tuple(shape)
        self._labels = np.dtype(Choice(_LABEL_TYPES).read("labels", labels))
        self._parts = {
            name: one.detach().clone() for name, one in model.named_parameters() if one.requires_grad
        }
        self._rest = {name: one.detach() for name, one in model.named_parameters() if not one.requires_grad}
        self._rest |= {name: one.detach().clone() for name, one in model.named_buffers()}

    @property
    def dimension(self) -> int:
        """How many weights are trained."""
        return sum(int(one.numel()) for one in self._parts.values())

    def document(self) -> JSON:
        """Return the architecture and the loss in words, and the digest of the first weights."""
        digest = hashlib.sha256()
        for name, tensor in (*sorted(self._parts.items()), *sorted(self._rest.items())):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
            digest.update(np.ascontiguousarray(tensor.cpu().numpy()).tobytes())
        return {
            "kind": "torch", "architecture": repr(self._model), "weights": digest.hexdigest(),
            "loss": getattr(self._loss, "__qualname__", repr(self._loss)), "shape": list(self._shape),
            "labels": str(self._labels),
        }  # fmt: skip

    def start(self) -> NDArray[np.float64]:
        """Return the weights of the model, as it was given."""
        return np.concatenate([one.reshape(-1).double().numpy() for one in self._parts.values()])

    def gradients(
        self, weights: NDArray[np.float64], X: NDArray[Any], y: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Return the gradient of the loss of each example; one alone is quicker here than through `vmap`."""
        import torch

        def loss_of(parts: Any, x: Any, label: Any) -> Any:
            out = torch.func.functional_call(self._model, {**parts, **self._rest}, (x.unsqueeze(0),))
            return self._loss(out, label.unsqueeze(0))

        inputs, targets = self._tensors(X, y)
        if len(inputs) == 1:
            return self._alone(weights, inputs, targets)
        each = torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0, 0), randomness="different")
        gradients = each(self._parts_of(weights), inputs, targets)
        flat = [gradients[name].reshape(len(inputs), -1).double().numpy() for name in self._parts]
        return np.concatenate(flat, axis=1)

    def _alone(self, weights: NDArray[np.float64], x: Any, label: Any) -> NDArray[np.float64]:
        """Return the gradient of one example; the model cannot leave anything behind for the next one."""
        import torch

        parts = {name: one.requires_grad_() for name, one in self._parts_of(weights).items()}
        rest = {name: one.clone() for name, one in self._rest.items()}
        loss = self._loss(torch.func.functional_call(self._model, {**parts, **rest}, (x,)), label)
        gradients = torch.autograd.grad(loss, list(parts.values()), allow_unused=True, materialize_grads=True)
        return np.concatenate([one.reshape(-1).double().numpy() for one in gradients])[None, :]

    def predict(self, weights: NDArray[np.float64], X: NDArray[Any]) -> NDArray[Any]:
        """Return the place of the largest output, or the output itself where there is one."""
        import torch

        inputs, _ = self._tensors(X, np.zeros(len(X)))
        with torch.no_grad():
            out = torch.func.functional_call(
                self._model, {**self._parts_of(weights), **self._rest}, (inputs,)
            ).numpy()
        chosen: NDArray[Any] = out.argmax(axis=1) if out.ndim == 2 and out.shape[1] > 1 else out.reshape(-1)
        return chosen

    def example(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return two invented examples."""
        size = int(np.prod(self._shape))
        X = np.stack([np.linspace(0, 1, size), np.linspace(1, -1, size)]).reshape(2, *self._shape)
        return X.astype(np.float32), np.zeros(2, dtype=self._labels)

    def _tensors(self, X: NDArray[Any], y: NDArray[Any]) -> tuple[Any, Any]:
        import torch

        inputs = np.asarray(X, dtype=np.float32).reshape(-1, *self._shape)
        with np.errstate(all="ignore"):
            labels = np.asarray(y).astype(self._labels)
        # copies: PyTorch places them alike in memory, and kernels may round by where an example lies
        return torch.from_numpy(inputs).clone(), torch.from_numpy(labels).clone()

    def _parts_of(self, weights: NDArray[np.float64]) -> dict[str, Any]:
        """Return a vector of weights as the parts of the model."""
        import torch

        parts, at = {}, 0
        for name, tensor in self._parts.items():
            weights_of_part = torch.from_numpy(np.ascontiguousarray(weights[at : at + tensor.numel()]))
            parts[name] = weights_of_part.to(tensor.dtype).reshape(tensor.shape)
            at += tensor.numel()
        return parts
