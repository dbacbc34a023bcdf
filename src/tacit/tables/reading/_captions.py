"""What a plan and its release say beside their numbers: limits, groups, grids, and what is dropped.

A question is written in words, as its author wrote it or as its shape. All of it is public.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

from tacit.algebra import (
    Column,
    FoundGrid,
    JoinPublic,
    JoinUnits,
    PerUnit,
    ProductSums,
    Project,
    Scan,
    Scope,
    Where,
    can_be_missing,
    joins_of,
    keys_of,
    rows_per_unit,
    scans_of,
    scope,
    words_of,
)
from tacit.core import RARE_CUT
from tacit.mechanisms import KeySelection
from tacit.report import with_article
from tacit.tables.planning._bounds_search import searches_of
from tacit.tables.planning._steps import share_of_sample
from tacit.tables.questions._limit_advice import cut_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tacit.algebra import Contribution, Measure, Node, Relation, TableQuestion, ValueGrid
    from tacit.core import Table, Unit
    from tacit.tables._dataset import TableDataset
    from tacit.tables.planning._bounds_search import BoundsSearch
    from tacit.tables.planning._pricing import ReleasedColumn
    from tacit.tables.planning._steps import PaidStep
    from tacit.tables.questions._aggregates import Aggregate


_LONGEST = 400
_SUMMED = "sums of the smallest groups, free; a sum of k groups has about sqrt(k) times the noise"
_TOGETHER = (
    "planned together with the groups, so that the widest of all lines is as narrow as it can be; groups and "
    "totals agree"
)


def in_words(question: TableQuestion, *, shape: bool = False) -> str:
    """Write columns, groups and filter in a line: ``n = count, by ward, where age >= 65, of visits``.

    The ``shape`` of the question says what is computed of which declared columns, but leaves out what the
    person who asked wrote: ``?`` stands for each constant, the names of released columns are dropped, and
    columns that the question makes are numbered: ``count, by ward, where age >= ?, of visits``.
    """
    writer = _QuestionWords(_numbered(question.input) if shape else None)
    parts = [writer.released(name, writer.aggregate(a)) for name, a in question.aggregates]
    if question.by:
        groups = [writer.released(name, words_of(node, writer.hidden)) for name, node in question.by]
        parts.append("by " + " and ".join(groups))
    if question.levels:
        parts.append("with totals")
    parts += writer.origin(question.input)
    if question.sample is not None:
        parts.append(sample_in_words(None if shape else question.sample))
    return _short(parts)


def counted_in_words(
    template: str, columns: Sequence[str], relation: Relation, *, shape: bool = False
) -> str:
    """Write a question that counts rows by these columns, whose names replace ``{}`` in the template."""
    hidden = _numbered(relation) if shape else None
    names = [(hidden or {}).get(name, name) for name in columns]
    return _short([template.format(*names), *_QuestionWords(hidden).origin(relation)])


def _short(parts: Sequence[str]) -> str:
    text = ", ".join(parts).encode("utf-8", "replace").decode()  # a name may hold what no text file can
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _numbered(relation: Relation) -> dict[str, str]:
    """Return numbers for the columns that a question makes."""
    return {name: f"column {i}" for i, name in enumerate(dict.fromkeys(_made(relation)), 1)}


def rows_in_words(relation: Relation) -> str:
    """Say where rows come from: ``where age >= 65, of visits``."""
    return ", ".join(_QuestionWords(None).origin(relation))


def sample_in_words(share: int | None) -> str:
    """Say which part of the units a question reads; without a share, in the words of a shape."""
    part = "?" if share is None else f"{float(share_of_sample(share)) * 100:.6g}"
    return f"in a secret random sample of {part} % of the units"


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
        levels_in_words = (f"{float(q):g}" if self.hidden is None else "?" for q in levels)
        argument_words = [words_of(one, self.hidden) for one in aggregate.arguments[:2]]
        more = ["..."] if len(aggregate.arguments) > 2 else []
        return f"{aggregate.word}({', '.join([*argument_words, *more, *levels_in_words])})"

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
                computed = [
                    self._made(name, words_of(e, self.hidden))
                    for name, e in columns
                    if not isinstance(e, Column)
                ]
                return [*([f"with {' and '.join(computed)}"] if computed else []), *self.origin(inner)]
            case JoinPublic(left, table, _, _, _):
                return [*self.origin(left), f"joined with {table.name}"]
            case JoinUnits(left, right, _, _):
                return [*self.origin(left), "joined with", *self.origin(right)]
            case PerUnit(inner, by, measures):
                each = " and ".join(self._made(name, words_of(e, self.hidden)) for name, e in by) or "unit"
                numbers = " and ".join(self._made(m.name, self._measure(m)) for m in measures)
                return [f"of {numbers or 'one row'} for each {each}", *self.origin(inner)]


def without_unit(unit: Unit) -> list[str]:
    """Say that rows without a unit do not count, where they can be."""
    if not unit.columns:
        return []
    return [f"rows without {with_article(' or '.join(unit.columns))}"]


def left_out(
    question: TableQuestion,
    contributed: Contribution,
    paid_steps: tuple[PaidStep, ...],
    dataset: TableDataset,
) -> tuple[str, ...]:
    """Say which rows are not counted and which groups are not shown; a function of public facts."""
    unit = dataset.identity.unit
    rows, facts = without_unit(unit), scope(question.input)
    if where := _without_group(question, facts):
        rows.append(f"rows whose {where}")
    sentences = [f"{' and '.join(rows)}, if any, are not counted"] if rows else []
    sentences += _clipped_counts(question, facts, dataset)
    sentences += cut_lines(question, dataset)
    sentences += rows_beyond(question, contributed, dataset)
    if question.sample is not None:
        share = float(share_of_sample(question.sample))
        sentences.append(
            f"this is a secret random sample of {share * 100:.6g} % of the {unit.noun}s; divide counts and "
            f"sums by {share:.6g} to estimate all {unit.noun}s; intervals do not cover the sampling error"
        )
    if question.levels:
        names = " or ".join(name for name, _ in question.by)
        sentences.append(
            f"(all) marks a total over {names}; it adds up the noisy numbers of its groups; in data frames, "
            "the key of a total is empty"
        )
    selection = paid_steps[0].mechanism
    if isinstance(selection, KeySelection):
        sentences.append(_sizes(selection, unit))
    return tuple(sentences)


def rows_beyond(question: TableQuestion, contributed: Contribution, dataset: TableDataset) -> list[str]:
    """Say that a limit drops rows, where one can."""
    if not _can_cut(question, contributed, dataset.identity.unit):
        return []
    return [f"{_limits(question, contributed, dataset)}; rows beyond this are not counted"]


def _clipped_counts(question: TableQuestion, facts: Scope, dataset: TableDataset) -> list[str]:
    """Say which counts within a unit are clipped at the limit on rows, because the question has no bound."""
    sentences = []
    for _, aggregate in question.aggregates:
        column = aggregate.argument
        bounds = facts[column.name].bounds if isinstance(column, Column) else None
        if not isinstance(column, Column) or bounds is None or not facts[column.name].default:
            continue
        if getattr(aggregate, "bounds", None) == bounds:
            cap = f"{float(bounds[1]):g}"
            chosen = dataset.limits.rows != bounds[1] or not dataset.limits.is_default
            default = "" if chosen else " (default)"
            sentences.append(f"{column.name} above {cap}{default}, the limit on rows, counts as {cap}")
    return list(dict.fromkeys(sentences))


def _without_group(question: TableQuestion, facts: Scope) -> str:
    """Say which values of a group's columns keep a row out of all groups; empty where none does."""
    names = " or ".join(name for name, _ in question.by)
    absent = [name for name, node in question.by if can_be_missing(node, facts)]
    if question.keys is not None and question.by and not _has_all_keys(question):
        has_group = absent and not question.groups_missing
        return f"{names} is missing or not among the keys" if has_group else f"{names} is not among the keys"
    return f"{' or '.join(absent)} is missing" if absent and not question.groups_missing else ""


