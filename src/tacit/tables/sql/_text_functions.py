"""Functions of text in a table's SQL question, read into Tacit's own nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.algebra import Call, Literal, Node, lit
from tacit.tables.sql._allowed import only, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.tables.sql._names import PartReader


def _like(node: exp.Expr, read: PartReader) -> Node:
    """Read LIKE, ILIKE, NOT LIKE and NOT ILIKE."""
    only(node, "this", "expression", "negate")
    value, pattern = read(node.this), read(node.expression)
    if isinstance(node, exp.ILike):
        if not isinstance(pattern, Literal):
            raise refuse(node, "ILIKE takes a constant pattern", "ILIKE 'prefix%'")
        value, pattern = Call("lower", (value,)), lit(str(pattern.value).lower())
    found = Call("like", (value, pattern))
    return Call("not", (found,)) if node.args.get("negate") else found


def _concat(node: exp.Expr, read: PartReader) -> Node:
    """Read CONCAT, in which a missing value is empty text, and values of other kinds are written as text."""
    only(node, "expressions", "coalesce")
    parts = [read(e) for e in node.expressions]
    return Call("concat", tuple(_as_text(part) for part in parts))


def _as_text(node: Node) -> Node:
    if isinstance(node, Literal) and node.kind == "text":
        return node
    return Call("coalesce", (Call("to_text", (node,)), lit("")))


def _trim(node: exp.Expr, read: PartReader) -> Node:
    only(node, "this", "position")
    side = str(node.args.get("position") or "").upper()
    op = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "trim")
    return Call(op, (read(node.this),))


def _replace(node: exp.Expr, read: PartReader) -> Node:
    only(node, "this", "expression", "replacement")
    parts = (node.this, node.expression, node.args.get("replacement") or exp.Literal.string(""))
    return Call("replace", tuple(read(part) for part in parts))


def _position(node: exp.Expr, read: PartReader) -> Node:
    only(node, "this", "substr")
    return Call("position", (read(node.this), read(node.args["substr"])))


def _split_part(node: exp.Expr, read: PartReader) -> Node:
    only(node, "this", "delimiter", "part_index")
    parts = (node.this, node.args["delimiter"], node.args["part_index"])
    return Call("split_part", tuple(read(part) for part in parts))


def _substring(node: exp.Expr, read: PartReader) -> Node:
    only(node, "this", "start", "length")
    start, length = node.args.get("start"), node.args.get("length")
    return Call(
        "substring",
        (
            read(node.this),
            read(start) if start else lit(1),
            read(length) if length else lit(10**6),
        ),
    )


def _left(node: exp.Expr, read: PartReader) -> Node:
    only(node, "this", "expression")
    return Call("substring", (read(node.this), lit(1), read(node.expression)))


TEXT_READERS: dict[type[exp.Expr], Callable[[exp.Expr, PartReader], Node]] = {
    exp.Concat: _concat, exp.Like: _like, exp.ILike: _like, exp.StrPosition: _position, exp.Replace: _replace,
    exp.SplitPart: _split_part, exp.Trim: _trim, exp.Substring: _substring, exp.Left: _left,
}  # fmt: skip
