"""Refusals: those of the service itself, and how every refusal is answered to a person or a program.

The service's own refusals, beside those of the library, say who may not do what, and what cannot be read.

An answer is a problem as RFC 9457 has it: one table of status codes, one door, nothing of the input in it.
A refusal carries its fix as data (`tacit.fixes`). This module matches on the classes and writes each one in
the words of the service: fields of a question, acts of curators, SQL; never Python. Where only Python could
help, the advice for the error's code stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from tacit.engines import quote
from tacit.errors import TacitError
from tacit.fixes import (
    ACTIONS,
    FROM_PUBLIC_KNOWLEDGE,
    MAX_NAMES,
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

#: What a person outside may know of a failure whose details name files and servers.
_OPERATOR = "the service cannot do this now; its operator sees the reason"
#: What helps where only the operator can help.
OPERATOR: Final = "the operator of the service has to act; give them the number of the request"
#: One line for every code of `tacit.errors.CODES`.
SERVICE_ADVICE: Final[dict[str, str]] = {
    "bad-parameter": "check the fields of the request; the description of the API lists what each takes",
    "budget-exceeded": "ask with a smaller epsilon, or ask the curator for a larger allotment",
    "unknown-version": "send a document that this version of the service has written",
    "adjacency-mixed": "ask the curator to declare one adjacency for the dataset",
    "no-guarantee": "give a delta, such as 1e-6, or another epsilon",
    "randomness-failed": OPERATOR,
    "does-not-fit": "ask with a larger epsilon, smaller limits or narrower bounds",
    "not-finite": "ask the curator to declare a range for the column",
    "unknown-category": "use one of the declared keys",
    "bad-report": "check that the reports belong to this survey",
    "run-spent": "ask again",
    "unknown-account": "choose one of your allotments",
    "account-differs": "choose one of your allotments, or ask the curator",
    "account-expired": "ask the curator for an allotment for the new period",
    "account-frozen": "ask the curator why the account is frozen",
    "clock-behind": OPERATOR,
    "charge-too-large": "ask with a smaller epsilon",
    "key-reused": "send a new idempotency key",
    "spent": "ask again with another epsilon; the earlier charge stays",
    "too-noisy": "ask with a larger epsilon, in fewer and larger groups, or with narrower bounds",
    "release-failed": "ask the curator to check the source; the charge stays",
    "run-finished": "plan another run; it is charged again",
    "instalment-lost": "draw the next instalment",
    "instalment-not-drawn": "draw the instalment first",
    "artifact-lost": OPERATOR,
    "ledger-closed": OPERATOR,
    "ledger-sealed": OPERATOR,
    "ledger-locked": OPERATOR,
    "ledger-unavailable": OPERATOR,
    "ledger-read-only": OPERATOR,
    "ledger-damaged": OPERATOR,
    "ledger-rolled-back": OPERATOR,
    "ledger-tampered": OPERATOR,
    "ledger-key": OPERATOR,
    "ledger-newer": OPERATOR,
    "not-a-ledger": OPERATOR,
    "not-durable": OPERATOR,
    "disk-full": OPERATOR,
    "missing-extra": OPERATOR,
    "cannot-write": OPERATOR,
    "missing-bounds": (
        "ask the curator to declare a range for the column, or write LEAST(GREATEST(x, LOW), HIGH) "
        "in the question"
    ),
    "missing-limit": "ask the curator to declare a limit on rows",
    "question-too-large": "ask in smaller parts, or aggregate the rows of each unit before you join them",
    "keys-missing": "list the groups in the field keys, or give a delta such as 1e-7",
    "unknown-column": "use a column that the dataset's page lists",
    "unknown-table": "use a table that the dataset's page lists",
    "unreadable-column": "ask the curator to store the column as a number, as text or as a date",
    "unknown-kind": "ask the curator to declare the type of the column",
    "bad-expression": "convert the value: CAST(x AS DOUBLE) or CAST(x AS VARCHAR)",
    "bad-sql": "write one SELECT with aggregates, such as SELECT COUNT(*) FROM visits",
    "not-allowed": "write SELECT group, aggregates FROM table WHERE ... GROUP BY group",
    "bad-certificate": "send the certificate as it was downloaded with its release",
    "bad-release": "send the release as it was downloaded, unchanged",
    "release-or-run": "ask for a release of one draw, or for a run of several instalments, as the plan says",
    "plan-differs": "plan the question again",
    "bad-survey": "name a survey that this service lists",
    "other-survey": "collect only the reports of this survey",
    "mixed-epsilons": "collect the reports of each epsilon with its own survey",
    "invitation-reused": "keep one report of each invitation",
    "stream-differs": "ask the curator which stream this is",
    "day-outside": "choose a day of the stream",
    "day-twice": "choose another day of the stream",
    "day-closed": "ask the curator; late rows go to a separate stream",
    "day-missing": "wait until the rows of the day have arrived",
    "rows-twice": "ask the curator; the rows of a day arrive once",
    "rows-differ": "ask the curator; each day has the same columns",
    "not-begun": "ask the curator to begin the stream",
    "bad-genotypes": "ask the curator to check the source",
    "sites-differ": "ask the curator to check the list of variants",
    "bad-message": "send the message again as it was written",
    "study-differs": "use the study that all hospitals agreed on",
    "members-refused": "agree on the list of hospitals again",
    "too-few-hospitals": "wait until enough hospitals answer",
    "not-signed-in": "sign in, or send a valid token",
    "not-permitted": "ask the owner of the dataset or an administrator for the role",
    "not-found": "check the address, or ask for access",
    "no-allotment": "ask the curator of the dataset for an allotment",
    "own-request": "ask another curator or the owner to decide",
    "already-decided": "open the request to see the decision",
    "form-expired": "open the page again and send the form once more",
    "body-unreadable": "send strict JSON in UTF-8",
    "body-too-large": "send less at once",
    "too-many-requests": "wait a minute and try again",
    "dataset-paused": "ask the curator of the dataset to resume it",
    "drawer-away": "try again in a minute",
    "service-failed": "try again, or give the operator the number of the request",
    "service-unreachable": "check the address of the service and the network, and ask again",
    "service-differs": "check the address; the service and its client may need the same version",
    "sign-on-failed": "begin to sign in again, or sign in with a password",
}
#: What the fields of a question are called on the page.
_FIELDS: Final = {
    "epsilon": "epsilon", "delta": "delta", "rho": "rho", "within": "the error to stay within",
    "confidence": "the confidence", "advantage": "the advantage", "attack": "the attack",
    "belief": "the belief", "total": "the total", "size": "the guess of rows in each group",
    "keys": "the keys",
    "limits": "the limits", "account": "the account", "purpose": "the purpose", "sql": "the question",
}  # fmt: skip
_FACTS: Final = {
    "adjacency": "which datasets are neighbours", "bounds": "a range", "budget": "the budget",
    "keys": "the list of groups", "limits": "a limit",
    "minimum_people": "the minimum", "name": "the name", "never_null": "never missing",
    "parent": "the shared account", "public": "a public table", "record": "what the log keeps",
    "source": "the source", "types": "the type", "unit": "who is protected", "version": "the version",
}  # fmt: skip


def not_signed_in() -> TacitError:
    """Refuse somebody whom the service does not know."""
    return TacitError(
        "not-signed-in",
        "this needs a signed-in person or a valid token",
        fix="sign in, or send the header Authorization: Bearer TOKEN",
    )


def not_permitted(sentence: str = "your role does not allow this") -> TacitError:
    """Refuse somebody whose role, grant or token does not allow the operation."""
    return TacitError(
        "not-permitted", sentence, fix="ask the owner of the dataset or an administrator for the role"
    )


def not_found() -> TacitError:
    """Answer alike for what does not exist and for what this person may not see."""
    return TacitError(
        "not-found", "there is nothing here that you may see", fix="check the address, or ask for access"
    )


def body_unreadable(why: str) -> TacitError:
    """Refuse a body; ``why`` never repeats what was sent."""
    return TacitError("body-unreadable", "the body of the request cannot be read", why=why)


def field_missing(name: str, fix: str) -> TacitError:
    """Refuse a body in which a field that is needed here is empty or not there."""
    return TacitError("bad-parameter", f"the field {name} is missing", fix=fix)


def form_expired() -> TacitError:
    """Refuse a form that was not made for this session."""
    return TacitError(
        "form-expired",
        "this form has expired or comes from another site",
        why="each form is bound to the session that opened it",
        fix="open the page again and send the form once more",
    )


def body_too_large(max_bytes: int) -> TacitError:
    """Refuse a body, a form or a document that is larger than its limit."""
    return TacitError(
        "body-too-large",
        f"the body is larger than {max_bytes // 1024:,} KiB",
        fix="send less at once; long lists of keys belong in the policy of the dataset",
    )


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
            spoken = [one for one in fixes if not isinstance(one, Code)]
            return Either(*(_without_code(one, words) for one in spoken)) if spoken else Say(words)
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
            choices = f"one of: {', '.join(names[:MAX_NAMES])}" + more_names(names)
            return f"did you mean {close}? {choices}" if close else choices
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
                text = "1e-6" if name == "delta" and _is_large(value) else _value(value)
                words.append(f"{_FIELDS[name]} to {text}")
            case _:
                return ""
    return f"set {' and '.join(words)}" if words else ""


def _is_large(value: object) -> bool:
    """Whether a delta is the example for any number, which would be bad advice."""
    return isinstance(value, int | float | Fraction) and value > Fraction(1, 100)


def _declare(fix: Declare) -> str:
    """Say what the curator has to declare, and of which column."""
    fact, about = _FACTS.get(fix.fact, str(fix.fact)), f" of {fix.column}" if fix.column else ""
    if fix.fact == "bounds":
        value = "" if fix.example else f": {_value(fix.value)}"
        return f"ask the curator to declare {fact} for {fix.column or 'the values'}{value}" + (
            FROM_PUBLIC_KNOWLEDGE if fix.example else ""
        )
    if fix.fact == "keys":
        return f"ask the curator to declare {fact}{about}, or list the groups in the field keys"
    value = "" if fix.example or not _is_short(fix.value) else f": {_value(fix.value)}"
    return f"ask the curator to declare {fact}{about}{value}"


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
    return text if plain else quote(text)


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
    "cut-rarely": lambda a: f"send the bounds auto for {a['expression']} too, or no cut",
    "declare-encoding": _says("ask the operator to declare the encoding of the file"),
    "export-release": _says("download the answer as CSV and compute it there"),
    "find-bounds-first": lambda a: (
        f"ask for AVG({a['expression']}) first, with the bounds auto, and clip to the bounds that it finds"
    ),
    "suggest-limits": _says("ask how many rows units have (suggest limits) first, and choose a number"),
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


#: The status of each code; all others are refusals of planning (422).
STATUS: Final[dict[str, int]] = {
    "bad-parameter": 400, "bad-sql": 400, "bad-certificate": 400, "bad-release": 400, "body-unreadable": 400,
    "form-expired": 403, "sign-on-failed": 403, "body-too-large": 413, "too-many-requests": 429,
    "not-signed-in": 401, "not-permitted": 403, "no-allotment": 403, "own-request": 403, "not-found": 404,
    "key-reused": 409, "account-differs": 409, "spent": 409, "run-spent": 409, "already-decided": 409,
    "budget-exceeded": 403, "charge-too-large": 403, "account-expired": 403, "account-frozen": 403,
    "release-failed": 500, "service-failed": 500, "dataset-paused": 503, "drawer-away": 503,
    "clock-behind": 503,
    **dict.fromkeys((
        "ledger-closed", "ledger-sealed", "ledger-locked", "ledger-unavailable", "ledger-read-only",
        "ledger-damaged", "ledger-rolled-back", "ledger-tampered", "ledger-key", "ledger-newer",
        "not-a-ledger", "not-durable", "disk-full", "artifact-lost", "missing-extra",
        "randomness-failed", "cannot-write",
    ), 503),
}  # fmt: skip


def status_of(code: str) -> int:
    """Return the status of a code."""
    return STATUS.get(code, 422)


def problem_of(error: TacitError, request: str) -> dict[str, Any]:
    """Return a refusal as a problem document; details of the operator's troubles stay with the operator."""
    status = status_of(error.code)
    hidden = status == 503 and error.code not in {"dataset-paused", "drawer-away"}
    sentence, why, fix = (_OPERATOR, "", "") if hidden else (error.what, error.why, fix_words(error))
    return {
        "type": f"/errors/{error.code}",
        "title": sentence,
        "status": status,
        "detail": sentence,
        "why": why,
        "fix": fix,
        "fix_data": None if hidden else fix_data(error),
        "code": error.code,
        "request": request,
    }
