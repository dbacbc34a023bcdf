"""A service with one dataset that a curator has declared, an analyst with an allotment, and others."""

from __future__ import annotations

import json

import pytest

import tacit as tc
from tacit.service._times import now_text


def declare(service, name="visits", **policy):
    """Declare a dataset as curation does it: account in the ledger, policy, public facts."""
    keys = {"hospital": list(tc.tables.EXAMPLE_HOSPITALS)}
    bounds = {"age": (0, 120), "length_of_stay": (0, 60)}
    dataset = tc.protect(
        tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=3), ledger=service.ledger,
        name=name, keys=keys, bounds=bounds,
    )  # fmt: skip
    register(service, dataset, bounds=bounds, keys=keys, **policy)
    return dataset


def register(service, dataset, kind="table", **policy):
    """Write a dataset into the service's database as curation does it."""
    name = dataset.name
    document = {
        "source": name, "kind": kind, "unit": str(dataset.unit), "lag": 4, "shows_stored": True,
        "title": name.title(), "about": "Invented data", **policy,
    }  # fmt: skip
    facts = dataset.public_facts() if kind == "table" else {}
    with service.database.change() as change:
        change.run(
            "INSERT INTO datasets (name, kind, policy, created_by, created) VALUES (?, ?, 1, 'u_x', ?)",
            name, kind, now_text(),
        )  # fmt: skip
        change.run(
            "INSERT INTO policies (dataset, number, document, facts, created_by, created)"
            " VALUES (?, 1, ?, ?, 'u_x', ?)",
            name, json.dumps(document), json.dumps(facts), now_text(),
        )  # fmt: skip


@pytest.fixture
def registered():
    """Return the function that writes a dataset into the service's database."""
    return register


def allot(house, name, dataset="visits", epsilon=1, number=1):
    """Give a person an allotment; return the name of its account."""
    account = f"{dataset}/{house.people[name]}/{number}"
    house.service.ledger.create_account(account, parent=dataset, budget=tc.Budget(epsilon=epsilon))
    with house.service.database.change() as change:
        change.run(
            "INSERT INTO accounts (name, dataset, person, purpose, created) VALUES (?, ?, ?, 'care', ?)",
            account, dataset, house.people[name], now_text(),
        )  # fmt: skip
    return account


@pytest.fixture
def ward(house):
    """The service with the dataset ``visits``; ana may ask and has an allotment."""
    house.data = declare(house.service)
    for name, role in (("ana", "analyst"), ("ben", "analyst"), ("cem", "curator"), ("dora", "auditor"),
                       ("eva", "owner")):  # fmt: skip
        house.person(name, visits=role)
    house.person("adi", everywhere="admin")
    house.person("olga", everywhere="auditor")
    house.person("zoe", other="analyst")
    house.account = allot(house, "ana")
    house.tokens = {name: house.token(name) for name in house.people}
    return house
