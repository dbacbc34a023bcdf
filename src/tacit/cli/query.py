"""``tacit query``: release an answer, show it with its error, keep it where asked."""

from __future__ import annotations

import contextlib
import os
import signal
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli import asking
from tacit.cli.app import app
from tacit.cli.output import JsonFlag, PlotFile, say, show_json, write_file
from tacit.errors import TacitError, bad_parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.core import Release
    from tacit.ledger import Ledger

__all__ = ["query"]

_TABLES = (".csv", ".parquet")
_PICTURES = (".png", ".svg", ".pdf")
_MOST_PANELS = 6


@app.command()
def query(
    sql: asking.Sql,
    epsilon: asking.Epsilon = None,
    delta: asking.Delta = 0,
    rho: asking.Rho = None,
    within: asking.Within = None,
    confidence: asking.Confidence = 0.95,
    size: asking.Size = None,
    keys: asking.Keys = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the answer to this file (.csv, .parquet).")
    ] = None,
    plot: PlotFile = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="Write the certificate to this file (.json).")
    ] = None,
    who: Annotated[str, typer.Option("--who", help="Who asks; recorded in the ledger.")] = "",
    purpose: Annotated[str, typer.Option("--purpose", help="What for; recorded in the ledger.")] = "",
    account: Annotated[
        str | None, typer.Option("--account", "-a", help="An account below the dataset's that pays too.")
    ] = None,
    config: asking.ConfigFile = Path("tacit.toml"),
    dataset: asking.DatasetName = None,
    *,
    as_json: JsonFlag = False,
) -> None:
    """Charge the budget, answer with noise, show value, low and high. The same question again is free."""
    _can_write(out, plot, certificate)
    declared, name = asking.declarations(config, dataset, sql)
    asking.sources_there(declared, name)
    price = asking.Price(epsilon, delta, rho, within, confidence, size)
    public = asking.public_keys(declared, name, keys)
    price.plan(
        asking.in_memory(declared, name), sql, public
    )  # what is refused is refused before a ledger is made
    opened = asking.durable(declared, name)
    with opened.ledger, _interruptible():
        before = opened.ledger.head.count
        release = price.plan(opened, sql, public).release(who=who, purpose=purpose, account=account)
        left = opened.remaining
        entry = _entry(release)
        fresh = entry > before
        paid = f"charged as entry {entry}" if fresh else _stored(release, opened.ledger, config)
    _keep(release, out, plot, certificate)  # before anything is printed: a terminal may fail, a charge stays
    if as_json:
        show_json(
            {
                "rows": list(release),
                "confidence": release.confidence,
                "marks": list(release.marks),
                "notes": dict(release.notes),
                "left_out": list(release.left_out),
                "fresh": fresh,
                "left": {name: _exact(getattr(left, name)) for name in ("epsilon", "delta", "rho")},
                "certificate": dict(release.certificate.fields),
            }
        )
    else:
        say(repr(release), f"{paid}; left: {left}")
        if fresh and not who:
            say("no --who given: recorded as unknown (tacit budget history shows who asked what)")
        for path in (out, plot, certificate):
            if path is not None:
                say(f"written: {path}")


def _exact(value: object) -> str | None:
    return None if value is None else str(value)


def _entry(release: Release) -> int:
    written = release.certificate.fields["ledger"]
    return int(written["entry"]) if isinstance(written, dict) else 0


def _stored(release: Release, ledger: Ledger, config: Path) -> str:
    """Say of which day and version of the data a stored answer is, and how new data is declared."""
    told = release.certificate.fields["dataset"]
    name, version = (str(told["name"]), int(told["version"])) if isinstance(told, dict) else ("", 0)
    kept = ledger.stored_release(name, release.certificate.plan, version=version)
    day = "" if kept is None else f"{kept.receipt.at[:10]}, "
    return (
        f"stored answer of entry {_entry(release)} ({day}version {version}): free "
        f"(new data? version = {version + 1} in {config})"
    )


def _can_write(out: Path | None, plot: Path | None, certificate: Path | None) -> None:
    """Refuse what cannot be written before anything is charged."""
    for option, path, ends in (
        ("--out", out, _TABLES),
        ("--plot", plot, _PICTURES),
        ("--certificate", certificate, (".json",)),
    ):
        if path is None:
            continue
        if path.suffix.lower() not in ends:
            raise bad_parameter(
                option, f"a file that ends in {', '.join(ends)}", str(path), fix=f"{option} answer{ends[0]}"
            )
        folder = path.parent
        if not folder.is_dir() or not os.access(folder, os.W_OK) or path.is_dir():
            raise TacitError(
                "cannot-write",
                f"{path} cannot be written",
                why="its folder is missing or read-only; nothing was charged",
                fix=f"{option} ./{path.name}",
            )
    needs = [("matplotlib", "plot", plot), ("pyarrow", "pandas", out)]
    for package, extra, path in needs:
        used = path is not None and path.suffix.lower() != ".csv"
        if used and find_spec(package) is None:
            raise TacitError(
                "missing-extra", f"{path} needs {package}", why="nothing was charged",
                fix=f"pip install 'tacit[{extra}]'",
            )  # fmt: skip


def _keep(release: Release, out: Path | None, plot: Path | None, certificate: Path | None) -> None:
    if out is not None:
        save = release.to_parquet if out.suffix.lower() == ".parquet" else release.to_csv
        write_file(out, save, "the answer", "--out")
    if plot is not None:
        write_file(plot, lambda path: _draw(release, path), "the picture")
    if certificate is not None:
        write_file(certificate, release.certificate.save, "the certificate", "--certificate")


def _draw(release: Release, path: Path) -> None:
    from matplotlib.figure import Figure

    from tacit.core import figure_width

    numbers = [
        name
        for name, cells in release.columns.items()
        if all(isinstance(value, int | float) for value in cells.value)
    ][:_MOST_PANELS]
    if not numbers:
        raise ValueError("the answer holds no numbers")
    figure = Figure(figsize=(figure_width(release), 3.6 * len(numbers)), layout="constrained")
    panels = figure.subplots(len(numbers), 1, squeeze=False)
    for name, (axes,) in zip(numbers, panels, strict=True):
        release.plot(name, ax=axes)
    figure.savefig(path, dpi=150)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Turn Ctrl-C into exit status 130, wherever it arrives, with a word on what stays.

    The ledger reports whatever fails after a charge as one opaque error; only the signal tells that it was
    Ctrl-C.
    """
    pressed = False

    def note(_number: int, _frame: object) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    try:
        previous = signal.signal(signal.SIGINT, note)
    except ValueError:  # not the main thread: whoever runs us there handles Ctrl-C
        yield
        return
    try:
        yield
    except (KeyboardInterrupt, TacitError) as stopped:
        if isinstance(stopped, TacitError) and not pressed:
            raise
        typer.echo(
            "interrupted: the ledger is intact; a charge that was made stays\n"
            "  see: tacit budget history LEDGER", err=True,
        )  # fmt: skip
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGINT, previous)
