"""The client and an assistant against the real service: the library's plans, one charge, the same errors."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

import tacit as tc
from support.pages import blocks
from tacit import TacitError
from tacit.client import AssistantTools
from tacit.tables import EXAMPLE_HOSPITALS, example_visits

Served = pytest.importorskip("support.served").Served

QUESTION = (
    "SELECT hospital, COUNT(*) AS n, AVG(length_of_stay) AS stay FROM visits WHERE age > 40.5"
    " GROUP BY hospital ORDER BY n DESC LIMIT 5"
)
FACTS = {
    "unit": "patient_id",
    "bounds": {"length_of_stay": [0, 30]},
    "keys": {"hospital": list(EXAMPLE_HOSPITALS)},
}
PAGE = Path(__file__).parents[2] / "docs/howto/connect_to_a_service.md"


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Return a running service with a dataset and an allotment, and the tokens of Ana and Ben, analysts."""
    service = Served(tmp_path_factory.mktemp("served")).start()
    service.person("cleo", everywhere="owner curator")
    for name in ("ana", "ben"):
        service.person(name, visits="analyst")
    curator = service.token("cleo")
    declared = {
        **FACTS,
        "name": "visits",
        "source": "visits",
        "title": "Visits",
        "budget": {"epsilon": "5"},
        "lag": 120,
    }
    status, made = service.call("POST", "/api/v1/datasets", curator, declared)
    assert status == 201, made
    given = {"person": service.people["ana"], "epsilon": "2", "purpose": "monthly report"}
    status, made = service.call("POST", "/api/v1/datasets/visits/accounts", curator, given)
    assert status == 201, made
    yield service, service.token("ana"), service.token("ben"), curator
    service.stop()


@pytest.fixture
def connection(people):
    service, ana, _, _ = people
    with tc.connect(service.url, token=ana) as made:
        yield made


def test_a_question_is_planned_here_and_answered_there(connection):
    data = connection["visits"]
    local = tc.protect(
        {"visits": example_visits()}, name="visits", unit="patient_id", bounds={"length_of_stay": (0, 30)},
        keys={"hospital": EXAMPLE_HOSPITALS}, budget=tc.Budget(epsilon=1),
    )  # fmt: skip
    assert data.columns == local.columns
    plan = data.sql(QUESTION).plan(epsilon=0.25)
    assert plan.forecast == local.sql(QUESTION).plan(epsilon=0.25).forecast
    assert plan.stored() is None
    before = data.remaining
    release = plan.release(purpose="monthly report", key="client-1")
    assert len(release) == 5
    assert release.certificate.plan == plan.hash
    assert all(low <= high for low, high in zip(release["n"].low, release["n"].high, strict=True))
    assert data.remaining.epsilon == before.epsilon - plan.promised["epsilon"]
    for again in (plan.stored(), plan.release(), plan.release(key="client-1"), plan.release(key="client-2")):
        assert again.to_json() == release.to_json()
    assert data.remaining.epsilon == before.epsilon - plan.promised["epsilon"]
    assert connection.card(plan)["stored"]["paid"] is True
    [asked, *_] = connection.answers("visits")
    assert (asked["state"], asked["plan"]) == ("finished", plan.hash)
    assert connection.release(asked["release"]).to_json() == release.to_json()


def test_a_batch_is_planned_here_and_answered_there_with_one_charge(connection):
    data = connection["visits"]
    asked = tc.batch(all=data.agg(n=tc.count()), wards=data.group_by("hospital").agg(n=tc.count()))
    plan = asked.plan(epsilon=0.25)
    before = data.remaining.epsilon
    release = plan.release(purpose="monthly report", key="batch-1")
    assert before - data.remaining.epsilon == plan.promised["epsilon"]
    assert release.certificate.plan == plan.hash
    assert len(release["wards"]) == len(EXAMPLE_HOSPITALS)
    assert plan.stored()["all"].value == release[0].value
    assert connection.card(plan)["plan"] == plan.hash
    many = tc.batch(*(data.where(f"age > {i}").agg(n=tc.count()) for i in range(65))).plan(epsilon=0.25)
    with pytest.raises(TacitError, match="more than 64 columns"):
        many.release(purpose="monthly report")


