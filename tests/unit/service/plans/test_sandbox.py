"""Rehearsals: free, labelled, on rows of the declared schema; the data and the ledger are not involved."""

import asyncio
import csv
import io
import threading
from fractions import Fraction

import httpx
import pytest

import tacit as tc
from tacit.service import _app
from tacit.service.pages import _lessons
from tacit.service.plans import _ask_page
from tacit.tables import rehearsal

SQL = "SELECT hospital, COUNT(*) AS n, AVG(length_of_stay) AS stay FROM visits GROUP BY hospital"
FORM = {"content-type": "application/x-www-form-urlencoded"}


def rehearse(ward, who="ana", **changed):
    body = {"sql": SQL, "epsilon": "4", **changed}
    return ward.call("POST", "/api/v1/datasets/visits/sandbox", ward.tokens[who], json=body)


def test_a_rehearsal_is_answered_at_once_and_changes_nothing(ward):
    head, rows = ward.service.ledger.head, ward.service.database.rows("SELECT * FROM queries")
    release = rehearse(ward).json()["release"]
    assert release["invented"] is True
    assert release["marks"] == ["invented rows"]
    assert "invented rows" in release["note"]
    assert release["keys"]["hospital"] == sorted(tc.tables.EXAMPLE_HOSPITALS)
    assert all(0 <= value <= 60 for value in release["columns"]["stay"]["value"])
    assert "certificate" not in release
    assert (ward.service.ledger.head, ward.service.database.rows("SELECT * FROM queries")) == (head, rows)


def test_a_rehearsal_costs_no_allotment_and_needs_none(ward):
    assert rehearse(ward, "ben", epsilon="100").status_code == 200


def test_the_rows_are_the_same_for_each_policy(ward):
    wide = {"sql": "SELECT COUNT(DISTINCT patient_id) AS n FROM visits", "epsilon": "1000"}
    first, second = (rehearse(ward, **wide).json()["release"]["columns"]["n"]["value"] for _ in range(2))
    assert first == second == [1000]


def test_csv_says_in_every_line_that_rows_are_invented(ward):
    lines = list(csv.reader(io.StringIO(rehearse(ward, do="csv").text)))
    assert lines[0][:2] == ["source", "hospital"]
    assert {line[0] for line in lines[1:]} == {"invented rows"}
    assert len(lines) == 1 + len(tc.tables.EXAMPLE_HOSPITALS)


def test_the_page_says_that_rows_are_invented(ward):
    from urllib.parse import urlencode

    assert "invented rows" in ward.call("GET", "/datasets/visits/sandbox", ward.tokens["ana"]).text
    body = urlencode({"csrf": "", "sql": SQL, "epsilon": "1"})
    page = ward.call("POST", "/datasets/visits/sandbox", ward.tokens["ana"], content=body, headers=FORM)
    assert page.status_code == 200, page.text
    assert "Answer from invented rows" in page.text
    assert "<svg" in page.text
    bad = urlencode({"csrf": "", "sql": "SELECT * FROM visits", "epsilon": "1"})
    page = ward.call("POST", "/datasets/visits/sandbox", ward.tokens["ana"], content=bad, headers=FORM)
    assert page.status_code == 422
    assert "Use this" in page.text


@pytest.mark.parametrize(("who", "status"), [("cem", 403), ("dora", 403), ("zoe", 404), ("adi", 403)])
def test_who_may_rehearse(ward, who, status):
    assert rehearse(ward, who).status_code == status


@pytest.mark.parametrize(
    ("more", "code"),
    [({"sql": "SELECT * FROM visits"}, "not-allowed"), ({"epsilon": None}, "bad-parameter"),
     ({"sql": None}, "bad-parameter"), ({"sql": "SELECT AVG(x) FROM visits"}, "unknown-column")],
)  # fmt: skip
def test_what_cannot_be_planned_cannot_be_rehearsed(ward, more, code):
    answer = rehearse(ward, **more)
    assert answer.json()["code"] == code


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM visits WHERE admitted >= '2024-06-01' AND age > 60",
        "SELECT MEDIAN(age) AS m FROM visits",
        "SELECT icd, COUNT(*) AS n FROM visits GROUP BY icd",
        "SELECT hospital, COUNT(*) AS n FROM visits GROUP BY hospital ORDER BY n DESC LIMIT 3",
    ],
)
def test_the_trial_has_the_same_plans_as_the_data(ward, sql):
    totals = {"epsilon": Fraction(3), "delta": Fraction(1, 10**6)}
    plan = ward.data.sql(sql).plan(**totals)
    trial = rehearsal(ward.data, seed=3, budget=tc.Budget(**totals)).sql(sql).plan(**totals)
    assert trial == plan
    assert trial.release().certificate.plan == plan.hash


def test_a_trial_of_several_tables_with_rho_and_a_public_one(tmp_path):
    for name, text in (
        ("a", "pid,x,ok\n1,2,true\n2,3,false\n"), ("b", "pid,y,ward\n1,2,A\n2,3,B\n"),
        ("wards", "ward,floor\nA,1\nB,2\n"),
    ):  # fmt: skip
        (tmp_path / f"{name}.csv").write_text(text)
    data = tc.protect(
        {"a": tmp_path / "a.csv", "b": tmp_path / "b.csv"}, unit="pid", budget=tc.Budget(rho=1),
        public={"wards": (tmp_path / "wards.csv", "ward")}, bounds={"x": (0, 9), "y": (0, 9)},
        limits={"rows": 2}, name="data",
    )  # fmt: skip
    trial = rehearsal(data, seed=3, budget=tc.Budget(rho=1))
    plan = trial.sql("SELECT SUM(x + y) AS s FROM a JOIN b ON a.pid = b.pid").plan(rho=Fraction(1))
    assert plan.release().value > 0


@pytest.fixture
def efforts(monkeypatch):
    """What callers are charged for their requests, in seconds of a processor."""
    noted = []
    monkeypatch.setattr(_app, "note_effort", lambda *given: noted.append(given[-1]))
    return noted


def test_waiting_for_a_free_thread_is_nobodys_effort(ward, efforts, monkeypatch):
    release = threading.Event()
    pool = _ask_page._rehearsals()
    held = [pool.submit(release.wait, 60) for _ in range(_ask_page._AT_ONCE)]
    monkeypatch.setattr(_ask_page, "_WAIT", 0.05)
    try:
        answer = rehearse(ward)
    finally:
        release.set()
    assert (answer.status_code, answer.json()["code"]) == (429, "too-many-requests")
    assert efforts[-1] < 5
    assert all(one.result(60) for one in held)
    assert rehearse(ward).status_code == 200


def test_visitors_of_the_lab_hold_up_no_rehearsal(ward, monkeypatch):
    release = threading.Event()
    begun = threading.Event()

    def slow(name, epsilon=""):
        begun.set()
        release.wait(60)
        return {}

    monkeypatch.setattr(_lessons, "attack_document", slow)

    async def both():
        transport = httpx.ASGITransport(app=ward.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://house") as client:
            visits = [asyncio.create_task(client.get("/api/v1/learn/attacks/averaging")) for _ in range(60)]
            await asyncio.to_thread(begun.wait, 60)
            asked = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "1/2"}
            headers = {"authorization": f"Bearer {ward.tokens['ana']}"}
            try:
                answer = await asyncio.wait_for(
                    client.post("/api/v1/datasets/visits/sandbox", json=asked, headers=headers), 60
                )
            finally:
                release.set()
            await asyncio.gather(*visits)
            return answer

    assert asyncio.run(both()).status_code == 200
