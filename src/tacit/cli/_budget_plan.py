"""The ``tacit budget-plan`` command: a year's reports against a budget, without touching data or ledger."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import _question as question
from tacit.cli._app import app
from tacit.cli._output import JsonOption, PlotOption, printable, say, show_json, write_figures
from tacit.cli._shared_options import with_options
from tacit.errors import TacitError
from tacit.fixes import Choose

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.accounting import Budget
    from tacit.core import BudgetSchedule
    from tacit.tables import TableDataset

_OF_A_FILE = ("budget", "report")
_OF_SQL = ("sql", "keys", "limits")
_EXAMPLE = '[[report]]\nname = "stays"\nsql = "SELECT COUNT(*) AS n FROM visits"\nwithin = 20\ntimes = 12'
ReportsArgument = Annotated[
    Path, typer.Argument(metavar="REPORTS", help="A TOML file with a [[report]] for each report.")
]


@app.command("budget-plan")
@with_options
def budget_plan(
    reports: ReportsArgument,
    place: question.Declarations,
    *,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show which of a year's reports the budget pays for, and what the others would need.

    Touches neither data nor ledger. Exits with status 1 if not everything fits.
    """
    from tacit.ledger import Ledger

    given = _read_file(reports)
    listed = given.get("report", [])
    if not isinstance(listed, list) or not listed or not all(isinstance(one, dict) for one in listed):
        raise _unreadable(reports, "it has no [[report]]")
    first = str(listed[0].get("sql", ""))
    declared, name = place.read(first)
    with Ledger.memory() as ledger:
        opened = question.alone(declared, name).dataset(name, ledger=ledger)
        made = _schedule([_asked(one, opened, reports) for one in listed], given.get("budget"), opened)
        if plot is not None:
            write_figures(plot, made)
        _show(made, as_json=as_json)
    if not made.fits:
        raise typer.Exit(1)


def _show(made: BudgetSchedule, *, as_json: bool) -> None:
    if as_json:
        show_json({"fits": made.fits, "reports": made.records(), "advice": list(made.advice)})
    else:
        say(printable_lines(made.report().text()))


def printable_lines(text: str) -> str:
    """Show what others wrote line by line, without letting it move the cursor."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _schedule(asked: list[dict[str, Any]], budget: object, opened: TableDataset) -> BudgetSchedule:
    from tacit.core import budget_plan as planned

    return planned(asked, opened.budget if budget is None else _budget(budget))


def _budget(given: object) -> Budget:
    from tacit.accounting import Budget

    if not isinstance(given, dict) or not set(given) <= {"epsilon", "delta", "rho"}:
        raise TacitError(
            "bad-parameter",
            "the budget of the reports has other parts than epsilon, delta and rho",
            fix="budget = {epsilon = 3, delta = 1e-6}",
        )
    return Budget(given.get("epsilon"), given.get("delta", 0), rho=given.get("rho"))


def _asked(given: Mapping[str, Any], opened: TableDataset, file: Path) -> dict[str, Any]:
    """Return a report of the file with its SQL as a question."""
    if not isinstance(given.get("sql"), str):
        raise _unreadable(file, f"the report {printable(str(given.get('name', '')))!r} has no sql")
    asked = opened.sql(given["sql"], keys=given.get("keys"), limits=given.get("limits"))
    if "question" in given:
        raise _unreadable(file, "a report in a file has sql, not a question")
    return {**{name: value for name, value in given.items() if name not in _OF_SQL}, "question": asked}


def _read_file(path: Path) -> dict[str, Any]:
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise _unreadable(path, "the file does not exist or cannot be opened") from None
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, str(error)) from None
    for name in given:
        if name not in _OF_A_FILE:
            raise TacitError(
                "bad-parameter",
                f"{path.name} has a part {name!r} that Tacit does not know",
                fix=Choose(_OF_A_FILE, given=name),
            )
    return given


def _unreadable(path: Path, why: str) -> TacitError:
    return TacitError(
        "bad-parameter", f"{path.name} cannot be read as a list of reports", why=why, fix=_EXAMPLE
    )
