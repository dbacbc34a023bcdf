"""Failures after the charge: the same bytes whatever went wrong, the charge stays, a late process pauses."""

import json
import multiprocessing
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pytest

from tacit.engines import DuckDB
from tacit.errors import TacitError
from tacit.service import ListedSource
from tacit.service.runner import boundary_after
from tacit.tables import example_visits
from unit.service.runner.conftest import COUNT, DECLARED, allot

CANARY = "ward-of-the-canary"


def shown(ward, query, who="ana"):
    """Return what an analyst sees of a query, without ids and times."""
    answer = ward.get(f"/queries/{query}", who)
    text = re.sub(r"\b[quxr]_[a-z2-7]{16}\b", "ID", answer.text)
    return answer.status_code, re.sub(r'"created":"[^"]*"', "", text)


def failed_by(ward, monkeypatch, error):
    def integers(*_, **__):
        raise error

    ward.drawing.ready()
    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "integers", integers)
        query = ward.ask(epsilon="1/8").json()["query"]
        ward.drawing.answer()
    return query


def test_every_failure_after_the_charge_has_the_same_bytes(ward, monkeypatch):
    errors = [
        ValueError(f"could not convert {CANARY}"), MemoryError(), duckdb.OutOfMemoryException(CANARY),
        TacitError("does-not-fit", CANARY), RecursionError(), OSError(28, CANARY),
    ]  # fmt: skip
    seen = set()
    for error in errors:
        query = failed_by(ward, monkeypatch, error)
        state = ward.get(f"/queries/{query}").json()
        assert (state["state"], state["problem"]["code"]) == ("failed", "release-failed")
        assert CANARY not in ward.get(f"/queries/{query}").text
        assert ward.service.ledger.keyed_receipt(ward.accounts["ana"], f"q:{query}") is not None
        seen.add(shown(ward, query))
        assert "failed while it was computed" in ward.service.dataset("visits").paused  # a bit for each act
        assert ward.ask(epsilon="1/16").json()["code"] == "dataset-paused"
        resume(ward)
    # an overrun: the process is late, is ended, and the answer fails with the same words
    seen.add(shown(ward, overrun(ward, monkeypatch, epsilon="1/8")))
    assert len(seen) == 1, seen


def resume(ward):
    with ward.service.database.change() as change:
        change.run("UPDATE datasets SET paused = '' WHERE name = 'visits'")


def overrun(ward, monkeypatch, more=1.0, **changed):
    """Let a draw compute until its answer is due, and for some seconds more."""
    drawing, ends = ward.drawing, []
    drawing.ready()
    before = DuckDB.integers

    def integers(*given):
        drawing.clock.sleep_until(ends[0])
        return before(*given)

    monkeypatch.setattr(DuckDB, "integers", integers)
    query = ward.ask(**changed).json()["query"]
    [flight] = drawing.admit()
    ends.append(flight.slot.answer_at + more)
    drawing.until(lambda: flight.slot.start_at in drawing.clock.asleep)
    drawing.clock.move(flight.slot.start_at)
    drawing.until(lambda: ends[0] in drawing.clock.asleep)
    if more < 0:
        drawing.clock.move(ends[0])
        drawing.until(lambda: flight.written)
    drawing.move(flight.slot.answer_at)
    drawing.until(lambda: not drawing.runner._flights)
    monkeypatch.setattr(DuckDB, "integers", before)
    return query


def test_a_late_answer_fails_is_charged_and_pauses_the_dataset_until_a_curator_acts(ward, monkeypatch):
    query = overrun(ward, monkeypatch)
    assert ward.get(f"/queries/{query}").json()["state"] == "failed"
    assert str(ward.service.ledger.remaining(ward.accounts["ana"])) == "epsilon 1.5 of 2"
    paused = ward.service.dataset("visits").paused
    assert "not ready at its time" in paused
    refused = ward.ask(epsilon="1/4")
    assert (refused.status_code, refused.json()["code"]) == (503, "dataset-paused")
    ward.drawing.clock.move(ward.drawing.clock.time + 10)  # the late draw ends, and is not stored
    plan = ward.get(f"/queries/{query}").json()["plan"]
    assert ward.service.ledger.stored_release("visits", plan) is None
    resume(ward)
    query = ward.ask(epsilon="1/4").json()["query"]
    ward.drawing.answer()
    assert ward.get(f"/queries/{query}").json()["state"] == "finished"


def test_an_answer_that_comes_between_the_times_of_storing_and_of_answers_pauses_the_dataset_too(
    ward, monkeypatch
):
    """Else a question that takes about as long as it may would show one bit of its time for each charge."""
    query = overrun(ward, monkeypatch, more=-0.2)
    assert ward.get(f"/queries/{query}").json()["state"] == "failed"
    assert ward.ask(epsilon="1/4").json()["code"] == "dataset-paused"
    assert "not ready when it had to be stored" in ward.service.dataset("visits").paused