def _has_all_keys(question: TableQuestion) -> bool:
    """Return whether groups have no keys but those of their form: each branch of a CASE, each weekday."""
    key_lists = [keys_of(node, Scope({}, open=True)) for _, node in question.by]
    return None not in key_lists and set(product(*(keys or () for keys in key_lists))) <= set(
        question.keys or ()
    )


def _can_cut(question: TableQuestion, contributed: Contribution, unit: Unit) -> bool:
    """Return whether a limit can drop rows: of tables, of joins, of groups or within them."""
    if unit.is_row:
        return False
    of_groups = contributed.grouped and question.groups is not None
    cut = rows_per_unit(question.input) != 1 and (of_groups or question.per_group is not None)
    return cut or _limits_rows(question.input)


def _limits_rows(node: Relation) -> bool:
    """Return whether a limit on the rows of tables or joins applies below."""
    match node:
        case Scan(_, rows):
            return rows is not None
        case JoinUnits(left, right, _, rows):
            return rows is not None or _limits_rows(left) or _limits_rows(right)
        case JoinPublic(left, _, _, _, _):
            return _limits_rows(left)
        case Where(inner, _) | Project(inner, _) | PerUnit(inner, _, _):
            return _limits_rows(inner)


def limits_below_units(node: Relation) -> bool:
    """Return whether numbers within a unit are made from limited rows."""
    match node:
        case PerUnit():
            return _limits_rows(node)
        case JoinUnits(left, right, _, _):
            return limits_below_units(left) or limits_below_units(right)
        case JoinPublic(left, _, _, _, _):
            return limits_below_units(left)
        case Where(inner, _) | Project(inner, _):
            return limits_below_units(inner)
        case Scan():
            return False


