"""Neighbours for fits: two data sets that differ in one unit, and how far their exact integers are apart."""

from __future__ import annotations

import numpy as np

import tacit as tc
from tacit.core import SharedReadings, members_of
from tacit.mechanisms import SampledSteps


def declared(X, y=None, owners=None, per_unit=1, size=None):
    """Declare examples with a large budget, in a ledger of their own."""
    return tc.learn.examples(
        *((X,) if y is None else (X, y)),
        unit=tc.Unit.row() if owners is None else "patient",
        owners=owners,
        per_unit=per_unit,
        size=size or max(20, len(X)),
        budget=tc.Budget(epsilon=10**6, delta=0.01),
    )


def task_of(plan):
    """Return the task of a plan."""
    return members_of(plan)[0].task


def moves(one, other):
    """Run two tasks on the same noisy integers; yield the mechanism and how far the exact ones are apart."""
    noise = np.random.default_rng(16)
    with SharedReadings.opened() as readings:
        first, second = one.open(readings), other.open(readings)
    seen = []
    for here, there in zip(one.steps, other.steps, strict=True):
        mechanism, a, b = here.mechanism, here.exact(first, seen), there.exact(second, seen)
        if isinstance(mechanism, SampledSteps):
            for _ in range(mechanism.steps):
                sums = [np.asarray(each.sums(np.arange(each.units))) for each in (a, b)]
                yield mechanism, distance(*sums)
                noisy = sums[0] + np.rint(noise.normal(0, float(mechanism.sigma), sums[0].shape)).astype(
                    np.int64
                )
                a.update(noisy)
                b.update(noisy)
            released = a.result()
            assert released == b.result()  # a function of the noisy sums alone
        else:
            yield mechanism, distance(np.asarray(a), np.asarray(b))
            released = np.asarray(mechanism.release(a)).tolist()
        seen.append(released)


def distance(a, b):
    """Return the L2 distance of two arrays of whole numbers."""
    assert a.dtype.kind == b.dtype.kind == "i"
    return float(np.sqrt(((a - b).astype(np.float64) ** 2).sum()))


def random_pair(random, features, classes=None, units=None):
    """Return hostile rows with and without one unit: values far outside, missing, infinite, odd labels."""
    units = int(random.integers(1, 9)) if units is None else units
    owners = np.repeat(np.arange(units), random.integers(1, 4, units))
    values = [-1e308, -3.0, -1.0, -0.3, 0.0, 0.4, 1.0, 7.0, 1e300, np.nan, np.inf]
    chances = [0.02, 0.1, 0.15, 0.15, 0.1, 0.15, 0.15, 0.1, 0.02, 0.03, 0.03]
    X = random.choice(values, (len(owners), features), p=chances)
    y = None if classes is None else random.choice([*classes, -99], len(owners))
    kept = owners != random.integers(units)
    return (X, y, owners), (X[kept], None if y is None else y[kept], owners[kept])
