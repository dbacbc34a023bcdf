"""A kind of dataset of a package outside Tacit, in a service whose operator names the package."""

from __future__ import annotations

import sys

import pytest

import tacit as tc
from outside_field import install
from tacit.core import Release, _registry, admit_packages
from tacit.service import ListedSource
from tacit.service._times import now_text

DECLARED = {
    "name": "edges", "source": "edges", "unit": "edge", "budget": {"epsilon": "100"},
    "declared": {"weight": "weight"},
}  # fmt: skip
ASK = {"dataset": "edges", "method": "count", "arguments": {"least": 2}, "epsilon": "50"}


@pytest.fixture(params=[["weighted-graphs"], []], ids=["named", "not named"])
def named(request, tmp_path, monkeypatch):
    """Install the package; a service uses it where its operator names it, as its processes do at first."""
    monkeypatch.syspath_prepend(install(tmp_path / "site"))
    monkeypatch.setattr(_registry._Admitted, "packages", None)
    _registry._outside.cache_clear()
    admit_packages(request.param)
    yield request.param
    _registry._outside.cache_clear()
    sys.modules.pop("weighted_graphs", None)


@pytest.fixture
def settings(settings, tmp_path, named):
    (tmp_path / "edges.csv").write_text("from,to,weight\nana,ben,3\nben,eva,1\neva,ana,2\n")
    listed = {"edges": ListedSource("edges", str(tmp_path / "edges.csv"), kind="weighted-graph")}
    return type(settings)(folder=settings.folder, sources=listed, fields=",".join(named))


def test_an_outside_kind_is_declared_priced_asked_and_certified(house, drawing, named):
    house.person("cora", everywhere="curator")
    house.person("ana", edges="analyst")
    cora, ana = house.token("cora"), house.token("ana")
    made = house.call("POST", "/api/v1/datasets", cora, json=DECLARED)
    if not named:
        assert (made.status_code, made.json()["code"]) == (422, "not-allowed"), made.text
        return
    assert made.status_code == 201, made.text
    account = f"edges/{house.people['ana']}/1"
    house.service.ledger.create_account(account, parent="edges", budget=tc.Budget(epsilon=100))
    with house.service.database.change() as change:
        change.run(
            "INSERT INTO accounts (name, dataset, person, purpose, created) VALUES (?, ?, ?, 'study', ?)",
            account, "edges", house.people["ana"], now_text(),
        )  # fmt: skip
    card = house.call("POST", "/api/v1/plans", ana, json=ASK)
    assert card.status_code == 200, card.text
    asked = house.call("POST", "/api/v1/queries", ana, json=ASK)
    assert asked.status_code == 202, asked.text
    drawing.answer()
    query = house.call("GET", f"/api/v1/queries/{asked.json()['query']}", ana).json()
    assert query["state"] == "finished", query
    release = Release.from_json(house.call("GET", f"/api/v1/releases/{query['release']}.json", ana).json())
    assert release.certificate.plan == card.json()["plan"]
    assert release.value == 2  # with epsilon 50, the noise is 0
    assert release.certificate.fields["software"].endswith("; weighted-graphs 1.5")
    for wrong in ({"least": 0}, {"least": "x"}, {"most": 3}):
        refused = house.call("POST", "/api/v1/plans", ana, json={**ASK, "arguments": wrong})
        assert refused.json()["code"] == "bad-parameter", refused.text
