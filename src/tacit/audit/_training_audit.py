"""Audits of training: a lower bound on epsilon from one run with canaries, each behind a secret coin.

`one_run` reads scores and coins of any training. `audit_training` runs a Trainer on canaries whose
gradients no other canary shares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tacit import noise
from tacit.audit._audit import claimed_epsilon, probability
from tacit.core import Unit, needs
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Code, Set

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Cost


#: Shares of the canaries that an audit guesses, half of them as in and half as out, fixed in advance.
_SHARES = (0.02, 0.1, 0.3, 1.0)
_VERDICT = 0.9999
_NEGLIGIBLE = 1e-12  # a delta below every probability that the verdict compares
_POINTS = 129  # of a claimed curve
#: How likely an event is under one dataset at least, given its probability under the neighbour.
LeastChance: TypeAlias = Callable[[float], float]


def draw_canaries(canaries: int) -> NDArray[np.bool_]:
    """Toss one fair coin for each canary: True puts it into the training data.

    Examples
    --------
    >>> draw_canaries(2000).shape
    (2000,)
    """
    size = count("canaries", canaries, zero=False)
    return np.asarray(noise.bernoulli(0.5, size)).astype(bool)


@dataclass(frozen=True, slots=True)
class OneRunAudit:
    """What one training run with canaries proves about epsilon; made by `one_run`.

    Guarantee: if training keeps a Gaussian privacy curve (every sampled or repeated Gaussian is close to
    one), then with probability at least `confidence` the true epsilon is at least `epsilon_lower`. `holds`
    does not rest on that shape: it tests the whole curve of the claimed cost, at confidence 99.99 %. A single
    run cannot give more: a curve with a delta of 1e-9 allows a run that reveals everything once in 1e9.

    Attributes
    ----------
    canaries
        How many canaries had a coin.
    guesses
        How many coins were guessed, and how many of these guesses are right; one pair for each share.
    delta, confidence, claimed
        See `one_run`.
    """

    canaries: int
    guesses: tuple[tuple[int, int], ...]
    delta: float
    confidence: float
    claimed: Cost | None = None

    @property
    def mu_lower(self) -> float:
        """The proven lower bound on the parameter of the Gaussian curve (mu = 1 / noise multiplier)."""
        error = (1 - self.confidence) / len(self.guesses)
        return max(self._largest(made, right, error) for made, right in self.guesses)

    @property
    def epsilon_lower(self) -> float:
        """The proven lower bound on epsilon at `delta`."""
        from tacit.accounting import Cost

        mu = self.mu_lower
        return Cost.gaussian(sigma=1 / mu, sensitivity=1).epsilon(delta=self.delta) if mu > 0 else 0.0

    @property
    def holds(self) -> bool | None:
        """Whether the claimed cost survives the audit (confidence 99.99 %); None without a claim."""
        if self.claimed is None:
            return None
        least_chance, error = _least_chance(self.claimed), (1 - _VERDICT) / len(self.guesses)
        return not any(
            _too_many(least_chance, self.canaries, made, right, error) for made, right in self.guesses
        )

    def _largest(self, guesses: int, right: int, error: float) -> float:
        """Return the largest mu under which so many right guesses are too many, by halving."""
        low, high = 0.0, 64.0
        for _ in range(30):
            middle = (low + high) / 2
            refused = _too_many(_gaussian_chance(middle), self.canaries, guesses, right, error)
            low, high = (middle, high) if refused else (low, middle)
        return low

    def __str__(self) -> str:
        guesses, right = max(
            self.guesses, key=lambda pair: self._largest(pair[0], pair[1], 1 - self.confidence)
        )
        lines = [
            f"one-run audit with {self.canaries:,} canaries, confidence {100 * self.confidence:g} %",
            f"epsilon is at least {self.epsilon_lower:.3g} at delta {self.delta:g}",
            f"best guesses: {right:,} of {guesses:,} coins right",
        ]
        if self.claimed is not None:
            promised = claimed_epsilon(self.claimed, self.delta)
            verdict = "the claim holds" if self.holds else "THE CLAIM IS BROKEN"
            lines.append(f"claimed epsilon {promised:.3g}: {verdict}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def one_run(
    scores: Sequence[float] | NDArray[Any],
    included: Sequence[bool] | NDArray[np.bool_],
    *,
    claimed: Cost | None = None,
    delta: float = 1e-5,
    confidence: float = 0.95,
    guesses: int | None = None,
) -> OneRunAudit:
    """Bound epsilon from below by how well scores tell which canaries were in the training data.

    Each canary was put into the data by a fair coin of its own (`draw_canaries`). After one training run,
    the auditor guesses the highest scores as in and the lowest as out. Private training limits how many of
    these guesses can be right (Steinke, Nasr and Jagielski 2023; Mahloujifar, Melis and Chaudhuri 2024).

    Guarantee: see `OneRunAudit`. The number of guesses must not depend on the scores; by default four
    numbers share the error probability.

    Parameters
    ----------
    scores
        One number for each canary: how much the trained model speaks for its presence.
    included
        The coins.
    claimed
        The cost that training claims, to be judged.
    delta, confidence
        Where epsilon is read, and how sure the bound is.
    guesses
        How many coins to guess, fixed before training; None tries four numbers and pays for that.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> coins = tc.audit.draw_canaries(2000)
    >>> without_noise = np.where(coins, 1.0, 0.0)
    >>> found = tc.audit.one_run(without_noise, coins, claimed=tc.Cost.gaussian(sigma=1, sensitivity=1))
    >>> found.epsilon_lower > 4, found.holds
    (True, False)
    """
    values, coins = np.asarray(scores, dtype=float), np.asarray(included)
    if values.ndim != 1 or values.shape != coins.shape or coins.dtype != bool or not len(values):
        raise TacitError(
            "bad-parameter",
            "an audit needs one score and one coin (True or False) for each canary",
            why="it counts for how many canaries the score shows how the coin fell",
            fix=Code("tc.audit.one_run(scores, tc.audit.draw_canaries(2000))"),
        )
    total = len(values)
    if guesses is not None and not 2 <= count("guesses", guesses) <= total:
        raise bad_parameter(
            "guesses", f"from 2 to {total:,}, the number of canaries", guesses, fix=Set(guesses=total)
        )
    shares = _SHARES if guesses is None else (guesses / total,)
    order = np.argsort(np.nan_to_num(values), kind="stable")
    tallies = []
    for each in sorted({max(1, round(share * total / 2)) for share in shares}):
        side = min(each, total // 2)
        right = int(coins[order[total - side :]].sum()) + int((~coins[order[:side]]).sum())
        tallies.append((2 * side, right))
    return OneRunAudit(
        total, tuple(tallies), probability("delta", delta), probability("confidence", confidence), claimed
    )


def _too_many(chance: LeastChance, canaries: int, guesses: int, right: int, error: float) -> bool:
    """Return whether a private run guesses so many coins right with probability below ``error``.

    Mahloujifar, Melis and Chaudhuri 2024, algorithm 3, for fair coins. Going down from ``right``, r is the
    probability of at least so many right guesses of which one is a given one, h that of the same with the
    given guess wrong; privacy bounds h from below by r.
    """
    r, h = error * right / canaries, error * (guesses - right) / canaries
    for i in range(right - 1, -1, -1):
        larger = max(h, chance(min(r, 1.0)))
        r += i / (guesses - i) * (larger - h)
        h = larger
        if r + h > guesses / canaries:
            return True
    return r + h > guesses / canaries


def _gaussian_chance(mu: float) -> LeastChance:
    from scipy.special import ndtr, ndtri

    return lambda x: float(ndtr(ndtri(x) - mu))


def _least_chance(cost: Cost) -> LeastChance:
    """Return the trade-off curve of a cost, from points of its privacy curve."""
    leak = float(cost.spend.delta) + _NEGLIGIBLE  # below the delta of a stated cost no epsilon holds
    promised = 60.0 if leak >= 1 else min(60.0, cost.epsilon(delta=leak) + 1e-3)
    points = np.linspace(0.0, promised, _POINTS)
    deltas = np.array([min(1.0, cost.delta(epsilon=float(point))) for point in points])
    grown, shrunk = np.exp(points), np.exp(-points)

    def least(x: float) -> float:
        straight = 1 - deltas - grown * (1 - x)
        other = shrunk * (x - deltas)
        return max(0.0, float(straight.max()), float(other.max()))

    return least


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
