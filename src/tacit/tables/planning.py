"""Make a plan: steps, split, cost, forecast, SQL. Every input is public; nothing here can reach the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, cast

from tacit.core.plan import Forecast, Plan, Post
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational
from tacit.tables._expressions import words_of
from tacit.tables.algebra import Aggregate, Question, document
from tacit.tables.answering import Answering
from tacit.tables.asked import in_words
from tacit.tables.budgeting import MOST_SCALE, Ask, Share, calibrate
from tacit.tables.emit import statements
from tacit.tables.left_out import left_out, nearly_always, whom_of
from tacit.tables.lowering import Reading, Step, lower
from tacit.tables.readings import expected_error, rank_error
from tacit.tables.stability import Contribution, contribution

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.core.protocols import JSON, Engine, Ledger
    from tacit.core.unit import Identity

__all__ = ["Home", "Target", "make_plan"]


@dataclass(frozen=True, slots=True)
class Home:
    """Where a question is asked: the dataset's identity, its engine and its ledger.

    ``alone``: one protected table, so that every unit has a row in it; of a CSV file, whose unreadable lines
    are left out, that cannot be said.
    """

    identity: Identity
    engine: Engine
    ledger: Ledger
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """What a user gives to ``plan``: a total cost, or the error to stay within.

    ``copies``: how many datasets answer the same question, each with noise of its own, before the noisy
    integers are added.
    """

    epsilon: Number | None = None
    delta: Number = 0
    rho: Number | None = None
    within: Number | None = None
    confidence: Number = Fraction(95, 100)
    size: int | None = None
    weights: Mapping[str, Number] | None = None
    copies: int = 1


def make_plan(home: Home, question: Question, target: Target, post: Post | None = None) -> Plan:
    """Turn a question and a target into a plan."""
    unit = home.identity.unit
    who = contribution(question, row_level=unit.is_row, adjacency=home.identity.adjacency)
    replaced = home.alone and home.identity.adjacency == "replace"
    steps, readings = lower(question, unit=unit.column, replaced=replaced, summed=target.copies > 1)
    weights = _weights(steps, readings, target.weights, question)
    level = rational("confidence", target.confidence)
    if not level < 1:
        raise bad_parameter("confidence", "between 0 and 1", target.confidence, fix="confidence=0.95")
    size = None if target.size is None else count("size", target.size, zero=False)
    _insist_on_keys(question, target)
    ask = _ask(steps, readings, who, weights, target, level, size)
    shares = _calibrated(steps, who, ask, weights, target.copies)
    if any(share.scale > MOST_SCALE for share in shares):
        raise TacitError(
            "bad-parameter",
            "the noise would be larger than 2^56 grid steps",
            why="integers of 64 bits could not hold it",
            fix="a larger epsilon, smaller limits or narrower bounds",
        )
    cost = reduce(add, [s.cost for s in shares])
    emitted = statements(question, tuple(dict.fromkeys(s.statistic for s in steps)))
    return Plan(
        identity=home.identity,
        question=document(question),
        cost=cost,
        promised={k: v for k, v in (("epsilon", ask.epsilon), ("delta", ask.delta), ("rho", ask.rho)) if v},
        columns=tuple(_forecast(r, shares[r.step], level, size, question) for r in readings),
        facts=_facts(question, who, shares, readings, unit.column),
        mechanisms=tuple(_mechanism(s) for s in shares),
        sql=tuple(s.sql for s in emitted),
        confidence=float(level),
        task=Answering(question, emitted, shares, readings, home.engine),
        ledger=home.ledger,
        post=post,
        asked=in_words(question),
        left_out=left_out(question, shares, unit.column),
    )


def _insist_on_keys(question: Question, target: Target) -> None:
    """Refuse groups that are neither public nor to be selected privately, with the columns that need keys."""
    if question.by and question.keys is None and not target.delta:
        names = ", ".join(name for name, _ in question.by)
        raise TacitError(
            "keys-missing",
            f"the groups of {names} are not public, and the plan has no delta",
            why="which groups exist is private; without delta it can never be told",
            fix=f'.group_by("{question.by[0][0]}", keys=["A", "B"]) or .plan(epsilon=1, delta=1e-7)',
        )


def _weights(
    steps: tuple[Step, ...],
    readings: tuple[Reading, ...],
    given: Mapping[str, Number] | None,
    question: Question,
) -> tuple[Fraction, ...]:
    """Weigh each step as much as the heaviest aggregate that is read off it; 1 where nothing is said."""
    known = {a.name for a in question.aggregates}
    for name in given or {}:
        if name not in known:
            raise bad_parameter(
                "weights", f"weights of {', '.join(sorted(known))}", name, fix="weights={...}"
            )
    read = {name: rational(f"weights[{name!r}]", w) for name, w in (given or {}).items()}
    own = [
        max((read.get(r.aggregate, Fraction(1)) for r in readings if r.step == i), default=Fraction(1))
        for i in range(len(steps))
    ]
    return tuple(own)


def _ask(
    steps: tuple[Step, ...],
    readings: tuple[Reading, ...],
    who: Contribution,
    weights: tuple[Fraction, ...],
    target: Target,
    level: Fraction,
    size: int | None,
) -> Ask:
    given = [n for n in ("epsilon", "rho", "within") if getattr(target, n) is not None]
    if len(given) != 1:
        raise TacitError(
            "bad-parameter",
            f"a plan needs one of epsilon, rho and within, got {' and '.join(given) or 'none'}",
            why="nothing has a default epsilon",
            fix=".plan(epsilon=0.5)  # or .plan(within=5, confidence=0.95)",
        )
    delta = rational("delta", target.delta, zero=True)
    if not delta < 1:
        raise bad_parameter("delta", "below 1", target.delta, fix="delta=1e-6")
    if target.epsilon is not None:
        return Ask(rational("epsilon", target.epsilon), delta)
    if target.rho is not None:
        return Ask(None, delta, rational("rho", target.rho))
    within = float(rational("within", target.within or 0))

    def fits(epsilon: float) -> bool:
        shares = _calibrated(steps, who, Ask(Fraction(epsilon), delta), weights, target.copies)
        if any(share.scale > MOST_SCALE for share in shares):
            return False
        return all(_error(r, shares[r.step], level, size) <= within for r in readings)

    return Ask(_smallest(fits, within), delta)


def _calibrated(
    steps: tuple[Step, ...], who: Contribution, ask: Ask, weights: tuple[Fraction, ...], copies: int
) -> tuple[Share, ...]:
    return tuple(replace(share, copies=copies) for share in calibrate(steps, who, ask, weights))


def _error(reading: Reading, share: Share, level: Fraction, size: int | None) -> float:
    expected = expected_error(reading, share, level, size)
    if expected is None:
        pick = reading.function == "pick"
        raise TacitError(
            "bad-parameter",
            f"the error of {reading.column} "
            + ("is no number" if pick else "depends on how many rows there are"),
            why="a plan knows no data, so it needs a public guess, used for planning only",
            fix=".plan(epsilon=0.5)" if pick else ".plan(within=1, size=1000)",
        )
    return expected


def _smallest(fits: Callable[[float], bool], within: float) -> Fraction:
    """Find an epsilon of four digits that fits and is at most 0.2 % above the smallest; checked forward."""
    low, high = 0.5, 1.0
    while not fits(high):
        low, high = high, high * 2
        if high > 2**12:
            raise bad_parameter(
                "within", "an error that some epsilon up to 4096 reaches", within, fix="a larger error"
            )
    while low > 2.0**-30 and fits(low):
        low, high = low / 2, low
    while high / low > 1.0005:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    short = Fraction(Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(high))
    return short if fits(float(short)) else Fraction(high)


def _forecast(
    reading: Reading, share: Share, level: Fraction, size: int | None, question: Question
) -> Forecast:
    aggregate = next(a for a in question.aggregates if a.name == reading.aggregate)
    what = "" if aggregate.argument is None else words_of(aggregate.argument)
    meaning = f"{aggregate.function}({what})"
    note = ""
    if reading.function == "pick":
        note = "a candidate; no number"
    elif reading.function in {"mean", "variance", "std"}:
        note = "depends on the number of rows: give a size"
    elif reading.function in {"quantile", "level"}:
        level_text = f"level {float(reading.level):g}"
        rows = rank_error(reading, share, level)
        note = f"{level_text}, a candidate within {rows:,.0f} rows of its rank"
        if float(reading.level) in {0.01, 0.99} and aggregate.function == "quantile":
            note += "; stands for an extreme, which itself would show one person"
    error = expected_error(reading, share, level, size)
    return Forecast(
        reading.column, meaning, _law(share), error, note, _stands_for(reading, aggregate, what),
        counts=aggregate.function in {"count", "count_distinct", "histogram"},
    )  # fmt: skip


def _stands_for(reading: Reading, aggregate: Aggregate, what: str) -> str:
    """Say what a released column is where its name may say more: an extreme is told by a quantile."""
    if reading.function == "pick":
        return f"the most common value of {what}, picked among the candidates"
    if reading.function not in {"quantile", "level"}:
        return ""
    told = f"the {float(reading.level):g} quantile of {what}"
    extreme = {0.01: "smallest", 0.99: "largest"}.get(float(reading.level))
    if extreme is None or aggregate.function != "quantile":
        return told
    return f"{told}, not the {extreme} value: that would show one person"


def _unit_of(share: Share) -> Fraction:
    """Return what one integer step of a statistic is worth in the column's own units (or their squares)."""
    grid = share.step.statistic.grid
    return Fraction(1) if grid is None else grid.step ** (2 if share.step.statistic.kind == "squares" else 1)


