"""Metrics: requests by route, refusals by code, web processes; nothing of the runner but whether it runs."""

import os

from tacit.service._app import route_templates
from tacit.service.operation import CounterNames
from tacit.service.operation._metrics import metrics_text
from tacit.service.operation._shared import COUNTS


def test_counts_of_all_workers_are_added():
    names = CounterNames(["/api/v1/health", "/api/v1/queries/{query}"])
    counts = ([0] * COUNTS, [0] * COUNTS)
    counts[0][names.of_request("/api/v1/health", 200)] = 3
    counts[1][names.of_request("/api/v1/health", 200)] = 4
    counts[1][names.of_request("/api/v1/health", 404)] = 1
    counts[0][names.of_refusal("not-found")] = 1
    text = metrics_text(
        names, counts, {"worker 0": (os.getpid(), 2), "drawer": (os.getpid(), 0)}, {"ledger": "ok"}
    )
    assert 'tacit_requests_total{route="/api/v1/health",status="2xx"} 7' in text
    assert 'tacit_requests_total{route="/api/v1/health",status="4xx"} 1' in text
    assert 'tacit_refusals_total{code="not-found"} 1' in text
    assert 'tacit_process_restarts{process="worker 0"} 2' in text
    assert 'tacit_ready{part="ledger"} 1' in text


def test_nothing_of_the_runner_depends_on_data():
    names = CounterNames([])
    text = metrics_text(names, ([0] * COUNTS,), {"worker 0": (0, 0), "drawer": (os.getpid(), 0)}, {})
    of_runner = {line.partition("{")[0] for line in text.splitlines() if 'process="drawer"' in line}
    assert of_runner == {"tacit_process_up", "tacit_process_restarts"}


def test_the_counters_of_all_routes_fit():
    assert len(CounterNames(route_templates())) < COUNTS


def test_requests_are_counted_by_template(house):
    names = CounterNames(route_templates())
    house.call("GET", "/api/v1/health")
    house.call("GET", "/api/v1/whoami")
    house.call("GET", "/somewhere/secret")
    counts = house.app.state.shared.counts
    assert {(route, status): n for route, status, n in names.requests(counts)} == {
        ("/api/v1/health", "2xx"): 1, ("/api/v1/whoami", "4xx"): 1, ("other", "4xx"): 1,
    }  # fmt: skip
    assert dict(names.refusals(counts)) == {"not-signed-in": 1, "not-found": 1}
