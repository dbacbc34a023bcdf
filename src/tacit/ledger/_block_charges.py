"""The ledger's charges to blocks: which accounts may have blocks, and which levels a charge reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.fixes import Either, Say, Set
from tacit.ledger._block_totals import charge_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.accounting import Budget, Spend
    from tacit.ledger._accounts import Account
    from tacit.ledger._block_totals import BlockSums
    from tacit.ledger._blocks import Blocks
    from tacit.ledger._transaction import Transaction


def check_partition(name: str, blocks: Blocks, adjacency: str, above: Sequence[Account]) -> None:
    """Refuse a partition for the adjacency replace, and one that differs from that of any account above."""
    if adjacency != "add/remove":
        raise TacitError(
            "not-allowed",
            f"account {name!r} cannot have blocks with the adjacency {adjacency}",
            why="if a unit is replaced, one unit leaves a block and another enters a different block, so two "
            "blocks change although each was charged for one change",
            fix=Either(Set(adjacency="add/remove"), Set(blocks=None)),
        )
    for each in above:
        if each.blocks is None or blocks.divides_like(each.blocks) or each.blocks.divides_like(blocks):
            continue
        raise TacitError(
            "account-differs",
            f"account {name!r} would be divided {blocks}, but {each.name!r} above it is divided "
            f"{each.blocks}",
            why="a charge names its blocks once, for every account that it reaches",
            fix=Either(Set(blocks=each.blocks), Set(blocks=None)),
        )


def check_blocks(path: Sequence[Account], blocks: tuple[str, ...]) -> None:
    """Refuse a charge that names blocks if neither the account nor one above it is divided into blocks."""
    if blocks and all(level.blocks is None for level in path):
        raise TacitError(
            "bad-parameter",
            f"account {path[0].name!r} has no blocks, but the charge names block {blocks[0]!r}",
            why="blocks are declared when an account is opened",
            fix=Either(Set(blocks=()), Say("open the account with blocks")),
        )


def charged_blocks(
    transaction: Transaction,
    level: Account,
    spend: Spend,
    names: tuple[str, ...],
    fits: Callable[[Budget], bool],
) -> tuple[Account, dict[str, BlockSums]]:
    """Charge some blocks of one account; return it with the new sums of the blocks."""
    assert level.totals is not None  # noqa: S101 - the caller has checked
    own = {name: transaction.block(level, name) for name in names}
    totals, charged = charge_blocks(level.totals, own, spend, fits)
    return level.with_totals(totals), charged
