"""Fixes in the words of a table's SQL question: names in quotes, ranges as clips."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.errors import SqlglotError

from tacit.algebra import words_of
from tacit.fixes import Choose, Declare, Do, Either, Fix, Say, Set
from tacit.tables.sql._names import sql_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from tacit.algebra import Node
    from tacit.errors import TacitError
    from tacit.tables._dataset import TableDataset

#: The aggregates that a fix may name, as SQL writes them.
_AGGREGATES = {
    "count": "COUNT", "sum": "SUM", "mean": "AVG", "min": "MIN", "max": "MAX", "median": "MEDIAN",
    "std": "STDDEV", "variance": "VARIANCE", "count_distinct": "COUNT(DISTINCT ...)",
}  # fmt: skip
_QUOTED = {TokenType.IDENTIFIER, TokenType.STRING}
#: What follows a name, but never a word such as SELECT; None is the end.
_AFTER_NAMES = {
    TokenType.COMMA, TokenType.R_PAREN, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE,
    TokenType.GT, TokenType.GTE, TokenType.SEMICOLON, None,
}  # fmt: skip
#: The refusals after which a name with spaces or dots may be the cause.
_MISREAD = {"bad-sql", "not-allowed", "unknown-column", "unknown-table"}


@dataclass(frozen=True, slots=True)
class SqlAdvice:
    """What is known of a query when it is refused, to word the fix for its author.

    Parameters
    ----------
    text
        The query as it was given.
    columns
        The declared columns of all tables.
    expressions
        Arguments of aggregates in Tacit's words, each with the SQL that the author wrote.
    unit
        The unit's columns as SQL; empty if the unit is one row.

    Examples
    --------
    >>> from tacit.errors import TacitError
    >>> advice = SqlAdvice("SELECT COUNT(*) FROM visits WHERE Patient ID = 3", ("Patient ID",))
    >>> advice.reworded(TacitError("bad-sql", "this SQL cannot be read")).fix
    Say(text='write a name with spaces or special characters in double quotes: "Patient ID"')
    """

    text: object
    columns: tuple[str, ...]
    expressions: Mapping[str, str] = field(default_factory=dict)
    unit: str = ""

    @classmethod
    def about(
        cls, text: object, dataset: TableDataset, arguments: Mapping[Node, exp.Expr] | None = None
    ) -> SqlAdvice:
        """Collect what is known of a refused query; the arguments of aggregates are known once it is read."""
        columns = tuple(c for t in dataset.tables.values() for c in t.columns or t.facts)
        written = {words_of(node): sql.sql(dialect="duckdb") for node, sql in (arguments or {}).items()}
        return cls(text, columns, written, ", ".join(map(sql_name, dataset.identity.unit.columns)))

    def reworded(self, error: TacitError) -> TacitError:
        """Return a refusal with its fix in the words of SQL; the same refusal where nothing changes."""
        fix = (self._unquoted_name() if error.code in _MISREAD else None) or self._fix(error.fix, error.code)
        return error if fix == error.fix else error.but(fix=fix)

    def _fix(self, fix: Fix, code: str) -> Fix:
        match fix:
            case Choose(names, given, close) if code == "unknown-column":
                if not close and self._has_quoted(given):
                    return Say(f"write text in single quotes: '{given}'")
                return Choose(tuple(map(sql_name, names)), given, close and sql_name(close))
            case Choose(names, given) if _AGGREGATES.keys() >= set(names):
                return Choose(tuple(_AGGREGATES[name] for name in names), given)
            case Do("convert-in-question" | "compare-in-question", {"text": str(text)}) if (
                meant := self._column(text)
            ):
                return Say(f"write a column name without single quotes: {sql_name(meant)}")
            case Do(
                "convert-in-question" | "compare-in-question" as action, {"expression": str(column), **more}
            ) if column in self.columns:
                return Do(action, expression=sql_name(column), **more)
            case Do("aggregate-per-unit" | "summarise-units" as action, arguments) if self.unit:
                return Do(action, **{**arguments, "unit": self.unit})
            case Do("bound-aggregate", {"expression": str(inner)}):
                return _clip(self.expressions.get(inner, inner))
            case Declare("bounds", _, column) if code == "missing-bounds" and column not in self.columns:
                return _clip(self.expressions.get(column, sql_name(column)))
            case Set({"level": level}):
                return Say(f"a level between 0 and 1, such as {level}")
            case Either(fixes):
                return self._either(fixes, code)
            case _:
                return fix

    def _either(self, fixes: tuple[Fix, ...], code: str) -> Fix:
        """Return the last way out that SQL has words for, which says most, or all of them if none has."""
        new = [made for fix in fixes if (made := self._fix(fix, code)) != fix]
        return new[-1] if new else Either(*fixes)

    def _column(self, text: str) -> str:
        """Return the column that a text names, ignoring case; empty if there is none."""
        return next((c for c in self.columns if c.lower() == text.lower()), "")

    def _has_quoted(self, name: str) -> bool:
        """Return whether a name stands in double quotes in the query."""
        return any(t.token_type == TokenType.IDENTIFIER and t.text == name for t in _tokens(self.text))

    def _unquoted_name(self) -> Fix | None:
        """Find a column whose name has spaces or signs and stands in the query without quotes."""
        query = [_word(token) for token in _tokens(self.text)]
        for column in self.columns:
            name = [_word(token) for token in _tokens(column.strip())]
            if len(name) > 1 and None not in name and _contains(query, name):
                return Say(
                    f"write a name with spaces or special characters in double quotes: {sql_name(column)}"
                )
        if names := self._reserved_names():
            return Say(f"write a name that is also a word of SQL in double quotes: {', '.join(names)}")
        return None

    def _reserved_names(self) -> list[str]:
        """Return in quotes the columns that are words of SQL and stand in the query as names."""
        tokens = _tokens(self.text)
        used = {
            token.text.lower()
            for token, end in zip_longest(tokens, (token.token_type for token in tokens[1:]))
            if token.token_type not in {TokenType.VAR, *_QUOTED} and end in _AFTER_NAMES
        }
        return [f'"{column}"' for column in self.columns if column.lower() in used]


def _clip(expression: str) -> Fix:
    return Do("clip-in-question", expression=expression, low="LOW", high="HIGH")


def _tokens(text: object) -> list[Token]:
    try:
        return sqlglot.tokenize(text, read="duckdb") if isinstance(text, str) else []
    except SqlglotError:
        return []


def _word(token: Token) -> str | None:
    """Return a token in lower case; None if it is quoted."""
    return None if token.token_type in _QUOTED else token.text.lower()


def _contains(words: list[str | None], part: list[str | None]) -> bool:
    return any(words[i : i + len(part)] == part for i in range(len(words) - len(part) + 1))
