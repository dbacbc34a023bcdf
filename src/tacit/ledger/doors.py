"""The door for words and dates: what enters the log is bounded, printable and means one thing."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from tacit.errors import bad_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["instant", "labels_of", "name_of", "prose", "token"]


def name_of(name: str, value: object) -> str:
    """Read an account's or a unit's name: 1 to 200 printable characters."""
    return _printable(name, value, 200)


def token(name: str, value: object) -> str:
    """Read a plan hash or an idempotency key: 1 to 200 printable characters."""
    return _printable(name, value, 200)


def _printable(name: str, value: object, longest: int) -> str:
    must_be = f"1 to {longest} printable characters"
    if not isinstance(value, str) or not 1 <= len(value) <= longest or not value.isprintable():
        raise bad_parameter(name, must_be, value, fix=f"{name}='visits'")
    if value.strip() != value:
        raise bad_parameter(
            name, f"{must_be} without spaces at its ends", value, fix=f"{name}={value.strip()!r}"
        )
    return value


def prose(name: str, value: object, *, needed: bool = False) -> str:
    """Read free text for people, such as a purpose: up to 2,000 characters of valid Unicode."""
    must_be = f"{'a sentence' if needed else 'text'} of at most 2000 characters"
    if not isinstance(value, str) or len(value) > 2000 or (needed and not value.strip()):
        raise bad_parameter(name, must_be, value, fix=f"{name}='monthly report'")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise bad_parameter(name, f"{must_be} in valid Unicode", value, fix=f"{name}='...'") from None
    return value


def labels_of(labels: Mapping[str, str] | None) -> dict[str, str]:
    """Read labels: at most 50 short names with short values."""
    if labels is None:
        return {}
    if not hasattr(labels, "items") or len(labels) > 50:
        raise bad_parameter(
            "labels", "a mapping of at most 50 names", labels, fix="labels={'team': 'oncology'}"
        )
    return {name_of("labels", key): prose("labels", value) for key, value in labels.items()}


def instant(name: str, value: date | datetime | None) -> datetime | None:
    """Read a last day (charges are taken through its end, UTC) or a last moment (with its time zone)."""
    if value is None:
        return None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise bad_parameter(
                name, "a date, or a datetime with a time zone", value, fix=f"{name}=date(2030, 12, 31)"
            )
        return value.astimezone(UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC) + timedelta(days=1)
    raise bad_parameter(
        name, "a date, or a datetime with a time zone", value, fix=f"{name}=date(2030, 12, 31)"
    )
