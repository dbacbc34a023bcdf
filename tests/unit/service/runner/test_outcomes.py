"""After a crash: no answer without its charge, nothing stored is lost, nothing is charged twice."""

import contextlib
import multiprocessing
import os
import random
import signal
import time
from fractions import Fraction
from pathlib import Path

import pytest

from tacit.service.runner import serve_runner
from unit.service.conftest import Drawing, House
from unit.service.runner.conftest import COUNT, DECLARED, allot


def charged(ward, query):
    return ward.service.ledger.keyed_receipt(ward.accounts["ana"], f"q:{query}") is not None


def restarted(ward):
    """Start another runner, as after a crash."""
    ward.drawing.runner.close()
    ward.again = Drawing(ward.service.settings)
    ward.again.clock.move(ward.drawing.clock.time)
    return ward.again


@pytest.fixture(autouse=True)
def close_the_second(request):
    yield
    ward = request.node.funcargs.get("ward")
    if ward is not None and hasattr(ward, "again"):
        ward.again.close()


def state(ward, query):
    return ward.get(f"/queries/{query}").json()


def test_a_charge_without_an_answer_is_spent_and_never_drawn_again(ward):
    query = ward.ask().json()["query"]
    [flight] = ward.drawing.admit()
    ward.drawing.until(lambda: flight.slot.start_at in ward.drawing.clock.asleep)
    flight.child.kill()
    again = restarted(ward)
    assert charged(ward, query)
    assert state(ward, query)["state"] == "running"  # nobody is told before the time of its answer
    again.move(flight.slot.answer_at)
    found = state(ward, query)
    assert (found["state"], found["problem"]["code"]) == ("spent", "spent")
    again.answer()
    assert state(ward, query)["state"] == "spent"
    assert len([e for e in ward.service.ledger.history() if e.kind == "draw"]) == 1


def test_a_stored_answer_is_found_and_not_charged_again(ward):
    query = ward.ask().json()["query"]
    ward.drawing.answer()
    with ward.service.database.change() as change:  # as if the runner had ended before it wrote the outcome
        change.run("UPDATE queries SET state = 'running', release = '' WHERE id = ?", query)
        change.run("DELETE FROM releases")
    head = ward.service.ledger.head
    restarted(ward)
    found = state(ward, query)
    assert found["state"] == "finished"
    assert ward.get(f"/releases/{found['release']}").status_code == 200
    assert ward.service.ledger.head == head


def test_a_stored_answer_is_served_although_a_later_policy_does_not_allow_its_question(ward):
    stay = "SELECT AVG(length_of_stay) AS stay FROM visits"
    query = ward.ask(sql=stay).json()["query"]
    ward.drawing.answer()
    release = ward.get(f"/releases/{state(ward, query)['release']}").json()
    changed = ward.call(
        "POST", "/api/v1/datasets/visits/policies", ward.tokens["cora"],
        json={"bounds": {"age": ["0", "120"]}, "never_null": [], "title": "Visits"},
    )  # fmt: skip
    assert changed.status_code in {200, 201}, changed.text
    with ward.service.database.change() as change:  # as if the runner had ended before it wrote the outcome
        change.run("UPDATE queries SET state = 'running', release = '' WHERE id = ?", query)
        change.run("DELETE FROM releases")
    head = ward.service.ledger.head
    restarted(ward)
    found = state(ward, query)
    assert found["state"] == "finished"
    assert ward.get(f"/releases/{found['release']}").json()["columns"] == release["columns"]
    assert ward.service.ledger.head == head
    assert ward.ask(sql=stay, epsilon="1/4").status_code >= 400  # the later policy has no bounds for it


def test_what_was_never_charged_waits_again(ward):
    query = ward.ask().json()["query"]
    with ward.service.database.change() as change:  # as if the runner had ended before it told the process
        change.run("UPDATE queries SET state = 'running', admitted = 1, answer_at = 1.0 WHERE id = ?", query)
    again = restarted(ward)
    assert state(ward, query)["state"] == "waiting"
    again.answer()
    assert state(ward, query)["state"] == "finished"


class RealRunner:
    """The runner as a process that can be killed."""

    def __init__(self, settings):
        self.settings, self.process = settings, None
        self.start()

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=serve_runner, args=(self.settings,), daemon=False)
        self.process.start()

    def children(self):
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in listed if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def kill(self):
        self.process.kill()
        self.process.join()


def kills(house, rounds, seed):
    """Ask while the runner and its processes are killed; return the queries and how often each was killed."""
    rng, runner, queries = random.Random(seed), RealRunner(house.service.settings), []
    try:
        house.person("cora", everywhere="curator")
        made = house.call("POST", "/api/v1/datasets", house.token("cora"), json=DECLARED | {
            "budget": {"epsilon": "900"}})  # fmt: skip
        assert made.status_code == 201, made.text
        house.person("ana", visits="analyst")
        house.accounts, token = {"ana": allot(house, "ana", epsilon=900)}, house.token("ana")
        house.get = lambda path: house.call("GET", f"/api/v1{path}", token)

        def ask():
            answer = house.call(
                "POST", "/api/v1/queries", token, json={**COUNT, "epsilon": f"1/{len(queries) + 2}"}
            )
            if answer.status_code == 202:
                queries.append(answer.json()["query"])
            with house.service.database.change() as change:  # the curator resumes it
                change.run("UPDATE datasets SET paused = ''")

        for number in range(rounds):
            for _ in range(4):
                ask()
            time.sleep(rng.random() * 3)
            victims = runner.children()
            if number % 2 and victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rng.choice(victims), signal.SIGKILL)
            else:
                runner.kill()
                runner.start()
        end = time.monotonic() + 240
        while time.monotonic() < end:
            states = [state(house, query)["state"] for query in queries]
            if not {"waiting", "running"} & set(states):
                if "finished" in states:
                    break
                ask()  # a busy machine may have been late each time
            with house.service.database.change() as change:
                change.run("UPDATE datasets SET paused = ''")
            time.sleep(0.3)
    finally:
        runner.process.terminate()
        runner.process.join(30)
        runner.kill()
    return queries, states


@pytest.fixture
def settings(settings):
    return type(settings)(
        folder=settings.folder, sources=settings.sources, tick=Fraction(1, 10), lag=20, width=4, memory=1024
    )


def check_kills(house: House, rounds: int, seed: int) -> None:
    queries, states = kills(house, rounds, seed)
    ledger = house.service.ledger
    assert set(states) <= {"finished", "failed", "spent"}
    assert "finished" in states
    draws = [e for e in ledger.history() if e.kind == "draw"]
    assert len({e.key for e in draws}) == len(draws) == len(queries)  # each charged exactly once
    for query, found in zip(queries, states, strict=True):
        assert charged(house, query)
        document = state(house, query)
        stored = ledger.stored_release("visits", document["plan"]) is not None
        if found == "finished":
            assert stored
            assert house.get(f"/releases/{document['release']}").status_code == 200
        if found == "spent":
            assert not stored
    assert ledger.verify().ok


@pytest.mark.long
@pytest.mark.parametrize(("rounds", "seed"), [(3, 18), (30, 81)])
def test_random_kills_lose_nothing_that_was_stored(house, rounds, seed):
    check_kills(house, rounds, seed)
