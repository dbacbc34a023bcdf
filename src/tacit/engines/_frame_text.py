"""Text in data frames for the engines: decode what is not UTF-8.

Arrow does not check the bytes it is given, and pandas and Polars take columns from it. DuckDB fails on such
text in some questions and not in others, and some of these failures cannot be repaired. A column that holds
such text is decoded here, value by value. Bytes that are not UTF-8 are written out, so that different ones
stay different.
"""

from __future__ import annotations

from typing import Any

__all__ = ["decodable", "home_of"]


def decodable(frame: Any) -> Any:
    """Return the frame, or one in which all text is UTF-8; called after the charge."""
    match home_of(frame):
        case "pandas":
            return _pandas(frame)
        case "polars":
            return _polars(frame)
        case "pyarrow":
            return _arrow(frame)
        case _:
            return frame


def home_of(frame: object) -> str:
    """Return the package that a frame's class, or a class above it, comes from; otherwise an empty text."""
    homes = {base.__module__.partition(".")[0] for base in type(frame).__mro__}
    return next((home for home in ("pandas", "polars", "pyarrow") if home in homes), "")


def _arrow(table: Any) -> Any:
    import pyarrow as pa

    for at, name in enumerate(table.schema.names):
        texts = _decoded(table.column(at))
        if texts is not None:
            table = table.set_column(at, name, pa.array(texts, pa.large_string()))
    return table


def _polars(frame: Any) -> Any:
    import polars as pl

    safe = frame.clone()
    for at, name in enumerate(frame.columns):
        column = frame.to_series(at)
        if isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum):
            texts = _decoded(column.to_arrow())
            if texts is not None:
                safe.replace_column(at, pl.Series(name, texts, dtype=pl.String))
    return safe


def _pandas(frame: Any) -> Any:
    safe = frame.copy(deep=False)
    for at, kind in enumerate(frame.dtypes):
        if type(kind).__name__ != "ArrowDtype" and getattr(kind, "storage", "") != "pyarrow":
            continue
        import pyarrow as pa

        texts = _decoded(pa.array(frame.iloc[:, at].array))
        if texts is not None:
            safe.isetitem(at, texts)
    return safe


def _decoded(column: Any) -> list[str | None] | None:
    """Return the decoded values of an Arrow column; None if all of its text is UTF-8."""
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
    return [None if value is None else value.decode(errors="backslashreplace") for value in values]
