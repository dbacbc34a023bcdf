"""Streams in a service: days arrive at public times, a series is charged once and drawn day by day."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta

import pytest

import tacit as tc
from support.html_checks import check_forms, findings
from tacit.core import Release
from tacit.errors import TacitError
from tacit.ledger import LedgerRun
from tacit.service import ListedSource
from tacit.service._service import Service
from tacit.service._times import now_text
from tacit.service.curation._wizard import _START, given_policy, state_of_policy
from tacit.service.plans import plan_cache, plan_of
from tacit.service.plans._cards import PlanCache
from tacit.service.runner import _arrivals as day_files
from tacit.service.runner import now
from tacit.service.runner._clock import TimedRun
from tacit.streams import hosted_stream
from tacit.streams._planning import MEASURES
from unit.service.conftest import Drawing
from unit.service.curation.test_pages import Browser, step

STREAM = {
    "name": "flu", "source": "flu", "unit": "pid per day", "budget": {"epsilon": "5"}, "title": "Flu",
    "keys": {"region": ["north", "south"]}, "bounds": {"temp": ["30", "45"]}, "limits": {"rows": 2},
    "types": {"result": "text"}, "declared": {"start": "2026-01-01", "days": 30},
}  # fmt: skip
SERIES = {"measure": "count", "by": "region", "where": "result = 'positive'"}
CANARY = "canary-93417"


def day(number):
    return f"2026-01-{number:02d}"


def write_day(folder, number, rows=40):
    lines = [f"p{one},{('north', 'south')[one % 2]},{36 + number / 10},positive\n" for one in range(rows)]
    (folder / f"{day(number)}.csv").write_text("pid,region,temp,result\n" + "".join(lines))


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "flu"
    folder.mkdir()
    for number in range(1, 5):
        write_day(folder, number)
    return folder


@pytest.fixture
def settings(settings, files):
    listed = {
        "flu": ListedSource("flu", str(files), kind="stream", several=True),
        "gone": ListedSource("gone", str(files / "gone"), kind="stream"),
    }
    return type(settings)(folder=settings.folder, sources={**settings.sources, **listed})


def allot(house, name, number=1, epsilon=2):
    account = f"flu/{house.people[name]}/{number}"
    house.service.ledger.create_account(account, parent="flu", budget=tc.Budget(epsilon=epsilon))
    with house.service.database.change() as change:
        change.run(
            "INSERT INTO accounts (name, dataset, person, purpose, created) VALUES (?, 'flu', ?, 'care', ?)",
            account, house.people[name], now_text(),
        )  # fmt: skip
    return account


@pytest.fixture
def place(house, drawing):
    """The service with the stream ``flu``, opened by the runner; ana and ben have allotments."""
    house.drawing = drawing
    house.person("cora", everywhere="curator")
    for name, role in {"ana": "analyst", "ben": "analyst", "dora": "auditor"}.items():
        house.person(name, flu=role)
    house.person("zoe", other="analyst")
    house.tokens = {name: house.token(name) for name in house.people}
    house.get = lambda path, who="ana": house.call("GET", f"/api/v1{path}", house.tokens[who])
    house.post = lambda path, body, who="ana", **more: house.call(
        "POST", f"/api/v1{path}", house.tokens[who], json=body, **more
    )
    made = house.post("/datasets", STREAM, "cora")
    assert made.status_code == 201, made.text
    house.accounts = {name: allot(house, name) for name in ("ana", "ben")}
    drawing.ready()
    return house


def take(place, number, who="cora", shown=True):
    found = place.post("/datasets/flu/days", {"through": day(number)}, who)
    if found.status_code in {201, 303} and shown:
        place.drawing.move(now() + 8 * float(place.drawing.tick))
    return found


def ask(place, number, who="ana", key="", epsilon="1", **changed):
    arguments = {**SERIES, **({"through": day(number)} if number else {}), **changed}
    body = {"dataset": "flu", "method": "series", "epsilon": epsilon, "arguments": arguments}
    return place.post("/queries", body, who, headers={"idempotency-key": key} if key else {})


def drawn(place, number, who="ana", **changed):
    asked = ask(place, number, who, **changed)
    assert asked.status_code == 202, asked.text
    place.drawing.answer()
    query = place.get(f"/queries/{asked.json()['query']}", who).json()
    assert query["state"] == "finished", query
    return place.get(f"/releases/{query['release']}", who).json()


def days_of(release):
    return Release.from_json(release["document"]).content.to_dict()


def entries(place, *kinds):
    return [one.kind for one in place.service.ledger.history() if one.kind in kinds]


@pytest.mark.parametrize("stop", ["freeze", "expire"])
def test_a_paid_series_draws_no_more_days_while_its_account_is_stopped(place, stop):
    ledger, account = place.service.ledger, place.accounts["ana"]
    take(place, 1)
    drawn(place, 1)
    take(place, 2)
    told = {"statement": "the approval ended", "who": "cora"}
    if stop == "freeze":
        ledger.freeze(account, **told)
    else:
        ledger.set_expiry(account, datetime.now(UTC) - timedelta(seconds=1), **told)
    head = ledger.head
    refused = ask(place, 2)
    code = {"freeze": "account-frozen", "expire": "account-expired"}[stop]
    assert (refused.status_code, refused.json()["code"]) == (403, code), refused.text
    assert ledger.head == head
    assert ask(place, 1).status_code == 200  # what was drawn is still read
    if stop == "expire":
        assert drawn(place, 2, "ben")["kind"] == "series"  # his last day is his own


def test_from_the_price_to_the_published_series(place):
    """One charge, three draws; what was drawn stays as it was, and everything can be verified."""
    assert take(place, 1).status_code == 201
    head = place.service.ledger.head
    body = {"dataset": "flu", "method": "series", "arguments": SERIES, "epsilon": "1"}
    card = place.post("/plans", body).json()
    assert [one["name"] for one in card["columns"]] == ["count", "count_7_days", "count_so_far"]
    assert all(one["plus_minus"] > 0 for one in card["columns"])
    assert (card["fits"], card["price"]["promised"]["epsilon"]["exact"]) == (True, "1")
    assert card["stored"] == {"paid": False, "exists": False}
    assert place.service.ledger.head == head  # nothing is charged
    first = drawn(place, 1)
    assert first["kind"] == "series"
    left = place.service.ledger.remaining(place.accounts["ana"])
    assert float(left.epsilon) == 1
    take(place, 3)
    card = place.post("/plans", body).json()
    assert card["stored"] == {"paid": True, "exists": True}
    assert card["answer_in_s"] > 0  # days that are paid for are drawn at a public time all the same
    later = drawn(place, 3)
    assert place.service.ledger.remaining(place.accounts["ana"]) == left
    assert len(days_of(later)["count"]) == 6
    assert days_of(later)["count"][:2] == days_of(first)["count"]
    entry = later["certificate"]["ledger"]
    assert (entry["instalment"], entry["instalments"]) == (2, 30 + 64)
    checked = place.post("/certificates/check", {"certificate": later["certificate"]}, "dora").json()
    assert (checked["matches"], checked["problems"]) == (True, [])
    for ending in ("json", "csv", "parquet", "svg"):
        assert place.get(f"/releases/{later['release']}.{ending}").status_code == 200
    text = place.get(f"/releases/{later['release']}.csv").text
    assert text.count("\n") == 7
    assert "2026-01-03" in text
    published = place.post(
        "/publications", {"release": later["release"], "title": "Flu", "about": "By day"}, "cora"
    )
    assert published.status_code == 201, published.text


def test_what_is_stored_comes_at_once_and_an_earlier_day_is_read_from_it(place):
    take(place, 4)
    whole = drawn(place, 3)
    head = place.service.ledger.head
    again = ask(place, 3)
    assert (again.status_code, again.json()["release"]) == (200, whole["release"])
    part = drawn(place, 2)  # another release, read from the same draw
    assert days_of(part)["count"] == days_of(whole)["count"][:4]
    assert place.service.ledger.head == head
    assert entries(place, "run", "claim") == ["run", "claim"]


def test_another_person_pays_for_the_same_series_from_the_own_allotment(place):
    take(place, 2)
    mine = drawn(place, 2)
    theirs = drawn(place, 2, who="ben")
    assert days_of(mine)["count"] == days_of(theirs)["count"]
    ledger = place.service.ledger
    assert [float(ledger.remaining(one).epsilon) for one in ("flu", *place.accounts.values())] == [4, 1, 1]
    assert place.get(f"/releases/{mine['release']}", "ben").status_code == 404


def test_a_paid_series_goes_on_when_the_allotment_is_empty(place):
    take(place, 1)
    drawn(place, 1, epsilon="2")
    assert ask(place, 1, epsilon="1", measure="count_units").json()["code"] == "budget-exceeded"
    take(place, 2)
    assert len(days_of(drawn(place, 2, epsilon="2"))["count"]) == 4


def test_a_day_that_has_not_come_in_is_refused_before_the_charge(place):
    head = place.service.ledger.head
    assert ask(place, 1).json()["code"] == "day-missing"
    take(place, 2)
    found = ask(place, 3)
    assert (found.status_code, found.json()["code"]) == (422, "day-missing")
    assert day(2) in found.text
    assert ask(place, 0).json()["code"] == "bad-parameter"
    for arguments, code in [
        ({"through": "2027-01-01"}, "day-outside"),
        ({"through": "2026-13-01"}, "bad-parameter"),
        ({"through": 3}, "bad-parameter"),
        ({"measure": "median"}, "bad-parameter"),
        ({"measure": "sum"}, "bad-parameter"),
        ({"column": "temp"}, "bad-parameter"),
        ({"where": "nothing = 1"}, "unknown-column"),
        ({"charge": "day"}, "bad-parameter"),
    ]:
        found = ask(place, 1, **arguments)
        assert found.json()["code"] == code, found.text
    sql = place.post("/queries", {"dataset": "flu", "sql": "SELECT COUNT(*) FROM flu", "epsilon": "1"})
    assert sql.json()["code"] == "not-allowed"
    assert place.service.ledger.head == head


def test_a_key_belongs_to_one_day(place):
    take(place, 2)
    first = ask(place, 1, key="k1")
    assert ask(place, 1, key="k1").json()["query"] == first.json()["query"]
    assert ask(place, 2, key="k1").json()["code"] == "key-reused"


def test_who_may_take_days_in_and_who_sees_them(place):
    assert {who: take(place, 1, who).status_code for who in ("ana", "dora", "zoe")} == {
        "ana": 403, "dora": 403, "zoe": 404,
    }  # fmt: skip
    reader = place.token("cora", scopes="read")
    assert (
        place.call("POST", "/api/v1/datasets/flu/days", reader, json={"through": day(1)}).status_code == 403
    )
    assert take(place, 2).status_code == 201
    drawn(place, 2)
    shown = {who: place.get("/datasets/flu/days", who).json() for who in ("ana", "ben", "dora", "cora")}
    assert {one["came_in"] for one in shown.values()} == {day(2)}
    assert [len(one["series"]) for one in shown.values()] == [1, 0, 1, 1]
    assert (shown["ana"]["series"][0]["measure"], shown["cora"]["series"][0]["measure"]) == ("count", None)
    assert [one["may_take"] for one in shown.values()] == [False, False, False, True]
    assert (shown["ana"]["next"], shown["ana"]["level"]) == (day(3), "person-day")
    assert place.get("/datasets/flu/days", "zoe").status_code == 404
    for through in ("2025-12-31", "2026-02-30", "yesterday", "2027-01-01"):
        found = place.post("/datasets/flu/days", {"through": through}, "cora")
        assert found.json()["code"] in {"bad-parameter", "day-outside"}


def test_days_are_taken_in_order_and_a_bad_file_says_nothing_of_its_rows(place, files):
    (files / f"{day(2)}.csv").unlink()
    found = take(place, 3)
    assert (found.json()["code"], day(2) in found.text) == ("day-missing", True)
    assert place.get("/datasets/flu/days").json()["came_in"] is None  # not even the first one
    (files / f"{day(2)}.csv").write_text(f"pid,region,{CANARY}\n1,north,2\n")
    assert take(place, 3).json()["code"] == "rows-differ"
    (files / f"{day(2)}.csv").unlink()
    (files / f"{day(2)}.parquet").write_bytes(CANARY.encode() * 9)
    found = take(place, 3)
    assert found.status_code >= 400
    assert CANARY not in found.text
    assert str(files) not in found.text
    (files / f"{day(2)}.parquet").unlink()
    (files / f"{day(2)}.csv").write_bytes((files / f"{day(1)}.csv").read_bytes())
    twice = take(place, 3).json()
    assert (twice["code"], "operator" in twice["fix"]) == ("rows-twice", True)
    write_day(files, 2, rows=0)  # nobody came
    assert take(place, 3).status_code == 201
    assert len(days_of(drawn(place, 3))["count"]) == 6


@pytest.mark.parametrize("number", [1, 2])
def test_a_file_without_a_header_shows_no_row_as_names_of_columns(place, files, number):
    (files / f"{day(number)}.csv").write_text(f"{CANARY},north,37,positive\np2,north,37,positive\n")
    found = take(place, 2)
    assert CANARY not in found.text
    assert found.json()["code"] == "rows-differ"


def test_what_happens_to_the_files_later_changes_nothing(place, files):
    take(place, 2)
    for number in (1, 2):
        (files / f"{day(number)}.csv").unlink()
    assert len(days_of(drawn(place, 2))["count"]) == 4
    assert take(place, 2).status_code == 201  # already in


def test_nobody_sees_how_long_reading_took(place, monkeypatch):
    """Days count from a rung after the request on, whether reading was quick or slow."""
    seen = {}
    real = day_files.take_listed_days

    for number, ticks in ((1, 0), (2, 5), (3, 20)):

        def slow(*given, ticks=ticks):
            taken = real(*given)
            place.drawing.clock.move(now() + ticks * float(place.drawing.tick))
            return taken

        monkeypatch.setattr("tacit.service.runner._dataset_process.take_listed_days", slow)
        started = now()
        assert take(place, number, shown=False).status_code == 201
        place.drawing.clock.move(started + 7.9 * float(place.drawing.tick))
        early = place.get("/datasets/flu/days").json()["came_in"]
        assert early != day(number)
        assert ask(place, number).json()["code"] == "day-missing"
        for rung in (8, 32):
            place.drawing.clock.move(started + rung * float(place.drawing.tick))
            if place.get("/datasets/flu/days").json()["came_in"] == day(number):
                seen[ticks] = rung
                break
    assert seen == {0: 8, 5: 8, 20: 32}


def test_a_draw_is_stored_and_shown_at_its_times(place):
    take(place, 2)
    query = ask(place, 2).json()["query"]
    [flight] = place.drawing.admit()
    place.drawing.until(lambda: flight.slot.start_at in place.drawing.clock.asleep)
    assert entries(place, "run", "claim", "release") == ["run", "claim"]
    place.drawing.move(flight.slot.start_at)
    place.drawing.until(lambda: flight.slot.store_at in place.drawing.clock.asleep)
    assert entries(place, "run", "claim", "release") == ["run", "claim"]  # computed, and not stored
    place.drawing.move(flight.slot.store_at)
    place.drawing.until(lambda: flight.written)
    assert entries(place, "run", "claim", "release") == ["run", "claim", "release"]
    assert place.get(f"/queries/{query}").json()["state"] == "running"
    assert ask(place, 2).status_code == 202  # not even as a stored answer
    place.drawing.move(flight.slot.answer_at)
    assert place.get(f"/queries/{query}").json()["state"] == "finished"


def test_the_test_above_sees_a_run_that_stores_at_once(place, monkeypatch):
    """A deliberately broken twin: without the slot's times, the entry is there before its time."""
    monkeypatch.setattr(TimedRun, "draw", LedgerRun.draw)
    take(place, 2)
    ask(place, 2)
    [flight] = place.drawing.admit()
    place.drawing.until(lambda: flight.written)
    assert now() < flight.slot.start_at
    assert entries(place, "run", "claim", "release") == ["run", "claim", "release"]


