"""Hints for users of pandas: errors that say what replaces `head`, `describe` or `mean` in Tacit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.fixes import Code, Fix

if TYPE_CHECKING:
    from collections.abc import Iterator

_NO_ROWS = "a protected dataset does not show rows; it answers questions with noise"
_ROWS = frozenset(
    {"head", "tail", "sample", "iloc", "loc", "values", "to_pandas", "collect", "fetchall", "show",
     "iterrows", "itertuples", "to_csv", "to_dict", "to_parquet", "apply", "plot", "hist"}
)  # fmt: skip
_SIZES = frozenset({"shape", "size", "count", "nunique", "info", "isna", "isnull", "empty"})
_NUMBERS = {"mean": "mean", "sum": "sum", "median": "median", "std": "std", "var": "variance", "min": "min",
            "max": "max", "quantile": "median", "describe": "quantiles"}  # fmt: skip
_GROUPS = frozenset({"groupby", "value_counts", "unique", "pivot_table", "crosstab"})
_FILTERS = frozenset({"filter", "query", "dropna"})
_TYPES = frozenset({"dtypes", "schema", "astype"})
_ORDERS = frozenset({"sort_values", "nlargest", "nsmallest", "order_by"})
_ANSWERS = frozenset(
    {"release", "to_pandas", "value", "low", "high", "show", "execute", "run", "collect", "df", "fetchall",
     "plot", "head"}
)  # fmt: skip
_COUNT = ".agg(n=tc.count()).plan(epsilon=0.1).release()"


class HintError(TacitError, AttributeError, TypeError):
    """A name that another library has; `hasattr` is false for it, and `list` and `len` see a `TypeError`."""

    def __reduce__(self) -> tuple[object, ...]:
        return (_again, (self.code, self.what, self.why, self.fix))


def _again(code: str, problem: str, why: str, fix: Fix) -> HintError:
    return HintError(code, problem, why=why, fix=fix)


class PandasHints:
    """A dataset or its rows. A name from pandas raises an error that says what to do instead."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if _is_internal(self, name):
            raise _no_attribute(self, name)
        if name in _ROWS:
            raise _refused(f"a protected dataset has no {name}", _NO_ROWS, _COUNT)
        if name in _SIZES:
            raise _refused(f"a protected dataset has no {name}", *_PRIVATE_SIZE)
        if name in _NUMBERS:
            why, fix = "aggregates are part of a question", f".agg(x={_example(_NUMBERS[name])})"
            raise _refused(f"a protected dataset has no {name}", why, fix)
        for names, why, fix in _ADVICE:
            if name in names:
                raise _refused(f"a protected dataset has no {name}", why, fix)
        if hasattr(type(self), "columns") and name in self.columns:
            raise _refused(f"{name!r} is a column", *_named_in_an_aggregate(name))
        raise _no_attribute(self, name)

    def __getitem__(self, name: Any) -> Any:
        raise _refused(f"{str(name)[:60]!r} in brackets chooses nothing here", *_named_in_an_aggregate(name))

    def __len__(self) -> int:
        raise _refused("a protected dataset has no length", *_PRIVATE_SIZE)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        raise _refused("a protected dataset has no rows to go through", _NO_ROWS, _COUNT)


def question_hint(question: object, name: str) -> AttributeError:
    """Refuse a name that a question without a plan lacks, and say how to get an answer."""
    if _is_internal(question, name) or name not in _ANSWERS:
        return _no_attribute(question, name)
    why = "you decide on a cost first; the plan shows how accurate the answer will be"
    fix = ".plan(epsilon=0.5).release()" + {"release": "", "show": ""}.get(name, _after(name))
    return _refused(f"a question without a plan has no {name}", why, fix)


def column_as_table(column: str) -> TacitError:
    """Refuse ``dataset["age"]`` where age is a column: brackets choose a table."""
    why, fix = _named_in_an_aggregate(column)
    return TacitError(
        "unknown-table", f"{column!r} is a column; brackets choose a table", why=why, fix=Code(fix)
    )


def _named_in_an_aggregate(column: object) -> tuple[str, str]:
    name = column if isinstance(column, str) else "column"
    return "a column is never shown; name it in an aggregate", f'.agg(x=tc.mean("{name}"))'


def _after(name: str) -> str:
    return {"plot": ".plot()", "value": ".value", "low": ".low", "high": ".high"}.get(name, ".to_pandas()")


def _is_internal(thing: object, name: str) -> bool:
    """Return whether Python itself asks: for a private name, or for a field that has no value yet."""
    return name.startswith("_") or hasattr(type(thing), name)


def _no_attribute(thing: object, name: str) -> AttributeError:
    return AttributeError(f"{type(thing).__name__!r} object has no attribute {name!r}")


def _example(function: str) -> str:
    return (
        'tc.quantiles("column", [0.25, 0.5, 0.75])' if function == "quantiles" else f'tc.{function}("column")'
    )


def _refused(problem: str, why: str, fix: str) -> HintError:
    return HintError("not-allowed", problem, why=why, fix=Code(fix))


_PRIVATE_SIZE = ("how many rows there are is private; a count with noise is a question", _COUNT)
_ADVICE = (
    (_GROUPS, "groups are part of a question", '.group_by("column").agg(n=tc.count())'),
    (_FILTERS, "rows are kept by a condition", '.where("column > 0")'),
    (_TYPES, "types are declared, not read from the data", 'tc.protect(..., types={"column": "number"})'),
    (_ORDERS, "only an answer has an order", ".to_pandas().sort_values(...) on a release"),
)
