"""Every text that a person can write is hostile, on every page of a real `tacit serve` in Chromium."""

from __future__ import annotations

import csv
import json
import time
from urllib.parse import quote

import pytest

from support.browsing import in_browser
from support.served import SETTINGS, Served
from tacit.service._times import later_text, new_secret, now_text
from tacit.service.access import digest_of_secret

pytestmark = in_browser
TAKEN = "document.title=`taken`"
MARKUP = f'"><script>{TAKEN}</script><img src=x onerror={TAKEN}><b id=taken>x</b>'
SVG = f"</text></svg><svg onload={TAKEN}><script>{TAKEN}</script>"
TEMPLATE = "{{ 7*191 }}{% include 'base.html' %}<!--]]>"
LINK = f"javascript:{TAKEN}"
FORMULA = '=HYPERLINK("http://evil.example","x")'
COLUMN, KEYS = MARKUP[:60], [MARKUP, SVG, TEMPLATE, LINK, FORMULA, "plain"]
SQL = "SELECT {0}, COUNT(*) AS {1} FROM visits GROUP BY {0}".format(
    '"' + COLUMN.replace('"', '""') + '"', '"' + SVG[:60] + '"'
)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    with (folder / "visits.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["patient", COLUMN])
        writer.writerows([number, KEYS[number % len(KEYS)]] for number in range(600))
    (folder / "service.toml").write_text(f'{SETTINGS}\n[sources]\nvisits = "{folder / "visits.csv"}"\n')
    made = Served(folder).start()
    yield made
    made.stop()


def post(served, path, who, body, status=(200, 201, 202)):
    found, document = served.call("POST", f"/api/v1{path}", served.tokens[who], body)
    assert found in status, document
    return document


@pytest.fixture(scope="module")
def pages(served):
    """Fill the service with hostile texts; return the addresses of all pages with who looks at them."""
    served.person("all", everywhere="admin owner curator analyst auditor")
    served.person("other", everywhere="curator analyst")
    with served.database.change() as change:
        change.run("UPDATE users SET shown = ?", MARKUP)
    served.tokens = {name: served.token(name) for name in served.people}
    declared = {
        "name": "visits", "source": "visits", "unit": "patient", "keys": {COLUMN: KEYS}, "title": MARKUP,
        "budget": {"epsilon": "9"}, "about": f"{SVG} {TEMPLATE} {LINK}",
    }  # fmt: skip
    post(served, "/datasets", "all", declared)
    post(served, "/datasets/visits/policies", "all", {"keys": {COLUMN: [*KEYS, SVG + "2"]}, "title": SVG})
    wish = {"kind": "allotment", "dataset": "visits", "epsilon": "5", "purpose": MARKUP + TEMPLATE}
    request = post(served, "/requests", "all", wish)["request"]
    account = post(served, f"/requests/{request}/approve", "other", {})["account"]
    declined = post(served, "/requests", "all", {**wish, "purpose": SVG})["request"]
    post(served, f"/requests/{declined}/decline", "other", {"reason": MARKUP})
    ask = {"dataset": "visits", "sql": SQL, "epsilon": "1"}
    plan = {"kind": "plan", "dataset": "visits", "purpose": LINK, "ask": ask}
    planned = post(served, "/requests", "all", plan)["request"]
    growth = {"kind": "growth", "dataset": "visits", "epsilon": "10", "statement": MARKUP}
    grown = post(served, "/requests", "other", growth)["request"]
    post(served, f"/requests/{grown}/approve", "all", {})
    query = post(served, "/queries", "all", ask)["query"]
    release, end = None, time.monotonic() + 60
    while not release:
        assert time.monotonic() < end, served.log()
        found = served.call("GET", f"/api/v1/queries/{query}", served.tokens["all"])[1]
        assert found["state"] not in {"failed", "refused"}, found
        release = found["release"]
    said = {"release": release, "title": MARKUP, "about": SVG + TEMPLATE}
    shown = post(served, "/publications", "all", said)["publication"]
    hidden = post(served, f"/publications/{shown}/withdraw", "all", {"reason": MARKUP + LINK})
    again = post(served, "/publications", "all", said)["publication"]
    post(
        served, "/tokens", "all", {"label": MARKUP, "scopes": ["read"], "until": now_text()[:10]}, (201, 403)
    )
    post(served, "/datasets/visits/freeze", "all", {"reason": MARKUP})
    post(served, "/datasets/visits/unfreeze", "all", {"reason": SVG})
    post(served, "/datasets/visits/pause", "all", {"reason": MARKUP + SVG})
    number = served.people["all"]
    return [
        "/", "/datasets", "/datasets/visits", "/datasets/visits/policies", "/datasets/visits/policies/2",
        "/datasets/visits/people", "/datasets/visits/change", "/datasets/visits/publish",
        "/datasets/visits/ask", "/datasets/visits/sandbox", f"/accounts/{account}", "/requests",
        f"/requests/{request}", f"/requests/{declined}", f"/requests/{planned}", f"/requests/{grown}",
        "/requests/new?dataset=visits", "/queries", f"/queries/{query}", "/releases", f"/releases/{release}",
        "/publications", f"/p/{shown}", f"/p/{again}", "/ledger", "/certificates/check", "/tokens", "/users",
        f"/users/{number}", "/audit-events", "/me", "/declare", f"/errors/{quote(MARKUP)}",
        f"/requests?state={quote(MARKUP)}", f"/learn/epsilon?epsilon={quote(MARKUP)}",
        f"/learn/attacks/membership?epsilon={quote(MARKUP)}", f"/learn/game?epsilon={quote(MARKUP)}",
        f"/queries?after={quote(MARKUP)}",
        f"/datasets/{quote(MARKUP, safe='')}", f"/{quote(MARKUP, safe='')}",
    ], hidden, release  # fmt: skip


def sign_in(served, browser, name):
    """Give the browser a session without typing a password."""
    secret = new_secret()
    with served.database.change() as change:
        change.run(
            "INSERT INTO sessions (digest, person, csrf, created, expires) VALUES (?, ?, ?, ?, ?)",
            digest_of_secret(secret), served.people[name], new_secret(), now_text(), later_text(hours=1),
        )  # fmt: skip
    browser.get(f"{served.url}/sign-in")
    browser.delete_all_cookies()
    browser.add_cookie({"name": "tacit_session", "value": secret, "path": "/"})


def check(browser, path):
    """Fail if a text of a person was more than a text, or if the browser complained."""
    assert browser.title != "taken", path
    assert browser.find_elements("css selector", "#taken, [onerror], [onload], script:not([src])") == [], path
    hrefs = [one.get_attribute("href") or "" for one in browser.find_elements("css selector", "[href]")]
    assert not [one for one in hrefs if one.lower().startswith(("javascript:", "data:"))], path
    assert "1337" not in browser.page_source, path  # what the text of a template would have computed
    # The status of a refused page is no complaint about its content.
    lines = [
        one["message"]
        for one in browser.get_log("browser")
        if "the server responded with" not in one["message"]
    ]
    assert lines == [], (path, lines)


def test_no_text_of_a_person_is_more_than_a_text_on_any_page(served, browser, pages):
    addresses, _, _ = pages
    sign_in(served, browser, "all")
    browser.get_log("browser")
    seen = 0
    for path in addresses:
        browser.get(f"{served.url}{path}")
        check(browser, path)
        seen += TAKEN in browser.find_element("tag name", "body").text
    assert seen >= 20  # else the texts are not on the pages


def test_a_refused_form_shows_what_was_written_as_text(served, browser, pages):
    sign_in(served, browser, "all")
    browser.get_log("browser")
    for path in ("/datasets/visits/ask", "/datasets/visits/sandbox"):
        browser.get(f"{served.url}{path}")
        editor = browser.find_element("name", "sql")
        browser.execute_script("arguments[0].value = arguments[1]", editor, f"SELECT {MARKUP}")
        browser.execute_script("arguments[0].form.requestSubmit()", editor)
        time.sleep(1)
        check(browser, path)
        assert TAKEN in browser.find_element("name", "sql").get_attribute("value")


def test_downloads_hold_no_script_and_no_formula(served, browser, pages, tmp_path):
    _, _, release = pages
    token = served.tokens["all"]
    picture = served.call("GET", f"/api/v1/releases/{release}.svg", token)[1]
    file = tmp_path / "release.svg"
    file.write_text(picture)
    browser.get(file.as_uri())
    assert (
        browser.execute_script("return document.querySelectorAll('script, [onload], [onerror]').length") == 0
    )
    assert browser.execute_script("return document.documentElement.nodeName") == "svg"  # it is well formed
    rows = list(csv.reader(served.call("GET", f"/api/v1/releases/{release}.csv", token)[1].splitlines()))
    assert any(FORMULA in cell for row in rows for cell in row)
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "@", "\t", "\r"))]
    whole = served.call("GET", f"/api/v1/releases/{release}", token)[1]
    assert MARKUP in json.dumps(whole, ensure_ascii=False).replace('\\"', '"')
