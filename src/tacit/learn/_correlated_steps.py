"""Correlated steps, the mechanism of PyTorch training that takes back a part of earlier noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.learn._training_steps import add_noise
from tacit.mechanisms import BandedSteps
from tacit.progress import progress

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.accounting import Cost
    from tacit.exact import Number
    from tacit.mechanisms import BandedRun, StepSums


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
        given = {"sigma": sigma, "sensitivity": sensitivity, "rate": rate, "steps": steps, "parts": parts}
        BandedSteps.__init__(self, bands=bands, groups=bands, **given)  # type: ignore[arg-type]
        object.__setattr__(self, "stated", stated)

    @property
    def cost(self) -> Cost:
        """The cost of all steps; stated as epsilon and delta, if there is a delta at which to state it."""
        whole: Cost = BandedSteps.cost.__get__(self)
        return whole if self.stated is None else whole.stated(delta=self.stated)

    def _take(self, value: StepSums, run: BandedRun, steps: int) -> None:  # type: ignore[override]
        """Take steps: the noise of each is fresh noise less a part of the noise before it."""
        import torch

        sigma, taken = float(self.sigma) / self.coefficients[0], 0
        with progress(value.describe, lambda: taken / max(1, steps)):  # type: ignore[attr-defined]
            for _ in range(steps):
                exact = value.sums(run.sample())
                past: list[list[Any]] = run.past
                run.past = [[torch.as_tensor(one).to(exact[0].device) for one in row] for row in past]  # type: ignore[misc]
                fresh = [torch.zeros_like(one) for one in exact]
                add_noise(fresh, sigma)
                torch._foreach_add_(exact, run.correlated(fresh))
                value.update(exact)
                taken += 1

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact parameters, the numerics and the cost."""
        return {**BandedSteps.to_json(self), "mechanism": "correlated-steps", "numerics": "idealised"}
