"""PyTorch models that hospitals train together: gradients example by example, as NumPy arrays."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import needs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tacit.core import JSON


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
        self._model = model
        self._loss = loss
        self._shape = tuple(shape)
        self._labels = np.dtype(labels)
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
        held = hashlib.sha256()
        for name, one in (*sorted(self._parts.items()), *sorted(self._rest.items())):
            held.update(f"{name} {one.dtype} {tuple(one.shape)}\n".encode())
            held.update(np.ascontiguousarray(one.cpu().numpy()).tobytes())
        return {
            "kind": "torch", "architecture": repr(self._model), "weights": held.hexdigest(),
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
        found = each(self._held(weights), inputs, targets)
        flat = [found[name].reshape(len(inputs), -1).double().numpy() for name in self._parts]
        return np.concatenate(flat, axis=1)

    def _alone(self, weights: NDArray[np.float64], x: Any, label: Any) -> NDArray[np.float64]:
        """Return the gradient of one example; the model cannot leave anything behind for the next one."""
        import torch

        parts = {name: one.requires_grad_() for name, one in self._held(weights).items()}
        rest = {name: one.clone() for name, one in self._rest.items()}
        loss = self._loss(torch.func.functional_call(self._model, {**parts, **rest}, (x,)), label)
        found = torch.autograd.grad(loss, list(parts.values()), allow_unused=True, materialize_grads=True)
        return np.concatenate([one.reshape(-1).double().numpy() for one in found])[None, :]

    def predict(self, weights: NDArray[np.float64], X: NDArray[Any]) -> NDArray[Any]:
        """Return the place of the largest output, or the output itself where there is one."""
        import torch

        inputs, _ = self._tensors(X, np.zeros(len(X)))
        with torch.no_grad():
            out = torch.func.functional_call(
                self._model, {**self._held(weights), **self._rest}, (inputs,)
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

    def _held(self, weights: NDArray[np.float64]) -> dict[str, Any]:
        """Return a vector of weights as the parts of the model."""
        import torch

        parts, at = {}, 0
        for name, one in self._parts.items():
            own = torch.from_numpy(np.ascontiguousarray(weights[at : at + one.numel()]))
            parts[name] = own.to(one.dtype).reshape(one.shape)
            at += one.numel()
        return parts
