"""The ledger's blocks: a public partition of the data, whose parts are charged separately.

The total of an account with blocks consists of what concerns all of the data, and of the largest sums of
blocks. It is a list of sums: epsilon, delta, rho, one for each Renyi order, and promised epsilon and delta
where the filter is a union; None stands for a sum that is not finite. The rule and its proof are in
`docs/proofs/filters.md`, "Blocks".

A charge to blocks reaches the levels that have them; `check_partition` says which accounts may have blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from tacit.accounting import Filter
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Either, Say, Set
from tacit.parameters import Integer, Listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tacit.accounting import Budget, Spend
    from tacit.ledger.accounts._accounts import Account
    from tacit.ledger.stores._store import BlockRow
    from tacit.ledger.stores._transaction import Transaction


_MAX_PER_UNIT = 100


@dataclass(frozen=True, slots=True)
class Blocks:
    """A public partition of the data (days, months, cohorts, hospitals), whose parts are charged separately.

    Guarantee: if every unit is in at most ``per_unit`` blocks, then what is released about any one unit stays
    within the budget. A charge that names its blocks takes nothing from the others. The proof is in
    ``docs/proofs/filters.md``; it needs the adjacency add/remove.

    Parameters
    ----------
    by
        What the data is divided by: a word, or the name of a column.
    per_unit
        How many blocks one unit can be in. Whoever declares it promises it. Where the table shows it (the
        unit is a row, or the block is part of the unit), `tacit.protect` checks it.
    kind
        How the column is read, such as ``"date"``; empty if nothing was said about it. `tacit.protect` sets
        it: read in another way, the same row would be in a block of another name.

    Examples
    --------
    >>> import tacit as tc
    >>> ledger = tc.Ledger.memory()
    >>> days = tc.Blocks("day")
    >>> _ = ledger.create_account("visits", unit="row", budget=tc.Budget(epsilon=1), blocks=days)
    >>> for day in ("2026-01-01", "2026-01-02", "2026-01-03"):
    ...     _ = ledger.charge("visits", tc.Cost.pure(0.8), blocks=(day,))
    >>> ledger.account("visits").spent.epsilon
    Fraction(4, 5)
    """

    by: str
    per_unit: int = 1
    kind: str = ""
    most: ClassVar[int] = 1_000  # names in one charge; whoever needs more charges all of the data

    def __post_init__(self) -> None:
        read_printable("by", self.by, "a word, or the name of a column, of at most 200 characters", "day")
        per_unit = Integer(
            1,
            _MAX_PER_UNIT,
            why="if one unit can be in so many blocks, charging them separately saves almost nothing",
            instead=10,
        ).read("per_unit", self.per_unit)
        object.__setattr__(self, "per_unit", per_unit)
        if self.kind != "":
            read_printable("kind", self.kind, "a word of at most 20 characters", "date", length=20)

    def __str__(self) -> str:
        at_most = "one block" if self.per_unit == 1 else f"at most {self.per_unit} blocks"
        reading = f", read as {self.kind}" if self.kind else ""
        return f"by {self.by}{reading}, each unit in {at_most}"

    def divides_like(self, other: Blocks | None) -> bool:
        """Whether this is the other partition, or says nothing about how its column is read."""
        return other is not None and self in {other, replace(other, kind="")}

    def to_json(self) -> dict[str, str | int]:
        """Return the partition as JSON."""
        kind: dict[str, str | int] = {"kind": self.kind} if self.kind else {}
        return {"by": self.by, "per_unit": self.per_unit, **kind}

    @classmethod
    def from_json(cls, data: object) -> Blocks:
        """Read what `to_json` wrote."""
        assert isinstance(data, dict)  # noqa: S101 - written by `to_json`
        return cls(str(data["by"]), int(data["per_unit"]), str(data.get("kind", "")))


def read_printable(
    parameter: str, text: object, words: str, example: str, *, length: int = 200, stripped: bool = False
) -> str:
    """Read text that can be printed on one line, exactly as given: not empty, of a largest length."""
    if isinstance(text, str) and 1 <= len(text) <= length and text.isprintable():
        if not stripped or text.strip() == text:
            return text
        words, example = f"{words} without spaces at its ends", text.strip()
    raise bad_parameter(parameter, words, text, fix=Set(**{parameter: example}))


def read_block(name: object) -> str:
    """Read the name of one block: 1 to 200 printable characters, exactly as given."""
    return read_printable("block", name, "text of 1 to 200 printable characters", "2026-01-03")


def read_block_names(blocks: object) -> tuple[str, ...]:
    """Read the blocks that a charge concerns, in order and each once; none stands for all of the data."""
    values = Listed("names", '("2026-01-03",)', least=0).read("blocks", blocks)
    names = tuple(sorted({read_block(name) for name in values}))
    why = "a charge that names no block concerns all of the data"
    Listed("names", "()", least=0, most=Blocks.most, why=why).read("blocks", names)
    return names


#: The sums of one block, or the largest sums of several, coordinate by coordinate.
BlockSums: TypeAlias = tuple[Fraction | None, ...]


class BlockFull(Exception):  # noqa: N818 - becomes a refusal
    """A block has no room for a charge; ``filter`` holds all that a unit in it may have paid already."""

    def __init__(self, name: str, filter_: Filter) -> None:
        super().__init__(name)
        self.name = name
        self.filter = filter_


@dataclass(frozen=True, slots=True)
class BlockTotals:
    """What an account with blocks has spent, in constant space however many blocks there are.

    Parameters
    ----------
    all
        The budget, and the sums of the charges that concern all of the data.
    fullest
        As many ranks as a unit can have blocks. In each coordinate by itself, the first rank holds the
        largest sum of a block, the second rank the second largest, and so on; 0 where there are fewer blocks.
    since
        Number of the entry that started the totals again from zero, or 0. Blocks that were last charged
        before it are empty.
    last
        The last name, in the order of texts, of a block that was charged. Any later name is that of a block
        that was never charged, such as a new day: nobody has to search the log for it.
    """

    all: Filter
    fullest: tuple[BlockSums, ...]
    since: int = 0
    last: str = ""

    @classmethod
    def start(cls, filter_: Filter, per_unit: int, since: int = 0) -> BlockTotals:
        """Return the totals of an untouched account."""
        return cls(filter_, (_zeros(filter_),) * per_unit, since)

    @property
    def empty(self) -> BlockSums:
        """The sums of a block that was not charged."""
        return _zeros(self.all)

    def without_blocks(self) -> BlockTotals:
        """Return the totals as if no block had been charged."""
        return replace(self, fullest=(self.empty,) * len(self.fullest), last="")

    def whole(self) -> Filter:
        """Return the filter that a charge of all the data must pass: what any unit may have paid at most."""
        return _plus(self.all, self.fullest)

    def beside(self, sums: BlockSums) -> Filter:
        """Return the filter of a block with these sums: all that a unit in it may have paid at most.

        The unit is in this block and in as many others as it can be: in each coordinate, the fullest ones.
        """
        others = [_without(column, value) for column, value in zip(_turned(self.fullest), sums, strict=True)]
        return _plus(self.all, [sums, *_turned(others)])

    def risen(self, before: BlockSums, after: BlockSums) -> BlockTotals:
        """Return the totals after the sums of one block have grown."""
        columns = [
            _ranked((*(_without(column, old) if old in column else column), new))[: len(column)]
            for column, old, new in zip(_turned(self.fullest), before, after, strict=True)
        ]
        return replace(self, fullest=_turned(columns))

    def listed(self, rows: Iterable[BlockRow]) -> dict[str, Spend]:
        """Return what was charged to each block by itself, the fullest first."""
        budget = self.all.budget
        which = 0 if budget.epsilon is not None and not budget.delta else 2  # epsilon or rho
        sums = [(row.block, sums_from_text(row.state)) for row in rows if row.seq > self.since]
        sums.sort(key=lambda row: ((value := row[1][which]) is not None, -(value or 0), row[0]))
        return {name: with_sums(self.all, own).spent for name, own in sums}

    def to_json(self) -> dict[str, object]:
        """Return the totals as JSON values."""
        used = [sums_to_text(rank) for rank in self.fullest if any(value != 0 for value in rank)]
        return {"all": self.all.to_json(), "fullest": used, "last": self.last, "since": self.since}

    @classmethod
    def from_json(cls, data: Mapping[str, object], per_unit: int) -> BlockTotals:
        """Read what `to_json` wrote."""
        start = cls.start(Filter.from_json(data["all"]), per_unit, int(str(data["since"])))
        stored = data["fullest"]
        assert isinstance(stored, list)  # noqa: S101 - written by `to_json`
        used = tuple(sums_from_text(text) for text in stored)
        return replace(start, fullest=(*used, *start.fullest[len(used) :]), last=str(data["last"]))


def charge_blocks(
    totals: BlockTotals,
    blocks: Mapping[str, BlockSums],
    spend: Spend,
    fits: Callable[[Budget], bool] | None = None,
) -> tuple[BlockTotals, dict[str, BlockSums]]:
    """Charge some blocks, given their sums, or refuse with `BlockFull`; return the totals and the new sums.

    Each block is checked with those before it already charged: so every choice of blocks that a unit can be
    in is checked when the last of its charged blocks is. A charge may take the whole budget of every unit
    that nobody has charged before it, and pays once however many of its blocks the unit is in.
    """
    before, charged = totals, dict[str, BlockSums]()
    for name, sums in blocks.items():
        beside = totals.beside(sums)
        if not beside.admits(spend) and not (fits is not None and before.beside(sums).admits_first(fits)):
            raise BlockFull(name, beside)
        charged[name] = sums_of(with_sums(totals.all, sums).added(spend))
        totals = totals.risen(sums, charged[name])
    return replace(totals, last=max([totals.last, *charged])), charged


def with_blocks(totals: BlockTotals, blocks: Mapping[str, BlockSums]) -> BlockTotals:
    """Work out the largest sums of blocks from all of them: for the check of the stored ones."""
    if not blocks:
        return totals.without_blocks()
    ranks = len(totals.fullest)
    columns = _turned(list(blocks.values()))
    fullest = _turned([_ranked((*column, *(Fraction(0),) * ranks))[:ranks] for column in columns])
    return replace(totals, fullest=fullest, last=max(blocks))


def sums_to_text(sums: BlockSums) -> str:
    """Write sums as exact fractions, ``-`` where one is not finite."""
    return ";".join("-" if value is None else str(value) for value in sums)


def sums_from_text(text: str) -> BlockSums:
    """Read what `sums_to_text` wrote."""
    return tuple(None if part == "-" else Fraction(part) for part in text.split(";"))


def _turned(rows: Sequence[BlockSums]) -> tuple[BlockSums, ...]:
    """Turn ranks into coordinates, or coordinates into ranks."""
    return tuple(zip(*rows, strict=True))


def _ranked(values: Iterable[Fraction | None]) -> tuple[Fraction | None, ...]:
    """Sort from the largest; None is larger than every number."""
    return tuple(sorted(values, key=lambda value: (value is None, value or 0), reverse=True))


def _without(ranked: tuple[Fraction | None, ...], value: Fraction | None) -> tuple[Fraction | None, ...]:
    """Return the largest of the others: without this value where it is among them, else without the last."""
    at = ranked.index(value) if value in ranked else len(ranked) - 1
    return ranked[:at] + ranked[at + 1 :]


def _plus(filter_: Filter, ranks: Iterable[BlockSums]) -> Filter:
    columns = zip(sums_of(filter_), *ranks, strict=True)
    return with_sums(filter_, tuple(None if None in column else sum(column) for column in columns))


def _zeros(filter_: Filter) -> BlockSums:
    return (Fraction(0),) * len(sums_of(filter_))


def sums_of(filter_: Filter) -> BlockSums:
    """Return the sums of a filter: epsilon, delta, rho, one for each order, and the two of the promises."""
    orders = (total for _, total in filter_.curve)
    return (filter_.epsilon, filter_.delta, filter_.rho, *orders, *(filter_.promised or ()))


def sums_taken(filter_: Filter, spend: Spend) -> BlockSums:
    """Return what a charge adds to each sum of a filter."""
    orders = (spend.divergence(order) for order in filter_.orders)
    promised = () if filter_.promised is None else spend.promised
    return (spend.epsilon, spend.delta, spend.rho, *orders, *promised)


def with_sums(filter_: Filter, sums: BlockSums) -> Filter:
    """Return a filter of the same budget and orders with other sums."""
    epsilon, delta, rho, *rest = sums
    assert delta is not None  # noqa: S101 - a delta is a probability
    promised = None
    if filter_.promised is not None:
        *rest, promised_epsilon, promised_delta = rest
        assert promised_delta is not None  # noqa: S101 - a delta, too
        promised = (promised_epsilon, promised_delta)
    curve = tuple(zip(filter_.orders, rest, strict=True))
    return replace(filter_, epsilon=epsilon, delta=delta, rho=rho, curve=curve, promised=promised)


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
    sums = {name: transaction.block(level, name) for name in names}
    totals, charged = charge_blocks(level.totals, sums, spend, fits)
    return level.with_totals(totals), charged
