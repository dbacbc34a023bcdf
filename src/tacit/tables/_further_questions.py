"""Questions about rows that answer with more than one table: cross tables, regressions, invented rows.

Some belong to rooms below this one, which are imported when they are first asked. Each of them names itself
in a plan's document (``asks``) and rebuilds its plans.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tacit.algebra import document

if TYPE_CHECKING:
    from tacit.core import JSON, Plan
    from tacit.tables._dataset import TableDataset
    from tacit.tables._rows import Rows

__all__ = ["asked_of", "read_rows", "rebuilt", "rows_document"]

#: The module that answers each kind of question, with a function of its name and one named ``rebuild``.
_HOMES = {
    "crosstabs": "tacit.tables._crosstabs",
    "ranges": "tacit.tables._ranges",
    "hierarchy": "tacit.tables._hierarchy",
    "prefixes": "tacit.tables._ranges",
    "regress": "tacit.inference",
    "survival": "tacit.inference",
    "synthesize": "tacit.synth",
}


def asked_of(rows: Rows, asks: str, *args: Any, **options: Any) -> Any:
    """Ask a question of its room."""
    return getattr(import_module(_HOMES[asks]), asks)(rows, *args, **options)


def rebuilt(dataset: TableDataset, request: Any) -> Plan[Any]:
    """Rebuild a plan from its request; raises ``KeyError`` for what no room answers."""
    plan: Plan[Any] = import_module(_HOMES[request["asks"]]).rebuild(dataset, request)
    return plan


def rows_document(rows: Rows) -> JSON:
    """Return the rows that a question reads, as a document."""
    return {"relation": document(rows.relation), "sample": rows.share}


def read_rows(dataset: TableDataset, written: Any) -> Rows:
    """Read the rows of a question back, and check them."""
    from tacit.tables._rows import Rows
    from tacit.tables._sampling import MOST_SAMPLED
    from tacit.tables._wire import read_relation

    share = written["sample"]
    if share is not None and not (type(share) is int and 0 < share < MOST_SAMPLED):
        raise ValueError("not a sample")
    return Rows(dataset, read_relation(written["relation"], dataset), dataset.limits, share)
