"""Publications: one release for everybody, and nothing beside it."""

import json
import time

import pytest

import tacit as tc
from unit.service.curation.test_requests import written

TITLE = {"title": "Visits in 2025", "about": "How many visits there were."}


@pytest.fixture
def release(house, visits):
    """A release of the dataset, as the runner writes it."""
    assert visits
    ledger = house.service.ledger
    place = house.service.settings.sources["visits"].place
    dataset = tc.protect(
        place,
        unit="patient_id",
        name="visits",
        ledger=ledger,
        budget=tc.Budget(epsilon=3),
        limits={"rows": 5},
    )
    made = (
        dataset.agg(n=tc.count()).plan(epsilon=0.5).release(who=house.people["ana"], purpose="CANARY-PURPOSE")
    )
    write(house, "l_1", made.to_json(), time.time() - 1)
    write(house, "l_2", made.to_json(), time.time() + 3600)
    return made


def write(house, name, document, shown_from):
    with house.service.database.change() as change:
        change.run(
            "INSERT INTO releases"
            " (id, query, dataset, person, account, plan, document, created, shown_from, position)"
            " VALUES (?, 'q', 'visits', ?, ?, 'plan', ?, '2026', ?, 1)",
            name, house.people["ana"], f"visits/{house.people['ana']}/1", json.dumps(document), shown_from,
        )  # fmt: skip


def test_a_published_release_is_readable_without_signing_in(house, visits, release):
    answer = house.call("POST", "/api/v1/publications", visits["carl"], json={"release": "l_1", **TITLE})
    assert answer.status_code == 201, answer.text
    path = answer.headers["location"]
    found = house.call("GET", path).json()
    assert found["title"] == TITLE["title"]
    assert found["content"]["columns"]["n"] == release.content.to_json()["columns"]["n"]
    assert found["promise"]["sentence"].startswith("this figure moves the odds of any fact about one patient")
    assert found["promise"]["exact"] == {"epsilon": "1/2"}
    certificate = house.call("GET", path + "/certificate")
    assert certificate.json() == release.to_json()["certificate"]
    assert "attachment" in certificate.headers["content-disposition"]
    values = house.call("GET", path + "/values.csv")
    assert values.text.splitlines()[0].startswith("n,")
    listed = house.call("GET", "/api/v1/publications").json()["publications"]
    assert [one["title"] for one in listed] == [TITLE["title"]]
    for text in (json.dumps(found), json.dumps(listed)):
        for canary in ("CANARY-PURPOSE", "l_1", house.people["ana"], house.people["carl"], "Ana", "Carl"):
            assert canary not in text


@pytest.mark.parametrize("name", ["ana", "otto", "ada", "eve"])
def test_only_curators_publish(house, visits, release, name):
    assert release
    before = written(house)
    answer = house.call("POST", "/api/v1/publications", visits[name], json={"release": "l_1", **TITLE})
    assert answer.status_code == 404
    assert house.call("POST", "/api/v1/publications", json={"release": "l_1", **TITLE}).status_code == 401
    assert written(house) == before


def test_a_release_before_its_time_does_not_exist(house, visits, release):
    assert release
    answer = house.call("POST", "/api/v1/publications", visits["carl"], json={"release": "l_2", **TITLE})
    assert answer.status_code == 404


def test_a_withdrawn_publication_says_so_and_shows_nothing(house, visits, release):
    assert release
    made = house.call("POST", "/api/v1/publications", visits["carl"], json={"release": "l_1", **TITLE}).json()
    again = house.call("POST", "/api/v1/publications", visits["carl"], json={"release": "l_1", **TITLE})
    assert again.json()["code"] == "already-decided"
    path = f"/api/v1/publications/{made['publication']}/withdraw"
    for name in ("ana", "otto", "ada", "eve"):
        assert house.call("POST", path, visits[name], json={"reason": "x"}).status_code == 404
    assert house.call("POST", path, visits["olga"], json={"reason": "a wrong title"}).status_code == 200
    found = house.call("GET", f"/api/v1/p/{made['publication']}").json()
    assert set(found) == {"publication", "withdrawn", "reason", "may_withdraw"}
    assert found["reason"] == "a wrong title"
    for file in ("certificate", "values.csv"):
        assert house.call("GET", f"/api/v1/p/{made['publication']}/{file}").status_code == 404
    assert house.call("GET", "/api/v1/publications").json()["publications"] == []
    assert house.call("GET", "/api/v1/p/p_unknown").status_code == 404