def _sizes(selection: KeySelection, unit: Unit) -> str:
    """Say how large a group must be to appear, from the public threshold on its noisy size."""
    return (
        f"groups with fewer than about {selection.threshold:,} {_whom(unit)} are usually hidden; "
        f"groups with {selection.nearly_always:,} or more are nearly always shown"
    )


def selected_sizes(selection: KeySelection, unit: Unit) -> str:
    """Say of the numbers that selected the groups for which groups they are too large."""
    return (
        f"these numbers selected the groups: a group with fewer than about {selection.nearly_always:,} "
        f"{_whom(unit)} is more likely to be shown if noise makes it larger, so its number is too large on "
        "average, and its interval misses more often"
    )


def _whom(unit: Unit) -> str:
    """Name what the size of a group counts."""
    return f"pairs of {unit.noun}" if unit.per else f"{unit.noun}s"


def facts_of(
    question: TableQuestion,
    contributed: Contribution,
    paid_steps: tuple[PaidStep, ...],
    columns: tuple[ReleasedColumn, ...],
    dataset: TableDataset,
    *,
    joint: bool = False,
) -> tuple[tuple[str, str], ...]:
    """List what the plan prints beside its columns, all of it public; ``joint``: levels are one plan."""
    unit = dataset.identity.unit
    owner = unit.noun
    facts = limits_of(question, contributed, dataset)
    if question.sample is not None:
        share = share_of_sample(question.sample)
        facts.append(
            (
                "sample",
                f"a secret random choice keeps each {owner} with probability {float(share):.10g} ({share})",
            )
        )
    if question.by:
        names = ", ".join(n for n, _ in question.by)
        selection = paid_steps[0].mechanism
        sizes = f"; {_sizes(selection, unit)}" if isinstance(selection, KeySelection) else ""
        keys = question.keys
        public = "" if keys is None else f"{len(keys):,} public {'group' if len(keys) == 1 else 'groups'}"
        groups_in_words = public or f"selected privately{sizes}"
        facts.append(("groups", f"by {names}: {groups_in_words}"))
        if question.levels:
            facts.append(("totals", _TOGETHER if joint else _SUMMED))
    searches = searches_of(question, [one.step for one in paid_steps], [one.mechanism for one in paid_steps])
    for i, step in enumerate(paid_steps):
        outputs = ", ".join(c.name for c in columns if c.step == i) or _unread(step)
        if i in {place for one in searches.values() for place in (one.octaves, one.parts)}:
            outputs = f"bounds of {words_of(step.step.statistic.argument)}"  # type: ignore[arg-type]
        facts.append((outputs, _share(step, contributed)))
    return (*facts, *(("bounds", text) for text in searches_in_words(searches)))


