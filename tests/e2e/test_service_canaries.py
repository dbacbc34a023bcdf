"""Canaries in the data, in a question, in a purpose and in a token, through a whole `tacit serve`."""

from __future__ import annotations

import re
import socket
import time
import urllib.request

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.served import SETTINGS, Served

DATA, LITERAL, PURPOSE, REFUSED = "CANARYINROWS", "CANARYINSQL", "CANARYINPURPOSE", "CANARYINERROR"
QUESTION = f"SELECT ward, COUNT(*) AS n FROM stays WHERE note <> '{LITERAL}' GROUP BY ward"


@pytest.fixture
def service(tmp_path):
    notes = [f"{DATA} {number}" for number in range(400)]
    columns = {"person": list(range(400)), "ward": ["A", "B"] * 200, "note": notes, "age": [f"{DATA}"] * 400}
    pq.write_table(pa.table(columns), tmp_path / "stays.parquet")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "service.toml").write_text(
        f'{SETTINGS}\n[sources]\nstays = "{tmp_path / "stays.parquet"}"\n', encoding="utf-8"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    served = Served(tmp_path / "s", options=("--metrics", str(port)))
    served.metrics = f"http://127.0.0.1:{port}/metrics"
    yield served.start()
    served.stop()


def prepared(service):
    """Declare the dataset and give two analysts allotments; return the tokens."""
    service.person("carla", everywhere="owner")
    service.person("aude", everywhere="auditor")
    service.person("ada", everywhere="admin")
    for name in ("ana", "ben"):
        service.person(name, stays="analyst")
    tokens = {name: service.token(name) for name in service.people}
    declared = {
        "name": "stays", "source": "stays", "unit": "person", "budget": {"epsilon": "3"},
        "keys": {"ward": ["A", "B"]}, "limits": {"rows": 1}, "record": "shape", "types": {"age": "number"},
        "bounds": {"age": [0, 120]},
    }  # fmt: skip
    assert service.call("POST", "/api/v1/datasets", tokens["carla"], declared)[0] == 201
    for name in ("ana", "ben"):
        given = {"person": service.people[name], "epsilon": "1", "purpose": f"{PURPOSE} of {name}"}
        assert service.call("POST", "/api/v1/datasets/stays/accounts", tokens["carla"], given)[0] == 201
    return tokens


def asked(service, token, sql):
    """Ask and wait; return the query as its person sees it at last."""
    body = {"dataset": "stays", "sql": sql, "epsilon": "1/4", "purpose": f"{PURPOSE} of ana"}
    status, said = service.call("POST", "/api/v1/queries", token, body, {"idempotency-key": f"k{len(sql)}"})
    assert status == 202, said
    end = time.monotonic() + 60
    while not (found := service.call("GET", f"/api/v1/queries/{said['query']}", token)[1])["done"]:
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def pages(service, token):
    """Return every page and document that a person reaches by links, by its address."""
    seen, waiting = {}, ["/"]
    while waiting and len(seen) < 90:
        path = waiting.pop(0).replace("&amp;", "&")
        if path in seen or path.startswith(("/static", "/learn", "/password")):
            continue
        status, said = service.call("GET", path, token)
        assert status == 200, f"a page leads to {path}, which answers {status}"
        text = seen[path] = str(said)
        waiting += re.findall(r'href="(/[^"#]*)', text)
    return seen


def test_what_is_secret_is_found_nowhere_else(service):
    tokens = prepared(service)
    assert asked(service, tokens["ana"], QUESTION)["state"] == "finished"
    assert asked(service, tokens["ana"], "SELECT AVG(age) AS mean FROM stays")["done"]  # no number is there
    refusals = [
        service.call("POST", "/api/v1/plans", tokens["ana"], {"dataset": "stays", "sql": sql, "epsilon": "1"})
        for sql in (f"SELECT {REFUSED} FROM stays", f"SELECT COUNT(*) FROM stays WHERE x = '{REFUSED}' GROUP")
    ]
    refusals += [
        service.call("POST", "/api/v1/queries", tokens["ana"], {"purpose": REFUSED, REFUSED: 1}),
        service.call("GET", f"/api/v1/datasets/{REFUSED}?x={REFUSED}", f"tct_{REFUSED}"),
        service.call("GET", f"/api/v1/releases/{REFUSED}", tokens["ben"]),
    ]
    assert all(400 <= status < 500 for status, _ in refusals)
    assert REFUSED not in str(refusals[1:])  # the first names the column that the person has written
    for name, token in tokens.items():
        found = pages(service, token)
        assert len(found) > 5
        may = {DATA: (), LITERAL: ("ana",), f"{PURPOSE} of ana": ("ana", "carla", "aude")}
        for canary, people in may.items():
            shown = [path for path, text in found.items() if canary in text]
            assert bool(shown) == (name in people), (canary, name, shown)
        assert not [path for path, text in found.items() if any(one in text for one in tokens.values())]
    time.sleep(1.1)
    with urllib.request.urlopen(service.metrics) as answer:
        told = answer.read().decode() + service.log()
    secrets = (DATA, LITERAL, PURPOSE, REFUSED, *tokens.values())
    assert "tacit_requests_total" in told
    assert [one for one in secrets if one in told] == []
    assert service.stop() == 0
    kept = {path.name: path.read_bytes() for path in service.folder.rglob("*") if path.is_file()}
    holders = {one: {name for name, raw in kept.items() if one.encode() in raw} for one in secrets}
    assert holders[LITERAL] == {"service.db"}  # the question, for its person; the log keeps its shape
    assert holders[PURPOSE] <= {"service.db", "service.ledger"}
    assert not any(holders[one] for one in (DATA, REFUSED, *tokens.values())), holders
