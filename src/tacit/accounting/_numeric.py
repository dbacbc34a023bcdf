"""The seam to the numerical engines: certified bounds for any sum of laws, by the engine its content asks for.

| content | engine |
| --- | --- |
| Gaussian, GDP | closed form |
| one law, once | its own curve |
| randomized response, lattice noise; Laplace and bounded range where nothing is smooth | lattice |
| anything with a Gaussian part, sampled Gaussians, many Laplace | spectral |
| losses that share no lattice and have no smooth part | spectral, with a tiny Gaussian added (an upper value) |
| a part known by rho or a Renyi curve only; whatever did not converge | Renyi divergences |

Mass at infinite loss is kept apart: delta = m + (1 - m) delta_rest. Both directions are taken. Branches and groups are
spelled out before they come here. Every step is argued in docs/proofs/accounting.md.
"""

from __future__ import annotations

from tacit.accounting._bracket import Bracket
from tacit.accounting._engines import delta_bounds, epsilon_bounds, loss_exceeds, renyi_divergence

__all__ = ["Bracket", "delta_bounds", "epsilon_bounds", "loss_exceeds", "renyi_divergence"]
