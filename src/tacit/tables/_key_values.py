"""The values of a group's key in a table, as far as form and declared facts show: public keys, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.tables._expressions import Call, Column, Literal

if TYPE_CHECKING:
    from tacit.tables._expressions import Node
    from tacit.tables._kinds import Scope

__all__ = ["can_be_missing", "keys_of"]


def keys_of(node: Node, scope: Scope) -> tuple[object, ...] | None:
    """Return the public keys of an expression if they follow from its form, otherwise None.

    A column has its declared keys. CASE and COALESCE have those of all their values, if all are known: a
    constant is its own key, and NULL is none.
    """
    match node:
        case Column(name, _):
            fact = scope.get(name)
            return fact.keys if fact else None
        case Literal(value, _):
            return () if value is None else (value,)
        case Call("case" as op, args) | Call("coalesce" as op, args):
            values = (*args[1::2], args[-1]) if op == "case" else args
            found = [keys_of(a, scope) for a in values]
            known = dict.fromkeys(key for keys in found for key in keys or ())
            if not can_be_missing(node, scope):
                known.pop(None, None)
            return None if None in found else tuple(known)
        case _:
            return None


def can_be_missing(node: Node, scope: Scope) -> bool:
    """Return whether an expression may have no value in some row, as far as its form and the facts show."""
    match node:
        case Column(name, _):
            return not (scope[name].never_null or scope[name].unit)
        case Literal(value, _):
            return value is None
        case Call("case", args):
            return any(can_be_missing(a, scope) for a in (*args[1::2], args[-1]))
        case Call("coalesce", args):
            return all(can_be_missing(a, scope) for a in args)
        case Call(op, _):
            return op != "is_null"
