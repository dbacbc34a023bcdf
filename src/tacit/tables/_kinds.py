"""Give every column of an expression its kind: from declared facts and the context, never from the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from fractions import Fraction

from tacit.core import Fact
from tacit.errors import TacitError
from tacit.tables._expressions import KINDS, OPERATORS, Call, Column, Kind, Literal, Node, as_date, words_of

__all__ = ["Scope", "bounds_of", "kind_of", "resolve"]


class Scope(Mapping[str, Fact]):
    """The columns in reach.

    An open scope does not know all names (the source is not at hand) and accepts any.
    """

    __slots__ = ("_facts", "open")

    def __init__(self, facts: Mapping[str, Fact], *, open: bool = False) -> None:
        self._facts = dict(facts)
        self.open = open

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
            gives = OPERATORS[op].gives
            return next(k for k in KINDS if k == gives)


def resolve(node: Node, scope: Scope, want: Kind | None = None) -> Node:
    """Return the expression with every column's kind set, or refuse it.

    Parameters
    ----------
    node
        The expression as written.
    scope
        The columns that exist, with their facts. An empty scope knows no column names and accepts any.
    want
        The kind the context asks for; a column of undeclared kind takes it.
    """
    match node:
        case Column(name, None):
            fact = scope.get(name)
            if fact is None:
                raise TacitError(
                    "unknown-column",
                    f"there is no column {name!r} here",
                    why="a query may only use columns of its table; one that is left out is gone",
                    fix=_instead_of(name, sorted(scope)),
                )
            if fact.unreadable:
                raise TacitError(
                    "unreadable-column",
                    f"the column {name!r} is stored as {fact.unreadable}, which is not read",
                    why="one row that cannot be converted would make every query fail, and so tell of itself",
                    fix="store it as a number, a text, a date or a timestamp in microseconds",
                )
            return _agree(Column(name, fact.kind or want), want)
        case Column():
            return _agree(node, want)
        case Literal(value, kind):
            if kind == "text" and want == "date":
                return as_date(str(value))
            return node if value is None else _agree(node, want)
        case Call(op, args):
            return _agree(Call(op, _arguments(op, args, scope, want)), want)


def _instead_of(name: str, known: list[str]) -> str:
    """Name the columns there are, as SQL writes them; one whose name is close comes first."""
    if not known:
        return "declare the columns with types={...}"
    plain = {column.strip().lower(): column for column in known}
    close = get_close_matches(name.strip().lower(), plain, 1)
    shown = [column if column.isidentifier() else f'"{column}"' for column in known[:12]]
    first = f"{plain[close[0]]!r}? " if close else ""
    return f"{first}one of: {', '.join(shown)}"


def _arguments(op: str, args: tuple[Node, ...], scope: Scope, want: Kind | None) -> tuple[Node, ...]:
    rule = OPERATORS.get(op)
    if rule is None:
        raise TacitError(
            "bad-expression", f"there is no operator {op!r}", fix=f"one of: {', '.join(OPERATORS)}"
        )
    for i in rule.constant:
        if i < len(args) and not isinstance(args[i], Literal):
            raise TacitError(
                "bad-expression",
                f"argument {i + 1} of {op} must be a constant, got {words_of(args[i])}",
                why="it must be known before the data is seen",
                fix="write the value itself",
            )
    if op == "case":
        if len(args) % 2 == 0:
            raise TacitError(
                "bad-expression", "case needs pairs of condition and value, and a default", fix="case(...)"
            )
        values = _shared((*args[1::2], args[-1]), scope, want, op)
        conditions = [resolve(a, scope, "boolean") for a in args[:-1:2]]
        pairs = [part for pair in zip(conditions, values[:-1], strict=True) for part in pair]
        return (*pairs, values[-1])
    takes = _expand(op, rule.takes, len(args))
    if takes[0] == "same":
        return _shared(args, scope, want if rule.gives == "same" else None, op)
    if takes == ("any",):
        return (resolve(args[0], scope, _default(args[0], scope, op)),)
    return tuple(resolve(a, scope, _kind(k)) for a, k in zip(args, takes, strict=True))


def _default(node: Node, scope: Scope, op: str) -> Kind | None:
    """Read an undeclared column as text where only its presence matters or where it is converted next."""
    if (
        isinstance(node, Column)
        and node.kind is None
        and node.name in scope
        and scope[node.name].kind is None
    ):
        return "date" if op == "to_date" else "number" if op == "to_number" else "text"
    return None


def _expand(op: str, takes: tuple[str, ...], n: int) -> tuple[str, ...]:
    fixed = tuple(k for k in takes if not k.endswith("*"))
    if takes[-1].endswith("*"):
        if n >= max(1, len(fixed)):
            return fixed + (takes[-1][:-1],) * (n - len(fixed))
    elif n == len(fixed):
        return fixed
    raise TacitError("bad-expression", f"{op} takes {len(fixed)} argument(s), got {n}", fix=f"{op}(...)")


def _kind(name: str) -> Kind:
    return next(k for k in KINDS if k == name)


def _shared(args: tuple[Node, ...], scope: Scope, want: Kind | None, op: str) -> tuple[Node, ...]:
    """Resolve arguments that must share one kind.

    A date wins over text, so that ISO text is read as a date.
    """
    first = [resolve(a, scope) for a in args]
    kinds = {k for a in first if (k := kind_of(a)) is not None}
    if want is not None:
        kinds.add(want)
    shared = next(iter(kinds)) if len(kinds) == 1 else "date" if kinds == {"date", "text"} else None
    if not kinds:
        column = next((a.name for a in args if isinstance(a, Column)), "x")
        raise TacitError(
            "unknown-kind",
            f"{words_of(Call(op, args))} does not say how to read its columns",
            why="types are declared, never guessed from the data",
            fix=f'tc.protect(..., types={{"{column}": "number"}})  # or "text", "date", "boolean"',
        )
    if shared is None:
        shown = ", ".join(f"{words_of(a)} ({kind_of(a)})" for a in first)
        raise TacitError(
            "bad-expression",
            f"{words_of(Call(op, args))} needs values of one kind, got {shown}",
            why="values of different kinds are never equal",
            fix="CAST(x AS DOUBLE) or CAST(x AS VARCHAR)",
        )
    return tuple(resolve(a, scope, shared) for a in args)


def _agree(node: Node, want: Kind | None) -> Node:
    have = kind_of(node)
    if want is None or have is None or have == want:
        return node
    raise TacitError(
        "bad-expression",
        f"{words_of(node)} is a {have}, and a {want} is needed here",
        why="each operator takes declared kinds, so that it cannot fail on any row",
        fix=f"CAST({words_of(node)} AS {'DOUBLE' if want == 'number' else want.upper()})",
    )


def bounds_of(node: Node, scope: Scope) -> tuple[Fraction, Fraction] | None:
    """Return public bounds of an expression where they follow from its form, else None.

    Values are clipped to these bounds before they are used, so a loose reading here costs accuracy, never
    privacy.
    """
    match node:
        case Column(name, _):
            fact = scope.get(name)
            return fact.bounds if fact else None
        case Literal(value, "number"):
            return (Fraction(value), Fraction(value)) if isinstance(value, int | float) else None
        case Call("clip", (inner, Literal(low), Literal(high))):
            own = bounds_of(inner, scope)
            a, b = Fraction(float(low or 0)), Fraction(float(high or 0))
            return (min(max(own[0], a), b), max(min(own[1], b), a)) if own else (a, b)
        case Call("case", args):
            return _union([bounds_of(a, scope) for a in (*args[1::2], args[-1]) if not _is_null(a)])
        case Call("coalesce", args):
            return _union([bounds_of(a, scope) for a in args if not _is_null(a)])
        case Call("least" | "greatest" as op, (a, b)):
            return _clip_form(op, bounds_of(a, scope), bounds_of(b, scope))
        case Call("add" | "sub" | "mul" as op, (a, b)):
            return _arithmetic(op, bounds_of(a, scope), bounds_of(b, scope))
        case Call("neg", (a,)):
            own = bounds_of(a, scope)
            return (-own[1], -own[0]) if own else None
        case Call("abs", (a,)):
            own = bounds_of(a, scope)
            if own is None:
                return None
            return (max(own[0], -own[1], Fraction(0)), max(abs(own[0]), abs(own[1])))
        case Call("month", _):
            return Fraction(1), Fraction(12)
        case Call("hour", _):
            return Fraction(0), Fraction(23)
        case Call("weekday", _):
            return Fraction(0), Fraction(6)
        case _:
            return None


_Range = tuple[Fraction, Fraction]


def _is_null(node: Node) -> bool:
    return isinstance(node, Literal) and node.value is None


def _union(ranges: list[_Range | None]) -> _Range | None:
    known = [r for r in ranges if r is not None]
    if len(known) != len(ranges) or not known:
        return None
    return min(r[0] for r in known), max(r[1] for r in known)


def _clip_form(op: str, a: _Range | None, b: _Range | None) -> _Range | None:
    """Bound LEAST(GREATEST(x, 0), 30) and its mirror image.

    One side known is enough for a half-open range.
    """
    if a is None or b is None:
        return None
    pick = min if op == "least" else max
    return pick(a[0], b[0]), pick(a[1], b[1])


def _arithmetic(op: str, a: _Range | None, b: _Range | None) -> _Range | None:
    if a is None or b is None:
        return None
    match op:
        case "add":
            return a[0] + b[0], a[1] + b[1]
        case "sub":
            return a[0] - b[1], a[1] - b[0]
        case _:
            corners = [x * y for x in a for y in b]
            return min(corners), max(corners)
