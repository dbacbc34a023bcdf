"""The events that an audit tests: thresholds on scores, chosen on half of the samples, counted on half."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.audit._scores import OutputRows, OutputScore, ScoreArray, fit_scores, repeated_outputs

HitCounts: TypeAlias = NDArray[np.int64]
_TRIED = 400  # thresholds tried per score
_STRICT = 5.0  # standard deviations of safety margin when events are chosen
_RARELY = 8  # how often training must meet an output that the other input never shows
_KEPT = 12  # events kept for the first goal; every event uses up a little of the confidence


def clopper_pearson(hits: HitCounts | int, trials: int, error: float) -> tuple[ScoreArray, ScoreArray]:
    """Return one-sided bounds on a probability, lower and upper, each wrong with probability at most `error`.

    Clopper and Pearson (1934): exact for every probability. The returned floats are moved outwards by one
    part in 10^9, to cover rounding inside the inverse beta function.

    Examples
    --------
    >>> low, high = clopper_pearson(50, 100, 0.025)
    >>> round(float(low), 3), round(float(high), 3)
    (0.398, 0.602)
    """
    from scipy.special import betainccinv, betaincinv

    hit = np.asarray(hits, dtype=np.float64)
    low = np.where(hit > 0, betaincinv(np.maximum(hit, 1), trials - hit + 1, error), 0.0)
    high = np.where(hit < trials, betainccinv(hit + 1, np.maximum(trials - hit, 1), error), 1.0)
    return np.maximum(low * (1 - 1e-9), 0.0), np.minimum(high * (1 + 1e-9), 1.0)


@dataclass(frozen=True, slots=True)
class Event:
    """A set of outputs: those whose score is at or above (or at or below) a threshold."""

    score: OutputScore
    threshold: float
    above: bool
    swapped: bool  # the event is more likely on b than on a

    def __str__(self) -> str:
        if self.score.members is not None:
            labels = self.score.members(self._passes)
            return f"output in {{{', '.join(map(repr, labels[:4]))}{', ...' if len(labels) > 4 else ''}}}"
        return f"{self.score.name} {'>=' if self.above else '<='} {self.threshold:.6g}"

    def _passes(self, score: float) -> bool:
        return score >= self.threshold if self.above else score <= self.threshold

    def holds_for(self, scores: ScoreArray) -> NDArray[np.bool_]:
        """Return which of these scores are in the event."""
        return scores >= self.threshold if self.above else scores <= self.threshold

    def inside(self, rows: OutputRows) -> NDArray[np.bool_]:
        """Return which outputs are in the event."""
        return self.holds_for(self.score.of(rows))


@dataclass(frozen=True, slots=True)
class Tally:
    """How often an event occurred among the test outputs of one input (`hits`) and of the other."""

    event: str
    swapped: bool
    hits: int
    trials: int
    other_hits: int
    other_trials: int


def choose_events(a: OutputRows, b: OutputRows, *, delta: float, epsilons: tuple[float, ...]) -> list[Event]:
    """Choose the events that prove most on the training outputs.

    The goals are the largest epsilon at `delta` and the largest delta at each of `epsilons`. For each goal
    the best few combinations of score, threshold, side and direction are kept.
    """
    found: list[tuple[list[float], Event]] = []
    for score in fit_scores(a, b):
        in_a, in_b = np.sort(score.of(a)), np.sort(score.of(b))
        cuts = _thresholds(in_a, in_b)
        at_least = (
            len(in_a) - np.searchsorted(in_a, cuts, "left"),
            len(in_b) - np.searchsorted(in_b, cuts, "left"),
        )
        at_most = np.searchsorted(in_a, cuts, "right"), np.searchsorted(in_b, cuts, "right")
        for above, (hits_a, hits_b) in ((True, at_least), (False, at_most)):
            for swapped in (False, True):
                one, other = (hits_b, hits_a) if swapped else (hits_a, hits_b)
                sizes = (len(in_b), len(in_a)) if swapped else (len(in_a), len(in_b))
                goals = _goals(one, other, sizes, delta, epsilons, _STRICT)
                best = np.unique(np.argmax(goals, axis=1))
                found += [
                    (goals[:, k].tolist(), Event(score, float(cuts[k]), above, swapped))
                    for k in best.tolist()
                ]
    kept: dict[int, Event] = {}
    for goal in range(1 + len(epsilons)):
        order = sorted(range(len(found)), key=lambda k: -found[k][0][goal])
        wanted = _KEPT if goal == 0 else 2
        kept |= {k: found[k][1] for k in order[:wanted]}
    return list(kept.values())


def rare_events(a: OutputRows, b: OutputRows, *, promised: float) -> list[tuple[float, Event]]:
    """Return outputs that training met several times on one input and never on the other, with their rate.

    Promised odds of exp(epsilon) explain that seldom, so it is worth counting them on many new outputs.
    """
    found = []
    for swapped, (one, other) in enumerate(((a, b), (b, a))):
        score, hits = repeated_outputs(one, other)
        if hits >= _RARELY and hits > 2 * np.exp(min(promised, 50.0)):
            found.append((hits / len(one), Event(score, 0.5, above=True, swapped=bool(swapped))))
    return found


def _thresholds(in_a: ScoreArray, in_b: ScoreArray) -> ScoreArray:
    """Return candidate thresholds: quantiles of both samples, closer together near the ends."""
    tail = np.geomspace(1e-5, 0.02, _TRIED // 8)
    places = np.concatenate([tail, np.linspace(0.02, 0.98, _TRIED // 4), 1 - tail])
    return np.unique(np.concatenate([_at(in_a, places), _at(in_b, places)]))


def _at(ordered: ScoreArray, places: ScoreArray) -> ScoreArray:
    return ordered[np.minimum((places * len(ordered)).astype(np.int64), len(ordered) - 1)]


def _goals(
    one: HitCounts,
    other: HitCounts,
    sizes: tuple[int, int],
    delta: float,
    epsilons: tuple[float, ...],
    z: float,
) -> ScoreArray:
    """Estimate what each event can prove, by normal bounds, which are accurate enough for the choice."""
    p, q = one / sizes[0], other / sizes[1]
    low = p - z * np.sqrt(p * (1 - p) / sizes[0]) - z**2 / (2 * sizes[0])
    high = q + z * np.sqrt(q * (1 - q) / sizes[1]) + z**2 / (2 * sizes[1])
    rows = [np.log(np.maximum(low - delta, 1e-12) / high)]
    rows += [low - np.exp(epsilon) * high for epsilon in epsilons]
    return np.stack(rows)
