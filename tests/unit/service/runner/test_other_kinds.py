"""Points on a map and graphs: declared, priced, asked, shown, downloaded, published and verified."""

from __future__ import annotations

import io
import json
import struct
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import tacit as tc
from tacit.client import _http_calls
from tacit.core import Release
from tacit.service import ListedSource
from tacit.service._service import Service
from tacit.service._times import now_text
from tacit.service.plans import plan_cache, plan_of
from tacit.service.runner import _dataset_process, start_process
from tacit.service.runner._dataset_process import open_policy
from unit.service.conftest import Drawing
from unit.service.curation.test_pages import Browser, step

POINTS = {
    "name": "sites", "source": "sites", "unit": "row", "budget": {"epsilon": "5"}, "title": "Sites",
    "declared": {"lat": "lat", "lon": "lon", "box": [[-30, 125], [-20, 140]]},
}  # fmt: skip
GRAPH = {
    "name": "friends", "source": "friends", "unit": "edge", "budget": {"epsilon": "5"},
    "declared": {"source_column": "a", "target_column": "b", "nodes": 50},
}  # fmt: skip
ASKS = [
    ("sites", "surface", {"method": "grid", "arguments": {"rows": 4, "columns": 5}}),
    ("sites", "surface", {"method": "tree", "arguments": {"depth": 3}}),
    ("sites", "answer-table", {"method": "hottest", "arguments": {"k": 2}}),
    ("friends", "answer-table", {"method": "edges"}),
    ("friends", "degree-table", {"method": "degree_histogram", "arguments": {"largest": 5}}),
    ("friends", "answer-table", {"method": "triangles"}),
]
FORMULA_NODE = "=1+1"


def write_geoparquet(path, rows):
    """Write points as GeoParquet: a geometry in WKB, its description, and two plain columns beside it."""
    shapes = [struct.pack("<BIdd", 1, 1, lon, lat) for lat, lon in rows]
    about = {
        "version": "1.0.0", "primary_column": "geometry",
        "columns": {"geometry": {"encoding": "WKB", "geometry_types": ["Point"]}},
    }  # fmt: skip
    table = pa.table(
        {
            "lat": [lat for lat, _ in rows],
            "lon": [lon for _, lon in rows],
            "geometry": pa.array(shapes, pa.binary()),
        }
    )
    parquet.write_table(table.replace_schema_metadata({b"geo": json.dumps(about).encode()}), path)


@pytest.fixture
def settings(settings, tmp_path):
    write_geoparquet(tmp_path / "sites.parquet", [(-29 + i / 10, 126 + i / 8) for i in range(80)])
    edges = "".join(f"n{i},n{(i * 7 + 1) % 50}\n" for i in range(50))
    (tmp_path / "friends.csv").write_text(f"a,b\n{FORMULA_NODE},n1\n{edges}")
    listed = {
        "sites": ListedSource("sites", str(tmp_path / "sites.parquet"), kind="points", several=True),
        "friends": ListedSource("friends", str(tmp_path / "friends.csv"), kind="graph", several=True),
        "lost": ListedSource("lost", str(tmp_path / "lost.csv"), kind="graph"),
    }
    return type(settings)(folder=settings.folder, sources={**settings.sources, **listed})


@pytest.fixture
def place(house, drawing):
    """The service with both datasets, opened by the runner; ana has an allotment for each."""
    house.drawing = drawing
    house.person("cora", everywhere="curator")
    house.person("dora", everywhere="auditor")
    house.person("ana", sites="analyst", friends="analyst")
    house.tokens = {name: house.token(name) for name in house.people}
    for declared in (POINTS, GRAPH):
        made = house.call("POST", "/api/v1/datasets", house.tokens["cora"], json=declared)
        assert made.status_code == 201, made.text
        name = declared["name"]
        account = f"{name}/{house.people['ana']}/1"
        house.service.ledger.create_account(account, parent=name, budget=tc.Budget(epsilon=2))
        with house.service.database.change() as change:
            change.run(
                "INSERT INTO accounts (name, dataset, person, purpose, created) VALUES (?, ?, ?, 'care', ?)",
                account, name, house.people["ana"], now_text(),
            )  # fmt: skip
    house.get = lambda path, who="ana": house.call("GET", path, house.tokens[who])
    house.post = lambda path, body, who="ana": house.call(
        "POST", f"/api/v1{path}", house.tokens[who], json=body
    )
    return house


