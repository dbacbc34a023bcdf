"""The service under load: 200 analysts, open loop, against a real `tacit serve` on this machine.

    python benchmarks/service.py                 20 seconds of load, then the CPU of each kind of request
    python benchmarks/service.py --seconds 300   the whole test
    python benchmarks/service.py --kill          kill -9 of workers and runner under load

Arrivals do not wait for answers: each analyst sends one request every two seconds, at a phase of its own.
60 % are repeats. Every answer is then compared with the ledger: what was spent is what was drawn, and every
receipt is an entry of the log. CPU is the processor time of the web workers (utime + stime of all threads),
measured kind by kind with one request after the other, kinds in turn; the base line is a bare route with a
token (`whoami`) in the same run. The machine may be busy: compare CPU, not latencies.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import tacit as tc
from support.served import Served

ANALYSTS = 200
IDLE = 2.0  # seconds after which a connection is not used again
PERIOD = 2.0  # seconds between two requests of one analyst
EPSILON = Fraction(1, 1000)  # of each question
#: How often each kind is sent; 60 % are repeats.
SHARES = {"card again": 35, "stored answer": 25, "new card": 20, "whoami": 10, "new draw": 5, "result": 5}
GOALS = {"card again": 3, "stored answer": 3, "new card": 12}
CHARGES = {"charge", "draw", "view"}  # entries of the ledger that cost something
WARDS = ("A", "B", "C", "D")


@dataclass
class Answers:
    """What came back."""

    latencies: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter = field(default_factory=Counter)
    #: The last document of each query and of each stored answer.
    queries: dict[str, dict] = field(default_factory=dict)
    releases: dict[str, dict] = field(default_factory=dict)
    lost: int = 0  # connections that broke


class Client:
    """HTTP over connections that stay open; as little work as possible, because it shares the processors."""

    def __init__(self, url: str) -> None:
        self.host, _, port = url.removeprefix("http://").partition(":")
        self.port = int(port)
        #: Connections that are not used now, with when each was used last.
        self.free: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def send(self, method: str, path: str, token: str, body: dict | None = None, key: str = ""):
        raw = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: {self.host}:{self.port}\r\nauthorization: Bearer {token}\r\n"
        )
        head += f"idempotency-key: {key}\r\n" if key else ""
        message = f"{head}content-length: {len(raw)}\r\n\r\n".encode() + raw
        reader, writer = await self._connection()
        try:
            writer.write(message)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            size = int(head.partition("content-length:")[2].partition("\r\n")[0])
            content = await reader.readexactly(size)
        except BaseException:
            writer.close()
            raise
        self.free.append((time.monotonic(), reader, writer))
        return int(head[9:12]), json.loads(content)

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Take a connection that was used lately; a server closes those that idle, at a time of its own."""
        while self.free:
            used, reader, writer = self.free.pop()
            if time.monotonic() - used < IDLE:
                return reader, writer
            writer.close()
        return await asyncio.open_connection(self.host, self.port)

    def close(self) -> None:
        for *_, writer in self.free:
            writer.close()
        self.free.clear()


