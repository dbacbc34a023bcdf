"""The config file ``tacit.toml``: declared facts of tables, for Python, the command and the service."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.accounting import Budget
from tacit.core import Unit
from tacit.engines import READING_FACTS, csv_file, is_remote
from tacit.errors import TacitError
from tacit.fixes import Declare, Fix
from tacit.ledger import Blocks
from tacit.tables._protect import protect

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from tacit.ledger import Ledger
    from tacit.tables._dataset import TableDataset

_KNOWN = {
    "source", "unit", "version", "bounds", "keys", "types", "never_null", "limits", "public",
    "adjacency", "budget", "parent", "record", "blocks", "block", "engine", "minimum_people", *READING_FACTS,
}  # fmt: skip
_WRITTEN_AS = frozenset(READING_FACTS)  # how CSV files are written
_BUDGET = Budget(epsilon=3, delta=1e-6)  # only an example in messages


@dataclass(frozen=True, slots=True)
class Config:
    """The contents of a ``tacit.toml``. Reading it opens neither a ledger nor data.

    Parameters
    ----------
    folder
        The folder that relative paths start from.
    ledger
        Where the ledger is: a path or an address. None keeps the ledger in memory.
    datasets
        The declared facts of each dataset, by its name.
    """

    folder: Path
    ledger: str | None
    datasets: Mapping[str, Any]

    def files(self, name: str) -> list[Path | str]:
        """Return the files that a dataset is declared to be in, whether or not they exist.

        An address in object storage is returned as text. A database server has tables, not files.
        """
        facts = self.datasets[name]
        if _on_server(facts):
            return []
        source = facts["source"]
        paths = list(source.values()) if isinstance(source, dict) else [source]
        shared = [p["source"] for p in facts.get("public", {}).values()]
        files = [place["path"] if isinstance(place, dict) else place for place in (*paths, *shared)]
        return [_located(self.folder, str(place)) for place in files]

    def tables(self, name: str) -> list[str]:
        """Return the names of the tables of a dataset, protected and public."""
        facts = self.datasets[name]
        source = facts["source"]
        return [*(source if isinstance(source, dict) else [name]), *facts.get("public", {})]

    def on_engine(self, name: str, engine: str) -> Config:
        """Return the config with a dataset on another engine than the declared one."""
        facts = {**self.datasets[name], "engine": engine}
        _check(name, facts)
        return replace(self, datasets={**self.datasets, name: facts})

    def dataset(self, name: str, *, ledger: Ledger | None = None) -> TableDataset:
        """Open one dataset, with the given ledger in place of the declared one."""
        return _dataset(name, self.datasets[name], self.folder, self.ledger if ledger is None else ledger)


def read_config(text: str, folder: str | os.PathLike[str] = ".", *, name: str = "tacit.toml") -> Config:
    r"""Read the text of a ``tacit.toml`` without opening anything.

    Examples
    --------
    >>> config = read_config('[datasets.visits]\nsource = "v.csv"\nunit = "pid"\nbudget = {epsilon = 1}')
    >>> config.files("visits")[0].name
    'v.csv'
    """
    try:
        declared = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong_declaration(
            f"{name} cannot be read as TOML: {error}",
            fix="correct that line; tacit init writes a valid file to compare with",
        ) from None
    unknown = set(declared) - {"ledger", "datasets"}
    if unknown or not isinstance(declared.get("datasets"), dict):
        raise _wrong_declaration(
            f"{name} must contain at least one [datasets.NAME], and nothing else except a ledger; "
            f"it contains: {', '.join(sorted(declared)) or 'nothing'}",
            fix="declare each dataset in its own section, such as [datasets.visits]",
        )
    ledger_path = declared.get("ledger")
    base = Path(folder)
    ledger = (
        None
        if ledger_path is None
        else str(ledger_path)
        if "://" in str(ledger_path)
        else str(base / str(ledger_path))
    )
    for each, facts in declared["datasets"].items():
        _check(each, facts)
    return Config(base, ledger, declared["datasets"])


def open_config(path: str | os.PathLike[str] = "tacit.toml") -> Config:
    """Read a ``tacit.toml`` from a file without opening what it declares."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        here = " in this folder" if file.parent == Path() else ""
        raise _no_config(f"there is no file {file}{here}") from None
    except (OSError, ValueError) as error:
        raise _no_config(
            f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}",
        ) from None
    return read_config(text, file.parent, name=file.name)