def seen_by_ana(place, number):
    """Draw a day and return all that an analyst sees of it, but for the noisy numbers, names and hashes."""
    seen, start = [], now()

    def look():
        shown = place.get("/datasets/flu/days").json()
        seen.append((now() - start, shown["came_in"], place.get(f"/queries/{query}").json()["state"]))

    query = ask(place, number).json()["query"]
    [flight] = place.drawing.admit()
    look()
    place.drawing.until(lambda: flight.slot.start_at in place.drawing.clock.asleep)
    look()
    place.drawing.land()
    look()
    release = place.get(f"/releases/{place.get(f'/queries/{query}').json()['release']}").json()
    table = release["document"]["content"]["tables"]["day"]
    paid = {name: release["certificate"]["ledger"][name] for name in ("entry", "instalment", "instalments")}
    left = str(place.service.ledger.remaining(place.accounts["ana"]))
    return seen, table["keys"], sorted(table["columns"]), sorted(release), paid, left


@pytest.mark.parametrize("rows", [0, 5_000])
def test_only_the_noisy_numbers_depend_on_the_rows(place, files, rows):
    """The same requests, with no row on the second day and with many: the rest of the transcript is equal."""
    write_day(files, 2, rows)
    drawing = place.drawing
    drawing.clock.move((int(now() / float(drawing.tick)) + 1) * float(drawing.tick))
    take(place, 2)
    found = seen_by_ana(place, 2)
    states = [(round(seconds, 6), last, state) for seconds, last, state in found[0]]
    lag = place.service.dataset("flu").policy["lag"] * float(drawing.tick)
    first = states[0][0]
    assert states == [
        (first, day(2), "running"), (first, day(2), "running"), (round(first + lag, 6), day(2), "finished"),
    ]  # fmt: skip
    assert found[1]["day"] == [day(1), day(1), day(2), day(2)]
    assert found[2] == ["count"]
    assert found[4] == {"entry": 4, "instalment": 1, "instalments": 94}
    assert found[5] == "epsilon 1 of 2"