def searches_in_words(searches: Mapping[Node, BoundsSearch]) -> list[str]:
    """Say what the search for bounds takes, and how many rows it needs."""
    if not searches:
        return []
    narrowed = any(one.parts is not None for one in searches.values())
    share = "a quarter" if narrowed else "a fifth"
    names = " and ".join(words_of(node) for node in searches)
    rows = max(one.rows for one in searches.values())
    several = next(iter(searches.values())).groups > 1
    pooled = any(one.pooled for one in searches.values())
    shared = (
        "; all groups share one range"
        if pooled
        else "; a group with fewer rows takes the range of all groups together"
        if several
        else "; with fewer there may be no range, and the cost stays"
    )
    each = " in a group" if several and not pooled else ""
    needed = f"it needs about {rows:,} rows{each}"
    rare = [words_of(node) for node, one in searches.items() if "rare" in one.cuts]
    return [
        f"{share} of the cost finds the bounds of {names} privately; {needed}{shared}",
        *(
            [f"outer ends of {' and '.join(rare)} that are not narrowed are multiplied by 4; {RARE_CUT}"]
            if rare
            else []
        ),
    ]


def _unread(step: PaidStep) -> str:
    """Name what a step is for that no column is read off."""
    is_selection = isinstance(step.mechanism, KeySelection)
    return "which groups exist" if is_selection else "people of each group, for the minimum"


def limits_of(
    question: TableQuestion, contributed: Contribution, dataset: TableDataset
) -> list[tuple[str, str]]:
    """Say what a neighbour is, how much of one unit counts, and what a limit on joined rows would help."""
    owner = dataset.identity.unit.noun
    change = (
        f"one {owner} is added or removed"
        if contributed.times == 1
        else f"the data of one {owner} is replaced"
    )
    facts = [("neighbours", change), ("limits", _limits(question, contributed, dataset))]
    return facts + _joins_in_words(question, contributed, owner)


def _joins_in_words(question: TableQuestion, contributed: Contribution, owner: str) -> list[tuple[str, str]]:
    """Say how much less noise a limit on joined rows would mean, where the limits of two tables multiply."""
    for join in joins_of(question.input):
        if not isinstance(join, JoinUnits) or join.rows is not None:
            continue
        left_rows, right_rows = rows_per_unit(join.left), rows_per_unit(join.right)
        if not left_rows or not right_rows or contributed.total <= (max_rows := max(left_rows, right_rows)):
            continue
        times = contributed.total // max_rows
        text = (
            f"a {owner} can have {left_rows:,} x {right_rows:,} rows after the join; with the limit "
            f"joined={max_rows} the noise of counts and sums would be {times:,} times smaller, and rows "
            "beyond it would be dropped"
        )
        return [("join", text)]
    return []


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


def _limits(question: TableQuestion, contributed: Contribution, dataset: TableDataset) -> str:
    """Say how much of one unit counts; a limit on rows that nobody chose is marked as the default."""
    owner, rows_read = dataset.identity.unit.noun, _read_rows(question.input, dataset)
    marked = {rows: default for _, rows, default in rows_read}
    verb = "counts" if contributed.total == 1 else "count"
    text = f"at most {_rows(contributed.total)} of each {owner} {verb}" + marked.get(contributed.total, "")
    if contributed.grouped and contributed.total > 1:  # one row is in one group
        groups = "1 group" if contributed.groups == 1 else f"{contributed.groups:,} groups"
        text += f", in {groups}" if contributed.groups == 1 else f", in at most {groups}"
        if contributed.groups > 1 and contributed.per_group != contributed.total:
            text += f", with at most {_rows(contributed.per_group)} in each"
    some = any(marked.values()) or len(marked) > 1 or limits_below_units(question.input)
    if rows_read and some and set(marked) != {contributed.total}:
        text += f"; Tacit reads at most {_rows_of_tables(rows_read, owner)}"
    return text


