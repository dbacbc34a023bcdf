"""Single sign-on with a real provider over HTTP, and everything that can be wrong with what comes back."""

from __future__ import annotations

import time
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from support.service_browser import Browser, events
from support.sign_on_provider import CLIENT, SECRET, Provider
from tacit.service import create_app
from tacit.service._times import later_text
from tacit.service.access import SESSION_COOKIE, _oidc, _single_sign_on


@pytest.fixture
def provider():
    made = Provider()
    yield made
    made.close()


@pytest.fixture
def settings(settings, provider, tmp_path):
    """The settings of a service with single sign-on."""
    kept = tmp_path / "secret"
    kept.write_text(f"{SECRET}\n")
    oidc = {"issuer": provider.issuer, "client_id": CLIENT, "secret_file": str(kept), "name": "Campus"}
    return replace(settings, oidc=oidc)


@pytest.fixture
def linked(house, admin):
    """A person whom an administrator has linked to the provider's subject."""
    answer = admin.form("/users", "/users", name="ana", shown="Ana", subject="subject-1")
    assert answer.status_code == 201
    assert "welcome#" not in answer.text
    return Browser(house.app)


def there_and_back(browser, provider, **more):
    away = browser.get("/sign-in/provider?next=/tokens")
    assert away.status_code == 303, away.text
    back = provider.sign_in(away.headers["location"])
    return browser.get(back, **more), back


def test_a_linked_person_signs_in(house, linked, provider):
    assert "Sign in with Campus" in linked.get("/sign-in").text
    answer, _ = there_and_back(linked, provider)
    assert (answer.status_code, answer.headers["location"]) == (303, "/tokens")
    assert "Ana" in linked.get("/me").text
    assert events(house.service)[-1] == "signed-in"


def test_the_browser_is_sent_with_pkce_state_and_nonce(linked, provider):
    asked = parse_qs(urlsplit(linked.get("/sign-in/provider").headers["location"]).query)
    assert asked["redirect_uri"] == ["http://127.0.0.1:8340/sign-in/return"]
    for secret in ("state", "nonce", "code_challenge"):
        assert len(asked[secret][0]) >= 43
    assert SECRET not in str(asked)


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"}, {"nonce": None}, {"aud": "another-client"}, {"aud": None},
        {"aud": "another-client", "azp": CLIENT},
        {"aud": [CLIENT, "another"]}, {"aud": [CLIENT, "another"], "azp": "another"},
        {"iss": "https://evil.example"}, {"iss": None}, {"exp": int(time.time()) - 3600}, {"exp": None},
        {"iat": int(time.time()) + 3600}, {"sub": None}, {"sub": ""}, {"sub": 7}, {"sub": "x" * 256},
        {"sub": ["subject-1"]}, {"sub": "a\nb"}, {"nbf": int(time.time()) + 3600},
    ],
)  # fmt: skip
def test_a_wrong_claim_is_refused(linked, provider, claims):
    provider.claims = claims
    answer, _ = there_and_back(linked, provider)
    assert answer.status_code == 403
    assert "sign-on-failed" in answer.text
    assert SESSION_COOKIE not in linked.cookies


@pytest.mark.parametrize("signs", ["none", "HS256", "shared key", "other key"])
def test_a_wrong_signature_is_refused(linked, provider, signs):
    provider.signs = signs
    answer, _ = there_and_back(linked, provider)
    assert answer.status_code == 403
    assert SESSION_COOKIE not in linked.cookies


def test_what_came_back_cannot_be_used_twice(house, linked, provider):
    away = linked.get("/sign-in/provider")
    back = provider.sign_in(away.headers["location"])
    cookies = dict(linked.cookies)
    assert linked.get(back).status_code == 303
    again = Browser(house.app, cookies=cookies)
    assert again.get(back).status_code == 403
    assert SESSION_COOKIE not in again.cookies


def test_another_browser_cannot_use_what_came_back(house, linked, provider):
    """An attacker who makes a person's browser open the attacker's own return does not sign them in."""
    away = linked.get("/sign-in/provider")
    back = provider.sign_in(away.headers["location"])
    victim = Browser(house.app)
    assert victim.get(back).status_code == 403
    victim.get("/sign-in/provider")
    assert victim.get(back).status_code == 403
    assert SESSION_COOKIE not in victim.cookies


def test_a_sign_in_that_took_too_long_is_refused(linked, provider, monkeypatch):
    away = linked.get("/sign-in/provider")
    monkeypatch.setattr(_single_sign_on, "now_text", lambda: later_text(minutes=11))
    assert linked.get(provider.sign_in(away.headers["location"])).status_code == 403


def test_nobody_shuts_others_out_by_beginning_to_sign_in(house, linked, provider):
    for _ in range(30):
        assert Browser(house.app).get("/sign-in/provider").status_code == 303
    assert house.service.database.rows("SELECT * FROM sign_ons") == []
    with house.service.database.change() as change:  # as many as an earlier version allowed in all
        for number in range(10_000):
            change.run(
                "INSERT INTO sign_ons (digest, nonce, verifier, next, expires)"
                " VALUES (?, '', '', '', '2999')",
                str(number),
            )
    answer, _ = there_and_back(linked, provider)
    assert (answer.status_code, answer.headers["location"]) == (303, "/tokens")