@pytest.fixture
def again(place, monkeypatch):
    """End the runner and its processes in the middle of what they do, and start another one."""
    made = []

    def start():
        old, moment = place.drawing, place.drawing.clock.time
        old.runner.close()

        def ended(*_given):
            raise SystemExit  # as if the process were gone: the ledger sees no failure, and keeps its claim

        with monkeypatch.context() as patched:  # a thread cannot be killed; it ends when it wakes up
            patched.setattr("tacit.streams.StreamSubject._integers", ended)
            old.clock.move(moment + 1000)
            old.close()
        made.append(Drawing(place.service.settings))
        made[-1].clock.time = moment
        place.drawing = made[-1]
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_a_crash_while_days_are_drawn_loses_nothing_and_draws_nothing_twice(place, again):
    take(place, 3)
    first = drawn(place, 1)
    query = ask(place, 3).json()["query"]
    [flight] = place.drawing.admit()
    place.drawing.until(lambda: flight.slot.start_at in place.drawing.clock.asleep)
    flight.child.kill()
    second = again()
    assert place.get(f"/queries/{query}").json()["state"] == "waiting"  # charged before, and drawn by nobody
    second.ready()
    second.answer()
    found = place.get(f"/queries/{query}").json()
    assert found["state"] == "finished"
    release = place.get(f"/releases/{found['release']}").json()
    assert days_of(release)["count"][:2] == days_of(first)["count"]
    assert len(days_of(release)["count"]) == 6
    assert release["certificate"]["ledger"]["instalment"] == 3  # the second one is lost
    assert entries(place, "run") == ["run"]
    assert float(place.service.ledger.remaining(place.accounts["ana"]).epsilon) == 1
    assert entries(place, "run", "claim", "release").count("release") == 2


