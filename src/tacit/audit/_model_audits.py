"""Audits of trained models: a lower bound on epsilon from one run with canaries, and membership reports.

Each canary is behind a secret coin. `one_run` reads scores and coins of any training. `audit_training` runs a
Trainer on canaries whose gradients no other canary shares. A membership report says how well a score tells
who was in the data, beside the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tacit import noise
from tacit.audit._audit import claimed_epsilon, read_probability
from tacit.audit._outputs import clopper_pearson
from tacit.bisection import halved
from tacit.core import Unit, needs
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Code
from tacit.parameters import Integer
from tacit.report import Report, Reportable, ReportTable, percent, short_percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Cost
    from tacit.core import Certificate, Plan, Release
    from tacit.show import Figure


#: Shares of the canaries that an audit guesses, half of them as in and half as out, fixed in advance.
_GUESSED_SHARES = (0.02, 0.1, 0.3, 1.0)
_VERDICT_CONFIDENCE = 0.9999
_NEGLIGIBLE = 1e-12  # a delta below every probability that the verdict compares
_CURVE_POINTS = 129  # of a claimed curve
_MAX_MU = 64.0  # the largest parameter of a Gaussian curve that an audit tries
_GRADIENT_LENGTH = 10.0  # of a canary before the clip, so that missing clips show
_CANARY_EPSILON = 10**6  # the budget of canaries, which are nobody's data
_FALSE_ALARMS = (0.001, 0.01, 0.1)  # shares at which a membership report says how many members are found
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


class _Tally(NamedTuple):
    """How many coins were guessed, and how many of these guesses are right."""

    guessed: int
    right: int


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
    guesses: tuple[_Tally, ...]
    delta: float
    confidence: float
    claimed: Cost | None = None

    @property
    def mu_lower(self) -> float:
        """The proven lower bound on the parameter of the Gaussian curve (mu = 1 / noise multiplier)."""
        error = (1 - self.confidence) / len(self.guesses)
        return max(_largest_refuted_mu(self.canaries, tally, error) for tally in self.guesses)

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
        least_chance, error = _least_chance(self.claimed), (1 - _VERDICT_CONFIDENCE) / len(self.guesses)
        return not any(_too_many(least_chance, self.canaries, *tally, error) for tally in self.guesses)

    def __str__(self) -> str:
        error = 1 - self.confidence
        best = max(self.guesses, key=lambda tally: _largest_refuted_mu(self.canaries, tally, error))
        lines = [
            f"one-run audit with {self.canaries:,} canaries, confidence {short_percent(self.confidence)}",
            f"epsilon is at least {self.epsilon_lower:.3g} at delta {self.delta:g}",
            f"best guesses: {best.right:,} of {best.guessed:,} coins right",
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
    if guesses is not None:
        why = f"the number of canaries is {total:,}"
        guesses = Integer(2, total, why, instead=total).read("guesses", guesses)
    shares = _GUESSED_SHARES if guesses is None else (guesses / total,)
    order = np.argsort(np.nan_to_num(values), kind="stable")
    tallies = []
    for each in sorted({max(1, round(share * total / 2)) for share in shares}):
        side = min(each, total // 2)
        right = int(coins[order[total - side :]].sum()) + int((~coins[order[:side]]).sum())
        tallies.append(_Tally(2 * side, right))
    return OneRunAudit(
        total,
        tuple(tallies),
        read_probability("delta", delta),
        read_probability("confidence", confidence),
        claimed,
    )


def _largest_refuted_mu(canaries: int, tally: _Tally, error: float) -> float:
    """Return the largest mu for whose Gaussian curve the right guesses are too many, by halving."""

    def stands(mu: float) -> bool:
        return not _too_many(_gaussian_chance(mu), canaries, *tally, error)

    return halved(stands, 0.0, _MAX_MU, times=30)[0]


def _too_many(chance: LeastChance, canaries: int, guessed: int, right: int, error: float) -> bool:
    """Return whether a private run guesses so many coins right with probability below ``error``.

    Mahloujifar, Melis and Chaudhuri 2024, algorithm 3, for fair coins. Suppose that the probability is
    ``error``, and take one canary at random. r is the probability that at least i guesses are right and that
    the guess of this canary is one of them; h is the probability that at least i are right and the guess of
    this canary is wrong. The loop lowers i from ``right`` to 0. If the coin of this canary falls the other
    way, its right guess becomes wrong and one guess fewer is right, so privacy bounds the next h from below
    by ``chance(r)``. Where exactly i guesses are right, the guess of this canary is right or wrong in the
    ratio of i to ``guessed - i``, so r grows in this ratio to h. The canary is guessed at all with
    probability ``guessed / canaries``, so r + h cannot exceed that. Once it does, the supposition was false:
    so many right guesses are too many.
    """
    r, h = error * right / canaries, error * (guessed - right) / canaries
    for i in range(right - 1, -1, -1):
        next_h = max(h, chance(min(r, 1.0)))
        r += i / (guessed - i) * (next_h - h)
        h = next_h
        if r + h > guessed / canaries:
            return True
    return r + h > guessed / canaries


def _gaussian_chance(mu: float) -> LeastChance:
    from scipy.special import ndtr, ndtri

    return lambda x: float(ndtr(ndtri(x) - mu))


def _least_chance(cost: Cost) -> LeastChance:
    """Return the trade-off curve of a cost, from points of its privacy curve."""
    leak = float(cost.spend.delta) + _NEGLIGIBLE  # below the delta of a stated cost no epsilon holds
    promised = 60.0 if leak >= 1 else min(60.0, cost.epsilon(delta=leak) + 1e-3)
    points = np.linspace(0.0, promised, _CURVE_POINTS)
    deltas = np.array([min(1.0, cost.delta(epsilon=float(point))) for point in points])
    grown, shrunk = np.exp(points), np.exp(-points)

    def least(x: float) -> float:
        straight = 1 - deltas - grown * (1 - x)
        other = shrunk * (x - deltas)
        return max(0.0, float(straight.max()), float(other.max()))

    return least


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
    features = _GRADIENT_LENGTH * np.eye(total, dtype=np.float32)[coins]
    data = examples(
        features,
        np.zeros(len(features), dtype=np.float32),
        unit=Unit.row(),
        size=total,
        name="canaries",
        budget=Budget(epsilon=_CANARY_EPSILON, delta=0.5),
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


@dataclass(frozen=True, slots=True, repr=False)
class MembershipReport(Drawn, Reportable):
    """How well one score tells members of the training data from others; made by `membership`.

    What is measured is this attack on this model: a better attack may do better. What the claimed cost
    allows holds for every attack.

    Attributes
    ----------
    members, others
        How many scores of each kind there are.
    auc
        The probability that a member scores higher than another person.
    found
        For some shares of false alarms: the share of members that are found, and an interval for it (95 %),
        which covers the choice of members. The threshold itself is measured on the others.
    allowed
        What the claimed cost allows at the same shares; None without a claim.
    auc_allowed
        The largest AUC that the claimed cost allows; None without a claim.
    """

    members: int
    others: int
    auc: float
    found: tuple[tuple[float, float, float, float], ...]
    allowed: tuple[float, ...] | None
    auc_allowed: float | None
    _scores: tuple[Any, Any] = field(repr=False, compare=False)
    _claimed: Any = field(repr=False, compare=False, default=None)

    def report(self) -> Report:
        """Return the facts to show."""
        lead = [
            f"The attack compares {self.members:,} people in the training data with {self.others:,} others.",
            f"A member has the higher score in {percent(self.auc)} of all pairs; blind guessing has 50 %.",
        ]
        if self.auc_allowed is not None:
            allowed = percent(self.auc_allowed)
            lead.append(f"By the claimed cost, no attack can exceed {allowed}, whatever it knows.")
        rows = tuple(
            (
                percent(rate),
                f"{percent(share)} [{percent(low)}, {percent(high)}]",
                *(() if self.allowed is None else (percent(self.allowed[place]),)),
            )
            for place, (rate, share, low, high) in enumerate(self.found)
        )
        header = (
            "false alarms",
            "members found (95 %)",
            *(() if self.allowed is None else ("any attack at most",)),
        )
        note = "This is one attack on one model; other attacks may find more."
        return Report(
            "Membership report", tuple(lead), (ReportTable("members found", header, rows),), (note,)
        )

    def to_dict(self) -> dict[str, object]:
        """Return the figures as plain data, ready for JSON."""
        names = ("members", "others", "auc", "found", "allowed", "auc_allowed")
        return {name: getattr(self, name) for name in names}

    def figures(self) -> tuple[Figure, ...]:
        """Return the share of members found over the share of false alarms, and what the claim allows."""
        from tacit.explain import membership_curve

        alarms, hits = _curve(*self._scores)
        rates = np.linspace(0, 1, 65)
        bound = None if self._claimed is None else [1 - self._claimed.tradeoff(float(rate)) for rate in rates]
        return (membership_curve(alarms.tolist(), hits.tolist(), rates.tolist(), bound),)


def membership(
    members: Sequence[float] | NDArray[Any],
    others: Sequence[float] | NDArray[Any],
    *,
    claimed: Cost | Plan[Any] | Release[Any] | Certificate | None = None,
) -> MembershipReport:
    """Report how well a score tells who was in the training data of a model.

    A common score is minus the loss of the model on a person's example, or that minus the loss of a model
    that was trained without the person. The report is for the people who hold the data: the scores of
    members are not private, so do not publish it.

    Parameters
    ----------
    members
        Scores of people whose examples were in the training data; higher speaks for "in".
    others
        Scores of people like them whose examples were not.
    claimed
        The cost that training claims, or the plan, release or certificate that states it: the report then
        shows what it allows to any attack.

    Examples
    --------
    >>> import tacit as tc
    >>> found = tc.audit.membership([0.9, 0.8, 0.7, 0.2], [0.6, 0.4, 0.3, 0.1])
    >>> found.auc
    0.8125
    """
    inside, outside = (np.asarray(one, dtype=float).ravel() for one in (members, others))
    if not len(inside) or not len(outside) or not (np.isfinite(inside).all() and np.isfinite(outside).all()):
        raise TacitError(
            "bad-parameter",
            "a membership report needs finite scores of members and of others",
            why="it compares every member with every other person",
            fix=Code("tc.audit.membership(-loss_of_members, -loss_of_others)"),
        )
    ranks = np.searchsorted(np.sort(outside), inside, side="left")
    ties = np.searchsorted(np.sort(outside), inside, side="right") - ranks
    auc = float((ranks + ties / 2).mean() / len(outside))
    rows = []
    for rate in _FALSE_ALARMS:
        threshold = np.sort(outside)[::-1][min(int(rate * len(outside)), len(outside) - 1)]
        hits = int((inside > threshold).sum())
        low, high = clopper_pearson(hits, len(inside), 0.025)
        rows.append((rate, hits / len(inside), float(low), float(high)))
    cost = _read_claim(claimed)
    allowed = None if cost is None else tuple(1 - cost.tradeoff(rate) for rate in _FALSE_ALARMS)
    return MembershipReport(
        len(inside),
        len(outside),
        auc,
        tuple(rows),
        allowed,
        _largest_auc(cost),
        (inside, outside),
        cost,
    )


def _read_claim(claimed: Any) -> Cost | None:
    """Return the cost that something states: a cost itself, a plan, a release or a certificate."""
    from tacit.accounting import Cost
    from tacit.core import Certificate, Plan, Release

    match claimed:
        case None | Cost():
            return claimed
        case Release() | Certificate():
            stated = claimed.certificate if isinstance(claimed, Release) else claimed
            return Cost.from_json(stated.fields["cost"])
        case Plan():
            return claimed.cost
    raise bad_parameter(
        "claimed", "a cost, or a plan, release or certificate that states one", type(claimed).__name__,
        fix=Code("tc.audit.membership(members, others, claimed=release.certificate)"),
    )  # fmt: skip


def _largest_auc(claimed: Cost | None) -> float | None:
    """Return an upper bound on the AUC: the area under the most that any attack finds, from above."""
    if claimed is None:
        return None
    curve = np.array([1 - claimed.tradeoff(step / 64) for step in range(65)])
    return float(min(1.0, curve[1:].mean()))  # the curve rises, so each step's right end bounds it


def _curve(inside: NDArray[Any], outside: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the shares of false alarms and of members found, for every threshold."""
    thresholds = np.sort(np.concatenate([inside, outside]))[::-1]
    counts = (len(one) - np.searchsorted(np.sort(one), thresholds, side="left") for one in (outside, inside))
    alarms, hits = (
        np.concatenate([[0.0], count / len(one)])
        for count, one in zip(counts, (outside, inside), strict=True)
    )
    return alarms, hits
