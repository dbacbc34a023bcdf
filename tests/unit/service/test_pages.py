"""The pages that belong to no dataset: start, learn corner, error codes; for people and for programs."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.html_checks import check_forms, findings
from tacit.errors import CODES
from tacit.service.pages import OPERATIONS, _lessons
from tacit.service.pages._lessons import ATTACKS, WITHOUT, attack_document, game_document
from tacit.service.pages._start import GLOSSARY

PAGES = [one.path for one in OPERATIONS if "{" not in one.path and one.api]
DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("path", [*PAGES, "/learn/attacks/membership", "/errors/bad-sql", "/nothing/here"])
def test_a_page_is_sound_and_has_its_twin(house, path):
    page = house.call("GET", path)
    assert page.headers["content-type"].startswith("text/html")
    assert findings(page.text) == []
    assert check_forms(page.text) == []
    twin = house.call("GET", "/api/v1" + path)
    assert twin.status_code == page.status_code
    assert twin.json()
    if page.status_code == 200:
        assert f'href="/api/v1{path}"' in page.text


def test_every_page_has_the_frame_and_the_strict_policy(house):
    page = house.call("GET", "/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert 'href="#content"' in page.text
    assert '<html lang="en">' in page.text
    assert "noindex" in page.text


def test_the_start_page_offers_what_the_roles_allow(house):
    house.person("ada", everywhere="analyst")
    house.person("cora", everywhere="owner")
    house.person("carl", visits="curator")
    house.person("nina")
    offered = {
        name: [one["href"] for one in house.call("GET", "/api/v1/", house.token(name)).json()["tasks"]]
        for name in ("ada", "carl", "cora", "nina")
    }
    assert offered["ada"] == ["/datasets", "/queries", "/tokens"]
    assert offered["cora"] == ["/queries", "/declare", "/requests", "/ledger", "/tokens"]
    assert offered["carl"] == ["/queries", "/requests", "/ledger", "/tokens"]  # may not declare datasets
    assert offered["nina"] == []
    assert house.call("GET", "/api/v1/").json()["tasks"] == []


def test_the_explorer_explains_an_exact_price(house):
    told = house.call("GET", "/api/v1/learn/epsilon?epsilon=1/2&prior=0.5").json()
    assert "62:38" in told["lead"][0]
    assert told["bits"] == pytest.approx(0.7213, abs=1e-4)
    belief = next(one for one in told["beliefs"] if one["prior"] == 0.5)
    assert belief["at_most"] == pytest.approx(0.62246, abs=1e-5)
    page = house.call("GET", "/learn/epsilon?epsilon=1/2").text
    assert "62:38" in page
    assert 'value="1/2"' in page


def test_a_delta_makes_an_exception_and_the_page_says_so(house):
    told = house.call("GET", "/api/v1/learn/epsilon?epsilon=1&delta=1e-6").json()
    assert told["bits"] is None
    assert told["condition"].startswith("except with probability")
    assert "except with probability" in house.call("GET", "/learn/epsilon?epsilon=1&delta=1e-6").text


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("epsilon=-1", "epsilon"), ("epsilon=0", "epsilon"), ("epsilon=1e9", "epsilon"),
        ("epsilon=nan", "epsilon"), ("epsilon=1e400", "epsilon"), ("delta=0.5", "delta"),
        ("delta=1e-300", "delta"), ("prior=1", "prior"), ("prior=<script>", "prior"),
    ],
)  # fmt: skip
def test_a_wrong_number_is_refused_at_its_field(house, query, name):
    page = house.call("GET", "/learn/epsilon", params=query)
    assert page.status_code == 400
    assert findings(page.text) == []
    assert re.search(rf'aria-describedby="e-{name} ?" aria-invalid="true"', page.text)
    assert "<script>" not in page.text.replace('<script src="/static/htmx.min.js" defer>', "")
    problem = house.call("GET", "/api/v1/learn/epsilon", params=query).json()
    assert problem["code"] == "bad-parameter"
    value = query.partition("=")[2]
    assert len(value) < 2 or value not in str(problem)  # nothing of the input is repeated


def test_an_unknown_field_is_refused(house):
    assert house.call("GET", "/api/v1/learn/epsilon?epsilonn=1").status_code == 400


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_of_the_lab_runs_within_its_bound(name):
    document = attack_document(name)
    assert document["points"]
    assert all(0.5 < point["limit"] <= 1 for point in document["points"])
    slack = 0.1  # more than six standard deviations beyond the interval: never by chance
    assert all(point["low"] <= point["limit"] + slack for point in document["points"])
    assert document["unprotected"]
    assert attack_document(name) is document  # the work is done once


@pytest.mark.parametrize("name", [name for name, one in ATTACKS.items() if one.choose])
def test_a_visitor_may_attack_one_more_epsilon(house, name):
    told = house.call("GET", f"/api/v1/learn/attacks/{name}?epsilon=0.7777").json()
    assert told["given"] == "0.78"
    assert told["yours"]["epsilon"] == pytest.approx(0.78)
    assert told["yours"]["limit"] == pytest.approx(0.6857, abs=1e-3)
    assert "Your epsilon 0.78" in house.call("GET", f"/learn/attacks/{name}?epsilon=0.7777").text
    assert house.call("GET", f"/api/v1/learn/attacks/{name}").json()["yours"] is None


@pytest.mark.parametrize("wrong", ["0", "-1", "1e9", "x", "1e-30"])
def test_an_epsilon_that_the_lab_does_not_attack_is_refused_at_its_field(house, wrong):
    page = house.call("GET", "/learn/attacks/membership", params={"epsilon": wrong})
    assert page.status_code == 400
    assert findings(page.text) == []
    assert 'aria-invalid="true"' in page.text


def test_a_round_of_the_game_is_the_same_for_everybody_and_hides_the_truth(house):
    first = house.call("GET", "/api/v1/learn/game?round=7&epsilon=1/2").json()
    assert first == house.call("GET", "/api/v1/learn/game?round=7&epsilon=0.5").json()
    assert "truth" not in first
    guesses = "&".join(
        f"guess{i}={'in' if n > WITHOUT else 'out'}" for i, n in enumerate(first["numbers"], 1)
    )
    told = house.call("GET", f"/api/v1/learn/game?round=7&epsilon=0.5&{guesses}").json()
    assert told["right"] == told["cleverest"]
    assert told["right"] == sum(a == b for a, b in zip(told["guesses"], told["truth"], strict=True))
    page = house.call("GET", f"/learn/game?round=7&epsilon=0.5&{guesses}")
    assert f"You were right {told['right']} times" in page.text
    assert findings(page.text) == []


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_cleverest_attacker_of_the_game_meets_the_limit(epsilon):
    rounds = [game_document(number, epsilon, ["in"] * 8) for number in range(1, 2001)]
    right = sum(one["cleverest"] for one in rounds) / 16_000  # rounds are fixed: nothing here is random
    assert right == pytest.approx(rounds[0]["best"], abs=0.012)
    assert sum(one["right"] for one in rounds) / 16_000 == pytest.approx(0.5, abs=0.012)


@pytest.mark.parametrize(
    "query", ["round=0", "round=1/2", "round=1e9", "epsilon=11", "guess1=maybe", "guess9=in"]
)
def test_a_wrong_move_is_refused(house, query):
    page = house.call("GET", "/learn/game", params=query)
    assert page.status_code == 400
    assert findings(page.text) == []


def test_an_unknown_attack_or_code_is_not_found(house):
    assert house.call("GET", "/learn/attacks/__import__").status_code == 404
    assert house.call("GET", "/errors/nothing").status_code == 404


def test_the_type_of_every_problem_leads_to_a_page(house):
    kind = house.call("GET", "/api/v1/learn/epsilon?epsilon=0").json()["type"]
    assert CODES["bad-parameter"] in house.call("GET", kind).text


def test_the_glossary_says_what_the_documentation_says():
    text = (DOCS / "explanation" / "glossary.md").read_text(encoding="utf-8")
    documented = {
        word: " ".join(meaning.split())
        for word, meaning in re.findall(r"(?m)^(\S[^\n:]*)\n: (.*(?:\n  .*)*)", text)
    }
    assert documented.items() >= GLOSSARY.items()
    assert list(GLOSSARY) == sorted(GLOSSARY)


def test_crawlers_are_asked_to_stay_away(house):
    robots = house.call("GET", "/robots.txt")
    assert robots.text == "User-agent: *\nDisallow: /\n"
    assert robots.headers["content-type"].startswith("text/plain")


def test_a_refused_epsilon_waits_for_no_attack_that_runs(house):
    house.call("GET", "/learn/attacks/membership")

    def refused():
        return house.call("GET", "/learn/attacks/membership?epsilon=nonsense")

    with ThreadPoolExecutor(1) as pool:
        _lessons._ONE_AT_A_TIME.acquire()
        try:
            answer = pool.submit(refused).result(timeout=60)
        finally:
            _lessons._ONE_AT_A_TIME.release()
    assert answer.status_code == 400
    assert "Is this person in the data?" in answer.text