def test_a_failure_pauses_nothing_before_its_answer_is_due(ward, monkeypatch):
    ward.drawing.ready()
    monkeypatch.setattr(DuckDB, "integers", lambda *_: 1 / 0)
    ward.ask(epsilon="1/8")
    [flight] = ward.drawing.admit()
    ward.drawing.until(lambda: flight.slot.start_at in ward.drawing.clock.asleep)
    ward.drawing.clock.move(flight.slot.store_at)
    ward.drawing.until(lambda: flight.written)
    ward.drawing.move(flight.slot.answer_at - 0.01)
    assert not ward.service.dataset("visits").paused
    ward.drawing.move(flight.slot.answer_at)
    assert ward.service.dataset("visits").paused


def test_analysts_are_not_told_why_the_runner_paused_a_dataset(ward):
    """Late, out of memory or not to be opened: which one it was depends on the data."""
    from tacit.service._service import ENDED, FAILED, LATE, UNOPENED

    pages = ("/api/v1/datasets/visits", "/datasets/visits", "/api/v1/datasets/visits/ask")
    seen = set()
    for why in (LATE, FAILED, ENDED, UNOPENED):
        with ward.service.database.change() as change:
            change.run("UPDATE datasets SET paused = ? WHERE name = 'visits'", why)
        for path in pages:
            answer = ward.call("GET", path, ward.tokens["ana"], headers={"accept": "text/html"})
            assert why.split(",")[0] not in answer.text
        seen.add(ward.get("/datasets/visits").json()["paused"])
        assert ward.get("/datasets/visits", "cem").json()["paused"] == why
    assert len(seen) == 1
    with ward.service.database.change() as change:
        change.run("UPDATE datasets SET paused = 'We move.' WHERE name = 'visits'")
    assert ward.get("/datasets/visits").json()["paused"] == "We move."


def test_whoever_looks_at_the_time_of_an_answer_sees_the_failure(ward, monkeypatch):
    """A worker does not wait for the runner to say that an answer is late."""
    query = ward.ask().json()["query"]
    [flight] = ward.drawing.admit()
    with ward.drawing.lock:  # the runner is busy
        ward.drawing.clock.move(flight.slot.answer_at - 0.001)
        assert ward.get(f"/queries/{query}").json()["state"] == "running"
        ward.drawing.clock.move(flight.slot.answer_at)
        assert ward.get(f"/queries/{query}").json()["state"] == "failed"
    ward.drawing.move(flight.slot.answer_at)
    assert not ward.drawing.runner._flights
    assert ward.get(f"/queries/{query}").json()["state"] == "failed"


@pytest.fixture
def settings(settings, tmp_path):
    """Neighbours of the example: one person more, with NaN, with a text of 1 MB, or with very many rows."""
    con = duckdb.connect()
    con.execute(f"CREATE TABLE v AS SELECT * FROM '{example_visits()}'")
    columns = "age, length_of_stay, admitted"
    more = {
        "copy": "",
        "nan": "SELECT 999999999, 'Ahorn', 'C50', 'NaN'::DOUBLE, 'NaN'::DOUBLE, DATE '2024-01-01'",
        "text": "SELECT 999999999, repeat('x', 1000000), repeat('=1+1', 250000), 3, 4, NULL",
        "heavy": f"SELECT 999999999, hospital, icd, {columns} FROM v, range(20)",
    }
    listed = dict(settings.sources)
    for name, rows in more.items():
        path = tmp_path / f"{name}.parquet"
        con.execute(
            f"COPY (SELECT * FROM v {'UNION ALL ' + rows if rows else ''}) TO '{path}' (FORMAT parquet)"
        )
        listed[name] = ListedSource(name, str(path))
    return type(settings)(folder=settings.folder, sources=listed)


