"""A table's plan in words: what is asked, limits, groups, grids, and what is dropped. All of it is public."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.mechanisms import KeySelection
from tacit.tables._algebra import JoinPublic, JoinUnits, PerUnit, Project, Scan, Where
from tacit.tables._expressions import Column, words_of
from tacit.tables._products import ProductSums
from tacit.tables._sampling import share_of_sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tacit.core import Unit
    from tacit.tables._aggregates import Aggregate
    from tacit.tables._algebra import Measure, Relation, TableQuestion
    from tacit.tables._contribution import Contribution
    from tacit.tables._dataset import TableDataset
    from tacit.tables._lowering import ReleasedColumn
    from tacit.tables._statistics import ValueGrid
    from tacit.tables._steps import PaidStep

__all__ = ["facts_of", "facts_of_blocks", "in_words", "left_out"]

_LONGEST = 400


def in_words(question: TableQuestion, *, shape: bool = False) -> str:
    """Write columns, groups and filter in a line: ``n = count, by ward, where age >= 65, of visits``.

    The ``shape`` of the question says what is computed of which declared columns, but leaves out what the
    person who asked wrote: ``?`` stands for each constant, the names of released columns are dropped, and
    columns that the question makes are numbered: ``count, by ward, where age >= ?, of visits``.
    """
    made = dict.fromkeys(_made(question.input)) if shape else {}
    writer = _QuestionWords({name: f"column {i}" for i, name in enumerate(made, 1)} if shape else None)
    said = [writer.released(name, writer.aggregate(a)) for name, a in question.aggregates]
    if question.by:
        groups = [writer.released(name, words_of(node, writer.hidden)) for name, node in question.by]
        said.append("by " + " and ".join(groups))
    said += writer.origin(question.input)
    text = ", ".join(said).encode("utf-8", "replace").decode()  # a name may hold what no text file can
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _made(node: Relation) -> Iterator[str]:
    """Return the names of columns that a question makes, which are not declared with the dataset."""
    match node:
        case Scan():
            return
        case Project(_, columns):
            yield from (name for name, made in columns if made != Column(name, getattr(made, "kind", None)))
        case JoinPublic(_, table, _, columns, _):
            yield from (name for name, source in columns if name not in {source, f"{table.name}.{source}"})
        case PerUnit(_, by, measures):
            yield from (name for name, _ in by)
            yield from (measure.name for measure in measures)
        case JoinUnits(_, right, _, _):
            yield from _made(right)
    yield from _made(node.left if isinstance(node, JoinPublic | JoinUnits) else node.input)


@dataclass(frozen=True, slots=True)
class _QuestionWords:
    """Writes a question in its own words, or its shape, in which the ``hidden`` columns have other names."""

    hidden: Mapping[str, str] | None

    def released(self, name: str, meaning: str) -> str:
        """Write a column of the answer; its name is not part of the shape."""
        return meaning if self.hidden is not None or name == meaning else f"{name} = {meaning}"

    def _made(self, name: str, meaning: str) -> str:
        """Write a column that the question makes."""
        name = name if self.hidden is None else self.hidden.get(name, name)
        return meaning if name == meaning else f"{name} = {meaning}"

    def aggregate(self, aggregate: Aggregate) -> str:
        """Write an aggregate with its argument."""
        if not aggregate.arguments:
            return aggregate.word
        levels = aggregate.levels if aggregate.word in {"quantile", "quantiles"} else ()  # type: ignore[attr-defined]
        shown = (f"{float(q):g}" if self.hidden is None else "?" for q in levels)
        read = [words_of(one, self.hidden) for one in aggregate.arguments[:2]]
        more = ["..."] if len(aggregate.arguments) > 2 else []
        return f"{aggregate.word}({', '.join([*read, *more, *shown])})"

    def _measure(self, measure: Measure) -> str:
        argument = measure.argument
        return measure.function + ("" if argument is None else f"({words_of(argument, self.hidden)})")

    def origin(self, node: Relation) -> list[str]:
        """Say where the rows come from, the last step first."""
        match node:
            case Scan(table, _):
                return [f"of {table.name}"]
            case Where(inner, predicate):
                return [f"where {words_of(predicate, self.hidden)}", *self.origin(inner)]
            case Project(inner, columns):
                made = [
                    self._made(name, words_of(e, self.hidden))
                    for name, e in columns
                    if not isinstance(e, Column)
                ]
                return [*([f"with {' and '.join(made)}"] if made else []), *self.origin(inner)]
            case JoinPublic(left, table, _, _, _):
                return [*self.origin(left), f"joined with {table.name}"]
            case JoinUnits(left, right, _, _):
                return [*self.origin(left), "joined with", *self.origin(right)]
            case PerUnit(inner, by, measures):
                each = " and ".join(self._made(name, words_of(e, self.hidden)) for name, e in by) or "unit"
                numbers = " and ".join(self._made(m.name, self._measure(m)) for m in measures)
                return [f"of {numbers or 'one row'} for each {each}", *self.origin(inner)]


def left_out(question: TableQuestion, paid: tuple[PaidStep, ...], unit: Unit) -> tuple[str, ...]:
    """Say which rows are not counted and which groups are not shown; a function of public facts."""
    names = " or ".join(name for name, _ in question.by)
    rows = [f"rows without a {' or '.join(unit.columns)}"] if unit.columns else []
    if question.by and question.keys is not None:
        rows.append(f"rows whose {names} is not among the keys")
    said = [f"{' and '.join(rows)}, if any, are not counted"] if rows else []
    if question.sample is not None:
        share = float(share_of_sample(question.sample))
        said.append(
            f"this is a sample of {share * 100:.6g} % of the {unit.noun}s, drawn in secret; divide counts "
            f"and sums by {share:.6g} to estimate all; intervals do not cover the chance in who was drawn"
        )
    if question.levels:
        said.append(f"a line whose {names} is empty is a total, the sum of the lines that it is made of")
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
    if question.sample is not None:
        share = share_of_sample(question.sample)
        facts.append(
            ("sample", f"each {owner} is kept with probability {float(share):.10g} ({share}), in secret")
        )
    if question.by:
        names = ", ".join(n for n, _ in question.by)
        selection = paid[0].mechanism
        sizes = f"; {_sizes(selection, unit)}" if isinstance(selection, KeySelection) else ""
        known = f"selected privately{sizes}" if question.keys is None else f"{len(question.keys)} public"
        facts.append(("groups", f"by {names}: {known}"))
        if question.levels:
            facts.append(
                ("totals", "sums of the finest groups, free; the noise of k groups adds up to sqrt(k)")
            )
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
    grid = statistic.grid
    if grid is not None:
        other = statistic.other_grid if isinstance(statistic, ProductSums) else None
        grids = (grid,) if other is None else (grid, other)
        ranges = " and ".join(f"[{float(one.low):g}, {float(one.high):g}]" for one in grids)
        clipped = f"values are clipped to {ranges}"
        text += f"; {clipped} and rounded to whole steps of {' and '.join(map(_step, grids))}"
    share = (
        f"epsilon {float(paid.epsilon):.4g}"
        if paid.epsilon is not None
        else f"rho {float(paid.rho or 0):.4g}"
    )
    if isinstance(paid.mechanism, KeySelection):
        share += f", delta {float(paid.mechanism.delta):g}"
    return f"{share}; {text}"


def _step(grid: ValueGrid) -> str:
    """Write the step of a grid, which is a power of two."""
    exponent = grid.step.numerator.bit_length() - grid.step.denominator.bit_length()
    return str(grid.step) if grid.step >= 1 else f"2^{exponent}"


def _figure(value: Fraction) -> str:
    return f"{round(value):,}" if value.denominator == 1 or 1000 <= value < 10**15 else f"{float(value):.4g}"
