"""Hospitals that train together: accuracy with own and with shared noise, against central training; time.

Run: python benchmarks/hospitals.py [repetitions] [epsilon ...]     (default 2 repetitions, epsilon 1)
Digits and breast_cancer of scikit-learn, 10 uneven hospitals, softmax regression, 60 rounds, clip 1,
momentum 0.5, mean of the weights of the second half, delta 1e-5. "Central" is one hospital with all patients;
"shared" hides 6 shares of the noise (1 colluding hospital, 3 dropouts). Every figure comes from the public
interface, with exact integers, masks and ledgers.
"""

from __future__ import annotations

import itertools
import sys
import time

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

import tacit as tc
from tacit.learn.federated import (
    Coordinator,
    Hospital,
    HospitalKey,
    Participant,
    Softmax,
    in_process,
    study,
)  # fmt: skip

ROUNDS, DELTA, HOSPITALS = 60, 1e-5, 10


def digits(seed: int) -> tuple[np.ndarray, ...]:
    X, y = load_digits(return_X_y=True)
    return parted(1.5 * (X / 16 - 0.3), y, seed)  # public constants


def cancer(seed: int) -> tuple[np.ndarray, ...]:
    X, y = load_breast_cancer(return_X_y=True)
    low, high = X.min(0), X.max(0)  # the bounds that the description of the data publishes
    return parted(5 * ((X - low) / (high - low) - 0.25), y, seed)  # most values are in the lower half


DATA = {"digits": digits, "breast_cancer": cancer}


def parted(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """Return three quarters of the rows to train on, and the rest."""
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order], y[order]
    cut = len(X) * 3 // 4
    return X[:cut], y[:cut], X[cut:], y[cut:]


def uneven(size: int, parts: int) -> list[np.ndarray]:
    """Split the places 0..size into parts of which the last is about four times as large as the first."""
    weights = np.linspace(1, 4, parts)
    return np.split(np.arange(size), np.floor(np.cumsum(weights / weights.sum())[:-1] * size).astype(int))


def run(X, y, parts, *, noise: str, epsilon: float, rate: float, **facts):
    keys = {f"hospital {i:02}": HospitalKey.generate() for i in range(len(parts))}
    agreed = study(
        "benchmark", Softmax(X.shape[1], int(y.max()) + 1),
        {
            name: Participant(len(own), 1, key.public)
            for (name, key), own in zip(keys.items(), parts, strict=True)
        },
        rounds=ROUNDS, epsilon=epsilon, delta=DELTA, noise=noise, disjoint=True, **facts,
    )  # fmt: skip
    hospitals = {}
    for (name, key), own in zip(keys.items(), parts, strict=True):
        patients = tc.learn.examples(
            X[own], y[own], unit=tc.Unit.row(), size=len(own), name=name,
            budget=tc.Budget(epsilon=2 * epsilon, delta=1e-4),
        )  # fmt: skip
        hospitals[name] = Hospital(name, agreed, patients, key)
    return Coordinator(agreed, in_process(hospitals), learning_rate=rate).train()


def accuracy(data: str, seed: int, epsilon: float) -> dict[str, float]:
    X, y, held, labels = DATA[data](seed)
    parts = uneven(len(X), HOSPITALS)
    right = lambda release: float(np.mean(release.predict(held) == labels))  # noqa: E731
    half = 0.5 if epsilon <= 1 else 1.0
    return {
        "no noise": right(run(X, y, [np.arange(len(X))], noise="own", epsilon=10**6, rate=1.0)),
        "central": right(run(X, y, [np.arange(len(X))], noise="own", epsilon=epsilon, rate=1.0)),
        "own": right(run(X, y, parts, noise="own", epsilon=epsilon, rate=half)),
        "shared": right(run(X, y, parts, noise="shared", epsilon=epsilon, rate=1.0, colluding=1, dropouts=3)),
        "alone": float(
            np.mean([right(run(X, y, [own], noise="own", epsilon=epsilon, rate=half)) for own in parts[::3]])
        ),
    }


def twenty() -> None:
    X, y, _, _ = digits(0)
    for noise in ("own", "shared"):
        cpu, wall = time.process_time(), time.perf_counter()
        run(X, y, uneven(len(X), 20), noise=noise, epsilon=1, rate=1.0, dropouts=6)
        print(
            f"20 hospitals, {ROUNDS} rounds, {noise} noise: {time.process_time() - cpu:.1f} CPU s, "
            f"{time.perf_counter() - wall:.1f} s"
        )


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    print(f"{HOSPITALS} hospitals, mean of {repetitions} (standard error)")
    asked = [float(one) for one in sys.argv[2:]] or [1.0]
    for data, epsilon in itertools.product(DATA, asked):
        found = [accuracy(data, seed, epsilon) for seed in range(repetitions)]
        words = []
        for name in found[0]:
            values = [one[name] for one in found]
            error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
            words.append(f"{name} {np.mean(values):.3f} ({error:.3f})")
        print(f"{data}, epsilon {epsilon:g}: {', '.join(words)}", flush=True)
    twenty()


if __name__ == "__main__":
    main()
