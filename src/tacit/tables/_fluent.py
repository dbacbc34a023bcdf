"""Expressions as Python writes them: ``tc.col("age") >= 65``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.tables._expressions import Call, Column, Node, lit, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Expr", "as_node", "col", "when"]


class Expr:
    """A row-wise expression. Comparisons and ``& | ~`` build conditions; nothing is computed here.

    Examples
    --------
    >>> (col("age") >= 65) & (col("ward") == "ICU")
    and(ge(age, 65.0), eq(ward, 'ICU'))
    """

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node

    def __repr__(self) -> str:
        return text_of(self.node)

    def __bool__(self) -> bool:
        raise TacitError(
            "bad-expression",
            "an expression has no truth value",
            why="it stands for a value of each row, which Python's and, or, not cannot see",
            fix="use &, | and ~, with each comparison in brackets",
        )

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return _call("eq", self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return _call("ne", self, other)

    def __lt__(self, other: object) -> Expr:
        return _call("lt", self, other)

    def __le__(self, other: object) -> Expr:
        return _call("le", self, other)

    def __gt__(self, other: object) -> Expr:
        return _call("gt", self, other)

    def __ge__(self, other: object) -> Expr:
        return _call("ge", self, other)

    def __and__(self, other: object) -> Expr:
        return _call("and", self, other)

    def __or__(self, other: object) -> Expr:
        return _call("or", self, other)

    def __invert__(self) -> Expr:
        return _call("not", self)

    def __add__(self, other: object) -> Expr:
        return _call("add", self, other)

    def __radd__(self, other: object) -> Expr:
        return _call("add", other, self)

    def __sub__(self, other: object) -> Expr:
        return _call("sub", self, other)

    def __rsub__(self, other: object) -> Expr:
        return _call("sub", other, self)

    def __mul__(self, other: object) -> Expr:
        return _call("mul", self, other)

    def __rmul__(self, other: object) -> Expr:
        return _call("mul", other, self)

    def __truediv__(self, other: object) -> Expr:
        return _call("div", self, other)

    def __rtruediv__(self, other: object) -> Expr:
        return _call("div", other, self)

    def __mod__(self, other: object) -> Expr:
        return _call("mod", self, other)

    def __neg__(self) -> Expr:
        return _call("neg", self)

    def __abs__(self) -> Expr:
        return _call("abs", self)

    def apply(self, operator: str, *arguments: object) -> Expr:
        """Apply any operator of the closed list by name, such as ``"year"`` or ``"lower"``."""
        return _call(operator, self, *arguments)

    def clip(self, low: float, high: float) -> Expr:
        """Clip to public bounds, which the result then has."""
        return _call("clip", self, low, high)

    def is_null(self) -> Expr:
        """Whether the value is missing."""
        return _call("is_null", self)

    def is_in(self, values: Iterable[object]) -> Expr:
        """Whether the value is one of a list."""
        return _call("in", self, *values)

    def between(self, low: object, high: object) -> Expr:
        """Whether the value lies between two others, both included."""
        return (self >= low) & (self <= high)

    def fill_null(self, value: object) -> Expr:
        """Put a value where there is none."""
        return _call("coalesce", self, value)


def col(name: str) -> Expr:
    """Name a column.

    Examples
    --------
    >>> col("length_of_stay") > 7
    gt(length_of_stay, 7.0)
    """
    if not isinstance(name, str):
        raise TacitError("bad-parameter", "a column is named by text", fix='tc.col("age")')
    return Expr(Column(name))


def when(condition: Expr, value: object, otherwise: object = None) -> Expr:
    """Choose between two values by a condition; chain by giving another ``when`` as ``otherwise``.

    Examples
    --------
    >>> when(col("age") >= 65, "old", "young")
    case(ge(age, 65.0), 'old', 'young')
    """
    return Expr(Call("case", (as_node(condition), as_value(value), as_value(otherwise))))


def as_node(column: str | Expr) -> Node:
    """Read what names a column: text or an expression."""
    if isinstance(column, Expr):
        return column.node
    if isinstance(column, str):
        return Column(column)
    raise TacitError(
        "bad-parameter",
        f"a column is text or an expression, got {type(column).__name__}",
        fix='tc.col("age")',
    )


def as_value(value: object) -> Node:
    """Read a Python value or an expression where a value is meant: text is a constant here."""
    return value.node if isinstance(value, Expr) else lit(value)


def _call(op: str, *args: object) -> Expr:
    nodes = tuple(as_value(a) for a in args)
    if op in {"and", "or"} and isinstance(nodes[0], Call) and nodes[0].op == op:
        nodes = (*nodes[0].args, *nodes[1:])
    return Expr(Call(op, nodes))