def answered(place, dataset, ask, **more):
    asked = place.post("/queries", {"dataset": dataset, "epsilon": "1/2", **ask, **more})
    assert asked.status_code == 202, asked.text
    place.drawing.answer()
    query = place.get(f"/api/v1/queries/{asked.json()['query']}").json()
    assert query["state"] == "finished", query
    return query["release"]


@pytest.mark.parametrize(("dataset", "kind", "ask"), ASKS, ids=lambda one: str(one)[:30])
def test_from_the_price_to_the_published_figure(place, dataset, kind, ask):
    body = {"dataset": dataset, "epsilon": "1/2", **ask}
    head = place.service.ledger.head
    card = place.post("/plans", body).json()
    assert (card["fits"], card["price"]["promised"]["epsilon"]["exact"]) == (True, "1/2")
    assert place.service.ledger.head == head
    release = answered(place, dataset, ask)
    document = place.get(f"/api/v1/releases/{release}").json()
    assert (document["kind"], document["plan"]) == (kind, card["plan"])
    assert [one["account"] for one in document["charged"]] == [f"{dataset}/{place.people['ana']}/1", dataset]
    kept = Release.from_json(place.get(f"/api/v1/releases/{release}.json").json())
    assert kept.certificate.matches(place.service.ledger)
    checked = place.post("/certificates/check", {"certificate": document["certificate"]}, "dora").json()
    assert checked["matches"], checked
    lines = kept.content if isinstance(kept.content, tc.core.AnswerTable) else kept.content.table
    assert place.get(f"/api/v1/releases/{release}.csv").text == lines.to_csv()
    table = parquet.read_table(io.BytesIO(place.get(f"/api/v1/releases/{release}.parquet").content))
    assert table.num_rows == len(lines)
    picture = place.get(f"/api/v1/releases/{release}.svg")
    assert picture.status_code == 200
    assert "<svg" in picture.text
    page = place.get(f"/releases/{release}")
    assert page.status_code == 200
    assert "Values and intervals" in page.text
    assert "The question: " in page.text
    assert "The question: " not in place.get(f"/releases/{release}", "cora").text  # its words are ana's
    assert place.get("/releases").status_code == 200
    assert place.get("/api/v1/releases").json()["releases"][0]["kind"] == kind
    spent = place.service.ledger.account(dataset).spent
    again = place.post("/queries", body)
    assert (again.status_code, again.json()["release"]) == (200, release)
    assert place.service.ledger.account(dataset).spent == spent
    given = {"release": release, "title": "A figure", "about": ""}
    published = place.post("/publications", given, "cora")
    assert published.status_code == 201, published.text
    where = published.headers["location"].removeprefix("/api/v1")
    public = place.call("GET", where)
    assert public.status_code == 200
    assert "What is promised" in public.text
    assert place.call("GET", f"/api/v1{where}").status_code == 200
    assert place.call("GET", f"/api/v1{where}/values.csv").text == lines.to_csv()
    saved = place.call("GET", f"/api/v1{where}/release.json").json()
    assert saved == place.get(f"/api/v1/releases/{release}.json").json()


def test_a_surface_with_many_cells_has_a_picture_and_all_values(place):
    release = answered(place, "sites", {"method": "grid", "arguments": {"rows": 80, "columns": 80}})
    picture = place.get(f"/api/v1/releases/{release}.svg")
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/svg+xml")
    assert 1000 < picture.text.count("<rect") < 6500
    assert place.get(f"/api/v1/releases/{release}.csv").text.count("\n") == 6401
    page = place.get(f"/releases/{release}")
    assert page.status_code == 200
    assert "5900 more lines" in page.text


def test_a_question_is_asked_on_the_pages(place):
    page = place.get("/datasets/sites/ask")
    assert page.status_code == 200
    assert "Count points in the cells of a grid" in page.text
    assert place.get("/datasets/sites").status_code == 200
    assert place.get("/datasets/friends").status_code == 200