def _law(share: Share) -> str:
    scale = _figure(share.scale * _unit_of(share))
    match share.law:
        case "gaussian":
            return f"discrete Gaussian, sigma {scale}"
        case "exponential":
            return f"exponential mechanism, scale {scale}"
        case "threshold":
            return f"discrete Laplace, scale {scale}, shown from {share.above} units"
        case _:
            return f"discrete Laplace, scale {scale}"


def _mechanism(share: Share) -> Mapping[str, JSON]:
    statistic = share.step.statistic
    return {
        "statistic": statistic.kind,
        "law": share.law,
        "scale": str(share.scale),
        "sensitivity_l1": share.l1,
        "sensitivity_l2_squared": share.l2_squared,
        "grid": None if statistic.grid is None else str(statistic.grid.step),
        "cost": cast("JSON", share.cost.to_json()),
    }


def _facts(
    question: Question,
    who: Contribution,
    shares: tuple[Share, ...],
    readings: tuple[Reading, ...],
    unit: str,
) -> tuple[tuple[str, str], ...]:
    """List what the plan prints beside its columns: all of it public."""
    facts = [
        ("neighbours", "one unit is added or removed" if who.times == 1 else "one unit's rows are replaced")
    ]
    limit = f"at most {who.total} rows of one unit count"
    if who.grouped:
        limit += f", in at most {who.groups} groups, at most {who.per_group} in each"
    facts.append(("limits", limit))
    if question.by:
        names = ", ".join(n for n, _ in question.by)
        known = _selected(shares[0], unit) if question.keys is None else f"{len(question.keys)} public"
        facts.append(("groups", f"by {names}: {known}"))
    for i, share in enumerate(shares):
        grid = share.step.statistic.grid
        columns = ", ".join(r.column for r in readings if r.step == i) or "which groups exist"
        text = f"sensitivity {_figure(share.l1 * _unit_of(share))} (L1)"
        if grid is not None:
            clipped = f"values are clipped to [{float(grid.low):g}, {float(grid.high):g}]"
            text += f"; {clipped} and rounded to whole steps of {_power(grid.step)}"
        paid = (
            f"epsilon {float(share.epsilon):.4g}"
            if share.epsilon is not None
            else f"rho {float(share.rho or 0):.4g}"
        )
        facts.append((columns, f"{paid}; {text}"))
    return tuple(facts)


def _selected(share: Share, unit: str) -> str:
    """Say how large a group must be to appear, from the public threshold on its noisy size."""
    return (
        f"selected privately; a group appears only with about {share.above:,} or more {whom_of(unit)} "
        f"(nearly always from {nearly_always(share):,})"
    )


def _figure(value: Fraction) -> str:
    return f"{round(value):,}" if value.denominator == 1 or 1000 <= value < 10**15 else f"{float(value):.4g}"


def _power(step: Fraction) -> str:
    """Write a grid's step, a power of two."""
    exponent = step.numerator.bit_length() - step.denominator.bit_length()
    return str(step) if step >= 1 else f"2^{exponent}"
