"""The actions that a fix asks for (`tacit.fixes.ACTIONS`), in the words of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tacit.cli._fact_options import budget_parts, fact_option
from tacit.cli._output import typed
from tacit.cli._sql import range_in_question, sql_name
from tacit.fixes import ACTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.cli._context import CommandContext

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
    "declare-encoding": _declare_encoding,
    "export-release": lambda *_: "write the answer to a file with --out answer.csv and compute it there",
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
