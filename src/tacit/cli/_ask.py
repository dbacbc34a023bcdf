"""The ``tacit ask`` command: every kind of dataset that a service can open, those of other packages too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tacit.cli._app import app
from tacit.cli._fact_options import budget_parts, read_limit_option
from tacit.cli._field_command import Given, Terms, asks, declared_kind
from tacit.cli._output_files import OutputFiles
from tacit.cli._shared_options import with_options
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Say

if TYPE_CHECKING:
    from tacit.accounting import Budget
    from tacit.core import Dataset, DatasetKind
    from tacit.ledger import Ledger


class _Kinds(TyperGroup):
    """The commands of all kinds, each made of the declarations of its field when it is used.

    Kinds whose columns have bounds and keys are left out: they are declared in a file or a folder, which the
    other commands read.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the kinds that can be asked, also those of other packages."""
        from tacit.core import dataset_kinds

        del ctx
        return [name for name in dataset_kinds() if _kind(name) is not None]

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        """Return the command of a kind; None if it cannot be asked here."""
        del ctx
        if (kind := _kind(cmd_name)) is None:
            return None
        alone = typer.Typer(add_completion=False)
        summary = f"Ask {kind.label}; the same question again is free."
        alone.command(cmd_name, cls=asks(cmd_name, declared=True), help=summary)(with_options(_ask))
        made: TyperCommand = typer.main.get_command(alone)  # type: ignore[assignment]
        return made


def _kind(name: str) -> DatasetKind | None:
    """Return a kind that can be declared by its facts alone; None for every other one."""
    from tacit.core import registered

    kind: DatasetKind | None = registered(f"dataset.{name}")
    return None if kind is None or kind.declare is None or kind.has_columns else kind


app.add_typer(
    typer.Typer(
        name="ask",
        cls=_Kinds,
        help="Ask any kind of data that a package declares; --help after the kind shows its options.",
        no_args_is_help=True,
    )
)


def _ask(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="The file with the data.")],
    ask: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    terms: Terms, files: OutputFiles, given: Given,
    *, unit: Annotated[str, typer.Option(help="Who is protected, as the kind names it.")] = "row",
    version: Annotated[int, typer.Option(help="The version of the data.")] = 1,
    limit: Annotated[
        list[str] | None, typer.Option("--limit", help="rows=5: how much of one unit counts; repeatable.")
    ] = None,
) -> None:  # fmt: skip
    files.check(".json")
    called = terms.begin(source)
    if files.plot is not None:
        raise bad_parameter(
            "--plot", "omitted", files.plot, fix=Say("write --out answer.json, and draw that")
        )
    if not source.exists():
        raise TacitError("unknown-table", f"there is no file {source}", fix=Say("check its name and folder"))
    kind, facts = declared_kind(given.command.kind), given.facts()
    policy = {"unit": unit, "version": version, "limits": dict(map(read_limit_option, limit or ()))}

    def declared(*, ledger: Ledger, budget: Budget) -> Dataset:
        declare: Any = kind.declare
        priced = {**policy, "budget": budget_parts(budget)}
        made: Dataset = declare(source, name=called, policy=priced, facts=facts, ledger=ledger)
        return made

    terms.answer(
        called, declared, given.question(ask), files, lambda release: {"release": release.content.to_json()}
    )
