"""``tacit explain``: what an epsilon means, and which epsilon an answer needs."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.app import app
from tacit.cli.output import JsonFlag, PlotFile, say, show_json, write_file
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.accounting import Cost
    from tacit.core import Certificate
    from tacit.explain import Explanation, Tradeoff

__all__ = ["explain"]


@app.command()
def explain(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[CERTIFICATE]", help="A release's certificate: what its cost means."),
    ] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", "-e", help="The cost in epsilon.")] = None,
    delta: Annotated[
        float | None,
        typer.Option("--delta", help="With epsilon: its delta. With rho: where to read epsilon."),
    ] = None,
    rho: Annotated[float | None, typer.Option("--rho", help="The cost in rho (zCDP).")] = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="The same as CERTIFICATE.")
    ] = None,
    prior: Annotated[
        list[float] | None, typer.Option("--prior", help="An attacker's belief before; may be repeated.")
    ] = None,
    family: Annotated[
        list[int] | None, typer.Option("--family", help="A size of group; may be repeated.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", help="Say how often this epsilon budget pays for it.")
    ] = None,
    statistic: Annotated[str | None, typer.Option("--statistic", help="count, sum or mean.")] = None,
    n: Annotated[int | None, typer.Option("--n", help="How many people.")] = None,
    bounds: Annotated[
        tuple[float, float] | None, typer.Option("--bounds", help="Public range of a value: LOW HIGH.")
    ] = None,
    error: Annotated[
        float | None, typer.Option("--error", help="The wanted error: which epsilon does it need?")
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", help="How often the noise stays within the error.")
    ] = 0.95,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write an interactive page to this file.")
    ] = None,
    plot: PlotFile = None,
    *,
    as_json: JsonFlag = False,
) -> None:
    """Say what a cost means (CERTIFICATE, --epsilon, --rho), or which epsilon an error needs (--error)."""
    import tacit.explain as room
    from tacit.accounting import Budget

    if file is not None and certificate is not None:
        raise _two_questions()
    certificate = file or certificate
    if certificate is not None and not certificate.is_file():
        raise _no_file(certificate)
    result: Explanation | Tradeoff
    if error is not None:
        if any(given is not None for given in (epsilon, rho, delta, certificate, html)):
            raise _two_questions()
        result = room.tradeoff(statistic or "count", error=error, n=n, bounds=bounds, confidence=confidence)
    else:
        result = room.explain(
            _subject(epsilon, delta, rho, certificate),
            priors=prior or (0.01, 0.1, 0.5, 0.9),
            families=family or (1, 2, 5, 10),
            delta=1e-6 if delta is None else delta,
            question=None if statistic is None else room.Question(statistic, n, bounds),
            budget=None if budget is None else Budget(epsilon=budget),
        )
        if html is not None:
            write_file(html, result.save_html, "the page")
    if plot is not None:
        write_file(plot, result.plot().savefig, "the picture")
    if as_json:
        show_json(result)
        return
    say(result)
    if isinstance(result, room.Tradeoff):
        say("", result.chart())
    for path in (html, plot):
        if path is not None:
            say(f"\nwritten: {path}")


def _no_file(certificate: Path) -> TacitError:
    """Say that a certificate is not there; a number in its place was meant as an epsilon."""
    try:
        value = float(str(certificate).replace(",", "."))
    except ValueError:
        return TacitError(
            "bad-certificate",
            f"{certificate} is not there",
            fix='the file that tacit query "..." --certificate FILE.json wrote',
        )
    return TacitError(
        "bad-certificate",
        f"{certificate} is no certificate's file; did you mean --epsilon {value:g}?",
        why="without an option, tacit explain reads a release's certificate",
        fix=f"tacit explain --epsilon {value:g}",
    )


def _subject(
    epsilon: float | None, delta: float | None, rho: float | None, certificate: Path | None
) -> Cost | Certificate:
    from tacit.accounting import Cost
    from tacit.core import Certificate

    if sum(given is not None for given in (epsilon, rho, certificate)) != 1:
        raise _two_questions()
    if certificate is not None:
        return Certificate.load(certificate)
    if rho is not None:
        return Cost.zcdp(rho)
    if epsilon is not None and delta is not None:
        return Cost.approximate(epsilon, delta)
    return Cost.pure(epsilon or 0)


def _two_questions() -> TacitError:
    return TacitError(
        "bad-parameter",
        "explain needs one question: a cost (CERTIFICATE, --epsilon, --epsilon and --delta, or --rho), "
        "or a wanted error (--error)",
        why="the one asks what a cost means, the other which cost an answer needs",
        fix="tacit explain --epsilon 0.5, or tacit explain --statistic count --error 5",
    )
