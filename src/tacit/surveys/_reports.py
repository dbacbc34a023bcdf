"""The reports of a survey at the collector, everything that can be estimated from them, and their files."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.core import needs
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Code
from tacit.mechanisms import Design, LinearHashing, NumberWindow
from tacit.report import Report, Reportable, ReportTable
from tacit.surveys._answering import SurveyReport
from tacit.surveys._estimates import (
    BIAS,
    EstimatedShares,
    caution,
    liar_bound,
    margin,
    mean,
    norm_sub,
    normal_quantile,
    read_covers,
    shares,
    side_liar_bound,
)
from tacit.surveys._results import (
    CrossRow,
    CrossTable,
    DifferenceRow,
    DifferenceTable,
    MeanRow,
    MeanTable,
    ShareRow,
    ShareTable,
    cut,
    people,
)
from tacit.surveys._survey_questions import find_question

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.surveys._estimates import Covers
    from tacit.surveys._heavy_hitters import HeavyHitters
    from tacit.surveys._regression import Regression
    from tacit.surveys._survey import Survey
    from tacit.surveys._survey_questions import SurveyQuestion


_MISSING = "(missing)"


def documents_of(reports: Reports) -> list[SurveyReport]:
    """Return one document for each respondent."""
    survey = reports.survey
    answers: list[dict[str, Any]] = [{} for _ in range(reports.respondents)]
    for question in survey.questions:
        rows, reported = reports.answered[question.name]
        for row, report in zip(rows.tolist(), wire(question, reported), strict=True):
            answers[row][question.name] = report
    public = {name: values.tolist() for name, values in reports.public.items()}
    digest, epsilon = survey.digest, str(survey.epsilon)
    numbers = reports.invitations or (None,) * reports.respondents
    return [
        SurveyReport(digest, epsilon, reported, number, {n: v[row] for n, v in public.items()} or None)
        for row, (reported, number) in enumerate(zip(answers, numbers, strict=True))
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
        rows, reported = reports.answered[question.name]
        cells: list[Any] = [None] * reports.respondents
        law = question.law
        plain = isinstance(law, NumberWindow | Design) or getattr(law, "subset", 0) == 1
        for row, report in zip(rows.tolist(), wire(question, reported), strict=True):
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
                for document in documents_of(reports):
                    lines.write(json.dumps(document.to_json(), ensure_ascii=False) + "\n")
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


class AnsweredQuestion(NamedTuple):
    """The reports of one question: of which respondents, and what they sent."""

    rows: NDArray[np.int64]
    reports: NDArray[Any]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Reports(Reportable):
    """The reports of a survey; `tacit.surveys.Survey.collect` reads them, and estimates come from here.

    Guarantee: free post-processing of reports that are private already. Public columns are not protected.

    Parameters
    ----------
    survey
        What was asked.
    respondents
        How many people sent a report.
    answered
        The reports by question.
    public
        What else is known openly of the respondents, by column.
    invitations
        One for each respondent, or None.

    Examples
    --------
    >>> import tacit as tc
    >>> poll = tc.survey("smoking", ["no", "yes"], epsilon=2)
    >>> reports = poll.randomize(["yes"] * 300 + ["no"] * 700)
    >>> reports.respondents, [row.answer for row in reports.estimate()]
    (1000, ['no', 'yes'])
    """

    survey: Survey
    respondents: int
    answered: Mapping[str, AnsweredQuestion]
    public: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    invitations: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return self.respondents

    def estimate(
        self,
        question: str | None = None,
        *,
        confidence: float = 0.95,
        of: str = "population",
        by: str | None = None,
        norm_sub: bool = False,
    ) -> ShareTable:
        """Estimate the share of each answer to a question, with intervals.

        Guarantee: unbiased, whoever answered what. An interval for the ``population`` covers the coins and
        the sampling of respondents; one for the ``respondents`` covers the coins alone.

        Parameters
        ----------
        question
            Its name, also of one side of a pair; may be left out if there is only one.
        confidence
            How often an interval covers the share.
        of
            ``population``, of which the respondents are a random sample, or these ``respondents``.
        by
            A public column: shares in each of its groups.
        norm_sub
            Whether to shift the shares so that none is negative and they add up to one. That is biased.
        """
        chosen, side = self._question(question)
        covers = read_covers(of)
        share_rows, warned = [], ""
        for group, reports in self._groups(chosen, by):
            estimated = self._shares(chosen, reports, side, covers, confidence)
            warned = warned or caution(chosen, reports, estimated if side is None else None)
            values = _normed(estimated.values) if norm_sub else estimated.values
            share_rows += [
                ShareRow(group, label, float(v), cut(low), cut(high), float(raw), estimated.respondents)
                for label, v, low, high, raw in zip(
                    self._labels(chosen, side),
                    values,
                    estimated.low,
                    estimated.high,
                    estimated.raw,
                    strict=True,
                )
            ]
        name = chosen.name if side is None else chosen.of[side][0]
        return ShareTable(
            name, by or "", tuple(share_rows), confidence, covers, float(self.survey.epsilon),
            self._liars(chosen, side), (BIAS,) if norm_sub else (), warned,
        )  # fmt: skip

    def mean(
        self,
        question: str | None = None,
        *,
        confidence: float = 0.95,
        of: str = "population",
        by: str | None = None,
    ) -> MeanTable:
        """Estimate the mean of a number or a scale, with an interval; parameters as in `estimate`."""
        chosen, _ = self._question(question)
        covers, z = read_covers(of), normal_quantile(confidence)
        rows, warned = [], ""
        for group, reports in self._groups(chosen, by):
            warned = warned or caution(chosen, reports)
            estimated = mean(chosen, reports, covers=covers)
            half = z * estimated.error
            rows.append(
                MeanRow(
                    group,
                    estimated.value,
                    estimated.value - half,
                    estimated.value + half,
                    estimated.respondents,
                )
            )
        return MeanTable(
            chosen.name, by or "", tuple(rows), confidence, covers, float(self.survey.epsilon),
            liar_bound(chosen) if not chosen.gives_shares else self._liars_of_scale(chosen), (), warned,
        )  # fmt: skip

    def difference(
        self, question: str | None = None, *, by: str, confidence: float = 0.95, of: str = "population"
    ) -> DifferenceTable:
        """Compare the groups of a public column: each one against the first; parameters as in `estimate`.

        Intervals of shares join those of both groups (Newcombe 1998), those of means add the variances.
        """
        chosen, side = self._question(question)
        covers, z = read_covers(of), normal_quantile(confidence)
        groups = self._groups(chosen, by)
        if len(groups) < 2:
            raise TacitError(
                "bad-parameter", f"{by!r} has a single group", fix="compare groups of another column"
            )
        rows: list[DifferenceRow] = []
        if chosen.gives_shares:
            each = [(g, self._shares(chosen, r, side, covers, confidence)) for g, r in groups]
            for group, estimated in each[1:]:
                rows += _share_differences(group, estimated, *each[0], self._labels(chosen, side))
        else:
            means = [(group, mean(chosen, reports, covers=covers)) for group, reports in groups]
            (other, base), others = means[0], means[1:]
            for group, estimated_there in others:
                value, half = (
                    estimated_there.value - base.value,
                    z * float(np.hypot(estimated_there.error, base.error)),
                )
                rows.append(DifferenceRow(group, other, None, value, value - half, value + half))
        name = chosen.name if side is None else chosen.of[side][0]
        return DifferenceTable(name, by, tuple(rows), confidence, covers, float(self.survey.epsilon))

    def crosstab(
        self, down: str, across: str, *, confidence: float = 0.95, of: str = "population"
    ) -> CrossTable:
        """Tabulate two questions that were asked as a pair; parameters as in `estimate`."""
        for question in self.survey.questions:
            if {name for name, _ in question.of} == {down, across}:
                break
        else:
            raise TacitError(
                "bad-parameter",
                f"{down!r} and {across!r} were not asked as a pair",
                why="two separate reports of a person, each with its own coin, cannot be tabulated well",
                fix=Code(f'tc.survey(..., pairs=[("{down}", "{across}")])'),
            )
        covers = read_covers(of)
        reported = self.answered[question.name].reports
        estimated = shares(question, reported, covers=covers, confidence=confidence)
        turned = question.of[0][0] != down
        rows = [
            CrossRow(*_turned(label, turned=turned), float(v), cut(low), cut(high), float(raw))
            for label, v, low, high, raw in zip(
                question.answers, estimated.values, estimated.low, estimated.high, estimated.raw, strict=True
            )
        ]
        return CrossTable(
            (down, across), tuple(rows), confidence, covers, float(self.survey.epsilon),
            liar_bound(question), estimated.respondents, caution(question, reported, estimated),
        )  # fmt: skip

    def heavy_hitters(self, question: str | None = None, *, confidence: float = 0.95) -> HeavyHitters:
        """Return the answers of a long list that stand out from the coins, with intervals; see `find_heavy`.

        Examples
        --------
        >>> import tacit as tc
        >>> words = tc.survey("words", 10_000, epsilon=4)
        >>> words.randomize([7] * 3000 + [8] * 2000).heavy_hitters().answers[:2]     # a third may follow
        [7, 8]
        """
        from tacit.surveys._heavy_hitters import find_heavy

        chosen, _ = self._question(question)
        labels = None if chosen.answers == tuple(range(len(chosen.answers))) else chosen.answers
        reports = self.answered[chosen.name].reports
        return find_heavy(reports, chosen.support, confidence, labels=labels)

    def logistic(
        self, question: str, *, on: Sequence[str], answer: Any = None, confidence: float = 0.95
    ) -> Regression:
        """Regress whether the true answer is ``answer`` (by default the last) on public columns.

        Guarantee: maximum likelihood of the reports; intervals cover coins and sampling in large samples.
        """
        from tacit.surveys._regression import fit_logistic_on

        return fit_logistic_on(self, question, on=on, answer=answer, confidence=confidence)

    def linear(
        self, outcome: str, *, on: Sequence[str], answer: Any = None, confidence: float = 0.95
    ) -> Regression:
        """Regress a number on public columns, and on one randomized answer where ``on`` names its question.

        The outcome is a public column, or a question that asks for a number (then all of ``on`` is public).
        With a randomized predictor the joint likelihood of outcome and report is maximised, which allows the
        true answer to depend on the other predictors. ``answer`` says which answer counts as 1.
        """
        from tacit.surveys._regression import fit_linear_on

        return fit_linear_on(self, outcome, on=on, answer=answer, confidence=confidence)

    def save(self, path: str | Path) -> None:
        """Write the reports to a file (JSON lines, CSV, Parquet) that `Survey.collect` reads."""
        save(self, path)

    def documents(self) -> list[SurveyReport]:
        """Return one document for each respondent, as it was sent."""
        return documents_of(self)

    def to_pandas(self) -> Any:
        """Return the reports as a pandas data frame, one row for each respondent (extra ``pandas``)."""
        return frame_of(self)

    def _question(self, name: str | None) -> tuple[SurveyQuestion, int | None]:
        """Find a question, or the pair that it is a side of."""
        return find_question(self.survey.questions, name)

    def _labels(self, question: SurveyQuestion, side: int | None) -> Sequence[Any]:
        return question.answers if side is None else question.of[side][1]

    def _shares(
        self, question: SurveyQuestion, reports: Any, side: int | None, covers: Covers, confidence: float
    ) -> EstimatedShares:
        if side is None:
            return shares(question, reports, covers=covers, confidence=confidence)
        return margin(question, reports, side, covers=covers, confidence=confidence)

    def _liars(self, question: SurveyQuestion, side: int | None) -> float:
        """Return the bound for one answer; a side of a pair adds up the cells that one report can support."""
        return liar_bound(question) if side is None else side_liar_bound(question, side)

    def _liars_of_scale(self, question: SurveyQuestion) -> float:
        """Return the bound for a mean of a scale: the largest score of a report, less the lowest truth."""
        p, q = float(question.support.p), float(question.support.q)
        levels = np.sort(question.levels())[::-1]
        max_levels = min(len(levels), getattr(question.randomizer, "subset", len(levels)))
        best = (
            levels[:max_levels] if max_levels < len(levels) else levels[levels > 0]
        )  # a hash may support any set
        top = (best.sum() - q * levels.sum()) / (p - q)
        return 0.01 * float((top + 1) * float(question.radius))

    def _groups(self, question: SurveyQuestion, by: str | None) -> list[tuple[str, Any]]:
        rows, reports = self.answered[question.name]
        if by is None:
            return [("", reports)]
        places: dict[Any, list[int]] = {}
        for index, value in enumerate(self.column(by)[rows].tolist()):
            places.setdefault(None if _is_missing(value) else value, []).append(index)
        return [
            (_MISSING if group is None else str(group), reports[places[group]]) for group in _sorted(places)
        ]

    def column(self, name: str) -> NDArray[Any]:
        """Return a public column, one value for each respondent."""
        if name in self.public:
            return np.asarray(self.public[name])
        raise TacitError(
            "unknown-column",
            f"the reports have no public column {name!r}",
            why="groups and predictors are columns that the respondents or the collector state openly",
            fix=Choose(tuple(self.public), given=name)
            if self.public
            else "collect the reports with such a column; these have no public column",
        )

    def report(self) -> Report:
        """Return how many answered each question, and what is public."""
        rows = tuple(
            (question.name, f"{len(self.answered[question.name].rows):,}", question.randomizer.describe())
            for question in self.survey.questions
        )
        columns = f"Public columns: {', '.join(self.public)}." if self.public else "No public columns."
        return Report(
            f"reports of survey {self.survey.name}: {people(self.respondents)}",
            (),
            (ReportTable("", ("question", "reports", "randomizer"), rows),),
            (columns,),
        )


def _turned(label: Any, *, turned: bool) -> tuple[Any, Any]:
    side, second = label
    return (second, side) if turned else (side, second)


def _normed(values: Any) -> Any:
    return norm_sub(values)


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or value != value


def _sorted(groups: Iterable[Any]) -> list[Any]:
    """Return groups in their own order, those without a value last."""
    groups_with_name = [group for group in groups if group is not None]
    unnamed = [None] if len(groups_with_name) < len(list(groups)) else []
    try:
        return sorted(groups_with_name) + unnamed
    except TypeError:
        return sorted(groups_with_name, key=str) + unnamed


def _share_differences(
    group: str, estimated: EstimatedShares, other: str, base: EstimatedShares, labels: Sequence[Any]
) -> list[DifferenceRow]:
    """Return differences with Newcombe's intervals (1998, method 10) from the score intervals of both."""
    value = estimated.values - base.values
    low = value - np.hypot(estimated.values - estimated.low, base.high - base.values)
    high = value + np.hypot(estimated.high - estimated.values, base.values - base.low)
    return [
        DifferenceRow(group, other, label, float(v), float(l), float(h))
        for label, v, l, h in zip(labels, value, low, high, strict=True)
    ]
