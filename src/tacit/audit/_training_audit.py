"""Audits of training: one run of a Trainer on canaries whose gradients no other canary shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.audit._one_run import OneRunAudit, draw_canaries, one_run
from tacit.core import Unit, needs
from tacit.exact import count

if TYPE_CHECKING:
    from collections.abc import Callable

_LENGTH = 10.0  # of a canary's gradient before the clip, so that missing clips show
_BUDGET = 10**6  # canaries are nobody's data


def audit_training(
    build: Callable[..., Any], *, canaries: int = 2000, guesses: int | None = None, confidence: float = 0.95
) -> OneRunAudit:
    """Train once on canaries with your settings, and bound epsilon from below by what the weights reveal.

    Each canary is an example with a gradient of its own, orthogonal to all others and longer than the clip,
    whatever the weights are; a fair coin puts it into the data. So nothing hides a canary but the noise: it
    is the strongest case for an attack on the final weights. Everything else is the Trainer itself: its
    sample, clip, blocks, noise and optimizer.

    Guarantee: that of `one_run`. It looks at the final weights of one run, so it proves less than the claim.

    Parameters
    ----------
    build
        A function that takes ``model``, ``loss`` and ``data`` and returns a `tacit.learn.Trainer` with your
        own optimizer, clip, batch, steps, epsilon and so on.
    canaries
        How many canaries to try; the bound is weak below 2,000.
    guesses, confidence
        As in `one_run`.

    Examples
    --------
    >>> import torch, tacit as tc
    >>> def build(model, loss, data):
    ...     optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    ...     return tc.learn.Trainer(
    ...         model, loss, optimizer, data=data, clip=1.0, batch=100, steps=5, epsilon=8, delta=1e-5
    ...     )
    >>> tc.audit.audit_training(build, canaries=500).holds
    True
    """
    needs("audit_training", "torch", "tacit[torch]")
    import torch

    from tacit.accounting import Budget
    from tacit.learn import examples

    total = count("canaries", canaries, zero=False)
    coins = draw_canaries(total)
    features = _LENGTH * np.eye(total, dtype=np.float32)[coins]
    data = examples(
        features,
        np.zeros(len(features), dtype=np.float32),
        unit=Unit.row(),
        size=total,
        name="canaries",
        budget=Budget(epsilon=_BUDGET, delta=0.5),
    )
    model = torch.nn.Linear(total, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    trainer = build(model, _own_output, data)
    plan = trainer.plan()
    weights = plan.release().state()["weight"]
    scores = -np.asarray(weights, dtype=float).ravel()
    return one_run(
        scores, coins, claimed=plan.cost, delta=float(plan.promised["delta"]), guesses=guesses,
        confidence=confidence,
    )  # fmt: skip


def _own_output(output: Any, target: Any) -> Any:
    """Take the output itself as the loss: the gradient is the example, whatever the weights are."""
    del target
    return output.squeeze(-1)
