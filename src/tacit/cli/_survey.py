"""The ``tacit survey`` command: design a survey, write its questionnaire, collect reports, estimate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli._app import app
from tacit.cli._output import JsonOption, PlotOption, say, show_json, typed, write_figures, write_file
from tacit.errors import TacitError, missing_file
from tacit.fixes import Choose, Say
from tacit.show import visible

if TYPE_CHECKING:
    from tacit.surveys import DeclaredQuestion, Reports, Survey

survey = typer.Typer(
    name="survey",
    help="Run a survey without a trusted collector: each respondent's own device randomizes the answer.",
    no_args_is_help=True,
)
app.add_typer(survey)

SurveyArgument = Annotated[
    Path, typer.Argument(metavar="SURVEY", help="The survey's file, as design wrote it.")
]


@survey.command()
def design(
    path: Annotated[Path, typer.Argument(metavar="SURVEY", help="The file to write: poll.json.")],
    *,
    question: Annotated[
        list[str],
        typer.Option(
            "--question", "-q", show_default=False,
            help='A question and its answers: "smokes=no,yes", a number "age=18..90", a scale "mood=1:5", or '
            '"state=@states.txt" with one answer on each line. Repeat it for more questions.',
        ),
    ],
    epsilon: Annotated[
        float, typer.Option("--epsilon", "-e", help="What one report may give away, all questions together.")
    ],
    name: Annotated[str | None, typer.Option(help="By default the name of the file.")] = None,
    text: Annotated[
        list[str] | None, typer.Option("--text", help='What respondents read: "smokes=Do you smoke?".')
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option("--pair", help='Two questions to tabulate against each other: "smokes,state".'),
    ] = None,
    strategy: Annotated[
        str, typer.Option(help="auto; one question for each respondent; or split epsilon over all.")
    ] = "auto",
    respondents: Annotated[int, typer.Option(help="How many you expect, to predict the error.")] = 1000,
    force: Annotated[bool, typer.Option("--force", help="Replace another survey in this file.")] = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Declare a survey, and see what is sent and how exact it will be, before anyone is asked."""
    import tacit as tc

    texts = dict(_named(one, "--text") for one in text or ())
    questions = {
        name: _declared(name, given, texts.pop(name, "")) for name, given in map(_question, question)
    }
    if texts:
        raise TacitError(
            "bad-parameter",
            f"--text names the question {next(iter(texts))!r}, which is not in the survey",
            fix=Choose(tuple(questions), given=next(iter(texts))),
        )
    pairs: list[Any] = [tuple(one.split(",")) for one in pair or ()]
    survey = tc.survey(name or path.stem, questions, epsilon=epsilon, strategy=strategy, pairs=pairs)
    expected = survey.predict(respondents)
    if not force:
        _check_free(path, survey)
    write_file(path, survey.save, "the survey", option="SURVEY")
    if as_json:
        show_json({"survey": str(path), "digest": survey.digest, "document": survey.document()})
        return
    say(survey, expected, f"Written to {path}. Next: tacit survey form {typed(str(path))}")


@survey.command()
def form(
    path: SurveyArgument,
    *,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The HTML file; by default SURVEY's name with .html.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The title at the top of the page.")] = None,
    intro: Annotated[str, typer.Option(help="What respondents read first.")] = "",
    post_to: Annotated[
        str | None, typer.Option("--post-to", help="The https address to which the page may send reports.")
    ] = None,
    invitation: Annotated[
        bool, typer.Option("--invitation", help="Every respondent needs the number of an invitation.")
    ] = False,
    language: Annotated[str, typer.Option(help="The language of the questions, for screen readers.")] = "en",
) -> None:  # fmt: skip
    """Write the questionnaire: one HTML file that randomizes the answers in the respondent's browser."""
    survey, target = _load(path), out or path.with_suffix(".html")
    write_file(
        target,
        lambda file: survey.form(
            file, title=title, intro=intro, post_to=post_to, invitation=invitation, language=language
        ),
        "the questionnaire",
        option="--out",
    )
    say(f"Written to {target}. Open it in a browser; it needs no network and sends nothing by itself.")


