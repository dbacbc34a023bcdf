"""Broken twins of the sums of estimators: each looks right, and each moves further than it claims."""

from __future__ import annotations

import numpy as np

from tacit.learn.estimators._generalised_linear import CLIP_STEPS, RESIDUAL_STEPS, UnitGradients
from tacit.learn.estimators._whole_features import FEATURE_STEPS

__all__ = [
    "best_of_a_fixed_number", "centred_at_the_data", "clipped_after_summing", "rounded_away",
    "two_examples_clipped_apart",
]  # fmt: skip


def _pieces(sums: UnitGradients, weights):
    """Return residuals and features as floats, unit by unit (one example each)."""
    whole = np.rint(weights * 2**16)
    places = sums.rows[:, 0]
    return sums._residuals(whole, places) / RESIDUAL_STEPS, sums.features[places] / FEATURE_STEPS


def rounded_away(sums: UnitGradients, weights):
    """Clip each unit, and then round away from zero."""
    residuals, features = _pieces(sums, weights)
    own = residuals[:, :, None] * features[:, None, :]
    norm = np.sqrt((own**2).sum(axis=(1, 2), keepdims=True))
    clipped = own * np.minimum(1, sums.clip / np.maximum(norm, 1e-300)) * CLIP_STEPS / sums.clip
    return (np.sign(clipped) * np.ceil(np.abs(clipped))).sum(axis=0)


def clipped_after_summing(sums: UnitGradients, weights):
    """Clip the sum instead of the units, to the clip times their number."""
    residuals, features = _pieces(sums, weights)
    total = residuals.T @ features / sums.clip * CLIP_STEPS
    most = CLIP_STEPS * len(residuals)
    return total * min(1, most / max(float(np.sqrt((total**2).sum())), 1e-300))


def centred_at_the_data(sums: UnitGradients, weights):
    """Subtract the mean of the features first, as standardisation on the training data does."""
    shifted = sums.features - np.rint(sums.features[sums.rows[:, 0]].mean(axis=0))
    return UnitGradients(shifted, sums.rule, sums.clip, sums.rows).sums(weights, np.arange(len(sums.rows)))


def two_examples_clipped_apart(sums: UnitGradients, weights):
    """Clip each example of a unit instead of the unit."""
    rows = sums.rows.reshape(-1, 1)
    rows = rows[rows[:, 0] >= 0]
    return UnitGradients(sums.features, sums.rule, sums.clip, rows).sums(weights, np.arange(len(rows)))


def best_of_a_fixed_number(runs, number, size):
    """Try a fixed number of times and show the best, at the price of a random number."""
    return runs.noise.release(np.full((size, number), runs.exact)).max(axis=1)
