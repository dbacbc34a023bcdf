"""Questions read back from their documents: the other half of `document`.

A document names nodes by their class. Only the classes listed here are made, each through its constructor,
with tables looked up among the dataset's own: a document can say nothing that the fluent API could not.
"""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.tables import _aggregates, _algebra, _expressions, _postprocessing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.core import Table

__all__ = ["read_document"]

_NODES: dict[str, type] = {
    node.__name__: node
    for node in (
        *(getattr(_algebra, name) for name in (
            "JoinPublic", "JoinUnits", "Measure", "PerUnit", "Project", "Scan", "TableQuestion", "Where",
        )),
        *(getattr(_aggregates, name) for name in (
            "CountDistinct", "CountRows", "CountUnits", "ExtremeOf", "HistogramOf", "MeanOf", "MedianOf",
            "MostCommonOf", "QuantileOf", "QuantilesOf", "StdOf", "SumOf", "VarianceOf",
        )),
        _expressions.Call,
        _expressions.Column,
        _expressions.Literal,
        _postprocessing.PostProcessing,
    )
}  # fmt: skip


def read_document(written: Any, tables: Mapping[str, Table]) -> Any:
    """Read a node from its document.

    Raises ``KeyError``, ``TypeError`` or ``ValueError`` where it is not one; `plan_from` then refuses.
    """
    match written:
        case None | bool() | int() | str():
            return written
        case {"number": str(text)}:
            return float.fromhex(text)
        case {"fraction": str(text)}:
            return Fraction(text)
        case {"table": str(name)}:
            return tables[name]
        case {"node": str(name)}:
            node = _NODES[name]
            known = {field.name for field in fields(node)}
            given = {k: read_document(v, tables) for k, v in written.items() if k != "node"}
            if set(given) != known:
                raise ValueError(name)
            return node(**given)
        case list() | tuple():
            return tuple(read_document(one, tables) for one in written)
        case _:
            raise TypeError(type(written).__name__)