@survey.command()
def collect(
    path: SurveyArgument,
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="REPORTS...",
            help="Files or folders of .json, .jsonl, .csv, .parquet, or files without an ending.",
        ),
    ],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file for all reports: .jsonl, .csv, .parquet.")
    ] = Path("reports.jsonl"),
    repeated: Annotated[
        str, typer.Option(help="If an invitation has two reports: refuse, or keep the first.")
    ] = "refuse",
    invitations: Annotated[
        Path | None, typer.Option(help="A file of the invitations sent, one on each line; refuse others.")
    ] = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Check reports and write them to one file; writes nothing if one of them is wrong."""
    survey = _load(path)
    sent = None if invitations is None else _lines(invitations)
    gathered = [
        one
        for file in _files(sources, out)
        for one in survey.collect(file, repeated=repeated, invitations=sent).documents()
    ]
    reports = survey.collect(gathered, repeated=repeated)
    write_file(out, reports.save, "the reports", option="--out")
    if as_json:
        show_json({"reports": str(out), "respondents": reports.respondents, "survey": survey.digest})
        return
    if reports.invitations is None:
        say("Not every report has an invitation, so repeated reports cannot be found.\n")
    say(reports, f"Written to {out}. Next: tacit survey report {typed(str(path))} {typed(str(out))}")


@survey.command()
def report(
    path: SurveyArgument,
    reports: Annotated[Path, typer.Argument(metavar="REPORTS", help="The file with the reports.")],
    *,
    question: Annotated[
        str | None, typer.Option("--question", "-q", help="Only this question; by default all.")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", help="A public column: figures for each group.")] = None,
    across: Annotated[
        str | None, typer.Option("--across", help="The other question of a pair, for a cross-table.")
    ] = None,
    of: Annotated[
        str, typer.Option("--of", help="Whose figures: the population, or these respondents alone.")
    ] = "population",
    confidence: Annotated[float, typer.Option(help="How often an interval covers the true figure.")] = 0.95,
    norm_sub: Annotated[
        bool, typer.Option("--norm-sub", help="Shift shares so that none is negative; this biases them.")
    ] = False,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Estimate shares and means from randomized reports, with intervals."""
    got = _load(path).collect(reports)
    every = [table.name for table in got.survey.questions]
    answered = [name for name in every if len(got.answered[name].rows)] or every
    results = [
        _estimated(got, table, by, across, of=of, confidence=confidence, norm_sub=norm_sub)
        for table in ([question] if question else answered)
    ]
    if plot is not None:
        if len(results) > 1:
            raise _unclear(
                "a picture shows one question, and the survey has several",
                f"--question {typed(got.survey.questions[0].name)}",
            )
        write_figures(plot, results[0])
    if as_json:
        show_json([_figures(table) for table in results])
        return
    for number, table in enumerate(results):
        say(*([""] if number else []), table)
    if not question and (silent := [name for name in every if name not in answered]):
        say(f"\nNo reports yet: {', '.join(silent)}.")
    if plot is not None:
        say(f"\nwritten: {plot}")


def _figures(result: Any) -> dict[str, object]:
    """Return a result for programs: its figures as numbers, and what the notes say."""
    lines = result.report()
    return {
        "title": lines.title,
        **result.to_dict(),
        "rows": [row._asdict() for row in result.rows],
        "notes": lines.notes,
    }


def _estimated(
    got: Reports, name: str, by: str | None, across: str | None, *, norm_sub: bool, **covers: Any
) -> Any:
    """Return the cross-table, the means or the shares of one question."""
    if across is not None:
        return got.crosstab(name, across, **covers)
    question = next((one for one in got.survey.questions if one.name == name), None)
    if question is not None and not question.gives_shares:
        return got.mean(name, by=by, **covers)
    return got.estimate(name, by=by, norm_sub=norm_sub, **covers)


