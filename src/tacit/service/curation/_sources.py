"""Sources that curators may protect: their names, and the names and types of their columns; never a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.service._refusals import not_found

if TYPE_CHECKING:
    from tacit.service._operations import ServiceCall
    from tacit.service._service import Service


def list_sources(call: ServiceCall) -> dict[str, Any]:
    """List the sources that the operator offers: names and kinds. Where they are is the operator's affair."""
    listed = call.service.settings.sources
    return {"sources": [{"name": one.name, "kind": one.kind} for _, one in sorted(listed.items())]}


async def describe_source(call: ServiceCall) -> dict[str, Any]:
    """Return the names and types of a source's columns, by table.

    Guarantee: the drawer reads the schema alone; the answer has no row, no number of rows and no value.
    """
    return await described(call.service, call.path["source"])


async def described(service: Service, name: str) -> dict[str, Any]:
    """Ask the drawer for the columns of a listed source."""
    source = service.settings.sources.get(name)
    if source is None:
        raise not_found()
    found = await service.ask_drawer("describe", {"source": source.name})
    tables = [
        {"name": table, "columns": [{"name": one["name"], "kind": one["kind"]} for one in columns]}
        for table, columns in found["tables"].items()
    ]
    return {"source": source.name, "kind": source.kind, "tables": tables}
