"""Releases: what is read, downloaded and checked is what was drawn."""

import io
import tomllib
from pathlib import Path

import pytest
from pyarrow import parquet

import tacit as tc
from tacit.core import Release
from tacit.service import ListedSource
from tacit.service.runner import _releases
from unit.service.runner.conftest import DECLARED

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "ICU"]
GROUPED = 'SELECT hospital AS "=cmd", COUNT(*) AS "@n" FROM visits GROUP BY hospital'


@pytest.fixture
def released(ward):
    query = ward.ask(sql="SELECT hospital, COUNT(*) AS n FROM visits GROUP BY hospital").json()["query"]
    ward.drawing.answer()
    ward.release = ward.get(f"/queries/{query}").json()["release"]
    return ward


def test_all_forms_of_a_release_have_the_same_numbers(released):
    document = released.get(f"/releases/{released.release}").json()
    release = Release.from_json(document["document"])
    assert {n: list(c.value) for n, c in release.content.columns.items()} == {
        n: c["value"] for n, c in document["columns"].items()
    }
    saved = released.get(f"/releases/{released.release}.json")
    assert saved.json() == document["document"]
    csv = released.get(f"/releases/{released.release}.csv")
    assert csv.text == release.content.to_csv()
    assert csv.headers["content-disposition"] == f'attachment; filename="{released.release}.csv"'
    table = parquet.read_table(io.BytesIO(released.get(f"/releases/{released.release}.parquet").content))
    assert table.column("n").to_pylist() == document["columns"]["n"]["value"]
    picture = released.get(f"/releases/{released.release}.svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert picture.text.lstrip().startswith("<")
    assert "<svg" in picture.text
    assert document["certificate"] == released.get(f"/releases/{released.release}/certificate").json()


def test_a_release_says_what_was_charged_and_its_etag_is_its_id(released):
    answer = released.get(f"/releases/{released.release}")
    document = answer.json()
    assert [one["account"] for one in document["charged"]] == [released.accounts["ana"], "visits"]
    entry = released.service.ledger.entry(document["charged"][0]["entry"])
    assert (entry.kind, entry.plan) == ("draw", document["plan"])
    assert answer.headers["etag"] == f'"{released.release}"'
    assert released.service.ledger.certified(entry.seq) == tc.Certificate(document["certificate"]).digest


@pytest.fixture
def settings(settings, tmp_path):
    import pyarrow as pa

    rows = {"patient_id": list(range(700)), "hospital": [FORMULAS[i % 7] for i in range(700)]}
    parquet.write_table(pa.table(rows), tmp_path / "formulas.parquet")
    listed = {**settings.sources, "formulas": ListedSource("formulas", str(tmp_path / "formulas.parquet"))}
    return type(settings)(folder=settings.folder, sources=listed)


def test_no_text_of_a_csv_file_is_a_formula(ward):
    declared = {
        **DECLARED,
        "name": "formulas",
        "source": "formulas",
        "bounds": {},
        "keys": {"hospital": FORMULAS},
    }
    made = ward.call("POST", "/api/v1/datasets", ward.tokens["cora"], json=declared)
    assert made.status_code == 201, made.text
    person = ward.person("eve", formulas="analyst")
    ward.tokens["eve"] = ward.token("eve")
    ward.service.ledger.create_account(f"formulas/{person}/1", parent="formulas", budget=tc.Budget(epsilon=2))
    with ward.service.database.change() as change:
        change.run(
            "INSERT INTO accounts (name, dataset, person, purpose, created)"
            " VALUES (?, 'formulas', ?, 'x', '')",
            f"formulas/{person}/1", person,
        )  # fmt: skip
    asked = ward.ask("eve", dataset="formulas", sql=GROUPED.replace("visits", "formulas"))
    assert asked.status_code == 202, asked.text
    ward.drawing.answer()
    release = ward.get(f"/queries/{asked.json()['query']}", "eve").json()["release"]
    import csv

    lines = list(csv.reader(io.StringIO(ward.get(f"/releases/{release}.csv", "eve").text, newline="")))
    texts = [*lines[0], *(line[0] for line in lines[1:])]
    assert {"'=cmd", "'@n", "'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\tx", "'\rx", "ICU"} <= set(texts)
    assert not [text for text in texts if text[0] in "=+-@\t\r"]
    page = ward.call("GET", f"/releases/{release}", ward.tokens["eve"])
    assert page.status_code == 200
    kept = ward.get(f"/releases/{release}", "eve").json()
    assert set(kept["keys"]["=cmd"]) == set(FORMULAS)


def test_markup_in_keys_and_names_is_shown_as_text(ward):
    asked = ward.ask(sql='SELECT COUNT(*) AS "<script>x</script>" FROM visits')
    assert asked.status_code == 202, asked.text
    ward.drawing.answer()
    query = asked.json()["query"]
    release = ward.get(f"/queries/{query}").json()["release"]
    for path in (f"/queries/{query}", f"/releases/{release}", "/queries", "/releases"):
        page = ward.call("GET", path, ward.tokens["ana"])
        assert page.status_code == 200
        assert "<script>x" not in page.text
    picture = ward.get(f"/releases/{release}.svg").text
    assert "<script" not in picture


def test_the_page_of_a_long_answer_shows_its_first_lines_and_says_how_many_more_there_are(ward):
    keys = {"hospital": [f"k{number:04}" for number in range(1200)]}
    sql = "SELECT hospital, COUNT(*) AS n FROM visits GROUP BY hospital"
    query = ward.ask(sql=sql, keys=keys).json()["query"]
    ward.drawing.answer()
    release = ward.get(f"/queries/{query}").json()["release"]
    page = ward.call("GET", f"/releases/{release}", ward.tokens["ana"]).text
    assert "700 more lines are in the downloads." in page
    assert "k0499" in page
    assert "k0500" not in page
    assert len(ward.get(f"/releases/{release}.csv").text.splitlines()) == 1201


def test_lists_read_the_document_of_a_release_once(ward):
    query = ward.ask().json()["query"]
    ward.drawing.answer()
    release = ward.get(f"/queries/{query}").json()["release"]
    listed = ward.get("/releases").json(), ward.get("/datasets/visits/publish", "cem").json()
    assert [one["columns"] for one in listed[0]["releases"]] == [["n"]]
    assert [one["words"] for one in listed[1]["releases"]] == ["n"]
    with ward.service.database.change() as change:
        change.run("UPDATE releases SET document = 'unread' WHERE id = ?", release)
    assert (ward.get("/releases").json(), ward.get("/datasets/visits/publish", "cem").json()) == listed


def test_a_release_is_dated_by_the_time_of_its_answer_and_not_by_when_it_was_written(ward):
    """When the row is written depends on what else the processes compute, to the microsecond."""
    from tacit.service._times import moment_text

    ward.ask()
    [flight] = ward.drawing.admit()
    ward.drawing.land()
    [release] = ward.get("/releases").json()["releases"]
    assert release["created"] == moment_text(flight.slot.answer_at)
    assert ward.get(f"/releases/{release['release']}").json()["created"] == release["created"]


def test_without_pyarrow_parquet_is_refused_and_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(_releases, "lines_of", lambda _: object())
    with pytest.raises(tc.TacitError) as refused:
        _releases.parquet_bytes({})
    assert refused.value.code == "missing-extra"


def test_the_extra_of_the_service_has_what_its_downloads_need():
    text = (Path(__file__).parents[4] / "pyproject.toml").read_text(encoding="utf-8")
    extra = tomllib.loads(text)["project"]["optional-dependencies"]["service"]
    assert any(one.startswith("pyarrow") for one in extra)
