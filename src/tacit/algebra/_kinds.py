"""The kinds and bounds of table expressions: from declared facts and the context, never from the data.

**Ranges of functions**: from public bounds of the arguments to public bounds of the result. Values are
clipped to the bounds that are derived here, so a rounding error of a float at an end costs accuracy at most,
never privacy. A function without a range here has no derived bounds.

**Comparisons that cannot mean what they say**, because of how the source stores a column. Parquet files and
databases declare the types of their columns, which are public. A boolean that is compared with ``'YES'``
equals it in no row, so the answer would be about 0 and would still be paid for. A CSV file stores text. A
date such as 31.12.2023 is smaller than 5.1.1990 as text, so asking for all dates after it gives an answer
that is wrong and looks right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from tacit.algebra._expressions import (
    OPERATORS,
    Call,
    Column,
    Literal,
    Node,
    as_date,
    is_iso,
    words_of,
)
from tacit.core import KINDS, Fact, Kind
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Code, Declare, Do, Either, Fix, Say, Set

if TYPE_CHECKING:
    from collections.abc import Callable


#: The lower and the upper end of a range.
Ends: TypeAlias = tuple[Fraction, Fraction]
_KIND_WORDS: dict[Kind, str] = {
    "number": "a number",
    "text": "text",
    "boolean": "a boolean",
    "date": "a date",
}
_SQL_TYPES: dict[Kind, str] = {"number": "DOUBLE", "text": "TEXT", "boolean": "BOOLEAN", "date": "DATE"}
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "in"})


def _span(low: int, high: int) -> Ends:
    return Fraction(low), Fraction(high)


#: The parts of a date that have a natural range.
DATE_PARTS: dict[str, Ends] = {
    "quarter": _span(1, 4), "month": _span(1, 12), "week": _span(1, 53), "day": _span(1, 31),
    "dayofyear": _span(1, 366), "weekday": _span(0, 6), "isodow": _span(1, 7), "hour": _span(0, 23),
    "minute": _span(0, 59), "second": _span(0, 59),
}  # fmt: skip


def _absolute(a: Ends) -> Ends:
    return max(a[0], -a[1], Fraction(0)), max(abs(a[0]), abs(a[1]))


def _corners(a: Ends, b: Ends) -> Ends:
    products = [x * y for x in a for y in b]
    return min(products), max(products)


def _increasing(
    function: Callable[[float], float], lower: float, upper: float
) -> Callable[[Ends], Ends | None]:
    """Return the range of an increasing function that is defined between ``lower`` and ``upper``."""

    def ends(a: Ends) -> Ends | None:
        if a[0] < lower or a[1] > upper:
            return None
        return Fraction(function(float(a[0]))), Fraction(function(float(a[1])))

    return ends


def _root(a: Ends) -> Ends | None:
    """Return the range of a root; below zero it is NULL."""
    if a[1] < 0:
        return None
    return Fraction(math.sqrt(max(a[0], Fraction(0)))), Fraction(math.sqrt(a[1]))


def _divided(a: Ends, b: Ends) -> Ends | None:
    return None if b[0] <= 0 <= b[1] else _corners(a, (1 / b[1], 1 / b[0]))


def _remainder(a: Ends, b: Ends) -> Ends:
    """Return the range of a remainder: it has the sign of the first number, and is smaller than either."""
    limit = min(max(abs(b[0]), abs(b[1])), max(abs(a[0]), abs(a[1])))
    return (Fraction(0) if a[0] >= 0 else -limit), (Fraction(0) if a[1] <= 0 else limit)


def _rounded(a: Ends, digits: Ends) -> Ends | None:
    if digits[0] != digits[1] or abs(digits[0]) > 15:
        return None
    half = Fraction(10) ** -int(digits[0]) / 2
    return a[0] - half, a[1] + half


def _power(a: Ends, exponent: Ends) -> Ends | None:
    """Return the range of a power with a constant exponent; small whole exponents only."""
    n = exponent[0]
    if n != exponent[1] or n != int(n) or not 0 < n <= 20:
        return None
    low, high = _absolute(a) if n % 2 == 0 else a
    return low ** int(n), high ** int(n)


_ANY, _POSITIVE = -math.inf, 5e-324
OF_ONE: dict[str, Callable[[Ends], Ends | None]] = {
    "neg": lambda a: (-a[1], -a[0]),
    "abs": _absolute,
    "floor": lambda a: (Fraction(math.floor(a[0])), Fraction(math.floor(a[1]))),
    "ceil": lambda a: (Fraction(math.ceil(a[0])), Fraction(math.ceil(a[1]))),
    "trunc": lambda a: (Fraction(math.trunc(a[0])), Fraction(math.trunc(a[1]))),
    "to_whole": lambda a: (Fraction(round(a[0])), Fraction(round(a[1]))),
    "to_number": lambda a: a,
    "sign": lambda a: (Fraction((a[0] > 0) - (a[0] < 0)), Fraction((a[1] > 0) - (a[1] < 0))),
    "sqrt": _root,
    "exp": _increasing(math.exp, _ANY, 200),
    "ln": _increasing(math.log, _POSITIVE, math.inf),
    "log2": _increasing(math.log2, _POSITIVE, math.inf),
    "log10": _increasing(math.log10, _POSITIVE, math.inf),
}
OF_TWO: dict[str, Callable[[Ends, Ends], Ends | None]] = {
    "least": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "greatest": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _corners,
    "div": _divided,
    "mod": _remainder,
    "round": _rounded,
    "power": _power,
}


_LATE_YEAR = re.compile(r"\s*\d{1,2}([./-])\d{1,2}\1\d{4}([ T].*)?")
_ORDERS = frozenset({"lt", "le", "gt", "ge"})
_EQUALITIES = frozenset({"eq", "ne", "in"})
_STORED_WORDS: dict[str, str] = {"boolean": "a boolean", "number": "a number", "moment": "a date"}
_EXAMPLE_KEYS: dict[str, list[object]] = {
    "boolean": [True, False], "number": [1, 2], "moment": ["2026-01-01", "2026-02-01"],
}  # fmt: skip


def check_comparable(op: str, args: Sequence[Node], facts: Scope) -> None:
    """Refuse a comparison of a column with constants if no value of its stored type can equal any of them."""
    if op not in _EQUALITIES:
        return
    columns = [a for a in args if isinstance(a, Column)]
    values = [a.value for a in args if isinstance(a, Literal) and a.value is not None]
    if len(columns) != 1 or len(columns) + len(values) != len(args):
        return
    stored = facts[columns[0].name].stored
    if stored in _STORED_WORDS and all(_never_equals(value, stored) for value in values):
        name = columns[0].name
        raise TacitError(
            "bad-expression",
            f"{name} is stored as {_STORED_WORDS[stored]}, so {words_of(Call(op, tuple(args)))} "
            f"has the same result in every row",
            why="the question would cost budget, and its answer is known without the data",
            fix=compare_with(columns[0], stored, values[0]),
        )


def check_dates(op: str, args: Sequence[Node], facts: Scope) -> None:
    """Refuse to compare a column as text with a date that is not written with the year first.

    If the file's order of dates is declared, its cells have the year first in every question, so none of them
    equals such a date. Otherwise only the order of two such texts means nothing.
    """
    columns = [a for a in args if isinstance(a, Column) and a.kind is None]
    texts = [a.value for a in args if isinstance(a, Literal) and isinstance(a.value, str)]
    late_year = next((match for text in texts if (match := _LATE_YEAR.fullmatch(text))), None)
    if late_year is None or len(columns) != 1 or (op not in _ORDERS and not facts[columns[0].name].dates):
        return
    name, sign = words_of(columns[0]), late_year[1]
    if declared := facts[columns[0].name].dates:
        why = f"the file declares that dates are written as {declared}: in questions the year stands first"
        fix = Say("write the date with the year first, such as '2024-01-31'")
    else:
        why = f"{name} is read as text here, and text is compared letter by letter, so the day counts first"
        form = sign.join(("%m", "%d", "%Y") if sign == "/" else ("%d", "%m", "%Y"))
        column = name if name.isidentifier() else f'"{name}"'
        fix = Say(f"STRPTIME({column}, '{form}') and a date with the year first, such as DATE '2024-01-31'")
    raise TacitError(
        "bad-expression", f"{words_of(Call(op, tuple(args)))} does not compare dates", why=why, fix=fix
    )


def check_possible_keys(name: str, node: Node, keys: Sequence[object], facts: Scope) -> None:
    """Refuse public keys of a column if no value of its stored type can equal any of them."""
    stored = facts[node.name].stored if isinstance(node, Column) else ""
    if stored in _STORED_WORDS and all(_never_equals(key, stored) for key in keys):
        raise bad_parameter(
            f"keys of {name!r}",
            f"of the type of the column, which is stored as {_STORED_WORDS[stored]}",
            keys[0],
            fix=Set(keys={name: _EXAMPLE_KEYS[stored]}),
        )


def _never_equals(value: object, stored: str) -> bool:
    """Return whether no value of a stored type, read as the kind of a constant, equals the constant."""
    match stored:
        case "boolean":
            return isinstance(value, str) and value not in {"true", "false"}
        case "number":
            return isinstance(value, str) and not _is_number(value)
        case "moment":  # the text of a moment starts with its year
            return not isinstance(value, str) or not value[:1].isdigit()
        case _:
            return False


def compare_with(node: Node, stored: str, value: object) -> Do:
    """Offer a comparison with a constant of the right kind; a column may have been meant by text."""
    no = str(value).strip().lower() in {"no", "n", "false", "f", "0"}
    right = {"boolean": "FALSE" if no else "TRUE", "number": "1", "moment": "DATE '2026-01-31'"}
    meant = {"text": value} if isinstance(value, str) else {}
    return Do("compare-in-question", expression=words_of(node), value=right[stored], **meant)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class Scope(Mapping[str, Fact]):
    """The columns that an expression can use.

    An open scope does not know all names (the source is not available) and accepts any. A narrowed scope is
    what a select or a subquery kept of a larger one.
    """

    __slots__ = ("_facts", "narrowed", "open")

    def __init__(
        self,
        facts: Mapping[str, Fact],
        *,
        open: bool = False,  # noqa: A002
        narrowed: bool = False,
    ) -> None:
        self._facts = dict(facts)
        self.open = open
        self.narrowed = narrowed

    def __getitem__(self, name: str) -> Fact:
        return self._facts[name] if not self.open else self._facts.get(name, Fact())

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __contains__(self, name: object) -> bool:
        return self.open or name in self._facts


def kind_of(node: Node) -> Kind | None:
    """Return the kind of a resolved expression (None: the constant NULL)."""
    match node:
        case Column(_, kind) | Literal(_, kind):
            return kind
        case Call("case", args):
            return next((k for a in (*args[1::2], args[-1]) if (k := kind_of(a))), None)
        case Call("coalesce", args):
            return next((k for a in args if (k := kind_of(a))), None)
        case Call(op, _):
            return _kind(OPERATORS[op].gives)


def resolve(node: Node, scope: Scope, want: Kind | None = None) -> Node:
    """Return the expression with every column's kind set, or refuse it.

    Parameters
    ----------
    node
        The expression as written.
    scope
        The columns that exist, with their facts. An open scope accepts any name.
    want
        The kind that the context needs; a column of undeclared kind takes it.
    """
    match node:
        case Column(name, None):
            fact = _fact(name, scope)
            return _agree(Column(name, fact.kind or want), want, bounded=fact.bounds is not None)
        case Column():
            return _agree(node, want)
        case Literal(value, kind):
            if kind == "text" and want == "date":
                return as_date(str(value))
            return node if value is None else _agree(node, want)
        case Call(op, args):
            return _agree(Call(op, _arguments(op, args, scope, want)), want)


def as_number(node: Node, scope: Scope) -> Node:
    """Return a condition as the number 1 or 0, so that it can be added up; anything else as it is."""
    return Call("to_number", (node,)) if kind_of(resolve(node, scope)) == "boolean" else node


def _fact(name: str, scope: Scope) -> Fact:
    """Return the facts of a column, or refuse one that does not exist or cannot be read."""
    fact = scope.get(name)
    if fact is None:
        raise TacitError(
            "unknown-column",
            f"there is no column {name!r} here",
            why="columns that a select or a subquery dropped are not available" if scope.narrowed else "",
            fix=choose_name(name, tuple(sorted(scope))) if scope else Declare("types", "number", column=name),
        )
    if fact.unreadable:
        raise TacitError(
            "unreadable-column",
            f"the column {name!r} is stored as {fact.unreadable}, which cannot be read",
            why="one row that cannot be converted would make every query fail and so reveal itself",
            fix="store it as a number, text, a date or a timestamp in microseconds",
        )
    return fact


def choose_name(given: str, names: tuple[str, ...]) -> Choose:
    """Offer the names that exist; a name that is close to the given one comes first."""
    plain = {name.strip().lower(): name for name in names}
    close = get_close_matches(given.strip().lower(), plain, 1)
    return Choose(names, given=given, close=plain[close[0]] if close else "")


def _arguments(op: str, args: tuple[Node, ...], scope: Scope, want: Kind | None) -> tuple[Node, ...]:
    rule = OPERATORS.get(op)
    if rule is None:
        raise TacitError(
            "bad-expression", f"there is no operator {op!r}", fix=choose_name(op, tuple(OPERATORS))
        )
    for i in rule.constant:
        if i < len(args) and not isinstance(args[i], Literal):
            raise TacitError(
                "bad-expression",
                f"argument {i + 1} of {op} must be a constant, got {words_of(args[i])}",
                why="it must be known before the data is read",
                fix="write the value itself",
            )
    if op == "case":
        return _branches(args, scope, want)
    takes = _expand(op, rule.takes, len(args))
    if takes[0] == "same":
        return _shared(args, scope, want if rule.gives == "same" else None, op)
    if takes == ("any",):
        return (resolve(args[0], scope, _default(args[0], scope, op)),)
    return tuple(resolve(a, scope, _kind(k)) for a, k in zip(args, takes, strict=True))


def _branches(args: tuple[Node, ...], scope: Scope, want: Kind | None) -> tuple[Node, ...]:
    """Resolve the conditions and values of a CASE; its values share one kind."""
    if len(args) % 2 == 0:
        raise TacitError(
            "bad-expression",
            "case needs pairs of condition and value, and a default",
            fix=Code('tc.when(tc.col("age") >= 65, "old", "young")'),
        )
    values = _shared((*args[1::2], args[-1]), scope, want, "case")
    conditions = [resolve(a, scope, "boolean") for a in args[:-1:2]]
    pairs = [part for pair in zip(conditions, values[:-1], strict=True) for part in pair]
    return (*pairs, values[-1])


def _default(node: Node, scope: Scope, op: str) -> Kind | None:
    """Read an undeclared column as text if only its presence matters, or as the kind it is converted to."""
    if (
        isinstance(node, Column)
        and node.kind is None
        and node.name in scope
        and scope[node.name].kind is None
    ):
        return "date" if op == "to_date" else "number" if op in {"to_number", "to_whole"} else "text"
    return None


def expand_kinds(op: str, n: int) -> tuple[str, ...]:
    """Return the kinds that an operator of the closed list takes for ``n`` arguments, or refuse them."""
    if op == "case":
        return ("case",) * n if n % 2 else _expand(op, ("case",), n)
    return _expand(op, OPERATORS[op].takes, n)


def _expand(op: str, takes: tuple[str, ...], n: int) -> tuple[str, ...]:
    """Return the kinds that an operator takes for ``n`` arguments."""
    fixed = tuple(k for k in takes if not k.endswith("*"))
    if takes[-1].endswith("*"):
        if n >= max(1, len(fixed)):
            return fixed + (takes[-1][:-1],) * (n - len(fixed))
    elif n == len(fixed):
        return fixed
    needed = "1 argument" if len(fixed) == 1 else f"{len(fixed)} arguments"
    raise TacitError("bad-expression", f"{op} takes {needed}, got {n}", fix=f"{needed} for {op}")


def _kind(name: str) -> Kind:
    return next(k for k in KINDS if k == name)


def _shared(args: tuple[Node, ...], scope: Scope, want: Kind | None, op: str) -> tuple[Node, ...]:
    """Resolve arguments that must share one kind. Beside a date, ISO text is read as a date.

    A column of undeclared kind that is compared with ISO dates is read as dates, however its source stores
    them.
    """
    resolved = [resolve(a, scope) for a in args]
    kinds = {k for a in resolved if (k := kind_of(a)) is not None}
    if want is not None:
        kinds.add(want)
    shared = next(iter(kinds)) if len(kinds) == 1 else "date" if kinds == {"date", "text"} else None
    if shared == "text" and op in _COMPARISONS and _compares_dates(resolved):
        shared = "date"
    if not kinds:
        column = next((a.name for a in args if isinstance(a, Column)), "x")
        raise TacitError(
            "unknown-kind",
            f"{words_of(Call(op, args))} does not show which type its columns have",
            why="types are never guessed from the data; declare number, text, date or boolean",
            fix=Declare("types", "number", column=column),
        )
    if shared is None:
        kinds_in_words = ", ".join(f"{words_of(a)} ({kind_of(a)})" for a in resolved)
        raise TacitError(
            "bad-expression",
            f"{words_of(Call(op, args))} needs values of one kind, got {kinds_in_words}",
            why="values of different kinds are never equal",
            fix=_conversions(resolved, kinds),
        )
    check_comparable(op, resolved, scope)
    if shared == "text" and op in _COMPARISONS:
        check_dates(op, args, scope)
    # only what is still undecided is read again: reading all arguments twice per level takes 2^depth steps
    return tuple(
        b if kind_of(b) == shared and not isinstance(b, Literal) else resolve(a, scope, shared)
        for a, b in zip(args, resolved, strict=True)
    )


def _compares_dates(args: list[Node]) -> bool:
    """Whether all arguments are ISO dates or columns whose kind nobody declared."""
    texts = [a for a in args if kind_of(a) is not None]
    return len(texts) < len(args) and all(
        isinstance(a, Literal) and isinstance(a.value, str) and is_iso(a.value) for a in texts
    )


def _agree(node: Node, want: Kind | None, *, bounded: bool = False) -> Node:
    have = kind_of(node)
    if want is None or have is None or have == want:
        return node
    verb = "is read as" if bounded else "is"
    because = " because bounds are declared for it" if bounded else ""
    raise TacitError(
        "bad-expression",
        f"{words_of(node)} {verb} {_KIND_WORDS[have]}{because}, but {_KIND_WORDS[want]} is needed here",
        why="each operator takes declared kinds, so that it cannot fail on any row",
        fix=_conversion(node, want, (node,)),
    )


def _conversion(node: Node, kind: Kind, beside: Iterable[Node]) -> Fix:
    """Offer a cast. ``text`` holds a text constant that is involved: a column may have been meant."""
    texts = [a.value for a in beside if isinstance(a, Literal) and isinstance(a.value, str)]
    meant = {"text": texts[0]} if texts else {}
    return Do("convert-in-question", expression=words_of(node), type=_SQL_TYPES[kind], **meant)


def _conversions(nodes: list[Node], kinds: set[Kind]) -> Fix:
    """Offer to cast the values, if possible those that are not constants, to the other kinds.

    A boolean cast to text equals nothing that people write, so it is compared with TRUE or FALSE instead.
    """
    flags = [node for node in nodes if kind_of(node) == "boolean" and not isinstance(node, Literal)]
    texts = [node.value for node in nodes if isinstance(node, Literal) and isinstance(node.value, str)]
    if flags and texts and len(flags) + len(texts) == len(nodes):
        return compare_with(flags[0], "boolean", texts[0])
    cast = [node for node in nodes if not isinstance(node, Literal)] or nodes
    conversions = [
        _conversion(n, kind, nodes) for n in cast for kind in KINDS if kind in kinds - {kind_of(n)}
    ]
    return conversions[0] if len(conversions) == 1 else Either(*conversions[:2])


_MAX_BOUND = Fraction(10) ** 100


def bounds_of(node: Node, scope: Scope) -> tuple[Fraction, Fraction] | None:
    """Return public bounds of an expression if they follow from its form, otherwise None.

    Values are clipped to these bounds before they are used. So bounds that are too wide cost accuracy, never
    privacy. Bounds beyond 10^100, which nobody could declare, are no bounds.
    """
    ends = _bounds_of(node, scope)
    if ends is None or max(abs(ends[0]), abs(ends[1])) > _MAX_BOUND:
        return None
    return ends


def _bounds_of(node: Node, scope: Scope) -> Ends | None:
    match node:
        case Column(name, _):
            fact = scope.get(name)
            return fact.bounds if fact else None
        case Literal(value, "number"):
            return (Fraction(value), Fraction(value)) if isinstance(value, int | float) else None
        case Call("clip" | "least", (Column(name, _), *ends)) if (
            name in scope and scope[name].default and all(isinstance(end, Literal) for end in ends)
        ):
            return _chosen_bounds(ends)
        case Call("clip", (inner, Literal(low), Literal(high))):
            return _clipped(bounds_of(inner, scope), Fraction(float(low or 0)), Fraction(float(high or 0)))
        case Call("case", args):
            return _union([bounds_of(a, scope) for a in (*args[1::2], args[-1]) if not _is_null(a)])
        case Call("coalesce", args):
            return _union([bounds_of(a, scope) for a in args if not _is_null(a)])
        case Call("to_number" | "to_whole", (inner,)) if kind_of(inner) == "boolean":
            return Fraction(0), Fraction(1)
        case Call(op, args):
            return DATE_PARTS[op] if op in DATE_PARTS else _of_parts(op, [bounds_of(a, scope) for a in args])
        case _:
            return None


def _of_parts(op: str, parts: list[Ends | None]) -> Ends | None:
    """Return the bounds of a function from those of its arguments."""
    present = [part for part in parts if part is not None]
    if len(present) < len(parts) or not present:
        return None
    if len(present) == 1:
        return OF_ONE[op](present[0]) if op in OF_ONE else present[0] if op in {"least", "greatest"} else None
    if op not in OF_TWO or (len(present) > 2 and op not in {"least", "greatest"}):
        return None
    combined: Ends | None = present[0]
    for part in present[1:]:
        combined = None if combined is None else OF_TWO[op](combined, part)
    return combined


def _is_null(node: Node) -> bool:
    return isinstance(node, Literal) and node.value is None


def _chosen_bounds(ends: Sequence[Node]) -> Ends:
    """Bound a count within a unit as the question does: its default bound is void then."""
    numbers = [Fraction(float(end.value or 0)) for end in ends if isinstance(end, Literal)]
    low = max([Fraction(0), *numbers[:-1]])
    return low, max(low, numbers[-1])


def _clipped(ends: Ends | None, low: Fraction, high: Fraction) -> Ends:
    return (min(max(ends[0], low), high), max(min(ends[1], high), low)) if ends else (low, high)


def _union(ranges: list[Ends | None]) -> Ends | None:
    present = [r for r in ranges if r is not None]
    if len(present) != len(ranges) or not present:
        return None
    return min(r[0] for r in present), max(r[1] for r in present)
