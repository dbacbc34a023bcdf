"""The core's public facts about data: what the curator declares and every plan may rely on.

Facts are frozen, and no fact is read from the data.
Fixes name them in the words of a field: facts are declared by the field's own function.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

from tacit.errors import TacitError, bad_parameter
from tacit.exact import count, rational
from tacit.fixes import Choose, Code, Declare, Either, Set

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.fixes import Fix


Kind: TypeAlias = Literal["number", "text", "boolean", "date"]
KINDS: tuple[Kind, ...] = ("number", "text", "boolean", "date")
#: The kind of a public key, by the type as which `read_keys` returns it; text may stand for a date.
KEY_KINDS: dict[type, Kind] = {float: "number", bool: "boolean", str: "text"}

#: The public default where the curator sets no limit: ten rows of each unit count. Which ten depends only on
#: that unit's own rows.
DEFAULT_ROWS = 10
#: The public default for the pairs of rows that one unit can form in a join. More would let one person decide
#: how long a question takes and how much memory it needs.
DEFAULT_PAIRS = 10_000
_MAX_LIMIT = 10**9
#: A limit as the curator writes it: a number, or the limits of one table.
LimitGiven: TypeAlias = int | Mapping[str, int | None] | None

_WRITTEN: dict[str, Kind] = {
    **dict.fromkeys(
        ("number", "integer", "int", "float", "double", "real", "decimal", "bigint", "numeric"), "number"
    ),
    **dict.fromkeys(("text", "str", "string", "varchar", "category"), "text"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("date", "datetime", "timestamp", "time"), "date"),
}
_LIMITS = {
    "rows": "rows", "rows_per_unit": "rows", "groups": "groups", "groups_per_unit": "groups",
    "per_group": "per_group",
    "rows_per_group": "per_group", "joined": "joined", "pairs": "pairs",
}  # fmt: skip
_LIMIT = Declare("limits", DEFAULT_ROWS, column="rows")


@dataclass(frozen=True, slots=True)
class Fact:
    """What is publicly known about a column.

    Its kind, its bounds, its keys, whether it is never NULL and whether it names the unit. ``unreadable``
    holds the type of a column that cannot be read safely. ``stored`` is what the source declares the column
    to be: number, text, boolean or moment; it is empty where the source declares no type. Bounds that are a
    ``default`` hold where a question gives no other; values may lie outside. ``dates`` is the order in which
    the column's CSV file writes dates, if it is not the year first. ``order`` has the keys as the curator
    listed them, if that is not their own order; answers show groups in it. ``auto`` says that questions find
    the bounds of the column privately; with bounds, that a release did.
    """

    kind: Kind | None = None
    bounds: tuple[Fraction, Fraction] | None = None
    keys: tuple[object, ...] | None = None
    never_null: bool = False
    unit: bool = False
    unreadable: str = ""
    default: bool = False
    stored: str = ""
    dates: str = ""
    order: tuple[object, ...] = ()
    auto: bool = False


_UNKNOWN = Fact()  # of a column about which nothing is declared


@dataclass(frozen=True, slots=True)
class Table:
    """One declared table: protected (its rows belong to units), or public (``key`` is unique in it).

    ``reading`` is what the curator declared of how its file is written, such as its encoding. It is part of
    every question: the same file read in another way has other answers. ``unique`` are the unit's columns
    that the catalogue of the database keeps unique, if the limit of one row follows from them.
    """

    name: str
    facts: Mapping[str, Fact] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    key: str | None = None
    reading: tuple[tuple[str, str], ...] = ()
    unique: tuple[str, ...] = ()

    def fact(self, column: str) -> Fact:
        """Return what is known of a column, also from how its file is written."""
        fact = self.facts.get(column, _UNKNOWN)
        dates = dict(self.reading).get("dates", "")
        return replace(fact, dates=dates) if dates else fact


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one unit may contribute.

    Rows beyond a limit are dropped. Which rows are dropped depends only on the unit's own rows.

    Parameters
    ----------
    rows
        Rows of each declared table, before WHERE. If the curator chose it, a question can lower it but cannot
        raise it.
    groups
        Groups of one answer, after WHERE.
    per_group
        Rows within one group.
    joined
        Rows after a join of two protected tables. Without it, the limits of the two tables multiply.
    pairs
        Pairs of rows that one unit can form in a join, before ``joined`` drops any. A question that could
        form more is refused.
    is_default
        Whether ``rows`` is the default, not a chosen limit.
    of_tables
        Rows of single tables, by name, where they differ from ``rows``.
    keyed
        The tables in which a unique key leaves each unit one row: there the default is one row.

    Examples
    --------
    >>> Limits.read({"rows": 5})
    Limits(rows=5, groups=None, per_group=None, joined=None, pairs=10000)
    >>> Limits.read({"rows": 5, "visits": {"rows": 20}}).rows_of("visits")
    20
    """

    rows: int | None = DEFAULT_ROWS
    groups: int | None = None
    per_group: int | None = None
    joined: int | None = None
    pairs: int = DEFAULT_PAIRS
    is_default: bool = field(default=False, repr=False, compare=False)
    of_tables: tuple[tuple[str, int | None], ...] = field(default=(), repr=False)
    keyed: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def read(cls, given: Mapping[str, LimitGiven] | Limits | None) -> Limits:
        """Read limits as the curator writes them. Where nothing bounds a unit, ten rows count."""
        if given is None:
            return cls(is_default=True)
        if isinstance(given, Limits):
            return given
        if not isinstance(given, Mapping):
            raise bad_parameter("limits", "a mapping", given, fix=_LIMIT)
        limits: dict[str, int | None] = {}
        table_limits: dict[str, int | None] = {}
        for name, value in given.items():
            if isinstance(value, Mapping):
                table_limits[name] = _of_table(name, value)
                continue
            short = _LIMITS.get(name)
            if short is None:
                names = tuple(sorted(set(_LIMITS.values())))
                fix = Choose(names, given=str(name))
                raise bad_parameter("the name of a limit", "one that Tacit knows", name, fix=fix)
            limits[short] = None if value is None else _limit(name, value)
        is_default = "rows" not in limits and not (limits.get("groups") and limits.get("per_group"))
        rows, pairs = DEFAULT_ROWS if is_default else limits.get("rows"), limits.get("pairs") or DEFAULT_PAIRS
        of_tables = tuple(sorted(table_limits.items()))
        return cls(
            rows,
            limits.get("groups"),
            limits.get("per_group"),
            limits.get("joined"),
            pairs,
            is_default,
            of_tables,
        )

    def but(self, **changes: int | None) -> Limits:
        """Return these limits with some of them replaced."""
        now: dict[str, LimitGiven] = {
            "rows": self.rows, "groups": self.groups, "per_group": self.per_group, "joined": self.joined,
            "pairs": self.pairs,
        }  # fmt: skip
        limits = Limits.read({**now, **changes})
        is_default = self.is_default and limits.rows == self.rows
        return replace(limits, is_default=is_default, of_tables=self.of_tables, keyed=self.keyed)

    def rows_of(self, table: str) -> int | None:
        """Return how many rows of one unit count in a table; None where nothing limits them."""
        by_key = self.is_default and table in self.keyed
        return dict(self.of_tables).get(table, 1 if by_key else self.rows)

    def is_default_of(self, table: str) -> bool:
        """Return whether nobody chose how many rows of this table count."""
        return self.is_default and table not in dict(self.of_tables)

    def allows(self, table: str, rows: int | None) -> bool:
        """Return whether a question may count this many rows of one unit in a table.

        Every number is private, because noise grows with it. A limit that the curator chose is the most that
        a question may count; the default, which nobody chose, can be raised.
        """
        declared = self.rows_of(table)
        if rows is None:
            return declared is None
        return 0 < rows <= (_MAX_LIMIT if declared is None or self.is_default_of(table) else declared)