@pytest.mark.parametrize(
    ("source", "unit", "declared"),
    [
        ("sites", "row",
         {"lat": "lat", "lon": "lon", "south": "-30", "west": "125", "north": "-20", "east": "140"}),
        ("friends", "node", {"source_column": "a", "target_column": "b", "nodes": "", "degree_bound": "5"}),
    ],
)  # fmt: skip
def test_the_wizard_declares_it_through_the_runner(place, source, unit, declared):
    cora = Browser(place, "cora")
    page = step(cora, "/declare", cora.get("/declare").text, source=source, name="mine", title="", about="")
    page = step(cora, "/declare", page.text, unit=unit, adjacency="add/remove")
    page = step(cora, "/declare", page.text, **declared)
    page = step(cora, "/declare", page.text, epsilon="2", record="words", shows_stored="yes")
    assert "Nothing is declared yet" in page.text, page.text
    answer = step(cora, "/declare", page.text)
    assert answer.status_code == 303, answer.text
    place.person("eve", mine="analyst")
    place.tokens["eve"] = place.token("eve")
    body = {"dataset": "mine", "epsilon": "1/2", "method": "grid" if source == "sites" else "edges"}
    body |= {"arguments": {"rows": 2, "columns": 2}} if source == "sites" else {}
    card = place.post("/plans", body, "eve")
    assert card.status_code == 200, card.text
    assert card.json()["dataset"]["unit"] == ("row" if unit == "row" else "node")


def test_a_program_asks_through_a_connection(place, monkeypatch):
    monkeypatch.setattr(_http_calls, "_PAUSES", (0.01, 0.01))
    with served(place.app) as url, tc.connect(url, token=place.tokens["ana"], timeout=20) as connection:
        assert set(connection.datasets) == {"friends", "sites"}
        asked = {}

        def ask():
            for dataset, _, question in ASKS[:4]:
                asked[question["method"]] = connection.ask(dataset, epsilon=0.25, **question)

        thread = threading.Thread(target=ask)
        thread.start()
        while thread.is_alive():
            place.drawing.answer()
            thread.join(0.01)
        assert list(asked) == ["grid", "tree", "hottest", "edges"]
        assert all(one.certificate.matches(place.service.ledger) for one in asked.values())
        assert len(asked["grid"]) == 20
        with pytest.raises(tc.TacitError) as refusal:
            connection.ask("sites", "districts", arguments={}, epsilon=0.25)
        assert refusal.value.code == "not-allowed"