def _load(path: Path) -> Survey:
    from tacit.surveys import load

    return load(path)


def _check_free(path: Path, survey: Survey) -> None:
    """Refuse to replace another survey: reports that were made for it could not be collected any more."""
    if not path.is_file():
        return
    try:
        same = _load(path) == survey
    except TacitError:
        same = False
    if not same:
        raise TacitError(
            "cannot-write",
            f"{path} exists and holds something else",
            why="reports that were made for another survey can be collected only with its file",
            fix=Say("write to another file, or add --force"),
        )


def _lines(path: Path) -> list[str]:
    """Return the lines of a file that are not empty."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise missing_file(path) from None
    except (OSError, ValueError):
        raise _unclear(f"the file {path} cannot be read", "a file of plain text in UTF-8") from None
    return [line.strip() for line in lines if line.strip()]


def _files(sources: list[Path], out: Path) -> list[Path]:
    """Return the files, and of a folder those that are in it, in order of their names; never the result.

    A file without an ending is a report too, as some browsers save it.
    """
    kinds = {".json", ".jsonl", ".ndjson", ".csv", ".parquet", ""}
    files: list[Path] = []
    others: list[str] = []
    for source in sources:
        if not source.is_dir():
            files.append(source)
            continue
        inside = sorted(f for f in source.iterdir() if f.is_file() and not f.name.startswith("."))
        files += [f for f in inside if f.suffix.lower() in kinds]
        others += [f.name for f in inside if f.suffix.lower() not in kinds]
    if out.resolve() in {source.resolve() for source in sources}:
        raise _unclear(f"{out} would be read and replaced", f"--out {typed('all-' + out.name)}")
    files = [file for file in files if file.resolve() != out.resolve()]
    names = ", ".join(map(visible, others[:3])) + (" and others" if len(others) > 3 else "")
    if not files:
        note = f": {names} cannot be read by the end of the name" if others else ""
        raise _unclear(
            f"the folder has no reports{note}",
            "give files that end with .json, .jsonl, .csv or .parquet, or have no ending",
        )
    if others:
        typer.echo(f"Not read, because of the end of the name: {names}.\n", err=True)
    return files


def _named(text: str, option: str) -> tuple[str, str]:
    name, sign, rest = text.partition("=")
    if not sign or not name.strip() or not rest.strip():
        example = "Do you smoke?" if option == "--text" else "no,yes"
        raise _unclear(
            f"{option} {text!r} has no name and answers with = between them",
            f'{option} "{name.strip() or "smokes"}={example}"',
        )
    return name.strip(), rest.strip()


def _question(text: str) -> tuple[str, str]:
    return _named(text, "--question")


def _declared(name: str, answers: str, text: str) -> DeclaredQuestion:
    from tacit.surveys import question

    try:
        return question(_answers(answers), text=text)
    except TacitError as refused:
        form = "18..90" if ".." in answers else "1:5" if ":" in answers else "no,yes"
        fix = f'--question "{name}={form}", with at least two different answers, or the lower bound first'
        raise _unclear(f"question {name!r}: {refused.what}", fix) from None


def _answers(text: str) -> Any:
    """Read answers as people type them: a list, a number between bounds, a scale, or a file of answers."""
    if text.startswith("@"):
        return _lines(Path(text[1:]))
    for sign, make in (("..", _bounds), (":", _scale)):
        low, separator, high = text.partition(sign)
        if separator and (ends := make(low, high)) is not None:
            return ends
    return [answer.strip() for answer in text.split(",")]


def _bounds(low: str, high: str) -> tuple[Any, Any] | None:
    from fractions import Fraction

    try:
        return Fraction(low.strip()), Fraction(high.strip())
    except ValueError:
        return None


def _scale(low: str, high: str) -> range | None:
    try:
        return range(int(low), int(high) + 1)
    except ValueError:
        return None


def _unclear(sentence: str, fix: str) -> TacitError:
    return TacitError("bad-parameter", sentence, fix=Say(fix))