def test_a_crash_of_the_first_draw_is_charged_once(place, again):
    take(place, 1)
    query = ask(place, 1).json()["query"]
    [flight] = place.drawing.admit()
    place.drawing.until(lambda: flight.slot.start_at in place.drawing.clock.asleep)
    flight.child.kill()
    second = again()
    second.ready()
    second.answer()
    assert place.get(f"/queries/{query}").json()["state"] == "finished"
    assert entries(place, "run", "view") == ["run"]


def test_what_was_stored_before_the_crash_is_found(place, again):
    take(place, 2)
    release = drawn(place, 2)
    with place.service.database.change() as change:  # as if the runner had ended before it wrote the outcome
        change.run("UPDATE queries SET state = 'running', release = ''")
        change.run("DELETE FROM releases")
    head = place.service.ledger.head
    again()
    [query] = place.get("/queries").json()["queries"]
    found = place.get(f"/releases/{query['release']}").json()
    assert days_of(found) == days_of(release)
    assert place.service.ledger.head == head


def test_a_draw_that_fails_pauses_the_stream_and_the_next_one_has_its_days(place, monkeypatch):
    take(place, 2)

    def broken(*_given):
        raise ValueError(CANARY)

    with monkeypatch.context() as patched:
        patched.setattr("tacit.streams.StreamSubject._integers", broken)
        query = ask(place, 2).json()["query"]
        place.drawing.answer()
    found = place.get(f"/queries/{query}").json()
    assert (found["state"], found["problem"]["code"]) == ("failed", "release-failed")
    assert "not charged again" in found["problem"]["fix"]
    assert CANARY not in json.dumps(found)
    assert ask(place, 2).json()["code"] == "dataset-paused"
    assert place.post("/datasets/flu/resume", {"reason": "mended"}, "cora").status_code == 200
    assert len(days_of(drawn(place, 2))["count"]) == 4
    assert entries(place, "run") == ["run"]


