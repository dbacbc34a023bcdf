"""``tacit serve`` as an operator runs it: starting, stopping, dying processes, metrics, where it listens."""

import json
import os
import signal
import socket
import time
import urllib.request
from fractions import Fraction
from pathlib import Path

import pytest

from support.command import tacit
from support.served import Served
from tacit.service.operation import _shared


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Return the service of this module: two workers, metrics on a port of their own, a limit of rates."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    service = Served(
        tmp_path_factory.mktemp("service"),
        options=("--workers", "2", "--metrics", str(port)),
        environ={"TACIT_SERVICE_RATE": "2"},
    )
    service.metrics = f"http://127.0.0.1:{port}/metrics"
    yield service
    if service.process is not None:
        service.stop()


@pytest.fixture
def service(running):
    """Return the service of this module; where a test before has ended it, it starts again."""
    if running.process is None or running.process.poll() is not None:
        running.start()
    return running


def test_a_newcomer_gets_settings_an_example_and_a_page_to_sign_in(tmp_path):
    service = Served(tmp_path / "new")
    service.folder.mkdir()
    from tacit.service.operation import write_first_settings

    file = write_first_settings(service.folder)  # what the first start does
    text = file.read_text()
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    assert list(service.settings.sources) == ["visits"]
    assert (service.folder / "example" / "visits.parquet").exists()
    file.write_text(text.replace("[sources]", 'name = "Ours"\n[sources]'))
    assert write_first_settings(service.folder).read_text() != text  # nothing is replaced
    assert all(line.startswith("#") or "=" in line or line in ("", "[sources]") for line in text.splitlines())


def test_metrics_are_on_a_port_of_their_own(service):
    for _ in range(10):
        service.call("GET", "/api/v1/whoami?canary=C4N4RY")
    assert service.call("GET", "/metrics")[0] == 404
    assert service.call("GET", "/api/v1/metrics")[0] == 404
    text, end = "", time.monotonic() + 120  # the workers write their numbers once a second
    while 'tacit_requests_total{route="/api/v1/whoami",status="4xx"} 10' not in text:
        assert time.monotonic() < end, text
        time.sleep(0.2)
        with urllib.request.urlopen(service.metrics) as answer:
            text = answer.read().decode()
    assert 'tacit_ready{part="drawer"} 1' in text
    assert "C4N4RY" not in text + service.log()
    assert "visits" not in text


def test_the_limit_of_a_caller_holds_over_all_workers(service):
    service.person("ana", visits="analyst")
    token = service.token("ana")
    began = time.monotonic()
    found = [service.call("GET", "/api/v1/datasets", token)[0] for _ in range(60)]
    assert set(found) == {200, 429}
    most = 2 * (_shared._BURST + time.monotonic() - began) + 1
    assert found.count(200) <= most  # two separate limits would let twice as many through


def test_a_backup_of_a_running_service_starts_elsewhere(service, tmp_path):
    service.person("ada", everywhere="admin")
    done = tacit("serve", "--folder", str(service.folder), "backup", str(tmp_path / "copy"), "--with-key")
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "copy").rglob("*witness*"))
    restored = tacit("serve", "--folder", str(tmp_path / "new"), "restore", str(tmp_path / "copy"))
    assert restored.returncode == 0, restored.stderr
    checked = tacit("serve", "--folder", str(tmp_path / "new"), "check", "--json")
    found = {one["about"]: one for one in json.loads(checked.stdout)["findings"]}
    assert found["database"]["state"] == "ok"
    assert found["ledger"]["state"] == "wrong"  # the copy had a witness, which is not here
    migrated = tacit("serve", "--folder", str(service.folder), "migrate")
    assert migrated.returncode == 0, migrated.stderr


def test_what_dies_is_started_again_and_all_ends_when_the_supervisor_is_killed(service):
    before = service.processes()
    assert (len(before["worker"]), len(before["drawer"])) == (2, 1)
    for number in (before["worker"][0], before["drawer"][0]):
        os.kill(number, signal.SIGKILL)
    end = time.monotonic() + 120
    while True:
        now = service.processes()
        if len(now["worker"]) == 2 and len(now["drawer"]) == 1 and now["drawer"] != before["drawer"]:
            break
        assert time.monotonic() < end, service.log()
        time.sleep(0.05)
    assert before["worker"][1] in now["worker"]
    service.wait_for("ready")
    assert '"event": "process died"' in service.log()
    service.process.kill()
    service.process.wait()
    end = time.monotonic() + 120
    while any(Path(f"/proc/{number}").exists() for number in now["worker"] + now["drawer"]):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(
    "options", [["--address", "0.0.0.0"], ["--address", "192.0.2.7"], ["--address", "::"]]
)
def test_no_password_crosses_a_network_in_the_clear(tmp_path, options):
    refused = tacit("serve", "--folder", str(tmp_path / "s"), *options)
    assert refused.returncode == 2
    assert "in the clear" in refused.stderr
    assert "--behind-proxy" in refused.stderr


