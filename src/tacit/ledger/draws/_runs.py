"""The ledger's runs: one charge, many numbered instalments, each durable before it is handed out.

**Instalments.** One charge authorises a run, and each of its numbered draws is claimed once. Instalments are
claimed in order, and one is stored only while no later one is claimed. So the stored ones form one line: each
was computed from the secret that the stored one before it left, and no secret was used for two of them,
whoever drew at the same time and whoever crashed. One that was claimed and not stored is lost. The argument
is in ``docs/explanation/ledger.md``.

**Secrets** are encrypted and authenticated with keys that follow from the ledger's key. A run may need to
remember what it must not show, such as past noise that later noise is correlated with. The secret is a text
of bytes, replaced whenever an instalment is stored. It is kept like this, with the standard library alone:

- Two keys of 32 bytes, for encryption and for authentication, are derived from the ledger's key with
  HMAC-SHA-256. So neither reveals the other, nor the chain's key.
- The *place* of a secret is the hash of the run's charge (which covers everything in the log up to it, and is
  thus different in every ledger), the number of the instalment, and the digest of that instalment's payload.
- ``stream = SHAKE-256(encryption key, place, nonce)`` as long as the secret, with a fresh nonce of 32 random
  bytes; ``hidden = secret XOR stream``. Every part but the stream has a fixed length. SHAKE-256 with a secret
  prefix is a pseudorandom function, because a sponge does not let anyone extend a message (Bertoni and
  others, 2011); the nonce never comes back, so no two secrets share a stream.
- ``tag = BLAKE2b-256(authentication key; place, nonce, hidden)``, compared before anything is decrypted
  (encrypt, then authenticate: Bellare and Namprempre, 2000).

Guarantee: without the key, nobody learns more of a secret than its length, and whatever is not the secret
that was stored with this instalment of this run is refused: an edited one, that of another run, ledger or
instalment, and the one of an earlier instalment. Which instalment was stored last follows from the log.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tacit.bisection import first_integer
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Set
from tacit.ledger import _refusals
from tacit.ledger._arguments import read_payload
from tacit.ledger.accounts._charges import charge, check_lineage, find_charge, same_charge
from tacit.ledger.accounts._decisions import check_expiry, check_frozen, lost_between, refreshed_since
from tacit.ledger.checks._chain import Head, blocks_of, spend_from_text
from tacit.ledger.draws._draws import as_charged, claim_key, run_of_plan, run_payments
from tacit.ledger.draws._receipts import receipt_of
from tacit.ledger.stores._artifacts import keep_payload
from tacit.ledger.stores._store import ReleaseRow, RunRow
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tacit.ledger._reading import LedgerReading
    from tacit.ledger.accounts._accounts import Account
    from tacit.ledger.accounts._charges import ChargeRequest
    from tacit.ledger.checks._chain import Chain
    from tacit.ledger.draws._receipts import Receipt
    from tacit.ledger.stores._artifacts import KeptPayload
    from tacit.ledger.stores._store import EntryRow
    from tacit.ledger.stores._transaction import Transaction
    from tacit.ledger.stores._writer import Writer


_NONCE = 32
_TAG = 32


class RunProgress(NamedTuple):
    """How far a run is: its last claimed instalment and its last stored one; 0 for none."""

    claimed: int
    stored: int


def instalment_key(receipt: int, part: int) -> str:
    """Return the key of the entry that stores an instalment; it is unique in the store."""
    return f"r:{receipt}:{part}"


def run_progress(find: Callable[[str], EntryRow | None], receipt: int, claimed: int = 0) -> RunProgress:
    """Find out how far a run is, from the log alone; ``claimed`` is the number of a claimed instalment.

    Claims have no gaps, so a search in doubling steps finds the last one. If it is not stored, its claim says
    which one was stored last: none can have been stored since.
    """
    missing = first_integer(
        lambda further: find(claim_key(receipt, claimed + further)) is None, 0, 1, growing=True
    )
    last = claimed + missing - 1
    if last == 0:
        return RunProgress(0, 0)
    if find(instalment_key(receipt, last)) is not None:
        return RunProgress(last, last)
    claim = find(claim_key(receipt, last))
    if claim is None:
        raise _refusals.damaged(f"the claim of instalment {last} of run {receipt} is missing")
    return RunProgress(last, int(json.loads(claim.body)["after"]))


def authorise_run(transaction: Transaction, request: ChargeRequest) -> tuple[Receipt, EntryRow]:
    """Charge a run, or find the one of this plan and charge whoever has not paid for it.

    Returns the caller's receipt and the entry of the run.
    """
    account = transaction.account(request.account)
    check_lineage(transaction, account, request.dataset)
    earlier = find_charge(transaction, request, account)[0] if request.key else None
    run = _run_of(transaction, earlier)
    if earlier is not None:
        request_as_charged = as_charged(request, earlier)
        same_charge(transaction, earlier, account, request_as_charged)
        request = replace(request, key="")  # it names the earlier charge
    if run is None:
        version = request.version or account.version
        run = run_of_plan(transaction, account.root, version, request.plan)
    if run is None:
        receipt = charge(transaction, request, kind="run")
        return receipt, transaction.entries[-1]
    return _join_run(transaction, request, account, run)


def _run_of(transaction: Transaction, earlier: EntryRow | None) -> EntryRow | None:
    """Return the run that an earlier charge with the same key paid for."""
    if earlier is None or earlier.kind == "run":
        return earlier
    return transaction.entry(json.loads(earlier.body).get("run", 0))


def _join_run(
    transaction: Transaction, request: ChargeRequest, account: Account, run: EntryRow
) -> tuple[Receipt, EntryRow]:
    """Let an account go on with a run that is charged: it costs what the run cost, once for each account."""
    transaction.require_linked(run)
    body = json.loads(run.body)
    if body["parts"] != request.parts:
        raise bad_parameter(
            "instalments", f"{body['parts']}, as when the run was charged", request.parts,
            why="a plan has one run, and its number of instalments is part of what was paid for",
            fix=Set(instalments=body["parts"]),
        )  # fmt: skip
    payers = run_payments(transaction, run)
    unpaid = frozenset(account.below) - payers.keys()
    if not unpaid:
        proof = payers.get(account.id, run)
        return receipt_of(proof, transaction.names(proof)), run
    price = replace(
        request,
        cost=body["cost"],
        law=None,
        spend=spend_from_text(run.spend),
        spend_text=run.spend,
        blocks=tuple(blocks_of(run.body)),
        certificate=str(body.get("certificate", "")),
        version=body["version"],
        run=run.seq,
    )
    return charge(transaction, price, kind="view", only=unpaid), run


def claim_next(transaction: Transaction, head: Head, stored: int, account: str) -> int | None:
    """Take the next instalment of a run; None if another one than ``stored`` is the last stored one now.

    Neither the account that was charged for the run nor ``account``, which asks, may be frozen. The last day
    of ``account`` must not have passed; those of others who pay for the run are their own.
    """
    row, parts = _run_entry(transaction, head)
    path = transaction.path(transaction.account_numbered(row.account))
    asking = transaction.path(transaction.account(account))
    check_frozen(path)
    check_frozen(asking)
    check_expiry(transaction, asking)
    progress = run_progress(transaction.entry_keyed, row.seq, stored)
    if progress.stored != stored:
        return None
    if progress.claimed >= parts:
        all_of_them = "the only instalment" if parts == 1 else f"all {parts} instalments"
        raise TacitError(
            "run-finished",
            f"{all_of_them} of run {row.seq} {'was' if parts == 1 else 'were'} drawn",
            why="one charge pays for this number of instalments only, and lost instalments count too",
            fix="plan another run; it is charged again",
        )
    if lost_between(transaction.entry_keyed, row.seq):
        raise TacitError(
            "run-finished",
            f"the other instalments of run {row.seq} may have been drawn in entries that are lost",
            why="the ledger was continued from an older copy, and one charge pays for each instalment once",
            fix="plan another run; it is charged again",
        )
    name = refreshed_since(transaction.entry_keyed, path, row.seq)
    if name is not None:
        raise TacitError(
            "run-finished",
            f"run {row.seq} was paid for before account {name!r} started again from zero",
            why="the data is about other people now, and what the run says about them was not charged",
            fix="plan another run; it is charged again",
        )
    number = progress.claimed + 1
    facts: dict[str, object] = {"receipt": row.seq, "part": number, "after": stored}
    transaction.append("claim", row.account, facts, key=claim_key(row.seq, number))
    return number


def keep_instalment(
    transaction: Transaction, head: Head, number: int, payload: KeptPayload, secret: RunRow
) -> EntryRow:
    """Store an instalment and the run's new secret, unless a later one is claimed; return its entry."""
    row, _ = _run_entry(transaction, head)
    release = transaction.release_of_receipt(row.seq, number)
    if release is not None or run_progress(transaction.entry_keyed, row.seq, number).claimed != number:
        raise TacitError(
            "instalment-lost",
            f"instalment {number} of run {row.seq} cannot be stored any more",
            why="a later instalment was started, and it does not build on this one",
            fix="draw the next instalment",
        )
    version = json.loads(row.body)["version"]
    root = transaction.root_of(row.account)
    body: dict[str, object] = {
        "receipt": row.seq, "part": number, "sha256": payload.digest, "version": version,
    }  # fmt: skip
    entry = transaction.append("release", row.account, body, key=instalment_key(row.seq, number))
    transaction.releases.append(
        ReleaseRow(row.seq, number, root, version, "", payload.inline, payload.artifact, entry.seq)
    )
    transaction.runs[row.seq] = secret
    return entry