def test_a_process_that_ends_while_it_draws_pauses_the_stream(place):
    take(place, 1)
    query = ask(place, 1).json()["query"]
    [flight] = place.drawing.admit()
    place.drawing.until(lambda: flight.slot.start_at in place.drawing.clock.asleep)
    flight.child.connection.close()
    place.drawing.until(lambda: flight.child.state == "dead")
    place.drawing.move(flight.slot.answer_at)
    assert place.get(f"/queries/{query}").json()["state"] == "failed"
    assert ask(place, 1).json()["code"] == "dataset-paused"


def test_a_worker_without_rows_makes_the_plan_of_the_process_with_rows(place):
    take(place, 2)
    worker = Service(place.service.settings)
    asked = {"dataset": "flu", "method": "series", "epsilon": "1", "arguments": SERIES}
    try:
        opened = worker.dataset("flu")
        mine = plan_of(opened.dataset, asked)
        assert opened.dataset._folder.days() == []
        assert plan_cache(worker).plan(opened, asked).hash == mine.hash
    finally:
        worker.close()
    drawn(place, 2)
    [row] = place.service.database.rows("SELECT plan FROM queries")
    assert row["plan"] == mine.hash


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"source": "gone"}, "unknown-table"),
        ({"adjacency": "replace"}, "not-allowed"),
        ({"unit": "edge"}, "not-allowed"),
        ({"unit": "pid per region"}, "not-allowed"),
        ({"unit": "pid"}, "missing-limit"),
        ({"declared": {"start": "2026-01-01"}}, "bad-parameter"),
        ({"declared": {"start": "2026-01-01", "days": 10**6}}, "bad-parameter"),
        ({"declared": {"start": "2026-01-01", "days": "30"}}, "bad-parameter"),
        ({"declared": {"start": CANARY, "days": 30}}, "bad-parameter"),
        ({"declared": {"start": "2026-01-01", "days": 30, "level": "event"}}, "bad-parameter"),
    ],
)
def test_declarations_that_are_refused_write_nothing(place, changed, code):
    head = place.service.ledger.head
    found = place.post("/datasets", {**STREAM, "name": "other", **changed}, "cora")
    assert (found.status_code >= 400, found.json()["code"]) == (True, code)
    assert CANARY not in found.text
    assert place.service.ledger.head == head
    again = place.post("/datasets", {**STREAM, "name": "other"}, "cora")  # a refused one leaves nothing
    assert again.status_code == 201, again.text


