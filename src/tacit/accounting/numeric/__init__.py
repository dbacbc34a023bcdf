"""Numeric accounting: certified bounds on epsilon and delta for a sum of loss laws, and exact rounding.

The rest of accounting imports only from here. Every bound has a proof in docs/proofs/accounting.md.
"""

from tacit.accounting.numeric._arithmetic import (
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
from tacit.accounting.numeric._bracket import Bracket
from tacit.accounting.numeric._sum_facts import in_one_sample, largest_loss
from tacit.accounting.numeric._whole_orders import mixture_log_moment

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