def _no_config(reason: str) -> TacitError:
    return _wrong_declaration(
        reason,
        why="this file declares who is protected, what is public and the budget",
        fix="tacit init visits.csv --unit patient_id",
    )


def load_config(path: str | os.PathLike[str] = "tacit.toml") -> dict[str, TableDataset]:
    r"""Open the datasets that a ``tacit.toml`` declares; paths in it are relative to the file.

    The file has one optional ``ledger = "..."`` and a table ``[datasets.NAME]`` for each dataset with the
    arguments of `protect`: ``source``, ``unit`` (a column, or empty text for single rows), ``budget =
    {epsilon = 1, delta = 1e-6}``, ``bounds``, ``keys``, ``types``, ``limits``, ``public``, ``parent``,
    ``record``, ``minimum_people``, ``blocks`` (what the data is divided by) and ``block`` (which part of it
    this is). Also
    ``encoding``, ``decimal``, ``separator`` and ``quote`` say how its CSV files are written. With
    ``engine = "postgresql://..."`` a source is the name of a table on that server.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> text = '[datasets.visits]\nsource = "v.csv"\nunit = "pid"\nbudget = {epsilon = 1}'
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "tacit.toml"
    >>> _ = file.write_text(text)
    >>> load_config(file)["visits"]
    dataset visits, protects each pid; left: epsilon 1 of 1
    tables: visits (its source is not available here)
    ask: .agg(n=tc.count()), .group_by(...).agg(...) or .sql(...); .columns lists the columns
    budget: kept in memory: forgotten when Python ends
    """
    config = open_config(path)
    return {name: config.dataset(name) for name in config.datasets}


def _check(name: str, facts: Any) -> None:
    if not isinstance(facts, dict) or set(facts) - _KNOWN or not {"source", "unit"} <= set(facts):
        raise _wrong_facts(name, facts)
    budget = facts.get("budget", {})
    if not budget:
        raise _wrong_declaration(
            f"the dataset {name!r} has no budget",
            why="there is no default epsilon: the curator decides how much may be learned in total",
            fix=Declare("budget", _BUDGET, column=name),
        )
    if not isinstance(budget, dict) or set(budget) - {"epsilon", "delta", "rho"}:
        raise _wrong_declaration(
            f"the budget of {name!r} must be a table of epsilon, delta and rho, got {budget!r}",
            fix=Declare("budget", _BUDGET, column=name),
        )
    _check_source(name, facts["source"])
    _check_engine(name, facts)
    public = facts.get("public", {})
    if not isinstance(public, dict) or any(
        not isinstance(p, dict) or set(p) - _WRITTEN_AS != {"source", "key"} for p in public.values()
    ):
        raise _wrong_declaration(
            f"each public table of {name!r} must have a source and a key, got {public!r}",
            fix=f'under [datasets.{name}.public]: codes = {{source = "codes.csv", key = "code"}}',
        )


def _check_source(name: str, source: Any) -> None:
    """Check that each table has a path, and beside it only how its file is written."""
    places = source.values() if isinstance(source, dict) else [source]
    if not all(
        isinstance(place, str)
        or (isinstance(place, dict) and "path" in place and not set(place) - _WRITTEN_AS - {"path"})
        for place in places
    ):
        raise _wrong_declaration(
            f"the source of {name!r} must be a path, or a path for each table, got {source!r}",
            fix=f'under [datasets.{name}.source]: visits = {{path = "visits.csv", decimal = ","}}',
        )


def _check_engine(name: str, facts: Any) -> None:
    """Check that an engine is DuckDB or a server, and that nothing about files is declared for a server."""
    engine = facts.get("engine", "duckdb")
    if engine != "duckdb" and not _on_server(facts):
        raise _wrong_declaration(
            f"the engine of {name!r} must be 'duckdb' or the address of a PostgreSQL server",
            why="from a file or a command Tacit opens these two; a Spark session is passed to tc.protect",
            fix=f'under [datasets.{name}]: engine = "postgresql://localhost/hospital"',
        )
    source = facts["source"]
    reading_facts = _WRITTEN_AS & set(facts)
    if _on_server(facts) and (
        reading_facts
        or any(isinstance(place, dict) for place in (source.values() if isinstance(source, dict) else ()))
    ):
        raise _wrong_declaration(
            f"{name!r} is on a server, but its declaration says how a file is written"
            + (f": {', '.join(sorted(reading_facts))}" if reading_facts else ""),
            why="a server's tables have types",
            fix="remove what says how files are written; write the names of tables",
        )