def test_the_other_levels(place, files):
    """At person level, people count on few days; at event level, each row stands for itself."""
    person = {"name": "people", "unit": "pid", "declared": {"start": day(1), "days": 30, "most_days": 2}}
    event = {"name": "events", "unit": "row", "limits": None}
    for number, declared in enumerate((person, event)):
        made = place.post("/datasets", {**STREAM, **declared}, "cora")
        assert made.status_code == 201, made.text
        place.drawing.ready()
        found = place.post(f"/datasets/{declared['name']}/days", {"through": day(3)}, "cora")
        assert found.status_code == 201, (number, found.text)
    children = {child.opening.name: child for child in place.drawing.started}
    assert {"people", "events"} <= set(children)
    kept = place.service.settings.folder / "streams" / "people" / "1" / "days"
    assert sorted(one.name for one in kept.iterdir()) == [f"{day(one)}.parquet" for one in (1, 2, 3)]


def test_a_new_policy_keeps_the_days_and_a_new_version_starts_without(place):
    take(place, 2)
    drawn(place, 2)
    same = {name: STREAM[name] for name in ("keys", "bounds", "limits", "types")}
    made = place.post("/datasets/flu/policies", {**same, "lag": 8}, "cora")
    assert made.status_code == 201, made.text
    assert place.get("/datasets/flu/days").json()["came_in"] == day(2)
    other = place.post("/datasets/flu/policies", {**same, "bounds": {"temp": ["30", "50"]}}, "cora")
    assert other.json()["code"] == "stream-differs"
    made = place.post("/datasets/flu/policies", {**same, "version": 2}, "cora")
    assert made.status_code == 201, made.text
    assert place.get("/datasets/flu/days").json()["came_in"] is None
    assert ask(place, 2).json()["code"] == "day-missing"


