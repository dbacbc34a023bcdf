"""Crashes and races inside blocks, short in `make test`, long in `make test-long`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def run(script, *words, timeout):
    done = subprocess.run(
        [sys.executable, HERE / script, *map(str, words)], capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def crash(where, folder, kills):
    found = run("block_crash.py", where, folder / "key", folder, kills, 1, timeout=60 + 3 * kills)
    assert found["died_at_work"] >= 0.9 * kills
    assert found["seen"] > kills / 2
    assert found["charged"] >= found["seen"]
    return found


def test_a_process_killed_inside_a_block_leaves_nothing_uncharged(tmp_path):
    crash(tmp_path / "a.ledger", tmp_path, 15)


@pytest.mark.long
def test_a_thousand_processes_killed_inside_blocks(tmp_path):
    assert crash(tmp_path / "a.ledger", tmp_path, 1000)["full"] > 0


@pytest.mark.long
def test_two_hundred_clients_killed_inside_blocks(tmp_path, postgres_url):
    assert crash(postgres_url, tmp_path, 200)["full"] > 0


def test_processes_race_for_the_last_of_a_block(tmp_path):
    assert run("block_race.py", tmp_path / "a.ledger", tmp_path / "key", 3, timeout=300)["winners"] > 0


def test_clients_race_for_the_last_of_a_block(tmp_path, postgres_url):
    assert run("block_race.py", postgres_url, tmp_path / "key", 3, timeout=300)["winners"] > 0


@pytest.mark.long
def test_three_hundred_races_for_the_last_of_a_block(tmp_path):
    assert run("block_race.py", tmp_path / "a.ledger", tmp_path / "key", 300, timeout=3600)["rounds"] == 300


@pytest.mark.long
def test_three_hundred_races_of_clients_for_the_last_of_a_block(tmp_path, postgres_url):
    assert run("block_race.py", postgres_url, tmp_path / "key", 300, timeout=3600)["rounds"] == 300