def _wrong_declaration(problem: str, *, fix: Fix | str, why: str = "") -> TacitError:
    """Refuse a file, or a declaration in it."""
    return TacitError("bad-parameter", problem, why=why, fix=fix)


def _on_server(facts: Any) -> bool:
    """Return whether a dataset's tables are on a database server."""
    return str(facts.get("engine", "")).startswith(("postgresql://", "postgres://"))


def _located(folder: Path, path: str) -> Path | str:
    """Return where a file is: a path from the config's folder, or an address in object storage."""
    return path if is_remote(path) else folder / path


def _wrong_facts(name: str, facts: Any) -> TacitError:
    """Say which facts of a dataset are unknown or missing."""
    if not isinstance(facts, dict):
        problem = f"[datasets.{name}] must be a table, got {facts!r}"
    elif unknown := sorted(set(facts) - _KNOWN):
        problem = f"[datasets.{name}] has unknown facts: {', '.join(unknown)}"
    else:
        problem = f"[datasets.{name}] lacks {' and '.join(sorted({'source', 'unit'} - set(facts)))}"
    return _wrong_declaration(
        problem,
        why="every dataset declares source, unit and budget",
        fix=f"declare only these facts: {', '.join(sorted(_KNOWN))}",
    )


def _dataset(name: str, facts: Any, folder: Path, ledger: str | Ledger | None) -> TableDataset:
    read_elsewhere = {"source", "unit", "budget", "public", "blocks", *_WRITTEN_AS}
    rest = {k: v for k, v in facts.items() if k not in read_elsewhere}
    source = facts["source"]
    places: Any = (
        {t: _place(folder, s, facts) for t, s in source.items()}
        if isinstance(source, dict)
        else _place(folder, source, facts)
    )
    public = {
        t: (_place(folder, {**p, "path": p["source"]}, facts), p["key"])
        for t, p in facts.get("public", {}).items()
    }
    unit = _unit(facts["unit"])
    return protect(
        places,
        unit=unit,
        name=name,
        budget=_budget(name, facts["budget"]),
        ledger=ledger,
        public=public,
        blocks=_blocks(name, facts.get("blocks")),
        **rest,
    )


def _place(folder: Path, source: Any, facts: Any) -> object:
    """Read where a table is: a path, and for a CSV file how it is written (else as the dataset says)."""
    place = source if isinstance(source, dict) else {"path": source}
    if _on_server(facts):
        return str(place["path"])
    path = _located(folder, str(place["path"]))
    if isinstance(path, str):
        return path
    how = {k: v for k in _WRITTEN_AS if (v := place.get(k, facts.get(k))) is not None}
    is_csv = path.suffix.lower() in {".csv", ".tsv"}
    return csv_file(path, **how) if is_csv or set(place) & _WRITTEN_AS else path


def _budget(name: str, parts: Any) -> Budget:
    """Read a declared budget; a refusal of its numbers points at the declaration."""
    try:
        return Budget(**parts)
    except TacitError as error:
        fix = Declare("budget", _BUDGET, column=name)
        raise error.but(fix=fix) from None


def _blocks(name: str, blocks: Any) -> Blocks | None:
    """Read a partition: what the data is divided by, or ``{by = "day", per_unit = 1}``."""
    if blocks is None:
        return None
    parts = {"by": blocks} if isinstance(blocks, str) else blocks
    if not isinstance(parts, dict) or not {"by"} <= set(parts) <= {"by", "per_unit"}:
        raise _wrong_declaration(
            f"the blocks of {name!r} must name what the data is divided by, got {blocks!r}",
            fix=f'under [datasets.{name}]: blocks = "day"',
        )
    return Blocks(**parts)


def _unit(unit: Any) -> Unit:
    """Read a unit: a column, an empty text for single rows, or ``{column = "patient_id", per = "day"}``."""
    if unit == "":
        return Unit.row()
    if isinstance(unit, dict) and set(unit) == {"column", "per"}:
        return Unit(unit["column"], per=unit["per"])
    return Unit(unit)
