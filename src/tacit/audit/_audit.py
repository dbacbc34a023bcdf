"""The black-box audit: a lower bound on epsilon from outputs alone, and its result at any confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from tacit.audit._outputs import (
    AuditTarget,
    Event,
    Tally,
    as_labels,
    as_rows,
    batches,
    choose_events,
    clopper_pearson,
    rare_events,
    single_outputs,
    takes_batches,
)
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count
from tacit.fixes import Code
from tacit.parameters import Integer, RealNumber
from tacit.progress import progress
from tacit.show import Drawn

if TYPE_CHECKING:
    from tacit.accounting import Cost
    from tacit.audit._outputs import OutputRows, ScoreArray
    from tacit.show import Figure


#: A claim is called broken only at this confidence, so that audits can run daily without false alarms.
VERDICT = 1 - 1e-9
_UNSET = object()
_FEWEST_SAMPLES = 200
_SINGLE = 2000  # outputs that are counted with one call each
_HINT = 0.95  # the confidence at which one event must exceed the claim for more outputs to be drawn
_RARE_HITS = 60  # how often a rare output must be expected, for each factor of the promised odds
_MOST_RARE = 8_000_000
_TRAINING_CELLS = 20_000_000  # the largest number of training outputs in memory, counted in numbers


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
        return replace(self, confidence=read_probability("confidence", confidence))

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
        bound = f"epsilon >= {self.epsilon_lower:.4f} at delta {self.delta:g}"
        basis = f"(confidence {self.confidence:.7g}, {self.samples:,} outputs per input)"
        lines = [f"{bound} {basis}", f"  shown by the event {self.witness}"]
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


def read_probability(name: str, value: Number) -> float:
    """Read a probability that is greater than 0 and less than 1."""
    usual = 0.999 if name == "confidence" else 1e-6
    return float(RealNumber(above=0, below=1, instead=usual).read(name, value))


@progress("Attacking the mechanism")
def audit(
    target: AuditTarget,
    a: object = _UNSET,
    b: object = _UNSET,
    *,
    samples: int = 1_000_000,
    delta: float = 0.0,
    confidence: float = 0.999,
    claimed: Cost | None = None,
    repeat: int = 1,
) -> AuditResult:
    """Attack a mechanism on two inputs and return a proven lower bound on its epsilon.

    The audit samples outputs on both inputs. On one half of them it chooses events (thresholds on every
    number, histograms, the bits of floats, and a learned score); on the other half it counts these events.
    It counts rare outputs that occur on one input only on further samples. It also calls a function of two
    arguments for one output at a time, to find a seed that is set inside the function.
    Exact Clopper-Pearson intervals, with the error probability split over all events (Bonferroni), turn the
    counts into a bound: an event with probability at least p on one input and at most q on the other proves
    epsilon >= ln((p - delta) / q).

    Guarantee: the bound is wrong with probability at most 1 - `confidence`, whatever the target does. It
    says nothing about other pairs of inputs. An audit that finds no violation is not a proof of privacy.

    Parameters
    ----------
    target
        A mechanism, a function of two arguments, the value and how many independent outputs to return (the
        fast way), or a function of the value that returns one output. Outputs are numbers, arrays or hashable
        labels.
    a, b
        Two neighbouring inputs; by default the pair that the mechanism names as its worst.
    samples
        The number of outputs drawn for each input, both halves together.
    delta
        The delta at which epsilon is read.
    confidence
        The confidence of every reading of the result.
    claimed
        The cost to judge; by default the mechanism's own.
    repeat
        The number of runs per output: the audit attacks the mechanism composed with itself, and compares
        with `repeat` times the claimed cost.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> def half_the_noise(value, size):  # claims epsilon 1 for a count, adds noise for epsilon 2
    ...     p = 1 - np.exp(-2.0)
    ...     return value + rng.geometric(p, size) - rng.geometric(p, size)
    >>> found = audit(half_the_noise, 0, 1, samples=40_000)
    >>> 1.5 < found.epsilon_lower <= 2
    True
    """
    if a is _UNSET or b is _UNSET:
        a, b = _worst_pair(target)
    samples_drawn, runs = _read_samples(samples), count("repeat", repeat, zero=False)
    if delta != 0:
        read_probability("delta", delta)
    read_probability("confidence", confidence)
    if claimed is None:
        claimed = getattr(target, "cost", None)
    if claimed is not None and runs > 1:
        claimed = runs * claimed
    train = samples_drawn // 2
    learn_a, learn_b = _gather(target, a, train, runs), _gather(target, b, train, runs)
    events = choose_events(learn_a, learn_b, delta=delta, epsilons=_goals(claimed, delta))
    hits = [_hits(target, value, samples_drawn - train, runs, events) for value in (a, b)]
    tallies = _tallies(events, hits[0], hits[1], trials=samples_drawn - train)
    tallies += _rare(target, (a, b), (learn_a, learn_b), runs, _promise(claimed, delta))
    if takes_batches(target) and runs == 1:
        tallies += _one_call_each(target, a, b, delta, claimed)
    return AuditResult(tallies, delta=float(delta), confidence=float(confidence), claimed=claimed)


def _worst_pair(target: AuditTarget) -> tuple[object, object]:
    pair = getattr(target, "worst_pair", None)
    if pair is None:
        raise bad_parameter(
            "a and b",
            "two neighbouring inputs, because the target does not name a worst pair",
            None,
            fix=Code("audit(target, a, b)"),
        )
    first, second = pair
    return first, second


def _read_samples(samples: int) -> int:
    return Integer(_FEWEST_SAMPLES, instead=1_000_000).read("samples", samples)


def _promise(claimed: Cost | None, delta: float) -> float:
    return 0.0 if claimed is None else claimed_epsilon(claimed, delta)


def _one_call_each(
    target: AuditTarget, a: object, b: object, delta: float, claimed: Cost | None
) -> tuple[Tally, ...]:
    """Attack outputs of calls for one output each: a seed that is fixed inside the function shows here.

    Such calls are slow. The training outputs, and a few that are not counted either, tell whether an event
    may exceed the claim; if none does, no more are drawn.
    """

    def draw(size: int) -> list[OutputRows]:
        return [as_rows(single_outputs(target, value, size)) for value in (a, b)]

    def hinted(rows: list[OutputRows]) -> bool:
        tallies = _tallies(events, *(_inside(events, one) for one in rows), trials=_SINGLE // 4)
        hints = (AuditResult((one,), delta=delta, confidence=_HINT) for one in tallies)
        return claimed is None or any(hint.exceeded(claimed) is not None for hint in hints)

    learn = draw(_SINGLE // 4)
    events = choose_events(learn[0], learn[1], delta=delta, epsilons=_goals(claimed, delta))
    if not hinted(learn) or not hinted(draw(_SINGLE // 4)):
        return ()
    return _tallies(events, *(_inside(events, rows) for rows in draw(_SINGLE)), trials=_SINGLE)


def _inside(events: list[Event], rows: OutputRows) -> list[int]:
    return [int(np.count_nonzero(event.inside(rows))) for event in events]


def _rare(
    target: AuditTarget,
    inputs: tuple[object, object],
    learned: tuple[OutputRows, OutputRows],
    repeat: int,
    promised: float,
) -> tuple[Tally, ...]:
    """Count rare outputs that training met on one input only, on as many new outputs as a proof takes."""
    rare = rare_events(*learned, promised=promised)
    if not rare:
        return ()
    rate = min(rate for rate, _ in rare)
    trials = min(int(_RARE_HITS * math.exp(min(promised, 5.0)) / rate), _MOST_RARE)
    events = [event for _, event in rare]
    hits = [_hits(target, value, trials, repeat, events) for value in inputs]
    return _tallies(events, hits[0], hits[1], trials=trials)


def _goals(claimed: Cost | None, delta: float) -> tuple[float, ...]:
    """Return the epsilons at which the audit looks for the largest delta."""
    promised = _promise(claimed, delta)
    return curve_points(promised) if promised < 50 or promised == math.inf else (0.0,)


def _gather(target: AuditTarget, value: object, size: int, repeat: int) -> OutputRows:
    """Collect training outputs, up to `size` or until wide outputs fill the memory for training."""
    parts: list[OutputRows] = []
    cells = _TRAINING_CELLS
    for raw in batches(target, value, size, repeat=repeat):
        rows = as_rows(raw)
        parts.append(rows)
        cells -= rows.size if isinstance(rows, np.ndarray) else 10 * len(rows)
        if cells < 0:
            break
    numbers = [part for part in parts if isinstance(part, np.ndarray)]
    if len(numbers) == len(parts):
        return np.concatenate(numbers)
    return [label for part in parts for label in as_labels(part)]


def _hits(target: AuditTarget, value: object, size: int, repeat: int, events: list[Event]) -> list[int]:
    """Count every event on new outputs, one batch at a time."""
    hits = [0] * len(events)
    for raw in batches(target, value, size, repeat=repeat):
        rows = as_rows(raw)
        scores: dict[int, ScoreArray] = {}
        for index, event in enumerate(events):
            key = id(event.score)
            if key not in scores:
                scores[key] = event.score.of(rows)
            hits[index] += int(np.count_nonzero(event.holds_for(scores[key])))
    return hits


def _tallies(events: list[Event], hits_a: list[int], hits_b: list[int], *, trials: int) -> tuple[Tally, ...]:
    """Pair the hits on both inputs; `hits` of a tally is for the input on which the event is more likely."""
    return tuple(
        Tally(
            str(event),
            event.swapped,
            hits=in_b if event.swapped else in_a,
            trials=trials,
            other_hits=in_a if event.swapped else in_b,
            other_trials=trials,
        )
        for event, in_a, in_b in zip(events, hits_a, hits_b, strict=True)
    )
