"""The SELECT statement of a table's SQL question: parsed, checked against a closed list, translated.

Tacit never runs the text itself. Fixes are in the words of SQL: names in quotes, ranges as clips.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from tacit.algebra import Column, Node, keys_of, names, scope, words_of
from tacit.core import read_bounds
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Declare, Do, Either, Fix, Say, Set
from tacit.tables.questions._aggregates import AUTO, read_cut
from tacit.tables.reading._postprocessing import PostProcessing
from tacit.tables.sql._allowed import only, refuse
from tacit.tables.sql._clauses import (
    alias_of,
    groups_of,
    having_of,
    levels_of,
    limit_of,
    name_of,
    order_of,
    outputs_of,
    unaliased,
    with_earlier_aliases,
)
from tacit.tables.sql._expressions import read_expression
from tacit.tables.sql._from import from_clause, selected_rows, with_clauses
from tacit.tables.sql._names import TablesInReach, sql_name
from tacit.tables.sql._select_list import SelectList, has_aggregate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.tables._dataset import TableDataset
    from tacit.tables.questions._aggregate_functions import BoundsGiven
    from tacit.tables.questions._aggregates import Cut, RangeOrAuto
    from tacit.tables.questions._keys import Levels
    from tacit.tables.questions._rows import Query, Rows
    from tacit.tables.sql._names import ColumnFinder


_MAX_TEXT = 100_000
_CONDITION = Say("a condition such as age >= 65")


def parse_expression(text: str) -> Node:
    """Read one expression written as SQL text, such as ``"age >= 65 AND ward = 'ICU'"``."""
    select = _parsed(text, wrap="SELECT {}")
    only(select, "expressions")
    if len(select.expressions) != 1 or isinstance(select.expressions[0], exp.Alias):
        raise refuse(select, "one expression is needed here", _CONDITION)
    try:
        return read_expression(select.expressions[0], lambda _, name: name)
    except RecursionError:
        raise _too_deep() from None


def parse_query(
    text: str,
    dataset: TableDataset,
    keys: Mapping[str, Sequence[object] | str] | None = None,
    bounds: Mapping[str, BoundsGiven] | None = None,
    cut: Cut | None = None,
) -> Query:
    """Turn a SELECT into a question with its free post-processing.

    The fixes of all refusals, also of those while planning, are in the words of SQL.
    """
    if keys is not None and not isinstance(keys, Mapping):
        example: list[object] = list(keys)[:2] if isinstance(keys, list | tuple) else ["A", "B"]
        raise bad_parameter("keys", "lists of values by column", keys, fix=Set(keys={"COLUMN": example}))
    try:
        select = _parsed(text, dataset.main)
        given = QuestionFacts(dict(keys or {}), read_question_bounds(bounds), read_cut(cut))
        answer, select_list = _question(select, TablesInReach(dataset), given)
    except (TacitError, RecursionError) as error:
        refused = error if isinstance(error, TacitError) else _too_deep()
        refusal = SqlAdvice.about(text, dataset).reworded(refused)
    else:
        arguments = select_list.arguments
        return replace(
            answer, reworded=lambda error: SqlAdvice.about(text, dataset, arguments).reworded(error)
        )
    raise refusal


def _parsed(text: object, table: str = "", *, wrap: str = "{}") -> exp.Expr:
    """Parse one SELECT, of a table or (without one) of a condition alone; or refuse the text."""
    if not isinstance(text, str) or len(text) > _MAX_TEXT or "\x00" in text:
        raise TacitError(
            "bad-sql", f"SQL must be text of at most {_MAX_TEXT:,} characters", fix=_example(table)
        )
    try:
        text, top = _without_top(text)
        parsed = sqlglot.parse(wrap.format(text), dialect="duckdb")
    except (SqlglotError, RecursionError) as error:
        detail = _trouble(error, len(wrap.partition("{")[0]))
        raise TacitError("bad-sql", f"this SQL cannot be read: {detail}", fix=_example(table)) from None
    match [one for one in parsed if one is not None]:
        case [exp.Select() as select]:
            if top is not None and select.args.get("limit") is None:
                select.set("limit", exp.Limit(expression=exp.Literal.number(top)))
            return select
        case [exp.SetOperation()]:
            problem, why = "UNION, INTERSECT and EXCEPT are not allowed", "one question is one SELECT"
        case [_, _, *_]:
            problem, why = "this is more than one statement", "one question is one SELECT"
        case _:
            problem, why = "this is not a SELECT", "a question can only read aggregates of the data"
    raise TacitError("not-allowed", problem, why=why, fix=_example(table))


def _without_top(text: str) -> tuple[str, str | None]:
    """Take ``TOP 5`` out of ``SELECT TOP 5 ...``, which other dialects write for LIMIT 5."""
    if "top" not in text.lower():
        return text, None
    depth, tokens = 0, sqlglot.tokenize(text, read="duckdb")
    for i, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth or token.token_type != TokenType.SELECT:
            continue
        at = i + 1 + (i + 1 < len(tokens) and tokens[i + 1].token_type == TokenType.DISTINCT)
        match tokens[at : at + 2]:
            case [word, number] if word.text.upper() == "TOP" and number.token_type == TokenType.NUMBER:
                return text[: word.start] + text[number.end + 1 :], number.text
    return text, None


def _example(table: str) -> Fix:
    return Do("ask-a-count", table=sql_name(table)) if table else _CONDITION


def _too_deep() -> TacitError:
    return TacitError("bad-sql", "this SQL is too deeply nested", fix="use a WITH clause")


def _trouble(error: SqlglotError | RecursionError, before: int) -> str:
    """Say in plain words where the text stops being SQL; ``before`` letters stood in front of it."""
    if isinstance(error, RecursionError):
        return "it is too deeply nested"
    if not isinstance(error, ParseError) or not error.errors:
        return "a quotation mark may be missing"
    details = error.errors[0]
    described, word = str(details["description"]), str(details["highlight"])
    line, column = details["line"], details["col"]
    position = f"{word!r} (line {line}, column {column - before if line == 1 else column})"
    if described.startswith("Expecting"):
        return f"{described.removeprefix('Expecting').strip()} is missing near {position}"
    if described.startswith(("Required", "Expected")):
        return f"something is missing near {position}"
    return f"{position} is not expected there"


@dataclass(frozen=True, slots=True)
class QuestionFacts:
    """The public facts that come with a question: keys by group, bounds by column, how rare a cut is."""

    keys: dict[str, Sequence[object] | str]
    bounds: dict[str, RangeOrAuto]
    cut: Cut | None = None


def read_question_bounds(bounds: Mapping[str, BoundsGiven] | None) -> dict[str, RangeOrAuto]:
    """Read the bounds that come with a question."""
    if bounds is None:
        return {}
    if not isinstance(bounds, Mapping):
        raise bad_parameter("bounds", "ranges by column", bounds, fix=Set(bounds={"COLUMN": (0, 30)}))
    return {name: AUTO if one == AUTO else read_bounds(name, one) for name, one in bounds.items()}


def _question(select: exp.Expr, reach: TablesInReach, given: QuestionFacts) -> tuple[Query, SelectList]:
    only(
        select,
        "expressions",
        "from_",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "joins",
        "with_",
        "distinct",
    )
    reach = with_clauses(select, reach)
    source = from_clause(select, reach)
    if any(e.is_star for e in select.expressions):
        raise _rows_asked("SELECT * asks for the rows themselves", reach)
    rows = selected_rows(select, source, reach)
    by = _groups(select, source.find, levels=True)
    select_list = SelectList(source.find, by, after_noise=True)
    expressions = select.expressions if source.is_open else with_earlier_aliases(select, source.names)
    items = [(alias_of(e), select_list.read(unaliased(e), alias_of(e))) for e in expressions]
    having = having_of(select, select_list)
    order = order_of(select, select_list, {name.lower(): node for name, node in items if name})
    if not select_list.aggregates:
        if not by:
            raise _rows_asked("a question needs at least one aggregate", reach)
        select_list.count_units()
    if not any(names(node) & select_list.aggregates.keys() for _, node in items):
        items += [
            (name, Column(name)) for name in select_list.aggregates
        ]  # groups alone show how large they are
    nodes = [*(n for _, n in items), *(n for n, _ in order), *([having] if having else [])]
    select_list.check_grouped(nodes, rows.relation)
    post = _postprocessing(select_list, items, having, order, limit_of(select))
    select_list.clip(given.bounds, tuple(scope(rows.relation)))
    if given.cut is not None:
        select_list.make_cut_rare(rows.relation)
    answer = _aggregated(rows, by, select_list, given.keys, levels_of(select))
    return answer.shown(post), select_list


def _groups(select: exp.Expr, find: ColumnFinder, *, levels: bool = False) -> list[tuple[str, Node]]:
    """Read GROUP BY, or DISTINCT, which groups by the whole SELECT list."""
    by, distinct = groups_of(select, find, levels=levels), select.args.get("distinct")
    if distinct is None:
        return by
    only(distinct)
    if not by and not any(has_aggregate(e) for e in select.expressions):
        return [
            (name_of(e, i), read_expression(unaliased(e), find)) for i, e in enumerate(select.expressions)
        ]
    groups = [read_expression(unaliased(e), find) for e in select.expressions if not has_aggregate(e)]
    if any(node not in groups for _, node in by):
        raise refuse(select, "DISTINCT needs every group in the SELECT list", "remove DISTINCT")
    return by


def _rows_asked(problem: str, reach: TablesInReach) -> TacitError:
    return TacitError(
        "not-allowed",
        problem,
        why="Tacit never shows rows, only noisy aggregates",
        fix=_example(reach.dataset.main),
    )


def _postprocessing(
    select_list: SelectList,
    items: list[tuple[str, Node]],
    having: Node | None,
    order: list[tuple[Node, bool]],
    limit: int | None,
) -> PostProcessing | None:
    """Put together how the answer is shown; None where it is shown as it is."""
    outputs = outputs_of(items)
    for name, node in outputs:
        if isinstance(node, Column) and node.name in select_list.keys:
            select_list.keys[node.name] = name
    outputs = select_list.spread([(name, select_list.renamed(node)) for name, node in outputs])
    plain = all(isinstance(node, Column) and node.name == name for name, node in outputs)
    names = [c for name, asked in select_list.aggregates.items() for c in asked.column_names(name)]
    in_order = [name for name, _ in outputs] == [*select_list.keys.values(), *names]
    if plain and in_order and having is None and not order and limit is None:
        return None
    return PostProcessing(
        tuple(outputs),
        select_list.renamed(having) if having else None,
        tuple((select_list.renamed(node), descending) for node, descending in order),
        limit,
    )


def _aggregated(
    rows: Rows,
    by: list[tuple[str, Node]],
    select_list: SelectList,
    keys: dict[str, Sequence[object] | str],
    levels: Levels,
) -> Query:
    """Aggregate the rows, in groups if there are any.

    The given keys come beside those that are known; they count only if all groups have some.
    """
    if not by:
        return rows.agg(**select_list.aggregates)
    groups = {select_list.keys[old]: node for old, node in by}
    keys_of_groups = {name: keys[name] for name in groups if name in keys}
    if keys_of_groups:
        facts = scope(rows.relation)
        if any(n not in keys_of_groups and keys_of(node, facts) is None for n, node in groups.items()):
            keys_of_groups = {}
    grouped = rows.grouped(list(groups.items()), keys_of_groups or None)
    return replace(grouped, levels=levels).agg(**select_list.aggregates)


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
        sql_of_words = {words_of(node): sql.sql(dialect="duckdb") for node, sql in (arguments or {}).items()}
        return cls(text, columns, sql_of_words, ", ".join(map(sql_name, dataset.identity.unit.columns)))

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
        new = [reworded for fix in fixes if (reworded := self._fix(fix, code)) != fix]
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
