"""Files that are no ledger, or not one that can be written: a coded error, nothing changed, nothing lost."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

import pytest

from tacit.accounting import Budget, Cost
from tacit.errors import TacitError
from tacit.ledger import Blocks, Head, Ledger
from tacit.ledger.checks._witness import Witness, read_head
from tacit.ledger.stores._artifacts import ARTIFACT_BYTES


def refused(code):
    return pytest.raises(TacitError, match=f"code: {code}")


@pytest.fixture
def path(tmp_path):
    where = tmp_path / "a.ledger"
    with Ledger.open(where) as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
        for i in range(50):
            ledger.charge("visits", Cost.pure(0.01), key=f"k{i}", plan=f"p{i}")
    return where


@pytest.mark.parametrize("content", [b"hello, this is text\n" * 50, b"\x00" * 4096, b"PAR1" * 500, b"x"])
def test_a_file_of_something_else_is_refused_untouched(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with refused("not-a-ledger"):
        Ledger.open(path)
    assert path.read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_a_database_of_something_else_is_refused_untouched(tmp_path):
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (id)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with refused("not-a-ledger"):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_a_newer_ledger_is_refused(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with refused("ledger-newer"):
        Ledger.open(path)


def test_a_truncated_ledger_is_refused_at_every_page(path):
    whole = path.read_bytes()
    for size in [1, 50, 99, 100, 512, 4095, *range(4096, len(whole), 4096), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(TacitError) as caught, Ledger.open(path) as ledger:
            ledger.charge("visits", Cost.pure(0.01))
        assert caught.value.code in {"ledger-damaged", "not-a-ledger", "ledger-rolled-back", "ledger-sealed"}
        path.with_name(path.name + ".sealed").unlink(missing_ok=True)
    path.write_bytes(whole)
    with Ledger.open(path) as ledger:
        assert ledger.verify(witness=ledger.witness).complete


def test_a_folder_or_a_missing_folder_is_refused(tmp_path):
    with refused("ledger-unavailable"):
        Ledger.open(tmp_path)
    with refused("ledger-unavailable"):
        Ledger.open(tmp_path / "nowhere" / "a.ledger")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["", 7, None, "mysql://x/y", "a\0b"], ids=repr)
def test_what_is_no_place_is_refused(where):
    with refused("bad-parameter"):
        Ledger.open(where)


@pytest.mark.parametrize("wait", [True, -1, float("nan"), "5"], ids=repr)
def test_what_is_no_time_is_refused(tmp_path, wait):
    with refused("bad-parameter"):
        Ledger.open(tmp_path / "a.ledger", wait=wait)


def test_an_odd_file_name_is_just_a_name(tmp_path):
    for name in ("a?mode=memory.ledger", "ä #%41.ledger", "-x.ledger"):
        with Ledger.open(tmp_path / name) as ledger:
            ledger.create_account("visits", unit="u", budget=Budget(epsilon=1))
        assert (tmp_path / name).stat().st_size > 0


# files that change their place while they are open


def remove(path):
    path.unlink()


def remove_all(path):
    for file in path.parent.glob("a.ledger*"):
        file.unlink()


def rename_over(path):
    other = path.with_name("other")
    shutil.copy(path, other)
    other.replace(path)


def make_again(path):
    remove_all(path)
    with Ledger.open(path) as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))


def remove_folder(path):
    shutil.rmtree(path.parent)


def move_folder(path):
    path.parent.rename(path.parent.with_name("moved"))


def remove_log(path):
    path.with_name("a.ledger-wal").unlink()


@pytest.mark.parametrize(
    "act", [remove, remove_all, rename_over, make_again, remove_folder, move_folder, remove_log]
)
def test_a_process_whose_ledger_is_no_longer_there_gives_no_answer(tmp_path, act):
    (tmp_path / "folder").mkdir()
    path, computed = tmp_path / "folder" / "a.ledger", []
    with Ledger.open(path, key=bytes(32)) as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
        ledger.draw("visits", Cost.pure(0.5), plan="p", compute=lambda _: b"1")
        act(path)
        for plan in "qr":
            with refused("ledger-unavailable") as caught:
                ledger.draw("visits", Cost.pure(0.5), plan=plan, compute=computed.append)
            assert "was removed or replaced" in caught.value.what
        assert computed == []


def test_a_ledger_that_disappears_during_a_commit_gives_no_answer(path, monkeypatch):
    with Ledger.open(path) as ledger:
        store = ledger._writer.store
        begin = store.begin

        def begin_and_remove(*arguments):
            start = begin(*arguments)
            path.unlink()
            return start

        monkeypatch.setattr(store, "begin", begin_and_remove)
        with refused("ledger-unavailable"):
            ledger.draw("visits", Cost.pure(0.01), plan="p", compute=lambda _: pytest.fail("computed"))


def test_a_relative_path_keeps_its_meaning_when_the_folder_changes(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Ledger.open("a.ledger") as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
        monkeypatch.chdir(tmp_path / "elsewhere")
        ledger.charge("visits", Cost.pure(0.5))
        assert ledger.verify().ok


@pytest.mark.parametrize(
    "name",
    ["x" * 300 + ".ledger", "x" * 250, "\udcff.ledger", "no/\udcff"],
    ids=["long", "nearly", "bytes", "folder"],
)
def test_a_name_that_no_file_can_have_is_refused(tmp_path, name):
    for how in ({}, {"create": False}):
        with pytest.raises(TacitError) as caught:
            Ledger.open(tmp_path / name, **how)
        assert caught.value.code in {"ledger-unavailable", "bad-parameter", "ledger-key", "not-a-ledger"}
        str(caught.value).encode()


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "\udcff", 7], ids=["long", "nul", "bytes", "number"])
@pytest.mark.parametrize("argument", ["key", "witness"])
def test_a_key_or_witness_whose_name_no_file_can_have_is_refused(tmp_path, argument, name):
    given = tmp_path / name if isinstance(name, str) else name
    with pytest.raises(TacitError) as caught:
        Ledger.open(tmp_path / "a.ledger", **{argument: given})
    assert caught.value.code in {"ledger-unavailable", "bad-parameter", "ledger-key"}
    str(caught.value).encode()


READER = """
import json, os, sys
from tacit.accounting import Cost
from tacit.errors import TacitError
from tacit.ledger import Ledger

