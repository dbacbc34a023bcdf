"""Options that several commands share, and public facts as options, such as ``--bounds stay=0:30``.

Shared options are declared once, in dataclasses; commands take an object of them. Facts are also written
here: as lines of ``tacit.toml``, and as SQL with quoted names and ranges.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from tacit.cli._output import typed
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import FROM_PUBLIC_KNOWLEDGE, Choose

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tacit.accounting import Budget


def toml_text(text: str) -> str:
    """Write a TOML string. JSON has the same escapes, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_key(text: str) -> str:
    """Write a TOML key, in quotes where it needs them."""
    plain = text.isascii() and text.replace("_", "").replace("-", "").isalnum()
    return text if plain else toml_text(text)


def toml_list(values: Sequence[object]) -> str:
    """Write a TOML array."""
    return "[" + ", ".join(toml_value(value) for value in values) + "]"


def toml_table(values: Mapping[str, object]) -> str:
    """Write a TOML table on one line."""
    return "{" + ", ".join(f"{name} = {toml_value(value)}" for name, value in values.items()) + "}"


def toml_value(value: object) -> str:
    """Write a value as TOML.

    Examples
    --------
    >>> toml_value((0, 30)), toml_value("text"), toml_value({"source": "h.csv", "key": "hospital"})
    ('[0, 30]', '"text"', '{source = "h.csv", key = "hospital"}')
    """
    match value:
        case bool():
            return str(value).lower()
        case list() | tuple():
            return toml_list(value)
        case dict():
            return toml_table(value)
        case str():
            return toml_text(value)
        case _:
            return number_text(value)


def number_text(value: object) -> str:
    """Write a number as people type it.

    Examples
    --------
    >>> number_text(3.0), number_text(1e-06), number_text(0.5), number_text(1_000_000)
    ('3', '1e-6', '0.5', '1000000')
    """
    if isinstance(value, int):
        return str(value)
    number = float(value)  # type: ignore[arg-type]
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return re.sub(r"e([+-])0+(?=\d)", r"e\1", repr(number))


def line_number(file: Path, heading: str, key: str) -> int | None:
    """Find the line below a heading that declares a key or hints at it; else the line after the heading."""
    lines = _lines(file)
    if heading not in lines:
        return None
    start = lines.index(heading) + 1
    for number, line in enumerate(lines[start:], start + 1):
        if line.startswith("["):
            break
        if re.match(rf"#? ?{re.escape(key)} *=", line):
            return number
    return start + 1


def has_line(file: Path, key: str) -> bool:
    """Report whether a line of the file declares a key or hints at it."""
    return any(re.match(rf"#? ?{re.escape(key)} *=", line) for line in _lines(file))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []


def sql_name(name: str) -> str:
    """Write the name of a column or table, in double quotes where SQL needs them."""
    plain = name.isascii() and name.isidentifier()
    return name if plain or name.startswith('"') else f'"{name}"'


def range_in_question(sql: str, expression: str) -> str:
    """Say how to give the range of an expression in the question itself."""
    aggregate = clipped_aggregate(sql, expression, "LOW", "HIGH")
    return f"give the range in the question: {aggregate}{FROM_PUBLIC_KNOWLEDGE}"


def clipped_aggregate(sql: str, expression: str, low: object, high: object) -> str:
    """Write the aggregate of an expression in a question with a range for it; without one, the expression.

    Examples
    --------
    >>> clipped_aggregate("SELECT COUNT(*), AVG(stay / 2) FROM visits", "stay / 2", 0, 15)
    'AVG(LEAST(GREATEST(stay / 2, 0), 15))'
    """
    import sqlglot
    from sqlglot import expressions as exp
    from sqlglot.errors import SqlglotError

    clipped = f"LEAST(GREATEST({expression}, {low}), {high})"
    try:
        aggregates = list(sqlglot.parse_one(sql, dialect="duckdb").find_all(exp.AggFunc))
    except SqlglotError:
        return clipped
    for aggregate in aggregates:
        inner = aggregate.this
        if isinstance(inner, exp.Expr) and inner.sql(dialect="duckdb") == expression:
            return aggregate.sql(dialect="duckdb").replace(expression, clipped, 1)
    return clipped


def tables_in(sql: str) -> frozenset[str]:
    """Return the tables that a question reads, in lower case; none where the text is not SQL.

    Examples
    --------
    >>> sorted(tables_in("WITH w AS (SELECT * FROM Visits) SELECT COUNT(*) FROM w JOIN codes USING (icd)"))
    ['codes', 'visits']
    """
    import sqlglot
    from sqlglot import expressions as exp
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse_one(sql, dialect="duckdb")
    except (SqlglotError, RecursionError):
        return frozenset()
    subqueries = {part.alias.lower() for part in parsed.find_all(exp.CTE)}
    return frozenset(table.name.lower() for table in parsed.find_all(exp.Table)) - subqueries - {""}