class Load:
    """The people, their questions, and what they have asked so far."""

    def __init__(self, service: Served, client: Client, analysts: int) -> None:
        self.analysts = analysts
        self.service, self.client, self.answers = service, client, Answers()
        self.numbers = itertools.count()
        self.chance = random.Random(18)
        self.paid: dict[str, list[dict]] = defaultdict(list)  # by token: questions with a stored answer
        self.open: list[tuple[str, str]] = []  # (token, query) whose result nobody has fetched yet
        self.tokens: list[str] = []
        self.patient = False  # whether broken connections are tried again, as with kill -9

    def prepare(self) -> None:
        """Declare a dataset, make analysts with allotments."""
        service = self.service
        service.person("cara", everywhere="curator owner")
        cara = service.token("cara")
        declared = {
            "name": "visits", "source": "visits", "unit": "patient_id", "budget": {"epsilon": "1000000"},
            "keys": {"hospital": list(WARDS)}, "bounds": {"age": ["0", "110"]}, "limits": {"rows": 3},
        }  # fmt: skip
        status, document = service.call("POST", "/api/v1/datasets", cara, declared)
        assert status == 201, document
        for number in range(self.analysts):
            person = service.person(f"analyst{number}", visits="analyst")
            given = {"person": person, "purpose": "load", "epsilon": "1000"}
            status, document = service.call("POST", "/api/v1/datasets/visits/accounts", cara, given)
            assert status == 201, document
            self.tokens.append(service.token(f"analyst{number}"))
        self.popular = [self.question() for _ in range(40)]

    def question(self) -> dict:
        """Return a question that nobody has asked."""
        number = next(self.numbers)
        return {
            "dataset": "visits", "epsilon": str(EPSILON),
            "sql": f"SELECT hospital, COUNT(*) AS n FROM visits WHERE age > {number % 100}"
            f" AND length_of_stay > {number / 1000} GROUP BY hospital",
        }  # fmt: skip

    async def arrive(self, token: str, kind: str, planned: float | None = None) -> None:
        """Send one request of a kind and keep what matters of its answer."""
        start = time.monotonic() if planned is None else planned
        try:
            status, document = await self._sent(token, kind)
        except (OSError, EOFError, asyncio.IncompleteReadError) as error:
            self.answers.lost += 1
            if not self.patient:
                self.answers.errors[kind, type(error).__name__] += 1
            return
        self.answers.latencies[kind].append(time.monotonic() - start)
        if status not in (200, 202) and not (self.patient and status == 503):
            self.answers.errors[kind, f"{status} {document.get('code')}"] += 1

    async def _sent(self, token: str, kind: str):
        send, answers = self.client.send, self.answers
        match kind:
            case "whoami":
                return await send("GET", "/api/v1/whoami", token)
            case "card again":
                return await send("POST", "/api/v1/plans", token, self.chance.choice(self.popular))
            case "new card":
                return await send("POST", "/api/v1/plans", token, self.question())
            case "stored answer" if self.paid[token]:
                asked = self.chance.choice(self.paid[token])
                status, document = await send("POST", "/api/v1/queries", token, asked, self._key())
                if status == 200:
                    answers.releases[document["release"]] = document
                return status, document
            case "result" if self.open:
                owner, query = self.open.pop(0)
                try:
                    status, document = await send("GET", f"/api/v1/queries/{query}", owner)
                except BaseException:
                    self.open.append((owner, query))
                    raise
                if status == 200:
                    answers.queries[query] = document
                    if not document["done"]:
                        self.open.append((owner, query))
                    elif document["state"] == "finished":
                        self.paid[owner].append(document["ask"] | {"purpose": "load"})
                return status, document
        return await self._draw(token, self.question() | {"purpose": "load"})

    async def _draw(self, token: str, asked: dict):
        key = self._key()
        for _ in range(40 if self.patient else 1):
            try:
                status, document = await self.client.send("POST", "/api/v1/queries", token, asked, key)
                break
            except (OSError, EOFError, asyncio.IncompleteReadError):
                self.answers.lost += 1
                if not self.patient:
                    raise
                await asyncio.sleep(0.25)
        else:
            raise EOFError
        if status == 202:
            self.answers.queries[document["query"]] = document
            self.open.append((token, document["query"]))
        return status, document

    def _key(self) -> str:
        return f"k{next(self.numbers)}"

    async def settle(self, seconds: float = 240) -> None:
        """Fetch the result of every query."""
        end = time.monotonic() + seconds
        while self.open and time.monotonic() < end:
            for _ in range(len(self.open)):
                await self.arrive(self.tokens[0], "result")
            states = Counter(one["state"] for one in self.answers.queries.values())
            if states["failed"] and not self.patient:
                sys.exit(f"{states['failed']} draws missed their time: this machine is too busy; --lag 40")
            await asyncio.sleep(0.2)

    async def give_everyone_an_answer(self) -> None:
        """Let every analyst ask a popular question, eight a second: there must be something to repeat."""
        for number, token in enumerate(self.tokens):
            await self._draw(token, self.popular[number % len(self.popular)] | {"purpose": "load"})
            await asyncio.sleep(0.125)
        await self.settle()
        assert all(self.paid[token] for token in self.tokens), Counter(
            document["state"] for document in self.answers.queries.values()
        )

    async def open_loop(self, seconds: float) -> None:
        """Send at fixed times, whatever comes back."""
        kinds, weights = list(SHARES), list(SHARES.values())
        begin = time.monotonic() + 0.5
        times = sorted(
            (begin + self.chance.random() * PERIOD + turn * PERIOD, token)
            for token in self.tokens
            for turn in range(int(seconds / PERIOD))
        )
        running = set()
        for moment, token in times:
            await asyncio.sleep(max(0.0, moment - time.monotonic()))
            kind = self.chance.choices(kinds, weights)[0]
            task = asyncio.create_task(self.arrive(token, kind, moment))
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.gather(*running)


