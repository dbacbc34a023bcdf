"""Write SQL for parts of private groups: the first few, all by size, or some by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.engines._dialect import numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.algebra import GroupsAtRanks, GroupsBySize
    from tacit.engines._dialect import Dialect, Part


def by_size_sql(dialect: Dialect, groups: str, keys: Sequence[Part], part: GroupsBySize) -> str:
    """Write the large groups one by one, and how many others have which size, in one pass over all groups.

    ``groups`` returns the key and the size of each group. A small group has no key in the inner lines, so all
    of one size and one cell fall together.
    """
    names = [name for name, _ in keys]
    large = ", ".join(f"CASE WHEN n >= {part.threshold} THEN {k} END AS x{k}" for k in names)
    cell = f"CASE WHEN n < {part.threshold} THEN {dialect.cell(keys, part.digits)} END AS b"
    listed = ", ".join([*(f"x{k}" for k in names), "n", "b"])
    lines = f"SELECT {large}, n, {cell} FROM ({groups}) AS g({', '.join([*names, 'n'])})"
    return f"SELECT {listed}, count(*) FROM ({lines}) t GROUP BY {listed}"


def at_ranks_sql(dialect: Dialect, groups: str, keys: Sequence[Part], part: GroupsAtRanks) -> str:
    """Write the small groups at the ranks of ``tacit_ranks``; cells without a rank are dropped before.

    Groups differ in their keys, so the order has no ties.
    """
    own = [(f"g{i}", stored) for i, (_, stored) in enumerate(keys)]
    names = [name for name, _ in own]
    listed = ", ".join(names)
    cells = (
        f"SELECT {listed}, {dialect.to_double('n')} AS k0, {dialect.cell(own, part.digits)} AS k1 "
        f"FROM ({groups}) AS g({listed}, n) WHERE n < {part.threshold}"
    )
    rank = dialect.to_double(numbered(["k0", "k1"], dialect.order(names)))
    within = dialect.semi(cells, "tacit_ranks", ["k0", "k1"], missing=False)
    ranked = (
        f"SELECT {listed}, k0, k1, {rank} AS k2, count(*) OVER (PARTITION BY k0, k1) AS c FROM ({within}) t"
    )
    found = dialect.semi(ranked, "tacit_ranks", ["k0", "k1", "k2"], missing=False)
    return f"SELECT {listed}, k0, k1, k2, c FROM ({found}) t"
