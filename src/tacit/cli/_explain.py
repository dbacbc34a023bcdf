"""The ``tacit explain`` command: what an epsilon means, and which epsilon an answer needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli._app import app
from tacit.cli._output import JsonOption, PlotOption, say, show_json, write_figures, write_file
from tacit.errors import TacitError, missing_file
from tacit.fixes import Do

if TYPE_CHECKING:
    from tacit.accounting import Cost
    from tacit.core import Certificate
    from tacit.explain import Explanation, Tradeoff

_CertificateArgument = Annotated[
    Path | None, typer.Argument(metavar="CERTIFICATE", help="The certificate of a release.")
]
_CertificateToExplain = Annotated[Path | None, typer.Option("--certificate", help="The same as CERTIFICATE.")]
_CostEpsilonOption = Annotated[float | None, typer.Option("--epsilon", "-e", help="The cost in epsilon.")]
_CostDeltaOption = Annotated[
    float | None,
    typer.Option("--delta", help="With epsilon: its delta. With rho: the delta at which epsilon is stated."),
]
_CostRhoOption = Annotated[float | None, typer.Option("--rho", help="The cost in rho (zCDP).")]
_PriorOptions = Annotated[
    list[float] | None,
    typer.Option("--prior", help="What an attacker believed before, as a probability; may be repeated."),
]
_FamilyOptions = Annotated[
    list[int] | None, typer.Option("--family", help="The size of a group of people; may be repeated.")
]
_BudgetOption = Annotated[
    float | None,
    typer.Option("--budget", help="Show how many times this epsilon budget can pay for the cost."),
]
_StatisticOption = Annotated[str | None, typer.Option("--statistic", help="count, sum or mean.")]
_PeopleOption = Annotated[int | None, typer.Option("--n", help="How many people.")]
_RangeOption = Annotated[
    tuple[float, float] | None, typer.Option("--bounds", help="The public range of a value: LOW HIGH.")
]
_ErrorOption = Annotated[
    float | None, typer.Option("--error", help="The error that you accept: show which epsilon it needs.")
]
_ErrorConfidenceOption = Annotated[
    float, typer.Option("--confidence", help="How often the noise stays within the error.")
]
_PageOption = Annotated[Path | None, typer.Option("--html", help="Write an interactive page to this file.")]


@app.command()
def explain(
    file: _CertificateArgument = None,
    epsilon: _CostEpsilonOption = None,
    delta: _CostDeltaOption = None,
    rho: _CostRhoOption = None,
    certificate: _CertificateToExplain = None,
    prior: _PriorOptions = None,
    family: _FamilyOptions = None,
    budget: _BudgetOption = None,
    statistic: _StatisticOption = None,
    n: _PeopleOption = None,
    bounds: _RangeOption = None,
    error: _ErrorOption = None,
    confidence: _ErrorConfidenceOption = 0.95,
    html: _PageOption = None,
    plot: PlotOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show what a cost means (CERTIFICATE, --epsilon, --rho), or which epsilon an error needs (--error)."""
    import tacit.explain as room
    from tacit.accounting import Budget

    certificate = _only_certificate(file, certificate)
    if error is not None:
        if any(given is not None for given in (epsilon, rho, delta, certificate, html)):
            raise _not_one_question()
        tradeoff = room.tradeoff(statistic or "count", error=error, n=n, bounds=bounds, confidence=confidence)
        _show(tradeoff, plot, as_json=as_json)
        if not as_json:
            say("", tradeoff.chart())
    else:
        meaning = room.explain(
            _subject(epsilon, delta, rho, certificate),
            priors=prior or (0.01, 0.1, 0.5, 0.9),
            families=family or (1, 2, 5, 10),
            delta=1e-6 if delta is None else delta,
            question=None if statistic is None else room.ExplainedQuestion(statistic, n, bounds),
            budget=None if budget is None else Budget(epsilon=budget),
        )
        if html is not None:
            write_file(html, meaning.save_html, "the page", "--html")
        _show(meaning, plot, as_json=as_json)
    files = [] if as_json else [path for path in (html, plot) if path is not None]
    for path in files:
        say(f"\nwritten: {path}")


def _show(result: Explanation | Tradeoff, plot: Path | None, *, as_json: bool) -> None:
    """Draw the picture first: if that fails, nothing is printed."""
    if plot is not None:
        write_figures(plot, result)
    if as_json:
        show_json(result)
    else:
        say(result)


def _only_certificate(file: Path | None, certificate: Path | None) -> Path | None:
    if file is not None and certificate is not None:
        raise _not_one_question()
    path = file or certificate
    if path is not None and not path.is_file():
        raise _no_file(path)
    return path


def _no_file(certificate: Path) -> TacitError:
    """Build the refusal for a missing certificate; a number in its place was meant as an epsilon."""
    try:
        value = float(str(certificate).replace(",", "."))
    except ValueError:
        return missing_file(certificate, "bad-certificate", fix=Do("save-certificate", path=str(certificate)))
    return TacitError(
        "bad-certificate",
        f"{certificate} is not the file of a certificate; did you mean --epsilon {value:g}?",
        why="without an option, tacit explain reads the certificate of a release",
        fix=f"tacit explain --epsilon {value:g}",
    )


def _subject(
    epsilon: float | None, delta: float | None, rho: float | None, certificate: Path | None
) -> Cost | Certificate:
    from tacit.accounting import Cost
    from tacit.core import Certificate

    if sum(given is not None for given in (epsilon, rho, certificate)) != 1:
        raise _not_one_question()
    if certificate is not None:
        return Certificate.load(certificate)
    if rho is not None:
        return Cost.zcdp(rho)
    if epsilon is not None and delta is not None:
        return Cost.approximate(epsilon, delta)
    return Cost.pure(epsilon or 0)


def _not_one_question() -> TacitError:
    return TacitError(
        "bad-parameter",
        "tacit explain needs one question: a cost (CERTIFICATE, --epsilon, --epsilon and --delta, or --rho), "
        "or an error (--error)",
        why="the first asks what a cost means, the second which cost an answer needs",
        fix="tacit explain --epsilon 0.5, or tacit explain --statistic count --error 5",
    )
