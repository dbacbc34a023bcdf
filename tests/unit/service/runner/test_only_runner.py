"""One runner at a time, on one machine and on several with one PostgreSQL server."""

import threading
import time

import pytest

from tacit.errors import TacitError
from tacit.service import ServiceSettings
from tacit.service.runner import _runner
from tacit.service.runner._runner import ServerLock


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(_runner, "GRACE", 0.05)
    monkeypatch.setattr(_runner, "_ASK", 0.02)


class Running:
    """A runner that only says that it runs, in a thread of its own."""

    def __init__(self, settings, monkeypatch, log):
        running = self

        class Said:
            def __init__(self, _):
                self.stop, self.still_alone = None, None

            def run(self):
                log.append(("began", running))
                while not self.stop.wait(0.01):
                    self.still_alone()

            def close(self):
                log.append(("ended", running))

        monkeypatch.setattr(_runner, "Runner", Said)
        self.stop, self.error = threading.Event(), None
        self.thread = threading.Thread(target=self._run, args=(settings,), daemon=True)
        self.thread.start()

    def _run(self, settings):
        try:
            _runner.serve_runner(settings, self.stop)
        except TacitError as refusal:
            self.error = refusal

    def end(self):
        self.stop.set()
        self.thread.join(30)
        assert not self.thread.is_alive()


def until(done):
    end = time.monotonic() + 120
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture(params=["one machine", "two machines"])
def places(request, tmp_path):
    """Return the settings of two runners of one service: in one folder, or in two with one PostgreSQL."""
    if request.param == "one machine":
        return [ServiceSettings(folder=tmp_path)] * 2
    url = request.getfixturevalue("postgres_url")
    return [ServiceSettings(folder=tmp_path / name, database=url) for name in "ab"]


def test_a_second_runner_waits_until_the_first_has_ended(places, monkeypatch):
    log = []
    first = Running(places[0], monkeypatch, log)
    until(lambda: log)
    second = Running(places[1], monkeypatch, log)
    time.sleep(0.3)
    assert log == [("began", first)]
    first.end()
    until(lambda: len(log) == 3)
    second.end()
    assert log == [("began", first), ("ended", first), ("began", second), ("ended", second)]


def sessions_with_the_lock(url):
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        return [row[0] for row in connection.execute(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND granted"
            " AND objid::bigint = hashtext(current_schema())::bigint & 4294967295", (_runner._CLASS,)
        )]  # fmt: skip


def test_a_runner_that_loses_its_connection_ends_and_the_other_takes_over(
    postgres_url, tmp_path, monkeypatch
):
    import psycopg

    log = []
    places = [ServiceSettings(folder=tmp_path / name, database=postgres_url) for name in "ab"]
    first = Running(places[0], monkeypatch, log)
    until(lambda: log)
    second = Running(places[1], monkeypatch, log)
    [held] = sessions_with_the_lock(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", (held,))
    until(lambda: ("began", second) in log)
    first.thread.join(30)
    assert first.error is not None
    assert first.error.code == "drawer-away"
    assert ("ended", first) in log
    second.end()


def test_a_runner_that_waits_can_be_stopped(places, monkeypatch):
    log = []
    first = Running(places[0], monkeypatch, log)
    until(lambda: log)
    second = Running(places[1], monkeypatch, log)
    time.sleep(0.1)
    second.end()
    assert log == [("began", first)]
    first.end()


def test_services_in_two_schemas_of_one_server_do_not_wait_for_each_other(postgres_url, postgres_server):
    one, other = ServerLock(postgres_url), ServerLock(postgres_server)
    try:
        assert one._try()
        assert other._try()
    finally:
        one.close()
        other.close()


def test_a_runner_that_is_no_longer_alone_admits_nothing(ward):
    ward.ask()
    runner = ward.drawing.runner

    def lost():
        raise TacitError("drawer-away", "lost")

    runner.still_alone = lost
    with pytest.raises(TacitError, match="lost"), ward.drawing.lock:
        runner.run()
    assert ward.get("/queries").json()["queries"][0]["state"] == "waiting"