def limits_in_words(contributed: Contribution, dataset: TableDataset) -> str:
    """Say how many rows of one unit count."""
    verb = "counts" if contributed.total == 1 else "count"
    return f"at most {_rows(contributed.total)} of each {dataset.identity.unit.noun} {verb}"


def _read_rows(node: Relation, dataset: TableDataset) -> list[tuple[str, int, str]]:
    """List the tables that are read under a row limit: name, limit, and a mark where nobody chose it."""
    limits = dataset.limits

    def mark(table: Table, rows: int) -> str:
        if table.unique and rows == 1:
            return f" ({' and '.join(table.unique)} is unique in {table.name})"
        return " (default)" if limits.is_default_of(table.name) and rows == limits.rows else ""

    scans = [(scan.table, scan.rows) for scan in scans_of(node) if scan.rows is not None]
    return list(dict.fromkeys((table.name, rows, mark(table, rows)) for table, rows in scans))


def _rows_of_tables(rows_read: list[tuple[str, int, str]], owner: str) -> str:
    """Say how many of a unit's rows are read: in each table the same, or table by table."""
    if len({rows for _, rows, _ in rows_read}) == 1:
        _, rows, default = rows_read[0]
        return f"{rows:,}{default} of a {owner}'s rows in each table"
    (first_table, max_rows, default), *more = rows_read
    others = "".join(f", {rows:,}{mark} in {table}" for table, rows, mark in more)
    return f"{max_rows:,}{default} of a {owner}'s rows in {first_table}{others}"


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def _share(paid_step: PaidStep, contributed: Contribution) -> str:
    """Say what a step costs, how much one unit can change, and on which grid."""
    statistic = paid_step.step.statistic
    l1, _ = statistic.sensitivity(contributed)
    sensitivity = getattr(paid_step.mechanism, "sensitivity", l1)
    steps = Fraction(l1 if paid_step.mechanism.additive else sensitivity)
    text = f"sensitivity {_figure(steps * statistic.step)} (L1)"
    grid = statistic.grid
    if isinstance(grid, FoundGrid):
        text = f"sensitivity {_figure(steps * statistic.step)} (L1), as a share of the range that is found"
        text += f"; values are clipped to this range and rounded to 2^-{grid.bits} of it"
    elif grid is not None:
        other = statistic.other_grid if isinstance(statistic, ProductSums) else None
        grids = (grid,) if other is None else (grid, other)
        ranges = " and ".join(f"[{float(one.low):g}, {float(one.high):g}]" for one in grids)
        clipped = f"values are clipped to {ranges}"
        text += f"; {clipped} and rounded to whole steps of {' and '.join(map(_step, grids))}"
    share = (
        f"epsilon {float(paid_step.epsilon):.4g}"
        if paid_step.epsilon is not None
        else f"rho {float(paid_step.rho or 0):.4g}"
    )
    if isinstance(paid_step.mechanism, KeySelection):
        share += f", delta {float(paid_step.mechanism.delta):g}"
    return f"{share}; {text}"


def _step(grid: ValueGrid) -> str:
    """Write the step of a grid, which is a power of two."""
    exponent = grid.step.numerator.bit_length() - grid.step.denominator.bit_length()
    return str(grid.step) if grid.step >= 1 else f"2^{exponent}"


def _figure(value: Fraction) -> str:
    return f"{round(value):,}" if value.denominator == 1 or 1000 <= value < 10**15 else f"{float(value):.4g}"
