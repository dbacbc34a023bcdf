"""A table's plan in words: what is asked, limits, groups, grids, and what is dropped. All of it is public."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.mechanisms import KeySelection
from tacit.tables._algebra import JoinPublic, JoinUnits, PerUnit, Project, Scan, Where
from tacit.tables._expressions import Column, words_of

if TYPE_CHECKING:
    from tacit.core import Unit
    from tacit.tables._aggregates import Aggregate
    from tacit.tables._algebra import Measure, Relation, TableQuestion
    from tacit.tables._contribution import Contribution
    from tacit.tables._lowering import ReleasedColumn
    from tacit.tables._steps import PaidStep

__all__ = ["facts_of", "in_words", "left_out"]

_LONGEST = 400


def in_words(question: TableQuestion) -> str:
    """Write columns, groups and filter in a line: ``n = count, by ward, where age >= 65, of visits``."""
    said = [_named(name, _aggregate(a)) for name, a in question.aggregates]
    if question.by:
        said.append("by " + " and ".join(_named(name, words_of(node)) for name, node in question.by))
    said += _origin(question.input)
    text = ", ".join(said).encode("utf-8", "replace").decode()  # a name may hold what no text file can
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _named(name: str, meaning: str) -> str:
    return meaning if name == meaning else f"{name} = {meaning}"


def _aggregate(aggregate: Aggregate) -> str:
    if aggregate.argument is None:
        return aggregate.word
    levels = aggregate.levels if aggregate.word in {"quantile", "quantiles"} else ()  # type: ignore[attr-defined]
    return (
        f"{aggregate.word}({', '.join([words_of(aggregate.argument), *(f'{float(q):g}' for q in levels)])})"
    )


def _measure(measure: Measure) -> str:
    return measure.function + ("" if measure.argument is None else f"({words_of(measure.argument)})")


def _origin(node: Relation) -> list[str]:
    """Say where the rows come from, the last step first."""
    match node:
        case Scan(table, _):
            return [f"of {table.name}"]
        case Where(inner, predicate):
            return [f"where {words_of(predicate)}", *_origin(inner)]
        case Project(inner, columns):
            made = [_named(name, words_of(e)) for name, e in columns if not isinstance(e, Column)]
            return [*([f"with {' and '.join(made)}"] if made else []), *_origin(inner)]
        case JoinPublic(left, table, _, _, _):
            return [*_origin(left), f"joined with {table.name}"]
        case JoinUnits(left, right, _, _):
            return [*_origin(left), "joined with", *_origin(right)]
        case PerUnit(inner, by, measures):
            each = " and ".join(_named(name, words_of(e)) for name, e in by) or "unit"
            numbers = " and ".join(_named(m.name, _measure(m)) for m in measures)
            return [f"of {numbers or 'one row'} for each {each}", *_origin(inner)]


def left_out(question: TableQuestion, paid: tuple[PaidStep, ...], unit: Unit) -> tuple[str, ...]:
    """Say which rows are not counted and which groups are not shown; a function of public facts."""
    names = " or ".join(name for name, _ in question.by)
    rows = [f"rows without a {' or '.join(unit.columns)}"] if unit.columns else []
    if question.by and question.keys is not None:
        rows.append(f"rows whose {names} is not among the keys")
    said = [f"{' and '.join(rows)}, if any, are not counted"] if rows else []
    selection = paid[0].mechanism
    if question.private_keys and isinstance(selection, KeySelection):
        said.append(_sizes(selection, unit))
    return tuple(said)


def _sizes(selection: KeySelection, unit: Unit) -> str:
    """Say how large a group must be to appear, from the public threshold on its noisy size."""
    return (
        f"groups with fewer than about {selection.threshold:,} {_whom(unit)} are usually hidden; "
        f"groups with {selection.nearly_always:,} or more are nearly always shown"
    )


def _whom(unit: Unit) -> str:
    """Name what the size of a group counts."""
    return f"pairs of {unit.noun}" if unit.per else f"{unit.noun}s"


def facts_of(
    question: TableQuestion,
    who: Contribution,
    paid: tuple[PaidStep, ...],
    columns: tuple[ReleasedColumn, ...],
    unit: Unit,
) -> tuple[tuple[str, str], ...]:
    """List what the plan prints beside its columns: all of it public."""
    owner = unit.noun
    change = f"one {owner} is added or removed" if who.times == 1 else f"the data of one {owner} is replaced"
    facts = [("neighbours", change), ("limits", _limits(who, owner))]
    if question.by:
        names = ", ".join(n for n, _ in question.by)
        selection = paid[0].mechanism
        sizes = f"; {_sizes(selection, unit)}" if isinstance(selection, KeySelection) else ""
        known = f"selected privately{sizes}" if question.keys is None else f"{len(question.keys)} public"
        facts.append(("groups", f"by {names}: {known}"))
    for i, one in enumerate(paid):
        named = ", ".join(c.name for c in columns if c.step == i) or "which groups exist"
        facts.append((named, _share(one, who)))
    return tuple(facts)


def _limits(who: Contribution, owner: str) -> str:
    text = f"each {owner} counts with at most {_rows(who.total)}"
    if not who.grouped:
        return text
    groups = "1 group" if who.groups == 1 else f"{who.groups:,} groups"
    text += f", in {groups}" if who.groups == 1 else f", in at most {groups}"
    return (
        text
        if who.groups == 1 or who.per_group == who.total
        else (f"{text}, with at most {_rows(who.per_group)} in each")
    )


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def _share(paid: PaidStep, who: Contribution) -> str:
    """Say what a step costs, how much one unit can change, and on which grid."""
    statistic = paid.step.statistic
    l1, _ = statistic.sensitivity(who)
    moved = getattr(paid.mechanism, "sensitivity", l1)
    text = (
        f"sensitivity {_figure(Fraction(moved if not paid.mechanism.additive else l1) * statistic.step)} (L1)"
    )
    grid = statistic.grid
    if grid is not None:
        clipped = f"values are clipped to [{float(grid.low):g}, {float(grid.high):g}]"
        exponent = grid.step.numerator.bit_length() - grid.step.denominator.bit_length()
        step = str(grid.step) if grid.step >= 1 else f"2^{exponent}"  # a power of two
        text += f"; {clipped} and rounded to whole steps of {step}"
    share = (
        f"epsilon {float(paid.epsilon):.4g}"
        if paid.epsilon is not None
        else f"rho {float(paid.rho or 0):.4g}"
    )
    if isinstance(paid.mechanism, KeySelection):
        share += f", delta {float(paid.mechanism.delta):g}"
    return f"{share}; {text}"


def _figure(value: Fraction) -> str:
    return f"{round(value):,}" if value.denominator == 1 or 1000 <= value < 10**15 else f"{float(value):.4g}"
