"""The ledger's writer, through which every change goes: batches, the seal, the witness, forks.

Threads commit as a group: the thread that finds the store free commits for every waiting thread.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from tacit.errors import TacitError
from tacit.fixes import Do
from tacit.ledger import _refusals
from tacit.ledger._refusals import UNREADABLE, readable, unavailable
from tacit.ledger.accounts._accounts import Account
from tacit.ledger.accounts._charges import BudgetExceeded, CurveNeeded
from tacit.ledger.checks._chain import Head
from tacit.ledger.checks._witness import contains
from tacit.ledger.stores._files import NamedLocks
from tacit.ledger.stores._transaction import AccountCache, Transaction, latest_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tacit.ledger.checks._chain import Chain
    from tacit.ledger.checks._witness import Witness
    from tacit.ledger.stores._store import LedgerIdentity, Store, StoreReader, Tip


T = TypeVar("T")

_MAX_BATCH = 512  # requests in one batch: bounds how long one commit keeps other processes waiting
_FOLLOWING = frozenset({"claim", "release"})  # entries that follow from a charge and take nothing


class Job(Generic[T]):
    """One request, its answer, and a lock on which its thread sleeps."""

    __slots__ = ("error", "leads", "request", "result", "woken")

    def __init__(self, request: T) -> None:
        self.request = request
        self.result: object = None
        self.error: BaseException | None = None
        self.leads = False
        self.woken = Lock()
        self.woken.acquire()


class GroupCommit(Generic[T]):
    """Run the requests of many threads in batches, one batch at a time, each in the thread of one of them.

    There is no background thread: a lone caller pays no hand-over, and nothing runs after the last caller has
    gone. While one batch waits for the disk, the next one gathers. ``run`` sets the ``result`` or the
    ``error`` of each job in the batch; if it raises instead, every job of the batch fails.
    """

    def __init__(self, run: Callable[[list[Job[T]]], None]) -> None:
        self._run = run
        self._mutex = Lock()
        self._waiting: deque[Job[T]] = deque()
        self._busy = False

    def submit(self, request: T) -> object:
        """Run one request and return its answer, or raise its error."""
        job = Job(request)
        try:
            with self._mutex:
                self._waiting.append(job)
                job.leads = not self._busy
                self._busy = True
            if not job.leads:
                job.woken.acquire()  # until the answer is there, or until this thread must lead
            if job.leads:
                self._lead(job)
        except BaseException:  # an interrupt: this thread will not lead, so another one must
            with self._mutex:
                if job in self._waiting:
                    self._waiting.remove(job)
                if job.leads:
                    self._hand_over(job)
            raise
        if job.error is not None:
            raise job.error
        return job.result

    def _lead(self, first_job: Job[T]) -> None:
        batch: list[Job[T]] = []
        try:
            with self._mutex:
                while self._waiting and len(batch) < _MAX_BATCH:
                    batch.append(self._waiting.popleft())
            self._run(batch)
        except BaseException as error:
            for job in batch:
                if job is not first_job:
                    job.error = job.error or (
                        copy(error) if isinstance(error, TacitError) else _interrupted()
                    )
            raise
        finally:
            with self._mutex:
                self._hand_over(first_job)
            for job in batch:
                if job is not first_job:
                    job.woken.release()

    def _hand_over(self, leader: Job[T]) -> None:
        leader.leads = False
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].woken.release()
        else:
            self._busy = False


def _interrupted() -> TacitError:
    return unavailable("the commit that carried this charge was interrupted")


@dataclass(frozen=True, slots=True)
class _Request:
    """One operation, and the forms of the idempotency key that it uses."""

    operation: Callable[[Transaction], object] | None  # None only waits for its turn
    keys: tuple[str, ...] = ()
    continues: bool = False  # records that entries are lost which the witness has seen


class Writer:
    """Take the operations of many threads, run each batch in one durable transaction, update the witness."""

    def __init__(self, store: Store, chain: Chain, identity: LedgerIdentity, witness: Witness | None) -> None:
        self.store = store
        self.chain = chain
        self.identity = identity
        self.witness = witness
        self._cache = AccountCache()
        self._group_commit = GroupCommit(self._run_batch)
        self._locks = NamedLocks()
        self._sealed: str | None = None
        self._mark: str | None = None
        self._closed = False
        self._process = os.getpid()
        self.refusal: TacitError | None = self._compare_with_witness()

    def _compare_with_witness(self) -> TacitError | None:
        """Check in constant time that the store still contains the last entry that the witness has seen."""
        with self.store.reading() as reader:
            tip = reader.tip()
            entry, before = reader.entry(tip.seq), reader.entry(tip.seq - 1)
            head = self.witness.head() if self.witness is not None else None
            witnessed = reader.entry(head.count) if head is not None and head.count else None
        if entry is not None and before is not None and self.chain.link(before.mac, *entry[:-1]) != entry.mac:
            return _refusals.tampered(f"the last entry of {self.store.name} does not match the keyed chain")
        if head is not None and head.count and (witnessed is None or witnessed.mac.hex() != head.hash):
            return _refusals.rolled_back(
                f"{self.store.name} ends at entry {tip.seq} and does not contain entry {head.count}, "
                "which its witness has seen"
            )
        self._cache.tip = tip
        try:
            self._cache.latest = "" if entry is None else latest_time(entry.body)
        except TacitError as refusal:
            return refusal
        return None

    def run(self, operation: Callable[[Transaction], T], keys: tuple[str, ...] = ()) -> T:
        """Run one operation durably and return its answer."""
        self.ensure_open()
        if self.refusal is not None:
            raise self.refusal
        return cast("T", self._submit(_Request(operation, keys)))

    def _submit(self, request: _Request) -> Any:
        while True:
            try:
                return self._group_commit.submit(request)
            except (BudgetExceeded, CurveNeeded) as raised:
                signal = raised
            if isinstance(signal, BudgetExceeded):
                raise signal.refusal()
            signal.compute()  # the store is not locked now

    def continue_after_loss(self, operation: Callable[[Transaction], Head]) -> None:
        """Run the operation that records the loss of entries; then accept changes again."""
        head = self._submit(_Request(operation, continues=True))
        try:
            if self.witness is not None:
                self.witness.replace(head)
        except OSError as error:
            raise _refusals.unwritten_witness(str(self.store.name), error) from None
        self.refusal = None

    def hold(self, name: object) -> AbstractContextManager[None]:
        """Wait until no other thread of this process works on the same thing."""
        self.ensure_open()
        return self._locks.hold(name)

    def hold_plan(self, account: str, plan: str) -> AbstractContextManager[None]:
        """Wait until no other thread of this process draws the same plan for the same dataset."""
        self.ensure_open()
        cache = self._cache
        cached = cache.accounts.get(cache.names.get(account, 0))  # where an account stands never changes
        return self._locks.hold((self._root_of(account) if cached is None else cached.root, plan))

    def _root_of(self, name: str) -> int:
        """Read the number of the dataset's own account, for an account that is not known yet."""
        with self.reading() as reader:
            row = reader.account_named(name)
        if row is None:
            raise _refusals.unknown_account(name)
        return Account.from_row(row).root

    @contextmanager
    def reading(self) -> Iterator[StoreReader]:
        """Read what is committed; what cannot be read there is damage."""
        self.ensure_open()
        with readable(self.store.name), self.store.reading() as reader:
            yield reader

    def ensure_open(self) -> None:
        """Refuse a closed ledger; give a forked child its own connections."""
        if self._closed:
            raise TacitError(
                "ledger-closed",
                f"{self.store.name} was closed",
                fix=Do("open-ledger", path=self.store.name),
            )
        if os.getpid() != self._process:
            if self.witness is not None:  # a lock on the inherited file would be the parent's lock too
                self.witness = self.witness.reopened()
            self.store.after_fork()
            self._cache = AccountCache(self._cache.tip, self._cache.latest)
            self._group_commit = GroupCommit(self._run_batch)
            self._locks = NamedLocks()
            self._process = os.getpid()

    def _run_batch(self, jobs: list[Job[_Request]]) -> None:
        """Run a batch in one transaction: each operation is checked alone, all that pass become durable."""
        jobs = [job for job in jobs if job.request.operation is not None]
        if not jobs:
            return
        keys = [key for job in jobs for key in job.request.keys]
        try:
            attempts = (self._attempt(jobs, keys, attempt) for attempt in itertools.count())
            transaction = next(made for made in attempts if made is not None)
        except BaseException as error:
            self.store.rollback()
            self._cache.clear()
            if isinstance(error, TacitError) and error.code == "ledger-sealed" and self._mark is None:
                self._sealed = error.what  # the failure itself, even if no mark could be left in the store
            raise
        if transaction.entries:
            transaction.committed()
            if self.witness is not None and not any(job.request.continues for job in jobs):
                self._update_witness(self.witness, Head(transaction.tip.seq, transaction.tip.mac.hex()))

    def _attempt(self, jobs: list[Job[_Request]], keys: list[str], attempt: int) -> Transaction | None:
        """Decide every job of a batch from one state of the ledger; None if another process changed it."""
        if self._sealed is not None:
            raise self._seal_refusal(self._sealed)
        witness = None if any(job.request.continues for job in jobs) else self.witness
        is_behind = witness is not None and self._unproven(witness) is not None
        # a witness that moved on says that the guess is outdated
        guess = None if attempt or is_behind else self._cache.tip
        start = self.store.begin(keys, guess, attempt)
        self._mark = start.sealed
        if self._mark is not None:
            raise self._seal_refusal(self._mark)
        transaction = Transaction(self.chain, self.store.transaction_reader(), start, self._cache)
        for job in jobs:
            _run_job(job, transaction)
        if transaction.entries and witness is not None:
            charges = any(row.kind not in _FOLLOWING for row in transaction.entries)
            if not self._agrees(witness, start.tip, charges=charges):
                self.store.rollback()
                return None
        done = self.store.commit(start, keys, transaction.changes())
        return transaction if done else None

    def _unproven(self, witness: Witness) -> Head | None:
        try:
            return witness.unproven()
        except OSError as error:
            raise _refusals.witness_failed(str(witness.path), error) from None

    def _agrees(self, witness: Witness, tip: Tip, *, charges: bool) -> bool:
        """Require, before a commit, that the store contains what the witness has seen.

        Return False if the log has moved on since the transaction began. A charge also needs a witness that
        has caught up with the log: where it cannot be written, nobody would notice an old copy later. What
        only follows from an earlier charge is not held up.
        """
        unproven = self._unproven(witness)
        if unproven is not None:
            if not contains(self.store.transaction_reader(), unproven):
                raise _refusals.lacks(unproven.count, f"the witness {witness.path} has seen")
            if unproven.count > tip.seq:
                return False
            witness.prove()
        if charges and witness.count < tip.seq:
            try:
                witness.note(Head(tip.seq, tip.mac.hex()), self.contains)
            except OSError as error:
                raise _refusals.witness_failed(str(witness.path), error) from None
        return True

    def contains(self, head: Head) -> bool:
        """Whether the store contains an entry that somebody has seen, as of now."""
        with self.store.reading() as reader:
            return contains(reader, head)

    def _update_witness(self, witness: Witness, head: Head) -> None:
        # the charge is durable; if the witness cannot be written now, the next charge needs that first
        with suppress(OSError):
            witness.note(head, self.contains)

    def _seal_refusal(self, why: str) -> TacitError:
        return _refusals.sealed(f"{self.store.name} is sealed: {why}")

    def sealed(self) -> str | None:
        """Return why the ledger is sealed, or None."""
        return self._sealed or self.store.sealed()

    def unseal(self) -> None:
        """Remove the seal."""
        self.store.unseal()
        self._sealed = None

    def close(self) -> None:
        """Wait for running operations, then close the store and the witness."""
        if self._closed:
            return
        forked = os.getpid() != self._process
        if not forked:
            self._group_commit.submit(_Request(None))
        self._closed = True
        if forked:
            return
        self.store.close()
        if self.witness is not None:
            with suppress(OSError):
                self.witness.close()


def _run_job(job: Job[_Request], transaction: Transaction) -> None:
    before = len(transaction.entries)
    job.result, job.error = None, None
    try:
        if job.request.operation is not None:
            job.result = job.request.operation(transaction)
    except TacitError as error:
        broken = error.code.startswith("ledger-") or error.code == "disk-full"
        if broken or len(transaction.entries) != before:  # the store failed, or a change came before a check
            raise
        job.error = error
    except (BudgetExceeded, CurveNeeded) as signal:
        job.error = signal
    except UNREADABLE as error:
        raise _refusals.damaged(f"the store holds what cannot be read ({type(error).__name__})") from error