def read_pair_option(name: str, text: str | None) -> tuple[float, float] | None:
    """Read two numbers with a comma between them.

    Examples
    --------
    >>> read_pair_option("attack", "0.01,0.02")
    (0.01, 0.02)
    """
    if text is None:
        return None
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        fix = f"--{name} 0.01,0.02"
        raise bad_parameter(f"--{name}", "two numbers with a comma between them", text, fix=fix) from None
    return first, second


@dataclass(frozen=True, kw_only=True)
class Total:
    """What an answer may cost."""

    epsilon: Annotated[float | None, typer.Option("--epsilon", "-e", help="What the answer may cost.")] = None
    delta: Annotated[
        float, typer.Option(help="Allow Gaussian noise and private groups, with this delta.")
    ] = 0
    rho: Annotated[float | None, typer.Option(help="Instead of epsilon: the cost in rho (zCDP).")] = None
    confidence: Annotated[float, typer.Option(help="How often the intervals cover the noise.")] = 0.95
    advantage: Annotated[
        float | None,
        typer.Option(help="Instead of epsilon: by how much an attacker's hits may exceed false alarms."),
    ] = None
    attack: Annotated[
        str | None,
        typer.Option(help="0.01,0.02, instead of epsilon: a rate of false alarms, and of hits at it."),
    ] = None
    belief: Annotated[
        str | None,
        typer.Option(help="0.01,0.02, instead of epsilon: a belief before the answer and the largest after."),
    ] = None
    total: Annotated[
        str | None, typer.Option(help="With such a risk: the answer costs an epsilon or a rho.")
    ] = None

    @property
    def goal(self) -> dict[str, Any]:
        """What the plan of a question takes."""
        numbers = ("epsilon", "delta", "rho", "confidence", "advantage", "total")
        pairs = {name: read_pair_option(name, getattr(self, name)) for name in ("attack", "belief")}
        return {name: getattr(self, name) for name in numbers} | pairs


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Who asks, and for which purpose."""

    who: Annotated[str, typer.Option(help="Who asks; recorded in the ledger.")] = ""
    purpose: Annotated[str, typer.Option(help="For which purpose; recorded in the ledger.")] = ""


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Expand each parameter of a command that is such a dataclass into the options of its fields.

    A parameter whose class has a method ``of_command`` gets the options that the command's own class adds and
    that no parameter names: the method is given the command that was typed, and the values.
    """
    parameters_of_command = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: one.annotation for name, one in parameters_of_command.items() if is_dataclass(one.annotation)
    }
    further = next((name for name, group in groups.items() if hasattr(group, "of_command")), "")
    rest = groups.pop(further, None)
    shared = {name: _options(group) for name, group in groups.items()}
    own_options = {
        name: one for name, one in parameters_of_command.items() if name not in groups and name != further
    }
    every_option = [
        option
        for name, one in parameters_of_command.items()
        if name != further
        for option in shared.get(name, [one])
    ]
    options_by_name = {option.name: option for option in every_option}

    def run(context: typer.Context, **values: Any) -> None:
        arguments = {name: values[name] for name in own_options}
        for name, options in shared.items():
            arguments[name] = groups[name](**{one.name: values[one.name] for one in options})
        if rest is not None:
            arguments[further] = rest.of_command(
                context.command, {k: v for k, v in values.items() if k not in options_by_name}
            )
        command(**arguments)

    here = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [*sorted(options_by_name.values(), key=lambda one: one.kind), here]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _options(group: Any) -> list[inspect.Parameter]:
    """Return the fields of a dataclass as parameters of a command."""
    hints = get_type_hints(group, include_extras=True)
    declared = inspect.signature(group).parameters.values()
    return [one.replace(annotation=hints[one.name]) for one in declared]


def read_column_option(option: str, text: str, columns: Sequence[str]) -> tuple[str, str]:
    """Read ``COLUMN=VALUE``; the column must be one of the file's."""
    fits = [column for column in columns if text.startswith(column + "=")]
    if not fits:
        column, equals, _ = text.partition("=")
        if not equals:
            meant = _meant(text, columns)
            raise bad_parameter(option, "COLUMN=VALUE", text, fix=f"{option} {typed(meant + '=...')}")
        raise TacitError(
            "unknown-column",
            f"{option}: there is no column {column!r}",
            fix=Choose(tuple(columns), given=column, close=closest(column, columns)),
        )
    column = max(fits, key=len)
    return column, text[len(column) + 1 :]


def _meant(text: str, columns: Sequence[str]) -> str:
    """Return the column that a text without ``=`` names: by its beginning, or by a similar name."""
    begun = [column for column in columns if text.lower().startswith(column.lower())]
    return max(begun, key=len, default="") or closest(text, columns) or columns[0]


def closest(column: str, columns: Sequence[str]) -> str:
    """Return the column with the most similar name, if any is similar."""
    plain = {one.strip().lower(): one for one in columns}
    matches = get_close_matches(column.strip().lower(), plain, 1)
    return plain[matches[0]] if matches else ""


