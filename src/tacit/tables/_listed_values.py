"""The values that an expression of tables lists in its own text: the constants of a CASE, or buckets.

They are public because they follow from the question, not from the data.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.algebra import Call, Node, keys_of, lit
from tacit.parameters import Integer, Pair

if TYPE_CHECKING:
    from tacit.algebra import Scope
    from tacit.exact import Number

MOST_CANDIDATES = 10_000
_MOST_BUCKETS = 500


def candidate_values(node: Node, facts: Scope) -> tuple[float | str | bool, ...]:
    """Return the public values of an expression: its keys, its constants, or whole numbers in its bounds."""
    from tacit.algebra import bounds_of

    known = keys_of(node, facts)
    if known:
        return tuple(sorted(v for v in known if isinstance(v, float | str | bool)))
    bounds = bounds_of(node, facts)
    if bounds is None or bounds[1] - bounds[0] >= MOST_CANDIDATES:
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
    first, last = Pair("the ends of the buckets").read("range", (low, high))
    n = Integer(1, _MOST_BUCKETS).read("buckets", buckets)
    edges = [first + (last - first) * Fraction(i, n) for i in range(n + 1)]
    parts: list[Node] = []
    for i, edge in enumerate(edges):
        parts += [Call("lt", (value, lit(edge))), lit(i)]
    beyond = Call("ge", (Call("clip", (value, lit(first), lit(last))), lit(last)))  # NaN is in no bucket
    return Call("case", (*parts, beyond, lit(n + 1), lit(None)))
