"""Fixes in the words of the command line: options, lines of ``tacit.toml``, SQL and typed commands.

A refusal carries its fix as data (`tacit.fixes`). This module matches on the classes and writes each one for
a person who typed a command. Actions (`tacit.fixes.ACTIONS`) have a command each. Where only Python could
help, the advice for the error's code is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from tacit.cli._context import CommandContext, current_context
from tacit.cli._options import (
    budget_parts,
    fact_option,
    has_line,
    line_number,
    number_text,
    range_in_question,
    sql_name,
    toml_key,
    toml_value,
)
from tacit.cli._output import typed
from tacit.fixes import (
    ACTIONS,
    FROM_PUBLIC_KNOWLEDGE,
    MAX_NAMES,
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
    from collections.abc import Callable, Sequence

    from tacit.errors import TacitError


#: What a command can be told of how a CSV file is written.
_READING = ("encoding", "dates", "decimal", "separator", "quote")


def _ask_a_count(arguments: Mapping[str, object], _: CommandContext) -> str:
    return f"SELECT COUNT(*) FROM {sql_name(str(arguments['table']))}"  # noqa: S608 - shown, never run


def _choose_account(arguments: Mapping[str, object], context: CommandContext) -> str:
    return _open_account(arguments["account"], arguments["dataset"], context)


def _clip_in_question(arguments: Mapping[str, object], context: CommandContext) -> str:
    return range_in_question(context.sql, str(arguments["expression"]))


def _continue_from_backup(arguments: Mapping[str, object], context: CommandContext) -> str:
    command = f'tacit budget continue-from-backup {_ledger(context)} --statement "{arguments["statement"]}"'
    return f"if it is lost for good, continue with nothing left: {command} --who NAME"


def _compare_in_question(arguments: Mapping[str, object], _: CommandContext) -> str:
    return f"{arguments['expression']} = {arguments['value']}"


def _convert_in_question(arguments: Mapping[str, object], _: CommandContext) -> str:
    return f"CAST({arguments['expression']} AS {arguments['type']})"


def _convert_csv(arguments: Mapping[str, object], _: CommandContext) -> str:
    target = typed(str(arguments["target"]))
    options = "".join(f" --{fact} {typed(str(arguments[fact]))}" for fact in _READING if fact in arguments)
    command = f"tacit convert {typed(str(arguments['source']))} {target} --lenient{options}"
    return f"{command} (it repairs or drops such lines and lists them), then use {target}"


def _declare_encoding(arguments: Mapping[str, object], context: CommandContext) -> str:
    encoding = str(arguments["encoding"])
    if context.config is None:
        return f"--encoding {typed(encoding)}"
    return f'{context.config}, under [datasets.{context.dataset or "NAME"}]: encoding = "{encoding}"'


def _create_account(arguments: Mapping[str, object], context: CommandContext) -> str:
    if context.parent and arguments["account"] == context.parent:
        names = f"--account {typed(context.parent)} --unit {typed(context.unit or 'row')}"
        command = f"tacit budget open {_ledger(context)} {names} --epsilon 3"
        return f"open it for all datasets that share it: {command}"
    opening = _open_account(arguments["account"], "DATASET", context)
    return f"choose one that tacit budget {_ledger(context)} lists, or open it: {opening}"


def _give_key_file(arguments: Mapping[str, object], _: CommandContext) -> str:
    return f"export TACIT_LEDGER_KEY_FILE={typed(str(arguments['path']))}"


def _grow_budget(arguments: Mapping[str, object], context: CommandContext) -> str:
    options = fact_option("budget", "", budget_parts(arguments["new"]))
    account = typed(str(arguments["account"]))
    command = f"tacit budget grow {_ledger(context)} --account {account} {options}"
    return f'record a larger budget: {command} --statement "why" --who NAME'


def _install(arguments: Mapping[str, object], _: CommandContext) -> str:
    package = str(arguments["package"])
    return f"pip install '{package}'" if "[" in package else f"pip install {package}"


def _open_ledger(arguments: Mapping[str, object], _: CommandContext) -> str:
    if arguments.get("create"):
        return (
            "name the ledger's file, as `ledger = ...` in tacit.toml does; the first tacit query creates it"
        )
    return "name another file, here and as `ledger = ...` in tacit.toml"


def _unseal_ledger(arguments: Mapping[str, object], context: CommandContext) -> str:
    said = arguments["statement"]
    statement = said if isinstance(said, str) and said.strip(".") else "disk checked"
    return f'tacit budget unseal {_ledger(context)} --statement "{statement}" --who NAME'


def _open_account(account: object, dataset: object, context: CommandContext) -> str:
    names = f"--account {typed(str(account))} --parent {typed(str(dataset))}"
    return f"tacit budget open {_ledger(context)} {names} --epsilon 0.5"


def _ledger(context: CommandContext) -> str:
    return typed(context.ledger.replace("\\", "/"))


#: The words for each action, from its arguments and the running command.
WORDS_OF_ACTIONS: Final[dict[str, Callable[[Mapping[str, object], CommandContext], str]]] = {
    "aggregate-per-unit": lambda arguments, _: ACTIONS["aggregate-per-unit"].format(**arguments),
    "ask-a-count": _ask_a_count,
    "bound-aggregate": _clip_in_question,
    "choose-account": _choose_account,
    "clip-in-question": _clip_in_question,
    "compare-in-question": _compare_in_question,
    "continue-from-backup": _continue_from_backup,
    "convert-csv": _convert_csv,
    "convert-in-question": _convert_in_question,
    "create-account": _create_account,
    "cut-rarely": lambda arguments, _: f"--bounds {typed(str(arguments['expression']))}=auto --cut rare",
    "declare-encoding": _declare_encoding,
    "export-release": lambda *_: "write the answer to a file with --out answer.csv and compute it there",
    "find-bounds-first": lambda arguments, _: (
        f"ask for AVG({arguments['expression']}) first, with --bounds {arguments['expression']}=auto, and "
        "declare the bounds that it finds in tacit.toml"
    ),
    "suggest-limits": lambda *_: (
        "leave this limit out, and tacit limits --epsilon 0.1 suggests a number, privately"
    ),
    "give-key-file": _give_key_file,
    "give-witness-file": lambda *_: "keep the ledger in a folder that you may write to",
    "grow-budget": _grow_budget,
    "install": _install,
    "open-ledger": _open_ledger,
    "restore-ledger": lambda _, context: (
        f"put the latest copy of the ledger back and check it: tacit budget verify {_ledger(context)}"
    ),
    "save-certificate": lambda *_: 'give the file that tacit query "..." --certificate FILE.json wrote',
    "summarise-units": lambda arguments, _: ACTIONS["summarise-units"].format(**arguments),
    "unseal-ledger": _unseal_ledger,
    "verify-ledger": lambda _, context: f"tacit budget verify {_ledger(context)}",
    "wait-for-lock": lambda *_: "wait until the other command has ended",
}


#: One line for every code of `tacit.errors.CODES`.
ADVICE: Final[dict[str, str]] = {
    "bad-parameter": "run the command with --help to see what its options take",
    "budget-exceeded": "ask with a smaller --epsilon, or ask the curator for a larger budget",
    "unknown-version": "pip install --upgrade tacit",
    "adjacency-mixed": "declare one adjacency for the dataset in tacit.toml",
    "no-guarantee": "give a delta: --delta 1e-6",
    "randomness-failed": "run tacit doctor to see what is wrong with this machine",
    "does-not-fit": "use a larger --epsilon, smaller limits or narrower bounds",
    "not-finite": "declare bounds for the column in tacit.toml",
    "unknown-category": "use one of the declared keys",
    "bad-report": "check that the reports belong to this survey",
    "bad-survey": "name the file that tacit survey design wrote",
    "other-survey": "collect only the reports of this survey",
    "mixed-epsilons": "collect the reports of each epsilon with its own survey",
    "invitation-reused": "--repeated first keeps the first report of each invitation",
    "run-spent": "ask again",
    "unknown-account": "run tacit budget to see the accounts",
    "account-differs": "declare in tacit.toml what tacit budget shows, or use another name",
    "account-expired": "ask the curator for an account for the new period",
    "account-frozen": "ask the curator; tacit budget history shows why the account is frozen",
    "clock-behind": "set the clock of this machine",
    "charge-too-large": "ask with a smaller --epsilon",
    "key-reused": "ask again",
    "spent": "ask again with another --epsilon; the earlier charge stays",
    "release-failed": "ask the curator to check the source and the log",
    "run-finished": "plan another run; it is charged again",
    "instalment-lost": "draw the next instalment",
    "instalment-not-drawn": "draw the instalment first",
    "artifact-lost": "restore the artifact from a backup of the ledger, then run tacit budget verify",
    "ledger-closed": "run the command again",
    "ledger-sealed": 'check the disk, then run tacit budget unseal --statement "disk checked" --who NAME',
    "ledger-locked": "run the command again when the other command has ended",
    "ledger-unavailable": "check the path or the server, then run the command again",
    "ledger-read-only": "make the ledger's file and its folder writable",
    "ledger-damaged": "restore a good copy, then run tacit budget verify",
    "ledger-rolled-back": "restore the latest copy, then run tacit budget verify",
    "ledger-tampered": "restore a good copy, then run tacit budget verify",
    "ledger-key": "export TACIT_LEDGER_KEY_FILE=path/of/the.key",
    "ledger-newer": "pip install --upgrade tacit",
    "not-a-ledger": "name the ledger's file, as `ledger = ...` in tacit.toml does",
    "not-durable": "keep the ledger on a local disk",
    "disk-full": "free some disk space",
    "missing-extra": "run tacit doctor to see what is installed",
    "cannot-write": "choose another file or folder",
    "missing-bounds": "declare a range for the column under [datasets.NAME.bounds] in tacit.toml",
    "missing-limit": "declare rows = 10 under [datasets.NAME.limits] in tacit.toml",
    "too-noisy": "ask with a larger epsilon, in fewer and larger groups, or with narrower bounds",
    "question-too-large": "ask in smaller parts, or aggregate the rows of each unit before you join them",
    "keys-missing": "declare the groups under [datasets.NAME.keys] in tacit.toml, or give --delta 1e-7",
    "unknown-column": "use a column of the table; tacit.toml lists them",
    "unknown-table": "use the name of the dataset in tacit.toml",
    "unreadable-column": "store it as a number, as text, as a date or as a timestamp in microseconds",
    "unknown-kind": "declare the type of the column under [datasets.NAME.types] in tacit.toml",
    "bad-expression": "convert the value: CAST(x AS DOUBLE) or CAST(x AS VARCHAR)",
    "bad-sql": "write one SELECT with aggregates, such as SELECT COUNT(*) FROM visits",
    "not-allowed": "write SELECT group, aggregates FROM table WHERE ... GROUP BY group",
    "bad-certificate": 'give the file that tacit query "..." --certificate FILE.json wrote',
    "bad-release": "give a file that release.save wrote, unchanged",
    "release-or-run": "draw the instalments of a run from Python",
    "plan-differs": "plan the question again",
    "stream-differs": "check the name of the folder; tacit stream open declares a new stream",
    "day-outside": "run tacit stream status to see the days of the stream",
    "day-twice": "run tacit stream status to see which days came in",
    "rows-twice": "give the file of this day, or --again if the two days have the same rows",
    "day-closed": "append the late rows to a separate stream",
    "day-missing": "run tacit stream append for the missing day; with --nobody if it had no rows",
    "rows-differ": "give the day the same columns as the days before it",
    "not-begun": "run tacit stream begin; with several plans, name one: --plan 1",
    "bad-genotypes": "check the name of the file; a .bed needs its .bim and .fam in the same folder",
    "sites-differ": "give --variants a table of the same variants and alleles as the file of genotypes",
    "service-unreachable": "check the address and the network, and ask again",
    "service-differs": "check the address; the service and this command may need the same version",
    "sign-on-failed": "sign in again on the page of the service",
    "bad-message": "send the message again as the hospital or the coordinator wrote it",
    "members-refused": "agree on the list of hospitals again, each once and all of the same study",
    "study-differs": "load the study that all hospitals agreed on",
    "too-few-hospitals": "wait until enough hospitals answer, or agree on a new study with fewer of them",
    "not-signed-in": "give a valid token of the service",
    "not-permitted": "ask the owner of the dataset or an administrator for the role",
    "not-found": "check the name of the dataset, or ask for access to it",
    "no-allotment": "ask the curator of the dataset for an allotment",
    "own-request": "ask another curator or the owner to decide",
    "already-decided": "open the request to see the decision",
    "form-expired": "open the page again",
    "body-unreadable": "send strict JSON",
    "body-too-large": "send less",
    "too-many-requests": "wait a minute and try again",
    "dataset-paused": "ask the curator of the dataset to resume it",
    "drawer-away": "try again in a minute; the operator of the service finds the reason in its log",
    "service-failed": "try again, or give the operator of the service the id of the request",
}


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
        "account", "advantage", "baseline", "charge", "confidence", "cut", "days", "days-before",
        "degree-bound", "delta", "epsilon", "error",
        "false-alarm", "family", "focus", "k", "lat", "level", "lon", "mean-degree", "most-days", "n",
        "nodes", "prior", "purpose", "rho",
        "samples", "size", "statement", "statistic", "tau", "total", "trials", "who", "window", "within",
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
        case (("attack" | "belief"), (start, end)):
            return f"--{name} {number_text(start)},{number_text(end)}"
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
    text = "[LOW, HIGH]" if a_range else toml_value(value)
    return f"{_place(context, name, section, key)}: {key} = {text}{note}"


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
    choices = f"one of: {', '.join(map(write, names[:MAX_NAMES]))}" + more_names(names)
    return f"{write(close)}? {choices}" if close else choices


def _either(fixes: Sequence[Fix], context: CommandContext, code: str) -> str:
    if code == "keys-missing":
        return _keys_needed(fixes, context)
    words = dict.fromkeys(_words(fix, context, code) for fix in fixes)
    return ", or ".join(one for one in words if one)


def _keys_needed(fixes: Sequence[Fix], context: CommandContext) -> str:
    """Name every group that lacks keys; offer a delta only where the budget has one."""
    declarations = [fix for fix in fixes if isinstance(fix, Declare)]
    key_options = [fix.values["keys"] for fix in fixes if isinstance(fix, Set) and "keys" in fix.values]
    declarations += [
        Declare("keys", v, column=str(c))
        for keys in key_options
        if isinstance(keys, Mapping)
        for c, v in keys.items()
    ]
    missing = [fix for fix in declarations if fix.column not in context.keyed] or declarations
    from_tables = [
        fix for fix in missing if isinstance(fix.value, str)
    ]  # an option cannot name a public table
    from_lists = [fix for fix in missing if fix not in from_tables]
    words = " ".join(fact_option("keys", fix.column, _value(fix)) for fix in from_lists)
    words = " and ".join([*([words] if words else []), *(_declare(fix, context) for fix in from_tables)])
    file = context.config
    if file is not None and not from_tables and all(has_line(file, toml_key(fix.column)) for fix in missing):
        words += f" (or once for all questions in {file}, under {_heading(context.dataset, 'keys')})"
    delta = next((fix for fix in fixes if isinstance(fix, Set) and "delta" in fix.values), None)
    if context.delta and delta is not None:
        words += f", or {_set(delta.values, context)} to select groups privately"
    return words
