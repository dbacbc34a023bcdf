"""Data frames for the engines: made safe to scan, value by value.

The people whose rows are in a frame decide what it holds. Text that is not valid (a lone surrogate), an
object that cannot be written or a moment far outside the calendar would abort every query of the table and
so reveal one row. And one value of another type changes the type of its whole column. So each value is read
here (and in the engine's views) on its own, whatever the other rows hold: a number is written the same way in
a column of whole numbers, floats or objects, and so are booleans and moments. Values that no typed column
could show (spans, clock times, lists, other objects) are missing, and so are values that cannot be written
without becoming another value's text.

Arrow does not check the bytes it is given, and pandas and Polars take columns from it. DuckDB fails on text
that is not UTF-8 in some questions and not in others, and some of these failures cannot be repaired. A column
that holds such text is handed on in hexadecimal digits, and the engine reads it as bytes, value by value, as
it reads the bytes of every other source.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import TYPE_CHECKING, Any

from tacit.engines._values import quote
from tacit.engines.sources._sources import column_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb


_COARSE = {"s", "ms"}
_HUGE = {"Int128", "UInt128"}  # Polars gives a column this type as soon as one value needs it
_LONG = 400  # a decimal with more digits before or after the point is written with an exponent


def as_digits(frame: Any) -> tuple[Any, list[int]]:
    """Return the frame with digits for text that is not UTF-8, and the columns that have them.

    Called after the charge: it reads every text.
    """
    match home_of(frame):
        case "pandas":
            return _pandas_digits(frame)
        case "polars":
            return _polars_digits(frame)
        case "pyarrow":
            return _arrow_digits(frame)
        case _:
            return frame, []


def home_of(frame: object) -> str:
    """Return the package that a frame's class, or a class above it, comes from; otherwise an empty text."""
    homes = {base.__module__.partition(".")[0] for base in type(frame).__mro__}
    return next((home for home in ("pandas", "polars", "pyarrow") if home in homes), "")


def _arrow_digits(table: Any) -> tuple[Any, list[int]]:
    import pyarrow as pa

    changed = []
    for at, name in enumerate(table.schema.names):
        digits = _digits(table.column(at))
        if digits is not None:
            table = table.set_column(at, name, pa.array(digits, pa.large_string()))
            changed.append(at)
    return table, changed


def _polars_digits(frame: Any) -> tuple[Any, list[int]]:
    import polars as pl

    safe, changed = frame.clone(), []
    for at, name in enumerate(frame.columns):
        column = frame.to_series(at)
        if isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum):
            digits = _digits(column.to_arrow())
            if digits is not None:
                safe.replace_column(at, pl.Series(name, digits, dtype=pl.String))
                changed.append(at)
    return safe, changed


def _pandas_digits(frame: Any) -> tuple[Any, list[int]]:
    safe, changed = frame.copy(deep=False), []
    for at, kind in enumerate(frame.dtypes):
        if type(kind).__name__ != "ArrowDtype" and getattr(kind, "storage", "") != "pyarrow":
            continue
        import pyarrow as pa

        digits = _digits(pa.array(frame.iloc[:, at].array))
        if digits is not None:
            safe.isetitem(at, digits)
            changed.append(at)
    return safe, changed


def _digits(column: Any) -> list[str | None] | None:
    """Return the bytes of an Arrow column in hexadecimal digits; None if all of its text is UTF-8."""
    import pyarrow as pa

    kind = getattr(column.type, "storage_type", column.type)
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        return None
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        parts = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return [text for part in parts for text in _decoded_texts(part)]
    return None


def _decoded_texts(array: Any) -> list[str | None]:
    import pyarrow as pa

    plain = getattr(array, "storage", array)
    plain = plain.dictionary_decode() if pa.types.is_dictionary(plain.type) else plain
    values = plain.cast(pa.large_binary()).to_pylist()
    return [None if value is None else value.hex() for value in values]


