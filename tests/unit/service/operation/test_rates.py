"""Limits of rates: per person, per address, over several workers."""

import pytest

from tacit.service.operation import SharedState, _shared
from tacit.service.operation._shared import seconds_to_wait


def passed(cells, key, moments, rate=10):
    return sum(seconds_to_wait(cells, b"secret", key, rate, moment) == 0 for moment in moments)


def test_a_caller_gets_a_burst_and_then_the_even_rate():
    cells = [0.0] * 1024
    assert passed(cells, "ana", [100.0] * 200) == 50
    assert passed(cells, "ana", [100.05]) == 0
    assert passed(cells, "ana", [101.0] * 30) == 10
    assert passed(cells, "ben", [101.0] * 30) == 30


def test_the_wait_that_is_named_is_enough():
    cells = [0.0] * 1024
    for _ in range(50):
        seconds_to_wait(cells, b"secret", "ana", 10, 100.0)
    wait = seconds_to_wait(cells, b"secret", "ana", 10, 100.0)
    assert wait == pytest.approx(0.1)
    assert seconds_to_wait(cells, b"secret", "ana", 10, 100.0 + wait + 1e-9) == 0


@pytest.fixture
def limited(house, monkeypatch):
    """A service whose clock stands still: how long a busy machine takes for some requests does not matter."""
    import multiprocessing
    from dataclasses import replace
    from types import SimpleNamespace

    monkeypatch.setattr(_shared, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    house.app.state.shared = SharedState.between(multiprocessing.get_context("spawn"), 1, limited=True)
    house.service.settings = replace(house.service.settings, rate=2)
    return house


def test_a_person_is_limited_and_others_are_not(limited, monkeypatch):
    monkeypatch.setattr(_shared, "_EFFORT", 10.0)  # no request counts as several
    for name in ("ana", "ben"):
        limited.person(name, visits="analyst")
    first, second, bens = limited.token("ana"), limited.token("ana"), limited.token("ben")
    answers = [limited.call("GET", "/api/v1/whoami", token) for token in [first, second] * 10]
    assert {answer.status_code for answer in answers} == {200, 429}
    assert sum(answer.status_code == 200 for answer in answers) == 10  # both tokens count together
    refused = answers[-1]
    assert refused.json()["code"] == "too-many-requests"
    assert int(refused.headers["retry-after"]) >= 1
    assert limited.call("GET", "/api/v1/whoami", bens).status_code == 200


def test_unknown_callers_are_limited_by_their_address(limited):
    found = [limited.call("GET", "/api/v1/whoami", f"tct_{n}").status_code for n in range(40)]
    assert found[0] == 401
    assert found[-1] == 429
    limited.person("ana", visits="analyst")
    assert limited.call("GET", "/api/v1/whoami", limited.token("ana")).status_code == 200


def test_addresses_of_one_ipv6_network_are_one_caller():
    from tacit.service.operation._shared import network_of as network

    assert network("2001:db8:1:2::1") == network("2001:db8:1:2:ffff::9") != network("2001:db8:1:3::1")
    assert network("192.0.2.1") != network("192.0.2.2")
    assert network("nonsense") == "unknown"


def test_a_dear_request_counts_as_several(limited):
    import time

    from tacit.service import _app
    from tacit.service._operations import ANYONE, Operation

    def work(_):
        end = time.thread_time() + 0.03
        while time.thread_time() < end:
            pass
        return {}

    limited.app.router.routes.extend(_app._routes(Operation("GET", "/dear", ANYONE, work)))
    found = [limited.call("GET", "/api/v1/dear").status_code for _ in range(8)]
    assert found.count(200) in {1, 2}  # 10 requests at once, and one stands for 6 or a few more
    assert found[-1] == 429


def test_work_beside_the_event_loop_counts_as_well(limited):
    import time

    from tacit.service import _app
    from tacit.service._operations import ANYONE, Operation

    def busy():
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
        return {}

    async def work(call):
        return await call.in_thread(busy)

    limited.app.router.routes.extend(_app._routes(Operation("GET", "/beside", ANYONE, work)))
    found = [limited.call("GET", "/api/v1/beside").status_code for _ in range(5)]
    assert found[0] == 200
    assert found[-1] == 429  # ten requests at once are allowed, and each of these counts as ten


def test_writing_a_page_counts_as_well(limited, monkeypatch):
    import time

    from tacit.service import _app
    from tacit.service._operations import ANYONE, Operation

    def slow(*_):
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
        return b"page"

    monkeypatch.setattr(_app, "render", slow)
    operation = Operation("GET", "/long", ANYONE, lambda _: {}, page="problem.html")
    limited.app.router.routes.extend(_app._routes(operation))
    found = [limited.call("GET", "/api/v1/long").status_code for _ in range(2)]
    assert found == [200] * 2  # no page is written
    found = [limited.call("GET", "/long").status_code for _ in range(5)]
    assert found[0] == 200
    assert found[-1] == 429
