"""Signing in and out: sessions, forms of other sites, one-time links, passwords."""

from __future__ import annotations

import asyncio
import re

import pytest

from support.service_browser import PASSWORD, Browser, code_of, events
from tacit.service._operations import FORM_COOKIE
from tacit.service.access import SESSION_COOKIE, _passwords, first_link, link_for


def test_the_first_link_makes_an_administrator_who_is_signed_in(house, browser):
    link = first_link(house.service)
    assert link.startswith("http://127.0.0.1:8340/welcome#")
    answer = browser.form(
        "/welcome", "/welcome", code=link, name="Root", shown="Renée Root", password=PASSWORD
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "Renée Root" in browser.get("/users").text
    assert first_link(house.service) == ""
    assert "link-used" in events(house.service)


@pytest.mark.parametrize(("wish", "roles"), [({}, ["admin"]), ({"owner": "yes"}, ["admin", "owner"])])
def test_the_first_administrator_may_become_an_owner_too(house, browser, wish, roles):
    fields = {"code": first_link(house.service), "name": "root", "password": PASSWORD}
    assert browser.form("/welcome", "/welcome", **fields, **wish).status_code == 303
    assert [grant["role"] for grant in browser.get("/api/v1/me").json()["grants"]] == roles


def test_nobody_else_becomes_an_owner_by_a_link(house, admin):
    link = re.search(r"welcome#[\w-]+", admin.form("/users", "/users", name="ana").text)[0]
    ana = Browser(house.app)
    assert ana.form("/welcome", "/welcome", code=link, password=PASSWORD, owner="yes").status_code == 303
    assert ana.get("/api/v1/me").json()["grants"] == []
    again = link_for(house.service, "root")
    root = Browser(house.app)
    assert root.form("/welcome", "/welcome", code=again, password=PASSWORD, owner="yes").status_code == 303
    assert [grant["role"] for grant in root.get("/api/v1/me").json()["grants"]] == ["admin"]


def test_a_second_first_link_makes_the_first_void(house, browser):
    first, second = first_link(house.service), first_link(house.service)
    fields = {"name": "root", "password": PASSWORD}
    assert browser.form("/welcome", "/welcome", code=code_of(first), **fields).status_code == 404
    assert browser.form("/welcome", "/welcome", code=code_of(second), **fields).status_code == 303


def test_a_link_works_once(house, admin):
    code = code_of(link_for(house.service, "root"))
    fields = {"code": code, "password": "another fine password"}
    assert Browser(house.app).form("/welcome", "/welcome", **fields).status_code == 303
    again = Browser(house.app).form("/welcome", "/welcome", **fields)
    assert again.status_code == 404
    assert SESSION_COOKIE not in again.cookies


def test_of_two_uses_of_a_link_at_once_one_wins(house, admin):
    """Both are past the first look at the link before either has used it, since hashing takes its time."""
    code = code_of(link_for(house.service, "root"))
    pages = [Browser(house.app) for _ in range(2)]
    texts = [re.findall(r'name="csrf" value="([^"]*)"', one.get("/welcome").text)[-1] for one in pages]
    import httpx

    async def both():
        async def one(browser, csrf, password):
            transport = httpx.ASGITransport(house.app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://house", cookies=browser.cookies
            ) as client:
                fields = {"csrf": csrf, "code": code, "password": password}
                return await client.post("/welcome", data=fields)

        return await asyncio.gather(
            *(one(page, text, f"a password of {text}") for page, text in zip(pages, texts, strict=True))
        )

    answers = asyncio.run(both())
    assert sorted(answer.status_code for answer in answers) == [303, 404]


def test_an_expired_link_is_refused(house, browser):
    link = first_link(house.service)
    with house.service.database.change() as change:
        change.run("UPDATE links SET expires = '2020-01-01T00:00:00.000000Z'")
    answer = browser.form("/welcome", "/welcome", code=code_of(link), name="root", password=PASSWORD)
    assert answer.status_code == 404


def test_signing_in_and_out(house, admin):
    browser = Browser(house.app)
    assert browser.get("/me").headers["location"] == "/sign-in?next=/me"
    answer = browser.sign_in(" ROOT ", next="/me")
    assert (answer.status_code, answer.headers["location"]) == (303, "/me")
    cookie = next(c for c in answer.headers.get_list("set-cookie") if c.startswith(SESSION_COOKIE))
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Root" in browser.get("/me").text
    old = dict(browser.cookies)
    assert browser.form("/me", "/sign-out").headers["location"] == "/sign-in"
    browser.cookies = old
    assert browser.get("/me").status_code == 303
    assert events(house.service)[-2:] == ["signed-in", "signed-out"]


@pytest.mark.parametrize(
    "elsewhere", ["//evil.example", "https://evil.example", "/\\evil", "/\t/evil", "evil"]
)
def test_signing_in_never_leads_to_another_site(house, admin, elsewhere):
    assert Browser(house.app).sign_in("root", next=elsewhere).headers["location"] == "/"


def test_a_session_has_a_new_secret_that_nobody_could_prepare(house, admin):
    browser = Browser(house.app, cookies={SESSION_COOKIE: "prepared"})
    browser.sign_in("root")
    first = browser.cookies[SESSION_COOKIE]
    assert first != "prepared"
    assert browser.sign_in("root").status_code == 303
    assert browser.cookies[SESSION_COOKIE] != first
    assert Browser(house.app, cookies={SESSION_COOKIE: first}).get("/me").status_code == 303


def test_only_digests_of_sessions_and_links_are_kept(house, admin):
    code = code_of(link_for(house.service, "root"))
    secrets = [*admin.cookies.values(), code]
    kept = "\n".join(house.service.database._connection().iterdump())
    assert len(secrets) >= 3
    assert not [secret for secret in secrets if secret in kept]
    assert PASSWORD not in kept


def test_a_session_ends_after_twelve_hours(house, admin):
    with house.service.database.change() as change:
        change.run("UPDATE sessions SET expires = '2020-01-01T00:00:00.000000Z'")
    assert admin.get("/me").status_code == 303


def test_changing_the_password_ends_all_other_sessions(house, admin):
    other = Browser(house.app)
    other.sign_in("root")
    before = admin.cookies[SESSION_COOKIE]
    answer = admin.form("/password", "/password", current=PASSWORD, password="a new and long password")
    assert answer.headers["location"] == "/me"
    assert admin.cookies[SESSION_COOKIE] != before
    assert admin.get("/me").status_code == 200
    assert other.get("/me").status_code == 303
    assert Browser(house.app, cookies={SESSION_COOKIE: before}).get("/me").status_code == 303
    assert Browser(house.app).sign_in("root").status_code == 401
    assert Browser(house.app).sign_in("root", "a new and long password").status_code == 303


def test_a_changed_password_needs_the_current_one(house, admin):
    answer = admin.form("/password", "/password", current="not the password", password="a new long password")
    assert answer.status_code == 403
    assert Browser(house.app).sign_in("root").status_code == 303


def test_a_token_cannot_change_the_password(house, admin):
    house.people["root"] = house.service.database.row("SELECT id FROM users")["id"]
    token = house.token("root")
    fields = {"current": PASSWORD, "password": "a new long password"}
    assert house.call("POST", "/password", token, data=fields).status_code == 403


def test_a_short_password_is_refused_and_the_code_stays_good(house, browser):
    code = code_of(first_link(house.service))
    answer = browser.form("/welcome", "/welcome", code=code, name="root", password="elevenchars")
    assert answer.status_code == 400
    assert "elevenchars" not in answer.text
    assert browser.form("/welcome", "/welcome", code=code, name="root", password=PASSWORD).status_code == 303


# forms of other sites


def fresh_form(browser, page="/sign-in"):
    return re.findall(r'name="csrf" value="([^"]*)"', browser.get(page).text)[-1]


def test_a_sign_in_form_without_its_cookie_is_refused(house, admin):
    fields = {"name": "root", "password": PASSWORD}
    text = fresh_form(Browser(house.app))
    assert Browser(house.app).send("POST", "/sign-in", data={**fields, "csrf": text}).status_code == 403
    assert Browser(house.app).send("POST", "/sign-in", data=fields).status_code == 403
    assert Browser(house.app).send("POST", "/sign-in", data={**fields, "csrf": ""}).status_code == 403


def test_the_page_does_not_show_the_cookie_that_its_form_is_bound_to(browser):
    text = browser.get("/sign-in").text
    assert len(browser.cookies[FORM_COOKIE]) > 40
    assert browser.cookies[FORM_COOKIE] not in text


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "http://house.evil.example"},
    ],
)
def test_a_form_that_another_site_sent_is_refused(house, admin, headers):
    browser = Browser(house.app)
    assert browser.sign_in("root", headers=headers).status_code == 403
    assert SESSION_COOKIE not in browser.cookies
    assert admin.form("/me", "/sign-out", headers=headers).status_code == 403
    assert admin.get("/me").status_code == 200


