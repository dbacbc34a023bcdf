"""Where a ledger lives in tests: in memory, in a file, on a server; and what many tests do with it."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tacit.accounting import Budget
from tacit.errors import TacitError
from tacit.ledger import Ledger

TABLES = (
    "ledger_meta", "ledger_entries", "ledger_accounts", "ledger_releases", "ledger_blocks", "ledger_runs",
)  # fmt: skip


class Site:
    """A place where one ledger lives; `open` may be called again, except in memory."""

    def __init__(self, kind: str, folder: Path, url: str | None) -> None:
        self.kind = kind
        self.where = {"memory": ":memory:", "sqlite": str(folder / "a.ledger"), "postgres": url}[kind]
        self.key = folder / "the.key"
        self._opened: list[Ledger] = []

    def open(self, **how) -> Ledger:
        ledger = Ledger.open(self.where, key=self.key, **how)
        self._opened.append(ledger)
        return ledger

    def close(self) -> None:
        for ledger in self._opened:
            ledger.close()
        self._opened.clear()

    def backup(self) -> None:
        """Copy the store as it is now; the witness and the key stay where they are."""
        self.close()
        if self.kind == "sqlite":
            shutil.copy(self.where, f"{self.where}.backup")
            return
        with psycopg.connect(self.where, autocommit=True) as connection:
            for table in TABLES:
                connection.execute(f"DROP TABLE IF EXISTS backup_{table}")
                connection.execute(f"CREATE TABLE backup_{table} AS TABLE {table}")

    def restore(self) -> None:
        """Put the copy back in place of the store."""
        self.close()
        if self.kind == "sqlite":
            shutil.copy(f"{self.where}.backup", self.where)
            return
        with psycopg.connect(self.where) as connection:
            connection.execute("SET session_replication_role = replica")  # no triggers
            for table in TABLES:
                connection.execute(f"DELETE FROM {table}")
                connection.execute(f"INSERT INTO {table} TABLE backup_{table}")

    def copy_live(self, name: str = "backup") -> None:
        """Copy the store as it is now, while others have it open."""
        if self.kind == "sqlite":
            self._copy(self.where, f"{self.where}.{name}")
            return
        with psycopg.connect(self.where, autocommit=True) as connection:
            for table in TABLES:
                connection.execute(f"CREATE TABLE {name}_{table} AS TABLE {table}")

    def restore_live(self, name: str = "backup") -> None:
        """Put a copy back in place of the store, while others have it open."""
        if self.kind == "sqlite":
            self._copy(f"{self.where}.{name}", self.where)
            return
        with psycopg.connect(self.where) as connection:
            connection.execute("SET session_replication_role = replica")  # no triggers
            for table in TABLES:
                connection.execute(f"DELETE FROM {table}")
                connection.execute(f"INSERT INTO {table} TABLE {name}_{table}")

    def _copy(self, source: str, target: str) -> None:
        """Copy with SQLite's own backup, which other connections see as one change."""
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)


def site(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    place = Site(request.param, tmp_path, url)
    yield place
    place.close()


def visits(ledger, budget=None, **facts):
    return ledger.create_account("visits", unit="patient_id", budget=budget or Budget(epsilon=1), **facts)


def lineage(ledger, dataset=3, project=2, analyst=1):
    ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=dataset))
    ledger.create_account("oncology", parent="visits", budget=Budget(epsilon=project))
    ledger.create_account("ana", parent="oncology", budget=Budget(epsilon=analyst))


def spent(ledger, *names):
    found = [ledger.account(name).spent.epsilon for name in names]
    return found[0] if len(found) == 1 else found


def refused(code):
    return pytest.raises(TacitError, match=f"code: {code}")
