"""A ledger of schema 1 becomes one of schema 2, in a file and on a server, with the same totals."""

import json
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from ledger_sites import refused
from tacit.accounting import Budget, Cost, Filter
from tacit.errors import TacitError
from tacit.ledger import Head, Ledger

KEPT = Path(__file__).parents[1] / "data" / "ledger_schema_1"
END = Head(21, "603d7eb52df2c394e48a257f858812e7b4de9a48925ccb9d5e318dfddec4f312")
TABLES = {"ledger_meta": 2, "ledger_entries": 9, "ledger_accounts": 5, "ledger_releases": 6}


class OldFile:
    """A copy of the kept file."""

    def __init__(self, folder):
        shutil.copytree(KEPT, folder, dirs_exist_ok=True)
        self.where = folder / "visits.ledger"
        self.how = {"create": False}

    def run(self, sql, *values):
        with sqlite3.connect(self.where) as connection:
            found = connection.execute(sql, values).fetchall()
        connection.close()
        return found


class OldServer:
    """A server with the schema of version 1 and the rows of the kept file."""

    def __init__(self, folder, url):
        import psycopg

        old = OldFile(folder)
        self.where, self.psycopg = url, psycopg
        self.how = {"key": folder / "visits.ledger.key", "create": False}
        with psycopg.connect(url) as connection:
            connection.execute((KEPT / "postgres.sql").read_text("utf-8"))
            for table, width in TABLES.items():
                for row in old.run(f"SELECT * FROM {table}"):
                    connection.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * width)})", row)
            connection.execute("INSERT INTO ledger_meta VALUES ('version', '1')")

    def run(self, sql, *values):
        with self.psycopg.connect(self.where, autocommit=True) as connection:
            cursor = connection.execute(sql.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(params=["sqlite", "postgres"])
def old(request, tmp_path):
    if request.param == "sqlite":
        return OldFile(tmp_path)
    return OldServer(tmp_path, request.getfixturevalue("postgres_url"))


def open_(old):
    return Ledger.open(old.where, **old.how)


def test_totals_log_and_answers_are_what_they_were(old):
    with open_(old) as ledger:
        assert ledger.head == END
        assert ledger.verify(witness=END).complete
        spent = {account.name: account.spent for account in ledger.accounts()}
        assert spent["visits"].epsilon == Fraction(23, 24)
        assert spent["oncology"].epsilon == Fraction(17, 24)
        assert spent["scans"].rho == spent["trials"].rho == Fraction(1, 1800)
        assert ledger.stored_release("visits", "p3", version=1).payload == b"stored by hand"
        assert all(account.blocks is None for account in ledger.accounts())


def test_it_goes_on_in_the_new_schema_and_is_upgraded_once(old):
    with open_(old) as ledger:
        ledger.charge("ana", Cost.pure(0.25))
        new = ledger.create_account("ward", parent="trials", budget=Budget(epsilon=2, delta=1e-6))
        assert new.filter.orders
    with open_(old) as ledger:
        ledger.charge("ward", Cost.gaussian(sigma=30, sensitivity=1))
        assert ledger.verify(witness=END).complete
        assert ledger.account("visits").spent.epsilon == Fraction(29, 24)


def test_an_old_account_keeps_the_old_rule_for_ever(old):
    gaussian = Cost.gaussian(sigma=30, sensitivity=1)
    with open_(old) as ledger:
        account = ledger.account("trials")
        assert account.filter.orders == ()
        rule = Filter(account.budget, Fraction(0), Fraction(0), Fraction(0))
        fits, state = 0, rule.added(gaussian.spend)
        while state.admits(gaussian.spend) and fits < 60:
            state, fits = state.added(gaussian.spend), fits + 1
        for _ in range(fits):
            ledger.charge("trials", gaussian)
        if fits < 60:
            with refused("budget-exceeded"):
                ledger.charge("trials", gaussian)
        assert ledger.account("trials").filter == state
        ledger.grow("trials", Budget(epsilon=3, delta=1e-6), statement="more", who="curator")
        ledger.refresh("trials", statement="other people", who="curator")
        ledger.charge("trials", gaussian)
        assert ledger.account("trials").filter.orders == ()
        assert ledger.verify(witness=END).complete


@pytest.mark.parametrize("name", ["visits", "trials", "scans"])
def test_an_edited_total_is_refused_at_the_upgrade(old, name):
    ((state,),) = old.run("SELECT state FROM ledger_accounts WHERE name = ?", name)
    edited = json.loads(state) | {"epsilon": "0", "rho": "0"}
    old.run("UPDATE ledger_accounts SET state = ? WHERE name = ?", json.dumps(edited), name)
    with refused("ledger-tampered"):
        open_(old)
    with pytest.raises(TacitError, match="not the total of its entries"):
        open_(old)
    old.run("UPDATE ledger_accounts SET state = ? WHERE name = ?", state, name)  # nothing was upgraded
    with open_(old) as ledger:
        assert ledger.verify(witness=END).complete


def test_an_edited_answer_or_entry_is_refused_at_the_upgrade(old):
    ((payload,),) = old.run("SELECT payload FROM ledger_releases WHERE receipt = 7")
    old.run("UPDATE ledger_releases SET payload = ? WHERE receipt = 7", b"about 41")
    with refused("ledger-tampered"):
        open_(old)
    old.run("UPDATE ledger_releases SET payload = ? WHERE receipt = 7", bytes(payload))
    open_(old).close()


def test_a_client_of_the_old_version_cannot_write_any_more(tmp_path, postgres_url):
    old = OldServer(tmp_path, postgres_url)
    open_(old).close()
    import psycopg

    with pytest.raises(psycopg.errors.UndefinedFunction):
        old.run("SELECT ledger_append(?)", "empty")
