"""The partition of a table dataset into blocks: who may declare it, and which blocks a question concerns.

Guarantee: the answer to a question that concerns some blocks is a function of the rows in these blocks alone
(docs/proofs/filters.md, "Blocks"). Where this cannot be seen from the question, it concerns all of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time
from typing import TYPE_CHECKING

from tacit.algebra import Call, Column, JoinPublic, JoinUnits, PerUnit, Project, Scan, Where
from tacit.algebra import Literal as Constant
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Code, Declare, Either, Say, Set
from tacit.ledger import Blocks
from tacit.parameters import Instance
from tacit.report import with_article

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.algebra import Node, Relation, TableQuestion
    from tacit.core import Kind, Table, Unit


@dataclass(frozen=True, slots=True)
class BlockColumn:
    """The column whose value, read as its declared kind, is the block of a row."""

    name: str
    kind: Kind

    def concerned(self, question: TableQuestion) -> tuple[str, ...]:
        """Return the blocks whose rows a question reads; none stands for all of the data."""
        found = _both(self._read_from(question.input), self._grouped(question))
        return () if found is None or len(found) > Blocks.most else tuple(sorted(found))

    def _grouped(self, question: TableQuestion) -> frozenset[str] | None:
        """Rows whose key is not listed are dropped before anything else is done with them."""
        for place, (_, node) in enumerate(question.by):
            if question.keys is not None and self._is_read(question.input, node):
                return self._names(key[place] for key in question.keys)
        return None

    def _read_from(self, relation: Relation) -> frozenset[str] | None:
        """Return the blocks that the rows of a relation come from; None where nothing restricts them."""
        match relation:
            case Scan():
                return None
            case Where(inner, predicate):
                return _both(self._read_from(inner), self._pinned(inner, predicate))
            case Project(inner, _) | PerUnit(inner, _, _) | JoinPublic(inner, _, _, _, _):
                return self._read_from(inner)
            case JoinUnits(left, right, _, _):
                first, second = self._read_from(left), self._read_from(right)
                return None if first is None or second is None else first | second

    def _pinned(self, rows: Relation, predicate: Node) -> frozenset[str] | None:
        """Return the only blocks for which a condition can be true; None where it names none."""
        match predicate:
            case Call("eq", (own, Constant(value, _))) | Call("eq", (Constant(value, _), own)) if (
                self._is_read(rows, own)
            ):
                return self._names([value])
            case Call("in", (own, *values)) if self._is_read(rows, own):
                constants = [v.value for v in values if isinstance(v, Constant)]
                return self._names(constants) if len(constants) == len(values) else None
            case Call("and", parts):
                found: frozenset[str] | None = None
                for part in parts:
                    found = _both(found, self._pinned(rows, part))
                return found
            case Call("or", parts):
                each = [self._pinned(rows, part) for part in parts]
                if any(one is None for one in each):
                    return None
                return frozenset().union(*(one for one in each if one is not None))
        return None

    def _is_read(self, rows: Relation, node: Node) -> bool:
        """Whether an expression is the block column, read as its declared kind."""
        return isinstance(node, Column) and node.kind == self.kind and self._is_own(rows, node)

    def _is_own(self, rows: Relation, node: Node) -> bool:
        """Whether an expression is the block column as it stands in the declared table, nothing else."""
        if not isinstance(node, Column) or node.kind not in {None, self.kind}:
            return False
        match rows:
            case Scan(table, _):
                fact = table.facts.get(node.name)
                return node.name == self.name and fact is not None and fact.kind == self.kind
            case Where(inner, _):
                return self._is_own(inner, node)
            case Project(inner, columns) | PerUnit(inner, columns, _):
                source = dict(columns).get(node.name)
                return source is not None and self._is_own(inner, source)
            case JoinPublic(left, _, _, columns, _):
                return node.name not in dict(columns) and self._is_own(left, node)
            case _:
                return False

    def _names(self, values: object) -> frozenset[str] | None:
        """Return the blocks of some values; None if one of them has no name, such as NULL."""
        found = [block_name(value, self.kind) for value in values]  # type: ignore[attr-defined]
        return None if None in found else frozenset(name for name in found if name is not None)


def _both(first: frozenset[str] | None, second: frozenset[str] | None) -> frozenset[str] | None:
    """Return the blocks that two conditions leave; where they leave none, either list is right."""
    if first is None or second is None:
        return second if first is None else first
    return first & second or first


def block_name(value: object, kind: Kind) -> str | None:
    """Return the one name of a value of a kind, however it is written; None if there is none.

    Examples
    --------
    >>> block_name("2026-01-03 00:00", "date"), block_name("2026-01-03", "date"), block_name(7.0, "number")
    ('2026-01-03', '2026-01-03', '7')
    """
    match kind, value:
        case "boolean", bool():
            return "true" if value else "false"
        case "number", float() if value == value:
            return str(int(value)) if value.is_integer() else repr(value)
        case "date", str():
            return _moment_name(value)
        case "text", str() if 1 <= len(value) <= 200 and value.isprintable():
            return value
    return None


def _moment_name(text: str) -> str | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is not None:
        return None
    return moment.date().isoformat() if moment.time() == time() else moment.isoformat(sep=" ")


def read_block_of_dataset(blocks: Blocks | None, block: object) -> str:
    """Read the block that all of a dataset is declared to be."""
    if blocks is None:
        raise TacitError(
            "bad-parameter",
            "a dataset that is one block of a larger dataset must declare by what the data is divided",
            why="its account keeps one total for each block",
            fix=Code('blocks=tc.Blocks("day")'),
        )
    if isinstance(block, date):
        block = _moment_name(block.isoformat())
    if isinstance(block, int) and not isinstance(block, bool):
        block = str(block)
    if (
        not isinstance(block, str)
        or not 1 <= len(block) <= 200
        or not block.isprintable()
        or block.strip() != block
    ):
        raise bad_parameter(
            "block",
            "a date, a whole number or text of 1 to 200 printable characters",
            block,
            fix=Set(block="2026-01-03"),
        )
    return block


def read_partition(blocks: Blocks, block: str, unit: Unit, tables: Mapping[str, Table]) -> BlockColumn | None:
    """Read a partition by a column: only where the table itself shows that each unit is in one block."""
    given: object = blocks
    given = Instance(Blocks, 'blocks=tc.Blocks("day")').read("blocks", given)
    if block:
        return None
    name = blocks.by
    if not (unit.is_row or name in unit.columns) or blocks.per_unit != 1:
        raise _not_structural(blocks, unit)
    kinds = {
        table.facts[name].kind if name in table.facts else None
        for table in tables.values()
        if table.key is None and (table.columns is None or name in table.columns)
    }
    if not kinds:
        raise TacitError(
            "unknown-column",
            f"no protected table has the column {name!r}, by which the data would be divided into blocks",
            fix=Choose(
                tuple(sorted({c for table in tables.values() for c in table.columns or ()})), given=name
            ),
        )
    kind = next(iter(kinds))
    if kind is None or len(kinds) > 1:
        raise TacitError(
            "bad-parameter",
            f"the type of {name!r}, by which the data is divided into blocks, must be declared",
            why="'2026-01-03' and '2026-1-3' are one day if read as dates, but two blocks if read as text",
            fix=Declare("types", "date", column=name),
        )
    return BlockColumn(name, kind)


def _not_structural(blocks: Blocks, unit: Unit) -> TacitError:
    noun = unit.noun
    return TacitError(
        "not-allowed",
        f"{with_article(noun)} may be in several blocks of {blocks.by!r}"
        if blocks.per_unit == 1
        else f"if a column divides a table, each {noun} is in 1 block, not in {blocks.per_unit}",
        why="blocks are charged separately only if each unit is in one block: the unit must be a single "
        "row, or the column must be part of the unit",
        fix=Either(
            Code(f'unit=tc.Unit("{unit.column}", per="{blocks.by}")') if unit.columns else Set(blocks=None),
            Say("declare one dataset for each block, with the name of the block"),
        ),
    )
