"""Commands on a database server: one step of a pipeline that reads tables where they are."""

import json

import pytest

import tacit as tc
from support.command import tacit

psycopg = pytest.importorskip("psycopg")

CONFIG = """ledger = "tacit.ledger"

[datasets.visits]
source = "visits"
unit = "pid"
budget = {epsilon = 1000}
bounds = {stay = [0, 30]}
keys = {ward = ["A", "B"]}
limits = {rows = 2}
"""
BY_WARD = "SELECT ward, COUNT(*) AS n, SUM(stay) AS days FROM visits GROUP BY ward"


@pytest.fixture
def folder(tmp_path, postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE visits (pid int, ward text, stay float8)")
        connection.execute(
            "INSERT INTO visits SELECT i / 2, CASE WHEN i % 2 = 0 THEN 'A' ELSE 'B' END, i % 7 "
            "FROM generate_series(0, 1999) AS t(i)"
        )
    (tmp_path / "tacit.toml").write_text(CONFIG)
    return tmp_path


def spent(folder):
    with tc.Ledger.open(folder / "tacit.ledger", create=False) as ledger:
        return [entry.kind for entry in ledger.history()].count("charge")


def test_a_query_reads_a_servers_tables_and_writes_its_files(folder, postgres_url):
    done = tacit(
        "query", BY_WARD, "-e", "800", "--engine", postgres_url, "--out", "wards.csv", "--certificate",
        "wards.json", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = (folder / "wards.csv").read_text().splitlines()
    wards = {line.split(",")[0]: float(line.split(",")[1]) for line in lines[1:]}
    assert set(wards) == {"A", "B"}
    assert all(abs(n - 1000) < 5 for n in wards.values())
    done = tacit("verify", "wards.json", "--ledger", "tacit.ledger", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert postgres_url not in (folder / "wards.json").read_text()


def test_the_config_or_the_environment_names_the_engine(folder, postgres_url):
    done = tacit("plan", BY_WARD, "-e", "1", "--json", cwd=folder, TACIT_ENGINE=postgres_url)
    assert done.returncode == 0, done.stdout
    plan = json.loads(done.stdout)
    assert "EXISTS" in " ".join(plan["sql"])  # PostgreSQL's words; DuckDB has SEMI JOIN
    moved = CONFIG.replace('unit = "pid"', f'unit = "pid"\nengine = "{postgres_url}"')
    (folder / "tacit.toml").write_text(moved)
    done = tacit("query", BY_WARD, "-e", "1", "--json", cwd=folder)
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["certificate"]["plan"] == plan["hash"]  # the same plan on every engine


def test_a_server_that_cannot_be_reached_is_refused_before_the_charge(folder):
    address = "postgresql://ann:secret@127.0.0.1:1/hospital"
    done = tacit("query", BY_WARD, "-e", "1", "--engine", address, cwd=folder)
    assert done.returncode == 2
    assert "secret" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "tacit.ledger").exists() or spent(folder) == 0


def test_an_engine_that_a_command_cannot_open_is_refused(folder):
    done = tacit("query", BY_WARD, "-e", "1", "--engine", "ann:secret@host", cwd=folder)
    assert done.returncode == 2
    assert "postgresql://" in done.stderr
    assert "secret" not in done.stderr


def test_a_file_that_is_described_as_csv_is_refused_on_a_server(folder):
    declared = CONFIG.replace('unit = "pid"', 'unit = "pid"\ndecimal = ","\nengine = "postgresql://x/y"')
    (folder / "tacit.toml").write_text(declared)
    done = tacit("plan", BY_WARD, "-e", "1", cwd=folder)
    assert done.returncode == 2
    assert "decimal" in done.stderr