def register(con: duckdb.DuckDBPyConnection, name: str, frame: Any) -> None:
    """Give a connection a frame under a name, with distinct column names; called after the charge."""
    names = list(column_names(frame) or ())
    safe, in_digits = as_digits(_dense(frame) if home_of(frame) == "pandas" else frame)
    match home_of(frame):
        case "pandas":
            safe = _pandas(safe, names)
        case "polars":
            safe = _polars(safe, names)
        case "pyarrow":
            safe = _arrow(safe, names)
    con.register(f"{name} digits" if in_digits else name, safe)
    if in_digits:
        selected = ", ".join(f"unhex({quote(names[at])}) AS {quote(names[at])}" for at in in_digits)
        columns = f"* REPLACE ({selected})"
        con.execute(
            f"CREATE OR REPLACE TEMP VIEW {quote(name)} AS SELECT {columns} FROM {quote(name + ' digits')}"
        )


def _dense(frame: Any) -> Any:
    """Return a frame of pandas whose sparse columns hold all their values, as DuckDB needs them."""
    sparse = [at for at, kind in enumerate(frame.dtypes) if hasattr(kind, "fill_value")]
    if not sparse:
        return frame
    dense = frame.copy(deep=False)
    for at in sparse:
        dense.isetitem(at, frame.iloc[:, at].sparse.to_dense())
    return dense


def _pandas(frame: Any, names: list[str]) -> Any:
    import numpy as np

    safe = frame.copy(deep=False)
    safe.index = range(len(frame))  # DuckDB may hand the index to Arrow, which raises on some objects
    for at, kind in enumerate(frame.dtypes):
        if hasattr(kind, "pyarrow_dtype"):
            safe.isetitem(at, _arrow_in_pandas(safe.iloc[:, at].array))
        column = safe.iloc[:, at]
        kind = column.dtype
        if kind.kind in "Oc":
            safe.isetitem(at, _texts(_cells(column)))
        elif kind.kind == "f" and kind.itemsize not in (4, 8):  # DuckDB has floats of 32 and 64 bits alone
            with np.errstate(all="ignore"):  # a wide float may be beyond all others
                safe.isetitem(at, column.astype("float64"))
        elif kind.kind == "M" and not _is_day(kind):
            if column.dt.tz is not None:
                column = column.dt.tz_convert(None)  # universal time, as DuckDB would read it
            safe.isetitem(at, column.astype("datetime64[us]") if column.dt.unit == "ns" else column)
    safe.columns = names
    return safe


def _arrow_in_pandas(array: Any) -> Any:
    """Return a column of Arrow in pandas as DuckDB reads it; all missing where its type is never read."""
    import pandas as pd
    import pyarrow as pa

    column = pa.array(array)
    if _is_unread(column.type):
        return [None] * len(column)
    return pd.arrays.ArrowExtensionArray(_scannable(column))


def _cells(column: Any) -> Sequence[object]:
    """Return the values of a column of pandas; missing are those that Python cannot hold."""
    try:
        return column.tolist()  # type: ignore[no-any-return]
    except Exception:  # noqa: BLE001 - one value that raises must not take the others with it
        return [_cell(column, at) for at in range(len(column))]


def _cell(column: Any, at: int) -> object:
    try:
        return column.iloc[at]
    except Exception:  # noqa: BLE001
        return None


def _is_day(kind: Any) -> bool:
    """Return whether this is Arrow's type for days, which have no clock to move."""
    arrow = getattr(kind, "pyarrow_dtype", None)
    return arrow is not None and not hasattr(arrow, "unit")


def _texts(values: Sequence[object]) -> Sequence[object]:
    """Return each value as text or None. If all values are text, the usual case, they are checked at once."""
    try:
        "".join(values).encode()  # type: ignore[arg-type]
    except (TypeError, UnicodeEncodeError):
        return [cell_text(value) for value in values]
    return values


def cell_text(value: object) -> str | None:
    """Write one cell, the same way in every column; None if it is missing or there is no such text.

    Examples
    --------
    >>> cell_text(1.0), cell_text(b"ana"), cell_text(decimal.Decimal("1.50")), cell_text(dt.date(2026, 1, 31))
    ('1', 'ana', '1.5', '2026-01-31 00:00:00')
    """
    try:
        return None if value is None or value != value else _object_text(value)
    except Exception:  # noqa: BLE001 - pandas.NA cannot be compared; objects may refuse anything
        return None


