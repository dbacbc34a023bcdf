"""Guessing passwords: waits that all workers share, and that cannot lock a person out."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from support.service_browser import Browser, events, invited
from tacit.service.access import _passwords


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""

    class Clock:
        now = 1_000_000.0

        def time(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(_passwords, "time", made)
    return made


@pytest.fixture
def quick(monkeypatch):
    """Hashes that take no time, for tests of thousands of tries; the counting is the same."""

    tried = []

    def matches(stored, plain):
        tried.append(plain)
        return plain == "right and long enough" and not stored.startswith("nobody")

    monkeypatch.setattr(_passwords, "_matches", matches)
    monkeypatch.setattr(_passwords, "_nobodys", lambda: "nobody")
    monkeypatch.setattr("tacit.service.access._sign_in.is_outdated", lambda _: False)
    return tried


def with_password(house, name):
    house.person(name)
    with house.service.database.change() as change:
        change.run("UPDATE users SET password = 'kept' WHERE name = ?", name)


RIGHT = "right and long enough"


def test_wrong_tries_wait_longer_and_longer(house, clock, quick):
    with_password(house, "ana")
    browser = Browser(house.app)
    assert [browser.sign_in("ana", "wrong").status_code for _ in range(6)] == [401] * 5 + [429]
    waits = []
    for _ in range(12):
        answer = browser.sign_in("ana", "wrong")
        assert answer.status_code == 429
        wait = int(answer.headers["retry-after"])
        assert f"{wait} second" in answer.text
        waits.append(wait)
        clock.now += wait + 0.01
        assert browser.sign_in("ana", "wrong").status_code == 401
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


def test_a_thousand_tries_get_a_handful_of_looks(house, clock, quick):
    """From one address, ten tries a second for 100 seconds, at one name that exists and one that does not."""
    with_password(house, "ana")
    browser = Browser(house.app)
    text = _form_text(browser)
    answers = {"ana": [], "nobody": []}

    async def guess():
        transport = httpx.ASGITransport(house.app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://house", cookies=browser.cookies
        ) as client:
            for n in range(1000):
                name = ("ana", "nobody")[n % 2]
                fields = {"csrf": text, "name": name, "password": f"guess number {n}"}
                answers[name].append((await client.post("/sign-in", data=fields)).status_code)
                clock.now += 0.1

    asyncio.run(guess())
    assert answers["ana"] == answers["nobody"]
    assert answers["ana"].count(401) == 11  # five free, then after 1, 2, 4, 8, 16 and 32 seconds
    assert len(quick) == 22
    assert len(house.service.database.rows("SELECT * FROM attempts")) == 3
    assert events(house.service).count("sign-in-refused") == 22


def test_a_refused_try_does_not_make_the_wait_longer(house, clock, quick):
    with_password(house, "ana")
    browser = Browser(house.app)
    for _ in range(50):
        browser.sign_in("ana", "wrong")
    clock.now += 1.01
    assert browser.sign_in("ana", RIGHT).status_code == 303


def test_a_try_during_a_wait_is_refused_even_if_it_is_right(house, clock, quick):
    with_password(house, "ana")
    browser = Browser(house.app)
    for _ in range(5):
        browser.sign_in("ana", "wrong")
    assert browser.sign_in("ana", RIGHT).status_code == 429
    assert len(quick) == 5


def test_a_stranger_cannot_lock_out_a_browser_that_the_person_has_used(house, clock, quick):
    with_password(house, "ana")
    own = Browser(house.app, "192.0.2.7")
    assert own.sign_in("ana", RIGHT).status_code == 303
    own.form("/me", "/sign-out")
    strangers = [Browser(house.app, f"198.51.100.{n}") for n in range(30)]
    for n in range(300):  # a flood from many addresses that never stops
        strangers[n % 30].sign_in("ana", "wrong")
        clock.now += 0.5
    assert strangers[0].sign_in("ana", "wrong").status_code == 429
    assert own.sign_in("ana", RIGHT).status_code == 303


def test_a_known_browser_waits_for_its_own_wrong_tries(house, clock, quick):
    with_password(house, "ana")
    own = Browser(house.app)
    own.sign_in("ana", RIGHT)
    own.form("/me", "/sign-out")
    assert [own.sign_in("ana", "wrong").status_code for _ in range(6)] == [401] * 5 + [429]


def test_the_cookie_of_a_browser_is_good_for_its_person_only(house, clock, quick):
    with_password(house, "ana")
    with_password(house, "eve")
    eve = Browser(house.app)
    eve.sign_in("eve", RIGHT)
    eve.form("/me", "/sign-out")
    for _ in range(6):
        answer = eve.sign_in("ana", "wrong")
    assert answer.status_code == 429
    assert Browser(house.app, "192.0.2.9").sign_in("ana", RIGHT).status_code == 429


def test_a_person_without_such_a_browser_comes_in_by_a_link(house, admin):
    invited(house, admin, "ana")
    for _ in range(6):
        answer = Browser(house.app, "198.51.100.1").sign_in("ana", "wrong password")
    assert answer.status_code == 429
    page = admin.form("/users", f"/users/{house.people['ana']}/invite").text
    link = page.partition("/welcome#")[2][:43]
    fresh = Browser(house.app)
    fields = {"code": link, "password": "a password that is new"}
    assert fresh.form("/welcome", "/welcome", **fields).status_code == 303
    fresh.form("/me", "/sign-out")
    assert fresh.sign_in("ana", "a password that is new").status_code == 303


def test_an_address_that_guesses_many_names_waits(house, clock, quick):
    browser = Browser(house.app, "2001:db8::1")
    codes = [browser.sign_in(f"name{n}", "wrong").status_code for n in range(31)]
    assert codes == [401] * 30 + [429]
    assert Browser(house.app, "2001:db8::ffff").sign_in("other", "wrong").status_code == 429
    assert Browser(house.app, "2001:db8:0:1::1").sign_in("other", "wrong").status_code == 401


def test_an_own_account_does_not_reset_the_count_of_an_address(house, clock, quick):
    with_password(house, "eve")
    codes = []
    for n in range(60):
        browser = Browser(house.app)
        codes.append(browser.sign_in(f"name{n}", "wrong").status_code)
        Browser(house.app).sign_in("eve", RIGHT)
    assert codes.count(401) < 35


def test_a_full_queue_refuses_strangers_only_and_counts_nothing(house, clock, quick, monkeypatch):

    with_password(house, "ana")
    own = Browser(house.app)
    own.sign_in("ana", RIGHT)
    own.form("/me", "/sign-out")
    monkeypatch.setattr(_passwords, "_waiting", _passwords._MAX_WAITING)
    assert Browser(house.app).sign_in("ana", RIGHT).status_code == 429
    assert house.service.database.rows("SELECT * FROM attempts WHERE failures > 0") == []
    assert own.sign_in("ana", RIGHT).status_code == 303


def test_tries_at_the_same_moment_are_counted_before_they_are_looked_at(house, clock, quick):
    with_password(house, "ana")
    browser = Browser(house.app)
    browser.get("/sign-in")
    text = _form_text(browser)

    async def storm():
        transport = httpx.ASGITransport(house.app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://house", cookies=browser.cookies
        ) as client:
            fields = {"csrf": text, "name": "ana", "password": "wrong"}
            return await asyncio.gather(*(client.post("/sign-in", data=fields) for _ in range(30)))

    codes = [answer.status_code for answer in asyncio.run(storm())]
    assert codes.count(401) == 5
    assert codes.count(429) == 25


def test_waits_are_shared_by_workers(house, settings, clock, quick):
    from tacit.service._database import Database

    with_password(house, "ana")
    for _ in range(5):
        Browser(house.app).sign_in("ana", "wrong")
    other = Database.open(settings.database_place)
    try:
        with other.change() as change:
            assert _passwords.count_try(change, [_passwords.guessed("name", "ana")]) > 0
    finally:
        other.close()


def test_counts_are_forgotten_after_a_day(house, clock, quick):
    with_password(house, "ana")
    browser = Browser(house.app)
    for _ in range(6):
        browser.sign_in("ana", "wrong")
    clock.now += 86_500
    assert [browser.sign_in("ana", "wrong").status_code for _ in range(5)] == [401] * 5
    assert len(house.service.database.rows("SELECT * FROM attempts")) == 2


def test_the_counts_have_an_upper_limit(house, monkeypatch):
    monkeypatch.setattr(_passwords, "MAX_COUNTS", 50)
    with house.service.database.change() as change:
        for n in range(600):
            _passwords.count_try(change, [f"name:{n}"])
    kept = house.service.database.rows("SELECT subject FROM attempts ORDER BY seen")
    assert len(kept) <= 50 + 256
    assert kept[-1]["subject"] == "name:599"


def test_no_name_or_address_is_written_into_the_counts(house, clock, quick):
    Browser(house.app, "203.0.113.77").sign_in("somebody-special", "wrong")
    dump = "\n".join(house.service.database._connection().iterdump())
    assert "somebody-special" not in dump
    assert "203.0.113.77" not in dump


def test_guessing_the_current_password_waits_too(house, clock, quick):
    with_password(house, "ana")
    browser = Browser(house.app)
    browser.sign_in("ana", RIGHT)
    fields = {"current": "wrong", "password": "a new long password"}
    codes = [browser.form("/password", "/password", **fields).status_code for _ in range(6)]
    assert codes == [403] * 5 + [429]


def test_a_clock_that_is_set_back_makes_nobody_wait_for_ever(house, clock):
    with house.service.database.change() as change:
        for _ in range(20):
            _passwords.count_try(change, ["name:x"])
            clock.now += 400
        _passwords.count_try(change, ["name:x"])
        assert 0 < _passwords.count_try(change, ["name:x"]) <= 300
        clock.now -= 10**6
        assert _passwords.count_try(change, ["name:x"]) == 0


def _form_text(browser):
    import re

    return re.findall(r'name="csrf" value="([^"]*)"', browser.get("/sign-in").text)[-1]