def cpu_of(processes: list[int]) -> float:
    """Return the processor time of some processes, in seconds."""
    total = 0.0
    for process in processes:
        parts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        total += (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
    return total


async def cpu_by_kind(load: Load, workers: list[int], *, rounds: int, each: int) -> dict[str, float]:
    """Measure kinds in turn; return milliseconds of processor time per request, medians over rounds."""
    found = defaultdict(list)
    for _ in range(rounds):
        for kind in ("whoami", "card again", "stored answer", "new card"):
            before = cpu_of(workers)
            for number in range(each):
                await load.arrive(load.tokens[number % load.analysts], kind)
            found[kind].append((cpu_of(workers) - before) / each * 1e3)
    return {kind: statistics.median(values) for kind, values in found.items()}


def check_ledger(load: Load) -> list[str]:
    """Compare all answers with the ledger; return what is wrong."""
    settings, problems = load.service.settings, []
    with tc.Ledger.open(settings.ledger_place, create=False) as ledger:
        report = ledger.verify()
        problems += [] if report.ok else [f"the ledger does not verify: {report}"]
        entries = [entry for entry in ledger.history() if entry.kind in CHARGES]
        by_number = {entry.seq: entry for entry in entries}
        finished = [one for one in load.answers.queries.values() if one["state"] == "finished"]
        for document in load.answers.releases.values():
            for paid in document["charged"]:
                entry = by_number.get(paid["entry"])
                if entry is None or document["plan"] != entry.plan:
                    problems.append(f"release {document['release']} has no charge")
        charged = {(entry.account, entry.plan) for entry in entries}
        for document in finished:
            if (document["account"], document["plan"]) not in charged:
                problems.append(f"query {document['query']} was answered without a charge")
        if len(charged) != len(entries):
            problems.append(f"{len(entries) - len(charged)} charges were made twice")
        drawn = {plan for _, plan in charged}
        spent = ledger.account("visits").spent.epsilon
        if spent != EPSILON * len(drawn):
            problems.append(f"the dataset has spent {spent}, but {len(drawn)} plans cost {EPSILON} each")
        states = Counter(one["state"] for one in load.answers.queries.values())
        print(f"ledger: {len(entries)} charges, {len(drawn)} plans drawn, spent {float(spent):g}; "
              f"queries: {dict(states)}")  # fmt: skip
    return problems


def check_stored(load: Load) -> list[str]:
    """Look for answers that were paid for and stored, and cannot be read: there must be none."""
    problems = []
    with tc.Ledger.open(load.service.settings.ledger_place, create=False) as ledger:
        entries = [entry for entry in ledger.history() if entry.kind in CHARGES]
        stored = [e for e in entries if ledger.paid_release(e.account, e.plan) is not None]
        names = {row["name"]: row["person"] for row in load.service.database.rows("SELECT * FROM accounts")}
        asks = {
            (row["account"], row["plan"]): row
            for row in load.service.database.rows("SELECT * FROM queries ORDER BY position")
        }
        lost = len(entries) - len(stored)
        print(f"after the kills: {len(entries)} charged, {len(stored)} stored, {lost} paid and lost")
        for entry in stored:
            row = asks.get((entry.account, entry.plan))
            if row is None:
                problems.append(f"entry {entry.seq} was charged for no query")
                continue
            token = load.tokens[list(load.service.people.values()).index(names[entry.account]) - 1]
            asked = json.loads(row["ask"]) | {"purpose": "load"}
            status, document = load.service.call("POST", "/api/v1/queries", token, asked)
            if status != 200 or document["plan"] != entry.plan:
                problems.append(f"the stored answer of entry {entry.seq} is not served: {status}")
        if len(entries) != len(load_charges(load)):
            problems.append("reading stored answers charged something")
    return problems


def load_charges(load: Load) -> list:
    with tc.Ledger.open(load.service.settings.ledger_place, create=False) as ledger:
        return [entry for entry in ledger.history() if entry.kind in CHARGES]


async def kill_at_random(load: Load, seconds: float) -> Counter:
    """Kill a worker, the runner or a process of a dataset, every second or so."""
    killed, end = Counter(), time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(0.5 + load.chance.random())
        processes = load.service.processes()
        kind = load.chance.choice(["worker", "drawer"])
        if processes[kind]:
            os.kill(load.chance.choice(processes[kind]), signal.SIGKILL)
            killed[kind] += 1
    return killed


def report_latencies(load: Load) -> None:
    for kind, found in sorted(load.answers.latencies.items()):
        ordered = sorted(found)
        quantiles = [ordered[min(len(ordered) - 1, int(q * len(ordered)))] * 1e3 for q in (0.5, 0.95, 0.99)]
        print(f"  {kind:14} {len(found):7} requests   p50 {quantiles[0]:8.1f}  p95 {quantiles[1]:8.1f}"
              f"  p99 {quantiles[2]:8.1f} ms")  # fmt: skip


async def steady(load: Load, seconds: float) -> list[str]:
    await load.give_everyone_an_answer()
    load.answers.latencies.clear()
    workers, runner = load.service.processes()["worker"], load.service.processes()["drawer"]
    before, wall = cpu_of(workers), time.monotonic()
    await load.open_loop(seconds)
    used, wall = cpu_of(workers) - before, time.monotonic() - wall
    sent = sum(len(found) for found in load.answers.latencies.values())
    print(f"open loop: {sent} requests in {wall:.0f} s, {used / wall:.2f} processors by the workers "
          f"({len(workers)} workers, {len(runner)} runner)")  # fmt: skip
    report_latencies(load)
    await load.settle()
    errors = dict(load.answers.errors)
    print(f"errors: {errors or 'none'}")
    rounds, each = (9, 400) if seconds > 60 else (5, 200)
    found = await cpu_by_kind(load, workers, rounds=rounds, each=each)
    print(f"CPU of the workers, one request after the other, medians of {rounds} rounds of {each}:")
    for kind, value in found.items():
        ratio, goal = value / found["whoami"], GOALS.get(kind)
        judged = "" if goal is None else f"   goal {goal} x: {'met' if ratio <= goal else 'MISSED'}"
        print(f"  {kind:14} {value:6.3f} ms   {ratio:5.2f} x{judged}")
    return [f"errors: {errors}"] if errors else []


async def killing(load: Load, seconds: float) -> list[str]:
    await load.give_everyone_an_answer()
    load.patient = True
    killed, _ = await asyncio.gather(kill_at_random(load, seconds), load.open_loop(seconds))
    load.service.wait_for("ready")
    load.client.close()
    await load.settle()
    print(f"killed: {dict(killed)}; {load.answers.lost} connections broke")
    return [f"errors: {dict(load.answers.errors)}"] if load.answers.errors else []


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--analysts", type=int, default=ANALYSTS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lag", type=int, default=4, help="ticks of 0.5 s; longer on a busy machine")
    parser.add_argument("--kill", action="store_true")
    given = parser.parse_args()
    assert sum(SHARES.values()) == 100
    assert SHARES["card again"] + SHARES["stored answer"] == 60
    with tempfile.TemporaryDirectory() as folder:
        service = Served(
            Path(folder) / "service", more=f'folder = "."\nrate = 0\nwidth = 64\nlag = {given.lag}',
            options=("--workers", str(given.workers)),
        )  # fmt: skip
        service.start()
        try:
            load = Load(service, Client(service.url), given.analysts)
            load.prepare()
            run = killing if given.kill else steady
            problems = asyncio.run(run(load, given.seconds))
            problems += check_ledger(load)
            if given.kill:
                problems += check_stored(load)
        finally:
            service.stop()
    print("\n".join(problems) or "every receipt is an entry of the ledger; nothing was spent twice")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
