"""Reports as documents, data frames and files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.core import needs
from tacit.errors import bad_parameter
from tacit.fixes import Choose
from tacit.mechanisms import Design, LinearHashing, NumberWindow
from tacit.surveys._answering import SurveyReport

if TYPE_CHECKING:
    from tacit.surveys._reports import Reports
    from tacit.surveys._survey_questions import SurveyQuestion


def documents_of(reports: Reports) -> list[SurveyReport]:
    """Return one document for each respondent."""
    survey = reports.survey
    answers: list[dict[str, Any]] = [{} for _ in range(reports.respondents)]
    for question in survey.questions:
        rows, own = reports.answered[question.name]
        for row, report in zip(rows.tolist(), wire(question, own), strict=True):
            answers[row][question.name] = report
    public = {name: values.tolist() for name, values in reports.public.items()}
    digest, epsilon = survey.digest, str(survey.epsilon)
    numbers = reports.invitations or (None,) * reports.respondents
    return [
        SurveyReport(digest, epsilon, own, number, {n: v[row] for n, v in public.items()} or None)
        for row, (own, number) in enumerate(zip(answers, numbers, strict=True))
    ]


def wire(question: SurveyQuestion, reports: Any) -> list[Any]:
    """Return reports as JSON: lists of places, whole numbers, or seeds with hashes."""
    if isinstance(question.randomizer, LinearHashing):
        pairs = zip(reports["seed"].tolist(), reports["answer"].tolist(), strict=True)
        return [{"seed": seed, "answer": answer} for seed, answer in pairs]
    return list(reports.tolist())


def _table(reports: Reports, *, text: bool) -> dict[str, list[Any]]:
    """Return reports as columns; lists and seeds are written as JSON text if ``text``."""
    survey = reports.survey
    table: dict[str, list[Any]] = {"survey": [survey.digest] * reports.respondents}
    if reports.invitations is not None:
        table["invitation"] = list(reports.invitations)
    for question in survey.questions:
        rows, own = reports.answered[question.name]
        cells: list[Any] = [None] * reports.respondents
        law = question.law
        plain = isinstance(law, NumberWindow | Design) or getattr(law, "subset", 0) == 1
        for row, report in zip(rows.tolist(), wire(question, own), strict=True):
            if plain:
                cells[row] = report if isinstance(report, int) else report[0]
            else:
                cells[row] = json.dumps(report) if text else report
        table[question.name] = cells
    return table | {name: values.tolist() for name, values in reports.public.items()}


def frame_of(reports: Reports) -> Any:
    """Return reports as a pandas data frame."""
    needs("to_pandas", "pandas", "tacit[pandas]")
    import pandas as pd

    return pd.DataFrame(_table(reports, text=True))


def save(reports: Reports, path: str | Path) -> None:
    """Write reports to a file; its name says in which form."""
    target = Path(path)
    match target.suffix.lower():
        case ".jsonl" | ".ndjson":
            with target.open("w", encoding="utf-8") as lines:
                for one in documents_of(reports):
                    lines.write(json.dumps(one.to_json(), ensure_ascii=False) + "\n")
        case ".csv":
            table = _table(reports, text=True)
            with target.open("w", newline="", encoding="utf-8") as lines:
                writer = csv.writer(lines)
                writer.writerow(table)
                writer.writerows(zip(*table.values(), strict=True))
        case ".parquet":
            needs("save", "pyarrow", "tacit[pandas]")
            import pyarrow as pa
            from pyarrow import parquet

            parquet.write_table(pa.table(_table(reports, text=True)), target)
        case _:
            raise bad_parameter(
                "path",
                "a file .jsonl, .csv or .parquet",
                target.name,
                fix=Choose((".jsonl", ".csv", ".parquet")),
            )
