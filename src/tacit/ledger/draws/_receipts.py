"""The ledger's receipts, and what else it returns: stored releases and entries of the history."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.accounting import Cost
from tacit.ledger import _refusals
from tacit.ledger._refusals import readable
from tacit.ledger.checks._chain import Head, spend_from_text

if TYPE_CHECKING:
    from tacit.accounting import Spend
    from tacit.ledger.stores._store import EntryRow


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of one durable charge. It authorises one draw.

    Guarantee: whoever holds a receipt knows that the charge is on the disk; nothing takes it back.

    Parameters
    ----------
    id
        The receipt's name: the number of its entry and the first digits of the entry's hash.
    account
        Name of the account that asked.
    charged
        Names of the accounts that paid, from the one that asked up to the dataset's.
    spend
        What was charged, exactly.
    plan, who, purpose, key, at
        As recorded; ``at`` is the time of the entry in UTC.
    head
        Number and hash of the entry. Kept outside the store, it is a witness for `Ledger.verify`.
    blocks
        The blocks that the charge concerns; none stands for all of the data.
    certificate
        The digest of the certificate that the charge is for; empty where there is none.

    Examples
    --------
    >>> from tacit.accounting import Budget, Cost
    >>> from tacit.ledger import Ledger
    >>> with Ledger.memory() as ledger:
    ...     _ = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
    ...     receipt = ledger.charge("visits", Cost.pure(0.5), who="ana")
    >>> receipt.account, receipt.spend.epsilon
    ('visits', Fraction(1, 2))
    """

    id: str
    account: str
    charged: tuple[str, ...]
    spend: Spend
    plan: str | None
    who: str
    purpose: str
    key: str | None
    at: str
    head: Head
    blocks: tuple[str, ...] = ()
    certificate: str = ""


@dataclass(frozen=True, slots=True)
class StoredRelease:
    """A stored release: its bytes, the receipt that paid for them, and whether they are new.

    Examples
    --------
    >>> from tacit.accounting import Budget, Cost
    >>> from tacit.ledger import Ledger
    >>> with Ledger.memory() as ledger:
    ...     _ = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
    ...     first = ledger.draw("visits", Cost.pure(1), plan="p1", compute=lambda receipt: b"42")
    ...     again = ledger.draw("visits", Cost.pure(1), plan="p1", compute=lambda receipt: b"41")
    >>> first.payload, first.fresh, again.payload, again.fresh
    (b'42', True, b'42', False)
    """

    receipt: Receipt
    payload: bytes
    fresh: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the log.

    ``kind`` is one of: ``open``, ``version``, ``record``, ``grow``, ``refresh``, ``freeze``, ``unfreeze``,
    ``expiry`` (the curator's decisions), ``gap`` (entries were lost) and ``lost`` (an account counts as spent
    because of it); ``charge`` (a charge alone), ``draw`` (a charge together with its one draw), ``run`` (a
    charge for a run), ``claim`` (the draw of an earlier charge, or an instalment of a run, was started),
    ``view`` (an account pays for a release or a run that the dataset has paid for), ``release`` (a release or
    an instalment was stored), ``unseal``.

    Examples
    --------
    >>> from tacit.accounting import Budget
    >>> from tacit.ledger import Ledger
    >>> with Ledger.memory() as ledger:
    ...     _ = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
    ...     [entry.kind for entry in ledger.history("visits")]
    ['open']
    """

    seq: int
    kind: str
    at: str
    account: str | None
    charged: tuple[str, ...]
    spend: Spend | None
    plan: str | None
    key: str | None
    body: dict[str, object]
    hash: str

    @property
    def who(self) -> str:
        """Who asked, or who decided."""
        return str(self.body.get("who", ""))

    @property
    def purpose(self) -> str:
        """What it was for."""
        return str(self.body.get("purpose", self.body.get("statement", "")))

    @property
    def asked(self) -> str:
        """The question in words; empty if none was given, as in entries of older versions."""
        return str(self.body.get("asked", ""))

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks that a charge concerns; none stands for all of the data."""
        names = self.body.get("blocks", ()) if self.spend is not None else ()
        return tuple(map(str, names)) if isinstance(names, list) else ()

    @property
    def cost(self) -> Cost | None:
        """The recorded cost, or None if nothing was charged."""
        with readable(f"the cost in entry {self.seq}", refusals=True):
            return Cost.from_json(self.body["cost"]) if "cost" in self.body else None

    def to_json(self) -> dict[str, object]:
        """Return the entry as JSON values, with exact numbers as fractions in text."""
        spend = self.spend
        return {
            "seq": self.seq,
            "kind": self.kind,
            "at": self.at,
            "account": self.account,
            "charged": list(self.charged),
            "spend": None
            if spend is None
            else {
                "epsilon": None if spend.epsilon is None else str(spend.epsilon),
                "delta": str(spend.delta),
                "rho": None if spend.rho is None else str(spend.rho),
                **_curve_to_json(spend),
                **_promise_to_json(spend),
            },
            "plan": self.plan,
            "key": self.key,
            **self.body,
            "hash": self.hash,
        }


def _curve_to_json(spend: Spend) -> dict[str, object]:
    points = [[str(order), None if value is None else str(value)] for order, value in spend.curve]
    return {"curve": points} if points else {}


def _promise_to_json(spend: Spend) -> dict[str, object]:
    promise = spend.promise
    return {} if promise is None else {"promise": [str(promise.epsilon), str(promise.delta)]}


def entry_of(row: EntryRow, names: dict[int, str]) -> Entry:
    """Read a stored entry."""
    with readable(f"entry {row.seq}", refusals=True):
        body = json.loads(row.body)
        return Entry(
            seq=row.seq,
            kind=row.kind,
            at=str(body.pop("at")),
            account=names.get(row.account),
            charged=tuple(names.get(int(id_), id_) for id_ in row.levels.split(",") if id_),
            spend=spend_from_text(row.spend) if row.spend else None,
            plan=row.plan or None,
            key=user_key(row),
            body=body,
            hash=row.mac.hex(),
        )


def receipt_of(row: EntryRow, names: dict[int, str]) -> Receipt:
    """Read the receipt of a stored charge."""
    entry = entry_of(row, names)
    if row.account not in names or not row.spend:
        raise _refusals.damaged(f"entry {row.seq} is not a charge to an account of this ledger")
    return Receipt(
        id=f"{row.seq}-{row.mac.hex()[:16]}",
        account=names[row.account],
        charged=entry.charged,
        spend=spend_from_text(row.spend),
        plan=entry.plan,
        who=entry.who,
        purpose=entry.purpose,
        key=entry.key,
        at=entry.at,
        head=Head(row.seq, row.mac.hex()),
        blocks=entry.blocks,
        certificate=str(entry.body.get("certificate", "")),
    )


def account_key(account: str, key: str) -> str:
    """Return a key that another account uses too, in the form of the log: with the account's name.

    Examples
    --------
    >>> account_key("ana", "k:report-17")
    'k3:ana:report-17'
    """
    return f"k{len(account)}:{account}:{key[2:]}"


def user_key(row: EntryRow) -> str | None:
    """Return the caller's idempotency key; the log marks it with ``k``, unlike its own keys."""
    mark, colon, rest = row.key.partition(":")
    length = mark[1:]
    if not colon or mark[:1] != "k" or not (length == "" or length.isdecimal()):
        return None
    return rest[int(length) + 1 :] if length else rest
