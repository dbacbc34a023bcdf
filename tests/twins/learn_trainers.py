"""Six broken trainers: each is the real one with a mistake that people have made."""

import numpy as np
import torch

from tacit.learn.layers import _clipped_step, _clipped_sums
from tacit.learn.training._mechanisms import TrainingSteps, add_noise


def too_little_noise(patch):
    patch.setattr(TrainingSteps, "noisy", lambda self, exact: _noise(exact, float(self.sigma) / 4))


def noise_of_the_mean(patch):
    """Noise that suits the mean is added to the sum."""
    patch.setattr(TrainingSteps, "noisy", lambda self, exact: _noise(exact, float(self.sigma) / 50))


def no_clip(patch):
    def ones(norms, clip, *, automatic):
        del clip, automatic
        return torch.ones_like(norms)

    patch.setattr(_clipped_step, "clip_factors", ones)
    patch.setattr(_clipped_sums, "clip_factors", ones)


def no_sample(patch):
    """Every unit is in every step, but the charge is that of a sample."""
    patch.setattr(TrainingSteps, "draw", lambda self, units: np.arange(units))


def noise_in_the_first_step(patch):
    seen = []

    def noisy(self, exact):
        seen.append(1)
        return _noise(exact, float(self.sigma)) if len(seen) == 1 else exact

    patch.setattr(TrainingSteps, "noisy", noisy)


def one_number_for_all(patch):
    """One draw of the noise is added to every parameter, as with a key that is used twice."""

    def noisy(self, exact):
        drawn = [torch.zeros(1)]
        add_noise(drawn, float(self.sigma))
        return [one + drawn[0] for one in exact]

    patch.setattr(TrainingSteps, "noisy", noisy)


BROKEN = [
    too_little_noise,
    noise_of_the_mean,
    no_clip,
    no_sample,
    noise_in_the_first_step,
    one_number_for_all,
]


def _noise(exact, sigma):
    add_noise(exact, sigma)
    return exact
