"""Fixes in the words of the service: fields of a question, acts of curators, SQL; never Python.

A refusal carries its fix as data (`tacit.fixes`). This module matches on the classes and writes each one for
a person at a page or behind a request. Where only Python could help, the advice for the error's code stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from tacit.fixes import (
    ACTIONS,
    FROM_PUBLIC_KNOWLEDGE,
    MOST_NAMES,
    Choose,
    Code,
    Declare,
    Do,
    Either,
    Fix,
    Say,
    Set,
    more_names,
)
from tacit.service._fix_advice import OPERATOR, SERVICE_ADVICE

if TYPE_CHECKING:
    from tacit.errors import TacitError

#: What the fields of a question are called on the page.
_FIELDS: Final = {
    "epsilon": "epsilon", "delta": "delta", "rho": "rho", "within": "the error to stay within",
    "confidence": "the confidence", "size": "the guess of rows in each group", "keys": "the keys",
    "limits": "the limits", "account": "the account", "purpose": "the purpose", "sql": "the question",
}  # fmt: skip
_FACTS: Final = {
    "adjacency": "which datasets are neighbours", "bounds": "a range", "budget": "the budget",
    "keys": "the list of groups", "limits": "a limit", "name": "the name", "never_null": "never missing",
    "parent": "the shared account", "public": "a public table", "record": "what the log keeps",
    "source": "the source", "types": "the type", "unit": "who is protected", "version": "the version",
}  # fmt: skip


def fix_words(error: TacitError) -> str:
    """Return the fix of a refusal in words for pages and programs; no Python and no command is in them.

    Examples
    --------
    >>> from tacit.errors import TacitError
    >>> fix_words(TacitError("charge-too-large", "too much", fix=Set.at_most(epsilon=0.5)))
    'set epsilon to 0.5 or less'
    """
    words = _words(error.fix)
    if not words.strip():
        return "" if not str(error.fix) else SERVICE_ADVICE.get(error.code, "")
    return words


def fix_data(error: TacitError) -> dict[str, object]:
    """Return the fix as JSON data for programs; a line of Python becomes the words for it."""
    from tacit.fixes import to_json

    return to_json(_without_code(error.fix, fix_words(error)))


def _without_code(fix: Fix, words: str) -> Fix:
    match fix:
        case Code():
            return Say(words)
        case Either(fixes):
            kept = [one for one in fixes if not isinstance(one, Code)]
            return Either(*(_without_code(one, words) for one in kept)) if kept else Say(words)
        case _:
            return fix


def _words(fix: Fix) -> str:
    match fix:
        case Say(text):
            return text
        case Code():
            return ""
        case Set(values, upper):
            words = _set(values)
            return f"{words} or less" if words and upper else words
        case Declare():
            return _declare(fix)
        case Choose(names, _, close):
            listed = f"one of: {', '.join(names[:MOST_NAMES])}" + more_names(names)
            return f"did you mean {close}? {listed}" if close else listed
        case Do(action, arguments):
            return WORDS_OF_SERVICE_ACTIONS[action](arguments)
        case Either(fixes):
            several = dict.fromkeys(_words(one) for one in fixes)
            return ", or ".join(one for one in several if one)


def _set(values: Mapping[str, object]) -> str:
    """Write other values for fields; a parameter that the service does not have has no words."""
    words = []
    for name, value in values.items():
        match name, value:
            case (("bounds" | "types" | "public" | "unit" | "record"), _):
                return ""
            case (("keys" | "limits"), Mapping()):
                words += [f"{_FIELDS[name]} of {key} to {_value(one)}" for key, one in value.items()]
            case _ if value is None and name in _FIELDS:
                words.append(f"{_FIELDS[name]} to nothing")
            case _ if name in _FIELDS and not isinstance(value, bool):
                shown = "1e-6" if name == "delta" and _is_large(value) else _value(value)
                words.append(f"{_FIELDS[name]} to {shown}")
            case _:
                return ""
    return f"set {' and '.join(words)}" if words else ""


def _is_large(value: object) -> bool:
    """Whether a delta is the example for any number, which would be bad advice."""
    return isinstance(value, int | float | Fraction) and value > Fraction(1, 100)


def _declare(fix: Declare) -> str:
    """Say what the curator has to declare, and of which column."""
    what, about = _FACTS.get(fix.fact, str(fix.fact)), f" of {fix.column}" if fix.column else ""
    if fix.fact == "bounds":
        value = "" if fix.example else f": {_value(fix.value)}"
        return f"ask the curator to declare {what} for {fix.column or 'the values'}{value}" + (
            FROM_PUBLIC_KNOWLEDGE if fix.example else ""
        )
    if fix.fact == "keys":
        return f"ask the curator to declare {what}{about}, or list the groups in the field keys"
    value = "" if fix.example or not _is_short(fix.value) else f": {_value(fix.value)}"
    return f"ask the curator to declare {what}{about}{value}"


def _is_short(value: object) -> bool:
    return isinstance(value, str | int | float | Fraction) and not isinstance(value, bool)


def _value(value: object) -> str:
    match value:
        case [*parts] | (*parts,):
            return ", ".join(_value(one) for one in parts if one is not ...)
        case float() if value == int(value) and abs(value) < 10**15:
            return str(int(value))
        case _:
            return str(value)


def _sql_name(name: object) -> str:
    text = str(name)
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) is not None
    return text if plain else '"' + text.replace('"', '""') + '"'


def _formatted(action: str) -> Callable[[Mapping[str, object]], str]:
    return lambda arguments: ACTIONS[action].format(**arguments)


def _says(text: str) -> Callable[[Mapping[str, object]], str]:
    return lambda _: text


#: The words for each action of `tacit.fixes.ACTIONS`.
WORDS_OF_SERVICE_ACTIONS: Final[dict[str, Callable[[Mapping[str, object]], str]]] = {
    "aggregate-per-unit": _formatted("aggregate-per-unit"),
    "ask-a-count": lambda a: f"SELECT COUNT(*) FROM {_sql_name(a['table'])}",  # noqa: S608 - shown, never run
    "bound-aggregate": lambda a: (
        f"LEAST(GREATEST({a.get('expression', 'the value')}, LOW), HIGH){FROM_PUBLIC_KNOWLEDGE}"
    ),
    "choose-account": _says("choose one of your allotments, or ask the curator for one"),
    "clip-in-question": _formatted("clip-in-question"),
    "compare-in-question": _formatted("compare-in-question"),
    "continue-from-backup": _says(OPERATOR),
    "convert-csv": _says("ask the operator to repair the file, or to convert it to Parquet"),
    "convert-in-question": _formatted("convert-in-question"),
    "create-account": _says("choose one of your allotments, or ask the curator for one"),
    "declare-encoding": _says("ask the operator to declare the encoding of the file"),
    "export-release": _says("download the answer as CSV and compute it there"),
    "give-key-file": _says(OPERATOR),
    "give-witness-file": _says(OPERATOR),
    "grow-budget": _says("ask the curator for a larger budget; a second person has to agree"),
    "install": _says(OPERATOR),
    "open-ledger": _says(OPERATOR),
    "restore-ledger": _says(OPERATOR),
    "save-certificate": _says("send the certificate as it was downloaded with its release"),
    "summarise-units": _formatted("summarise-units"),
    "unseal-ledger": _says(OPERATOR),
    "verify-ledger": _says("an auditor can verify the ledger on its page"),
    "wait-for-lock": _says("try again in a minute"),
}
