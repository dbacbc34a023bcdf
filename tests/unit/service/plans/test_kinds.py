"""Other kinds of datasets: planned without data, run, downloaded and verified; nothing beyond the list."""

import json
from fractions import Fraction

import pytest

import tacit as tc
from tacit.service._kinds import (
    facts_of_kind,
    kind_names,
    methods_of,
    open_kind,
    open_kind_facts,
    plan_of_question,
    served_questions,
    try_questions,
)
from tacit.service._times import now_text
from tacit.service.plans import plan_of

POINTS = {
    "unit": "row", "version": 1, "budget": {"epsilon": "5", "delta": "0", "rho": None},
    "declared": {"lat": "lat", "lon": "lon", "box": [["-30", "125"], ["-20", "140"]]},
}  # fmt: skip
GRAPH = {
    "unit": "edge", "budget": {"epsilon": "5"},
    "declared": {"source_column": "a", "target_column": "b", "nodes": 50},
}  # fmt: skip
ASKS = [
    ("points", {"method": "grid", "arguments": {"rows": 4, "columns": 5}}),
    ("points", {"method": "tree", "arguments": {"depth": 3}}),
    ("points", {"method": "hottest", "arguments": {"k": 2}}),
    ("graph", {"method": "edges"}),
    ("graph", {"method": "degree_histogram", "arguments": {"largest": 5}}),
    ("graph", {"method": "triangles"}),
    ("graph", {"method": "wedges"}),
    ("graph", {"method": "clustering"}),
    ("graph", {"method": "stars", "arguments": {"k": 2}}),
]


@pytest.fixture
def sources(tmp_path):
    (tmp_path / "sites.csv").write_text(
        "lat,lon\n" + "".join(f"{-29 + i / 10},{126 + i / 8}\n" for i in range(80))
    )
    (tmp_path / "friends.csv").write_text("a,b\n" + "".join(f"n{i},n{(i * 7 + 1) % 50}\n" for i in range(50)))
    return {"points": tmp_path / "sites.csv", "graph": tmp_path / "friends.csv"}


def opened(kind, sources, ledger):
    policy = {"points": POINTS, "graph": GRAPH}[kind]
    name = f"my-{kind}"
    ledger.create_account(name, unit="row" if kind == "points" else "edge", budget=tc.Budget(epsilon=5))
    return open_kind(kind, sources[kind], name, policy, ledger), facts_of_kind(kind, name, policy)


@pytest.mark.parametrize(("kind", "ask"), ASKS, ids=lambda one: str(one)[:40])
def test_a_worker_plans_without_data_what_the_runner_runs_and_anybody_verifies(kind, ask, sources):
    ledger = tc.Ledger.memory()
    real, facts = opened(kind, sources, ledger)
    worker = open_kind_facts(kind, json.loads(json.dumps(facts)), ledger)
    asked = {**ask, "epsilon": "1/2"}
    head = ledger.head
    plan = plan_of(worker, asked)
    assert plan_of(real, asked) == plan
    assert ledger.head == head
    release = plan_of(real, asked).release(who="u_ana")
    assert release.certificate.plan == plan.hash
    assert release.certificate.matches(ledger)
    written = json.loads(json.dumps(release.to_json()))
    assert type(release).from_json(written).content.to_json() == release.content.to_json()
    assert release.content.text()


@pytest.mark.parametrize("kind", sorted(kind_names()))
def test_a_process_can_try_every_question_before_the_first_paid_one(kind, monkeypatch):
    from tacit.service import _kinds

    tried = []
    monkeypatch.setattr(
        _kinds, "plan_of_question", lambda *given: tried.append(given[1]) or plan_of_question(*given)
    )
    try_questions(kind)
    assert tried == ([] if kind == "table" else [one.name for one in served_questions(kind)])


def test_every_listed_method_is_tried():
    tried = {(kind, ask["method"]) for kind, ask in ASKS}
    listed = {(kind, one.name) for kind in kind_names() for one in served_questions(kind)}
    elsewhere = {("stream", "series")}  # runner/test_streams.py: a series is drawn day by day
    directed = {("graph", "reciprocity")}
    assert {one for one in listed if one[0] != "table"} == tried | elsewhere | directed
    assert [one["name"] for one in methods_of("graph")] == [one.name for one in served_questions("graph")]


