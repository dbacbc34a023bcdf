"""The ledger's verification without trust: chain, totals from the log alone, stored releases, witness.

Every stored row, those of blocks too, is compared with the log.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.ledger import _refusals
from tacit.ledger._refusals import UNREADABLE
from tacit.ledger.accounts._accounts import Account, sealed_account, sealed_block
from tacit.ledger.accounts._blocks import sums_to_text
from tacit.ledger.checks._chain import START, Head
from tacit.ledger.checks._replay import Replay, replay_in_order
from tacit.ledger.draws._runs import reveal_secret
from tacit.ledger.stores._artifacts import read_payload_of, stored_digest
from tacit.ledger.stores._store import Tip
from tacit.progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.ledger.checks._chain import Chain
    from tacit.ledger.checks._replay import ReplayedAccount
    from tacit.ledger.stores._store import AccountRow, BlockRow, StoreReader


_UNREADABLE = (*UNREADABLE, TacitError)


def same_blocks(reader: StoreReader, replayed: ReplayedAccount) -> bool:
    """Whether the stored blocks of an account are those that follow from the log."""
    stored = {row.block: row.state for row in reader.blocks(replayed.account.id) if _counts(replayed, row)}
    return stored == {name: sums_to_text(sums) for name, sums in replayed.blocks.items()}


def block_problems(reader: StoreReader, replay: Replay, chain: Chain | None) -> list[str]:
    """Compare all stored blocks with those that follow from the log, and check their seals."""
    problems: list[str] = []
    awaited = {
        (id_, name): sums_to_text(sums)
        for id_, replayed in replay.accounts.items()
        for name, sums in replayed.blocks.items()
    }
    for row in list(reader.blocks(0)):
        replayed = replay.accounts.get(row.account)
        if replayed is None or replayed.account.totals is None:
            problems.append(f"block {row.block!r} is stored for account {row.account}, which has no blocks")
            continue
        title, key = f"block {row.block!r} of account {replayed.account.name!r}", (row.account, row.block)
        tip = replay.last_block_change(*key)
        if not _counts(replayed, row) and key not in awaited:
            entry = reader.entry(row.seq)  # from before the totals started again
            tip = Tip(row.seq, b"" if entry is None else entry.mac)
        if chain is not None and sealed_block(chain, tip, row) != row:
            problems.append(f"the stored sums of {title} were not written by the ledger")
        if _counts(replayed, row) and awaited.pop(key, None) != row.state:
            problems.append(f"the stored sums of {title} are not the sums of its entries in the log")
    names = ((replay.accounts[id_].account.name, name) for id_, name in awaited)
    return problems + [f"block {block!r} of account {name!r} is missing" for name, block in names]


def _counts(replayed: ReplayedAccount, row: BlockRow) -> bool:
    """Whether a row is from after the totals were last started again."""
    totals = replayed.account.totals
    return totals is None or row.seq > totals.since


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of the whole ledger found.

    Parameters
    ----------
    ok
        Whether the chain is intact, every total equals its replay, no cap was ever exceeded, every stored
        release matches its entry, and the log contains what the witnesses have seen.
    complete
        Whether a witness from outside the store proves that nothing up to `witnessed` is missing.
    entries, accounts, releases
        How many were checked.
    head
        The log's end; keep it elsewhere as a witness.
    witnessed
        The last entry that the given witness proves; 0 without a witness.
    problems
        What is wrong, in words; empty if `ok`.

    Examples
    --------
    >>> from tacit.ledger import Ledger
    >>> with Ledger.memory() as ledger:
    ...     print(ledger.verify())
    consistent, completeness not proven (checked: 0 entries, 0 accounts, 0 releases)
    """

    ok: bool
    complete: bool
    entries: int
    accounts: int
    releases: int
    head: Head
    witnessed: int
    problems: tuple[str, ...]

    def __str__(self) -> str:
        counts = (
            (self.entries, "entry", "entries"),
            (self.accounts, "account", "accounts"),
            (self.releases, "release", "releases"),
        )
        counts_in_words = (
            f"(checked: {', '.join(f'{n:,} {one if n == 1 else many}' for n, one, many in counts)})"
        )
        if not self.ok:
            return "\n".join(
                [f"NOT consistent {counts_in_words}", *(f"  - {problem}" for problem in self.problems)]
            )
        if not self.complete:
            return f"consistent, completeness not proven {counts_in_words}"
        return (
            f"consistent and complete up to entry {self.witnessed:,}, as the witness proves {counts_in_words}"
        )


