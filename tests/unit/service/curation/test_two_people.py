"""The rule of two people against one administrator who makes accounts, gives roles and uses links."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tacit as tc
from tacit.service._times import later_text, now_text
from tacit.service.access import _people

GROWTH = {"kind": "growth", "dataset": "visits", "epsilon": "1000", "statement": "more"}


@pytest.fixture
def settings(settings: Any, request: pytest.FixtureRequest) -> Any:
    return replace(settings, **getattr(request, "param", {}))


@pytest.fixture
def socks(house: Any, visits: dict[str, str]) -> dict[str, str]:
    """Two accounts of one administrator."""
    for name in ("sock1", "sock2"):
        house.person(name)
        visits[name] = house.token(name)
    return visits


def give(house: Any, giver: str, name: str, role: str = "owner") -> None:
    """Give a role on the dataset, as an administrator or as an owner."""
    if giver == "ada":
        person, body = house.people[name], {"role": role, "dataset": "visits"}
        answer = house.call("POST", f"/api/v1/users/{person}/grants", house.token(giver), json=body)
    else:
        body = {"name": name, "role": role}
        answer = house.call("POST", "/api/v1/datasets/visits/people", house.token(giver), json=body)
    assert answer.status_code == 200, answer.text


def link(house: Any, name: str, maker: str = "ada") -> None:
    """Let an administrator make a link for a person, and use it."""
    answer = house.call("POST", f"/api/v1/users/{house.people[name]}/invite", house.token(maker))
    assert answer.status_code == 201, answer.text
    with house.database.change() as change:
        change.run("UPDATE made_links SET used = ? WHERE person = ?", now_text(), house.people[name])


def grown(house: Any, tokens: dict[str, str], first: str, second: str) -> Any:
    """Let one account propose a larger budget and another one approve it."""
    asked = house.call("POST", "/api/v1/requests", tokens[first], json=GROWTH)
    assert asked.status_code == 201, asked.text
    path = f"/api/v1/requests/{asked.json()['request']}/approve"
    return house.call("POST", path, tokens[second], json={})


def refused(house: Any, answer: Any) -> bool:
    assert (answer.status_code, answer.json()["code"]) == (403, "not-permitted"), answer.text
    assert house.service.ledger.account("visits").budget == tc.Budget(epsilon=3)
    return True


def test_two_accounts_that_one_administrator_made_are_not_two_people(
    house: Any, socks: dict[str, str]
) -> None:
    give(house, "ada", "sock1")
    give(house, "ada", "sock2")
    assert refused(house, grown(house, socks, "sock1", "sock2"))
    assert refused(house, grown(house, socks, "carl", "sock2"))
    with house.database.change() as change:
        change.run("UPDATE grants SET granted = ? WHERE granted_by <> person", later_text(days=-8))
    assert grown(house, socks, "sock1", "sock2").status_code == 200


def test_a_role_that_an_owner_gave_counts_as_that_owner(house: Any, socks: dict[str, str]) -> None:
    give(house, "olga", "sock1", "curator")
    assert refused(house, grown(house, socks, "olga", "sock1"))
    assert grown(house, socks, "carl", "sock1").status_code == 200


def test_a_chain_of_new_owners_counts_as_its_beginning(house: Any, socks: dict[str, str]) -> None:
    give(house, "olga", "sock1")
    give(house, "sock1", "sock2")
    assert refused(house, grown(house, socks, "sock1", "sock2"))
    assert refused(house, grown(house, socks, "olga", "sock2"))


def test_accounts_whose_links_one_administrator_used_are_one_person(
    house: Any, socks: dict[str, str]
) -> None:
    link(house, "carl")
    link(house, "olga")
    assert refused(house, grown(house, socks, "carl", "olga"))
    assert grown(house, socks, "carl", "cora").status_code == 200  # one of the two is known to be another


def make_admin(house: Any, giver: str, name: str) -> None:
    path, body = f"/api/v1/users/{house.people[name]}/grants", {"role": "admin", "dataset": ""}
    answer = house.call("POST", path, house.token(giver), json=body)
    assert answer.status_code == 200, answer.text


def puppet(house: Any, *makers: str) -> None:
    """Let an administrator give an account the role of one, after each of these has made a link for it."""
    house.person("puppet")
    for maker in makers:
        link(house, "puppet", maker)
    make_admin(house, "ada", "puppet")


@pytest.mark.parametrize("makers", [["ada"], []])
def test_a_second_administrator_whom_the_first_made_is_not_another_person(
    house: Any, visits: dict[str, str], makers: list[str]
) -> None:
    puppet(house, *makers)
    link(house, "carl")
    link(house, "olga", "puppet")
    assert refused(house, grown(house, visits, "carl", "olga"))
    assert grown(house, visits, "carl", "cora").status_code == 200


def test_nobody_knows_whom_an_administrator_without_the_role_stood_for(
    house: Any, visits: dict[str, str]
) -> None:
    puppet(house)
    link(house, "carl")
    link(house, "olga", "puppet")
    path, body = f"/api/v1/users/{house.people['puppet']}/grants/withdraw", {"role": "admin", "dataset": ""}
    assert house.call("POST", path, visits["ada"], json=body).status_code == 200
    assert refused(house, grown(house, visits, "carl", "olga"))


def test_a_chain_of_administrators_counts_as_its_beginning(house: Any, socks: dict[str, str]) -> None:
    make_admin(house, "ada", "sock1")
    make_admin(house, "sock1", "sock2")
    link(house, "ada", "sock2")  # a circle
    link(house, "carl", "sock2")
    link(house, "olga", "sock1")
    assert refused(house, grown(house, socks, "carl", "olga"))


def test_a_giver_whose_link_an_administrator_made_is_that_administrator(
    house: Any, socks: dict[str, str]
) -> None:
    link(house, "olga")
    give(house, "olga", "sock1", "curator")
    link(house, "carl")
    assert refused(house, grown(house, socks, "carl", "sock1"))
    assert refused(house, grown(house, socks, "olga", "sock1"))
    assert grown(house, socks, "cora", "sock1").status_code == 200


def test_a_new_link_does_not_hide_who_gave_the_role_or_made_an_earlier_link(
    house: Any, socks: dict[str, str]
) -> None:
    house.person("bob", everywhere="admin")
    give(house, "olga", "sock1", "curator")
    link(house, "sock1", "bob")
    assert refused(house, grown(house, socks, "olga", "sock1"))
    link(house, "carl")
    link(house, "carl", "bob")
    link(house, "olga")
    assert refused(house, grown(house, socks, "carl", "olga"))


@pytest.mark.parametrize("settings", [{"waiting_days": 0}], indirect=True)
def test_an_operator_may_do_without_waiting(house: Any, socks: dict[str, str]) -> None:
    give(house, "ada", "sock1")
    give(house, "ada", "sock2")
    assert grown(house, socks, "sock1", "sock2").status_code == 200


def test_the_page_of_a_request_shows_who_gave_the_roles_and_when(house: Any, socks: dict[str, str]) -> None:
    give(house, "ada", "sock1")
    asked = house.call("POST", "/api/v1/requests", socks["sock1"], json=GROWTH).json()["request"]
    shown = house.call("GET", f"/api/v1/requests/{asked}", socks["carl"]).json()["roles"]
    assert [(one["person_name"], one["role"], one["given_by_name"]) for one in shown] == [
        ("Sock1", "owner", "Ada"), ("Carl", "curator", "themselves"),
    ]  # fmt: skip
    page = house.call("GET", f"/requests/{asked}", socks["carl"]).text
    assert "Roles of the people who decide" in page


def test_people_are_told_who_made_a_link_for_them(house: Any, visits: dict[str, str]) -> None:
    assert "made a link for you" not in house.call("GET", "/", visits["eve"]).text
    link(house, "eve")
    assert "Ada made a link for you" in house.call("GET", "/", visits["eve"]).text
    [told] = house.call("GET", "/api/v1/me", visits["eve"]).json()["links"]
    assert told["by"] == "Ada"
    assert told["used"] >= told["made"]
    assert "Links that were made for you" in house.call("GET", "/me", visits["eve"]).text
    assert house.call("GET", "/api/v1/me", visits["ana"]).json()["links"] == []


def test_linking_a_person_to_single_sign_on_counts_like_a_link(
    house: Any, visits: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_people, "subject_of", lambda _, subject: subject)
    for name in ("carl", "olga"):
        path, body = f"/api/v1/users/{house.people[name]}/subject", {"subject": f"number of {name}"}
        assert house.call("POST", path, visits["ada"], json=body).status_code == 200
    assert refused(house, grown(house, visits, "carl", "olga"))
    assert "Ada made a link for you" in house.call("GET", "/", visits["carl"]).text
