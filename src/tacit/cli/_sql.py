"""SQL that the command line suggests: quoted names, and an aggregate with its range in the question."""

from __future__ import annotations

from tacit.fixes import FROM_PUBLIC_KNOWLEDGE


def sql_name(name: str) -> str:
    """Write the name of a column or table, in double quotes where SQL needs them."""
    plain = name.isascii() and name.isidentifier()
    return name if plain or name.startswith('"') else f'"{name}"'


def range_in_question(sql: str, expression: str) -> str:
    """Say how to give the range of an expression in the question itself."""
    aggregate = clipped_aggregate(sql, expression, "LOW", "HIGH")
    return f"give the range in the question: {aggregate}{FROM_PUBLIC_KNOWLEDGE}"


def clipped_aggregate(sql: str, expression: str, low: object, high: object) -> str:
    """Write the aggregate of an expression in a question with a range for it; without one, the expression.

    Examples
    --------
    >>> clipped_aggregate("SELECT COUNT(*), AVG(stay / 2) FROM visits", "stay / 2", 0, 15)
    'AVG(LEAST(GREATEST(stay / 2, 0), 15))'
    """
    import sqlglot
    from sqlglot import expressions as exp
    from sqlglot.errors import SqlglotError

    clipped = f"LEAST(GREATEST({expression}, {low}), {high})"
    try:
        aggregates = list(sqlglot.parse_one(sql, dialect="duckdb").find_all(exp.AggFunc))
    except SqlglotError:
        return clipped
    for aggregate in aggregates:
        inner = aggregate.this
        if isinstance(inner, exp.Expr) and inner.sql(dialect="duckdb") == expression:
            return aggregate.sql(dialect="duckdb").replace(expression, clipped, 1)
    return clipped


def tables_in(sql: str) -> frozenset[str]:
    """Return the tables that a question reads, in lower case; none where the text is not SQL.

    Examples
    --------
    >>> sorted(tables_in("WITH w AS (SELECT * FROM Visits) SELECT COUNT(*) FROM w JOIN codes USING (icd)"))
    ['codes', 'visits']
    """
    import sqlglot
    from sqlglot import expressions as exp
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse_one(sql, dialect="duckdb")
    except (SqlglotError, RecursionError):
        return frozenset()
    named = {part.alias.lower() for part in parsed.find_all(exp.CTE)}
    return frozenset(table.name.lower() for table in parsed.find_all(exp.Table)) - named - {""}
