"""Table expressions as Python writes them: ``tc.col("age") >= 65``.

The values that an expression lists in its own text (the constants of a CASE, or buckets) are public, because
they follow from the question, not from the data. Names of columns are checked here as well.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.algebra import MOST_LEVELS, Call, Column, Node, keys_of, lit, text_of
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Declare
from tacit.parameters import Integer, Pair

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.algebra import Scope
    from tacit.exact import Number


MAX_CANDIDATES = 10_000
_MAX_BUCKETS = 500
#: The most parts (columns, constants, operators) of one expression, each as often as it is computed.
MAX_PARTS = 10_000
#: How deep expressions can be nested: a column is on the first level.
MAX_DEPTH = MOST_LEVELS


def candidate_values(node: Node, facts: Scope) -> tuple[float | str | bool, ...]:
    """Return the public values of an expression: its keys, its constants, or whole numbers in its bounds."""
    from tacit.algebra import bounds_of

    keys = keys_of(node, facts)
    if keys:
        return tuple(sorted(v for v in keys if isinstance(v, float | str | bool)))
    bounds = bounds_of(node, facts)
    if bounds is None or bounds[1] - bounds[0] >= MAX_CANDIDATES:
        return ()
    return tuple(float(n) for n in range(math.ceil(bounds[0]), math.floor(bounds[1]) + 1))


def bucket_node(value: Node, low: Number, high: Number, buckets: int) -> Node:
    """Return the number of the part of [low, high) that a value lies in, from 1; 0 is below it.

    It is a CASE over public edges, so its values are known.

    Examples
    --------
    >>> from tacit.algebra import Column
    >>> from tacit.algebra import Scope
    >>> keys_of(bucket_node(Column("age"), 0, 100, 2), Scope({}))
    (0.0, 1.0, 2.0, 3.0)
    """
    lowest, highest = Pair("the ends of the buckets").read("range", (low, high))
    n = Integer(1, _MAX_BUCKETS).read("buckets", buckets)
    edges = [lowest + (highest - lowest) * Fraction(i, n) for i in range(n + 1)]
    parts: list[Node] = []
    for i, edge in enumerate(edges):
        parts += [Call("lt", (value, lit(edge))), lit(i)]
    beyond = Call(
        "ge", (Call("clip", (value, lit(lowest), lit(highest))), lit(highest))
    )  # NaN is in no bucket
    return Call("case", (*parts, beyond, lit(n + 1), lit(None)))


class Expr:
    """A row-wise expression. Comparisons and ``& | ~`` build conditions; nothing is computed yet.

    Examples
    --------
    >>> (col("age") >= 65) & (col("ward") == "ICU")
    and(ge(age, 65.0), eq(ward, 'ICU'))
    """

    __slots__ = ("_depth", "_parts", "node")

    def __init__(self, node: Node, parts: int = 1, depth: int = 1) -> None:
        self.node = node
        self._parts = parts
        self._depth = depth

    def __repr__(self) -> str:
        return text_of(self.node)

    def __bool__(self) -> bool:
        raise TacitError(
            "bad-expression",
            "an expression has no truth value",
            why="it stands for one value in each row, so Python cannot use it with and, or, not",
            fix=Code('(tc.col("age") >= 65) & ~(tc.col("ward") == "ICU")'),
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
        """Clip to public bounds; the result has these bounds."""
        return _call("clip", self, low, high)

    def width_bucket(self, low: Number, high: Number, buckets: int) -> Expr:
        """Return the number of the equal part of [low, high) that holds the value, from 1 to ``buckets``.

        It is 0 below the range, and ``buckets`` + 1 at its high end and above. Groups by this number need no
        keys, because the possible numbers are public.
        """
        return Expr(bucket_node(self.node, low, high, buckets))

    def is_null(self) -> Expr:
        """Check whether the value is missing."""
        return _call("is_null", self)

    def is_in(self, values: Iterable[object]) -> Expr:
        """Check whether the value is in a list."""
        return _call("in", self, *values)

    def between(self, low: object, high: object) -> Expr:
        """Check whether the value lies between two others, both included."""
        return (self >= low) & (self <= high)

    def fill_null(self, value: object) -> Expr:
        """Replace missing values by another value."""
        return _call("coalesce", self, value)


def col(name: str) -> Expr:
    """Name a column.

    Examples
    --------
    >>> col("length_of_stay") > 7
    gt(length_of_stay, 7.0)
    """
    if not isinstance(name, str):
        raise _no_column("the name of a column must be text")
    return Expr(Column(name))


def when(condition: Expr, value: object, otherwise: object = None) -> Expr:
    """Choose between two values by a condition; to chain, give another ``when`` as ``otherwise``.

    Examples
    --------
    >>> when(col("age") >= 65, "old", "young")
    case(ge(age, 65.0), 'old', 'young')
    """
    test: object = condition
    return _call("case", test if isinstance(test, Expr) else Expr(as_node(condition)), value, otherwise)


def as_node(column: str | Expr) -> Node:
    """Read the name of a column, or an expression."""
    if isinstance(column, Expr):
        return column.node
    if isinstance(column, str):
        return Column(column)
    raise _no_column(f"a column must be a name or an expression, got {type(column).__name__}")


def _no_column(problem: str) -> TacitError:
    return TacitError("bad-parameter", problem, fix=Code('tc.col("age")'))


def as_value(value: object) -> Node:
    """Read a Python value or an expression; text is a constant here, not the name of a column."""
    return value.node if isinstance(value, Expr) else lit(value)


def _call(op: str, *args: object) -> Expr:
    """Apply an operator; refuse an expression that has grown beyond what a question may hold.

    Its size is known from its parts: an expression that is used twice, again and again, doubles every time.
    """
    nodes = tuple(as_value(a) for a in args)
    parts = [a._parts if isinstance(a, Expr) else 1 for a in args]
    depths = [a._depth if isinstance(a, Expr) else 1 for a in args]
    size, depth = 1 + sum(parts), 1 + max(depths)
    if op in {"and", "or"} and isinstance(nodes[0], Call) and nodes[0].op == op:
        nodes = (*nodes[0].args, *nodes[1:])
        size, depth = size - 1, max(depths[0], 1 + max(depths[1:]))
    if size > MAX_PARTS or depth > MAX_DEPTH:
        raise _too_large(size)
    return Expr(Call(op, nodes), size, depth)


def _too_large(size: int) -> TacitError:
    parts = size > MAX_PARTS
    return TacitError(
        "question-too-large",
        f"an expression can have at most {MAX_PARTS:,} parts"
        if parts
        else f"an expression can be nested at most {MAX_DEPTH} deep",
        why="an expression doubles in size each time the next one uses it twice" if parts else "",
        fix=Code('.with_columns(part=tc.col("x") * tc.col("x"))'),
    )


def check_name(name: str) -> None:
    """Refuse names that the emitted SQL keeps for itself."""
    if name.lower().startswith("tacit_") or "\x00" in name or not name:
        raise bad_parameter(
            "a column's name", "plain text that does not start with tacit_", name, fix="use another name"
        )


def names_needed(operation: str) -> TacitError:
    return TacitError(
        "unknown-column",
        f"{operation} needs the names of the table's columns, and its source is not available",
        why="names are public facts; they are read from the header or declared",
        fix=Declare("types", "text", column="patient_id"),
    )
