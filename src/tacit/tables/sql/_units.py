"""Units in a table's SQL question: which columns name one, and whether a column of a relation still does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.algebra import Column, JoinPublic, JoinUnits, PerUnit, Project, Relation, Scan, Where, scope

if TYPE_CHECKING:
    from tacit.tables._rows import Rows


def unit_columns(rows: Rows) -> tuple[str, ...]:
    """Return the columns that name the owner of a row: one, or several together; none for single rows."""
    return rows.unit.columns


def unit_noun(rows: Rows) -> str:
    """Return what one unit is called in a sentence."""
    return rows.unit.noun


def names_whole_unit(rows: Rows, names: list[str]) -> bool:
    """Return whether these columns of the rows name the unit, as its declared columns do.

    A column names the unit as long as it is passed on untouched. A unit of several columns is named by all of
    them together only.
    """
    needed = unit_columns(rows)
    if len(needed) == 1:
        facts = scope(rows.relation)
        return any(name in facts and facts[name].unit for name in names)
    return bool(needed) and all(any(_is(rows.relation, n, column) for n in names) for column in needed)


def unit_column(rows: Rows, name: str) -> str | None:
    """Return the declared column of the unit that a column of the rows is, untouched; None for any other."""
    return next((column for column in unit_columns(rows) if _is(rows.relation, name, column)), None)


def _is(relation: Relation, name: str, column: str) -> bool:
    """Return whether a column of a relation is a declared column, untouched and never missing."""
    match relation:
        case Scan():
            return name == column
        case Where(inner, _):
            return _is(inner, name, column)
        case Project(inner, made) | PerUnit(inner, made, _):
            source = dict(made).get(name)
            return isinstance(source, Column) and _is(inner, source.name, column)
        case JoinPublic(left, _, _, brought, _):
            return name not in dict(brought) and _is(left, name, column)
        case JoinUnits(left, right, how, _):
            if name in scope(left):
                return _is(left, name, column)
            return how == "inner" and _is(right, name, column)
