"""Broken copies of sampled steps, as functions ``f(unit, size)``; `unit` is 1 if the person is in the data.

Each claims `steps` Gaussians of deviation `sigma`, sampled at `rate`, for a person who moves a sum by one.
The auditor knows all other people, so they are left out, except where the defect is about them.
"""

from __future__ import annotations

import numpy as np

rng = np.random.default_rng()

SIGMA, RATE, STEPS = 1.0, 0.25, 4


def gaussian(shape, sigma=SIGMA):
    """Rounded noise on a grid of 1/16, as the real mechanism draws it on its own grid."""
    return np.rint(rng.normal(0, 16 * sigma, shape))


def right(unit, size):
    """The mechanism itself: the test below must not catch it."""
    sampled = rng.random((size, STEPS)) < RATE
    return 16 * unit * sampled + gaussian((size, STEPS))


def one_sample_for_all_steps(unit, size):
    """The sample is drawn once and kept, but each step is charged as if it had its own."""
    sampled = rng.random((size, 1)) < RATE
    return 16 * unit * sampled + gaussian((size, STEPS))


def empty_batches_skipped(unit, size):
    """A step whose sample is empty adds no noise: its output is exactly zero."""
    sampled = rng.random((size, STEPS)) < RATE
    return unit * sampled * (16 + gaussian((size, STEPS)))


def noise_once(unit, size):
    """All steps get the same noise, so that differences of steps have none."""
    sampled = rng.random((size, STEPS)) < RATE
    return 16 * unit * sampled + gaussian((size, 1))


def half_the_noise(unit, size):
    """Noise of half the deviation: the sensitivity was taken for the diameter."""
    sampled = rng.random((size, STEPS)) < RATE
    return 16 * unit * sampled + gaussian((size, STEPS), SIGMA / 2)


def noise_on_the_mean_of_the_sample(unit, size):
    """The noisy sum is divided by the private size of the sample: nine others pull the other way."""
    sampled = unit * (rng.random((size, STEPS)) < RATE)
    return np.rint(16 * (16 * (9 - sampled) + gaussian((size, STEPS))) / (9 + sampled))


def larger_rate(unit, size):
    """The sampler draws at twice the rate that the accountant is given."""
    sampled = rng.random((size, STEPS)) < 2 * RATE
    return 16 * unit * sampled + gaussian((size, STEPS))


def clipped_after_the_sum(unit, size):
    """The sum over the batch is clipped instead of each person's part: an outlier moves it by three."""
    sampled = rng.random((size, STEPS)) < RATE
    return np.clip(48 * unit * sampled, -48, 48) + gaussian((size, STEPS))
