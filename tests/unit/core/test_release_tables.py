"""Every release has tables: as data frames, as files, as Arrow for any program, and as a page."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit as tc
from tacit import TacitError
from tacit.core import AnswerBatch, AnswerTable, BatchAnswer, Cells, Content
from tacit.core._registry import _built_in
from tacit.core._tabular import joined, plain_table
from tacit.errors import TacitError as Refusal

KINDS = sorted(
    {name.removeprefix("content.") for name in _built_in() if name.startswith("content.")}
    | {"answer-table", "batch"}
)


def content_class(kind):
    with pytest.raises(TacitError):  # an empty content is refused, after its room was imported
        tc.Release.from_json({"schema": "tacit/release/1", "kind": kind, "content": {}, "marks": []})
    return Content._kinds[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_content_has_tables(kind):
    assert content_class(kind).answer_tables is not Content.answer_tables


def visits():
    return tc.protect(
        tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1000), name="visits",
        bounds={"length_of_stay": (0, 30), "age": (0, 100)}, keys={"hospital": ["South", "North"]},
    )  # fmt: skip


def answer():
    return (
        visits()
        .group_by("hospital")
        .agg(n=tc.count(), m=tc.mean("length_of_stay"))
        .plan(epsilon=50)
        .release()
    )


def batch():
    data = visits()
    return (
        tc.batch(a=data.agg(n=tc.count()), b=data.group_by("hospital").agg(s=tc.sum("age")))
        .plan(epsilon=50)
        .release()
    )


def crosstabs():
    return visits().crosstabs(["hospital"]).plan(epsilon=50).release()


def ranges():
    return visits().ranges("age", bins=10).plan(epsilon=50).release()


def trial():
    people = pd.DataFrame({
        "pid": range(2000), "age": [20 + i % 60 for i in range(2000)],
        "pressure": [110.0 + (i % 60) / 2 for i in range(2000)],
        "week": [1 + i % 50 for i in range(2000)], "arrest": [i % 3 == 0 for i in range(2000)],
    })  # fmt: skip
    return tc.protect(
        people, unit="pid", budget=tc.Budget(epsilon=1000), name="people", limits={"rows": 1},
        bounds={"age": (18, 80), "pressure": (100, 180), "week": (0, 52)}, keys={"arrest": [False, True]},
    )  # fmt: skip


def regression():
    return trial().regress("pressure", on=["age"]).plan(epsilon=50).release()


def survival():
    return trial().survival(time="week", event="arrest", bins=[0, 13, 26, 39, 52]).plan(epsilon=50).release()


def surface():
    sites = tc.points(
        tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), box=tc.maps.EXAMPLE_BOX,
        budget=tc.Budget(epsilon=50),
    )  # fmt: skip
    return sites.grid(2, 2).plan(epsilon=50).release()


def stream():
    flu = tc.stream(
        None, name="flu", level="event", start="2026-01-01", days=30, budget=tc.Budget(epsilon=50)
    )
    flu.begin(flu.daily(cases=tc.count()).plan(epsilon=50))
    flu.append("2026-01-01", [{"age": 40}, {"age": 7}])
    return flu.release("2026-01-01")


RELEASES = [answer, crosstabs, ranges, regression, surface, survival, stream]


@pytest.mark.parametrize("make", RELEASES, ids=lambda make: make.__name__)
def test_a_release_is_a_frame_a_file_and_arrow(make, tmp_path):
    release = make()
    frame, lines = release.to_pandas(), release.to_dict()
    assert list(frame.columns) == list(lines)
    assert len(frame) > 0
    assert release.to_polars().columns == list(lines)
    assert release.to_arrow().column_names == list(lines)
    assert pa.table(release).num_rows == pl.DataFrame(release).height == len(frame)
    text = release.to_csv(tmp_path / "answer.csv")
    with (tmp_path / "answer.csv").open(newline="", encoding="utf-8") as file:
        read = list(csv.reader(file))
    assert read[0] == list(lines)
    assert len(read) == 1 + len(frame)
    assert pd.read_csv(tmp_path / "answer.csv").shape == (len(frame), len(lines))
    assert text.splitlines()[0].startswith(next(iter(lines)))
    release.to_parquet(tmp_path / "answer.parquet")
    assert pl.read_parquet(tmp_path / "answer.parquet").height == len(frame)
    release.save(tmp_path / "release.json")
    assert tc.Release.load(tmp_path / "release.json").to_dict() == lines


@pytest.mark.parametrize("make", [*RELEASES, batch], ids=lambda make: make.__name__)
def test_a_csv_file_has_its_facts_beside_it(make, tmp_path):
    release = make()
    release.to_csv(tmp_path / "answer.csv")
    beside = json.loads((tmp_path / "answer.csv-metadata.json").read_text())
    assert beside["@context"] == "http://www.w3.org/ns/csvw"
    assert beside["url"] == "answer.csv"
    facts = beside["tacit"]
    assert facts["plan"] == release.certificate.plan
    assert facts["promised"] == {"epsilon": "50"}
    assert facts["entry"] == release.certificate.fields["ledger"]["entry"]
    assert "notes" in facts


def test_what_limits_cut_stands_beside_a_csv_file(tmp_path):
    answer().to_csv(tmp_path / "a.csv")
    notes = json.loads((tmp_path / "a.csv-metadata.json").read_text())["tacit"]["notes"]
    assert any("intervals for the noise" in note for note in notes)
    assert any("rows of each patient count" in note for note in notes)


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.loads = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loads += [
            value for name, value in attrs
            if name in {"src", "href", "xlink:href", "action"} and value and not value.startswith("#")
        ]  # fmt: skip


@pytest.mark.parametrize("make", [*RELEASES, batch], ids=lambda make: make.__name__)
def test_a_report_is_one_page_without_scripts_that_loads_nothing(make, tmp_path):
    release = make()
    release.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert "script" not in page.tags
    assert all(one.startswith("data:image/png") for one in page.loads)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert "default-src 'none'" in text
    assert {"table", "svg", "h1", "title"} <= set(page.tags)
    for needed in ("What the intervals cover", "What is promised", "How to verify it", "How to cite it"):
        assert needed in text
    assert release.certificate.plan in text
    assert "epsilon 50" in text


def test_a_report_names_the_question_while_it_is_known(tmp_path):
    release = answer()
    assert (
        "<h1><bdi>n = count, m = mean(length_of_stay), by hospital, of visits</bdi></h1>"
        in release.report().html()
    )
    release.save(tmp_path / "r.json")
    loaded = tc.Release.load(tmp_path / "r.json")
    assert loaded.question == ""  # no certificate binds these words
    assert "<h1><bdi>answer table of visits</bdi></h1>" in loaded.report().html()


def test_text_from_data_cannot_leave_its_place_in_a_report():
    name = "<script>alert(1)</script>" + chr(0x202E)
    release = answer()
    evil = AnswerTable({"hospital": (name,)}, {"n": Cells((1,), (0,), (2,))}, 0.95)
    page = release.changed(evil, "changed").report().html()
    assert "<script" not in page
    assert chr(0x202E) not in page


def test_several_tables_become_one_with_a_column_that_says_which():
    one = AnswerTable({"a": (1.0, 2.0)}, {"n": Cells((1, 2), (0, 1), (2, 3))}, 0.95)
    other = plain_table({"b": ["x"]}, {"m": [5]})
    made = joined([("first", one), ("second", other)])
    assert made.to_dict()["table"] == ["first", "first", "second"]
    assert made.to_dict()["a"] == ["1", "2", ""]
    assert made.to_dict()["m"] == [None, None, 5]
    assert joined([]) is None
    assert joined([("", one)]) is one


def test_a_batch_has_the_tables_of_its_answers(tmp_path):
    release = batch()
    assert list(release.to_pandas()) == ["a", "b"]  # one frame for each answer
    assert release.to_dict()["table"] == ["a", "b", "b"]
    assert pl.DataFrame(release).height == 3
    assert len(release.to_csv(tmp_path / "both.csv").splitlines()) == 4
    one = AnswerTable({}, {"n": Cells((1,), (0,), (2,))}, 0.95)
    made = AnswerBatch((BatchAnswer("a", one, ()), BatchAnswer("b", one, ())))
    assert [caption for caption, _ in made.answer_tables()] == ["a", "b"]


def test_a_content_without_tables_refuses_in_words():
    class Bare(Content):
        kind = ""

    with pytest.raises(Refusal, match="has no table"):
        Bare().to_pandas()


# sources


class Stream:
    """An object of no package that Tacit knows: it hands over Arrow, and can be read once."""

    def __init__(self, table):
        self.table, self.read = table, 0

    def __arrow_c_stream__(self, requested_schema=None):
        self.read += 1
        assert self.read == 1
        return self.table.__arrow_c_stream__(requested_schema)


def test_protect_accepts_every_object_that_hands_over_arrow():
    table = pa.table({"pid": list(range(100)), "x": [1.0] * 100})
    for source in (Stream(table), table.to_reader()):
        data = tc.protect(
            source, unit="pid", bounds={"x": (0, 2)}, limits={"rows": 1}, budget=tc.Budget(epsilon=1000)
        )
        release = data.agg(n=tc.count(), m=tc.mean("x")).plan(epsilon=500).release()
        assert release["n"].value == (100,)
        assert release["m"].value[0] == pytest.approx(1, abs=0.01)


def test_a_release_can_be_protected_like_any_table():
    data = tc.protect(answer(), unit=tc.Unit.row(), budget=tc.Budget(epsilon=1000))
    assert data.agg(n=tc.count()).plan(epsilon=500).release().value == 2


def test_a_stream_that_fails_is_refused_without_its_reason():
    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ValueError("row 17 holds the name of a patient")

    with pytest.raises(TacitError) as refusal:
        tc.protect(Broken(), unit="pid", budget=tc.Budget(epsilon=1))
    assert "patient" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.code == "bad-parameter"


def test_numbers_of_models_are_tables():
    from tacit.learn.estimators._fitted_numbers import FittedNumbers

    fitted = FittedNumbers("ridge", {"coef": np.array([[0.5, 1.5]]), "classes": np.array(["a", "b"])})
    lines = fitted.to_dict()
    assert lines["value"] == [0.5, 1.5, None, None]
    assert lines["place"] == ["0, 0", "0, 1", "0", "1"]
    assert lines["text"] == [None, None, "a", "b"]
    assert fitted.to_arrow().num_rows == 4
