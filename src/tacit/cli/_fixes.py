"""Fixes in the words of the command line: options, lines of ``tacit.toml``, SQL and typed commands.

A refusal carries its fix as data (`tacit.fixes`). This module matches on the classes and writes each one for
a person who typed a command. Where only Python could help, it shows the advice for the error's code.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from tacit.cli._actions import WORDS_OF_ACTIONS
from tacit.cli._advice import ADVICE
from tacit.cli._context import CommandContext, current_context
from tacit.cli._fact_options import budget_parts, fact_option
from tacit.cli._output import typed
from tacit.cli._sql import sql_name
from tacit.cli._toml import has_line, line_number, number_text, toml_key, toml_value
from tacit.fixes import (
    FROM_PUBLIC_KNOWLEDGE,
    MOST_NAMES,
    Choose,
    Code,
    Declare,
    Do,
    Either,
    FactName,
    Fix,
    Say,
    Set,
    more_names,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.errors import TacitError

#: Facts that are declared for each column, limit or table, each in a section of its own.
_SECTIONS: Final = frozenset({"bounds", "keys", "limits", "public", "types"})

#: Parameters of the library that are options of a command, where the two names differ.
_RENAMED: Final = {
    "days_before": "days-before", "degree_bound": "degree-bound",
    "epsilons": "epsilon", "false_alarm": "false-alarm", "families": "family",
    "mean_degree": "mean-degree", "most_days": "most-days", "priors": "prior",
}  # fmt: skip
_FLAGS: Final = frozenset({"again", "directed", "promised", "replace"})
_OPTIONS: Final = frozenset(
    {
        "account", "baseline", "charge", "confidence", "days", "days-before", "degree-bound", "delta",
        "epsilon", "error",
        "false-alarm", "family", "focus", "k", "lat", "level", "lon", "mean-degree", "most-days", "n",
        "nodes", "prior", "purpose", "rho",
        "samples", "size", "statement", "statistic", "tau", "trials", "who", "window", "within",
    }
)  # fmt: skip


def in_words_of_the_command(error: TacitError, context: CommandContext | None = None) -> TacitError:
    """Return a refusal whose fix can be typed; its code and its meaning stay the same."""
    words = _words(error.fix, context or current_context(), error.code)
    return error.but(fix=words if words.strip() else ADVICE[error.code])


def _words(fix: Fix, context: CommandContext, code: str) -> str:
    """Write a fix for the terminal; empty where the command has no words for it."""
    match fix:
        case Say(text):
            return text
        case Code():
            return ""
        case Set(values, upper):
            words = _set(values, context)
            return f"{words} or less" if words and upper else words
        case Declare():
            return _declare(fix, context)
        case Choose(names, _, close):
            return _choose(names, close, context)
        case Do("grow-budget", {"old": old, **rest}):
            back = Declare("budget", old, example=False)
            return _either((back, Do("grow-budget", **rest)), context, code)
        case Do(action, arguments):
            return WORDS_OF_ACTIONS[action](arguments, context)
        case Either(fixes):
            return _either(fixes, context, code)


def _set(values: Mapping[str, object], context: CommandContext) -> str:
    """Write other parameters as options; a fact of the dataset among them is one to declare."""
    if {"source_column", "target_column"} <= values.keys():
        return "--columns " + typed(",".join((str(values["source_column"]), str(values["target_column"]))))
    words = [_parameter(name, value, context) for name, value in values.items()]
    return " ".join(words) if all(words) else ""


def _parameter(name: str, value: object, context: CommandContext) -> str:
    match name, value:
        case "bounds", (low, high):
            return f"--bounds {number_text(low)} {number_text(high)}"
        case (("bounds" | "keys" | "limits" | "public" | "types"), Mapping()):
            return "; ".join(_declare(Declare(name, one, column=key), context) for key, one in value.items())
        case "box", ((south, west), (north, east)):
            return "--box " + " ".join(map(number_text, (south, west, north, east)))
        case "keys", _:
            return fact_option("keys", "COLUMN", ["A", "B"])
        case _ if name in get_args(FactName):
            return _declare(Declare(name, value), context)  # type: ignore[arg-type]
    option = context.options.get(name, "")[2:] or _RENAMED.get(name, name)
    if value is True and (option in _FLAGS or name in context.options):
        return f"--{option}"
    if option not in _OPTIONS and name not in context.options:
        return ""
    values = list(value) if isinstance(value, list | tuple) else [value]
    if any(one is None or isinstance(one, bool) for one in values):
        return ""
    return " ".join(f"--{option} {_typed_value(option, one)}" for one in values)


def _typed_value(option: str, value: object) -> str:
    """Write the value of an option. A delta of 0.5, the example for any number, would be bad advice."""
    if isinstance(value, str):
        return typed(value)
    return "1e-6" if option == "delta" and float(value) > 0.01 else number_text(value)  # type: ignore[arg-type]


def _declare(fix: Declare, context: CommandContext) -> str:
    """Say where a fact is declared: an option of ``tacit init``, or a line of the config."""
    section = fix.fact if fix.fact in _SECTIONS else ""
    if section and not fix.column:
        return ""
    value = _value(fix)
    a_range = fix.fact == "bounds" and fix.example
    note = FROM_PUBLIC_KNOWLEDGE if a_range else ""
    if context.config is None:
        option = fact_option(fix.fact, fix.column, ("LOW", "HIGH") if a_range else value)
        if option:
            return option + note
    if fix.fact == "name":
        return f"call the dataset {value} in tacit.toml: [datasets.{toml_key(str(value))}]"
    name = context.dataset or ("" if section else fix.column) or "NAME"
    key = toml_key(fix.column if section else fix.fact)
    written = "[LOW, HIGH]" if a_range else toml_value(value)
    return f"{_place(context, name, section, key)}: {key} = {written}{note}"


def _place(context: CommandContext, dataset: str, section: str, key: str) -> str:
    heading = _heading(dataset, section)
    file = context.config or Path("tacit.toml")
    number = line_number(file, heading, key)
    return f"{file} line {number}, under {heading}" if number else f"{file}, under {heading}"


def _heading(dataset: str, section: str) -> str:
    return f"[datasets.{toml_key(dataset)}{'.' + section if section else ''}]"


def _value(fix: Declare) -> object:
    """Return what to declare in the plain types of TOML."""
    match fix.fact, fix.value:
        case "keys", [*values] if ... not in values:
            return list(values)
        case "keys", str(column_of_public_table):
            return column_of_public_table
        case "keys", _:
            return ["A", "B"]
        case "public", (str(source), str(key)):
            return {"source": source, "key": key}
        case "budget", value:
            return budget_parts(value)
        case "types", type() as kind:
            return kind.__name__
        case _, value:
            return value


def _choose(names: Sequence[str], close: str, context: CommandContext) -> str:
    write = sql_name if context.sql else typed
    listed = f"one of: {', '.join(map(write, names[:MOST_NAMES]))}" + more_names(names)
    return f"{write(close)}? {listed}" if close else listed


def _either(fixes: Sequence[Fix], context: CommandContext, code: str) -> str:
    if code == "keys-missing":
        return _keys_needed(fixes, context)
    words = dict.fromkeys(_words(fix, context, code) for fix in fixes)
    return ", or ".join(one for one in words if one)


def _keys_needed(fixes: Sequence[Fix], context: CommandContext) -> str:
    """Name every group that lacks keys; offer a delta only where the budget has one."""
    asked = [fix for fix in fixes if isinstance(fix, Declare)]
    given = [fix.values["keys"] for fix in fixes if isinstance(fix, Set) and "keys" in fix.values]
    asked += [
        Declare("keys", v, column=str(c))
        for keys in given
        if isinstance(keys, Mapping)
        for c, v in keys.items()
    ]
    missing = [fix for fix in asked if fix.column not in context.keyed] or asked
    read = [fix for fix in missing if isinstance(fix.value, str)]  # an option cannot name a public table
    listed = [fix for fix in missing if fix not in read]
    words = " ".join(fact_option("keys", fix.column, _value(fix)) for fix in listed)
    words = " and ".join([*([words] if words else []), *(_declare(fix, context) for fix in read)])
    file = context.config
    if file is not None and not read and all(has_line(file, toml_key(fix.column)) for fix in missing):
        words += f" (or once for all questions in {file}, under {_heading(context.dataset, 'keys')})"
    delta = next((fix for fix in fixes if isinstance(fix, Set) and "delta" in fix.values), None)
    if context.delta and delta is not None:
        words += f", or {_set(delta.values, context)} to select groups privately"
    return words