def test_neighbours_are_told_apart_by_nothing_but_noise(ward):
    """Status, headers, the form of the document and the time of the answer are those of the public facts."""
    seen, slots = set(), set()
    for name in ("copy", "nan", "text", "heavy"):
        made = ward.call(
            "POST", "/api/v1/datasets", ward.tokens["cora"], json={**DECLARED, "name": name, "source": name}
        )
        assert made.status_code == 201, made.text
        person = ward.person(f"ana-{name}", **{name: "analyst"})
        ward.tokens[name] = ward.token(f"ana-{name}")
        account = f"{name}/{person}/1"
        import tacit as tc

        ward.service.ledger.create_account(account, parent=name, budget=tc.Budget(epsilon=2))
        with ward.service.database.change() as change:
            change.run(
                "INSERT INTO accounts (name, dataset, person, purpose, created) VALUES (?, ?, ?, 'care', '')",
                account, name, person,
            )  # fmt: skip
        for sql in (COUNT["sql"], "SELECT hospital, AVG(length_of_stay) AS s FROM visits GROUP BY hospital"):
            asked = ward.ask(name, dataset=name, sql=sql.replace("visits", name))
            assert asked.status_code == 202, asked.text
            [flight] = ward.drawing.admit()
            slots.add(flight.slot.answer_at - flight.slot.admitted * 0.5)
            ward.drawing.land()
            query = ward.get(f"/queries/{asked.json()['query']}", name)
            release = ward.get(f"/releases/{query.json()['release']}", name)
            shape = {key: type(value).__name__ for key, value in release.json().items()}
            keys = json.dumps([release.json()["keys"], list(release.json()["columns"]), shape])
            headers = {n for n in release.headers if n != "content-length"}
            seen.add((sql, query.json()["state"], release.status_code, keys, tuple(sorted(headers))))
    assert len(seen) == 2, seen
    assert len(slots) == 1


def test_a_process_that_ends_leaves_charged_draws_failed_and_uncharged_ones_waiting(ward):
    query = ward.ask().json()["query"]
    [flight] = ward.drawing.admit()
    ward.drawing.until(lambda: flight.slot.start_at in ward.drawing.clock.asleep)  # charged
    flight.child.kill()
    ward.drawing.move(flight.slot.answer_at)
    assert ward.get(f"/queries/{query}").json()["state"] == "failed"
    assert "lack of memory" in ward.service.dataset("visits").paused


def test_a_source_that_cannot_be_prepared_pauses_its_dataset(ward, monkeypatch):
    def broken(_):
        raise duckdb.OutOfMemoryException(CANARY)

    monkeypatch.setattr(DuckDB, "prepare", broken)
    made = ward.call("POST", "/api/v1/datasets", ward.tokens["cora"], json={**DECLARED, "name": "second"})
    assert made.status_code == 201
    ward.person("eve", second="analyst")
    ward.tokens["eve"] = ward.token("eve")
    account = allot(ward, "eve").replace("visits", "second")
    import tacit as tc

    ward.service.ledger.create_account(account, parent="second", budget=tc.Budget(epsilon=2))
    with ward.service.database.change() as change:
        change.run("UPDATE accounts SET name = ?, dataset = 'second' WHERE person = ?", account,
                   ward.people["eve"])  # fmt: skip
    assert ward.ask("eve", dataset="second", sql="SELECT COUNT(*) AS n FROM second").status_code == 202
    ward.drawing.admit()
    ward.drawing.admit()
    assert "could not be opened" in ward.service.dataset("second").paused


def test_nobody_sees_when_a_process_ended_before_its_answers_are_due(ward, monkeypatch):
    """When a process runs out of memory depends on the data; for others it goes on as if it computed."""
    reading, ended = DuckDB.transaction, threading.Event()

    def transaction(engine):
        if ended.is_set():
            return reading(engine)
        ended.set()  # a thread cannot be killed as a process can; it reads, computes and stores nothing
        raise MemoryError

    query = ward.ask().json()["query"]
    [flight] = ward.drawing.admit()
    ward.drawing.until(lambda: flight.slot.start_at in ward.drawing.clock.asleep)  # charged
    monkeypatch.setattr(DuckDB, "transaction", transaction)
    with ward.drawing.lock:
        flight.child.connection.close()
        ward.drawing.runner.listen()
    assert flight.child.state == "dead"
    other = ward.ask("ben", epsilon="1/4").json()["query"]
    [second] = ward.drawing.admit()
    assert ward.get(f"/queries/{other}", "ben").json()["state"] == "running"
    ward.drawing.move(flight.slot.answer_at)
    assert ended.wait(60)
    assert ward.get(f"/queries/{query}").json()["state"] == "failed"
    assert "lack of memory" in ward.service.dataset("visits").paused
    assert ward.get(f"/queries/{other}", "ben").json()["state"] == "running"
    ward.drawing.move(second.slot.answer_at)
    assert ward.get(f"/queries/{other}", "ben").json()["state"] == "waiting"
    assert ward.service.ledger.keyed_receipt(ward.accounts["ben"], f"q:{other}") is None
    resume(ward)
    ward.drawing.answer()
    assert ward.get(f"/queries/{other}", "ben").json()["state"] == "finished"
    assert ward.service.ledger.stored_release("visits", flight.plan) is None


