"""The ledger's restrictions: an account that is frozen or past its last day refuses every charge."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.fixes import Either, Say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tacit.ledger._accounts import Account
    from tacit.ledger._transaction import Transaction

_CLOCKS_DIFFER = timedelta(seconds=5)  # between machines that share a ledger


def set_frozen(transaction: Transaction, name: str, *, frozen: bool, statement: str, who: str) -> Account:
    """Stop every charge to an account and to those below it, or allow them again, on record."""
    account = transaction.account(name)
    kind = "freeze" if frozen else "unfreeze"
    transaction.append(kind, account.id, {"statement": statement, "who": who})
    changed = replace(account, frozen=frozen, declared="")
    transaction.change(changed)
    return changed


def set_expiry(
    transaction: Transaction, name: str, *, expires: datetime | None, statement: str, who: str
) -> Account:
    """Change the last day of an account, on record."""
    account = transaction.account(name)
    written = None if expires is None else expires.isoformat()
    transaction.append("expiry", account.id, {"expires": written, "statement": statement, "who": who})
    changed = replace(account, expires=expires, declared="")
    transaction.change(changed)
    return changed


def check_frozen(path: Sequence[Account]) -> None:
    """Refuse a charge, or the draw of an earlier charge, if the account or one above it is frozen."""
    for level in path:
        if level.frozen:
            which = "" if level is path[0] else f", which is above {path[0].name!r},"
            raise TacitError(
                "account-frozen",
                f"account {level.name!r}{which} is frozen",
                why="its curator has stopped every charge to it and to the accounts below it; the ledger's "
                "log says why",
                fix=Either(
                    Say("repeat a question that was already answered, which is free"),
                    Say("ask the curator to unfreeze the account"),
                ),
            )


def check_expiry(transaction: Transaction, path: Sequence[Account]) -> None:
    """Refuse an account if its last day, or that of one above it, has passed or nobody can say so."""
    for level in path:
        if level.expires is not None:
            _check_clock(transaction, level.name, level.expires)


def _check_clock(transaction: Transaction, name: str, expires: datetime) -> None:
    latest = transaction.latest
    if latest >= expires:
        raise TacitError(
            "account-expired",
            f"account {name!r} expired at {expires.isoformat()}",
            why="nothing can be charged to it, or to an account below it, after its last day",
            fix="open an account for the new period, or ask the curator for a later last day",
        )
    if latest - transaction.now > _CLOCKS_DIFFER:
        raise TacitError(
            "clock-behind",
            f"nobody can say whether account {name!r} has expired: the clock shows {transaction.at}, but the "
            f"ledger has an entry of {latest.isoformat(timespec='milliseconds')}",
            why="a clock that runs backwards would allow charges after the last day",
            fix="set the clock of this machine; if the clock was wrong when that entry was recorded, ask the "
            "curator to remove the last day of the account",
        )
