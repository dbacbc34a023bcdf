"""Crashes and races, short in `make test`, long in `make test-long`."""

import os

import pytest

from support.stress_scripts import crash, run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_a_killed_process_leaves_nothing_uncharged_and_nothing_drawn_twice(tmp_path):
    crash("crash.py", tmp_path / "a.ledger", tmp_path, 25)


def test_a_killed_client_of_a_server_leaves_nothing_uncharged(tmp_path, postgres_url):
    crash("crash.py", postgres_url, tmp_path, 10)


@pytest.mark.long
def test_a_thousand_killed_processes(tmp_path):
    found = crash("crash.py", tmp_path / "a.ledger", tmp_path, 1000)
    assert found["refused"]["budget-exceeded"] > 0
    assert found["refused"]["spent"] > 0


@pytest.mark.long
def test_two_hundred_killed_clients(tmp_path, postgres_url):
    crash("crash.py", postgres_url, tmp_path, 200)


def test_processes_race_for_the_last_units(tmp_path):
    assert run("race.py", tmp_path / "a.ledger", tmp_path / "key", 9, timeout=300)["winners"] > 0


def test_clients_race_for_the_last_units(tmp_path, postgres_url):
    assert run("race.py", postgres_url, tmp_path / "key", 9, timeout=300)["winners"] > 0


@pytest.mark.long
def test_a_thousand_races(tmp_path):
    assert run("race.py", tmp_path / "a.ledger", tmp_path / "key", 1000, timeout=3600)["rounds"] == 1000


@pytest.mark.long
def test_a_thousand_races_of_clients(tmp_path, postgres_url):
    assert run("race.py", postgres_url, tmp_path / "key", 1000, timeout=3600)["rounds"] == 1000


def crash_in_runs(where, folder, kills):
    found = run("run_crash.py", where, folder / "key", folder, kills, 3, timeout=120 + 5 * kills)
    assert found["kills"] >= kills
    assert found["computed"] >= found["stored"] >= found["seen"] > 0
    return found


def test_a_process_that_is_killed_between_any_two_writes_of_a_run(tmp_path):
    found = crash_in_runs(tmp_path / "a.ledger", tmp_path, 0)
    assert found["kills"] > 40
    assert found["lost"] > 5


def test_a_client_that_is_killed_between_any_two_writes_of_a_run(tmp_path, postgres_url):
    found = crash_in_runs(postgres_url, tmp_path, 0)
    assert found["kills"] > 12
    assert found["lost"] > 2


@pytest.mark.long
def test_a_thousand_processes_killed_inside_runs(tmp_path):
    assert crash_in_runs(tmp_path / "a.ledger", tmp_path, 1000)["lost"] > 100


@pytest.mark.long
def test_two_hundred_clients_killed_inside_runs(tmp_path, postgres_url):
    assert crash_in_runs(postgres_url, tmp_path, 200)["lost"] > 20


def test_processes_race_for_the_last_instalment(tmp_path):
    assert run("run_race.py", tmp_path / "a.ledger", tmp_path / "key", 10, timeout=300)["shared"] >= 10


def test_clients_race_for_the_last_instalment(tmp_path, postgres_url):
    assert run("run_race.py", postgres_url, tmp_path / "key", 5, timeout=300)["shared"] >= 5


@pytest.mark.long
def test_many_races_for_the_last_instalment(tmp_path):
    assert run("run_race.py", tmp_path / "a.ledger", tmp_path / "key", 500, timeout=3600)["rounds"] == 500


@pytest.mark.long
def test_many_races_of_clients_for_the_last_instalment(tmp_path, postgres_url):
    assert run("run_race.py", postgres_url, tmp_path / "key", 200, timeout=3600)["rounds"] == 200