@contextmanager
def served(app):
    """Serve the application on a free port of this machine."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        thread.join(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"adjacency": "replace"}, "not-allowed"),
        ({"limits": {"rows": 3}}, "not-allowed"),
        ({"bounds": {"a": [0, 1]}}, "not-allowed"),
        ({"unit": "a"}, "bad-parameter"),
        ({"source": "lost"}, "unknown-table"),
        ({"declared": {"source_column": "a", "target_column": "c"}}, "unknown-column"),
        ({"declared": {**GRAPH["declared"], "place": "/etc/passwd"}}, "bad-parameter"),
        ({"declared": {**GRAPH["declared"], "nodes": "many"}}, "bad-parameter"),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused_and_leaves_nothing(place, change, code):
    made = place.post("/datasets", {**GRAPH, "name": "other", **change}, "cora")
    assert made.json()["code"] == code, made.text
    assert ".csv" not in made.text
    with pytest.raises(tc.TacitError):
        place.service.ledger.account("other")


@pytest.mark.parametrize("south", ["1e99999999", "x", "", "1/0", None, [1], "9" * 50])
def test_a_strange_corner_of_the_box_is_refused_at_once(place, south):
    box = [[south, 125], [-20, 140]]
    before = time.process_time()
    made = place.post(
        "/datasets", {**POINTS, "name": "other", "declared": {**POINTS["declared"], "box": box}}, "cora"
    )
    assert made.json()["code"] == "bad-parameter", made.text
    assert time.process_time() - before < 10


@pytest.mark.parametrize("dataset", ["sites", "friends"])
def test_a_process_with_limits_of_its_own_opens_it(house, settings, dataset):
    """The same in a process: every kind of question was tried there, within its limits."""
    made = Drawing(settings, start_process)
    try:
        house.person("cora", everywhere="curator analyst")
        token = house.token("cora")
        declared = POINTS if dataset == "sites" else GRAPH
        answer = house.call("POST", "/api/v1/datasets", token, json=declared)
        assert answer.status_code == 201, answer.text
        made.ready()
        account = f"{dataset}/{house.people['cora']}/1"
        house.service.ledger.create_account(account, parent=dataset, budget=tc.Budget(epsilon=2))
        with house.service.database.change() as change:
            change.run(
                "INSERT INTO accounts (name, dataset, person, purpose, created) VALUES (?, ?, ?, 'care', ?)",
                account, dataset, house.people["cora"], now_text(),
            )  # fmt: skip
        states = [child.state for child in made.runner._children.values()]
        assert states == ["ready"]
        for _, _, ask in (one for one in ASKS if one[0] == dataset):
            card = house.call(
                "POST", "/api/v1/plans", token, json={"dataset": dataset, "epsilon": "1/2", **ask}
            )
            assert card.status_code == 200, card.text
    finally:
        made.close()


def test_an_owner_of_points_is_one_column(place):
    made = place.post("/datasets", {**POINTS, "name": "other", "unit": "lat per lon"}, "cora")
    assert made.json()["code"] == "not-allowed"


def test_a_policy_is_changed_and_the_facts_stay(place):
    answered(place, "sites", ASKS[0][2])
    made = place.post("/datasets/sites/policies", {"version": 2, "about": "The second year."}, "cora")
    assert made.status_code == 201, made.text
    assert made.json()["policy_document"]["declared"] == place.service.dataset("sites").policy["declared"]
    fresh = answered(place, "sites", ASKS[0][2])
    assert place.get(f"/api/v1/releases/{fresh}").json()["certificate"]["dataset"]["version"] == 2


NEIGHBOURS = {
    "sites": ["-25,130\n", "nan,inf\n", "1e400,x\n", "\n", ",\n", '"' + "9" * 100_000 + '",1\n'],
    "friends": ["n1,n2\n", "a,a\n", ",\n", '"' + "x" * 100_000 + '",n1\n', "\x01,\x02\n"],
}


@pytest.mark.parametrize("dataset", ["sites", "friends"])
def test_what_is_said_before_the_charge_does_not_depend_on_rows(dataset, settings, tmp_path):
    """Facts, plans and refusals of a source are those of its neighbours with one strange row more."""
    declared, kind = (POINTS, "points") if dataset == "sites" else (GRAPH, "graph")
    policy = {**declared, "kind": kind, "source": "x"}
    header = "lat,lon\n-25,130\n-24,131\n" if kind == "points" else "a,b\nn1,n2\nn2,n3\n"
    seen = set()
    for place, row in enumerate(["", *NEIGHBOURS[dataset]]):
        (tmp_path / f"{place}.csv").write_text(header + row)
        listed = {"x": ListedSource("x", str(tmp_path / f"{place}.csv"), kind=kind)}
        ledger = tc.Ledger.memory()
        ledger.create_account(dataset, unit=declared["unit"], budget=tc.Budget(epsilon=5))
        opened, facts = open_policy(
            type(settings)(folder=settings.folder, sources=listed), dataset, policy, ledger
        )
        opened.prepare()
        said = [json.dumps(facts, sort_keys=True)]
        for _, _, ask in (one for one in ASKS if one[0] == dataset):
            plan = plan_of(opened, {**ask, "epsilon": "1/2"})
            said += [plan.hash, str(plan), json.dumps(plan.to_json(), sort_keys=True)]
            plan.release(who="u_ana")  # no row makes a draw fail
        for wrong in ({"method": "edges", "epsilon": "900"}, {"method": "nothing"}, {"sql": "SELECT 1"}):
            with pytest.raises(tc.TacitError) as refusal:
                plan_of(opened, wrong).release()
            said.append(f"{refusal.value.code} {refusal.value.what} {refusal.value.why}")
        seen.add("\n".join(said))
    assert len(seen) == 1


def test_workers_open_no_source(place, monkeypatch):
    """A web worker plans although every file is gone, and nothing of the runner's opening is called."""

    def refuse(*_):
        raise AssertionError("a worker opened a source")

    place.drawing.ready()  # the data was read
    monkeypatch.setattr(_dataset_process, "_places", refuse)
    for source in place.service.settings.sources.values():
        if source.kind != "table":
            Path(source.place).unlink(missing_ok=True)
    worker = Service(place.service.settings)
    try:
        for dataset, _, ask in ASKS:
            kept = plan_cache(worker).plan(
                worker.dataset(dataset), {"dataset": dataset, **ask, "epsilon": "1/2"}
            )
            assert kept.document["plan"] == kept.hash
    finally:
        worker.close()
    release = answered(place, "sites", ASKS[0][2])  # the points were read when the dataset was opened
    assert release


def test_a_plan_that_was_made_elsewhere_is_not_taken(place):
    card = place.post("/plans", {"dataset": "sites", "epsilon": "1/2", **ASKS[0][2]}).json()
    refused = place.post("/plans", {"dataset": "sites", "plan": card["document"]})
    assert refused.json()["code"] == "not-allowed"
