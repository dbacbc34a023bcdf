"""The typed question as SQL: names as SQL writes them, and an aggregate with its range in the question."""

from __future__ import annotations

from tacit.cli._advice import FROM_PUBLIC_KNOWLEDGE

__all__ = ["clipped_aggregate", "names_made_inside", "range_in_question", "sql_name"]


def sql_name(name: str) -> str:
    """Write the name of a column or table, in double quotes where SQL needs them."""
    plain = name.isascii() and name.isidentifier()
    return name if plain or name.startswith('"') else f'"{name}"'


def range_in_question(sql: str, *, column: str = "", expression: str = "") -> str:
    """Say how the range of a column or an expression is given in the question itself."""
    aggregate = clipped_aggregate(sql, "LOW", "HIGH", column=column, expression=expression)
    return f"give the range in the question: {aggregate}{FROM_PUBLIC_KNOWLEDGE}"


def clipped_aggregate(sql: str, low: object, high: object, *, column: str = "", expression: str = "") -> str:
    """Write an aggregate of the question with a range for its argument.

    Which aggregate: that of the column, else that of the expression, else the first one of any expression.

    Examples
    --------
    >>> clipped_aggregate("SELECT AVG(stay / 2) FROM visits", 0, 15)
    'AVG(LEAST(GREATEST(stay / 2, 0), 15))'
    """
    import sqlglot
    from sqlglot import expressions as exp
    from sqlglot.errors import SqlglotError

    clip = "LEAST(GREATEST({}, {}), {})".format
    try:
        aggregates = list(sqlglot.parse_one(sql, dialect="duckdb").find_all(exp.AggFunc))
    except SqlglotError:
        aggregates = []
    fitting = []
    for aggregate in aggregates:
        inner = aggregate.this
        if not isinstance(inner, exp.Expr) or isinstance(inner, exp.Least | exp.Star):
            continue
        text = inner.sql(dialect="duckdb")
        named = isinstance(inner, exp.Column)
        if (inner.name == column and named) if column else not named:
            words = aggregate.sql(dialect="duckdb").replace(text, clip(text, low, high), 1)
            if expression in {"", text}:
                return words
            fitting.append(words)
    return fitting[0] if fitting else clip(expression or column or "...", low, high)


def names_made_inside(sql: str) -> frozenset[str]:
    """Return the names that a subquery defines; no line of the config can declare anything about them."""
    if not sql:
        return frozenset()
    import sqlglot
    from sqlglot import expressions as exp
    from sqlglot.errors import SqlglotError

    try:
        inner = list(sqlglot.parse_one(sql, dialect="duckdb").find_all(exp.Select))[1:]
    except SqlglotError:
        return frozenset()
    aliases = (name for select in inner for name in select.expressions if isinstance(name, exp.Alias))
    return frozenset(name.alias for name in aliases)
