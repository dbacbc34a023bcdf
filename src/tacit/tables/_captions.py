"""The captions of a table's plan and answer: limits, groups, grids, and what is dropped."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.mechanisms import KeySelection

if TYPE_CHECKING:
    from tacit.core import Unit
    from tacit.tables._algebra import TableQuestion
    from tacit.tables._contribution import Contribution
    from tacit.tables._dataset import TableDataset
    from tacit.tables._lowering import ReleasedColumn
    from tacit.tables._steps import PaidStep

__all__ = ["facts_of", "facts_of_blocks", "left_out"]


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


def facts_of_blocks(dataset: TableDataset, blocks: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Say which blocks of the data the plan is charged to, where the dataset has blocks."""
    if dataset.identity.block:
        return (("charged to", f"block {dataset.identity.block} alone"),)
    if dataset.block_column is None:
        return ()
    by = dataset.block_column.name
    if not blocks:
        return (("charged to", f"all of the data, because the question is not limited to values of {by}"),)
    few = (
        ", ".join(blocks) if len(blocks) <= 5 else f"{len(blocks):,} values, from {blocks[0]} to {blocks[-1]}"
    )
    return (("charged to", f"{by} {few} alone"),)


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
    grid = statistic.values_grid
    if grid is not None:
        clipped = f"values are clipped to [{float(grid.low):g}, {float(grid.high):g}]"
        text += f"; {clipped} and rounded to whole steps of {_power(grid.step)}"
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


def _power(step: Fraction) -> str:
    """Write a grid's step, a power of two."""
    exponent = step.numerator.bit_length() - step.denominator.bit_length()
    return str(step) if step >= 1 else f"2^{exponent}"
