"""The class `LedgerRun`: one charge, many numbered instalments, each durable before it is handed out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tacit.errors import TacitError, bad_parameter
from tacit.ledger import _refusals
from tacit.ledger._arguments import read_payload
from tacit.ledger._artifacts import keep_payload
from tacit.ledger._chain import Head
from tacit.ledger._instalments import claim_next, instalment_key, keep_instalment, run_progress
from tacit.ledger._lost_entries import lost_between
from tacit.ledger._payments import claim_key
from tacit.ledger._run_secrets import hide_secret, reveal_secret
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tacit.ledger._instalments import RunProgress
    from tacit.ledger._queries import LedgerQueries
    from tacit.ledger._receipts import Receipt
    from tacit.ledger._rows import EntryRow
    from tacit.ledger._writer import Writer


@dataclass(frozen=True, slots=True)
class Instalment:
    """A stored instalment of a run.

    Parameters
    ----------
    number
        Its number in the run, from 1.
    payload
        What was stored.
    receipt
        Who paid, as in `LedgerRun.receipt`.
    head
        Number and hash of the entry that holds the payload's digest.
    """

    number: int
    payload: bytes
    receipt: Receipt
    head: Head


class LedgerRun:
    """A run of numbered instalments that one charge pays for; made by `Ledger.run`.

    Guarantee: each instalment is claimed durably before it is computed, and stored durably before it is
    handed out. It is computed at most once, over all threads, processes and crashes. An instalment that was
    claimed but not stored is lost for ever. The run then continues with the next one, from the secret that
    the last stored instalment left. The secret is kept encrypted, and appears in no entry, export or payload.

    Parameters
    ----------
    receipt
        Proof that the account has paid for the run.
    head
        Number and hash of the entry that charged the run.
    instalments
        How many instalments the charge authorises.

    Examples
    --------
    >>> import tacit as tc
    >>> ledger = tc.Ledger.memory()
    >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
    >>> run = ledger.run("visits", tc.Cost.pure(0.5), plan="daily counts", instalments=3)
    >>> run.draw(lambda number, secret: (b"about 40", b"what the next one needs")).payload
    b'about 40'
    >>> run.next, run.instalment(1).payload, ledger.remaining("visits").epsilon
    (2, b'about 40', Fraction(1, 2))
    """

    def __init__(self, ledger: LedgerQueries, writer: Writer, receipt: Receipt, entry: EntryRow) -> None:
        self.receipt = receipt
        self.head = Head(entry.seq, entry.mac.hex())
        self.instalments = int(json.loads(entry.body)["parts"])
        self._ledger = ledger
        self._writer = writer
        self._entry = entry
        self._claimed = 0  # the last claimed instalment that is known here

    def __repr__(self) -> str:
        return f"LedgerRun({self.head.count}, {self.instalments} instalments, next: {self.next})"

    @property
    def claimed(self) -> int:
        """How many instalments were started: the stored ones and the lost ones."""
        return self._progress().claimed

    @property
    def next(self) -> int | None:
        """The number of the next instalment, or None after the last one, or if entries were lost since."""
        claimed = self.claimed
        with self._writer.reading() as reader:
            over = claimed >= self.instalments or lost_between(reader.entry_with_key, self.head.count)
        return None if over else claimed + 1

    @property
    def secret(self) -> bytes:
        """The run's secret as the last stored instalment left it, for whoever computes the next one."""
        return self._secret()[1]

    def draw(self, compute: Callable[[int, bytes], tuple[bytes | Mapping[str, object], bytes]]) -> Instalment:
        """Claim the next instalment, compute it, store it, return it.

        Guarantee: as for the class. If anything fails after the claim, one error without details is raised
        (``release-failed``) and this instalment is lost. After the last one, ``run-finished`` is raised. If
        another thread or process draws from this run, this call waits for it, as long as the ledger waits for
        other writers.

        Parameters
        ----------
        compute
            Called with the instalment's number and with the run's secret, empty at first; returns what is
            released and the run's new secret.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> run = ledger.run("visits", tc.Cost.pure(0.5), plan="daily counts", instalments=2)
        >>> for _ in range(2):
        ...     print(run.draw(lambda number, secret: ({"day": number}, secret + b"+")).payload)
        b'{"day":1}'
        b'{"day":2}'
        >>> run.draw(lambda number, secret: (b"", b""))
        Traceback (most recent call last):
        tacit.errors.TacitError: all 2 instalments of run 2 were drawn
        ...
        """
        receipt = self.head.count
        with self._writer.hold(("run", receipt)), self._writer.store.hold_run(receipt):
            number, secret = self._claim()
            drawn = self._compute(number, secret, compute)
        if drawn is None:
            raise _refusals.release_failed(
                f"instalment {number} failed after it was started; it is lost",
                fix="draw the next instalment, and ask the curator to check the source and the log",
            )
        return drawn

    def _claim(self) -> tuple[int, bytes]:
        """Take the next instalment, durably, with the secret that the last stored one left."""
        while True:
            stored, secret = self._secret()
            number = self._writer.run(
                partial(claim_next, head=self.head, stored=stored, account=self.receipt.account)
            )
            if number is not None:  # otherwise one was stored in between
                self._claimed = number
                return number, secret

    def _secret(self) -> tuple[int, bytes]:
        """Return the last stored instalment's number and the run's secret after it, proven by the log."""
        stored = self._progress().stored
        while stored:
            with self._writer.reading() as reader:
                row = reader.run_secret(self.head.count)
            _, digest = self._stored(stored)
            secret = None
            if row is not None:
                secret = reveal_secret(self._writer.chain, self._entry, stored, digest, row)
            if secret is not None:
                return stored, secret
            before, stored = stored, self._progress().stored
            if stored == before:  # nobody stored another one while this was read
                raise _refusals.tampered(
                    f"the secret of run {self.head.count} is not the one that instalment {stored} left"
                )
        return 0, b""

    def _progress(self) -> RunProgress:
        with self._writer.reading() as reader:
            found = run_progress(reader.entry_with_key, self.head.count, self._claimed)
        self._claimed = found.claimed
        return found

    def _stored(self, number: int) -> tuple[EntryRow, str]:
        """Return the entry that stores an instalment and the digest in it, proven by the chain."""
        with self._writer.reading() as reader:
            entry = reader.entry_with_key(instalment_key(self.head.count, number))
            before = None if entry is None else reader.entry(entry.seq - 1)
        if entry is None or not self._writer.chain.follows(entry, before):
            raise _refusals.tampered(
                f"the entry of instalment {number} of run {self.head.count} does not match the keyed chain"
            )
        return entry, str(json.loads(entry.body)["sha256"])

    def _compute(
        self,
        number: int,
        secret: bytes,
        compute: Callable[[int, bytes], tuple[bytes | Mapping[str, object], bytes]],
    ) -> Instalment | None:
        """Compute and store; None stands for every failure alike, and no trace of the failure is kept."""
        try:
            drawn, left = compute(number, secret)
            payload = read_payload(drawn)
            kept = keep_payload(self._writer.store, payload)
            hidden = hide_secret(self._writer.chain, self._entry, number, kept.digest, _read_secret(left))
            entry = self._writer.run(
                partial(keep_instalment, head=self.head, number=number, kept=kept, secret=hidden)
            )
            return Instalment(number, payload, self.receipt, Head(entry.seq, entry.mac.hex()))
        except (KeyboardInterrupt, SystemExit, GeneratorExit):  # the caller's, whatever the data is
            raise
        except BaseException:  # noqa: BLE001 - what went wrong may depend on the data, also a panic in Rust
            return None

    def instalment(self, number: int) -> Instalment:
        """Return a stored instalment, free.

        Guarantee: the payload is checked against the chain. An instalment that was started but never stored
        is refused with ``instalment-lost``, one that was not started with ``instalment-not-drawn``, and one
        whose artifact is gone with ``artifact-lost``.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> run = ledger.run("visits", tc.Cost.pure(0.5), plan="daily counts", instalments=3)
        >>> run.instalment(2)
        Traceback (most recent call last):
        tacit.errors.TacitError: instalment 2 of run 2 has not been drawn yet
        ...
        """
        wanted, receipt = Integer(1, self.instalments, instead=1).read("number", number), self.head.count
        with self._writer.reading() as reader:
            entry = reader.entry_with_key(instalment_key(receipt, wanted))
            row = reader.release_of_receipt(receipt, wanted)
            claim = reader.entry_with_key(claim_key(receipt, wanted))
        if entry is None and row is None:
            raise _not_there(receipt, wanted, claimed=claim is not None)
        entry, _ = self._stored(wanted)
        if row is None or row.seq != entry.seq:
            raise _refusals.tampered(f"instalment {wanted} of run {receipt} is not the one that was stored")
        return Instalment(
            wanted,
            self._ledger._checked_payload(row),  # noqa: SLF001 - a run is a part of its ledger
            self.receipt,
            Head(entry.seq, entry.mac.hex()),
        )

    def __iter__(self) -> Iterator[Instalment]:
        """Return the stored instalments in order; those that are lost are skipped."""
        for number in range(1, self.claimed + 1):
            try:
                yield self.instalment(number)
            except TacitError as error:
                if error.code != "instalment-lost":
                    raise


def _not_there(receipt: int, number: int, *, claimed: bool) -> TacitError:
    if claimed:
        return TacitError(
            "instalment-lost",
            f"instalment {number} of run {receipt} was started but never stored",
            why="its process stopped or failed, or is still working; a second draw would be a second answer",
            fix="draw the next instalment",
        )
    return TacitError(
        "instalment-not-drawn",
        f"instalment {number} of run {receipt} has not been drawn yet",
        fix="draw it first",
    )


def _read_secret(secret: object) -> bytes:
    if not isinstance(secret, bytes):
        raise bad_parameter("secret", "bytes", type(secret))
    return secret
