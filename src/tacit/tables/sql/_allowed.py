"""What is allowed in a table's SQL question: a closed list. Each refusal says what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.fixes import Fix

__all__ = ["only", "refuse"]

#: Parts of a node that change nothing: how the parser wrote it down.
_FLAGS = {
    "safe", "typed", "big_int", "nulls_first", "coerce", "ignore_nulls", "date_part_boundary", "dialect",
    "_type", "is_left",
    "is_null", "decimals_", "regexp", "action", "requires_string", "ignore_nulls_",
}  # fmt: skip
_INSTEAD: dict[type[exp.Expr], str] = {
    exp.Window: "a subquery for each unit: SELECT patient_id, MAX(x) AS x FROM t GROUP BY patient_id",
    exp.Rand: "leave it out: Tacit adds the noise",
    exp.Subquery: "a WITH clause, or a JOIN on the unit",
    exp.Exists: "a JOIN on the unit",
    exp.RegexpLike: "LIKE 'prefix%'",
    exp.RegexpExtract: "SUBSTRING(x, 1, 3)",
    exp.Pow: "x * x",
    exp.Concat: "x || y",
    exp.ApproxDistinct: "COUNT(DISTINCT x)",
    exp.Anonymous: "a function from the list of allowed SQL",
    exp.Star: "COUNT(*)",
    exp.TimeToStr: "EXTRACT(year FROM d)",
}


def refuse(node: exp.Expr, what: str = "", fix: Fix | str = "") -> TacitError:
    """Build the refusal of a construct, with what to write instead."""
    instead = _INSTEAD.get(type(node), "SELECT group, aggregates FROM table WHERE ... GROUP BY group")
    return TacitError(
        "not-allowed",
        what or f"{node.sql(dialect='duckdb')[:80]!r} is not on the list of allowed SQL",
        why="SQL is allowed only if its effect on one unit is known and bounded",
        fix=fix or instead,
    )


def only(node: exp.Expr, *allowed: str) -> None:
    """Refuse a node that has anything beyond the named parts."""
    for part, value in node.args.items():
        if part in allowed or part in _FLAGS or value is None or value is False or value == []:
            continue
        raise refuse(node, f"{part.strip('_').upper()} is not allowed in {node.sql(dialect='duckdb')[:80]!r}")