@progress("Checking the ledger")
def verify(
    reader: StoreReader, chain: Chain, witnesses: Sequence[tuple[str, Head]], *, proves: bool,
    replay: Replay | None = None, sealed: bool = True, artifact: Callable[[str], bytes | None] | None = None,
) -> Verification:  # fmt: skip
    """Check everything; ``proves`` says whether the last witness came from outside the store.

    ``artifact`` reads the long payloads; without it they all count as lost.
    """
    problems: list[str] = list(reader.check())
    replay = replay or Replay()
    awaited: dict[int, list[tuple[str, Head]]] = defaultdict(list)
    for name, head in witnesses:
        awaited[head.count].append((name, head))
    before, count = START, 0
    problems += [
        f"{name} has seen another start than ledgers have"
        for name, head in awaited[0]
        if head.hash != START.hex()
    ]
    for row in reader.entries():
        if row.seq != count + 1:
            problems.append(f"entry {count + 1} is missing")
            break
        mac = chain.link(before, *row[:-1])
        if mac != row.mac:
            problems.append(
                f"entry {row.seq} does not match the keyed chain: it, or an earlier entry, was changed"
            )
            break
        before, count = mac, row.seq
        try:
            replay.take(row)
        except _UNREADABLE as error:
            problems.append(f"entry {row.seq} cannot be read ({type(error).__name__})")
            break
        if count in awaited:
            problems += [
                f"entry {count} is not the one that {name} has seen" + _after_a_gap(replay, count)
                for name, head in awaited[count]
                if head.hash != mac.hex()
            ]
    else:
        replay.end()
        problems += replay.problems
        problems += _compare_accounts(reader, replay, chain if sealed else None)
    problems += [
        f"{name} has seen {at:,} entries, but the ledger has {count:,}: "
        f"its end was cut off, or an old copy took its place{_after_a_gap(replay, at)}"
        for at, seen in awaited.items()
        if at > count
        for name, _ in seen
    ]
    releases = _check_releases(reader, replay, problems, artifact or (lambda _: None))
    problems += _check_secrets(reader, replay, chain)
    return Verification(
        ok=not problems,
        complete=proves and not problems,
        entries=count,
        accounts=len(replay.accounts),
        releases=releases,
        head=Head(count, before.hex()),
        witnessed=witnesses[-1][1].count if proves else 0,
        problems=tuple(problems),
    )


def _after_a_gap(replay: Replay, count: int) -> str:
    """Say that an entry may have been lost, if the ledger went on from a backup that was older."""
    for entry, end in replay.gaps.items():
        if count > end:
            return f" (the ledger was continued from a backup that ended at entry {end}; see entry {entry})"
    return ""


def accounts_to_seal(reader: StoreReader, *, chain: Chain, name: str) -> list[AccountRow]:
    """Check a ledger of an earlier schema, and return its accounts with the seals that they lack."""
    replay = Replay()
    report = verify(reader, chain, (), proves=False, replay=replay, sealed=False)
    if not report.ok:
        raise _refusals.tampered(
            f"{name} is of an earlier version and cannot be upgraded: {report.problems[0]}"
        )
    return [sealed_account(chain, replay.last_change(row.id), row) for row in reader.accounts()]


def _compare_accounts(reader: StoreReader, replay: Replay, chain: Chain | None) -> list[str]:
    """Compare the stored accounts with those that follow from the log; without a chain, not their seals."""
    problems: list[str] = []
    stored: dict[int, Account] = {}
    for row in reader.accounts():
        try:
            account = Account.from_row(row)
        except _UNREADABLE:
            problems.append(f"account {row.name!r} cannot be read")
            continue
        stored[row.id] = account
        logged = row.id in replay.accounts
        if chain and logged and sealed_account(chain, replay.last_change(row.id), row) != row:
            problems.append(f"the stored total of account {row.name!r} was not written by the ledger")
        if row.parent != (account.path[1] if len(account.path) > 1 else 0):
            problems.append(f"account {row.name!r} is stored under another parent than in the log")
    doubtful = {
        id_
        for id_, replayed in replay.accounts.items()
        if replayed.exceeded
        or id_ not in stored
        or stored[id_].filter != replayed.account.filter
        or (replayed.account.blocks is not None and not same_blocks(reader, replayed))
    }
    if doubtful:
        replay_in_order(reader, {id_: replay.accounts[id_] for id_ in doubtful})
    for id_, replayed in replay.accounts.items():
        stored_row, name = stored.pop(id_, None), replayed.account.name
        if replayed.exceeded:
            problems.append(f"account {name!r} was charged beyond its budget")
        if stored_row is None:
            problems.append(f"account {name!r} is missing")
        elif stored_row.filter != replayed.account.filter:
            problems.append(
                f"the stored total of account {name!r} is not the total of its entries in the log"
            )
        elif stored_row != replayed.account:
            problems.append(f"account {name!r} is stored with other facts than in the log")
    problems += [f"account {account.name!r} is not in the log" for account in stored.values()]
    return problems + block_problems(reader, replay, chain)


def _check_releases(
    reader: StoreReader, replay: Replay, problems: list[str], artifact: Callable[[str], bytes | None]
) -> int:
    """Compare every stored release with its entry; return how many there are."""
    checked = 0
    awaited = dict(replay.released)
    for release in reader.releases():
        checked += 1
        stored = (release.seq, stored_digest(release), release.plan, release.version, release.root)
        if awaited.pop((release.receipt, release.part), None) != stored:
            whose = _whose(release.receipt, release.part)
            problems.append(f"{whose} is not the one that was stored")
            continue
        try:
            read_payload_of(release, artifact)
        except TacitError as error:
            problems.append(error.what)
    problems += [f"{_whose(*which)} is missing" for which in awaited]
    return checked


def _whose(receipt: int, part: int) -> str:
    return f"instalment {part} of run {receipt}" if part else f"the stored release of receipt {receipt}"


def _check_secrets(reader: StoreReader, replay: Replay, chain: Chain) -> list[str]:
    """Check that each run holds the secret that its last stored instalment left."""
    stored = {receipt for receipt, run in replay.runs.items() if run.stored}
    stray = [receipt for receipt in reader.runs_with_secrets() if receipt not in stored]
    problems = [f"a secret is stored for run {receipt}, which has no stored instalment" for receipt in stray]
    for receipt, run in replay.runs.items():
        if receipt not in stored:
            continue
        row = reader.run_secret(receipt)
        if row is None or reveal_secret(chain, run.entry, run.stored, run.digest, row) is None:
            problems.append(f"the secret of run {receipt} is not the one that instalment {run.stored} left")
    return problems
