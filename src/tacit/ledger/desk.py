"""The one place where changes go through: batches, the seal, the witness, forks."""

from __future__ import annotations

import itertools
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from tacit.errors import TacitError
from tacit.ledger.acts import Exceeded
from tacit.ledger.book import Book, Memory
from tacit.ledger.chain import Head
from tacit.ledger.combine import Combiner, Turns
from tacit.ledger.witness import Witness

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tacit.ledger.chain import Chain
    from tacit.ledger.combine import Job
    from tacit.ledger.store import Meta, Store

__all__ = ["Desk"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Request:
    """One act and the key it asks for."""

    act: Callable[[Book], object] | None  # None only waits for its turn
    key: str


class Desk:
    """Take acts of many threads, run each batch in one durable transaction, tell the witness."""

    def __init__(self, store: Store, chain: Chain, meta: Meta, witness: Witness | None) -> None:
        self.store = store
        self.chain = chain
        self.meta = meta
        self.witness = witness
        self._memory = Memory()
        self._combine = Combiner(self._run)
        self._turns = Turns()
        self._sealed: str | None = None
        self._mark: str | None = None
        self._closed = False
        self._process = os.getpid()
        self.refusal: TacitError | None = self._compare_with_witness()

    def _compare_with_witness(self) -> TacitError | None:
        """Find out in constant time whether the store still ends where, or after, the witness has seen it."""
        with self.store.reading() as reader:
            tip = reader.tip()
            last, before = reader.row(tip.seq), reader.row(tip.seq - 1)
            seen = self.witness.head() if self.witness is not None else None
            there = reader.row(seen.count) if seen is not None and seen.count else None
        if last is not None and before is not None and self.chain.link(before.mac, *last[:-1]) != last.mac:
            return TacitError(
                "ledger-tampered",
                f"the last entry of {self.store.name} does not match the keyed chain",
                why="the store was changed by something else than Tacit",
                fix="`tacit budget verify` tells where; put a good copy back",
            )
        if seen is not None and seen.count and (there is None or there.mac.hex() != seen.hash):
            return TacitError(
                "ledger-rolled-back",
                f"{self.store.name} has {tip.seq} entries and does not contain entry {seen.count}, "
                "which its witness has seen",
                why="an old copy was put in its place: its totals are too low",
                fix="put the latest store back, then `tacit budget verify`",
            )
        self._memory.tip = tip
        return None

    def do(self, act: Callable[[Book], T], key: str = "") -> T:
        """Run one act durably and return its answer."""
        self.awake()
        if self.refusal is not None:
            raise self.refusal
        try:
            return cast("T", self._combine.submit(_Request(act, key)))
        except Exceeded as exceeded:
            refused = exceeded
        raise refused.refusal()

    def turn(self, name: object) -> AbstractContextManager[None]:
        """Wait until no other thread of this process works on the same thing."""
        self.awake()
        return self._turns.take(name)

    def awake(self) -> None:
        """Refuse a closed ledger; give a forked child connections of its own."""
        if self._closed:
            raise TacitError("ledger-closed", f"{self.store.name} was closed", fix="Ledger.open(...) again")
        if os.getpid() != self._process:
            self.store.abandon()
            if self.witness is not None:  # a lock on the inherited file would be the parent's too
                self.witness = Witness(self.witness.path, self.meta.ledger)
            self._memory = Memory(self._memory.tip)
            self._combine = Combiner(self._run)
            self._turns = Turns()
            self._process = os.getpid()

    def _run(self, jobs: list[Job[_Request]]) -> None:
        """Run a batch in one transaction: each act is checked on its own, all that pass become durable."""
        jobs = [job for job in jobs if job.request.act is not None]
        if not jobs:
            return
        keys = [job.request.key for job in jobs if job.request.key]
        try:
            attempts = (self._attempt(jobs, keys, attempt) for attempt in itertools.count())
            book = next(book for book in attempts if book is not None)
        except BaseException as error:
            self.store.rollback()
            self._memory.forget()
            if isinstance(error, TacitError) and error.code == "ledger-sealed" and self._mark is None:
                self._sealed = error.what  # the failure itself, even if no mark could be left in the store
            raise
        if book.rows:
            book.committed()
            self._tell_witness(Head(book.tip.seq, book.tip.mac.hex()))

    def _attempt(self, jobs: list[Job[_Request]], keys: list[str], attempt: int) -> Book | None:
        """Decide every job of a batch from one state of the ledger; None if the ledger changed meanwhile."""
        if self._sealed is not None:
            raise self._seal_refusal(self._sealed)
        begun = self.store.begin(keys, self._memory.tip if attempt == 0 else None, attempt)
        self._mark = begun.sealed
        if self._mark is not None:
            raise self._seal_refusal(self._mark)
        book = Book(self.chain, self.store.inside(), begun, self._memory)
        for job in jobs:
            _settle(job, book)
        accounts = [account.to_row() for account in book.touched.values()]
        return book if self.store.commit(begun, keys, book.rows, accounts, book.releases) else None

    def _tell_witness(self, head: Head) -> None:
        if self.witness is not None:
            with suppress(
                OSError
            ):  # the charge is durable; a witness may lag, and `verify` shows by how much
                self.witness.note(head)

    def _seal_refusal(self, why: str) -> TacitError:
        return TacitError(
            "ledger-sealed",
            f"{self.store.name} is sealed: {why}",
            why="nobody can say what is on the disk after a failed write, so every change is refused",
            fix="check the disk, open the ledger again, then ledger.unseal(statement=..., who=...)",
        )

    def sealed(self) -> str | None:
        """Return why the ledger is sealed, or None."""
        return self._sealed or self.store.sealed()

    def unseal(self) -> None:
        """Take the seal away."""
        self.store.unseal()
        self._sealed = None

    def close(self) -> None:
        """Let what is under way finish, then let go of everything."""
        if self._closed:
            return
        forked = os.getpid() != self._process
        if not forked:
            self._combine.submit(_Request(None, ""))
        self._closed = True
        if forked:
            return
        self.store.close()
        if self.witness is not None:
            with suppress(OSError):
                self.witness.close()


def _settle(job: Job[_Request], book: Book) -> None:
    before = len(book.rows)
    job.result, job.error = None, None
    try:
        if job.request.act is not None:
            job.result = job.request.act(book)
    except TacitError as error:
        broken = error.code.startswith("ledger-") or error.code == "disk-full"
        if broken or len(book.rows) != before:  # the store failed, or an act changed before it checked
            raise
        job.error = error
    except Exceeded as exceeded:
        job.error = exceeded