def _of_table(table: str, limits: Mapping[str, int | None]) -> int | None:
    """Read the limit of one table: only its rows can be limited, for groups belong to questions."""
    if len(limits) != 1 or _LIMITS.get(next(iter(limits))) != "rows":
        raise bad_parameter(
            f"the limit of the table {table!r}", "rows and nothing else", dict(limits), fix=Set(rows=20)
        )
    ((name, value),) = limits.items()
    return None if value is None else _limit(name, value)


def _limit(name: str, value: int) -> int:
    fix = Declare("limits", DEFAULT_ROWS, column=name)
    words = f"the limit {name!r}"
    limit = count(words, value, zero=False, fix=fix)
    if limit > _MAX_LIMIT:
        raise bad_parameter(words, f"at most {_MAX_LIMIT:,}", value, fix=fix)
    return limit


@dataclass(frozen=True, slots=True)
class _Fact:
    """A fact about one column, as its curator declares it, with an example of it."""

    name: Literal["types", "bounds", "keys"]
    column: str
    example: object

    @property
    def words(self) -> str:
        """What a refusal calls it: the bounds of 'age'."""
        return f"the {'type' if self.name == 'types' else self.name} of {self.column!r}"

    @property
    def fix(self) -> Declare:
        """A declaration that is accepted."""
        return Declare(self.name, self.example, column=self.column)

    def refusal(self, must_be: str, got: object, *, why: str = "") -> TacitError:
        """Say what was declared in its place."""
        return bad_parameter(self.words, must_be, got, why=why, fix=self.fix)


