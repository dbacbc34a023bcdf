"""Times of answers: a neighbour with a heavy person cannot be told from an identical copy.

The start of the processes is what is repeated, because a set-up moves all times of its answers together. See
docs/proofs/service_timing.md for the power of the test.
"""

from __future__ import annotations

import multiprocessing
import random
import statistics
import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import tacit as tc
from tacit.service import ListedSource, ServiceSettings, create_app
from tacit.service.runner import serve_runner
from tacit.tables import example_visits
from unit.service.conftest import House
from unit.service.runner.conftest import DECLARED

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("base", "copy", "heavy")
QUESTIONS = 3
#: Two-sided chance of a false alarm 1.2e-7 with 19 degrees of freedom.
FALSE_ALARM = 8.2


def sources(folder: Path, rows: int) -> dict[str, ListedSource]:
    """Write the example, an identical copy, and a neighbour in which one person has very many rows."""
    con = duckdb.connect()
    con.execute(f"CREATE TABLE v AS SELECT * FROM '{example_visits()}'")
    one = "(SELECT 999999999, hospital, icd, age, length_of_stay, admitted FROM v LIMIT 1)"
    heavy = f"UNION ALL SELECT one.* FROM {one} AS one, range({rows})"
    for name, more in {"base": "", "copy": "", "heavy": heavy}.items():
        con.execute(f"COPY (SELECT * FROM v {more}) TO '{folder / name}.parquet' (FORMAT parquet)")
    return {name: ListedSource(name, str(folder / f"{name}.parquet")) for name in NAMES}


def one_start(folder: Path, listed: dict[str, ListedSource], rng: random.Random) -> dict[str, list[float]]:
    """Start the service once; return by how many seconds each answer was seen after its time."""
    settings = ServiceSettings(folder=folder, sources=listed, tick=Fraction(1, 2), lag=12, memory=1024)
    process = multiprocessing.get_context("spawn").Process(target=serve_runner, args=(settings,))
    process.start()
    app = create_app(settings)
    house = House(app, app.state.service)
    try:
        house.person("cora", everywhere="curator")
        token = house.token("cora")
        for name in rng.sample(NAMES, 3):
            made = house.call(
                "POST", "/api/v1/datasets", token, json={**DECLARED, "name": name, "source": name}
            )
            assert made.status_code == 201, made.text
        person = house.person("ana", base="analyst", copy="analyst", heavy="analyst")
        for name in NAMES:
            house.service.ledger.create_account(f"{name}/1", parent=name, budget=tc.Budget(epsilon=4))
            with house.service.database.change() as change:
                change.run(
                    "INSERT INTO accounts (name, dataset, person, purpose, created)"
                    " VALUES (?, ?, ?, 'x', '')",
                    f"{name}/1", name, person,
                )  # fmt: skip
        return _offsets(house, house.token("ana"), rng)
    finally:
        process.terminate()
        process.join(30)
        process.kill()
        app.state.service.close()


def _offsets(house: House, token: str, rng: random.Random) -> dict[str, list[float]]:
    asked: dict[str, str] = {}
    for name in rng.sample(NAMES, 3):
        for number in range(QUESTIONS):
            body = {"dataset": name, "sql": f"SELECT COUNT(*) AS n FROM {name} WHERE age > {number}"}
            answer = house.call("POST", "/api/v1/queries", token, json={**body, "epsilon": "1/2"})
            assert answer.status_code == 202, answer.text
            asked[answer.json()["query"]] = name
    found: dict[str, list[float]] = {name: [] for name in NAMES}
    due: dict[str, float] = {}
    while asked:
        for query in rng.sample(list(asked), len(asked)):
            document: dict[str, Any] = house.call("GET", f"/api/v1/queries/{query}", token).json()
            if document["answer_at"]:
                due[query] = document["answer_at"]
            elif document["done"]:
                assert document["state"] == "finished", document
                found[asked.pop(query)].append(time.time() - due[query])
        wait = min((due[q] for q in asked if q in due), default=time.time() + 0.2) - time.time()
        time.sleep(max(0.0, min(wait, 0.2)))
    return found


def compare(folder: Path, starts: int, rows: int, seed: int) -> tuple[float, float, list[float]]:
    """Return the mean and the standard error of (heavy - base) - (copy - base), over starts."""
    rng, listed, differences = random.Random(seed), sources(folder, rows), []
    for number in range(starts):
        seen = one_start(folder / str(number), listed, rng)
        mean = {name: statistics.fmean(values) for name, values in seen.items()}
        differences.append(mean["heavy"] - mean["copy"])
    error = statistics.stdev(differences) / len(differences) ** 0.5
    return statistics.fmean(differences), error, differences


@pytest.mark.long
def test_a_heavy_neighbour_is_answered_at_the_same_times_as_an_identical_copy(tmp_path):
    mean, error, differences = compare(tmp_path, starts=20, rows=1_000_000, seed=18)
    print(f"difference {1e3 * mean:.1f} ms, standard error {1e3 * error:.1f} ms")
    assert abs(mean) <= FALSE_ALARM * error, differences
    assert error < 0.05  # else it could not see a shift of a tick