@pytest.mark.parametrize(
    "headers", [{"sec-fetch-site": "same-origin", "origin": "null"}, {"origin": "http://house"}]
)
def test_a_form_of_this_site_is_taken(house, admin, headers):
    assert Browser(house.app).sign_in("root", headers=headers).status_code == 303


def test_a_form_of_another_session_is_refused(house, admin, ana):
    text = fresh_form(ana, "/me")
    assert admin.send("POST", "/sign-out", data={"csrf": text}).status_code == 403
    assert admin.get("/me").status_code == 200


def test_a_session_may_use_the_api_with_the_text_of_its_forms_only(house, admin):
    body = {"label": "x", "scopes": ["read"], "until": "2020-01-01"}
    assert admin.send("POST", "/api/v1/tokens", json=body).json()["code"] == "form-expired"
    headers = {"x-csrf-token": fresh_form(admin, "/me")}
    assert admin.send("POST", "/api/v1/tokens", json=body, headers=headers).json()["code"] == "bad-parameter"


def test_by_tls_cookies_are_secure_and_bound_to_the_host(settings):
    """No other host of the same domain can give a browser such a cookie."""
    from dataclasses import replace

    from tacit.service import create_app

    app = create_app(replace(settings, behind_proxy=True, url="https://house"))
    try:
        browser = Browser(app, host="https://house")
        link = first_link(app.state.service)
        assert link.startswith("https://house/welcome#")
        answer = browser.form("/welcome", "/welcome", code=link, name="root", password=PASSWORD)
        assert answer.status_code == 303
        made = [cookie for cookie in answer.headers.get_list("set-cookie") if "Max-Age=0" not in cookie]
        assert {cookie.partition("=")[0] for cookie in made} == {
            "__Host-tacit_session", "__Host-tacit_device",
        }  # fmt: skip
        for cookie in made:
            assert "Secure" in cookie
            assert "Path=/" in cookie
            assert "Domain" not in cookie
        assert browser.get("/me").status_code == 200
        planted = {SESSION_COOKIE: browser.cookies["__Host-tacit_session"]}
        assert Browser(app, cookies=planted, host="https://house").get("/me").status_code == 303
    finally:
        app.state.service.close()