def _object_text(value: Any) -> str | None:
    """Write one value as DuckDB writes it in a column of its own type; raise if there is no such text."""
    match value:
        case str():
            return str.encode(value).decode()
        case bool():
            return "true" if value else "false"
        case int():
            return int.__repr__(value)
        case float():
            return _number(value)
        case dt.date():
            return _moment(value)
        case bytes():
            return value.decode()
        case decimal.Decimal():
            return _decimal(value)
        case complex():
            return None if value.imag else _number(value.real)
        case uuid.UUID():
            return str(value)
    match type(value).__module__.partition(".")[0], type(value).__name__:
        case "numpy", _ if value.shape == ():
            return _scalar(value)
        case "pandas", "Period":
            return str(value)
        case "pandas", "Interval":
            opening, closing = "[" if value.closed_left else "(", "]" if value.closed_right else ")"
            return f"{opening}{cell_text(value.left)}, {cell_text(value.right)}{closing}"
    return None


def _number(value: float) -> str:
    """Write a whole number by its digits, a large one as owners are, any other as DuckDB does."""
    if abs(value) >= 2**63:
        return f"{value:.17e}"
    return str(int(value)) if value.is_integer() else float.__repr__(value)


def _decimal(value: decimal.Decimal) -> str:
    if not value.is_finite():
        return _number(float(value))
    if not value or abs(value.adjusted()) > _LONG:
        return str(value) if value else "0"
    digits = f"{value:f}"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _moment(value: dt.date) -> str | None:
    """Write a moment in universal time, cut to microseconds; None outside the years 1 to 9999."""
    if not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    if value.tzinfo is not None:
        value = value.astimezone(dt.UTC)
    if not 1 <= value.year <= 9999:
        return None
    clock = f"{value.hour:02}:{value.minute:02}:{value.second:02}"
    parts = f".{value.microsecond:06}".rstrip("0").rstrip(".")
    return f"{value.year:04}-{value.month:02}-{value.day:02} {clock}{parts}"


def _scalar(value: Any) -> str | None:
    """Write a number or moment of NumPy like one of Python."""
    match value.dtype.kind:
        case "M":
            moment = value.astype("datetime64[us]").item()  # a whole number if Python has no such year
            return _moment(moment) if isinstance(moment, dt.date) else None
        case "b" | "i" | "u" | "f" | "c" as kind:
            scalar = {"b": bool, "f": float, "c": complex}.get(kind, int)(value)
            return cell_text(scalar)
        case _:
            return None


def _polars(frame: Any, names: list[str]) -> Any:
    import polars as pl

    safe = frame.clone()
    for at, (name, kind) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        if isinstance(kind, pl.Object) or str(kind) in _HUGE:
            safe.replace_column(at, pl.Series(name, _texts(frame[name].to_list()), dtype=pl.String))
        elif isinstance(kind, pl.Datetime) and kind.time_unit == "ms" and kind.time_zone is not None:
            universal = frame[name].dt.convert_time_zone("UTC").dt.replace_time_zone(None)
            safe.replace_column(at, universal)
    safe.columns = names
    return safe


def _arrow(table: Any, names: list[str]) -> Any:
    for at, field in enumerate(table.schema):
        column = table.column(at)
        safe = column if _is_unread(field.type) else _scannable(column)
        if safe is not column:
            table = table.set_column(at, field.name, safe)
    return table if names == table.schema.names else table.rename_columns(names)


def _is_unread(kind: Any) -> bool:
    """Return whether values of a type of Arrow are always missing: clock times, spans and nested values."""
    import pyarrow as pa

    while hasattr(kind, "storage_type"):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _is_unread(kind.value_type)
    return bool(
        pa.types.is_nested(kind)
        or pa.types.is_time(kind)
        or pa.types.is_duration(kind)
        or pa.types.is_interval(kind)
    )


def _scannable(column: Any) -> Any:
    """Return a column of Arrow, in another type where DuckDB would fail on this one or on a value of it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if pa.types.is_dictionary(column.type) and not pa.types.is_string(column.type.value_type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit in _COARSE and kind.tz is not None:
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    # Arrow infers a decimal of 256 bits as soon as one value has 39 digits
    if pa.types.is_decimal256(kind) or (pa.types.is_decimal(kind) and kind.scale < 0):
        return pa.array(_texts(column.to_pylist()), pa.large_string())
    return column.cast(pa.float32()) if pa.types.is_float16(kind) else column
