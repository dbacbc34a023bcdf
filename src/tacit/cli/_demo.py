"""The ``tacit demo`` command: the main job, end to end, on synthetic people; each step can be repeated.

The last part is an attacker who tries three kinds of release.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tacit.cli._app import app
from tacit.errors import TacitError
from tacit.progress import is_terminal
from tacit.report import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.audit import lab


_WIDTH = 78
_EPSILON = 0.5
_SQL = """SELECT hospital, COUNT(*) AS n, AVG(length_of_stay) AS stay
    FROM visits GROUP BY hospital ORDER BY stay DESC LIMIT 3"""

#: Shown, left in the folder, and run as it is.
_QUESTION = """\
import tacit as tc
from tacit.tables import load_config

visits = load_config("tacit.toml")["visits"]
question = visits.group_by("hospital").agg(
    n=tc.count(), stay=tc.mean("length_of_stay")
)
plan = question.plan(epsilon=0.5, size=1000)  # touches no data
print(plan)

release = plan.release(purpose="demo")  # charges first, then reads
print(release)
release.to_csv("stay.csv")
release.certificate.save("stay.json")
"""
_PICTURE = 'release.plot("stay").figure.savefig("stay.png", dpi=150)\n'


@app.command()
def demo(
    folder: Annotated[
        Path, typer.Option("--folder", help="Where to leave the results; if it exists, a number is added.")
    ] = Path("tacit-demo"),
) -> None:
    """Declare, plan, release, verify, attack: the main job on synthetic visits, in under a minute."""
    target = _new_folder(folder)
    _set_apart()
    show = Console(highlight=False, width=min(_WIDTH, Console().width))
    _copy(target / "visits.csv")
    _say(
        show,
        "Tacit, end to end",
        "12,700 hospital visits of 6,000 patients who do not exist, so nobody is at risk. "
        "At most 5 visits of each patient count (the limit below), so the counts add up to about 10,100. "
        "You can type every line after $ yourself (tacit init then needs --force, because its file exists):",
    )
    show.print(Text("$ source .venv/bin/activate  # after make demo, once in each terminal", style="cyan"))
    show.print(Text(f"$ cd {target}", style="cyan"))
    with contextlib.chdir(target):
        _say(show, "1  Declare", "The curator declares who is protected and what is public. No data is read.")
        _run(show, *_init())
        _say(show, "2  Plan and release", "In Python. The plan comes first and shows what you will get.")
        _run_script(show, _QUESTION + (_PICTURE if find_spec("matplotlib") else ""))
        _say(show, "3  The budget", "A ledger records what is spent; a new session does not reset it.")
        _run(show, ["budget", "tacit.ledger"])
        _say(
            show,
            "4  The certificate",
            "It names the unit, the noise, the cost and the ledger entry that paid.",
        )
        _run(show, ["verify", "stay.json"])
        _say(
            show, "5  The same question in SQL", "The same plan gives the stored answer; sorting is free too."
        )
        _run(show, ["query", _SQL, "--epsilon", "0.5"])
        _say(
            show,
            "6  What would an attacker have learned?",
            "Now 5,000 other people who do not exist. The attacker knows their age, sex, postcode and "
            f"schooling, and wants to know who has a certain condition. Tacit answers at epsilon {_EPSILON}.",
        )
        compare(show, _EPSILON)
    show.print(Text("$ tacit lab     all attacks", style="cyan"))
    files = ", ".join(sorted(file.name for file in target.iterdir() if not file.name.startswith("tacit.")))
    _say(
        show,
        "Yours to keep",
        f"{target}: {files}, tacit.toml and the ledger. "
        "Next: your own CSV in five minutes, docs/tutorial/five_minutes.md. "
        "If your terminal does not find tacit: source .venv/bin/activate, in the project's folder.",
    )


def _new_folder(folder: Path) -> Path:
    """Make the folder, with a number if it exists, so that nobody's results are overwritten."""
    for number in range(1, 1000):
        candidate = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
        try:
            candidate.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as problem:
            raise TacitError(
                "cannot-write",
                f"the folder {candidate} could not be made: {problem.strerror}",
                fix="--folder /tmp/tacit-demo",
            ) from None
        return candidate
    raise TacitError("cannot-write", f"{folder} and 998 more folders exist already", fix="--folder another")


