"""Hostile cells and the sources that carry them, for the attack on tables: rows go in, a source comes out."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    import random
    from pathlib import Path

#: A row is a list of cells in the order of its table's columns.
Row = list[Any]

LONG = "x" * 70_000
_DIGEST = "sha256:" + "0" * 64

NUMBERS = [
    0, -0.0, 1, 1.0, 2, -3, 7.5, 9.999999, 10, -10, 50, math.inf, -math.inf, math.nan, 1e308, -1e308,
    5e-324, "3", " 3", "3.0", "0x10", "1e5", "abc", "", None, True, False, "NaN", "inf", "-Infinity",
    "1_000", "1,5", "١", decimal.Decimal("1.10"), "1e400", "-0", "+5",
]  # fmt: skip
HUGE_NUMBERS = [2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30, 10**400, -(10**30)]
TEXTS = [
    "a", "b", "c", "A", "a ", " a", "", None, "NULL", "null", "None", "nan", "NaN", "1", "1.0", " 1", "01",
    1, 1.0, True, "true", "True", "2024-01-01", "é", "e\u0301", "ß", "ẞ", "\x00", "a\x00", "a\x00b",
    b"\xff", "\\xFF", b"a\xc3", LONG, LONG + "y", "'", '"', '""', 'a"b', '"a"', "a,b", "a;b", "a\tb", "a|b",
    "a\nb", "a\r\nb", "a\rb", "\r", "\n", "\r\n", "\x1a", "\x1aa", "\x1ab", "\x1ac", "\x1ad", "\ufeff",
    "\ufeffa", "=1+1", "\x1b[31m", _DIGEST, "#a", "\\", "\\N", "\\n", math.nan, "🦊", "\u2028", "%", "_",
    "a_b",
]  # fmt: skip
ODD_TEXTS = [
    "\ud800",
    "a\udfff",
    ["a"],
    {"a": 1},
    b"a",
    dt.timedelta(1),
    dt.time(1),
    1j,
]  # only in columns of objects
DATES = [
    dt.datetime(2024, 1, 1), dt.datetime(2024, 2, 29, 12), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 3, 31, 23, 59, 59, 999999),
    "2024-01-01", "2024-01-01 00:00:00", "2024-13-01", "2024-02-30", "infinity", "-infinity", "epoch",
    "0001-01-01", "9999-12-31", "10000-01-01", "2024-01-01T00:00:00+02:00", "12 days", "", None,
    "1677-09-21", "2262-04-12", "294247-01-01", "today", "now", "2024-01-01 (BC)", "290309-12-22 (BC)",
]  # fmt: skip
TRUTHS = [True, False, None, "true", "t", "yes", "no", "maybe", 1, 0, 2.5, math.nan, "TRUE", " true", ""]
NAMES = [
    dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 12), dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1),
    "2024-01-01", "2024-01-01 00:00:00", "2024-01-01 00:00", "2024-02-29",
    "1", "1.0", " 1", "1 ", "01", 2, 3.0, True, "True", "\\xFF", b"\xff", b"\xfe", "\\xFE", "", None,
    math.nan, "a", "A", "é", "e\u0301", LONG, LONG + "y", _DIGEST, "NULL", "\x00", "a\x00b", "a\nb", "a\rb",
    "a\r\nb", 'a"b', '"', "a,b", "a;b", "1:a", "a:b", "\x1ab", "\x1aa", "\ufeff", "-0", -0.5, math.inf,
    1e308, 2**53, "#", "\\", "true ", "u0", "u1", "u2", "u3", "u4",
]  # fmt: skip
ODD_NAMES = ["\ud800", "\ud801", ["a"], decimal.Decimal("2.50"), 2**70, 2**53 + 1]

_ARROW = {
    "text": pa.string(), "long text": pa.large_string(), "bytes": pa.binary(), "whole": pa.int64(),
    "small": pa.int16(), "unsigned": pa.uint64(), "double": pa.float64(), "single": pa.float32(),
    "decimal": pa.decimal128(30, 4), "truth": pa.bool_(), "moment": pa.timestamp("us"),
    "nano": pa.timestamp("ns"), "zoned": pa.timestamp("us", "UTC"), "day": pa.date32(),
    "category": pa.dictionary(pa.int32(), pa.string()),
}  # fmt: skip
#: What a column of each sort may be stored as, where the source has a schema.
STORED = {
    "name": [
        "text",
        "text",
        "text",
        "whole",
        "bytes",
        "double",
        "long text",
        "category",
        "moment",
        "decimal",
        "day",
    ],
    "number": ["double", "double", "whole", "single", "decimal", "text", "unsigned", "small", "truth"],
    "text": ["text", "text", "bytes", "category", "long text", "double"],
    "date": ["moment", "moment", "day", "zoned", "nano", "text"],
    "truth": ["truth", "truth", "whole", "text"],
}


def number_of(value: Any) -> float | int | decimal.Decimal | None:
    """Read a number, or nothing."""
    if isinstance(value, bool | int | float | decimal.Decimal):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def moment_of(value: Any) -> dt.datetime | None:
    """Read a moment, or nothing."""
    if isinstance(value, dt.datetime):
        return value
    try:
        return dt.datetime.fromisoformat(value).replace(tzinfo=None)
    except (TypeError, ValueError):
        return None


def text_of(value: Any) -> str | bytes | None:
    """Write a value as people do; nothing where there is nothing."""
    match value:
        case None:
            return None
        case bytes() | str():
            return value
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < 2**63:
            return str(int(value))
        case float() if math.isnan(value):
            return None
        case _:
            return str(value)


def csv_text(value: Any) -> str | None:
    """Write a value as UTF-8 text: a file with other bytes is refused (`contract/test_csv_lines.py`)."""
    text = text_of(value)
    return text.decode("latin-1") if isinstance(text, bytes) else text


def stored(value: Any, kind: str) -> Any:
    """Convert a value for a typed column; None where it does not fit."""
    try:
        return _stored(value, kind)
    except (ValueError, TypeError, OverflowError, ArithmeticError, KeyError):
        return None


def _stored(value: Any, kind: str) -> Any:
    if kind in {"text", "long text", "category", "bytes"}:
        text = text_of(value)
        raw = text.encode() if isinstance(text, str) else text
        if raw is not None and kind == "category":
            raw.decode()
        return raw
    if kind in {"moment", "nano", "zoned", "day"}:
        moment = moment_of(value)
        if moment is None or (kind == "nano" and not 1678 < moment.year < 2262):
            return None
        return moment.date() if kind == "day" else moment
    number = number_of(value)
    if number is None:
        return None
    match kind:
        case "double" | "single":
            return float(number)
        case "truth":
            return bool(number) if number == number else None
        case "decimal":
            one = decimal.Decimal(str(number))
            return one.quantize(decimal.Decimal("0.0001")) if one.is_finite() and abs(one) < 10**20 else None
    whole = int(number)
    low, high = {"whole": (-(2**63), 2**63), "unsigned": (0, 2**64), "small": (-(2**15), 2**15)}[kind]
    return whole if low <= whole < high else None


def name_of(value: Any) -> Any:
    """Return what a cell names, as the documentation says: 1, 1.0 and '1' are one name, NULL and NaN none."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if math.isnan(value):
            return None
        case float() | decimal.Decimal() if value == value and abs(value) < 2**63 and value == int(value):
            return str(int(value))
        case float():
            return repr(value)
        case int():
            return str(value)
        case decimal.Decimal():
            return str(value.normalize())
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return value
        case list():
            return None
        case dt.date() if not isinstance(value, dt.datetime):
            return f"{value} 00:00:00"
        case str() | None:
            return value
        case _:
            return str(value)


