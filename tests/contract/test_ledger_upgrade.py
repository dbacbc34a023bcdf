"""A ledger of an earlier schema is upgraded, in a file and on a server, with the same totals."""

import json
import shutil
import sqlite3
import uuid
from fractions import Fraction
from pathlib import Path

import pytest

from support.ledger_sites import refused
from tacit.accounting import Budget, Cost, Filter
from tacit.errors import TacitError
from tacit.ledger import Head, Ledger
from tacit.ledger.stores import _postgres, _sqlite

KEPT = Path(__file__).parents[1] / "data" / "ledger_schema_1"
SECOND = KEPT.with_name("ledger_schema_2")
THIRD = KEPT.with_name("ledger_schema_3")
END_OF_THIRD = Head(21, "8d16baaff25b37c8e8cea754fa9a809d6ef9be8fddfc84c2ce97a4d020af3a67")
END_OF_SECOND = Head(17, "91f437cecf2146210e4caaa24b8faed067a382d014bc2a5821c0c387c3f2bb16")
END = Head(21, "603d7eb52df2c394e48a257f858812e7b4de9a48925ccb9d5e318dfddec4f312")


class OldFile:
    """A copy of the kept file."""

    def __init__(self, folder, kept=KEPT):
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        self.where = folder / "visits.ledger"
        self.how = {"create": False}

    def run(self, sql, *values):
        with sqlite3.connect(self.where) as connection:
            found = connection.execute(sql, values).fetchall()
        connection.close()
        return found


