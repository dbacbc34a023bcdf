"""Frames made safe to scan: no value of any row can make the engine raise.

What a frame holds is decided by whoever's rows are in it. A text that is no text (a lone surrogate), an
object that cannot be written, a moment far outside of the calendar would each abort every query of the table
and so tell of one row. They become missing or harmless here, value by value, whatever the other rows hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["scannable"]

_COARSE = {"s", "ms"}


def scannable(frame: Any) -> Any:
    """Return a frame that DuckDB scans without failing; called after the charge."""
    home = type(frame).__module__.partition(".")[0]
    if home == "pandas":
        return _pandas(frame)
    if home == "polars":
        return _polars(frame)
    return _arrow(frame) if home == "pyarrow" else frame


def _pandas(frame: Any) -> Any:
    safe = frame.copy(deep=False)
    for at, kind in enumerate(frame.dtypes):
        column = frame.iloc[:, at]
        if kind.kind == "O":
            safe.isetitem(at, _texts(column.tolist()))
        elif kind.kind == "M" and getattr(kind, "tz", None) is not None:
            safe.isetitem(at, column.dt.tz_convert(None))  # universal time, as DuckDB would read it
    return safe


def _texts(values: Sequence[object]) -> Sequence[object]:
    """Return the values as texts or None. All texts, the usual case, is settled in one go."""
    try:
        "".join(values).encode()  # type: ignore[arg-type]
    except (TypeError, UnicodeEncodeError):
        return [_text(value) for value in values]
    return values


def _text(value: object) -> str | None:
    try:
        if value is None or value != value:
            return None
        text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        return text.encode(errors="replace").decode()
    except Exception:  # noqa: BLE001 - pandas.NA refuses to be compared; objects may refuse anything
        return None


def _polars(frame: Any) -> Any:
    import polars as pl

    zoned = [
        name
        for name, kind in zip(frame.columns, frame.dtypes, strict=True)
        if isinstance(kind, pl.Datetime) and kind.time_unit == "ms" and kind.time_zone is not None
    ]
    universal = pl.col(zoned).dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return frame.with_columns(universal) if zoned else frame


def _arrow(table: Any) -> Any:
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit in _COARSE and field.type.tz is not None:
            fine = table.column(at).cast(pa.timestamp("us", field.type.tz), safe=False)
            table = table.set_column(at, field.name, fine)
    return table