@dataclass(frozen=True)
class TableShape:
    """The public facts of one table: names and sorts of its columns, and what each is stored as."""

    names: tuple[str, ...]
    sorts: tuple[str, ...]
    stored: tuple[str, ...]

    def cells(self, row: Row) -> Row:
        """Convert a row for a typed source."""
        return [stored(cell, kind) for cell, kind in zip(row, self.stored, strict=True)]


@dataclass
class Workshop:
    """Where sources are made: a folder, a choice of style, and the connections that must stay open."""

    folder: Path
    rng: random.Random
    numbers: Any = field(default_factory=itertools.count)
    opened: list[Any] = field(default_factory=list)

    def path(self, suffix: str) -> Path:
        """Return a new path."""
        return self.folder / f"{next(self.numbers)}{suffix}"

    def close(self) -> None:
        """Close the connections and remove the files."""
        for one in self.opened:
            one.close()
        self.opened.clear()
        for file in self.folder.iterdir():
            if file.is_file():
                file.unlink()


def arrow_table(shape: TableShape, rows: list[Row], *, broken: bool, inferred: bool = False) -> pa.Table:
    """Build a typed Arrow table.

    ``broken``: text columns may hold bytes that are not UTF-8. ``inferred``: a column without values has no
    type.
    """
    columns = []
    for at, kind in enumerate(shape.stored):
        values = [row[at] for row in rows]
        if inferred and all(value is None for value in values):
            columns.append(pa.nulls(len(values)))
        elif kind in {"text", "long text", "category"}:
            if not broken:
                values = [v if _is_text(v) else None for v in values]
            raw = pa.array(values, pa.large_binary() if kind == "long text" else pa.binary())
            columns.append(pa.Array.from_buffers(_text_type(kind), len(raw), raw.buffers(), raw.null_count))
            if kind == "category":
                columns[-1] = columns[-1].dictionary_encode()
        else:
            columns.append(pa.array(values, _ARROW[kind]))
    return pa.table(columns, names=list(shape.names))