def test_the_pages_of_a_stream(place):
    """The wizard declares one; days, price, question and series are pages that work without scripts."""
    browser = Browser(place, "cora")
    text = browser.get("/declare").text
    keys = {
        "kind-0": "text",
        "kind-1": "text",
        "keys-1": "north\nsouth",
        "kind-2": "number",
        "kind-3": "text",
    }
    for fields in (
        {"source": "flu", "name": "clinic", "title": "Clinic", "about": ""},
        {"unit": "pid", "per": ""},
        {"start": "2026-01-01", "days": "30", "most_days": "3", "apart": ""},
        keys,
        {"rows": "2", "groups": "", "per_group": ""},
        {"epsilon": "2", "record": "words", "shows_stored": "yes"},
    ):
        text = step(browser, "/declare", text, **fields).text
    assert "Nothing is declared yet" in text
    assert step(browser, "/declare", text).status_code == 303
    made = place.service.dataset("clinic")
    assert made.policy["declared"] == {"start": "2026-01-01", "days": 30, "most_days": 3}
    assert (made.dataset.level, made.policy["keys"]) == ("person", {"region": ["north", "south"]})
    change = browser.get("/datasets/clinic/change")
    assert (change.status_code, "region" in change.text) == (200, True)
    kept = {name: made.policy[name] for name in ("bounds", "keys", "types", "never_null", "limits")}
    again = given_policy({**_START, **state_of_policy(made)}, new=False)
    assert {name: again[name] for name in kept} == kept  # the form for the next policy loses nothing
    assert "Days and series" in browser.get("/datasets/clinic").text
    page = browser.get("/datasets/flu/days")
    assert page.status_code == 200
    assert "No day has arrived yet" in page.text
    assert (findings(page.text), check_forms(page.text)) == ([], [])
    sent = browser.post("/datasets/flu/days", through=day(1))
    assert sent.status_code == 303
    assert "Error" not in browser.get("/datasets/flu/days").text
    wrong = browser.post("/datasets/flu/days", through="soon")
    assert wrong.status_code == 400
    assert "soon" in wrong.text
    analyst = Browser(place, "ana")
    assert "Take days in" not in analyst.get("/datasets/flu/days").text
    asked = {"method": "series", "arguments": json.dumps({**SERIES, "through": day(1)}), "epsilon": "1"}
    priced = analyst.post("/datasets/flu/ask", **asked)
    assert "count_7_days" in priced.text
    place.drawing.move(now() + 8 * float(place.drawing.tick))
    release = drawn(place, 1)["release"]
    shown = analyst.get(f"/releases/{release}")
    assert ("2026-01-01" in shown.text, findings(shown.text)) == (True, [])
    listed = analyst.get("/datasets/flu/days").text
    assert (f"/releases/{release}" in listed, findings(listed)) == (True, [])
    assert "Draw these days, which are paid for" in analyst.post("/datasets/flu/ask", **asked).text


def test_the_measures(place):
    assert set(MEASURES) == {"count", "count_units", "sum", "mean"}
    take(place, 1)
    for changed in (
        {"measure": "count_units"},
        {"measure": "sum", "column": "temp"},
        {"measure": "mean", "column": "temp", "size": 40, "focus": "week"},
    ):
        body = {"dataset": "flu", "method": "series", "epsilon": "1", "arguments": {**SERIES, **changed}}
        card = place.post("/plans", body)
        assert card.status_code == 200, card.text
        assert len(card.json()["columns"]) == 3


SAME = {name: STREAM[name] for name in ("keys", "bounds", "limits", "types")}


def test_a_crash_between_charge_and_answer_under_an_older_version_is_not_called_free(place):
    """The process ends, and meanwhile a policy with a new version came: the charge is found all the same."""
    take(place, 1)
    query = ask(place, 1).json()["query"]
    [flight] = place.drawing.admit()
    place.drawing.until(lambda: flight.slot.start_at in place.drawing.clock.asleep)
    made = place.post("/datasets/flu/policies", {**SAME, "version": 2}, "cora")
    assert made.status_code == 201, made.text
    flight.child.connection.close()
    place.drawing.until(lambda: flight.child.state == "dead")
    place.drawing.move(flight.slot.answer_at)
    assert entries(place, "run") == ["run"]
    assert place.get(f"/queries/{query}").json()["state"] == "failed"


def test_a_crash_of_the_runner_under_an_older_version_is_spent(place, again):
    """The next draw would be of another plan, so what was charged is lost, and nobody says that it is not."""
    take(place, 1)
    query = ask(place, 1).json()["query"]
    [flight] = place.drawing.admit()
    place.drawing.until(lambda: flight.slot.start_at in place.drawing.clock.asleep)
    made = place.post("/datasets/flu/policies", {**SAME, "version": 2}, "cora")
    assert made.status_code == 201, made.text
    place.drawing.until(lambda: place.drawing.started[-1].state == "ready")
    flight.child.kill()
    second = again()
    second.move(flight.slot.answer_at)
    assert entries(place, "run") == ["run"]
    assert place.get(f"/queries/{query}").json()["state"] == "spent"