def read_bounds_option(text: str, columns: Sequence[str]) -> tuple[str, tuple[float, float]]:
    """Read ``COLUMN=LOW:HIGH``."""
    column, value = read_column_option("--bounds", text, columns)
    low, _, high = value.partition(":")
    try:
        return column, (float(low), float(high))
    except ValueError:
        fix = fact_option("bounds", column, ("LOW", "HIGH"))
        raise bad_parameter("--bounds", "COLUMN=LOW:HIGH", text, fix=fix) from None


def read_question_bounds_option(text: str) -> tuple[str, tuple[float, float] | Literal["auto"]]:
    """Read ``COLUMN=LOW:HIGH`` or ``COLUMN=auto`` of a question, whose columns the question checks.

    Examples
    --------
    >>> read_question_bounds_option("stay=auto"), read_question_bounds_option("stay=0:30")
    (('stay', 'auto'), ('stay', (0.0, 30.0)))
    """
    column, _, value = text.rpartition("=")
    if column and value == "auto":
        return column, "auto"
    return read_bounds_option(text, (column,))


def read_keys_option(text: str, columns: Sequence[str], types: Mapping[str, str]) -> tuple[str, list[object]]:
    """Read ``COLUMN=A,B,C``. The keys of a column of numbers are numbers."""
    column, value = read_column_option("--keys", text, columns)
    words = [word.strip() for word in value.split(",")]
    if "..." in words:  # stands for them in the lines that commands propose
        fix = fact_option("keys", column, ["A", "B"])
        raise bad_parameter("--keys", "the values themselves, such as A,B", text, fix=fix)
    try:
        match types.get(column, "text"):
            case "number":
                return column, [int(w) if w.lstrip("-").isdigit() else float(w) for w in words]
            case "boolean":
                return column, [{"true": True, "false": False}[w.lower()] for w in words]
            case _:
                return column, list(words)
    except (ValueError, KeyError):
        kind, fix = types[column], fact_option("types", column, "text")
        raise bad_parameter("--keys", f"keys of a {kind} column", text, fix=fix) from None


def read_question_keys(text: str, types: Mapping[str, str]) -> tuple[str, list[object]]:
    """Read ``NAME=A,B,C`` for a column or an expression. Keys that are all numbers are read as numbers.

    Examples
    --------
    >>> read_question_keys("month=1,2", {}), read_question_keys("zip=01,02", {"zip": "text"})
    (('month', [1, 2]), ('zip', ['01', '02']))
    """
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise bad_parameter("--keys", "COLUMN=A,B,C", text, fix=fact_option("keys", "ward", ["A", "B"]))
    if types.get(name, "number") == "number":
        try:
            return read_keys_option(text, [name], {name: "number"})
        except TacitError:
            pass
    return read_keys_option(text, [name], types)


def read_limit_option(text: str) -> tuple[str, Any]:
    """Read ``rows=8``. The library checks which limits exist, and refuses ``rows=auto`` with its reason."""
    name, _, value = text.partition("=")
    if value == "auto":
        return name, value
    try:
        return name, int(value)
    except ValueError:
        raise bad_parameter("--limit", "NAME=WHOLE NUMBER", text, fix="--limit rows=8") from None


def fact_option(fact: str, name: str, value: object) -> str:
    """Write a fact as an option of ``tacit init``; empty where there is no such option.

    Examples
    --------
    >>> fact_option("bounds", "stay", (0, 30)), fact_option("keys", "my ward", ["A", "B"])
    ('--bounds stay=0:30', '--keys "my ward=A,B"')
    """
    match fact, value:
        case "bounds", (low, high):
            option, words = "--bounds", f"{name}={_written(low)}:{_written(high)}"
        case "keys", [*values]:
            option, words = "--keys", f"{name}={','.join(map(_written, values))}"
        case "types", str(kind):
            option, words = "--type", f"{name}={kind}"
        case "limits", int(most):
            option, words = "--limit", f"{name}={most}"
        case "unit", str(column):
            option, words = ("--unit", column) if column else ("--row", "")
        case "name", str(called):
            option, words = "--name", called
        case "budget", dict(parts):
            return " ".join(f"--{part} {number_text(number)}" for part, number in parts.items())
        case _:
            return ""
    return f"{option} {typed(words)}" if words else option


def budget_parts(budget: object) -> dict[str, object]:
    """Return the numbers of a budget that are set, whether it is a `Budget` or a mapping."""
    parts = ("epsilon", "delta", "rho")
    if isinstance(budget, Mapping):
        return {part: budget[part] for part in parts if budget.get(part)}
    return {part: number for part in parts if (number := getattr(budget, part, None))}


def budget_text(budget: Budget) -> str:
    """Write a budget in words: ``epsilon 3, delta 1e-6``."""
    return ", ".join(f"{part} {number_text(number)}" for part, number in budget_parts(budget).items())


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return number_text(value) if isinstance(value, int | float) else str(value)