class OldServer:
    """A server with the schema of an earlier version and the rows of the kept file."""

    def __init__(self, folder, url, kept=KEPT):
        import psycopg

        old = OldFile(folder, kept)
        self.where, self.psycopg = url, psycopg
        self.how = {"key": folder / "visits.ledger.key", "create": False}
        with psycopg.connect(url) as connection:
            connection.execute((kept / "postgres.sql").read_text("utf-8"))
            for (table,) in old.run("SELECT name FROM sqlite_schema WHERE type = 'table'"):
                for row in old.run(f"SELECT * FROM {table}"):
                    row = row[:7] if table == "ledger_accounts" else row  # the file also has the schema
                    connection.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)
            connection.execute("INSERT INTO ledger_meta VALUES ('version', %s)", (kept.name[-1],))

    def run(self, sql, *values):
        with self.psycopg.connect(self.where, autocommit=True) as connection:
            cursor = connection.execute(sql.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(params=["sqlite", "postgres"])
def old(request, tmp_path):
    if request.param == "sqlite":
        return OldFile(tmp_path)
    return OldServer(tmp_path, request.getfixturevalue("postgres_url"))


@pytest.fixture(params=["sqlite", "postgres"])
def second(request, tmp_path):
    if request.param == "sqlite":
        return OldFile(tmp_path, SECOND)
    return OldServer(tmp_path, request.getfixturevalue("postgres_url"), SECOND)


@pytest.fixture(params=["sqlite", "postgres"])
def third(request, tmp_path):
    if request.param == "sqlite":
        return OldFile(tmp_path, THIRD)
    return OldServer(tmp_path, request.getfixturevalue("postgres_url"), THIRD)


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


# from schema 2


def test_a_ledger_of_schema_2_opens_with_its_totals_and_its_frozen_account(second):
    for _ in range(2):
        with open_(second) as ledger:
            assert ledger.verify(witness=END_OF_SECOND).complete
            assert ledger.account("visits").spent.epsilon == Fraction(13, 12)
            assert ledger.account("trials").frozen
            assert ledger.stored_release("ana", "p1").payload == b"about 40"
            with refused("account-frozen"):
                ledger.charge("trials", Cost.pure(0.1))
    with open_(second) as ledger:
        run = ledger.run("visits", Cost.pure(0.5), plan="daily", instalments=3)
        assert run.draw(lambda number, secret: (f"{number} {len(secret)}".encode(), b"")).payload == b"3 2"
        ledger.unfreeze("trials", statement="all is well", who="curator")
        ledger.charge("trials", Cost.pure(0.1))
        assert ledger.verify(witness=END_OF_SECOND).complete


def test_an_older_program_refuses_an_upgraded_ledger_in_words(second, monkeypatch):
    open_(second).close()
    for store in (_sqlite, _postgres):
        monkeypatch.setattr(store, "VERSION", 2)
    with refused("ledger-newer") as caught:
        open_(second)
    assert "has schema 4; this version of Tacit reads schemas up to 2" in caught.value.what


def test_a_program_of_schema_2_that_still_runs_cannot_write_any_more(second):
    """These are the statements with which the builds of schema 2 write the row of a frozen account."""
    if isinstance(second, OldFile):
        put = "INSERT INTO ledger_accounts VALUES (?, ?, ?, ?, ?, ?, ?)"
        row = second.run("SELECT * FROM ledger_accounts WHERE name = 'trials'")[0]
        second.run("DELETE FROM ledger_accounts WHERE name = 'ana'")
        second.run(put, 2, "ana", *row[2:])  # before the upgrade it is accepted
        second = OldFile(second.where.parent, SECOND)
        running = sqlite3.connect(second.where)
        running.execute("SELECT count(*) FROM ledger_accounts").fetchall()
        open_(second).close()
        with pytest.raises(sqlite3.OperationalError, match="8 columns but 7 values"):
            running.execute(put + " ON CONFLICT (id) DO UPDATE SET state = excluded.state", row)
        running.close()
    else:
        open_(second).close()
        with pytest.raises(second.psycopg.errors.UndefinedFunction):
            second.run("SELECT ledger_append_2(?)", "empty")


def test_a_program_that_still_runs_after_a_later_upgrade_refuses_to_write(tmp_path, monkeypatch):
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
        head = ledger.head
        with sqlite3.connect(tmp_path / "a.ledger") as later:
            later.execute("PRAGMA user_version = 5")
        later.close()
        with refused("ledger-newer"):
            ledger.charge("visits", Cost.pure(0.1))
        assert ledger.head == head


def test_a_role_that_may_not_upgrade_a_server_is_told_who_may(tmp_path, postgres_url):
    import psycopg

    old = OldServer(tmp_path, postgres_url, SECOND)
    role = f"r{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        (schema,) = connection.execute("SELECT current_schema()").fetchone()
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        connection.execute(f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {schema} TO {role}")
    with refused("ledger-read-only") as caught:
        Ledger.open(postgres_url.replace("postgres:@", f"{role}:@"), **old.how)
    assert "must be brought up to schema 4 first" in caught.value.what
    open_(old).close()


# from schema 3

NOISE = Cost.gaussian(sigma=9, sensitivity=1)
PROMISE = Budget(epsilon=0.5, delta=1e-7)
#: What was left by the rule of version 2, and how many more charges of this noise.
LEFT_IN_THIRD = {
    "visits": (0.191459, 1), "ana": (0.187141, 0), "scans": (None, 15), "pure": (2.5, 0),
    "days": (0.261054, 1), "alone": (0, 0), "old": (2.42633, 25),
}  # fmt: skip


def test_accounts_of_schema_3_keep_their_rule_and_what_is_left(third):
    for _ in range(2):
        with open_(third) as ledger:
            assert ledger.verify(witness=END_OF_THIRD).complete
            for name, (epsilon, more) in LEFT_IN_THIRD.items():
                state = ledger.account(name).filter
                assert (state.version, state.promised) == (1 if name in {"scans", "pure"} else 2, None)
                assert state.how_many(NOISE) == state.how_many(NOISE, PROMISE) == more
                if epsilon is not None:
                    assert float(state.remaining.epsilon) == pytest.approx(epsilon, abs=1e-5)


def test_accounts_of_schema_3_charge_by_their_rule_also_with_a_promise(third):
    with open_(third) as ledger:
        before = ledger.account("old").filter
        ledger.charge("old", NOISE, promise=PROMISE)
        assert ledger.account("old").filter == before.after(before.spend_of(NOISE))
        assert ledger.history("old")[-1].spend.promise == PROMISE
        with refused("budget-exceeded"):
            ledger.charge("ana", NOISE, promise=PROMISE)
        ledger.charge("days", NOISE, blocks=["sunday"], promise=PROMISE)
        ledger.grow("old", Budget(epsilon=4, delta=1e-6), statement="more", who="curator")
        ledger.refresh("visits", statement="other people", who="curator")
        assert ledger.account("visits").filter == Filter.start(Budget(1, 1e-6), version=2)
        ledger.charge("visits", NOISE, promise=PROMISE)
        assert ledger.account("visits").filter.promised is None
        run = ledger.run("visits", NOISE, plan="second", instalments=2, promise=PROMISE)
        assert run.next == 1
        new = ledger.create_account("new", unit="person", budget=Budget(1, 1e-6))
        assert new.filter.version == 3
        assert ledger.verify(witness=END_OF_THIRD).complete


def test_a_program_of_schema_3_refuses_the_upgraded_ledger_and_cannot_write(third, monkeypatch):
    open_(third).close()
    if isinstance(third, OldServer):
        with pytest.raises(third.psycopg.errors.UndefinedFunction):
            third.run("SELECT ledger_append_3(?)", "empty")
    for store in (_sqlite, _postgres):
        monkeypatch.setattr(store, "VERSION", 3)
    with refused("ledger-newer") as caught:
        open_(third)
    assert "has schema 4; this version of Tacit reads schemas up to 3" in caught.value.what
