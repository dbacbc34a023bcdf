"""Habits from pandas: errors that say what replaces `head`, `describe` or `mean` in Tacit."""

from __future__ import annotations

from typing import Any

from tacit.errors import TacitError
from tacit.fixes import Code, Fix

__all__ = ["HabitError", "PandasHabits", "column_as_table"]

_NO_ROWS = "a protected dataset does not show rows; it answers questions with noise"
_ROWS = frozenset(
    {"head", "tail", "sample", "iloc", "loc", "values", "to_pandas", "collect", "fetchall", "show"}
)
_SIZES = frozenset({"shape", "size", "count", "nunique", "info"})
_NUMBERS = {"mean": "mean", "sum": "sum", "median": "median", "std": "std", "var": "variance", "min": "min",
            "max": "max", "quantile": "median", "describe": "quantiles"}  # fmt: skip
_GROUPS = frozenset({"groupby", "value_counts", "unique", "pivot_table", "crosstab"})
_FILTERS = frozenset({"filter", "query", "dropna"})


class HabitError(TacitError, AttributeError):
    """A name that another library has; `hasattr` is false for it."""

    def __reduce__(self) -> tuple[object, ...]:
        return (_again, (self.code, self.what, self.why, self.fix))


def _again(code: str, what: str, why: str, fix: Fix) -> HabitError:
    return HabitError(code, what, why=why, fix=fix)


class PandasHabits:
    """A dataset or its rows. A name from pandas raises an error that says what to do instead."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        kind = type(self).__name__
        if name in _ROWS:
            raise _refused(name, _NO_ROWS, ".agg(n=tc.count()).plan(epsilon=0.1).release()")
        if name in _SIZES:
            why = "the number of rows is private; ask for a count with noise instead"
            raise _refused(name, why, ".agg(n=tc.count()).plan(epsilon=0.1).release()")
        if name in _NUMBERS:
            call = _example(_NUMBERS[name])
            raise _refused(name, "aggregates are part of a question", f".agg(x={call})")
        if name in _GROUPS:
            raise _refused(name, "groups are part of a question", '.group_by("column").agg(n=tc.count())')
        if name in _FILTERS:
            raise _refused(name, "a condition chooses rows", '.where("column > 0")')
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")


def column_as_table(column: str) -> TacitError:
    """Refuse ``dataset["age"]`` where age is a column: brackets choose a table."""
    return TacitError(
        "unknown-table",
        f"{column!r} is a column; brackets choose a table",
        why="a column is never shown; name it in an aggregate",
        fix=Code(f'.agg(x=tc.mean("{column}"))'),
    )


def _example(function: str) -> str:
    return (
        'tc.quantiles("column", [0.25, 0.5, 0.75])' if function == "quantiles" else f'tc.{function}("column")'
    )


def _refused(name: str, why: str, fix: str) -> HabitError:
    return HabitError("not-allowed", f"a protected dataset has no {name}", why=why, fix=Code(fix))
