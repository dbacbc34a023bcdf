"""Numeric accounting: certified bounds on epsilon and delta for a sum of loss laws, and exact rounding.

The rest of accounting imports only from here. Every bound has a proof in docs/proofs/accounting.md.

Modules, in reading order:

- `_arithmetic`: directed rounding of exact rationals, and the bracket that every accountant returns
- `_quadrature`: scalar products, exponential sums, Gauss's rule
- `_mgf`: moment generating functions of losses and of their sums
- `_atoms`: losses with finitely many values, and finite pairs above a curve
- `_sum_facts`: simple facts about a sum of laws; infinite loss
- `_gaussian`, `_sampled_laplace`, `_shuffled`: laws of noise, sampled and shuffled
- `_curve`: the curve of delta over epsilon of a law, and of a sum
- `_factors`: the moment generating function of each law of a cost
- `_rare_losses`, `_fourier`: Fourier inversion on a vertical line
- `_lattice`, `_shuffled_lattice`: sums of laws on one lattice
- `_small_samples`: a sampled Gaussian with a small rate, repeated
- `_accountants`: one accountant for each method, and the safe bound by Renyi divergences
- `_bounds`: the accountant that fits a sum, and its bounds
"""

from tacit.accounting.numeric._accountants import mixture_log_moment
from tacit.accounting.numeric._arithmetic import (
    Bracket,
    below,
    exp_down,
    exp_up,
    float_down,
    float_up,
    log_down,
    log_up,
    on_grid,
    room,
    round_down,
    round_up,
)
from tacit.accounting.numeric._bounds import delta_bounds, epsilon_bounds, loss_exceeds, renyi_divergence
from tacit.accounting.numeric._sum_facts import in_one_sample, largest_loss

__all__ = [
    "Bracket",
    "below",
    "delta_bounds",
    "epsilon_bounds",
    "exp_down",
    "exp_up",
    "float_down",
    "float_up",
    "in_one_sample",
    "largest_loss",
    "log_down",
    "log_up",
    "loss_exceeds",
    "mixture_log_moment",
    "on_grid",
    "renyi_divergence",
    "room",
    "round_down",
    "round_up",
]