def _text_type(kind: str) -> pa.DataType:
    return pa.large_string() if kind == "long text" else pa.string()


def _is_text(value: bytes | None) -> bool:
    try:
        return value is None or bool(value.decode()) or value == b""
    except UnicodeDecodeError:
        return False


def csv_bytes(shape: TableShape, rows: list[Row], style: dict[str, Any]) -> bytes:
    """Write a CSV file as one of several writers would."""
    made = io.BytesIO()
    end, delimiter = style["end"], style["delimiter"]

    def cell(value: Any) -> bytes:
        raw = value if isinstance(value, bytes) else str(value if value is not None else "").encode()
        special = [delimiter, b'"', *style["quoted"]]
        if style["all"] or any(sign in raw for sign in special):
            return b'"' + raw.replace(b'"', b'""') + b'"'
        return raw

    made.write(style["mark"])
    lines = [list(shape.names), *rows]
    for at, row in enumerate(lines):
        made.write(delimiter.join(map(cell, row)))
        if at < len(lines) - 1 or style["last"]:
            made.write(end)
    return made.getvalue()


def csv_style(rng: random.Random) -> dict[str, Any]:
    """Choose how a CSV file is written; the same for both neighbours."""
    end = rng.choice([b"\n", b"\n", b"\r\n"])
    return {
        "end": end,
        "delimiter": rng.choice([b",", b",", b";", b"\t", b"|"]),
        # pandas quotes only what its own line end holds; others quote every return and feed
        "quoted": [end]
        if rng.random() < 0.3
        else [b"\r", b"\n"]
        if rng.random() < 0.5
        else list({end[:1], end[-1:]}),
        "all": rng.random() < 0.2,
        "mark": rng.choice([b"", b"", b"\xef\xbb\xbf"]),
        "last": rng.random() < 0.8,
    }


def make_csv(shop: Workshop, shape: TableShape, rows: list[Row], style: dict[str, Any]) -> Path:
    """Write a CSV file."""
    path = shop.path(".csv")
    texts = [[csv_text(cell) if not isinstance(cell, list) else None for cell in row] for row in rows]
    path.write_bytes(csv_bytes(shape, texts, style))
    return path


