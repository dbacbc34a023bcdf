"""Text in data frames for the engines: what is not UTF-8 is handed on as bytes.

Arrow does not check the bytes it is given, and pandas and Polars take columns from it. DuckDB fails on such
text in some questions and not in others, and some of these failures cannot be repaired. A column that holds
such text is handed on in hexadecimal digits, and the engine reads it as bytes, value by value, as it reads
the bytes of every other source.
"""

from __future__ import annotations

from typing import Any


def as_digits(frame: Any) -> tuple[Any, list[int]]:
    """Return the frame with digits for text that is not UTF-8, and the columns that have them.

    Called after the charge: it reads every text.
    """
    match home_of(frame):
        case "pandas":
            return _pandas(frame)
        case "polars":
            return _polars(frame)
        case "pyarrow":
            return _arrow(frame)
        case _:
            return frame, []


def home_of(frame: object) -> str:
    """Return the package that a frame's class, or a class above it, comes from; otherwise an empty text."""
    homes = {base.__module__.partition(".")[0] for base in type(frame).__mro__}
    return next((home for home in ("pandas", "polars", "pyarrow") if home in homes), "")


def _arrow(table: Any) -> tuple[Any, list[int]]:
    import pyarrow as pa

    changed = []
    for at, name in enumerate(table.schema.names):
        digits = _digits(table.column(at))
        if digits is not None:
            table = table.set_column(at, name, pa.array(digits, pa.large_string()))
            changed.append(at)
    return table, changed


def _polars(frame: Any) -> tuple[Any, list[int]]:
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


def _pandas(frame: Any) -> tuple[Any, list[int]]:
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
        return [text for part in parts for text in _texts(part)]
    return None


def _texts(array: Any) -> list[str | None]:
    import pyarrow as pa

    plain = getattr(array, "storage", array)
    plain = plain.dictionary_decode() if pa.types.is_dictionary(plain.type) else plain
    values = plain.cast(pa.large_binary()).to_pylist()
    return [None if value is None else value.hex() for value in values]
