"""The verification of a ledger's blocks: every stored row against the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.ledger._accounts import sealed_block
from tacit.ledger._block_totals import sums_to_text
from tacit.ledger._rows import Tip

if TYPE_CHECKING:
    from tacit.ledger._chain import Chain
    from tacit.ledger._replay import Replay, ReplayedAccount
    from tacit.ledger._rows import BlockRow
    from tacit.ledger._store import StoreReader


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
        called, key = f"block {row.block!r} of account {replayed.account.name!r}", (row.account, row.block)
        last = replay.last_block_change(*key)
        if not _counts(replayed, row) and key not in awaited:
            entry = reader.entry(row.seq)  # from before the totals started again
            last = Tip(row.seq, b"" if entry is None else entry.mac)
        if chain is not None and sealed_block(chain, last, row) != row:
            problems.append(f"the stored sums of {called} were not written by the ledger")
        if _counts(replayed, row) and awaited.pop(key, None) != row.state:
            problems.append(f"the stored sums of {called} are not the sums of its entries in the log")
    named = ((replay.accounts[id_].account.name, name) for id_, name in awaited)
    return problems + [f"block {block!r} of account {name!r} is missing" for name, block in named]


def _counts(replayed: ReplayedAccount, row: BlockRow) -> bool:
    """Whether a row is from after the totals were last started again."""
    totals = replayed.account.totals
    return totals is None or row.seq > totals.since