def _run_entry(transaction: Transaction, head: Head) -> tuple[EntryRow, int]:
    """Return the entry of a run and how many instalments it authorises."""
    row = transaction.entry(head.count)
    if row is None or row.mac.hex() != head.hash or row.kind != "run":
        raise _refusals.tampered(f"entry {head.count}, which charged a run, is not the one that was stored")
    transaction.require_linked(row)  # it says how many instalments were paid for
    return row, int(json.loads(row.body)["parts"])


def hide_secret(chain: Chain, run: EntryRow, part: int, payload_digest: str, secret: bytes) -> RunRow:
    """Encrypt the secret of a run as it is after one of its instalments.

    Examples
    --------
    >>> from tacit.ledger.checks._chain import Chain
    >>> from tacit.ledger.stores._store import EntryRow
    >>> chain, run = Chain(bytes(32)), EntryRow(2, "run", 1, "1", "1;0;-", "p", "", "{}", bytes(32))
    >>> row = hide_secret(chain, run, 1, "00" * 32, b"past noise")
    >>> reveal_secret(chain, run, 1, "00" * 32, row)
    b'past noise'
    >>> reveal_secret(chain, run, 2, "00" * 32, row) is None
    True
    """
    context, nonce = _place(run, part, payload_digest), os.urandom(_NONCE)
    hidden = _mixed(chain, context, nonce, secret)
    return RunRow(run.seq, nonce + hidden + _tag(chain, context, nonce + hidden))