def test_a_book_of_tables_is_planned_here_and_answered_there(people, connection):
    """Cross tables, running totals and a survival curve in one batch: on the page and in the file."""
    data = connection["visits"]
    asked = tc.batch(
        book=data.crosstabs(["hospital", "length_of_stay"], up_to=2, bins={"length_of_stay": 3}),
        stays=data.prefixes("length_of_stay", bins=10),
        curve=data.limit(rows=1)
        .with_columns(out="length_of_stay < 20")
        .survival(time="length_of_stay", event="out", bins=range(0, 21, 4)),
    )
    plan = asked.plan(epsilon=0.06)
    release = plan.release(purpose="monthly report", key="book-1")
    assert release.certificate.plan == plan.hash
    assert len(release["book"].tables[("hospital", "length_of_stay")]) == 9 * 4
    assert release["stays"].quantile(0.5)["length_of_stay"].low[0] >= 0
    service, ana, _, _ = people
    [found, *_] = connection.answers("visits")
    status, page = service.call("GET", f"/releases/{found['release']}", ana)
    assert status == 200
    assert "book: hospital x length_of_stay" in page
    status, lines = service.call("GET", f"/api/v1/releases/{found['release']}.csv", ana)
    assert status == 200
    assert "stays: running totals" in lines
    with pytest.raises(TacitError, match="at most 200 are allowed"):
        data.prefixes("length_of_stay", bins=300).plan(epsilon=0.01).release(purpose="monthly report")


def test_many_kinds_of_questions_are_rebuilt_there(connection):
    """The plan's document crosses the strict reading of bodies unchanged."""
    data = connection["visits"]
    plans = [
        data.agg(n=tc.count(), u=tc.count_units()).plan(rho=0.001),
        data.agg(m=tc.mean("length_of_stay")).plan(within=3, size=10_000, confidence=0.9),
        data.group_by(year="EXTRACT(year FROM admitted)", keys=[2023, 2024])
        .agg(n=tc.count()).plan(epsilon=0.01),
        data.where("age BETWEEN 20.5 AND 30 OR NOT (icd LIKE 'I%' AND age > 1)")
        .with_columns(nights="LEAST(GREATEST(length_of_stay - 1, 0), 29)")
        .agg(q=tc.quantile("nights", 0.9), h=tc.histogram("age", [0, 18, 65, 120])).plan(epsilon=0.01),
        data.per_unit(n=tc.count()).agg(m=tc.mean("n")).plan(epsilon=0.01),
        data.sql("SELECT icd, COUNT(*) AS n FROM visits GROUP BY icd", keys={"icd": ["I10", "E11"]})
        .plan(epsilon=0.01),
    ]  # fmt: skip
    for plan in plans:
        assert connection.card(plan)["plan"] == plan.hash


def test_refusals_are_those_of_the_library(people, connection):
    service, _, ben, _ = people
    data = connection["visits"]
    with pytest.raises(TacitError) as caught:
        data.agg(n=tc.count()).plan(epsilon=3).release()
    assert caught.value.code == "budget-exceeded"
    with pytest.raises(TacitError) as caught:
        data.agg(n=tc.count()).plan(epsilon=0.01).release(purpose="something else")
    assert caught.value.code == "account-differs"
    with pytest.raises(TacitError) as caught:
        connection.dataset("patients")
    assert (caught.value.code, caught.value.fix.names) == ("not-found", ("visits",))
    with tc.connect(service.url, token=ben) as other, pytest.raises(TacitError) as caught:
        other["visits"].agg(n=tc.count()).plan(epsilon=0.01).release(purpose="x")
    assert caught.value.code == "no-allotment"
    with (
        tc.connect(service.url, token="tct_nobody-of-that-name") as other,
        pytest.raises(TacitError) as caught,
    ):
        other.catalogue()
    assert caught.value.code == "not-signed-in"


