"""Public facts about data.

What the curator declares and every plan may rely on. Frozen, never read from the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from fractions import Fraction
from typing import Literal, TypeAlias

from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational

__all__ = [
    "DEFAULT_ROWS",
    "KINDS",
    "Fact",
    "Kind",
    "Limits",
    "Table",
    "read_bounds",
    "read_keys",
    "read_kind",
]

Kind: TypeAlias = Literal["number", "text", "boolean", "date"]
KINDS: tuple[Kind, ...] = ("number", "text", "boolean", "date")

#: The public rule where the curator sets no limit: a unit's first ten rows, in an order that only its own
#: rows decide.
DEFAULT_ROWS = 10
_MOST = 10**9

_WRITTEN: dict[str, Kind] = {
    **dict.fromkeys(
        ("number", "integer", "int", "float", "double", "real", "decimal", "bigint", "numeric"), "number"
    ),
    **dict.fromkeys(("text", "str", "string", "varchar", "category"), "text"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("date", "datetime", "timestamp", "time"), "date"),
}


@dataclass(frozen=True, slots=True)
class Fact:
    """What is publicly known of a column.

    Its kind, its bounds, its keys, whether it is never NULL or names the unit; and the type of a column that
    cannot be read safely.
    """

    kind: Kind | None = None
    bounds: tuple[Fraction, Fraction] | None = None
    keys: tuple[object, ...] | None = None
    never_null: bool = False
    unit: bool = False
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One declared table: protected (owned by units) or public (``key`` is unique in it)."""

    name: str
    facts: Mapping[str, Fact] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    key: str | None = None

    @property
    def public(self) -> bool:
        """Whether the table is public, so that nothing in it needs protection."""
        return self.key is not None


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one unit may contribute.

    What exceeds a limit is left out, by an order that only its own rows decide.

    Parameters
    ----------
    rows
        Rows of each declared table, before WHERE.
    groups
        Groups of one answer, after WHERE.
    per_group
        Rows within one group.
    joined
        Rows after a join of two protected tables; without it the limits of the two multiply.

    Examples
    --------
    >>> Limits.read({"rows": 5})
    Limits(rows=5, groups=None, per_group=None, joined=None)
    """

    rows: int | None = DEFAULT_ROWS
    groups: int | None = None
    per_group: int | None = None
    joined: int | None = None

    @classmethod
    def read(cls, given: Mapping[str, int | None] | Limits | None) -> Limits:
        """Read limits as the curator writes them; where nothing bounds a unit, ten rows is the rule."""
        if given is None:
            return cls()
        if isinstance(given, Limits):
            return given
        if not isinstance(given, Mapping):
            raise bad_parameter("limits", "a mapping", given, fix='limits={"rows": 10}')
        read: dict[str, int | None] = {}
        for name, value in given.items():
            short = _LIMITS.get(name)
            if short is None:
                raise bad_parameter(
                    "a limit",
                    f"one of {', '.join(sorted(set(_LIMITS.values())))}",
                    name,
                    fix='limits={"rows": 10}',
                )
            read[short] = None if value is None else count(f"limits[{name!r}]", value, zero=False)
            if (read[short] or 0) > _MOST:
                raise bad_parameter(f"limits[{name!r}]", f"at most {_MOST}", value, fix='limits={"rows": 10}')
        if "rows" not in read and not (read.get("groups") and read.get("per_group")):
            read["rows"] = DEFAULT_ROWS
        return cls(read.get("rows"), read.get("groups"), read.get("per_group"), read.get("joined"))

    def but(self, **changes: int | None) -> Limits:
        """Return these limits with some of them changed."""
        now: dict[str, int | None] = {
            "rows": self.rows, "groups": self.groups, "per_group": self.per_group, "joined": self.joined,
        }  # fmt: skip
        return Limits.read({**now, **changes})


_LIMITS = {
    "rows": "rows", "rows_per_unit": "rows", "groups": "groups", "groups_per_unit": "groups",
    "per_group": "per_group",
    "rows_per_group": "per_group", "joined": "joined",
}  # fmt: skip


def read_kind(column: str, written: object) -> Kind:
    """Read a declared type: a word such as ``"number"``, an SQL type or a Python type."""
    word = written.__name__ if isinstance(written, type) else written
    kind = _WRITTEN.get(word.lower()) if isinstance(word, str) else None
    if kind is None:
        raise bad_parameter(
            f"types[{column!r}]",
            "number, text, boolean or date",
            written,
            fix=f'types={{"{column}": "number"}}',
        )
    return kind


def read_bounds(column: str, given: object) -> tuple[Fraction, Fraction]:
    """Read a pair of bounds, low below high."""
    fix = f'bounds={{"{column}": (0, 30)}}'
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise bad_parameter(f"bounds[{column!r}]", "a pair (low, high)", given, fix=fix)
    low, high = (_number(f"bounds[{column!r}]", b) for b in given)
    if not low < high:
        raise bad_parameter(f"bounds[{column!r}]", "a pair with low below high", given, fix=fix)
    if max(abs(low), abs(high)) > Fraction(10) ** 100 or high - low < Fraction(1, 10**100):
        raise bad_parameter(f"bounds[{column!r}]", "between 1e-100 and 1e100 in size", given, fix=fix)
    return low, high


def _number(name: str, value: Number) -> Fraction:
    return rational(name, value, zero=True, negative=True)


def read_keys(column: str, given: object) -> tuple[object, ...]:
    """Read a list of public keys: distinct plain values of one kind, in the order of the answer."""
    fix = f'keys={{"{column}": ["A", "B"]}}'
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise bad_parameter(f"keys[{column!r}]", "a list of values", given, fix=fix)
    keys = [_plain(column, v, fix) for v in given]
    if not keys:
        raise bad_parameter(f"keys[{column!r}]", "a list of at least one value", given, fix=fix)
    if len({type(k) for k in keys}) > 1:
        raise bad_parameter(f"keys[{column!r}]", "values of one kind", keys, fix=fix)
    if len(set(keys)) != len(keys):
        raise TacitError(
            "bad-parameter",
            f"keys[{column!r}] names a value twice",
            why="each key is one line of the answer",
            fix=fix,
        )
    return tuple(sorted(keys))  # type: ignore[type-var]


def _plain(column: str, value: object, fix: str) -> object:
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool | str):
        return value
    if isinstance(value, date):
        return _moment(value)
    if isinstance(value, int | float) and value == value and abs(value) < 2**53:
        return float(value)
    raise bad_parameter(f"keys[{column!r}]", "a list of texts, numbers, booleans or dates", value, fix=fix)


def _moment(value: date) -> str:
    """Write a date as the engine writes it: keys of dates are told as text."""
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    text = moment.replace(tzinfo=None).isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text
