"""Queries: asked once, answered at their time, and seen by those who may."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import tacit as tc
from tacit.service import create_app
from tacit.service.curation import protect_arguments
from tacit.service.runner import _queries
from unit.service.conftest import House
from unit.service.runner.conftest import COUNT, allot

GROUPED = "SELECT hospital, COUNT(*) AS n FROM visits GROUP BY hospital"


def charges(ward):
    return [e for e in ward.service.ledger.history() if e.kind in {"draw", "charge", "view"}]


def test_a_question_is_answered_at_its_time(ward):
    asked = ward.ask()
    assert asked.status_code == 202, asked.text
    query = asked.json()["query"]
    assert asked.headers["location"] == f"/api/v1/queries/{query}"
    assert ward.get(f"/queries/{query}").json()["state"] == "waiting"
    [flight] = ward.drawing.admit()
    running = ward.get(f"/queries/{query}").json()
    assert (running["state"], running["release"]) == ("running", None)
    assert running["answer_at"] == flight.slot.answer_at
    ward.drawing.land()
    found = ward.get(f"/queries/{query}").json()
    assert found["state"] == "finished", found
    release = ward.get(f"/releases/{found['release']}").json()
    cells = release["columns"]["n"]
    assert cells["low"][0] < cells["value"][0] < cells["high"][0]
    assert str(ward.service.ledger.remaining(ward.accounts["ana"])) == "epsilon 1.5 of 2"
    [entry] = charges(ward)
    assert (entry.who, entry.purpose, entry.key) == (ward.people["ana"], "care", f"q:{query}")


def test_an_outcome_that_is_written_early_is_not_shown_before_its_time(ward):
    query = ward.ask().json()["query"]
    [flight] = ward.drawing.admit()
    clock, drawing = ward.drawing.clock, ward.drawing
    for moment in (flight.slot.start_at, flight.slot.store_at):
        drawing.until(lambda moment=moment: moment in clock.asleep)
        clock.move(moment)
    drawing.until(lambda: flight.written)
    row = ward.service.database.row("SELECT state, release FROM queries WHERE id = ?", query)
    assert row["state"] == "finished"
    shown = ward.get(f"/queries/{query}").json()
    assert (shown["state"], shown["release"], shown["done"]) == ("running", None, False)
    assert ward.get(f"/releases/{row['release']}").status_code == 404
    assert ward.get("/releases").json()["releases"] == []
    again = ward.ask()  # not answered from the store before its time either
    assert (again.status_code, again.json()["state"]) == (202, "waiting")
    clock.move(flight.slot.answer_at)
    assert ward.get(f"/queries/{query}").json()["state"] == "finished"
    assert ward.get(f"/releases/{row['release']}").status_code == 200


def test_a_stored_answer_that_was_paid_for_comes_at_once_and_free(ward):
    first = ward.ask().json()["query"]
    ward.drawing.answer()
    release = ward.get(f"/queries/{first}").json()["release"]
    again = ward.ask()
    assert again.status_code == 200, again.text
    assert (again.json()["release"], again.json()["fresh"]) == (release, False)
    assert again.headers["etag"] == f'"{release}"'
    assert len(charges(ward)) == 1
    other = ward.ask("ben")
    assert other.status_code == 202  # ben has not paid, and is answered on the clock
    ward.drawing.answer()
    found = ward.get(f"/queries/{other.json()['query']}", "ben").json()
    mine, his = (ward.get(f"/releases/{r}", who).json() for r, who in
                 ((release, "ana"), (found["release"], "ben")))  # fmt: skip
    assert his["columns"] == mine["columns"]
    assert [e.kind for e in charges(ward)] == ["draw", "view"]
    assert str(ward.service.ledger.remaining("visits")) == "epsilon 4.5 of 5"


def test_an_answer_that_the_account_paid_for_elsewhere_is_found(ward):
    policy = ward.service.dataset("visits").policy
    local = tc.protect(
        {"visits": tc.tables.example_visits()}, name="visits", ledger=ward.service.ledger,
        **protect_arguments(policy),
    )  # fmt: skip
    drawn = local.sql(COUNT["sql"]).plan(epsilon=0.5).release(account=ward.accounts["ana"])
    answer = ward.ask()
    assert answer.status_code == 200
    assert answer.json()["columns"]["n"]["value"] == [drawn.value]
    assert ward.ask().json()["release"] == answer.json()["release"]
    assert len(charges(ward)) == 1


def test_the_same_key_is_the_same_query_and_another_plan_is_refused(ward):
    first, again = ward.ask(key="report-1"), ward.ask(key="report-1")
    assert first.json()["query"] == again.json()["query"]
    other = ward.ask(key="report-1", epsilon="1/4")
    assert (other.status_code, other.json()["code"]) == (409, "key-reused")
    assert ward.ask("ben", key="report-1").json()["query"] != first.json()["query"]  # a key is a person's own
    ward.drawing.answer()
    done = ward.ask(key="report-1")
    assert (done.status_code, done.json()["state"]) == (200, "finished")
    field = ward.call("POST", "/api/v1/queries", ward.tokens["ana"], json={**COUNT, "key": "report-1"})
    assert field.json()["query"] == first.json()["query"]


def test_fifty_equal_keys_at_two_workers_are_charged_and_answered_once(ward):
    app = create_app(ward.service.settings)
    other = House(app, app.state.service)

    def send(i):
        return [ward, other][i % 2].call(
            "POST", "/api/v1/queries", ward.tokens["ana"], json=COUNT, headers={"idempotency-key": "one"}
        )

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(send, range(50)))
    assert {a.status_code for a in answers} == {202}
    assert len({a.json()["query"] for a in answers}) == 1
    ward.drawing.answer()
    assert len(charges(ward)) == 1
    assert len(ward.service.database.rows("SELECT id FROM releases")) == 1
    app.state.service.close()


@pytest.mark.parametrize(
    ("who", "changed", "status", "code"),
    [
        ("zoe", {}, 404, "not-found"),
        ("cem", {}, 403, "not-permitted"),
        ("dora", {}, 403, "not-permitted"),
        ("cora", {}, 403, "not-permitted"),
        ("ana", {"dataset": "nothing"}, 404, "not-found"),
        ("ana", {"account": "visits"}, 403, "no-allotment"),
        ("ana", {"purpose": "marketing"}, 409, "account-differs"),
        ("ana", {"epsilon": "3"}, 403, "budget-exceeded"),
        ("ana", {"sql": "SELECT * FROM visits"}, 422, None),
        ("ana", {"sql": "SELECT ("}, 400, "bad-sql"),
        ("ana", {"key": "a b"}, 400, "bad-parameter"),
        ("ana", {"surprise": 1}, 400, "bad-parameter"),
    ],
)
def test_a_refused_question_writes_nothing(ward, who, changed, status, code):
    head = ward.service.ledger.head
    answer = ward.ask(who, **changed)
    assert answer.status_code == status, answer.text
    assert code is None or answer.json()["code"] == code
    assert ward.service.database.rows("SELECT id FROM queries") == []
    assert ward.service.ledger.head == head


def test_a_budget_refusal_says_what_would_fit(ward):
    answer = ward.ask(epsilon="3").json()
    assert "epsilon 2 of 2" in answer["detail"]
    assert "2" in answer["fix"]


def test_an_account_of_somebody_else_pays_for_nobody(ward):
    answer = ward.ask(account=ward.accounts["ben"])
    assert (answer.status_code, answer.json()["code"]) == (403, "no-allotment")


def test_an_analyst_without_an_allotment_is_told_to_ask_for_one(ward):
    ward.person("eve", visits="analyst")
    ward.tokens["eve"] = ward.token("eve")
    answer = ward.ask("eve")
    assert (answer.status_code, answer.json()["code"]) == (403, "no-allotment")
    assert "curator" in answer.json()["fix"]


def card_account(ward, **changed):
    """Return the account that the card of a question says would pay, and whether its answer is paid for."""
    card = ward.call("POST", "/api/v1/plans", ward.tokens["ana"], json={**COUNT, **changed}).json()
    return card["account"]["name"], card["stored"]["paid"]


def test_the_card_names_the_account_that_the_draw_charges_whichever_allotments_there_are(ward):
    first = ward.accounts["ana"]
    assert card_account(ward) == (first, False)
    assert ward.ask().json()["account"] == first
    second = allot(ward, "ana", number=2)
    assert card_account(ward) == (second, False)  # the newest; the answer of the first is not there yet
    ward.drawing.answer()
    assert card_account(ward) == (first, True)
    again = ward.ask()
    assert (again.status_code, again.json()["account"]) == (200, first)  # a repeated question is free
    assert card_account(ward, epsilon="1/4") == (second, False)
    assert ward.ask(epsilon="1/4").json()["account"] == second
    assert card_account(ward, account=second) == (second, False)
    asked = ward.ask(account=second)
    assert (asked.status_code, asked.json()["account"]) == (202, second)
    approved = allot(ward, "ana", number=3, plan=asked.json()["plan"])
    assert card_account(ward) == (approved, False)
    assert ward.ask().json()["account"] == approved


def test_an_allotment_without_a_purpose_needs_one_and_a_plan_account_pays_for_its_plan_alone(ward):
    second = allot(ward, "ana", number=2, purpose="")
    missing = ward.ask()
    assert missing.json()["code"] == "bad-parameter"
    assert "purpose" in missing.json()["detail"]
    named = ward.ask(account=second, purpose="a thesis")
    assert (named.status_code, named.json()["purpose"]) == (202, "a thesis")
    plan = named.json()["plan"]
    approved = allot(ward, "ana", number=3, plan=plan)
    assert ward.ask().json()["account"] == approved
    assert ward.ask(account=approved, epsilon="1/8").json()["code"] == "no-allotment"


def test_a_token_needs_the_scope_and_the_dataset(ward):
    ward.tokens["reader"] = ward.token("ana", scopes="read plan")
    ward.tokens["elsewhere"] = ward.token("ana", dataset="other")
    assert ward.ask("reader").status_code == 403
    assert ward.ask("elsewhere").status_code in {403, 404}
    query = ward.ask().json()["query"]
    assert ward.get(f"/queries/{query}", "reader").status_code == 200
    assert ward.get(f"/queries/{query}", "elsewhere").status_code in {403, 404}


def test_a_paused_dataset_takes_no_question_but_gives_what_was_paid_for(ward):
    ward.ask()
    ward.drawing.answer()
    with ward.service.database.change() as change:
        change.run("UPDATE datasets SET paused = 'the canary of the reason' WHERE name = 'visits'")
    refused = ward.ask(epsilon="1/4")
    assert (refused.status_code, refused.json()["code"]) == (503, "dataset-paused")
    assert "canary" not in refused.text
    assert ward.ask().status_code == 200


def test_a_question_that_waits_can_be_cancelled_and_one_that_runs_cannot(ward):
    query = ward.ask().json()["query"]
    cancel = lambda who="ana": ward.call(  # noqa: E731
        "POST", f"/api/v1/queries/{query}/cancel", ward.tokens[who]
    )
    assert cancel("ben").status_code == 404
    assert cancel("cem").status_code == 403
    assert cancel().json()["state"] == "cancelled"
    assert ward.drawing.admit() == []
    query = ward.ask().json()["query"]
    ward.drawing.admit()
    late = cancel()
    assert (late.status_code, late.json()["code"]) == (409, "already-decided")
    ward.drawing.land()
    assert len(charges(ward)) == 1


def test_only_the_analyst_and_those_who_oversee_the_dataset_see_a_query(ward):
    query = ward.ask(sql="SELECT COUNT(*) AS n FROM visits WHERE icd = 'C50'").json()["query"]
    ward.drawing.answer()
    release = ward.get(f"/queries/{query}").json()["release"]
    for who, status in {"ana": 200, "ben": 404, "zoe": 404, "cem": 200, "dora": 200, "cora": 200}.items():
        for path in (f"/queries/{query}", f"/releases/{release}", f"/releases/{release}.csv",
                     f"/releases/{release}/certificate"):  # fmt: skip
            assert ward.get(path, who).status_code == status, (who, path)
    for who in ("cem", "dora"):
        seen = ward.get(f"/queries/{query}", who)
        assert "C50" not in seen.text
        assert seen.json()["price"]["promised"]["epsilon"]["exact"] == "1/2"
    assert "C50" in ward.get(f"/queries/{query}").text
    assert ward.call("GET", f"/api/v1/queries/{query}").status_code == 401


def test_lists_show_own_queries_and_those_of_datasets_that_one_oversees(ward):
    mine = [ward.ask(key=f"k{i}", epsilon=f"1/{i + 10}").json()["query"] for i in range(3)]
    his = ward.ask("ben").json()["query"]
    listed = lambda who, more="": [  # noqa: E731
        q["query"] for q in ward.get(f"/queries{more}", who).json()["queries"]
    ]
    assert listed("ana") == mine[::-1]
    assert listed("ben") == [his]
    assert listed("cem") == [his, *mine[::-1]]  # a curator oversees the dataset
    assert listed("cem", "?dataset=visits") == [his, *mine[::-1]]
    assert listed("ana", "?dataset=visits") == mine[::-1]
    assert ward.get("/queries?dataset=visits", "zoe").status_code == 404
    for cursor in ("x", "7", f"{his}x"):
        assert ward.get(f"/queries?after={cursor}").status_code == 400
    unknown = ward.get("/queries?after=q_" + "a" * 16)  # looks like the id of somebody else's question
    assert unknown.json()["queries"] == []


def test_lists_have_pages_without_totals(ward, monkeypatch):
    monkeypatch.setattr("tacit.service.runner._queries._PAGE", 2)
    mine = [ward.ask(key=f"k{i}", epsilon=f"1/{i + 10}").json()["query"] for i in range(5)]
    found, after = [], ""
    while True:
        page = ward.get(f"/queries?after={after}").json()
        found += [q["query"] for q in page["queries"]]
        after = page["next"]
        assert after in {"", found[-1]}  # a position would count the questions of others
        assert len(page["queries"]) <= 2
        if not after:
            break
    assert found == mine[::-1]


def test_the_next_page_of_a_list_is_of_the_same_dataset(ward, monkeypatch):
    monkeypatch.setattr("tacit.service.runner._queries._PAGE", 2)
    for number in range(3):
        ward.ask(key=f"k{number}", epsilon=f"1/{number + 10}")
    page = ward.call("GET", "/queries?dataset=visits", ward.tokens["ana"]).text
    assert "/queries?dataset=visits&amp;after=" in page


def test_nobody_waits_with_more_than_two_hundred_questions(ward, monkeypatch):
    monkeypatch.setattr("tacit.service.runner._queries._MAX_WAITING", 3)
    codes = [ward.ask(epsilon=f"1/{i + 10}").status_code for i in range(4)]
    assert codes == [202, 202, 202, 429]


def test_the_runner_refuses_what_no_longer_fits(ward):
    queries = [ward.ask(epsilon="3/2", key="a"), ward.ask(epsilon="4/3", key="b")]
    ward.drawing.answer()
    states = [ward.get(f"/queries/{q.json()['query']}").json() for q in queries]
    first, second = sorted(states, key=lambda one: one["state"])  # both are charged at the same boundary
    assert (first["state"], second["state"]) == ("finished", "refused")
    assert second["problem"]["code"] == "budget-exceeded"
    assert len(charges(ward)) == 1


def test_a_width_admits_first_in_first_out_and_a_slot_is_held_until_its_answer_leaves(ward):
    child = next(iter(ward.drawing.runner._children.values()))
    object.__setattr__(child.opening, "width", 2)
    asked = [ward.ask(epsilon=f"1/{i + 10}").json()["query"] for i in range(5)]
    assert [f.query for f in ward.drawing.admit()] == asked[:2]
    assert ward.drawing.admit() == []
    ward.drawing.land()
    assert list(ward.drawing.runner._flights) == asked[2:4]
    ward.drawing.land()
    assert list(ward.drawing.runner._flights) == asked[4:]


def test_the_same_plan_is_not_drawn_twice_at_a_time(ward):
    asked = [ward.ask(who).json()["query"] for who in ("ana", "ben")]
    assert [f.query for f in ward.drawing.admit()] == asked[:1]
    assert ward.drawing.admit() == []
    ward.drawing.land()
    assert list(ward.drawing.runner._flights) == asked[1:]


def test_a_policy_under_which_the_plan_is_another_one_charges_nothing(ward):
    query = ward.ask(sql="SELECT AVG(age) AS a FROM visits").json()["query"]
    changed = ward.call(
        "POST", "/api/v1/datasets/visits/policies", ward.tokens["cora"],
        json={"bounds": {"age": ["0", "100"], "length_of_stay": ["0", "60"]}},
    )  # fmt: skip
    assert changed.status_code == 201, changed.text
    ward.drawing.answer()
    found = ward.get(f"/queries/{query}").json()
    assert (found["state"], found["problem"]["code"]) == ("refused", "plan-differs")
    assert charges(ward) == []


def test_events_end_with_done(ward):
    import httpx

    query = ward.ask().json()["query"]

    async def follow():
        transport = httpx.ASGITransport(app=ward.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://house") as client:
            headers = {"authorization": f"Bearer {ward.tokens['ana']}"}
            return await client.get(f"/api/v1/queries/{query}/events", headers=headers, timeout=60)

    with ThreadPoolExecutor(1) as pool:
        followed = pool.submit(lambda: asyncio.run(follow()))
        ward.drawing.answer()
        answer = followed.result()
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [block.splitlines() for block in answer.text.strip().split("\n\n")]
    assert events[-1][0] == "event: done"
    assert json.loads(events[-1][1].removeprefix("data: "))["state"] == "finished"
    assert ward.get(f"/queries/{query}/events", "ben").status_code == 404


def test_pages_show_the_query_the_answer_and_the_history(ward):
    query = ward.ask(sql=GROUPED).json()["query"]
    page = lambda path: ward.call("GET", path, ward.tokens["ana"])  # noqa: E731
    waiting = page(f"/queries/{query}")
    assert waiting.status_code == 200
    assert 'hx-trigger="every 1s"' in waiting.text
    assert '<noscript><meta http-equiv="refresh"' in waiting.text
    assert "Cancel the question" in waiting.text
    ward.drawing.answer()
    done = page(f"/queries/{query}")
    release = ward.get(f"/queries/{query}").json()["release"]
    assert f"/releases/{release}" in done.text
    assert "every 1s" not in done.text
    answer = page(f"/releases/{release}")
    assert answer.status_code == 200
    assert "<svg" in answer.text
    assert "n, low" in answer.text
    assert f"/queries/{query}" in page("/queries").text
    assert f"/releases/{release}" in page("/releases").text
    assert page("/releases/r_nothing").status_code == 404


def test_a_form_asks_and_leads_to_the_query_or_to_the_answer(ward):
    form = {**COUNT, "key": "once", "purpose": "", "account": "", "delta": "", "rho": ""}
    send = lambda **more: ward.call(  # noqa: E731
        "POST", "/queries", ward.tokens["ana"], data={**form, **more}, follow_redirects=False
    )
    asked = send()
    assert asked.status_code == 303, asked.text
    query = asked.headers["location"]
    assert query.startswith("/queries/q_")
    assert send().headers["location"] == query
    ward.drawing.answer()
    assert send(key="again").headers["location"].startswith("/releases/r_")
    refused = send(key="more", epsilon="100")
    assert refused.status_code == 403
    assert "budget-exceeded" in refused.text
    waiting = send(key="third", epsilon="1/8").headers["location"]
    cancelled = ward.call("POST", f"{waiting}/cancel", ward.tokens["ana"], follow_redirects=False)
    assert (cancelled.status_code, cancelled.headers["location"]) == (303, waiting)


@pytest.mark.parametrize(
    "end",
    [
        "UPDATE users SET disabled = 1 WHERE id = ?",
        "DELETE FROM grants WHERE person = ?",
        "UPDATE tokens SET revoked = 1 WHERE person = ?",
        "UPDATE tokens SET scopes = 'plan' WHERE person = ?",
    ],
)
def test_a_stream_of_events_ends_when_its_reader_may_not_see_the_query_any_more(ward, end):
    query = ward.ask().json()["query"]
    got = []

    async def follow():
        async def waits():
            await asyncio.sleep(1000)

        async def keeps(message):
            got.append(message.get("body", b"").decode())

        headers = [(b"authorization", f"Bearer {ward.tokens['ana']}".encode())]
        scope = {
            "type": "http", "method": "GET", "path": f"/api/v1/queries/{query}/events", "query_string": b"",
            "headers": headers, "http_version": "1.1", "scheme": "http", "server": ("house", 80),
        }  # fmt: skip
        following = asyncio.create_task(ward.app(scope, waits, keeps))
        while not any("waiting" in text for text in got):
            await asyncio.sleep(0.01)
        with ward.service.database.change() as change:
            change.run(end, ward.people["ana"])
        await asyncio.to_thread(ward.drawing.answer)
        await asyncio.wait_for(following, 30)

    asyncio.run(follow())
    assert got[-1] == ""
    assert "finished" not in "".join(got)


def test_a_person_follows_a_limited_number_of_queries_at_once(ward):
    query = ward.ask().json()["query"]
    _queries._streams[ward.people["ana"]] = 20
    try:
        refused = ward.get(f"/queries/{query}/events")
    finally:
        del _queries._streams[ward.people["ana"]]
    assert (refused.status_code, refused.json()["code"]) == (429, "too-many-requests")
    ward.drawing.answer()
    assert "event: done" in ward.get(f"/queries/{query}/events").text
    assert not _queries._streams


def test_a_cursor_does_not_tell_how_much_others_have_asked(ward):
    for number in range(60):
        row = ward.ask("ben", epsilon=f"1/{100 + number}")
        assert row.status_code == 202
    for number in range(51):
        assert ward.ask(epsilon=f"1/{1000 + number}").status_code == 202
    page = ward.get("/queries").json()
    assert page["next"] == page["queries"][-1]["query"]
    rest = ward.get(f"/queries?after={page['next']}").json()
    assert (len(rest["queries"]), rest["next"]) == (1, "")
    bens = ward.get("/queries", "ben").json()["queries"][0]["query"]
    assert ward.get(f"/queries?after={bens}").json()["queries"] == []
    for forged in ("q_x", "-1", "1", "' OR 1=1 --", "%00", "Q" * 41):
        answer = ward.get(f"/queries?after={forged}")
        assert answer.status_code in {400, 404} or answer.json()["queries"] == []
    seen = ward.get("/queries?dataset=visits", "dora").json()
    assert len(ward.get(f"/queries?dataset=visits&after={seen['next']}", "dora").json()["queries"]) == 50


@pytest.mark.parametrize(
    "act",
    [
        "DELETE FROM grants WHERE person = ? AND role = 'analyst'",
        "UPDATE users SET disabled = 1 WHERE id = ?",
    ],
)
def test_what_waits_spends_nothing_once_its_person_may_no_longer_ask(ward, act):
    query, other = ward.ask().json()["query"], ward.ask("ben", epsilon="1/4").json()["query"]
    with ward.service.database.change() as change:
        change.run(act, ward.people["ana"])
    ward.drawing.answer()
    assert ward.get(f"/queries/{query}", "cem").json()["state"] == "cancelled"
    assert ward.get(f"/queries/{other}", "ben").json()["state"] == "finished"
    assert ward.service.ledger.account(ward.accounts["ana"]).spent.epsilon == 0
    assert len(charges(ward)) == 1


def test_a_question_with_very_many_keys_is_priced_drawn_listed_and_its_certificate_is_checked(ward):
    keys = {"icd": [f"a code of some length {number:05}" for number in range(5000)]}
    sql = "SELECT icd, COUNT(*) AS n FROM visits GROUP BY icd"
    data = ward.service.dataset("visits").dataset
    plan = data.sql(sql, keys=keys).plan(epsilon=0.5)
    size = len(json.dumps(plan.to_json()))
    assert 64 * 1024 < size < 1024 * 1024
    for form in ({"sql": sql, "keys": keys, "epsilon": "1/2"}, {"plan": plan.to_json()}):
        body = {"dataset": "visits", **form}
        card = ward.call("POST", "/api/v1/plans", ward.tokens["ana"], json=body)
        assert (card.status_code, card.json()["plan"]) == (200, plan.hash)
    query = ward.call("POST", "/api/v1/queries", ward.tokens["ana"], json=body)
    assert query.status_code == 202, query.text
    ward.drawing.answer()
    assert ward.get("/queries").json()["queries"][0]["state"] == "finished"
    found = ward.get(f"/queries/{query.json()['query']}").json()
    release = ward.get(f"/releases/{found['release']}").json()
    assert len(release["keys"]["icd"]) == 5000
    checked = ward.call(
        "POST", "/api/v1/certificates/check", ward.tokens["ana"], json={"certificate": release["certificate"]}
    )
    assert checked.json()["matches"] is True, checked.text


def test_pages_of_a_question_and_its_answer_say_what_was_asked(ward):
    def page(path, who="ana"):
        return ward.call("GET", path, ward.tokens[who], headers={"accept": "text/html"}).text

    plan = ward.service.dataset("visits").dataset.sql(GROUPED).plan(epsilon=0.25)
    for form, words in (
        ({"sql": GROUPED, "epsilon": "1/2"}, GROUPED),
        ({"plan": plan.to_json()}, "The question: <bdi>n = count, by hospital, of visits</bdi>"),
    ):
        asked = ward.call("POST", "/api/v1/queries", ward.tokens["ana"], json={"dataset": "visits", **form})
        ward.drawing.answer()
        query = asked.json()["query"]
        release = ward.get(f"/queries/{query}").json()["release"]
        assert words in page(f"/queries/{query}")
        assert words in page(f"/releases/{release}")
        assert "n = count" not in page(f"/queries/{query}", "cem")
        assert ward.get("/queries").json()["queries"][0]["words"] in (GROUPED, "n")
    assert f">Question {query}" not in page("/queries")


def test_bodies_beyond_their_limit_are_refused_with_what_to_do(ward):
    long = {"icd": ["x" * 1000] * 1100}
    head = ward.service.ledger.head
    for path, body in {
        "/queries": {**COUNT, "keys": long},
        "/plans": {**COUNT, "keys": long},
        "/requests": {"kind": "plan", "dataset": "visits", "ask": {**COUNT, "keys": {"icd": ["x" * 70_000]}}},
    }.items():
        answer = ward.call("POST", f"/api/v1{path}", ward.tokens["ana"], json=body)
        assert (answer.status_code, answer.json()["code"]) == (413, "body-too-large"), path
        assert "policy of the dataset" in answer.json()["fix"]
    asked = {**COUNT, "keys": {"icd": ["x" * 200] * 1000}}
    assert ward.call("POST", "/api/v1/queries", ward.tokens["dora"], json=asked).status_code == 403
    assert ward.service.ledger.head == head


def test_a_plan_document_cannot_ask_for_more_groups_than_sql_can(ward):
    data = ward.service.dataset("visits").dataset
    keys = {"icd": [str(one) for one in range(200)], "hospital": [str(one) for one in range(200)]}
    plan = data.sql("SELECT icd, hospital, COUNT(*) AS n FROM visits GROUP BY icd, hospital", keys=keys)
    body = {"dataset": "visits", "plan": plan.plan(epsilon=0.5).to_json()}
    answer = ward.call("POST", "/api/v1/plans", ward.tokens["ana"], json=body)
    assert (answer.status_code, answer.json().get("code")) == (422, "question-too-large")


@pytest.mark.parametrize(
    "risk", [{"advantage": "0.05"}, {"attack": ["0.01", "0.02"]}, {"belief": "0.5, 0.6"}]
)
def test_a_question_is_asked_by_its_risk_and_paid_with_the_epsilon_that_follows(ward, risk):
    asked = ward.ask(epsilon=None, **risk)
    assert asked.status_code == 202, asked.text
    ward.drawing.answer()
    found = ward.get(f"/queries/{asked.json()['query']}").json()
    assert found["state"] == "finished", found
    [entry] = charges(ward)
    [(name, given)] = risk.items()
    pair = tuple(float(one) for one in (given.split(",") if isinstance(given, str) else given))
    data = ward.service.dataset("visits").dataset
    plan = data.sql(COUNT["sql"]).plan(**{name: pair if len(pair) > 1 else pair[0]})
    assert entry.spend.epsilon == plan.promised["epsilon"]
    again = ward.ask(epsilon=str(plan.promised["epsilon"]))
    assert again.status_code == 200  # the same plan: stored, and paid for
