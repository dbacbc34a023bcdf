"""Broken twins of the sums of estimators: each gives the exact integers of a deliberate error."""

from __future__ import annotations

import numpy as np

from tacit.learn.estimators._kmeans import MOVED, CentreSteps
from tacit.learn.estimators._rows import (
    MOVED_MEANS,
    PRODUCT,
    RADIUS,
    SQUARE,
    around,
    clipped_rows,
    moment_integers,
    weighted_moments,
)
from tacit.learn.estimators._transformers import MOVED_PRODUCTS


def hostile_rows(random, radius):
    """Return a few whole rows, most of them at the edge of the allowed length or beyond it."""
    rows = random.normal(size=(int(random.integers(2, 7)), 3))
    rows *= (
        random.choice([0.2, 1.0, 1.0, 3.0], (len(rows), 1)) * radius / np.linalg.norm(rows, axis=1)[:, None]
    )
    return np.rint(rows).astype(np.int64)


def furthest(sums, rounds=300):
    """Return the largest change that one more row makes, as a multiple of the claimed sensitivity."""
    random = np.random.default_rng(5)
    found = 0.0
    for _ in range(rounds):
        rows = hostile_rows(random, sums.radius)
        change = np.asarray(sums(rows)) - np.asarray(sums(rows[1:]))
        found = max(found, float(np.sqrt((change.astype(float) ** 2).sum())) / sums.claimed)
    return found


def claims(sensitivity, radius):
    """Say which sensitivity is claimed for a function, and how long its rows may be."""

    def mark(function):
        function.claimed, function.radius = sensitivity, radius
        return function

    return mark


@claims(MOVED_MEANS, RADIUS)
def moments(rows):
    """The moments as they should be."""
    return moment_integers(clipped_rows(rows, RADIUS))


@claims(MOVED_MEANS, RADIUS)
def moments_without_clipping(rows):
    """Leaves long rows as they are."""
    return moment_integers(rows)


@claims(MOVED_MEANS, RADIUS)
def moments_rounded_away(rows):
    """Clips, and rounds away from zero."""
    norm = np.sqrt((rows.astype(float) ** 2).sum(axis=1))[:, None]
    parts = rows * np.minimum(1, RADIUS / np.maximum(norm, 1))
    return moment_integers((np.sign(parts) * np.ceil(np.abs(parts) * 1.01)).astype(np.int64))


@claims(MOVED_PRODUCTS, RADIUS)
def products(rows):
    """The weighted products as they should be, around a public centre."""
    return weighted_moments(around(rows, np.zeros(3, np.int64), RADIUS), RADIUS)


@claims(MOVED_PRODUCTS, RADIUS)
def products_weighted_twice(rows):
    """Gives a product twice the weight of a square, as if one entry stood for two."""
    held = clipped_rows(rows, RADIUS)
    whole = held.T @ held
    return np.r_[SQUARE * np.diag(whole), 2 * SQUARE * whole[np.triu_indices(3, 1)]]


@claims(MOVED_PRODUCTS, RADIUS)
def products_around_the_own_mean(rows):
    """Centres at the exact mean of the rows, which one row moves for all others."""
    held = clipped_rows(rows, RADIUS)
    centred = held - np.rint(held.mean(axis=0)).astype(np.int64) if len(held) else held
    whole = centred.T @ centred
    return np.r_[SQUARE * np.diag(whole), PRODUCT * whole[np.triu_indices(3, 1)]]


CENTRES = np.array([[RADIUS // 2, 0, 0], [-RADIUS // 2, 0, 0]])


@claims(MOVED["moves"], RADIUS)
def centre_sums(rows):
    """The moves of centres as they should be."""
    held = clipped_rows(rows, RADIUS)
    return CentreSteps(held, CENTRES, 2, RADIUS / 4, 1.0).sums(np.arange(len(held)))


@claims(MOVED["moves"], RADIUS)
def centre_means(rows):
    """Returns the mean of each cluster times its declared size, so that one row moves a small cluster far."""
    held = clipped_rows(rows, RADIUS)
    sums = CentreSteps(held, CENTRES, 2, RADIUS / 4, 1.0).sums(np.arange(len(held))).astype(float)
    counts = np.maximum(np.bincount(held[:, 0] < 0, minlength=2), 1)
    return np.rint(sums / counts[:, None] * 10).astype(np.int64)


@claims(MOVED["moves"], RADIUS)
def centre_sums_without_clipping(rows):
    """Leaves the way to a far row as it is."""
    held = clipped_rows(rows, RADIUS)
    nearest = (held[:, 0] < 0).astype(int)
    way = (held - CENTRES[nearest]) * 4
    sums = np.zeros((2, 4), np.int64)
    np.add.at(sums, nearest, np.c_[np.full(len(held), 2 * RADIUS // 3), way])
    return sums


RIGHT = (moments, products, centre_sums)
BROKEN = (
    moments_without_clipping, moments_rounded_away, products_weighted_twice, products_around_the_own_mean,
    centre_means, centre_sums_without_clipping,
)  # fmt: skip
