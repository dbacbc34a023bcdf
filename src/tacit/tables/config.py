"""Declared facts in a small TOML file, shared by Python, the command and the service."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.accounting import Budget
from tacit.core.unit import Unit
from tacit.errors import TacitError, bad_parameter
from tacit.tables.dataset import Dataset, protect

if TYPE_CHECKING:
    import os

__all__ = ["load_config"]

_KNOWN = {
    "source", "unit", "version", "bounds", "keys", "types", "never_null", "limits", "public",
    "adjacency", "budget",
}  # fmt: skip


def load_config(path: str | os.PathLike[str] = "tacit.toml") -> dict[str, Dataset]:
    r"""Open the datasets that a ``tacit.toml`` declares; paths in it are relative to the file.

    The file has one optional ``ledger = "..."`` and a table ``[datasets.NAME]`` for each dataset with the
    arguments of `protect`: ``source``, ``unit`` (a column, or an empty text for single rows), ``budget =
    {epsilon = 1, delta = 1e-6}``, ``bounds``, ``keys``, ``types``, ``limits``, ``public``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> text = '[datasets.visits]\nsource = "v.csv"\nunit = "pid"\nbudget = {epsilon = 1}'
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "tacit.toml"
    >>> _ = file.write_text(text)
    >>> load_config(file)["visits"]
    Dataset('visits', unit=Unit('pid'), tables: visits)
    """
    file = Path(path)
    try:
        declared = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TacitError(
            "bad-parameter",
            f"{file.name} cannot be read as TOML: {error}",
            fix='[datasets.visits]  source = "visits.parquet"',
        ) from None
    unknown = set(declared) - {"ledger", "datasets"}
    if unknown or not isinstance(declared.get("datasets"), dict):
        raise bad_parameter(
            "tacit.toml", "made of ledger and [datasets.NAME]", sorted(declared), fix="[datasets.visits]"
        )
    ledger = declared.get("ledger")
    place = None if ledger is None else ledger if "://" in str(ledger) else str(file.parent / str(ledger))
    return {name: _dataset(name, facts, file.parent, place) for name, facts in declared["datasets"].items()}


def _dataset(name: str, facts: Any, folder: Path, ledger: str | None) -> Dataset:
    if not isinstance(facts, dict) or set(facts) - _KNOWN or not {"source", "unit", "budget"} <= set(facts):
        found = sorted(facts) if isinstance(facts, dict) else facts
        raise bad_parameter(
            f"datasets.{name}", f"a table of {', '.join(sorted(_KNOWN))}", found, fix="source, unit, budget"
        )
    if not isinstance(facts["budget"], dict) or set(facts["budget"]) - {"epsilon", "delta", "rho"}:
        raise bad_parameter(
            f"datasets.{name}.budget", "a table", facts["budget"], fix="budget = {epsilon = 1}"
        )
    rest = {k: v for k, v in facts.items() if k not in {"source", "unit", "budget", "public"}}
    source = facts["source"]
    places: Any = (
        {t: folder / s for t, s in source.items()} if isinstance(source, dict) else folder / str(source)
    )
    public = {t: (folder / p["source"], p["key"]) for t, p in facts.get("public", {}).items()}
    unit = Unit.row() if facts["unit"] == "" else Unit(facts["unit"])
    return protect(
        places, unit=unit, name=name, budget=Budget(**facts["budget"]), ledger=ledger, public=public, **rest
    )
