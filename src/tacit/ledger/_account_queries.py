"""The ledger's queries about its accounts: where it stands, its accounts, and what is left of them."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from tacit.errors import bad_parameter
from tacit.fixes import Code
from tacit.ledger import _refusals
from tacit.ledger._accounts import Account
from tacit.ledger._arguments import read_account_name
from tacit.ledger._block_totals import sums_from_text
from tacit.ledger._blocks import read_block
from tacit.ledger._chain import Head
from tacit.ledger._damage import readable
from tacit.ledger._witness import contains

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tacit.accounting import Remaining, Spend
    from tacit.errors import TacitError
    from tacit.ledger._rows import AccountRow
    from tacit.ledger._store import StoreReader
    from tacit.ledger._writer import Writer


class AccountQueries:
    """The methods of a ledger that read its state: where it stands, its accounts and what is left."""

    #: What people are told of a ledger that nobody asked for; empty for one that was given.
    kept: str = ""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        #: Accounts that were opened for the same source, by account, as far as this process has opened them.
        self.beside: Mapping[str, tuple[str, ...]] = {}

    @property
    def name(self) -> str:
        """Where the ledger is, without any password."""
        return self._writer.store.name

    @property
    def id(self) -> str:
        """The ledger's own name: random, and fixed when the ledger was made."""
        return self._writer.identity.ledger

    @property
    def witness(self) -> Path | None:
        """The file that keeps the log's end, or None."""
        return None if self._writer.witness is None else self._writer.witness.path

    @property
    def sealed(self) -> str | None:
        """Why the ledger refuses every change, or None."""
        self._writer.ensure_open()
        return self._writer.sealed()

    @property
    def refusal(self) -> TacitError | None:
        """The error that every change gets because the log was cut, replaced or changed, or None.

        A cut log is found in constant time when the ledger is opened, a file that was removed or replaced
        afterwards whenever you look. The ledger can still be read, but the totals of an old copy are too low.
        See `Ledger.continue_from_backup`.

        Examples
        --------
        >>> import tacit as tc
        >>> tc.Ledger.memory().refusal is None
        True
        """
        self._writer.ensure_open()
        return self._writer.refusal or self._writer.store.replaced()

    @property
    def head(self) -> Head:
        """The log's end: how many entries it has and the last one's hash; kept elsewhere, it is a witness."""
        with self._reading() as reader:
            tip = reader.tip()
        return Head(tip.seq, tip.mac.hex())

    @property
    def missing(self) -> Head | None:
        """The last entry that the ledger's own witness has seen, if the log lacks it; read in constant time.

        A ledger that lacks it accepts no charges. See `Ledger.continue_from_backup`.
        """
        own = self._writer.witness
        seen = None if own is None else own.head()
        with self._reading() as reader:
            return None if seen is None or contains(reader, seen) else seen

    def account(self, name: str | Account) -> Account:
        """Return an account in its present state, in constant time.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> ledger.account("visits").adjacency
        'add/remove'
        """
        with self._reading() as reader:
            row = self._account_row(reader, name)
        return Account.from_row(row)

    def accounts(self) -> list[Account]:
        """Return all accounts in the order in which they were opened.

        Examples
        --------
        >>> import tacit as tc
        >>> tc.Ledger.memory().accounts()
        []
        """
        with self._reading() as reader:
            rows = reader.accounts()
        return [Account.from_row(row) for row in rows]

    def source_label(self, places: Sequence[str]) -> str:
        """Return what an account keeps of where its data is: keyed digests, which reveal no path.

        Whoever lacks the ledger's key learns at most that two accounts have a place in common.
        """
        key = self._writer.chain.derived("digests of places")
        return " ".join(
            hmac.new(key, place.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()[:32]
            for place in sorted(set(places))
        )

    def accounts_of_source(self, label: str) -> list[str]:
        """Return the names of the datasets' accounts that were opened for a place in this label."""
        wanted = set(label.split())
        return [one.name for one in self.accounts() if wanted & set(one.labels.get("source", "").split())]

    def remaining(self, account: str | Account, *, block: str | None = None) -> Remaining:
        """Return what is left in an account, in constant time, however long its history is.

        In an account with blocks this is what is left for a question about all of the data; with ``block``,
        for a question about that block alone.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> _ = ledger.charge("visits", tc.Cost.pure(0.25))
        >>> ledger.remaining("visits").epsilon
        Fraction(3, 4)
        """
        if block is None:
            return self.account(account).filter.remaining
        with self._reading() as reader:
            asked = Account.from_row(self._account_row(reader, account))
            row = reader.block(asked.id, read_block(block))
        if asked.totals is None:
            raise bad_parameter(
                "block",
                f"omitted: account {asked.name!r} has no blocks",
                block,
                fix=Code(f"ledger.remaining({asked.name!r})"),
            )
        charged = row is not None and row.seq > asked.totals.since
        with readable(f"block {block!r}"):
            own = sums_from_text(row.state) if row is not None and charged else asked.totals.empty
        return asked.totals.beside(own).remaining

    def blocks(self, account: str | Account) -> dict[str, Spend]:
        """Return what was charged to each block of an account by itself, the fullest blocks first.

        What concerns all of the data is not included; blocks that were never charged are not listed.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger, days = tc.Ledger.memory(), tc.Blocks("day")
        >>> _ = ledger.create_account("visits", unit="row", budget=tc.Budget(epsilon=1), blocks=days)
        >>> _ = ledger.charge("visits", tc.Cost.pure(0.25), blocks=["monday"])
        >>> _ = ledger.charge("visits", tc.Cost.pure(0.5), blocks=["tuesday"])
        >>> [(day, str(spend)) for day, spend in ledger.blocks("visits").items()]
        [('tuesday', 'epsilon 0.5'), ('monday', 'epsilon 0.25')]
        """
        with self._reading() as reader:
            asked = Account.from_row(self._account_row(reader, account))
            rows = list(reader.blocks(asked.id))
        with readable(f"the blocks of account {asked.name!r}"):
            return {} if asked.totals is None else asked.totals.listed(rows)

    def _account_row(self, reader: StoreReader, account: str | Account) -> AccountRow:
        wanted = read_account_name(account)
        row = reader.account_named(wanted)
        if row is None:
            raise _refusals.unknown_account(wanted)
        return row

    def _reading(self) -> AbstractContextManager[StoreReader]:
        return self._writer.reading()
