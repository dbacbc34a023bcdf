"""The result of an audit, readable at any confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from tacit.audit._events import Tally, clopper_pearson
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Set
from tacit.show import Drawn

if TYPE_CHECKING:
    from tacit.accounting import Cost
    from tacit.show import Figure

#: A claim is called broken only at this confidence, so that audits can run daily without false alarms.
VERDICT = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class EventWitness:
    """An event that proves a bound: likely on one input (at least), less likely on the other (at most)."""

    event: str
    likelier_on: str
    at_least: float
    at_most: float
    epsilon_lower: float

    def __str__(self) -> str:
        other = "b" if self.likelier_on == "a" else "a"
        return (
            f"{self.event}: probability at least {self.at_least:.4g} on input {self.likelier_on}, "
            f"at most {self.at_most:.4g} on input {other}"
        )


@dataclass(frozen=True, slots=True)
class AuditResult(Drawn):
    """A lower bound on epsilon, proven by counting events.

    Guarantee: with probability at least `confidence` over the samples, every reading of this result (the
    epsilon at any delta, the delta at any epsilon, over all events) is a true lower bound for the pair of
    inputs. The events were chosen on other samples than those counted here; the error probability is split
    evenly over all events and both sides.

    Attributes
    ----------
    tallies
        The counts of every tested event.
    delta
        The delta at which `epsilon_lower` is read.
    confidence
        The confidence of all readings; `at(confidence)` reads the same counts at another confidence.
    claimed
        The cost that the mechanism claims, if known.
    """

    tallies: tuple[Tally, ...]
    delta: float
    confidence: float
    claimed: Cost | None = None

    def at(self, confidence: float) -> AuditResult:
        """Read the same counts at another confidence."""
        return replace(self, confidence=probability("confidence", confidence))

    @property
    def samples(self) -> int:
        """The number of outputs counted for each input; about as many were used to choose the events."""
        return self.tallies[0].trials

    @property
    def epsilon_lower(self) -> float:
        """The proven lower bound on epsilon at `delta`; 0 if no event proves anything."""
        return self.witness.epsilon_lower

    @property
    def witness(self) -> EventWitness:
        """The event with the largest bound."""
        return max(self.witnesses, key=lambda one: one.epsilon_lower)

    @property
    def witnesses(self) -> tuple[EventWitness, ...]:
        """All tested events with their bounds, in the order in which they were chosen."""
        return tuple(
            EventWitness(
                event=tally.event,
                likelier_on="b" if tally.swapped else "a",
                at_least=low,
                at_most=high,
                epsilon_lower=max(0.0, math.log((low - self.delta) / high)) if low > self.delta else 0.0,
            )
            for tally, low, high in self._bounds()
        )

    def delta_lower(self, epsilon: float) -> float:
        """Return the proven lower bound on delta at `epsilon`, one point of the privacy curve."""
        grown = math.exp(epsilon)
        return max(0.0, *(low - grown * high for _, low, high in self._bounds()))

    @property
    def holds(self) -> bool | None:
        """Whether the claim holds (confidence 1 - 1e-9) at `delta` and on the whole curve; None: no claim."""
        return None if self.claimed is None else self.broken_at is None

    @property
    def broken_at(self) -> float | None:
        """The epsilon at which the claimed curve is proven too low (confidence 1 - 1e-9); None if nowhere."""
        return None if self.claimed is None else self.at(VERDICT).exceeded(self.claimed)

    def exceeded(self, claimed: Cost) -> float | None:
        """Return the epsilon at which a curve is too low, at the confidence of this result; None: nowhere."""
        promised = claimed_epsilon(claimed, self.delta)
        if self.epsilon_lower > promised:
            return promised
        for epsilon in curve_points(promised):
            if self.delta_lower(epsilon) > claimed.delta(epsilon=epsilon):
                return epsilon
        return None

    def _bounds(self) -> list[tuple[Tally, float, float]]:
        error = (1 - self.confidence) / (2 * len(self.tallies))
        rows = []
        for tally in self.tallies:
            low, _ = clopper_pearson(tally.hits, tally.trials, error)
            _, high = clopper_pearson(tally.other_hits, tally.other_trials, error)
            rows.append((tally, float(low), float(high)))
        return rows

    def figures(self) -> tuple[Figure, ...]:
        """Return the proven lower bound on delta, the claimed curve, and the events that prove most."""
        from tacit.explain import audit_curves

        limit = 1.2 * max(self.epsilon_lower, 0.1)
        promised = math.inf if self.claimed is None else claimed_epsilon(self.claimed, self.delta)
        if math.isfinite(promised):
            limit = max(limit, 1.2 * promised)
        epsilons = np.linspace(0, limit, 60).tolist()
        best = sorted(self.witnesses, key=lambda one: one.epsilon_lower)[-10:]
        figure = audit_curves(
            epsilons,
            [self.delta_lower(epsilon) for epsilon in epsilons],
            None if self.claimed is None else [self.claimed.delta(epsilon=epsilon) for epsilon in epsilons],
            {one.event: one.epsilon_lower for one in best},
            confidence=self.confidence,
            delta=self.delta,
        )
        return (figure,)

    def __repr__(self) -> str:
        found = f"epsilon >= {self.epsilon_lower:.4f} at delta {self.delta:g}"
        basis = f"(confidence {self.confidence:.7g}, {self.samples:,} outputs per input)"
        lines = [f"{found} {basis}", f"  shown by the event {self.witness}"]
        if self.claimed is not None:
            lines.append(f"  claimed: epsilon <= {claimed_epsilon(self.claimed, self.delta):.4f}")
            broken = self.broken_at
            verdict = "holds" if broken is None else f"BROKEN at epsilon {broken:.4g}"
            lines.append(f"  verdict: {verdict} (at confidence 1 - 1e-9)")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def claimed_epsilon(cost: Cost, delta: float) -> float:
    """Return the claimed epsilon at `delta`; infinite if the cost gives no guarantee there."""
    try:
        return cost.epsilon(delta=delta)
    except TacitError as refusal:
        if refusal.code != "no-guarantee":
            raise
        return math.inf


def curve_points(promised: float) -> tuple[float, ...]:
    """Return the epsilons at which two curves are compared, up to the claimed epsilon, or 1 if infinite."""
    top = promised if math.isfinite(promised) else 1.0
    return tuple(top * part for part in (0.0, 0.25, 0.5, 0.75, 0.9, 1.0))


def probability(name: str, value: Number) -> float:
    """Read a probability that is greater than 0 and less than 1."""
    exact = rational(name, value)
    if exact >= 1:
        fix = Set(**{name: 0.999 if name == "confidence" else 1e-6})
        raise bad_parameter(name, "greater than 0 and less than 1", value, fix=fix)
    return float(exact)
