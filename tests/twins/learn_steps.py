"""Broken copies of sampled steps, as functions ``f(unit, size)``; `unit` is 1 if the person is in the data.

Each claims `steps` Gaussians of deviation `sigma`, sampled at `rate`, for a person who moves a sum by one.
The auditor knows all other people, so they are left out, except where the defect is about them.
"""

from __future__ import annotations

import numpy as np

from support.repeatable_noise import rng

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


# -- correlated noise: 4 steps, coefficients 4 and 3 with norm 5, two groups; a sample moves a sum by one

COLUMNS = np.array([[4, 3, 0, 0], [0, 4, 3, 0], [0, 0, 4, 3], [0, 0, 0, 4]])
GROUP_RATE = 0.5
ROUNDS = 2


def rows(sums, sigma=5 * SIGMA):
    """Rows of sums (one line per output), on a grid of 1/16, with noise."""
    return 16 * (sums @ COLUMNS) + gaussian(sums.shape, sigma)


def right_bands(unit, size):
    """The mechanism itself: a group for the whole run, a coin in each step of the group."""
    group = rng.integers(2, size=(size, 1))
    sampled = (np.arange(4) % 2 == group) & (rng.random((size, 4)) < GROUP_RATE)
    return rows(unit * sampled)


def no_groups(unit, size):
    """A unit can be in any step, but only the steps of one group are charged."""
    return rows(unit * (rng.random((size, 4)) < GROUP_RATE))


def norm_forgotten(unit, size):
    """The noise fits one sum, not the rows that the sum reaches."""
    group = rng.integers(2, size=(size, 1))
    sampled = (np.arange(4) % 2 == group) & (rng.random((size, 4)) < GROUP_RATE)
    return rows(unit * sampled, SIGMA)


def groups_dealt_out(unit, size):
    """Groups by turns: a new first person moves all others to the other group; three of them stand out."""
    others = np.array([1, 0, 1, 0, 1, 0])
    order = np.concatenate(([0], others)) if unit else others
    sums = [order[np.arange(len(order)) % 2 == t % 2].sum() for t in range(4)]
    return rows(np.broadcast_to(np.array(sums), (size, 4)))


def memory_shown(unit, size):
    """The release carries the run's memory, as a checkpoint with everything in it would: exact past sums."""
    group = rng.integers(2, size=(size, 1))
    sampled = (np.arange(4) % 2 == group) & (rng.random((size, 4)) < GROUP_RATE)
    return np.column_stack([rows(unit * sampled), 16 * unit * sampled[:, -1]])


def noise_of_the_past_shown(unit, size):
    """The release shows the noise of the first row, which the correlated noise of later steps contains."""
    group = rng.integers(2, size=(size, 1))
    sums = unit * ((np.arange(4) % 2 == group) & (rng.random((size, 4)) < GROUP_RATE))
    noisy = rows(sums)
    return np.column_stack([noisy, noisy[:, 0] - 64 * sums[:, 0]])
