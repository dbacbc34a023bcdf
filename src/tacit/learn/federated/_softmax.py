"""Models that hospitals train together: weights as one vector, and gradients example by example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from tacit.exact import count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.core import JSON


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
            known = (labels == np.floor(labels)) & (labels >= 0) & (labels < self.classes)
            residual = np.where(known, residual, np.nan)
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
        given = np.asarray(X, dtype=np.float64).reshape(-1, self.features)
        return np.column_stack([given, np.ones(len(given))])

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
