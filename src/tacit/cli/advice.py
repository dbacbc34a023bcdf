"""What to do about each refusal, for someone who typed a command: where the library advises programmers."""

from __future__ import annotations

from typing import Final

__all__ = ["ADVICE"]

#: One line for every code of `tacit.errors.CODES`.
ADVICE: Final[dict[str, str]] = {
    "bad-parameter": "the command's --help shows what its options take",
    "budget-exceeded": "a smaller --epsilon, or ask the curator for a larger budget",
    "unknown-version": "pip install --upgrade tacit",
    "adjacency-mixed": "declare one adjacency for the dataset in tacit.toml",
    "no-guarantee": "give a delta: --delta 1e-6",
    "randomness-failed": "tacit doctor says what is wrong with this machine",
    "does-not-fit": "a larger --epsilon, smaller limits or narrower bounds",
    "not-finite": "declare bounds for the column in tacit.toml",
    "unknown-category": "one of the declared keys",
    "run-spent": "ask again",
    "unknown-account": "tacit budget lists the accounts",
    "account-differs": "declare in tacit.toml what tacit budget shows, or use another name",
    "account-expired": "ask the curator for an account for the new period",
    "charge-too-large": "a smaller --epsilon",
    "key-reused": "ask again",
    "spent": "ask again with another --epsilon; the charge that was made stays",
    "release-failed": "ask the curator, who can look into it where the data is",
    "ledger-closed": "run the command again",
    "ledger-sealed": 'check the disk, then tacit budget unseal --statement "disk checked" --who NAME',
    "ledger-locked": "try again when the other command has ended",
    "ledger-unavailable": "check the path or the server, then run the command again",
    "ledger-read-only": "make the ledger's file and folder writable",
    "ledger-damaged": "put a good copy back, then tacit budget verify",
    "ledger-rolled-back": "put the latest copy back, then tacit budget verify",
    "ledger-tampered": "put a good copy back, then tacit budget verify",
    "ledger-key": "export TACIT_LEDGER_KEY_FILE=where/it/is.key",
    "ledger-newer": "pip install --upgrade tacit",
    "not-a-ledger": "name the ledger's file, as `ledger = ...` in tacit.toml does",
    "not-durable": "keep the ledger on a local disk",
    "disk-full": "free some space",
    "missing-extra": "tacit doctor lists what is installed",
    "cannot-write": "another file or folder",
    "missing-bounds": "declare a range of the column under [datasets.NAME.bounds] of tacit.toml",
    "missing-limit": "declare rows = 10 under [datasets.NAME.limits] of tacit.toml",
    "keys-missing": "declare the groups under [datasets.NAME.keys] of tacit.toml, or give --delta 1e-7",
    "unknown-column": "a column of the table; tacit.toml lists them",
    "unreadable-column": "store it as a number, a text, a date or a timestamp in microseconds",
    "unknown-table": "the dataset's name, as tacit.toml has it",
    "unknown-kind": "declare the column's kind under [datasets.NAME.types] of tacit.toml",
    "bad-expression": "CAST(x AS DOUBLE) or CAST(x AS VARCHAR)",
    "bad-sql": "SELECT COUNT(*) FROM visits",
    "not-allowed": "SELECT group, aggregates FROM table WHERE ... GROUP BY group",
    "bad-certificate": 'the file that tacit query "..." --certificate FILE.json wrote',
}
