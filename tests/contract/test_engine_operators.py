"""The entrance exam of engines, operators: total on hostile values, and equal to DuckDB's value by value.

Every operator is asked on every pair of hostile values and on random ones, every stored type is read as every
kind. Numbers are compared bit by bit, the sign of zero aside. `hostile_values.NOT_EQUAL` names what engines
compute differently, and why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support import hostile_values as hv
from support.engine_exam import opened, same, table_of, values
from support.engine_places import OTHERS
from tacit.algebra import OPERATORS, Call, Column, kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from tacit.algebra import Node

#: How many expressions one statement computes.
TOGETHER = 40


@pytest.fixture(scope="module", params=OTHERS)
def place(request, place_of):
    return place_of(request.param)


def computed(place: Any, table: pa.Table, nodes: Sequence[Node]) -> dict[Any, list[Any]]:
    """Return the values of all expressions in every row."""
    engine = opened(place, {"t": table})
    declared, found = table_of(engine), {}
    for start in range(0, len(nodes), TOGETHER):
        for row, some in values(engine, declared, nodes[start : start + TOGETHER]).items():
            found.setdefault(row, []).extend(some)
    engine.close()
    return found


@pytest.fixture(scope="module")
def reference(place_of):
    """Return DuckDB's values, computed once."""
    kept = {}

    def of(name, table, nodes):
        if name not in kept:
            kept[name] = computed(place_of("duckdb"), table, nodes)
        return kept[name]

    return of


def check(place: Any, table: pa.Table, nodes: Sequence[Node], expected: dict[Any, list[Any]]) -> None:
    """Compare an engine's values with DuckDB's; a difference is named by the expression and its row."""
    found = computed(place, table, nodes)
    assert found.keys() == expected.keys()
    rows = table.to_pylist()
    wrong = [
        (node, rows[int(row)], ours, theirs)
        for row, line in expected.items()
        for node, theirs, ours in zip(nodes, line, found[row], strict=True)
        if not _agree(node, rows[int(row)], ours, theirs)
    ]
    shown = "\n".join(
        f"{node}\n  on {_used(node, row)}\n  is {ours!r}, in DuckDB {theirs!r}"
        for node, row, ours, theirs in wrong[:10]
    )
    assert not wrong, f"{len(wrong)} values differ\n{shown[:5000]}"


def _used(node: Node, row: dict[str, Any]) -> dict[str, Any]:
    return {column: value for column, value in row.items() if repr(column) in str(node)}


def _agree(node: Node, row: dict[str, Any], ours: object, theirs: object) -> bool:
    op = node.op if isinstance(node, Call) else ""
    if op in {"lower", "upper"} and not (row["t1"] or "").isascii():
        return (ours is None) == (theirs is None)
    if isinstance(ours, str) and isinstance(theirs, str) and ours != theirs and _is_text_of_double(node):
        return float(ours) == float(theirs)
    return same(ours, theirs, ulps=hv.ULPS if op in hv.NOT_EQUAL else 0)


def _is_text_of_double(node: Node) -> bool:
    """Whether an expression writes a double as text, for which Java may take one digit more."""
    if isinstance(node, Column):
        return node.kind == "text" and node.name in {"n1", "n2", "real"}
    return isinstance(node, Call) and node.op == "to_text" and kind_of(node.args[0]) == "number"


def test_every_operator_is_asked():
    assert {call.op for call in hv.calls()} == set(OPERATORS)


def test_every_operator_on_hostile_pairs(place, reference):
    nodes = list(hv.calls())
    check(place, hv.pairs(), nodes, reference("pairs", hv.pairs(), nodes))


def test_every_stored_type_is_read_as_every_kind(place, reference):
    nodes = hv.readings([c for c in hv.pairs().column_names if c != "u"])
    check(place, hv.pairs(), nodes, reference("readings", hv.pairs(), nodes))


def test_random_numbers_texts_and_moments(place, reference):
    table = hv.drawn(1000)
    nodes = [*hv.readings([c for c in table.column_names if c != "u"]), *hv.short_calls()]
    check(place, table, nodes, reference("drawn", table, nodes))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_many_random_numbers_texts_and_moments(place, reference, seed):
    table = hv.drawn(12_000, seed)
    nodes = [*hv.readings([c for c in table.column_names if c != "u"]), *hv.short_calls()]
    check(place, table, nodes, reference(seed, table, nodes))
