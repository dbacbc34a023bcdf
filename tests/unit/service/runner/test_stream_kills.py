"""Kills of real processes while a stream is drawn: each day is drawn once, each series charged once."""

import contextlib
import os
import random
import signal
import time
from fractions import Fraction

import pytest

from tacit.core import Release
from tacit.service import ListedSource
from unit.service.runner.test_outcomes import RealRunner
from unit.service.runner.test_streams import SERIES, STREAM, allot, day, entries, write_day

DAYS = 12


@pytest.fixture
def settings(settings, tmp_path):
    (tmp_path / "flu").mkdir()
    for number in range(1, DAYS + 1):
        write_day(tmp_path / "flu", number)
    listed = {"flu": ListedSource("flu", str(tmp_path / "flu"), kind="stream", several=True)}
    return type(settings)(
        folder=settings.folder, sources=listed, tick=Fraction(1, 10), lag=20, width=4, memory=1024
    )


class Ward:
    """People who ask for the days of two series while processes are killed."""

    def __init__(self, house):
        self.house, self.queries = house, []
        house.person("cora", everywhere="curator")
        self.cora = house.token("cora")
        made = house.call("POST", "/api/v1/datasets", self.cora, json=STREAM)
        assert made.status_code == 201, made.text
        self.tokens = {}
        for name in ("ana", "ben"):
            house.person(name, flu="analyst")
            self.tokens[name] = house.token(name)
            allot(house, name)

    def resume(self):
        with self.house.service.database.change() as change:
            change.run("UPDATE datasets SET paused = ''")

    def take(self, number):
        """Have a day taken in; whoever is killed in between does it again."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            self.resume()
            found = self.house.call(
                "POST", "/api/v1/datasets/flu/days", self.cora, json={"through": day(number)}
            )
            if found.status_code == 201:
                return
            time.sleep(0.3)
        raise AssertionError(found.text)

    def ask(self, number):
        for name, token in self.tokens.items():
            arguments = {**SERIES, "through": day(number)}
            body = {"dataset": "flu", "method": "series", "epsilon": "1", "arguments": arguments}
            found = self.house.call("POST", "/api/v1/queries", token, json=body)
            if found.status_code == 202:
                self.queries.append((name, found.json()["query"]))

    def states(self):
        return [
            self.house.call("GET", f"/api/v1/queries/{query}", self.tokens[name]).json()
            for name, query in self.queries
        ]


def killed(house, rounds, seed):
    rng, runner = random.Random(seed), RealRunner(house.service.settings)
    try:
        ward = Ward(house)
        for number in range(1, rounds + 1):
            ward.take(number)
            time.sleep(0.9)  # the days count from a public time on
            ward.resume()
            ward.ask(number)
            time.sleep(rng.random() * 2.5)
            victims = runner.children()
            if number % 2 and victims:
                for victim in victims:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGKILL)
            else:
                runner.kill()
                runner.start()
        end = time.monotonic() + 240
        while time.monotonic() < end:
            found = ward.states()
            if not {"waiting", "running"} & {one["state"] for one in found}:
                if any(one["state"] == "finished" for one in found[-2:]):
                    break
                ward.ask(rounds)
            ward.resume()
            time.sleep(0.3)
    finally:
        runner.process.terminate()
        runner.process.join(30)
        runner.kill()
    return ward, ward.states()


@pytest.mark.long
@pytest.mark.parametrize(("rounds", "seed"), [(3, 18), (DAYS, 81)])
def test_kills_draw_no_day_twice_and_charge_once(house, rounds, seed):
    ward, found = killed(house, rounds, seed)
    assert {one["state"] for one in found} <= {"finished", "failed"}
    assert "finished" in {one["state"] for one in found}
    assert sorted(entries(house, "run", "view")) == ["run", "view"]  # each person once, the dataset once
    drawn = {}
    for (name, _), one in zip(ward.queries, found, strict=True):
        if one["state"] == "finished":
            release = house.call("GET", f"/api/v1/releases/{one['release']}", ward.tokens[name]).json()
            table = Release.from_json(release["document"]).content.to_dict()
            for when, where, n in zip(table["day"], table["region"], table["count"], strict=True):
                drawn.setdefault((when, where), set()).add(n)
    assert len(drawn) == 2 * rounds
    assert {len(values) for values in drawn.values()} == {1}  # one number for each day, whoever read it
    assert house.service.ledger.verify().ok