def test_a_port_in_use_is_named(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = tacit("serve", "--folder", str(tmp_path / "s"), "--port", str(port))
    assert refused.returncode == 2
    assert f"port {port}" in refused.stderr


def test_a_service_that_was_never_started_cannot_be_examined(tmp_path):
    refused = tacit("serve", "--folder", str(tmp_path / "none"), "drawer")
    assert refused.returncode == 2
    assert "there is no service" in refused.stderr
    assert not (tmp_path / "none").exists()


@pytest.fixture
def started(tmp_path):
    """Return the function that starts a service in a folder of its own, or again in the same folder."""
    service = Served(tmp_path / "service", options=("--workers", "2"))

    def start(*, ready=True, **environ):
        service.environ = environ
        return service.start(ready=ready)

    start.service = service
    yield start
    if service.process is not None:
        service.stop()


def test_two_workers_share_a_ledger_and_a_database_on_postgres(started, postgres_url):
    service = started(TACIT_SERVICE_DATABASE=postgres_url, TACIT_SERVICE_LEDGER=postgres_url)
    service.person("cara", everywhere="curator")
    cara = service.token("cara")
    declared = {
        "name": "visits", "source": "visits", "unit": "patient_id", "budget": {"epsilon": "3"},
        "limits": {"rows": 3},
    }  # fmt: skip
    assert service.call("POST", "/api/v1/datasets", cara, declared)[0] == 201
    person = service.person("ana", visits="analyst")
    given = {"person": person, "purpose": "counts", "epsilon": "1"}
    assert service.call("POST", "/api/v1/datasets/visits/accounts", cara, given)[0] == 201
    ana = service.token("ana")
    asked = {
        "dataset": "visits",
        "sql": "SELECT COUNT(*) AS n FROM visits",
        "epsilon": "1/2",
        "purpose": "counts",
    }
    status, query = service.call("POST", "/api/v1/queries", ana, asked, {"idempotency-key": "one"})
    assert status == 202, query
    again = service.call("POST", "/api/v1/queries", ana, asked, {"idempotency-key": "one"})[1]
    assert again["query"] == query["query"]
    end = time.monotonic() + 150  # a process that starts slowly takes questions at the next rung
    while not query["done"]:
        assert time.monotonic() < end, query
        time.sleep(0.1)
        query = service.call("GET", f"/api/v1/queries/{query['query']}", ana)[1]
    assert query["state"] == "finished", query
    status, stored = service.call("POST", "/api/v1/queries", ana, asked)
    assert (status, stored["release"]) == (200, query["release"])
    assert service.stop() == 0
    import tacit as tc

    with tc.Ledger.open(postgres_url, key=service.folder / "service.ledger.key", create=False) as ledger:
        assert ledger.account("visits").spent.epsilon == Fraction(1, 2)
        assert ledger.verify().ok


def test_an_old_ledger_starts_read_only_and_says_so_and_all_processes_stop_in_order(started):
    import tacit as tc
    from tacit.service._service import Service

    service = started.service
    service.write_settings()
    Service(service.settings).close()  # what every process of a first start opens
    ledger = service.folder / "service.ledger"
    old = ledger.read_bytes()
    with tc.Ledger.open(ledger, create=False) as opened:
        opened.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=3))
    for file in service.folder.glob("service.ledger-*"):
        file.unlink()
    ledger.write_bytes(old)
    started(ready=False)
    assert "read-only" in service.said
    document = service.wait_for("ready", status=503)
    assert document["checks"]["ledger"] == "ledger-rolled-back"
    assert service.call("GET", "/api/v1/health")[0] == 200
    numbers = [number for processes in service.processes().values() for number in processes]
    assert len(numbers) == 3
    assert service.stop() == 0
    assert not any(Path(f"/proc/{number}").exists() for number in numbers)
