"""Broken twins of the frequency task: each gives the exact integers of a deliberate error."""

from __future__ import annotations

import numpy as np

GRID = 16


def values_of(calls, reference):
    """Return each person's differences from the reference, in steps; a missing call is 0."""
    middle = np.floor(2 * GRID * np.asarray(reference) + 0.5).astype(int)
    return np.where(calls < 0, 0, GRID * calls - middle)


def scaled(values, clip_squared):
    """Scale each person to the bound, without rounding."""
    norm = np.sqrt((values**2).sum(axis=1, keepdims=True))
    return values * np.minimum(1, np.sqrt(clip_squared) / np.maximum(norm, 1e-9))


def right(calls, reference, clip_squared):
    """The sums as they should be: clipped per person, rounded toward zero."""
    return np.trunc(scaled(values_of(calls, reference), clip_squared) * (1 - 1e-12)).sum(axis=0)


def rounded_away(calls, reference, clip_squared):
    """Rounds away from zero, so a clipped person exceeds the bound."""
    parts = scaled(values_of(calls, reference), clip_squared)
    return (np.sign(parts) * np.ceil(np.abs(parts) - 1e-9)).sum(axis=0)


def clipped_after_summing(calls, reference, clip_squared):
    """Sums first and clips the sum, as if the bound were one of the cohort."""
    whole = values_of(calls, reference).sum(axis=0, keepdims=True)
    return np.trunc(scaled(whole, clip_squared * max(1, len(calls)) ** 2)).sum(axis=0)


def centred_at_the_cohort(calls, reference, clip_squared):
    """Centres at the cohort's own mean instead of a public reference."""
    del reference
    held = np.where(calls < 0, 0, calls)
    own = held.sum(axis=0) / (2 * max(1, len(calls)))
    return right(calls, own, clip_squared)


def exact_people(frequencies, people, size, random):
    """Add noise to the sums, and release n without noise beside them, as published tables do."""
    noisy = frequencies + np.round(random.normal(0, 50, size))
    return np.column_stack([np.full(size, people), noisy])
