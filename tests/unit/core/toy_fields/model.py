"""A toy learning field: least squares on clipped numbers, private for one client; the release has weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.core import Content, Dataset, Plan, Unit, open_account, read_identity
from tacit.exact import rational
from tacit.ledger import open_ledger
from tacit.mechanisms import DiscreteGaussian

if TYPE_CHECKING:
    from fractions import Fraction

STEPS = 2**10  # grid steps in [0, 1]


@dataclass(frozen=True, slots=True)
class LinearModel(Content):
    """A trained model: one weight for each feature."""

    kind: ClassVar[str] = "toy-model"
    weights: tuple[float, ...]

    def predict(self, features):
        return np.asarray(features) @ np.asarray(self.weights)

    def to_json(self):
        return list(self.weights)

    @classmethod
    def from_json(cls, document):
        return cls(tuple(float(weight) for weight in document))


@dataclass(frozen=True, slots=True)
class LeastSquaresTask:
    """Two vectors of integers, X'X and X'y on the grid: one client adds entries between 0 and STEPS^2."""

    features: Any
    target: Any
    rho: Fraction

    @property
    def question(self):
        return {"fit": "least squares", "features": self.features.shape[1]}

    @property
    def mechanisms(self):
        d = self.features.shape[1]
        return [
            DiscreteGaussian(rho=self.rho / 2, sensitivity_squared=size * STEPS**4) for size in (d * d, d)
        ]

    def integers(self):
        grid = [
            np.floor(np.clip(np.nan_to_num(part), 0, 1) * STEPS + 0.5).astype(np.int64)
            for part in (self.features, self.target)
        ]
        yield grid[0].T @ grid[0]
        yield grid[0].T @ grid[1]

    def read(self, noisy, confidence):
        del confidence
        gram, moments = (np.asarray(part, dtype=float) / STEPS**2 for part in noisy)
        weights = np.linalg.lstsq(gram + gram.T, 2 * moments, rcond=None)[0]
        return LinearModel(tuple(weights.tolist()))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Examples(Dataset):
    """Feature vectors and targets, one line for each client."""

    _features: Any
    _target: Any

    def fit(self, *, rho):
        task = LeastSquaresTask(self._features, self._target, rational("rho", rho))
        return Plan.of(self, task, promised={"rho": task.rho}, asked="least squares")


def examples(features, target, *, budget, name="examples", ledger=None):
    identity = read_identity(name=name, unit=Unit.client())
    book = open_ledger(ledger)
    open_account(identity, budget, book)
    return Examples(identity, book, np.asarray(features, dtype=float), np.asarray(target, dtype=float))