def test_a_preparation_that_fails_is_seen_at_a_rung_of_the_ladder_only(ward, monkeypatch):
    """How long it took until the memory was full depends on the data."""

    def broken(_):
        raise duckdb.OutOfMemoryException(CANARY)

    monkeypatch.setattr(DuckDB, "prepare", broken)
    ward.drawing.runner._children.clear()
    ward.ask()
    clock, tick = ward.drawing.clock, float(ward.drawing.tick)
    ward.drawing.move(boundary_after(clock.time, ward.drawing.tick) * tick)
    [child] = ward.drawing.runner._children.values()
    ward.drawing.until(lambda: child.state == "unprepared")
    for _ in range(7):
        ward.drawing.move(boundary_after(clock.time, ward.drawing.tick) * tick)
        assert not ward.service.dataset("visits").paused
    ward.drawing.move(boundary_after(clock.time, ward.drawing.tick) * tick)
    ward.drawing.move(boundary_after(clock.time, ward.drawing.tick) * tick)
    assert ward.service.dataset("visits").paused


def test_large_answers_that_are_ready_at_the_same_time_reach_the_runner_whole(monkeypatch):
    """All draws of a boundary are stored at one time; parts of two messages must not be mixed."""
    from tacit.service.runner import _dataset_process as process

    mine, its = multiprocessing.Pipe()
    monkeypatch.setattr(
        process, "draw", lambda _, task: process.DrawOutcome(task, "finished", {"text": task * 300_000})
    )
    speak = process.Speaker(its)
    told = [f"{number:x}" for number in range(16)]
    threads = [threading.Thread(target=process._answer, args=(speak, None, one)) for one in told]
    for thread in threads:
        thread.start()
    heard = {}
    for _ in told:
        assert mine.poll(20)
        said, outcome = mine.recv()
        heard[outcome.query] = (said, outcome.document["text"])
    assert heard == {one: ("drawn", one * 300_000) for one in told}


def test_ending_a_process_does_not_hold_up_other_datasets():
    """How long a killed process takes to give its memory back depends on the data; nobody waits for it."""
    from tacit.service.runner._dataset_process import _Process

    joined, let_go = threading.Event(), threading.Event()

    class Slow:
        def kill(self):
            """Nothing is there to be killed."""

        def join(self, _):
            let_go.wait(60)
            joined.set()

    worker = _Process.__new__(_Process)
    worker.process = Slow()
    worker.kill()
    assert not joined.is_set()
    let_go.set()
    assert joined.wait(60)


def _panicking(settings, opening, connection):
    """Serve a dataset in this process, with an engine that writes a value to standard error and aborts."""
    from tacit.service.runner import _dataset_process as process

    def panic(_):
        os.write(1, CANARY.encode())
        os.write(2, CANARY.encode())
        os.abort()

    DuckDB.prepare = panic
    process.serve_dataset(connection, settings, opening, limited=True)


def test_what_a_process_that_has_the_data_writes_as_it_ends_is_in_no_log(settings, capfd):
    """Libraries that are not Python print the value at which they fail."""
    from tacit.service.runner._dataset_process import Opening

    settings.folder.mkdir()
    policy = {"kind": "table", **{name: one for name, one in DECLARED.items() if name != "name"}}
    mine, its = multiprocessing.Pipe()
    made = multiprocessing.get_context("spawn").Process(
        target=_panicking, args=(settings, Opening("visits", "table", 1, policy), its)
    )
    made.start()
    its.close()
    assert mine.recv()[0] == "opened"
    made.join(60)
    assert made.exitcode == -6
    assert CANARY not in "".join(capfd.readouterr())


def test_a_late_change_of_a_policy_leaves_the_process_that_draws(ward, monkeypatch):
    path, runner = "/api/v1/datasets/visits/policies", ward.drawing.runner
    body = {"bounds": DECLARED["bounds"], "keys": DECLARED["keys"]}
    tell, asked = ward.service.tell_runner, ""

    def change_first(kind, document):
        """Let another curator change the policy, and ask, after this one has read which one it is."""
        nonlocal asked
        if kind == "open" and document["policy"]["title"] == "late" and not asked:
            with ThreadPoolExecutor(1) as pool:
                first = pool.submit(
                    ward.call, "POST", path, ward.tokens["cora"], json={**body, "title": "first"}
                )
                assert first.result().status_code == 201
                asked = pool.submit(ward.ask).result().json()["query"]
            assert ward.drawing.admit() or ward.drawing.admit()
        return tell(kind, document)

    monkeypatch.setattr(ward.service, "tell_runner", change_first)
    late = ward.call("POST", path, ward.tokens["cem"], json={**body, "title": "late"})
    assert (late.status_code, late.json()["code"]) == (409, "already-decided"), late.text
    assert runner._flights[asked].child is runner._children["visits", 2]
    ward.drawing.land()
    assert ward.get(f"/queries/{asked}").json()["state"] == "finished"
    assert ward.get("/datasets/visits").json()["paused"] == ""