@pytest.mark.parametrize("part", [0, 1, -1])
def test_a_cookie_of_a_sign_in_that_was_changed_is_refused(linked, provider, part):
    away = linked.get("/sign-in/provider?next=/tokens")
    parts = linked.cookies["tacit_sign_on"].split(".")
    parts[part] = parts[part][:-1] + ("a" if parts[part][-1] != "a" else "b")
    linked.cookies["tacit_sign_on"] = ".".join(parts)
    assert linked.get(provider.sign_in(away.headers["location"])).status_code == 403
    assert SESSION_COOKIE not in linked.cookies


@pytest.mark.parametrize("query", ["", "?state=x", "?code=x", "?state=&code=x", "?error=access_denied"])
def test_a_return_without_its_parts_is_refused(linked, query):
    linked.get("/sign-in/provider")
    assert linked.get(f"/sign-in/return{query}").status_code == 403


def test_a_wrong_code_is_refused(linked, provider):
    away = linked.get("/sign-in/provider")
    state = parse_qs(urlsplit(away.headers["location"]).query)["state"][0]
    assert linked.get(f"/sign-in/return?state={state}&code=guessed").status_code == 403


def test_an_answer_that_names_another_issuer_is_refused(linked, provider):
    away = linked.get("/sign-in/provider")
    back = provider.sign_in(away.headers["location"])
    assert linked.get(f"{back}&iss=https://evil.example").status_code == 403


def test_a_person_whom_nobody_invited_is_refused_and_told_what_helps(house, linked, provider):
    provider.subject = "stranger-7"
    answer, _ = there_and_back(linked, provider)
    assert answer.status_code == 403
    assert "stranger-7" in answer.text
    assert SESSION_COOKIE not in linked.cookies
    assert len(house.service.database.rows("SELECT id FROM users")) == 2


def test_a_disabled_person_is_refused(house, linked, admin, provider):
    person = house.service.database.row("SELECT id FROM users WHERE name = 'ana'")["id"]
    admin.form("/users", f"/users/{person}/disable")
    answer, _ = there_and_back(linked, provider)
    assert answer.status_code == 403
    assert SESSION_COOKIE not in linked.cookies


def test_an_administrator_links_and_unlinks_later(house, ana, admin, provider):
    path = f"/users/{house.people['ana']}/subject"
    assert admin.form("/users", path, subject="subject-1").status_code == 303
    browser = Browser(house.app)
    assert there_and_back(browser, provider)[0].status_code == 303
    assert admin.form("/users", "/users", name="eve", subject="subject-1").status_code == 400
    assert admin.form("/users", path, subject="").status_code == 303
    assert browser.get("/me").status_code == 303
    assert there_and_back(Browser(house.app), provider)[0].status_code == 403


def test_people_are_made_by_themselves_if_the_operator_wishes(settings, provider):
    app = create_app(replace(settings, oidc={**settings.oidc, "create": True}))
    try:
        provider.claims = {"preferred_username": "Ana@Example.org", "name": "Ana \u202e Evil"}
        browser = Browser(app)
        assert there_and_back(browser, provider)[0].status_code == 303
        me = browser.get("/api/v1/me").json()
        assert me["grants"] == []
        assert me["name"] == "ana@example.org"
        provider.subject = "subject-2"  # the same name at the provider is another person here
        other = Browser(app)
        assert there_and_back(other, provider)[0].status_code == 303
        assert other.get("/api/v1/me").json()["id"] != me["id"]
        assert there_and_back(Browser(app), provider)[0].status_code == 303
        assert len(app.state.service.database.rows("SELECT id FROM users")) == 2
    finally:
        app.state.service.close()


def test_a_new_key_of_the_provider_is_fetched(linked, provider):
    assert there_and_back(linked, provider)[0].status_code == 303
    from joserfc.jwk import RSAKey

    provider.key = RSAKey.generate_key(2048, {"kid": "two"})
    assert there_and_back(linked, provider)[0].status_code == 303
    assert provider.asked.count("/jwks") == 2
    assert provider.asked.count("/.well-known/openid-configuration") == 1


def test_a_description_that_names_another_issuer_is_refused(linked, provider):
    provider.issuer_shown = "https://evil.example"
    assert linked.get("/sign-in/provider").status_code == 403


def test_a_provider_that_is_away_is_one_refusal(linked, provider, caplog):
    provider.close()
    answer = linked.get("/sign-in/provider")
    assert answer.status_code == 403
    assert provider.issuer not in answer.text
    assert provider.issuer not in caplog.text.replace("HTTP Request", "")


@pytest.mark.parametrize("address", ["http://idp.example/", "ftp://127.0.0.1/", "file:///etc/passwd"])
def test_a_provider_must_be_safe_against_listeners(address):
    from tacit.errors import TacitError

    with pytest.raises(TacitError, match="single sign-on did not work"):
        _oidc._checked(address)


def test_settings_that_are_wrong_are_refused_without_the_secret(settings):
    from tacit.errors import TacitError

    with pytest.raises(TacitError, match="issuer"):
        _oidc.provider_of(replace(settings, oidc={"issuer": "x"}))
    with pytest.raises(TacitError, match="issuer"):
        _oidc.provider_of(replace(settings, oidc={**settings.oidc, "secret": "x"}))
    assert SECRET not in repr(_oidc.provider_of(settings))


def test_without_single_sign_on_its_pages_do_not_exist(house, settings):
    app = create_app(replace(settings, oidc={}, folder=settings.folder / "other"))
    try:
        assert Browser(app).get("/sign-in/provider").status_code == 404
        assert Browser(app).get("/sign-in/return?state=x&code=x").status_code == 404
        assert "/sign-in/provider" not in Browser(app).get("/sign-in").text
    finally:
        app.state.service.close()
