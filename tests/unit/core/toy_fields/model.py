"""A toy learning field: least squares on clipped numbers, private for one client; the release has weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit import core
from tacit.ledger import open_ledger
from tacit.mechanisms import DiscreteGaussian

STEPS = 2**10  # grid steps in [0, 1]


@dataclass(frozen=True, slots=True)
class LinearModel(core.Content):
    kind: ClassVar[str] = "toy-model"
    weights: list[float]

    def predict(self, features):
        return np.asarray(features) @ np.asarray(self.weights)


def read_model(noisy, _confidence):
    gram, moments = (np.asarray(part, dtype=float) / STEPS**2 for part in noisy)
    return LinearModel(np.linalg.lstsq(gram + gram.T, 2 * moments, rcond=None)[0].tolist())


def draft(clients, goal):
    """Two arrays of integers, X'X and X'y on the grid: one client adds entries between 0 and STEPS^2."""
    d = clients._features.shape[1]
    noises = (DiscreteGaussian(rho=goal.rho / 2, sensitivity_squared=n * STEPS**4) for n in (d * d, d))

    def on_grid(_):
        parts = (np.nan_to_num(part) for part in (clients._features, clients._target))
        return [np.floor(np.clip(part, 0, 1) * STEPS + 0.5).astype(np.int64) for part in parts]

    exact = (lambda grid, _: grid[0].T @ grid[0], lambda grid, _: grid[0].T @ grid[1])
    steps = tuple(core.Step(*bound) for bound in zip(noises, exact, strict=True))
    asked = {"fit": "least squares", "features": d}
    task = core.Task(document=asked, open=on_grid, steps=steps, reading=read_model)
    return core.Draft(task=task, asked="least squares")


FIT = core.QuestionKind(name="fit", words="Fit a line", draft=draft, wire=core.WireForm.none())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Examples(core.Dataset):
    questions = (FIT,)
    _features: Any
    _target: Any


def examples(features, target, *, budget, name="examples", ledger=None):
    identity, book = core.read_identity(name=name, unit=core.Unit.client()), open_ledger(ledger)
    core.open_account(identity, budget, book)
    return Examples(identity, book, np.asarray(features, dtype=float), np.asarray(target, dtype=float))
