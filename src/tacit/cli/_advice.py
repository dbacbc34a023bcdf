"""Advice on the command line about each error whose own fix can only be written in Python."""

from __future__ import annotations

from typing import Final

__all__ = ["ADVICE"]

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
    "plan-differs": "plan the question again",
}