def _set_apart() -> None:
    """Ignore the user's own config, ledger and key, and fit the output into 80 columns."""
    for name in ("TACIT_CONFIG", "TACIT_LEDGER", "TACIT_LEDGER_KEY_FILE"):
        os.environ.pop(name, None)
    if not is_terminal(sys.stdout) or Console().width > _WIDTH:
        os.environ["COLUMNS"] = str(_WIDTH)


def _copy(file: Path) -> None:
    """Write the bundled visits as CSV, the form in which most people have their data."""
    import duckdb

    from tacit.tables import example_visits

    source, target = (str(path).replace("'", "''") for path in (example_visits(), file))
    with duckdb.connect() as con:
        con.execute(f"COPY (FROM read_parquet('{source}')) TO '{target}' (HEADER)")


def _init() -> tuple[list[str], ...]:
    from tacit.tables import EXAMPLE_HOSPITALS

    return (
        ["init", "visits.csv", "--unit", "patient_id", "--epsilon", "3", "--delta", "1e-6"],
        ["--bounds", "length_of_stay=0:30", "--limit", "rows=5"],
        ["--keys", f"hospital={','.join(EXAMPLE_HOSPITALS)}"],
    )


def _say(show: Console, title: str, text: str) -> None:
    show.print(Text(f"\n{title}", style="bold"))
    show.print(Text(text))


def _run_script(show: Console, script: str) -> None:
    """Leave a script in the folder, show it and run it with this Python."""
    Path("question.py").write_text(script, encoding="utf-8")
    show.print(Text("$ python question.py", style="cyan"))
    for line in script.splitlines():
        show.print(Text(f"  | {line}", style="dim"))
    sys.stdout.flush()
    done = subprocess.run([sys.executable, "question.py"], check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)


def _run(show: Console, *lines: Sequence[str]) -> None:
    """Show a command as it would be typed, then run it in this process."""
    words = " \\\n    ".join(" ".join(_quoted(word) for word in line) for line in lines)
    show.print(Text(f"$ tacit {words}", style="cyan"), soft_wrap=True)
    arguments = [word for line in lines for word in line]
    status = typer.main.get_command(app).main(args=arguments, prog_name="tacit", standalone_mode=False)
    if status:
        raise typer.Exit(int(status))


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word


def compare(show: Console, epsilon: float) -> None:
    """Attack exact counts, a k-anonymous table and Tacit, and show the three side by side."""
    from tacit.audit import lab

    exact = lab.differencing_attack(epsilons=[epsilon])
    table = lab.homogeneity_attack(epsilons=[epsilon])
    person, everyone, without, has = exact.example
    verdict = "has the condition" if has else "does not have it"
    show.print(
        Text(
            f"\nExact answers: {everyone:,} people have the condition. Without people with {person}, "
            f"the count is {without:,}. Only one person fits that description, and {verdict}."
        )
    )
    if table.example is not None:
        where, size, all_have = table.example
        shared = "have it" if all_have else "do not have it"
        show.print(
            Text(
                f"A {table.k}-anonymous table: nobody is alone in it, but all {size} people with {where} "
                f"{shared}. Anyone who knows that you are one of them knows it about you."
            )
        )
    show.print(
        Text(
            "Tacit: the same counts with noise. Advantage 0 is blind guessing, 1 is certainty. The bound "
            "holds for every attacker, whatever else they know. Measured, with 99.9 % intervals:\n"
        )
    )
    show.print(_side_by_side(exact, table, epsilon))


def _side_by_side(exact: lab.DifferencingAttack, table: lab.HomogeneityAttack, epsilon: float) -> Table:
    grid = Table(box=None, header_style="dim", pad_edge=False)
    for title in ("release", "certain about", "advantage", "bound"):
        grid.add_column(title, justify="left" if title == "release" else "right")
    grid.add_row("two exact counts", f"{percent(exact.exposed)} of people", "1.00", "none")
    grid.add_row(f"{table.k}-anonymous table", f"{percent(table.sure)} of people", "1.00", "none")
    for name, attack in (("two counts", exact), ("one count", table)):
        point = attack.points[-1]
        grid.add_row(
            f"Tacit, {name}, epsilon {epsilon:g}",
            "nobody",
            f"{point.low:.2f} to {point.high:.2f}",
            f"{point.bound:.2f}",
        )
    return grid
