"""What is allowed in a table's SQL question: a closed list. Each refusal says what to write instead."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.errors import TacitError
from tacit.fixes import Do, Say

if TYPE_CHECKING:
    from tacit.fixes import Fix

#: Parts of a node that change nothing: how the parser wrote it down.
_FLAGS = {
    "safe", "typed", "big_int", "nulls_first", "coerce", "ignore_nulls", "date_part_boundary", "dialect",
    "_type", "is_left",
    "is_null", "decimals_", "regexp", "action", "requires_string", "ignore_nulls_",
}  # fmt: skip
#: What to write instead, with the author's own column, arguments and table in the braces; a test pastes each.
_INSTEAD: dict[type[exp.Expr], str] = {
    # functions of rows
    exp.Rand: "remove it: Tacit adds the noise",
    exp.RegexpLike: "contains({column}, 'part')",
    exp.SimilarTo: "{column} LIKE 'prefix%'",
    exp.Escape: "contains({column}, 'part')",
    exp.RegexpExtract: "SUBSTRING({column}, 1, 3)",
    exp.RegexpReplace: "REPLACE({column}, 'old', 'new')",
    exp.Bracket: "SUBSTRING({column}, 1, 3)",
    exp.ConcatWs: "CONCAT({column}, '-', {column})",
    exp.ToChar: "STRFTIME({column}, '%Y-%m')",
    exp.DateBin: "DATE_TRUNC('month', {column})",
    exp.LastDay: "DATE_TRUNC('month', {column})",
    exp.TimeToUnix: "DATE_DIFF('second', '1970-01-01', {column})",
    exp.CurrentDate: "DATE '2024-01-31'",
    exp.CurrentTimestamp: "TIMESTAMP '2024-01-31'",
    exp.Cbrt: "POWER({argument}, 3)",
    # aggregates that would reveal a row
    exp.ApproxDistinct: "COUNT(DISTINCT {column})",
    exp.ApproxQuantile: "QUANTILE({argument}, 0.5)",
    exp.First: "COUNT(DISTINCT {column})", exp.Last: "COUNT(DISTINCT {column})",
    exp.AnyValue: "COUNT(DISTINCT {column})", exp.ArgMax: "COUNT(DISTINCT {column})",
    exp.ArgMin: "COUNT(DISTINCT {column})",
    exp.GroupConcat: "COUNT(DISTINCT {column})", exp.ArrayAgg: "COUNT(DISTINCT {column})",
    exp.LogicalOr: "COUNT_IF({argument}) > 0", exp.LogicalAnd: "COUNT_IF(NOT {argument}) = 0",
    exp.Skewness: "STDDEV({argument})", exp.Kurtosis: "STDDEV({argument})",
    # others
    exp.Anonymous: "a function that Tacit reads: docs/reference/sql.md lists them",
    exp.Star: "COUNT(*)",
    exp.Qualify: "ORDER BY 2 DESC LIMIT 10",
    exp.Offset: "LIMIT 10",
}  # fmt: skip
#: The same for functions that the parser does not know, by name.
_INSTEAD_BY_NAME = {
    "now": "TIMESTAMP '2024-01-31'", "age": "DATE_DIFF('year', {column}, '2024-01-31')",
    "isoyear": "YEAR({column})", "decade": "YEAR({column})", "century": "YEAR({column})",
    "average": "AVG({argument})", "varp": "VAR_POP({argument})", "countd": "COUNT(DISTINCT {column})",
    "mad": "STDDEV({argument})", "geomean": "EXP(AVG(LN({argument})))", "total": "SUM({argument})",
    "percentile_approx": "QUANTILE({argument}, 0.5)", "even": "ROUND({argument})",
}  # fmt: skip
#: Functions that a misspelt name may mean.
_OFTEN_MEANT = (
    "avg", "count", "sum", "median", "stddev", "variance", "quantile", "percentile_cont", "coalesce", "round",
    "floor", "greatest", "least", "substring", "replace", "lower", "upper", "length", "contains", "strftime",
    "date_trunc", "date_diff", "dayname", "monthname", "width_bucket", "most_common", "histogram", "extract",
)  # fmt: skip
_WRITTEN = "tacit_written"


def written_as(original: exp.Expr, copy: exp.Expr) -> exp.Expr:
    """Let refusals of a changed copy show the text of the original."""
    copy.meta[_WRITTEN] = original
    return copy


def refuse(node: exp.Expr, problem: str = "", fix: Fix | str = "") -> TacitError:
    """Build the refusal of a construct, with what to write instead."""
    original = _original(node)
    return TacitError(
        "not-allowed",
        problem or f"{_text(original)[:80]!r} is not on the list of allowed SQL",
        why="SQL is allowed only if one unit's effect on the result is known and bounded",
        fix=fix or _instead(original),
    )


def only(node: exp.Expr, *allowed: str) -> None:
    """Refuse a node that has anything beyond the named parts."""
    for part, value in node.args.items():
        if part in allowed or part in _FLAGS or value is None or value is False or value == []:
            continue
        text = _text(_original(node))[:80]
        fix = _INSTEAD.get(type(value), "") if isinstance(value, exp.Qualify | exp.Offset) else ""
        raise refuse(node, f"{part.strip('_').upper()} is not allowed in {text!r}", fix)


def _original(node: exp.Expr) -> exp.Expr:
    """Return what the author wrote: a copy with stand-ins in it remembers its original."""
    above: exp.Expr | None = node
    while above is not None:
        original = above.meta.get(_WRITTEN)
        if isinstance(original, exp.Expr):
            return original
        above = above.parent
    return node


def _text(node: exp.Expr) -> str:
    return node.transform(_with_its_name).sql(dialect="duckdb")


def _with_its_name(node: exp.Expr) -> exp.Expr:
    """Keep a name that the parser would write in another way, so that people recognise what they wrote."""
    if not isinstance(node, exp.GroupConcat):
        return node
    parts = [part for part in (node.this, node.args.get("separator")) if part is not None]
    return exp.Anonymous(this="STRING_AGG", expressions=parts)


def _instead(node: exp.Expr) -> Fix:
    """Say what to write instead, with the names that the author used."""
    inner = node.this if isinstance(node.this, exp.Expr) else next(iter(node.expressions), node)
    inner = inner.this if isinstance(inner, exp.Distinct) and isinstance(inner.this, exp.Expr) else inner
    inner_column, source = inner.find(exp.Column) or node.find(exp.Column), node.root().find(exp.Table)
    column = "x" if inner_column is None else _text(inner_column)
    table = "TABLE" if source is None else _text(exp.Table(this=source.this))
    if isinstance(node, exp.Window):
        inner = node.this.this
        if isinstance(inner, exp.Expr) and inner.find(exp.AggFunc):
            return Say(f"SUM({_text(inner)}) OVER ()")
        if node.args.get("partition_by") and not isinstance(node.this, exp.AggFunc) and not _grouped(node):
            return Do("summarise-units", unit="UNIT", table=table)
        if isinstance(inner, exp.Column):
            return Do("aggregate-per-unit", unit="UNIT", column=column, table=table)
        return Say("RANK() OVER (ORDER BY COUNT(*) DESC)")
    template = _INSTEAD.get(type(node))
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        close = get_close_matches(name, _OFTEN_MEANT, 1, 0.8)
        template = _INSTEAD_BY_NAME.get(name, template)
        if name not in _INSTEAD_BY_NAME and close and node.expressions:
            return Say(f"{close[0].upper()}({', '.join(map(_text, node.expressions))})")
    if template is None:
        return Do("ask-a-count", table=table)
    return Say(template.format(column=column, argument=_text(inner), table=table))


def _grouped(node: exp.Expr) -> bool:
    """Return whether the SELECT around a node has groups."""
    select = node.find_ancestor(exp.Select)
    return select is not None and select.args.get("group") is not None
