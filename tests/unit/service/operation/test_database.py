"""The service's database: the same on SQLite and on a real PostgreSQL server."""

import threading

import pytest

from tacit.errors import TacitError
from tacit.service import _database
from tacit.service._database import MIGRATIONS, Database


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    return str(tmp_path / "s.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def database(place):
    opened = Database.open(place)
    yield opened
    opened.close()


def put(database, name, fact):
    with database.change() as change:
        change.run("INSERT INTO facts (name, fact) VALUES (?, ?)", name, fact)


def test_what_was_changed_is_there_for_another_process(database, place):
    put(database, "a", "1")
    other = Database.open(place)
    assert other.row("SELECT fact FROM facts WHERE name = ?", "a") == {"fact": "1"}
    other.close()


def test_a_change_that_fails_leaves_nothing(database):
    with pytest.raises(ZeroDivisionError), database.change() as change:
        change.run("INSERT INTO facts (name, fact) VALUES (?, ?)", "a", "1")
        raise ZeroDivisionError
    assert database.rows("SELECT * FROM facts") == []
    put(database, "b", "2")  # and the connection goes on


def test_a_statement_that_fails_is_an_error_and_the_connection_goes_on(database):
    with pytest.raises(Exception, match="nowhere"):
        database.rows("SELECT * FROM nowhere")
    with pytest.raises(Exception, match="nowhere"), database.change() as change:
        change.run("DELETE FROM nowhere")
    put(database, "a", "1")


def test_changes_follow_each_other(database, place):
    put(database, "n", "0")

    def add():
        own = Database.open(place)
        for _ in range(20):
            with own.change() as change:
                row = change.row("SELECT fact FROM facts WHERE name = 'n'")
                change.run("UPDATE facts SET fact = ? WHERE name = 'n'", str(int(row["fact"]) + 1))
        own.close()

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert database.row("SELECT fact FROM facts WHERE name = 'n'") == {"fact": "80"}


def test_workers_that_start_together_migrate_once(place):
    opened, problems = [], []

    def begin():
        try:
            opened.append(Database.open(place))
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert opened[0].number == len(MIGRATIONS)
    for one in opened:
        one.close()


def test_a_database_of_a_newer_version_is_refused(database, place):
    with database.change() as change:
        change.run("INSERT INTO migrations (number) VALUES (?)", 99)
    with pytest.raises(TacitError) as refused:
        Database.open(place)
    assert refused.value.code == "unknown-version"


def test_a_migration_that_fails_leaves_the_form_before_it(database, place, monkeypatch):
    broken = (*MIGRATIONS, "CREATE TABLE extra (a TEXT); CREATE TABLE facts (a TEXT)")
    monkeypatch.setattr(_database, "MIGRATIONS", broken)
    with pytest.raises(Exception, match="facts"):
        Database.open(place)
    assert database.number == len(MIGRATIONS)
    with pytest.raises(Exception, match="extra"):
        database.rows("SELECT * FROM extra")
    good = (*MIGRATIONS, "CREATE TABLE extra (a TEXT)")
    monkeypatch.setattr(_database, "MIGRATIONS", good)
    later = Database.open(place)
    assert later.rows("SELECT * FROM extra") == []
    assert later.number == len(good)
    later.close()


def test_a_dropped_connection_is_opened_again(postgres_url):
    import psycopg

    database = Database.open(postgres_url)

    def drop():
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database()"
                " AND query LIKE '%facts%'"
            )

    put(database, "a", "1")
    database.row("SELECT fact FROM facts")
    drop()
    assert database.row("SELECT fact FROM facts") == {"fact": "1"}
    drop()
    put(database, "b", "2")
    with pytest.raises(psycopg.OperationalError), database.change() as change:
        change.run("INSERT INTO facts (name, fact) VALUES (?, ?)", "c", "3")
        drop()
        change.run("INSERT INTO facts (name, fact) VALUES (?, ?)", "d", "4")
    assert len(database.rows("SELECT fact FROM facts")) == 2  # a broken change is not repeated
    database.close()
