"""A whole service in this process, with invented people: the fixture ``house``."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from argon2 import PasswordHasher

from support.invented_people import InventedPeople
from tacit.service import ListedSource, ServiceSettings, create_app
from tacit.service.access import _passwords
from tacit.service.runner import Runner, WallClock, boundary_after, start_thread, use_clock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tacit.service._database import Database
    from tacit.service._service import Service


@dataclass
class House(InventedPeople):
    """The application and what tests need to call it."""

    app: Any
    service: Service
    people: dict[str, str] = field(default_factory=dict)

    @property
    def database(self) -> Database:
        """The service's database."""
        return self.service.database

    def call(self, method: str, path: str, token: str = "", **more: Any) -> httpx.Response:
        """Send one request; ``token`` is a secret, or empty for somebody unknown."""
        headers = dict(more.pop("headers", {}))
        if token:
            headers["authorization"] = f"Bearer {token}"

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://house") as client:
                return await client.request(method, path, headers=headers, **more)

        return asyncio.run(send())


CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@pytest.fixture
def costly_hashes() -> None:
    """Ask for hashes of passwords as services make them, of 19 MiB; other tests make hashes of 8 KiB."""


@pytest.fixture(autouse=True)
def cheap_hashes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make hashes of passwords that cost little, unless a test asks for `costly_hashes`."""
    if "costly_hashes" not in request.fixturenames:
        monkeypatch.setattr(_passwords, "_HASHER", CHEAP)
    _passwords._nobodys.cache_clear()


@pytest.fixture(autouse=True)
def wall_clock() -> Iterator[None]:
    """Give every test the real clock, in whatever order the test before has closed its own clocks."""
    use_clock(WallClock())
    yield
    use_clock(WallClock())


@pytest.fixture
def house_of() -> type[House]:
    """Return the class, for tests that make an application of their own."""
    return House


@pytest.fixture
def settings(tmp_path: Path) -> ServiceSettings:
    from tacit.tables import example_visits

    listed = {"visits": ListedSource("visits", str(example_visits()), several=True)}
    return ServiceSettings(folder=tmp_path / "service", sources=listed)


@pytest.fixture
def house(settings: ServiceSettings) -> Iterator[House]:
    app = create_app(settings)
    yield House(app, app.state.service)
    app.state.service.close()


class ManualClock(WallClock):
    """A clock that stands still until a test moves it, so that no test waits and none is ever late."""

    def __init__(self) -> None:
        self.time, self.changed, self.asleep = time.time(), threading.Condition(), []

    def now(self) -> float:
        return self.time

    def sleep_until(self, moment: float) -> None:
        with self.changed:
            if self.time < moment:
                self.asleep.append(moment)
                self.changed.notify_all()
                self.changed.wait_for(lambda: self.time >= moment)
                self.asleep.remove(moment)

    def move(self, moment: float) -> None:
        with self.changed:
            self.time = max(self.time, moment)
            self.changed.notify_all()


class Drawing:
    """The runner in a thread of the test, with datasets in threads and a clock that the test moves."""

    def __init__(self, settings: ServiceSettings, start: Any = start_thread) -> None:
        self.clock = ManualClock()
        self.before = use_clock(self.clock)
        self.started: list[Any] = []

        def started(*given: Any) -> Any:
            self.started.append(start(*given))
            return self.started[-1]

        self.runner = Runner(settings, started)
        self.tick = settings.tick
        self.runner.recover()
        self.lock, self.stopped = threading.Lock(), threading.Event()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while not self.stopped.wait(0.002):
            with self.lock:
                self.runner.listen()

    def until(self, done: Any) -> None:
        end = time.monotonic() + 120
        while True:
            with self.lock:
                self.runner.listen()
                if done():
                    return
            assert time.monotonic() < end, "the runner did not get there"
            time.sleep(0.002)

    def ready(self) -> None:
        """Wait until all datasets are open, and move the clock to where they take questions."""
        children = self.runner._children
        opening = {"starting", "opened"}
        self.until(lambda: not any(child.state in opening for child in list(children.values())))
        self.clock.move(max([child.ready_at for child in children.values()], default=0.0))

    def move(self, moment: float) -> None:
        """Move the clock, and let the runner do what is due then."""
        with self.lock:
            self._move(moment)

    def _move(self, moment: float) -> None:
        self.runner.listen()
        self.clock.move(moment)
        self.runner.step()

    def admit(self) -> list[Any]:
        """Move the clock to the next boundary; return what is admitted then."""
        self.ready()
        with self.lock:
            held = set(self.runner._flights)
            self._move(boundary_after(self.clock.time, self.tick) * float(self.tick))
            return [flight for query, flight in self.runner._flights.items() if query not in held]

    def land(self) -> None:
        """Let everything that was admitted be drawn, and move the clock to when the answers leave.

        The boundary at which they leave admits what waits then.
        """
        flights, landing = self.runner._flights, set(self.runner._flights)
        while landing & set(flights):
            self.until(
                lambda: sum(not one.written for one in list(flights.values())) <= len(self.clock.asleep)
            )
            ends = [one.slot.answer_at for one in list(flights.values())]
            self.move(min([*self.clock.asleep, *ends], default=self.clock.time))
            self.until(lambda: not any(moment <= self.clock.time for moment in self.clock.asleep))

    def answer(self) -> None:
        """Admit what waits, let it be drawn, and move the clock to when its answers leave."""
        if not self.admit():
            self.admit()  # a process was started for it
        while self.runner._flights:
            self.land()

    def close(self) -> None:
        self.stopped.set()
        self.thread.join()
        self.clock.move(self.clock.time + 10**6)
        self.runner.close()
        for child in self.started:  # a thread that still computes when Python ends would abort it
            child.kill()  # also one that the runner no longer holds, which would wait for questions
        for child in self.started:
            if hasattr(child.worker, "thread"):
                child.worker.thread.join(60)
                assert not child.worker.thread.is_alive(), "a dataset in a thread did not end"
        use_clock(self.before)


@pytest.fixture
def drawing(house: House) -> Iterator[Drawing]:
    """The runner of the service; ``drawing.answer()`` lets everything that waits be answered."""
    made = Drawing(house.service.settings)
    yield made
    made.close()