def test_an_allotment_is_asked_for_and_given(people):
    service, _, ben, curator = people
    with tc.connect(service.url, token=ben) as connection:
        made = connection.request_allotment("visits", budget=tc.Budget(epsilon=0.5), purpose="thesis")
        assert [(one.name, one.state) for one in connection.requests] == [(made.name, "open")]
        status, decided = service.call("POST", f"/api/v1/requests/{made.name}/approve", curator, {})
        assert status in {200, 201}, decided
        assert [one.state for one in connection.requests] == ["approved"]
        mine = connection.account("visits")
        assert (mine.purpose, str(mine.remaining)) == ("thesis", "epsilon 0.5 of 0.5")
        release = connection["visits"].agg(n=tc.count()).plan(epsilon=0.02).release()
        assert release.low < release.value < release.high


def test_one_plan_is_asked_for_and_paid_for(people):
    service, _, _, curator = people
    service.person("dora", visits="analyst")
    with tc.connect(service.url, token=service.token("dora")) as connection:
        plan, other = (connection["visits"].agg(n=tc.count()).plan(epsilon=e) for e in (0.07, 0.06))
        made = connection.request_plan(plan, purpose="thesis")
        status, decided = service.call("POST", f"/api/v1/requests/{made.name}/approve", curator, {})
        assert status in {200, 201}, decided
        release = plan.release()
        assert release.certificate.plan == plan.hash
        assert plan.stored().to_json() == release.to_json()
        with pytest.raises(TacitError) as caught:
            other.release()
        assert caught.value.code == "no-allotment"


def test_a_killed_worker_loses_no_answer(people, connection):
    """The worker that has the question dies; the client sends it again, and it is charged once."""
    service, data, found = people[0], connection["visits"], []
    before = data.remaining
    plan = data.agg(n=tc.count()).plan(epsilon=0.03)
    asking = threading.Thread(target=lambda: found.append(plan.release()))
    asking.start()
    time.sleep(0.2)
    for worker in service.processes()["worker"]:
        os.kill(worker, signal.SIGKILL)
    asking.join(120)
    assert found[0].certificate.plan == plan.hash
    assert data.remaining.epsilon == before.epsilon - plan.promised["epsilon"]


def test_the_sandbox_is_free(connection):
    before = connection["visits"].remaining
    plan = connection.sandbox("visits").sql(QUESTION).plan(epsilon=100)
    assert plan == connection["visits"].sql(QUESTION).plan(epsilon=100)
    assert "invented" in plan.release().marks[0]
    assert connection["visits"].remaining == before


def test_the_page_about_asking_a_service_runs(people, tmp_path, monkeypatch, capsys):
    service, ana, _, _ = people
    monkeypatch.chdir(tmp_path)
    Path("token.txt").write_text(ana)
    namespace = {"__name__": "__main__"}
    for line, _, body in blocks(PAGE, frozenset({"py"})):
        code = "\n" * (line - 1) + body.replace("https://stats.example.org", service.url)
        exec(compile(code, str(PAGE), "exec"), namespace)
    printed = capsys.readouterr().out
    assert "code: budget-exceeded" in printed
    assert "state='open'" in printed
    assert "finished monthly report" in printed


def test_an_assistant_asks_within_its_allotment(people, tmp_path):
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters

    service, ana, _, _ = people
    (tmp_path / "token").write_text(ana)
    asked = {"dataset": "visits", "sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.05}

    async def talk():
        words = ["-m", "tacit", "mcp", service.url, "--token-file", str(tmp_path / "token")]
        env = {"PYTHONPATH": os.pathsep.join(sys.path)}
        async with Client(StdioServerParameters(command=sys.executable, args=words, env=env)) as assistant:
            shown = await assistant.call_tool("describe_dataset", {"dataset": "visits"})
            assert shown.structured_content["your allotment"]["purpose"] == "monthly report"
            price = await assistant.call_tool("price_question", asked)
            assert price.structured_content["meaning"]
            paid = await assistant.call_tool("ask_question", {**asked, "purpose": "monthly report"})
            assert not paid.is_error, paid.content
            [line] = paid.structured_content["answer"]["lines"]
            assert line["n_low"] < line["n"] < line["n_high"]
            refused = await assistant.call_tool(
                "ask_question", {**asked, "epsilon": 4, "purpose": "monthly report"}
            )
            assert refused.is_error
            assert "budget-exceeded" in refused.content[0].text

    asyncio.run(talk())
    with tc.connect(service.url, token=ana) as connection:
        newest = AssistantTools(connection).stored_answers("visits")["answers"][0]
        assert newest["state"] == "finished"
