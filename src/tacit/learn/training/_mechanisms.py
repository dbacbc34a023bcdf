"""The mechanisms of PyTorch training: sampled steps whose noise is drawn on the device.

Training steps have fresh noise in each step. Correlated steps take back a part of earlier noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.mechanisms import BandedSteps, SampledSteps, generator_seed, training_noise
from tacit.progress import progress

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    import torch

    from tacit.accounting import Cost
    from tacit.exact import Number
    from tacit.mechanisms import BandedRun, StepSums


_AT_ONCE = 2**20  # about so many numbers are drawn at once on a processor, 16 times as many on a device


@dataclass(frozen=True, init=False, repr=False, slots=True)
class TrainingSteps(SampledSteps):
    """Sampled steps on tensors: the same sample and cost as `SampledSteps`, with Gaussian noise in floats.

    Guarantee: that of `SampledSteps`, if sums and noise were real numbers. Both are floats, which the
    certificate calls idealised numerics. The sample is exact.

    Parameters
    ----------
    sigma, sensitivity, rate, steps
        See `SampledSteps`.
    stated
        The delta at which the cost of all steps is stated as one pair of epsilon and delta; None keeps the
        steps, which compose better with other releases.

    Examples
    --------
    >>> steps = TrainingSteps(sigma=2, sensitivity=1, rate=0.01, steps=500)
    >>> round(steps.cost.epsilon(delta=1e-6), 2)
    0.51
    """

    stated: Fraction | None

    def __init__(
        self, *, sigma: Number, sensitivity: Number, rate: Number, steps: int, stated: Fraction | None = None
    ) -> None:
        SampledSteps.__init__(self, sigma=sigma, sensitivity=sensitivity, rate=rate, steps=steps)
        object.__setattr__(self, "stated", stated)

    @property
    def cost(self) -> Cost:
        """The cost of all steps; stated as epsilon and delta, if there is a delta at which to state it."""
        total: Cost = SampledSteps.cost.__get__(self)
        return total if self.stated is None else total.stated(delta=self.stated)

    def release(self, value: StepSums) -> Any:  # type: ignore[override]
        """Take the steps, and return the result; a terminal shows how far they are and what they cost."""
        done = 0
        with progress(value.describe, lambda: done / self.steps):  # type: ignore[attr-defined]
            for _ in range(self.steps):
                value.update(self.noisy(value.sums(self.draw(value.units))))
                done += 1
            return value.result()

    def noisy(self, exact: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """Return tensors with Gaussian noise, once for the whole step."""
        add_noise(exact, float(self.sigma))
        return exact

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact parameters, the numerics and the cost."""
        return {**SampledSteps.to_json(self), "mechanism": "training-steps", "numerics": "idealised"}


def add_noise(tensors: Sequence[torch.Tensor], sigma: float) -> None:
    """Add independent Gaussian noise to each number of each tensor, in place.

    On a processor the bits are those of the noise room; on another device the generator of the device draws,
    with a fresh seed of the operating system for each call.
    """
    if tensors and tensors[0].device.type != "cpu":
        _add_from_device(tensors, sigma)
    else:
        _add_from_processor(tensors, sigma)


def _add_from_device(tensors: Sequence[torch.Tensor], sigma: float) -> None:
    """Add noise of the device's own generator, which goes on from tensor to tensor; one seed for a call."""
    import torch

    generator = torch.Generator(device=tensors[0].device)
    generator.manual_seed(generator_seed())
    for tensor in tensors:
        rows = max(1, _AT_ONCE * 16 * len(tensor) // max(1, tensor.numel())) if tensor.dim() else 0
        for part in (
            torch.split(tensor, rows) if rows else (tensor,)
        ):  # a large tensor needs no noise of its size
            noise = torch.randn(part.shape, generator=generator, device=part.device, dtype=part.dtype)
            part.add_(noise, alpha=sigma)


def _add_from_processor(tensors: Sequence[torch.Tensor], sigma: float) -> None:
    """Add noise from cryptographic bits; small tensors share a draw."""
    import torch

    waiting: list[torch.Tensor] = []
    for index, tensor in enumerate(tensors):
        waiting.append(tensor)
        total = sum(noise.numel() for noise in waiting)
        if total >= _AT_ONCE or index == len(tensors) - 1:
            parts = torch.split(torch.from_numpy(training_noise(total)), [noise.numel() for noise in waiting])
            for noise, part in zip(waiting, parts, strict=True):
                noise.add_(part.view(noise.shape), alpha=sigma)
            waiting = []


@dataclass(frozen=True, init=False, repr=False, slots=True)
class CorrelatedSteps(BandedSteps):
    """Banded steps on tensors: the same groups, samples and cost as `BandedSteps`, with noise in floats.

    Guarantee: that of `BandedSteps`, if sums and noise were real numbers; the certificate calls the numerics
    idealised. Past noise is needed for later steps and is secret: between instalments it is kept with the
    run, never in a release.

    Parameters
    ----------
    sigma, sensitivity, rate, steps, bands, parts
        See `BandedSteps`.
    stated
        The delta at which the cost is stated as one pair of epsilon and delta; None keeps the steps.

    Examples
    --------
    >>> steps = CorrelatedSteps(sigma=8000, sensitivity=1, rate=0.01, steps=100, bands=4)
    >>> steps.to_json()["numerics"], steps.groups
    ('idealised', 4)
    """

    stated: Fraction | None

    def __init__(
        self,
        *,
        sigma: Number,
        sensitivity: Number,
        rate: Number,
        steps: int,
        bands: int,
        parts: int = 1,
        stated: Fraction | None = None,
    ) -> None:
        parameters = {
            "sigma": sigma,
            "sensitivity": sensitivity,
            "rate": rate,
            "steps": steps,
            "parts": parts,
        }
        BandedSteps.__init__(self, bands=bands, groups=bands, **parameters)  # type: ignore[arg-type]
        object.__setattr__(self, "stated", stated)

    @property
    def cost(self) -> Cost:
        """The cost of all steps; stated as epsilon and delta, if there is a delta at which to state it."""
        total: Cost = BandedSteps.cost.__get__(self)
        return total if self.stated is None else total.stated(delta=self.stated)

    def _take(self, value: StepSums, run: BandedRun, steps: int) -> None:  # type: ignore[override]
        """Take steps: the noise of each is fresh noise less a part of the noise before it."""
        import torch

        sigma, done = float(self.sigma) / self.coefficients[0], 0
        with progress(value.describe, lambda: done / max(1, steps)):  # type: ignore[attr-defined]
            for _ in range(steps):
                exact = value.sums(run.sample())
                past: list[list[Any]] = run.past
                run.past = [[torch.as_tensor(one).to(exact[0].device) for one in row] for row in past]  # type: ignore[misc]
                fresh = [torch.zeros_like(one) for one in exact]
                add_noise(fresh, sigma)
                torch._foreach_add_(exact, run.correlated(fresh))
                value.update(exact)
                done += 1

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact parameters, the numerics and the cost."""
        return {**BandedSteps.to_json(self), "mechanism": "correlated-steps", "numerics": "idealised"}
