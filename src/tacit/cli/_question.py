"""The question of ``tacit plan`` and ``tacit query``, as both commands read it: config, dataset, price."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli._context import note_dataset
from tacit.cli._fact_options import read_limit_option, read_question_keys
from tacit.cli._output import typed
from tacit.cli._shared_options import Total
from tacit.cli._sql import tables_in
from tacit.errors import TacitError
from tacit.fixes import Declare

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.accounting import Cost
    from tacit.core import AnswerTable, Plan
    from tacit.ledger import Ledger
    from tacit.tables import Config, TableDataset

SqlArgument = Annotated[str, typer.Argument(metavar="SQL", help="One SELECT with aggregates, in quotes.")]
KeysOption = Annotated[
    list[str] | None,
    typer.Option("--keys", help="COLUMN=A,B,C: public groups, for this question; may be repeated."),
]


@dataclass(frozen=True, kw_only=True)
class Price(Total):
    """What the user is ready to pay, or the error that is good enough; and what counts in this question."""

    within: Annotated[float | None, typer.Option(help="Instead of epsilon: the error that you accept.")] = (
        None
    )
    size: Annotated[
        int | None,
        typer.Option(help="A public guess of the number of rows in each group, for planning only."),
    ] = None
    keys: KeysOption = None
    limit: Annotated[
        list[str] | None,
        typer.Option(
            help="rows=3 or groups=2: how much of one unit counts in this question; may be repeated."
        ),
    ] = None

    def plan(
        self, dataset: TableDataset, sql: str, keys: Mapping[str, list[object]] | None
    ) -> Plan[AnswerTable]:
        """Plan a question at this price."""
        limits = dict(read_limit_option(text) for text in self.limit or ()) or None
        return dataset.sql(sql, keys=keys, limits=limits).plan(
            **self.goal, within=self.within, size=self.size
        )


@dataclass(frozen=True, kw_only=True)
class Declarations:
    """Which dataset of which file is asked."""

    config: Annotated[
        Path, typer.Option("--config", "-c", envvar="TACIT_CONFIG", help="The file with the declarations.")
    ] = Path("tacit.toml")
    dataset: Annotated[str | None, typer.Option(help="Which dataset, if FROM does not show it.")] = None
    engine: Annotated[
        str | None,
        typer.Option(
            envvar="TACIT_ENGINE",
            help="Where the tables are: duckdb, or postgresql://... (a table's name is then the source).",
        ),
    ] = None

    def read(self, sql: str = "") -> tuple[Config, str]:
        """Read the config and choose the dataset: the named one, the only one, or that of the tables.

        An engine that is given with the command takes the place of the declared one.
        """
        from tacit.tables import open_config

        file = self.config
        note_dataset(file, None, self.dataset or "", sql)
        config = open_config(file)
        name = _chosen(config, self.dataset or _with_tables(config, sql), file)
        note_dataset(file, config, name, sql)
        return config if self.engine is None else config.on_engine(name, self.engine), name


def _with_tables(config: Config, sql: str) -> str | None:
    """Return the only dataset that has all the tables of the question; None where it is not clear."""
    if len(config.datasets) == 1:
        return None
    asked = tables_in(sql)
    found = [name for name in config.datasets if asked and asked <= {t.lower() for t in config.tables(name)}]
    return found[0] if len(found) == 1 else None


def _chosen(config: Config, name: str | None, file: Path) -> str:
    known = list(config.datasets)
    if name is None and len(known) == 1:
        return known[0]
    if name in known:
        return str(name)
    if not known:
        what, fix = f"{file} declares no dataset", "tacit init visits.csv --unit patient_id"
    else:
        what = f"{file} declares several datasets" if name is None else f"{file} declares no dataset {name!r}"
        fix = f"--dataset {typed(known[0])}" + (f", or one of: {', '.join(known[1:])}" if known[1:] else "")
    raise TacitError("bad-parameter", what, why="the question is about one dataset (--dataset)", fix=fix)


def alone(config: Config, name: str) -> Config:
    """Return the config with this dataset apart from its parent, for planning without the real ledger."""
    facts = {fact: value for fact, value in config.datasets[name].items() if fact != "parent"}
    return replace(config, datasets={**config.datasets, name: facts})


def public_keys(config: Config, name: str, given: list[str] | None) -> dict[str, list[object]] | None:
    """Read the keys that come with a question, beside those of the config; None where none come with it."""
    if not given:
        return None
    facts = config.datasets[name]
    types = {column: str(kind) for column, kind in facts.get("types", {}).items()}
    return {**facts.get("keys", {}), **dict(read_question_keys(text, types) for text in given)}


def check_sources(config: Config, name: str) -> None:
    """Refuse a missing file before anything is charged."""
    from tacit.engines import place_source

    for file in config.files(name):
        source = place_source(file)
        if not source.is_there:
            raise TacitError(
                "bad-parameter",
                f"{source.shown if source.is_remote else file} does not exist"
                + (", or cannot be reached" if source.is_remote else ""),
                why=f"the config declares it as a source of {name}; nothing was charged",
                fix=Declare("source", f"path/of/{source.shown.rpartition('/')[2]}"),
            )


def more_like_it(ledger: Ledger, payer: str, cost: Cost) -> int:
    """Return how many questions of this cost the account and every account above it can still pay."""
    counts, level = [], ledger.account(payer)
    while True:
        counts.append(level.filter.how_many(cost))
        if level.parent is None:
            return min(counts)
        level = ledger.account(level.parent)


def declared_ledger(config: Config) -> str:
    """Return where the ledger of the config is, or refuse."""
    if config.ledger is None:
        raise TacitError(
            "bad-parameter",
            "the config names no ledger",
            why="without one, the budget would start again with every command",
            fix='as the first line of the config: ledger = "tacit.ledger"',
        )
    return config.ledger