@pytest.mark.parametrize("method", ["suggest_limits", "measure_cut"])
def test_the_methods_of_tables(ward, method):
    facts = ward.service.dataset("visits").dataset
    ask = {"method": method, "arguments": {}, "epsilon": "1/2"}
    assert plan_of(facts, ask) == getattr(ward.data, method)().plan(epsilon=Fraction(1, 2))


@pytest.mark.parametrize(
    ("kind", "ask"),
    [
        ("graph", {"method": "release"}), ("graph", {"method": "_rebuild"}), ("graph", {"method": "verdict"}),
        ("graph", {"method": "__class__"}), ("graph", {"method": "edges", "arguments": {"self": 1}}),
        ("graph", {"method": "edges", "arguments": {"epsilon": 9}}), ("graph", {"method": "stars"}),
        ("graph", {"method": "stars", "arguments": {"k": 10**9}}),
        ("graph", {"method": "stars", "arguments": {"k": True}}),
        ("graph", {"method": "stars", "arguments": {"k": {"decimal": "2.5"}}}),
        ("graph", {"sql": "SELECT COUNT(*) FROM friends"}),
        ("points", {"method": "districts", "arguments": {"districts": "/etc/passwd"}}),
        ("points", {"method": "grid", "arguments": {"rows": 10**6, "columns": 10**6}}),
        ("points", {"method": "grid", "arguments": {"rows": 4}}),
        ("points", {"method": "tree", "arguments": {"depth": 10**6}}),
        ("points", {"method": "grid", "arguments": [4, 5]}),
        ("graph", {"method": "mixing", "arguments": {"group": "x"}}),
        ("points", {"method": "tree", "delta": "1e-6"}),
        ("points", {"method": "grid", "arguments": {"rows": 4, "columns": 4}, "within": "1"}),
    ],
)  # fmt: skip
def test_nothing_beyond_the_list(kind, ask, sources):
    ledger = tc.Ledger.memory()
    _, facts = opened(kind, sources, ledger)
    with pytest.raises(tc.TacitError):
        plan_of(open_kind_facts(kind, facts, ledger), {**ask, "epsilon": "1/2"})


def test_facts_of_a_kind_are_checked(sources):
    ledger = tc.Ledger.memory()
    for declared in ({}, {"lat": "lat", "lon": "lon"}, {**POINTS["declared"], "source": "/etc/passwd"}):
        with pytest.raises(tc.TacitError):
            open_kind("points", sources["points"], "x", {**POINTS, "declared": declared}, ledger)
    with pytest.raises(tc.TacitError):
        open_kind("nothing", sources["points"], "x", POINTS, ledger)
    with pytest.raises(tc.TacitError):
        open_kind_facts("points", {"schema": "x"}, ledger)
    with pytest.raises(tc.TacitError):
        plan_of_question(tc.protect([{"a": 1}], unit=tc.Unit.row(), budget=tc.Budget(1)), "edges", {}, {})


@pytest.mark.parametrize(("kind", "ask"), [ASKS[0], ASKS[3]], ids=["points", "graph"])
def test_cards_and_pages_of_other_kinds(ward, sources, kind, ask):
    service = ward.service
    real, facts = opened(kind, sources, service.ledger)
    with service.database.change() as change:
        change.run(
            "INSERT INTO datasets (name, kind, policy, created_by, created) VALUES (?, ?, 1, 'u_x', ?)",
            real.name, kind, now_text(),
        )  # fmt: skip
        change.run(
            "INSERT INTO policies (dataset, number, document, facts, created_by, created)"
            " VALUES (?, 1, '{}', ?, 'u_x', ?)",
            real.name, json.dumps(facts), now_text(),
        )  # fmt: skip
        change.run("UPDATE grants SET dataset = '' WHERE person = ?", ward.people["ana"])
    body = {"dataset": real.name, "epsilon": "1/2", **ask}
    card = ward.call("POST", "/api/v1/plans", ward.tokens["ana"], json=body)
    assert card.status_code == 200, card.text
    assert card.json()["plan"] == plan_of(real, {**ask, "epsilon": "1/2"}).hash
    page = ward.call("GET", f"/datasets/{real.name}/ask", ward.tokens["ana"])
    assert page.status_code == 200
    assert 'name="method"' in page.text
    refused = ward.call("POST", f"/api/v1/datasets/{real.name}/sandbox", ward.tokens["ana"], json=body)
    assert refused.json()["code"] == "not-allowed"
