"""The blocks of an account in ``tacit budget``: the fullest ones, what is left of them, and of any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tacit.cli._output import amount_facts, printable

if TYPE_CHECKING:
    from tacit.accounting import Remaining
    from tacit.ledger import Account, Entry, Ledger

_SHOWN = 3
_LISTED = 1_000

#: The label of a block, and what is left for a question about it alone; None for several blocks in one line.
BlockLine: TypeAlias = "tuple[str, Remaining | None]"


def block_lines(ledger: Ledger, account: Account) -> list[BlockLine]:
    """Return what is left of each of the fullest blocks, of any other block, and of all of the data."""
    if account.blocks is None or account.totals is None:
        return []
    by = printable(account.blocks.by)
    charged = list(ledger.blocks(account))
    lines: list[BlockLine] = [
        (f"{by} {printable(name)}", ledger.remaining(account, block=name)) for name in charged[:_SHOWN]
    ]
    if len(charged) > _SHOWN:
        lines.append((f"{len(charged) - _SHOWN:,} more that were charged", None))
    other = account.totals.beside(account.totals.empty).remaining
    return [*lines, (f"any other {by}", other), ("all of the data", account.filter.remaining)]


def blocks_to_json(ledger: Ledger, account: Account) -> list[dict[str, object]]:
    """Return the fullest blocks of an account as JSON values, at most a thousand."""
    found = list(ledger.blocks(account).items())[:_LISTED] if account.blocks is not None else []
    lefts = [ledger.remaining(account, block=name) for name, _ in found]
    return [
        {"block": name, "spent": amount_facts(spend), "left": amount_facts(left)}
        for (name, spend), left in zip(found, lefts, strict=True)
    ]


def named_blocks(entry: Entry) -> str:
    """Return the blocks that an entry names, for a narrow column."""
    if not entry.blocks:
        return ""
    more = f" and {len(entry.blocks) - 1:,} more" if len(entry.blocks) > 1 else ""
    return f" (block {printable(entry.blocks[0])}{more})"
