"""What is allowed in a table's SQL question: a closed list. Each refusal says what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.errors import TacitError
from tacit.fixes import Do, Say

if TYPE_CHECKING:
    from tacit.fixes import Fix

__all__ = ["only", "refuse", "written_as"]

#: Parts of a node that change nothing: how the parser wrote it down.
_FLAGS = {
    "safe", "typed", "big_int", "nulls_first", "coerce", "ignore_nulls", "date_part_boundary", "dialect",
    "_type", "is_left",
    "is_null", "decimals_", "regexp", "action", "requires_string", "ignore_nulls_",
}  # fmt: skip
#: What to write instead, with the author's own column, arguments and table in the braces.
_INSTEAD: dict[type[exp.Expr], str] = {
    exp.Rand: "leave it out: Tacit adds the noise",
    exp.Subquery: "a WITH clause, or a JOIN on the unit",
    exp.Exists: "a JOIN on the unit",
    exp.RegexpLike: "{column} LIKE 'prefix%'",
    exp.RegexpExtract: "SUBSTRING({column}, 1, 3)",
    exp.Pow: "{argument} * {argument}",
    exp.Concat: "{joined}",
    exp.ApproxDistinct: "COUNT(DISTINCT {column})",
    exp.Anonymous: "a function that Tacit reads: docs/reference/sql.md lists them",
    exp.Star: "COUNT(*)",
    exp.TimeToStr: "EXTRACT(year FROM {column})",
}
_WRITTEN = "tacit_written"


def written_as(original: exp.Expr, copy: exp.Expr) -> exp.Expr:
    """Let refusals of a changed copy show the text of the original."""
    copy.meta[_WRITTEN] = original
    return copy


def refuse(node: exp.Expr, what: str = "", fix: Fix | str = "") -> TacitError:
    """Build the refusal of a construct, with what to write instead."""
    original = _original(node)
    return TacitError(
        "not-allowed",
        what or f"{_text(original)[:80]!r} is not on the list of allowed SQL",
        why="SQL is allowed only if one unit's effect on the result is known and bounded",
        fix=fix or _instead(original),
    )


def only(node: exp.Expr, *allowed: str) -> None:
    """Refuse a node that has anything beyond the named parts."""
    for part, value in node.args.items():
        if part in allowed or part in _FLAGS or value is None or value is False or value == []:
            continue
        written = _text(_original(node))[:80]
        raise refuse(node, f"{part.strip('_').upper()} is not allowed in {written!r}")


def _original(node: exp.Expr) -> exp.Expr:
    """Return what the author wrote: a copy with stand-ins in it remembers its original."""
    above: exp.Expr | None = node
    while above is not None:
        found = above.meta.get(_WRITTEN)
        if isinstance(found, exp.Expr):
            return found
        above = above.parent
    return node


def _text(node: exp.Expr) -> str:
    return node.sql(dialect="duckdb")


def _instead(node: exp.Expr) -> Fix:
    """Say what to write instead, with the names that the author used."""
    inner = node.this if isinstance(node.this, exp.Expr) else node
    named, read = inner.find(exp.Column) or node.find(exp.Column), node.root().find(exp.Table)
    column = "x" if named is None else _text(named)
    table = "TABLE" if read is None else _text(exp.Table(this=read.this))
    if isinstance(node, exp.Window):
        return Do("aggregate-per-unit", unit="UNIT", column=column, table=table)
    template = _INSTEAD.get(type(node), "SELECT group, aggregates FROM {table} WHERE ... GROUP BY group")
    joined = " || ".join(_text(one) for one in node.expressions) or "x || y"
    return Say(template.format(column=column, argument=_text(inner), table=table, joined=joined))