# hashes


def test_every_try_computes_one_hash(costly_hashes, house, admin, monkeypatch):
    """Equal time for unknown, disabled and password-less people: by counting hashes, not by the clock."""
    counted = []
    verify = _passwords._matches
    monkeypatch.setattr(_passwords, "_matches", lambda *given: counted.append(given[0]) or verify(*given))
    house.person("bare")
    house.person("gone")
    with house.service.database.change() as change:
        change.run("UPDATE users SET disabled = 1 WHERE name = 'gone'")
    _passwords._nobodys()
    before = events(house.service)
    for name in ("root", "bare", "gone", "nobody"):
        counted.clear()
        assert Browser(house.app).sign_in(name, "a wrong password").status_code == 401
        assert len(counted) == 1
        assert re.match(r"\$argon2id\$v=19\$m=19456,t=2,p=1\$", counted[0])
    assert len(events(house.service)) == len(before) + 4


def test_the_stand_in_hash_lets_nobody_in(house):
    assert not asyncio.run(_passwords.check_password("", "nobody has this password"))


def test_a_hash_with_old_parameters_is_renewed_at_sign_in(costly_hashes, house, admin):
    from argon2 import PasswordHasher

    weak = PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1).hash(PASSWORD)
    with house.service.database.change() as change:
        change.run("UPDATE users SET password = ?", weak)
    assert Browser(house.app).sign_in("root").status_code == 303
    stored = house.service.database.row("SELECT password FROM users")["password"]
    assert "m=19456,t=2,p=1" in stored
    assert Browser(house.app).sign_in("root").status_code == 303


def test_at_most_two_hashes_are_computed_at_a_time(monkeypatch):
    import threading

    running, most, lock = 0, 0, threading.Lock()

    def slow(*_):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.01)
        with lock:
            running -= 1
        return False

    monkeypatch.setattr(_passwords, "_matches", slow)

    async def many(n):
        return await asyncio.gather(
            *(_passwords.check_password("x", "y") for _ in range(n)), return_exceptions=True
        )

    answers = asyncio.run(many(80))
    assert most == 2
    assert answers.count(False) == 60
    assert {one.code for one in answers if one is not False} == {"too-many-requests"}
    assert asyncio.run(many(1)) == [False]


def test_the_same_password_typed_on_another_keyboard_is_right():
    stored = asyncio.run(_passwords.hash_password("Caf\u00e9 mit langem Namen"))
    assert asyncio.run(_passwords.check_password(stored, "Cafe\u0301 mit langem Namen"))
    assert not asyncio.run(_passwords.check_password(stored, "Cafe mit langem Namen"))