def read_kind(column: str, written: object) -> Kind:
    """Read a declared type: a word such as ``"number"``, an SQL type or a Python type."""
    word = written.__name__ if isinstance(written, type) else written
    kind = _WRITTEN.get(word.lower()) if isinstance(word, str) else None
    if kind is None:
        raise _Fact("types", column, "number").refusal("number, text, boolean or date", written)
    return kind


def read_bounds(column: str, given: object) -> tuple[Fraction, Fraction]:
    """Read a pair of bounds, low below high."""
    bounds = _Fact("bounds", column, (0, 30))
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise bounds.refusal("a pair (low, high)", given)
    low, high = (rational(bounds.words, end, zero=True, negative=True, fix=bounds.fix) for end in given)
    if not low < high:
        raise bounds.refusal("a pair with low below high", given)
    if max(abs(low), abs(high)) > Fraction(10) ** 100 or high - low < Fraction(1, 10**100):
        raise bounds.refusal("between 1e-100 and 1e100 in size", given)
    return low, high


def read_keys(column: str, given: object) -> tuple[object, ...]:
    """Read a list of public keys: different plain values of one kind, sorted."""
    declared = _Fact("keys", column, ["A", "B"])
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise declared.refusal("a list of values", given)
    keys = [_plain(declared, value) for value in given]
    if not keys:
        raise declared.refusal("a list of at least one value", given)
    if len({type(key) for key in keys}) > 1:
        raise declared.refusal("values of one kind", keys)
    if len(set(keys)) != len(keys):
        raise declared.refusal("a list of different values", keys, why="each key is one row of the answer")
    return tuple(sorted(keys))  # type: ignore[type-var]


def is_writable(text: str) -> bool:
    """Return whether UTF-8 can write a text: a lone half of a surrogate pair cannot be written.

    Examples
    --------
    >>> is_writable("Zoë"), is_writable(chr(0xD800))
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(keys: _Fact, value: object) -> object:
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or (isinstance(value, str) and is_writable(value)):
        return value
    if isinstance(value, date):
        return _moment(value)
    if isinstance(value, int | float) and value == value and abs(value) < 2**53:
        return float(value)
    raise keys.refusal("a list of texts, numbers, booleans or dates", value)


def _moment(value: date) -> str:
    """Write a date as the engine writes it. Keys that are dates are text."""
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    text = moment.replace(tzinfo=None).isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


@contextlib.contextmanager
def fixes_of(function: str) -> Iterator[None]:
    """Let refusals inside name the function that declares this kind of data, not ``tc.protect``.

    Examples
    --------
    >>> with fixes_of("tc.points"):
    ...     raise TacitError("bad-parameter", "the name is empty", fix=Declare("name", "sites"))
    Traceback (most recent call last):
    tacit.errors.TacitError: the name is empty
      fix: tc.points(..., name="sites")
      code: bad-parameter
    """
    try:
        yield
    except TacitError as refusal:
        fix = _declared_by(refusal.fix, function)
        raise refusal.but(fix=fix) from None


def _declared_by(fix: Fix, function: str) -> Fix:
    match fix:
        case Declare():
            return replace(fix, function=function)
        case Code(python):
            return Code(python.replace("tc.protect(", f"{function}("))
        case Either(fixes):
            return Either(*(_declared_by(one, function) for one in fixes))
        case _:
            return fix