def test_days_whose_rows_are_gone_are_refused_before_the_charge(place):
    """As after a restore: the database knows of the days, the folder with the rows is not in a backup."""
    take(place, 2)
    shutil.rmtree(place.service.settings.folder / "streams" / "flu" / "1" / "days")
    head = place.service.ledger.head
    query = ask(place, 2).json()["query"]
    place.drawing.answer()
    found = place.get(f"/queries/{query}").json()
    assert (found["state"], found["problem"]["code"]) == ("refused", "day-missing")
    assert str(place.service.settings.folder) not in json.dumps(found)
    assert place.service.ledger.head == head
    assert take(place, 2).status_code == 201  # the operator's files are there
    assert len(days_of(drawn(place, 2))["count"]) == 4


def test_a_failed_series_is_not_charged_again_to_a_newer_allotment(place, monkeypatch):
    take(place, 1)

    def broken(*_given):
        raise ValueError

    with monkeypatch.context() as patched:
        patched.setattr("tacit.streams.StreamSubject._integers", broken)
        ask(place, 1)
        place.drawing.answer()
    place.post("/datasets/flu/resume", {"reason": "mended"}, "cora")
    newer = allot(place, "ana", number=2)
    drawn(place, 1)
    ledger = place.service.ledger
    assert [float(ledger.remaining(one).epsilon) for one in (place.accounts["ana"], newer)] == [1, 2]
    assert entries(place, "run", "view") == ["run"]


def test_a_process_of_an_older_declaration_takes_no_days_in(tmp_path):
    """Marks of who counts follow one rule; a stream that was declared otherwise since is another one."""
    told = {"name": "flu", "level": "person", "unit": "pid", "start": "2026-01-01", "days": 9}
    told |= {"budget": tc.Budget(epsilon=1), "limits": {"rows": 1}}
    old = hosted_stream(tmp_path / "flu", most_days=5, **told)
    new = hosted_stream(tmp_path / "flu", most_days=1, **told)
    with pytest.raises(TacitError) as refused:
        old.append("2026-01-01", [{"pid": "a"}])
    assert refused.value.code == "stream-differs"
    new.append("2026-01-01", [{"pid": "a"}])


def test_a_retry_is_known_although_another_version_of_tacit_planned_the_question_before(place):
    """The hash of an older version must not hide what was asked and paid for since."""
    take(place, 1)
    drawn(place, 1)
    with place.service.database.change() as change:
        change.run("UPDATE queries SET plan = 'older'")
        change.run("UPDATE releases SET plan = 'older'")
    place.service.cached_plans = PlanCache()
    asked = ask(place, 1, "ben", key="k")
    assert asked.status_code == 202, asked.text
    assert ask(place, 1, "ben", key="k").json()["query"] == asked.json()["query"]
    place.drawing.answer()
    query = place.get(f"/queries/{asked.json()['query']}", "ben").json()
    assert ask(place, 1, "ben").json()["release"] == query["release"]
    place.service.cached_plans = PlanCache()
    assert ask(place, 1, "ben").json()["release"] == query["release"]


def test_the_ledger_keeps_no_literal_of_a_series_if_the_policy_says_so(place):
    made = place.post("/datasets/flu/policies", {**SAME, "record": "shape"}, "cora")
    assert made.status_code == 201, made.text
    place.drawing.ready()
    take(place, 1)
    drawn(place, 1, where=f"result = '{CANARY}'")
    [run] = [one for one in place.service.ledger.history() if one.kind == "run"]
    assert CANARY not in str(run)
    assert run.body["asked"].startswith("each day: count")


def test_days_that_are_taken_in_again_have_the_files_that_they_had(place, files):
    """Otherwise somebody who counted on a released day could count once more on a later one."""
    take(place, 1)
    take(place, 2)
    release = drawn(place, 2)
    shutil.rmtree(place.service.settings.folder / "streams" / "flu" / "1" / "days")
    kept = (files / f"{day(1)}.csv").read_text()
    write_day(files, 1, rows=7)
    refused = take(place, 3).json()
    assert (refused["code"], day(1) in refused["title"]) == ("rows-differ", True)
    (files / f"{day(1)}.csv").write_text(kept)
    assert take(place, 3).status_code == 201
    assert days_of(drawn(place, 3))["count"][:4] == days_of(release)["count"]
