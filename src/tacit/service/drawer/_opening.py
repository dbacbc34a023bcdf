"""Open a listed source as its policy says; only the process of a dataset does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.service.drawer._days import days_folder, first_day, kept_days

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.core import Dataset
    from tacit.ledger import Ledger
    from tacit.service._settings import ListedSource, ServiceSettings
    from tacit.tables import TableDataset

#: The kinds of columns as policies name them, where the engine says more.
_KINDS = {"moment": "date"}
#: What a policy that does not say otherwise declares.
_DEFAULTS: dict[str, Any] = {
    "adjacency": "add/remove", "version": 1, "bounds": {}, "keys": {}, "types": {}, "never_null": [],
    "limits": None, "record": "words", "budget": {"epsilon": "1", "delta": "0", "rho": None},
}  # fmt: skip


def listed_source(settings: ServiceSettings, name: object) -> ListedSource:
    """Return a source that the operator lists; nothing else can be opened."""
    found = settings.sources.get(name) if isinstance(name, str) else None
    if found is None:
        raise TacitError(
            "unknown-table",
            "the operator of this service lists no source of that name",
            fix=Choose(tuple(sorted(settings.sources))),
        )
    return found


def describe_source(settings: ServiceSettings, name: object) -> dict[str, Any]:
    """Return the tables of a listed source with the names and kinds of their columns; no row is read.

    The kind is empty where the source declares none, as in CSV files, and ``unreadable`` where no question
    can use the column.
    """
    from tacit.engines import SourceTable, open_engine

    source = listed_source(settings, name)
    places = _places(source, source.name) if source.kind != "stream" else _first_place(source)
    if not places:  # no day has come in yet
        return {"source": source.name, "kind": source.kind, "tables": {source.name: []}}
    engine = open_engine({table: SourceTable(place, None) for table, place in places.items()}, key=0)
    tables: dict[str, list[dict[str, str]]] = {}
    try:
        for table in places:
            columns = engine.columns(table)
            if columns is None:
                raise _not_there()
            stored = engine.stored_as(table)
            kinds = {one: "unreadable" if bad else str(stored.get(one, "")) for one, bad in columns.items()}
            tables[table] = [{"name": one, "kind": _KINDS.get(kind, kind)} for one, kind in kinds.items()]
    finally:
        engine.close()
    return {"source": source.name, "kind": source.kind, "tables": tables}


def open_policy(
    settings: ServiceSettings, name: str, policy: Mapping[str, Any], ledger: Ledger
) -> tuple[Dataset, dict[str, Any]]:
    """Open a listed source as its policy says, and return it with what is public of it.

    Draws are charged to the account of that name. Nothing is written to the ledger: whoever declares the
    dataset opens its account, and may still be refused after this. So the policy is checked with a ledger in
    memory, which the service's ledger then replaces.
    """
    source = listed_source(settings, policy["source"])
    if policy["kind"] != source.kind:
        raise TacitError(
            "not-allowed",
            "the operator lists this source as another kind of dataset now",
            fix="ask the operator",
        )
    if source.kind != "table":
        return _open_other(settings, source, name, policy, ledger)
    made = _open_table(source, name, policy, ledger)
    return made, made.public_facts()


def _open_table(source: ListedSource, name: str, policy: Mapping[str, Any], ledger: Ledger) -> TableDataset:
    from tacit.ledger import Ledger
    from tacit.service.curation import protect_arguments
    from tacit.tables import protect

    arguments = protect_arguments({**_DEFAULTS, **policy})
    made = protect(_places(source, name), name=name, ledger=Ledger.memory(), **arguments)
    if any(table.columns is None for table in made.tables.values()):
        raise _not_there()
    return replace(made, _ledger=ledger)


def _first_place(source: ListedSource) -> dict[str, Any]:
    """Return the file of the earliest day of a stream, whose columns are those of all days."""
    from tacit.engines import place_source

    folder = days_folder(source)
    if folder is None:
        raise _not_there()
    first = first_day(folder)
    return {} if first is None else {source.name: place_source(str(first), None)}


def _open_other(
    settings: ServiceSettings, source: ListedSource, name: str, policy: Mapping[str, Any], ledger: Ledger
) -> tuple[Dataset, dict[str, Any]]:
    """Open points on a map or a graph: one file, or one table, that DuckDB reads; or a stream's folder."""
    from tacit.service._kinds import facts_of_kind, open_kind

    if source.kind == "stream":
        if days_folder(source) is None:
            raise _not_there()
        kept = kept_days(settings, name, policy)
        return open_kind("stream", kept, name, policy, ledger), facts_of_kind("stream", name, policy)
    describe_source(settings, source.name)  # refuses what is not there, and names no file
    places = _places(source, name)
    if source.engine != "duckdb" or len(places) != 1:
        raise TacitError(
            "not-allowed",
            f"a source of the kind {source.kind} is one file or one table that DuckDB reads",
            fix="ask the operator to list it as one file or one table",
        )
    (place,) = places.values()
    return open_kind(source.kind, place, name, policy, ledger), facts_of_kind(source.kind, name, policy)


def _places(source: ListedSource, name: str) -> dict[str, Any]:
    """Return the places of a source's tables by name, as the engine reads them."""
    from tacit.engines import csv_file, place_source

    many = source.place if isinstance(source.place, dict) else {name: source.place}
    engine = None if source.engine == "duckdb" else source.engine
    found = {}
    for table, place in many.items():
        is_csv = engine is None and str(place).lower().endswith((".csv", ".tsv"))
        options = dict(source.options) if is_csv else {}
        found[table] = csv_file(str(place), **options) if options else place_source(place, engine)
    return found


def _not_there() -> TacitError:
    return TacitError(
        "unknown-table", "the source cannot be read now", fix="ask the operator whether it is there"
    )
