"""Crashes and races inside blocks, short in `make test`, long in `make test-long`."""

import os

import pytest

from support.stress_scripts import crash, run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_a_process_killed_inside_a_block_leaves_nothing_uncharged(tmp_path):
    crash("block_crash.py", tmp_path / "a.ledger", tmp_path, 15)


@pytest.mark.long
def test_a_thousand_processes_killed_inside_blocks(tmp_path):
    assert crash("block_crash.py", tmp_path / "a.ledger", tmp_path, 1000)["full"] > 0


@pytest.mark.long
def test_two_hundred_clients_killed_inside_blocks(tmp_path, postgres_url):
    assert crash("block_crash.py", postgres_url, tmp_path, 200)["full"] > 0


def test_processes_race_for_the_last_of_a_block(tmp_path):
    assert run("block_race.py", tmp_path / "a.ledger", tmp_path / "key", 4, timeout=300)["winners"] > 0


def test_clients_race_for_the_last_of_a_block(tmp_path, postgres_url):
    assert run("block_race.py", postgres_url, tmp_path / "key", 4, timeout=300)["winners"] > 0


@pytest.mark.long
def test_three_hundred_races_for_the_last_of_a_block(tmp_path):
    assert run("block_race.py", tmp_path / "a.ledger", tmp_path / "key", 300, timeout=3600)["rounds"] == 300


@pytest.mark.long
def test_three_hundred_races_of_clients_for_the_last_of_a_block(tmp_path, postgres_url):
    assert run("block_race.py", postgres_url, tmp_path / "key", 300, timeout=3600)["rounds"] == 300
