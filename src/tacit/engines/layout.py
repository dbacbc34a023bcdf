"""The views that DuckDB lays over a source: owners, values, and the keyed order of each owner's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.engines.sources import Source

__all__ = ["GRID_MACRO", "limited_macro", "ranked_table", "source_sql", "view_sql"]

_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_HUGE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
_FLOATS = {"FLOAT", "DOUBLE"}


#: floor(x/step + 1/2) between lo and hi, x clipped first; step is a power of two, so that y is exact. NULL
#: and NaN: NULL.
GRID_MACRO = """
CREATE OR REPLACE TEMP MACRO tacit_grid(x, low, high, step, lo, hi) AS
CASE WHEN NOT isnan(x) THEN least(greatest(CAST(
  floor(least(greatest(x, low), high) / step)
  + CASE WHEN least(greatest(x, low), high) / step - floor(least(greatest(x, low), high) / step) >= 0.5e0
    THEN 1e0 ELSE 0e0 END
AS BIGINT), lo), hi) END
"""


def quote(name: str) -> str:
    """Quote an identifier."""
    return '"' + name.replace('"', '""') + '"'


def source_sql(source: Source, name: str) -> str:
    """Write the source as a relation.

    CSV cells are read as text; lines that cannot be read are left out, none aborts.
    """
    path = "'" + str(source.place).replace("'", "''") + "'"
    match source.kind:
        case "parquet":
            return f"SELECT * FROM read_parquet({path})"
        case "csv":
            delimiter = "\\t" if str(source.place).lower().endswith(".tsv") else ","
            return (
                f"SELECT * FROM read_csv({path}, header = true, all_varchar = true, delim = '{delimiter}', quote = '\"', "
                "escape = '\"', strict_mode = false, null_padding = true, ignore_errors = true, parallel = false, "
                f"max_line_size = 67108864, auto_detect = false, columns = {_text_columns(source)})"
            )
        case "database":
            return f"SELECT * FROM {quote('tacit db ' + name)}.{quote(source.table or name)}"
        case "connection":
            return f"SELECT * FROM {quote(source.table or name)}"
        case _:
            return f"SELECT * FROM {quote('tacit raw ' + name)}"


def _text_columns(source: Source) -> str:
    columns = source.columns() or ("column0",)
    listed = ", ".join(f"{_text(c)}: 'VARCHAR'" for c in columns)
    return "{" + listed + "}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def view_sql(name: str, source: Source, unit: str | None, types: list[tuple[str, str]]) -> str:
    """Write the view of a table: its owner in ``tacit_u`` (rows without one are dropped) and its columns."""
    columns = ", ".join(f"{_value(c, t)} AS {quote(c)}" for c, t in types)
    raw = source_sql(source, name)
    if not unit:
        return f"CREATE OR REPLACE TEMP VIEW {quote(name)} AS SELECT 0 AS tacit_u, {columns} FROM ({raw})"
    owner = _owner(unit, next(t for c, t in types if c.lower() == unit.lower()))
    return (
        f"CREATE OR REPLACE TEMP VIEW {quote(name)} AS SELECT {owner} AS tacit_u, {columns} "
        f"FROM ({raw}) WHERE {owner} IS NOT NULL"
    )


def _owner(column: str, kind: str) -> str:
    """The owner.

    Whole numbers as they are; a whole float as that whole number, so that both name one unit alike.
    """
    c = quote(column)
    if kind in _WHOLE:
        return f"CAST({c} AS BIGINT)"
    if kind in _FLOATS:
        whole = f"CAST(TRY_CAST({c} AS BIGINT) AS VARCHAR)"
        return f"CASE WHEN isnan({c}) THEN NULL WHEN {c} = floor({c}) AND abs({c}) < 9e15 THEN {whole} ELSE CAST({c} AS VARCHAR) END"
    return f"TRY_CAST({c} AS VARCHAR)"


def _value(column: str, kind: str) -> str:
    """A value in one of few types.

    Floats with one zero and one NaN, moments without zone, the rest as text.
    """
    c = quote(column)
    if kind in _FLOATS:
        return f"CASE WHEN isnan({c}) THEN CAST('nan' AS DOUBLE) ELSE CAST({c} AS DOUBLE) + 0e0 END"
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f"make_timestamp(epoch_us({c}))"
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return f"TRY_CAST({c} AS TIMESTAMP)"
    if kind in _WHOLE or kind in _HUGE or kind == "BOOLEAN" or kind.startswith("DECIMAL"):
        return c
    return f"TRY_CAST({c} AS VARCHAR)"


def _numeric(kind: str) -> bool:
    return kind in _WHOLE or kind in _HUGE or kind in _FLOATS or kind.startswith("DECIMAL")


def _order(types: list[tuple[str, str]], key: int) -> tuple[str, str]:
    """The partition that finds equal rows, and the keyed order of a unit's rows.

    Hash, then values, then occurrence.
    """
    natives = ", ".join(quote(c) for c, _ in types)
    hashed = ", ".join(f"CAST({quote(c)} AS {'DOUBLE' if _numeric(t) else 'VARCHAR'})" for c, t in types)
    return natives, f"hash({key}::UBIGINT, CAST(tacit_u AS VARCHAR), {hashed}, tacit_o), {natives}, tacit_o"


def limited_macro(name: str, types: list[tuple[str, str]], key: int) -> str:
    """Write the macro that keeps a unit's first m rows. Only units with more than m rows are ranked."""
    table = quote(name)
    equal, order = _order(types, key)
    columns = ", ".join(["tacit_u", *(quote(c) for c, _ in types)])
    heavy = f"SELECT tacit_u FROM {table} GROUP BY tacit_u HAVING count(*) > m"
    twins = f"SELECT *, row_number() OVER (PARTITION BY tacit_u, {equal}) AS tacit_o FROM {table} WHERE tacit_u IN ({heavy})"
    ranked = f"SELECT *, row_number() OVER (PARTITION BY tacit_u ORDER BY {order}) AS tacit_r FROM ({twins})"
    return (
        f"CREATE OR REPLACE TEMP MACRO {quote(name + ' limited')}(m) AS TABLE "
        f"SELECT {columns} FROM {table} WHERE tacit_u NOT IN ({heavy}) "
        f"UNION ALL SELECT {columns} FROM ({ranked}) WHERE tacit_r <= m"
    )


def ranked_table(name: str, types: list[tuple[str, str]], key: int) -> list[str]:
    """Write the snapshot: every row with its rank, so that the macro becomes a plain filter on it."""
    table, stored = quote(name), quote("tacit snapshot " + name)
    equal, order = _order(types, key)
    columns = ", ".join(["tacit_u", *(quote(c) for c, _ in types)])
    twins = f"SELECT *, row_number() OVER (PARTITION BY tacit_u, {equal}) AS tacit_o FROM {table}"
    ranked = f"SELECT {columns}, row_number() OVER (PARTITION BY tacit_u ORDER BY {order}) AS tacit_r FROM ({twins})"
    return [
        f"CREATE OR REPLACE TABLE {stored} AS {ranked}",
        f"CREATE OR REPLACE TEMP MACRO {quote(name + ' limited')}(m) AS TABLE "
        f"SELECT {columns} FROM {stored} WHERE tacit_r <= m",
    ]