def pandas_cell(value: Any, how: str) -> Any:
    """Convert a value for a pandas column of a declared type; other columns take it as it is."""
    made = stored(
        value,
        {"Int64": "whole", "Float64": "double", "boolean": "truth", "string": "text", "str": "text"}.get(
            how, ""
        ),
    )
    if how in {"inferred", "category", "object"}:
        return value
    return made.decode(errors="replace") if isinstance(made, bytes) else made


def merged_by_pandas(values: list[Any]) -> bool:
    """Whether equal values of different types meet: as categories, pandas would make 0 and False one.

    The rows of one person would then change the cells of another before Tacit sees them.
    """
    kinds: dict[Any, set[type]] = {}
    for value in values:
        if isinstance(value, Hashable):
            kinds.setdefault(value, set()).add(type(value))
    return any(len(found) > 1 for found in kinds.values())


def make_pandas(shape: TableShape, rows: list[Row], style: dict[str, Any]) -> pd.DataFrame:
    """Build a frame whose types pandas infers from all values together, or objects."""
    columns = {}
    for at, (name, how) in enumerate(zip(shape.names, style["pandas"], strict=True)):
        values = [pandas_cell(row[at], how) for row in rows]
        try:
            columns[name] = pd.Series(values, dtype=None if how in {"inferred", "category"} else how)
            if how == "category" and not merged_by_pandas(values):
                columns[name] = columns[name].astype("category")
        except (TypeError, ValueError, OverflowError, ArithmeticError):
            columns[name] = pd.Series(values, dtype=object)
    return pd.DataFrame(columns)


def make_polars(shop: Workshop, shape: TableShape, rows: list[Row], style: dict[str, Any]) -> pl.DataFrame:
    """Build a typed frame, or one with columns of objects."""
    del shop
    frame = pl.from_arrow(
        arrow_table(shape, [shape.cells(row) for row in rows], broken=False, inferred=style["inferred"])
    )
    objects = [
        pl.Series(name, [row[at] for row in rows], dtype=pl.Object)
        for at, (name, how) in enumerate(zip(shape.names, style["pandas"], strict=True))
        if how == "object" and rows
    ]
    return frame.with_columns(objects) if objects else frame


def make_database(
    shop: Workshop, shape: TableShape, rows: list[Row], name: str, con: duckdb.DuckDBPyConnection | None
) -> Any:
    """Store a typed table in a DuckDB file, or in a connection."""
    table = arrow_table(shape, [shape.cells(row) for row in rows], broken=False)
    path = shop.path(".duckdb")
    into = duckdb.connect(str(path)) if con is None else con
    into.register("arriving", table)
    into.execute(f'CREATE TABLE "{name}" AS SELECT * FROM arriving')
    into.unregister("arriving")
    if con is None:
        into.close()
        return path, name
    return into, name


def make_source(
    shop: Workshop, kind: str, name: str, shape: TableShape, rows: list[Row], style: dict[str, Any]
) -> Any:
    """Make the source of a table from its rows."""
    match kind:
        case "csv":
            return make_csv(shop, shape, rows, style)
        case "pandas":
            return make_pandas(shape, rows, style)
        case "polars":
            return make_polars(shop, shape, rows, style)
        case "database":
            return make_database(shop, shape, rows, name, None)
        case "connection":
            con = duckdb.connect()
            shop.opened.append(con)
            return make_database(shop, shape, rows, name, con)
    inferred = style["inferred"] and kind == "arrow"
    table = arrow_table(shape, [shape.cells(row) for row in rows], broken=style["broken"], inferred=inferred)
    if kind == "arrow":
        return table
    path = shop.path(".parquet")
    pq.write_table(table, path, row_group_size=style["group"], use_dictionary=style["dictionary"])
    return path