os.setgid(65534); os.setuid(65534)
seen = {}
try:
    with Ledger.open(sys.argv[1], key=bytes(32)) as ledger:
        seen["verify"] = str(ledger.verify(witness=ledger.witness))
        seen["entries"] = [len(ledger.history()), len(list(ledger.export())), len(ledger.filters("visits"))]
        seen["left"] = str(ledger.remaining("visits").epsilon)
        seen["answer"] = ledger.paid_release("visits", "p").payload.decode()
        if sys.stdin.readline():  # somebody has charged in the meantime
            seen["later"] = str(ledger.remaining("visits").epsilon)
        for change in (
            lambda: ledger.charge("visits", Cost.pure(0.01)),
            lambda: ledger.draw("visits", Cost.pure(0.01), plan="q", compute=lambda _: b"no"),
            lambda: ledger.unseal(statement="s", who="w"),
        ):
            try:
                change()
            except TacitError as error:
                seen.setdefault("refused", []).append([error.code, error.what])
except TacitError as error:
    seen["opening"] = error.code
print(json.dumps(seen))
"""
as_root = pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0, reason="needs root, to become somebody who may not write"
)


def read_as_nobody(path, text=""):
    for parent in path.parents:
        if parent.is_relative_to(tempfile.gettempdir()) and parent != Path(tempfile.gettempdir()):
            parent.chmod(parent.stat().st_mode | 0o555)
    command = [sys.executable, "-c", READER, path]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", input=text)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def snapshot(tmp_path):
    path = tmp_path / "snapshot" / "a.ledger"
    path.parent.mkdir()
    with Ledger.open(path, key=bytes(32)) as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
        ledger.draw("visits", Cost.pure(1), plan="p", compute=lambda _: b"about 40")
    path.parent.chmod(0o755)
    return path


@as_root
@pytest.mark.parametrize("what", ["file", "folder", "both"])
def test_a_ledger_that_nobody_may_write_is_read_and_verified_and_not_charged(snapshot, what):
    if what != "folder":
        snapshot.chmod(0o444)
    if what == "file":
        snapshot.parent.chmod(0o777)
    else:
        snapshot.chmod(0o666 if what == "folder" else 0o444)
    before = {file.name: file.read_bytes() for file in snapshot.parent.iterdir()}
    seen = read_as_nobody(snapshot)
    assert seen["verify"].startswith("consistent and complete up to entry 3")
    assert seen["entries"] == [3, 3, 2]
    assert (seen["left"], seen["answer"]) == ("2", "about 40")
    assert [code for code, _ in seen["refused"]] == ["ledger-read-only"] * 3
    assert "open for reading only" in seen["refused"][0][1]
    assert {file.name: file.read_bytes() for file in snapshot.parent.iterdir()} == before


@as_root
def test_a_reader_of_a_live_ledger_sees_what_its_owner_charges(snapshot):
    with Ledger.open(snapshot, key=bytes(32)) as ledger:
        ledger.charge("visits", Cost.pure(1))
        seen = read_as_nobody(snapshot)
        assert seen["left"] == "1"
        assert [code for code, _ in seen["refused"]] == ["ledger-read-only"] * 3
        ledger.charge("visits", Cost.pure(1))
        assert ledger.verify(witness=ledger.witness).complete


@as_root
def test_a_snapshot_whose_newest_entries_cannot_be_read_is_refused(snapshot, tmp_path):
    with Ledger.open(snapshot, key=bytes(32)) as ledger:
        ledger.charge("visits", Cost.pure(1))
        live = tmp_path / "live"
        shutil.copytree(snapshot.parent, live)
    (live / "a.ledger-shm").unlink()
    live.chmod(0o755)
    assert read_as_nobody(live / "a.ledger") == {"opening": "ledger-unavailable"}


@as_root
def test_a_snapshot_without_its_witness_or_of_an_old_schema_says_so(snapshot, tmp_path):
    snapshot.with_name("a.ledger.witness").unlink()
    seen = read_as_nobody(snapshot, "x")
    assert seen["refused"][0][0] == "ledger-rolled-back"
    assert "is missing or empty" in seen["refused"][0][1]
    folder = tmp_path / "first"
    shutil.copytree(Path(__file__).parents[2] / "data" / "ledger_schema_1", folder)
    folder.chmod(0o755)
    (folder / "visits.ledger").chmod(0o644)
    script = READER.replace("key=bytes(32)", "key=sys.argv[1] + '.key'")
    command = [sys.executable, "-c", script, folder / "visits.ledger"]
    for parent in folder.parents:
        if parent.is_relative_to(tempfile.gettempdir()) and parent != Path(tempfile.gettempdir()):
            parent.chmod(parent.stat().st_mode | 0o555)
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", input="")
    assert json.loads(done.stdout) == {"opening": "ledger-read-only"}, done.stderr


@as_root
def test_a_folder_without_rights_is_refused_in_words(snapshot):
    snapshot.parent.chmod(0o700)
    command = [sys.executable, "-c", READER, snapshot]
    for parent in snapshot.parent.parents:
        if parent.is_relative_to(tempfile.gettempdir()) and parent != Path(tempfile.gettempdir()):
            parent.chmod(parent.stat().st_mode | 0o555)
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", input="")
    assert json.loads(done.stdout) == {"opening": "ledger-unavailable"}, done.stderr


def test_a_role_that_may_only_read_a_server_verifies_and_does_not_charge(postgres_url, tmp_path):
    import psycopg

    with Ledger.open(postgres_url, key=tmp_path / "k") as owner:
        owner.create_account("visits", unit="row", budget=Budget(epsilon=9))
    role = f"r{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        (schema,) = connection.execute("SELECT current_schema()").fetchone()
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
    with Ledger.open(postgres_url.replace("postgres:@", f"{role}:@"), key=tmp_path / "k") as ledger:
        assert ledger.verify(witness=ledger.witness).complete
        assert len(ledger.history()) == 1
        with refused("ledger-read-only"):
            ledger.charge("visits", Cost.pure(1))


def test_a_lock_held_by_another_process_is_refused_after_the_wait(path):
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with Ledger.open(path, wait=0.2) as ledger:
        head = ledger.head
        with refused("ledger-locked"):
            ledger.charge("visits", Cost.pure(0.01))
        assert ledger.remaining("visits").epsilon > 0
        holder.execute("ROLLBACK")
        assert ledger.head == head
        ledger.charge("visits", Cost.pure(0.01))
    holder.close()


def test_closing_does_not_wait_for_a_lock(path):
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    start = time.monotonic()
    Ledger.open(path, wait=60).close()
    assert time.monotonic() - start < 30
    holder.close()


def test_a_lock_held_on_postgresql_is_refused_after_the_wait(postgres_url, tmp_path):
    import psycopg

    from tacit.ledger.stores._postgres import _TAKE_LOCK

    with Ledger.open(postgres_url, key=tmp_path / "k", wait=0.2) as ledger:
        ledger.create_account("visits", unit="u", budget=Budget(epsilon=3))
        with psycopg.connect(postgres_url) as holder:
            holder.execute(_TAKE_LOCK)
            with refused("ledger-locked"):
                ledger.charge("visits", Cost.pure(0.01))
        ledger.charge("visits", Cost.pure(0.01))
        assert ledger.verify().ok


def test_a_role_with_the_documented_rights_does_everything_but_create(postgres_url, tmp_path):
    """The GRANT lines of the how-to page allow charges, blocks, runs, artifacts and verification."""
    import psycopg

    page = Path(__file__).parents[3] / "docs" / "howto" / "ledger.md"
    grants = [line for line in page.read_text().splitlines() if line.startswith("GRANT ")]
    assert len(grants) == 3
    with Ledger.open(postgres_url, key=tmp_path / "k") as owner:
        owner.create_account("visits", unit="row", budget=Budget(epsilon=9))
        owner.create_account("days", unit="row", budget=Budget(epsilon=9), blocks=Blocks("day"))
    role = f"r{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        (schema,) = connection.execute("SELECT current_schema()").fetchone()
        connection.execute(f"CREATE ROLE {role} LOGIN")
        for line in grants:
            connection.execute(line.replace("SCHEMA budget", f"SCHEMA {schema}").replace("analysts", role))
    as_role = postgres_url.replace("postgres:@", f"{role}:@")
    assert as_role != postgres_url
    with Ledger.open(as_role, key=tmp_path / "k") as ledger:
        ledger.charge("visits", Cost.pure(1))
        ledger.charge("days", Cost.pure(1), blocks=["monday"])
        ledger.charge("days", Cost.pure(1), blocks=["monday"])
        run = ledger.run("visits", Cost.pure(1), plan="daily", instalments=2)
        run.draw(lambda number, secret: (f"day {number}".encode(), secret + b"x"))
        run.draw(lambda number, secret: (f"day {number}".encode(), secret + b"x"))
        long = bytes(ARTIFACT_BYTES + 1)
        drawn = ledger.draw("visits", Cost.pure(1), plan="long", compute=lambda _: long)
        assert drawn.payload == long
        assert ledger.verify().ok


def test_postgresql_without_fsync_is_refused(postgres_url, tmp_path, monkeypatch):
    from tacit.ledger.stores._postgres import PostgresStore

    class Lazy(PostgresStore):
        def _require_durability(self, connection):
            class Pretend:
                def execute(self, sql):
                    return connection.execute("SELECT 'off'" if sql == "SHOW fsync" else sql)

            super()._require_durability(Pretend())

    with refused("not-durable"):
        Lazy(postgres_url, wait=1)


def test_postgresql_commits_synchronously_whatever_the_default_is(postgres_url, tmp_path):
    lazy = postgres_url.replace("-csearch_path", "-csynchronous_commit%3Doff%20-csearch_path")
    with Ledger.open(lazy, key=tmp_path / "k") as ledger:
        setting = ledger._writer.store._connection().execute("SHOW synchronous_commit").fetchone()
    assert setting == ("on",)


def test_a_server_that_is_not_there_is_refused():
    for url in ("postgresql://nobody@127.0.0.1:1/none", "postgresql://%zz"):
        with refused("ledger-unavailable"):
            Ledger.open(url, key=bytes(32))


def test_a_password_is_never_shown():
    with pytest.raises(TacitError) as caught:
        Ledger.open("postgresql://u:hunter2@127.0.0.1:1/none", key=bytes(32))
    assert "hunter2" not in str(caught.value)


def test_a_server_needs_a_key(postgres_url, monkeypatch, tmp_path):
    monkeypatch.delenv("TACIT_LEDGER_KEY_FILE", raising=False)
    with refused("ledger-key"):
        Ledger.open(postgres_url)
    monkeypatch.setenv("TACIT_LEDGER_KEY_FILE", str(tmp_path / "shared.key"))
    with Ledger.open(postgres_url) as ledger:
        assert ledger.witness == tmp_path / "shared.key.witness"


def test_a_lost_connection_is_an_error_and_then_mended(postgres_url, tmp_path):
    with Ledger.open(postgres_url, key=tmp_path / "k") as ledger:
        ledger.create_account("visits", unit="u", budget=Budget(epsilon=1))
        store = ledger._writer.store
        with store._connect() as other:
            other.execute("SELECT pg_terminate_backend(%s)", (store._connection().info.backend_pid,))
        with refused("ledger-unavailable"):
            ledger.charge("visits", Cost.pure(0.5), key="k")
        ledger.charge("visits", Cost.pure(0.5), key="k")
        assert ledger.account("visits").spent.epsilon * 2 == 1


# the key


def test_the_key_is_made_once_for_its_owner_only(tmp_path):
    with Ledger.open(tmp_path / "a.ledger"):
        pass
    key = tmp_path / "a.ledger.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(bytes.fromhex(key.read_text())) == 32
    assert key.read_text().strip().encode() not in (tmp_path / "a.ledger").read_bytes()
    with Ledger.open(tmp_path / "b.ledger"):
        pass
    assert (tmp_path / "b.ledger.key").read_text() != key.read_text()


@pytest.mark.parametrize("content", ["", "zz", "00", "not hex at all"])
def test_a_damaged_key_is_refused(path, content):
    path.with_name("a.ledger.key").write_text(content)
    with refused("ledger-key"):
        Ledger.open(path)


def test_a_key_too_short_is_refused(tmp_path):
    with refused("bad-parameter"):
        Ledger.open(tmp_path / "a.ledger", key=b"short")


@pytest.mark.parametrize("turn", range(20))  # a start between two looks at the files is rare
def test_threads_that_make_a_ledger_at_once_agree_on_it(tmp_path, turn):
    del turn
    ledgers, errors = [], []

    def make():
        try:
            ledgers.append(Ledger.open(tmp_path / "a.ledger"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len({ledger.id for ledger in ledgers}) == 1
    for ledger in ledgers:
        ledger.create_account("visits", unit="u", budget=Budget(epsilon=1))
    for ledger in ledgers:
        ledger.close()


# the witness


def contains(head):
    """Stand for a store that contains every head."""
    return True


def test_the_witness_never_goes_back(tmp_path):
    witness = Witness(tmp_path / "w", "a" * 32)
    late = Witness(tmp_path / "w", "a" * 32)
    witness.note(Head(5, "5" * 64), contains)
    late.note(Head(4, "4" * 64), contains)
    assert witness.head() == Head(5, "5" * 64)
    late.note(Head(6, "6" * 64), contains)
    assert read_head(tmp_path / "w", "a" * 32) == Head(6, "6" * 64)
    witness.close()
    late.close()


def test_a_torn_write_loses_one_line_of_the_witness_not_both(tmp_path):
    witness = Witness(tmp_path / "w", "a" * 32)
    for count in range(1, 8):
        witness.note(Head(count, f"{count}" * 64), contains)
    witness.close()
    whole = (tmp_path / "w").read_bytes()
    half = len(whole) // 2
    for torn in (b"\0" * half + whole[half:], whole[:half] + b"x" * half, whole[:half], whole[: half + 9]):
        (tmp_path / "w").write_bytes(torn)
        assert read_head(tmp_path / "w", "a" * 32).count in {6, 7}


def test_a_witness_that_lags_is_accepted(path):
    with Ledger.open(path) as ledger:
        lagging = ledger.witness.read_bytes()
        ledger.charge("visits", Cost.pure(0.01))
    path.with_name("a.ledger.witness").write_bytes(lagging)
    with Ledger.open(path) as ledger:
        report = ledger.verify(witness=ledger.witness)
        assert report.complete
        assert report.witnessed == report.entries - 1


@pytest.fixture
def moved(path, tmp_path):
    """Copy one file of a ledger after another to a new place, where it is opened."""

    def move(*ends):
        place = tmp_path / "elsewhere"
        place.mkdir(exist_ok=True)
        for end in ends:
            shutil.copy(path.with_name(path.name + end), place / (path.name + end))
        return place / path.name

    return move


@pytest.mark.parametrize("how", ["unlink", "empty", "torn"])
def test_a_ledger_whose_witness_was_removed_takes_no_charges(path, how):
    witness = path.with_name("a.ledger.witness")
    whole = witness.read_bytes()
    witness.unlink()
    if how != "unlink":
        witness.write_bytes(b"" if how == "empty" else b"x" * len(whole))
    for _ in range(2):
        with Ledger.open(path) as ledger:
            for act in (
                lambda: ledger.charge("visits", Cost.pure(0.01)),
                lambda: ledger.create_account("other", unit="u", budget=Budget(epsilon=3)),
            ):
                with refused("ledger-rolled-back") as caught:
                    act()
            assert "a.ledger.witness" in caught.value.what
            assert ledger.remaining("visits").epsilon > 0
    witness.write_bytes(whole)
    with Ledger.open(path) as ledger:
        ledger.charge("visits", Cost.pure(0.01))


def test_a_new_witness_is_started_only_where_it_is_named(path):
    path.with_name("a.ledger.witness").unlink()
    with Ledger.open(path, witness=path.with_name("a.ledger.witness")) as ledger:
        ledger.charge("visits", Cost.pure(0.01))
    with Ledger.open(path) as ledger:
        ledger.charge("visits", Cost.pure(0.01))


def test_a_copy_whose_witness_is_lost_goes_on_with_nothing_left(moved):
    """Nobody knows how many entries are missing, so the record says so."""
    with Ledger.open(moved("", ".key")) as ledger:
        ledger.continue_from_backup(statement="only this copy is left", who="curator")
        assert ledger.remaining("visits").epsilon == 0
        assert next(entry for entry in ledger.history() if entry.kind == "gap").body["seen"] is None
    with Ledger.open(moved()) as ledger:
        assert ledger.verify().ok
        ledger.grow("visits", Budget(epsilon=9), statement="more", who="curator")


def test_a_crash_before_the_witness_is_replaced_leaves_the_ledger_refused(path, tmp_path, monkeypatch):
    shutil.copy(path, tmp_path / "backup")
    with Ledger.open(path) as ledger:
        for _ in range(30):
            ledger.charge("visits", Cost.pure(0.01))
    shutil.copy(tmp_path / "backup", path)
    act = {"statement": "disk broke", "who": "curator"}
    with monkeypatch.context() as broken, Ledger.open(path) as ledger:
        broken.setattr(Witness, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with refused("ledger-unavailable"):
            ledger.continue_from_backup(**act)
        with refused("ledger-rolled-back"):
            ledger.charge("visits", Cost.pure(0.01))
    for _ in range(2):
        with Ledger.open(path) as ledger, refused("ledger-rolled-back"):
            ledger.charge("visits", Cost.pure(0.01))
    with Ledger.open(path) as ledger:
        ledger.continue_from_backup(**act)
        assert ledger.remaining("visits").epsilon == 0
    with Ledger.open(path) as ledger:
        assert ledger.verify().ok


def test_a_copy_without_its_witness_takes_no_charges(moved):
    with Ledger.open(moved("", ".key")) as ledger, refused("ledger-rolled-back"):
        ledger.charge("visits", Cost.pure(0.01))
    with refused("ledger-key"):
        moved("", ".key").with_name("a.ledger.key").unlink()
        Ledger.open(moved(""))
    with Ledger.open(moved("", ".key", ".witness")) as ledger:
        ledger.charge("visits", Cost.pure(0.01))


@pytest.mark.parametrize("old", [True, False], ids=["old", "new"])
def test_a_copy_of_a_live_ledger_without_its_log_takes_no_charges(path, moved, tmp_path, old):
    live = path if old else tmp_path / "fresh" / path.name
    live.parent.mkdir(exist_ok=True)
    with Ledger.open(live) as ledger:
        if not old:
            ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
        ledger.charge("visits", Cost.pure(0.5))
        for ends in (("", ".key"), ("", ".key", ".witness")):
            place = tmp_path / f"copy{len(ends)}"
            place.mkdir()
            for end in ends:
                shutil.copy(f"{live}{end}", place)
            with Ledger.open(place / live.name) as copy, refused("ledger-rolled-back"):
                copy.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
        ledger.charge("visits", Cost.pure(0.5))


def test_a_ledger_whose_witness_is_always_named_may_be_opened_without(tmp_path):
    with Ledger.open(tmp_path / "a.ledger", witness=tmp_path / "other.witness") as ledger:
        ledger.create_account("visits", unit="u", budget=Budget(epsilon=3))
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.charge("visits", Cost.pure(0.01))
    (tmp_path / "a.ledger.witness").unlink()
    with Ledger.open(tmp_path / "a.ledger") as ledger, refused("ledger-rolled-back"):
        ledger.charge("visits", Cost.pure(0.01))
    with Ledger.open(tmp_path / "a.ledger", witness=tmp_path / "other.witness") as ledger:
        ledger.charge("visits", Cost.pure(0.01))


def test_a_file_of_an_older_version_without_a_witness_gets_one(path):
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM ledger_meta WHERE name = 'witness'")
    connection.commit()
    connection.close()
    path.with_name("a.ledger.witness").unlink()
    with Ledger.open(path) as ledger:
        assert read_head(ledger.witness, ledger.id) == ledger.head
        ledger.charge("visits", Cost.pure(0.01))
    path.with_name("a.ledger.witness").unlink()
    with Ledger.open(path) as ledger, refused("ledger-rolled-back"):
        ledger.charge("visits", Cost.pure(0.01))


# forks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_charges_on_its_own_connection(path):
    with Ledger.open(path) as ledger:
        children = []
        for me in range(4):
            child = os.fork()
            if child == 0:
                try:
                    for i in range(10):
                        ledger.charge("visits", Cost.pure(0.01), key=f"child{me}-{i}")
                    ledger.close()
                    os._exit(0)
                finally:
                    os._exit(1)
            children.append(child)
        ledger.charge("visits", Cost.pure(0.01))
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
        assert ledger.account("visits").spent.epsilon * 100 == 50 + 41
        assert ledger.verify(witness=ledger.witness).complete


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_ledger_in_memory_is_not_doubled_by_a_fork():
    with Ledger.memory() as ledger:
        ledger.create_account("visits", unit="u", budget=Budget(epsilon=1))
        child = os.fork()
        if child == 0:
            try:
                ledger.charge("visits", Cost.pure(1))
            except TacitError as error:
                os._exit(7 if error.code == "ledger-unavailable" else 1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        ledger.charge("visits", Cost.pure(1))