def reveal_secret(chain: Chain, run: EntryRow, part: int, payload_digest: str, row: RunRow) -> bytes | None:
    """Decrypt the secret of a run, or return None if it is not the one that this instalment left."""
    context, ciphertext = _place(run, part, payload_digest), bytes(row.secret)
    body, tag = ciphertext[:-_TAG], ciphertext[-_TAG:]
    if len(body) < _NONCE or not hmac.compare_digest(tag, _tag(chain, context, body)):
        return None
    return _mixed(chain, context, body[:_NONCE], body[_NONCE:])


def _place(run: EntryRow, part: int, payload_digest: str) -> bytes:
    return run.mac + part.to_bytes(8, "big") + bytes.fromhex(payload_digest)


def _mixed(chain: Chain, context: bytes, nonce: bytes, text: bytes) -> bytes:
    """Combine bytes with the stream of this place and nonce: hides a secret, and reveals a hidden one."""
    key = chain.derived("run secrets: encryption")
    stream = hashlib.shake_256(key + context + nonce).digest(len(text))
    mixed = int.from_bytes(text, "big") ^ int.from_bytes(stream, "big")
    return mixed.to_bytes(len(text), "big")


def _tag(chain: Chain, context: bytes, body: bytes) -> bytes:
    key = chain.derived("run secrets: authentication")
    return hashlib.blake2b(context + body, digest_size=_TAG, key=key).digest()


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

    def __init__(self, log: LedgerReading, writer: Writer, receipt: Receipt, entry: EntryRow) -> None:
        self.receipt = receipt
        self.head = Head(entry.seq, entry.mac.hex())
        self.instalments = int(json.loads(entry.body)["parts"])
        self._log = log
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
            instalment = self._compute(number, secret, compute)
        if instalment is None:
            raise _refusals.release_failed(
                f"instalment {number} failed after it was started; it is lost",
                fix="draw the next instalment, and ask the curator to check the source and the log",
            )
        return instalment

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
            progress = run_progress(reader.entry_with_key, self.head.count, self._claimed)
        self._claimed = progress.claimed
        return progress

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
            answer, secret_left = compute(number, secret)
            payload = read_payload(answer)
            storable = keep_payload(self._writer.store, payload)
            hidden = hide_secret(
                self._writer.chain, self._entry, number, storable.digest, _read_secret(secret_left)
            )
            entry = self._writer.run(
                partial(keep_instalment, head=self.head, number=number, payload=storable, secret=hidden)
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
        position, receipt = Integer(1, self.instalments, instead=1).read("number", number), self.head.count
        with self._writer.reading() as reader:
            entry = reader.entry_with_key(instalment_key(receipt, position))
            row = reader.release_of_receipt(receipt, position)
            claim = reader.entry_with_key(claim_key(receipt, position))
        if entry is None and row is None:
            raise _not_there(receipt, position, claimed=claim is not None)
        entry, _ = self._stored(position)
        if row is None or row.seq != entry.seq:
            raise _refusals.tampered(f"instalment {position} of run {receipt} is not the one that was stored")
        return Instalment(
            position,
            self._log.checked_payload(row),
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
