"""The kinds and bounds of table expressions: from declared facts and the context, never from the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction

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
from tacit.algebra._ranges import DATE_PARTS, OF_ONE, OF_TWO, Ends
from tacit.algebra._stored_types import check_comparable, check_dates, compare_with
from tacit.core import KINDS, Fact, Kind
from tacit.errors import TacitError
from tacit.fixes import Choose, Code, Declare, Do, Either, Fix

_SPOKEN: dict[Kind, str] = {"number": "a number", "text": "text", "boolean": "a boolean", "date": "a date"}
_SQL_TYPES: dict[Kind, str] = {"number": "DOUBLE", "text": "TEXT", "boolean": "BOOLEAN", "date": "DATE"}


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
    first = [resolve(a, scope) for a in args]
    kinds = {k for a in first if (k := kind_of(a)) is not None}
    if want is not None:
        kinds.add(want)
    shared = next(iter(kinds)) if len(kinds) == 1 else "date" if kinds == {"date", "text"} else None
    if shared == "text" and op in _COMPARISONS and _compares_dates(first):
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
        shown = ", ".join(f"{words_of(a)} ({kind_of(a)})" for a in first)
        raise TacitError(
            "bad-expression",
            f"{words_of(Call(op, args))} needs values of one kind, got {shown}",
            why="values of different kinds are never equal",
            fix=_conversions(first, kinds),
        )
    check_comparable(op, first, scope)
    if shared == "text" and op in _COMPARISONS:
        check_dates(op, args, scope)
    # only what is still undecided is read again: reading all arguments twice per level takes 2^depth steps
    return tuple(
        b if kind_of(b) == shared and not isinstance(b, Literal) else resolve(a, scope, shared)
        for a, b in zip(args, first, strict=True)
    )


_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "in"})


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
    read = "is read as" if bounded else "is"
    because = " because bounds are declared for it" if bounded else ""
    raise TacitError(
        "bad-expression",
        f"{words_of(node)} {read} {_SPOKEN[have]}{because}, but {_SPOKEN[want]} is needed here",
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
    made = [_conversion(n, kind, nodes) for n in cast for kind in KINDS if kind in kinds - {kind_of(n)}]
    return made[0] if len(made) == 1 else Either(*made[:2])


_LARGEST_BOUND = Fraction(10) ** 100


def bounds_of(node: Node, scope: Scope) -> tuple[Fraction, Fraction] | None:
    """Return public bounds of an expression if they follow from its form, otherwise None.

    Values are clipped to these bounds before they are used. So bounds that are too wide cost accuracy, never
    privacy. Bounds beyond 10^100, which nobody could declare, are no bounds.
    """
    found = _bounds_of(node, scope)
    if found is None or max(abs(found[0]), abs(found[1])) > _LARGEST_BOUND:
        return None
    return found


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
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not known:
        return None
    if len(known) == 1:
        return OF_ONE[op](known[0]) if op in OF_ONE else known[0] if op in {"least", "greatest"} else None
    if op not in OF_TWO or (len(known) > 2 and op not in {"least", "greatest"}):
        return None
    found: Ends | None = known[0]
    for part in known[1:]:
        found = None if found is None else OF_TWO[op](found, part)
    return found


def _is_null(node: Node) -> bool:
    return isinstance(node, Literal) and node.value is None


def _chosen_bounds(ends: Sequence[Node]) -> Ends:
    """Bound a count within a unit as the question does: its default bound is void then."""
    given = [Fraction(float(end.value or 0)) for end in ends if isinstance(end, Literal)]
    low = max([Fraction(0), *given[:-1]])
    return low, max(low, given[-1])


def _clipped(own: Ends | None, low: Fraction, high: Fraction) -> Ends:
    return (min(max(own[0], low), high), max(min(own[1], high), low)) if own else (low, high)


def _union(ranges: list[Ends | None]) -> Ends | None:
    known = [r for r in ranges if r is not None]
    if len(known) != len(ranges) or not known:
        return None
    return min(r[0] for r in known), max(r[1] for r in known)
