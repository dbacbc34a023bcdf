"""What ``tacit plan`` and ``tacit query`` share: the config, the dataset, the question, the price."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.declarations import read_keys_of_a_question
from tacit.cli.refusals import now_asking
from tacit.errors import TacitError, bad_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.core import Plan
    from tacit.tables import Config, Dataset

__all__ = [
    "Confidence",
    "ConfigFile",
    "DatasetName",
    "Delta",
    "Epsilon",
    "Keys",
    "Price",
    "Rho",
    "Size",
    "Sql",
    "Within",
    "declarations",
    "durable",
    "in_memory",
    "public_keys",
    "sources_there",
]

Sql = Annotated[str, typer.Argument(metavar="SQL", help="One SELECT with aggregates, in quotes.")]
ConfigFile = Annotated[
    Path, typer.Option("--config", "-c", envvar="TACIT_CONFIG", help="The curator's declarations.")
]
DatasetName = Annotated[
    str | None, typer.Option("--dataset", help="Which dataset, where the config declares several.")
]
Epsilon = Annotated[float | None, typer.Option("--epsilon", "-e", help="What the answer may cost.")]
Delta = Annotated[float, typer.Option("--delta", help="Allows private selection of groups.")]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--keys", help="COLUMN=A,B,C: groups that everybody knows, for this question; may be repeated."
    ),
]
Rho = Annotated[float | None, typer.Option("--rho", help="Instead of epsilon: the cost in zCDP.")]
Within = Annotated[
    float | None, typer.Option("--within", help="Instead of epsilon: the error that is good enough.")
]
Confidence = Annotated[float, typer.Option("--confidence", help="How often the intervals hold.")]
Size = Annotated[
    int | None, typer.Option("--size", help="A public guess of the rows per group, for planning only.")
]


@dataclass(frozen=True, slots=True)
class Price:
    """What the user is ready to pay, or the error that is wanted."""

    epsilon: float | None
    delta: float
    rho: float | None
    within: float | None
    confidence: float
    size: int | None

    def plan(self, dataset: Dataset, sql: str, keys: Mapping[str, list[object]] | None = None) -> Plan:
        """Price a question."""
        return dataset.sql(sql, keys=keys).plan(
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            within=self.within,
            confidence=self.confidence,
            size=self.size,
        )


def declarations(file: Path, dataset: str | None, sql: str) -> tuple[Config, str]:
    """Read the config and pick the dataset: the one that was asked for, or the only one."""
    from tacit.tables import open_config

    now_asking(file, None, dataset or "", sql)
    config = open_config(file)
    name = _pick(config, dataset)
    now_asking(file, config, name, sql)
    return config, name


def public_keys(config: Config, name: str, given: list[str] | None) -> dict[str, list[object]] | None:
    """Read the keys that a question brings, beside those of the config; None where it brings none."""
    if not given:
        return None
    facts = config.datasets[name]
    types = {column: str(kind) for column, kind in facts.get("types", {}).items()}
    return {**facts.get("keys", {}), **dict(read_keys_of_a_question(text, types) for text in given)}


def _pick(config: Config, name: str | None) -> str:
    known = list(config.datasets)
    if name is None and len(known) == 1:
        return known[0]
    if name not in known:
        raise bad_parameter(
            "--dataset", f"one of {', '.join(known) or '(the config declares none)'}", name,
            fix=f"--dataset {known[0]}" if known else "[datasets.visits]",
        )  # fmt: skip
    return name


def sources_there(config: Config, name: str) -> None:
    """Refuse before anything is charged if a declared file is missing."""
    for file in config.files(name):
        if not file.exists():
            raise TacitError(
                "bad-parameter",
                f"{file} is not there",
                why=f"the config declares it as the source of {name}; nothing was charged",
                fix=f'source = "where/{file.name}"',
            )


def in_memory(config: Config, name: str) -> Dataset:
    """Open a dataset for planning: no ledger is touched or made."""
    from tacit.ledger import Ledger

    return config.dataset(name, ledger=Ledger.memory())


def durable(config: Config, name: str) -> Dataset:
    """Open a dataset with the ledger that the config names."""
    if config.ledger is None:
        raise TacitError(
            "bad-parameter",
            "the config names no ledger",
            why="without one the budget would start anew with every command",
            fix='ledger = "tacit.ledger"',
        )
    return config.dataset(name)
