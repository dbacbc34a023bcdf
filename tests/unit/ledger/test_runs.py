"""Runs that somebody edits are found out; faults inside an instalment lose it and nothing else."""

import os
import sqlite3
import subprocess
import sys
from functools import partial

import pytest

from tacit.accounting import Budget, Cost
from tacit.errors import TacitError
from tacit.ledger import Ledger
from tacit.ledger.checks._chain import START, Chain, canonical
from tacit.ledger.checks._verification import verify
from tacit.ledger.draws._runs import hide_secret, reveal_secret
from tacit.ledger.stores._artifacts import ARTIFACT_BYTES
from tacit.ledger.stores._memory import MemoryStore
from tacit.ledger.stores._store import EntryRow, ReleaseRow, RunRow, StoreChanges

HALF = Cost.pure(0.5)
KEY = bytes(range(32))


def refused(code):
    return pytest.raises(TacitError, match=f"code: {code}")


def day(number, secret):
    return f"day {number}".encode(), secret + bytes([number])


def started(ledger, instalments=4):
    ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
    return ledger.run("visits", HALF, plan="daily", instalments=instalments)


class Copy:
    """The rows of a ledger with a run, to be changed at will, and what `verify` says of the result."""

    def __init__(self, folder):
        with Ledger.open(folder / "a.ledger", key=KEY) as ledger:
            run = started(ledger)
            run.draw(day)
            with refused("release-failed"):
                run.draw(lambda number, secret: 1 / 0)
            run.draw(lambda number, secret: (bytes(ARTIFACT_BYTES + 1), b"\1\3"))
            with ledger._writer.store.snapshot() as reader:
                self.rows = list(reader.entries())
                self.accounts = reader.accounts()
                self.releases = list(reader.releases())
                self.runs = [reader.run_secret(2)]

    def verify(self, rows=None, releases=None, runs=None, artifact=bytes(ARTIFACT_BYTES + 1)):
        store = MemoryStore()
        store._apply(
            StoreChanges(
                self.rows if rows is None else rows,
                self.accounts,
                self.releases if releases is None else releases,
                (),
                self.runs if runs is None else runs,
            )
        )
        return verify(store, Chain(KEY), (), proves=False, artifact=lambda _: artifact)


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path)


def flips(value):
    if isinstance(value, int):
        yield from (value ^ (1 << bit) for bit in range(40))
    elif isinstance(value, bytes):
        yield from (value[:i] + bytes([value[i] ^ 1]) + value[i + 1 :] for i in range(len(value)))
        yield value + b"x"
    else:
        yield from (value[:i] + chr(ord(value[i]) ^ 1) + value[i + 1 :] for i in range(len(value)))
        yield value + "x"


def test_the_untouched_run_verifies(copy):
    assert copy.verify().ok, copy.verify()
    assert [row.kind for row in copy.rows] == ["open", "run", "claim", "release", "claim", "claim", "release"]


def test_each_flipped_byte_of_an_instalment_is_named(copy):
    tried = 0
    for at, row in enumerate(copy.releases):
        for column, value in enumerate(row):
            for flipped in flips(value):
                forged = ReleaseRow(*row[:column], flipped, *row[column + 1 :])
                report = copy.verify(releases=[*copy.releases[:at], forged, *copy.releases[at + 1 :]])
                assert "instalment" in str(report), (row._fields[column], flipped)
                tried += 1
    assert tried > 300
    assert "instalment 1 of run 2 is missing" in str(copy.verify(releases=copy.releases[1:]))


def test_each_flipped_byte_of_a_secret_is_named(copy):
    [row] = copy.runs
    for flipped in flips(row.secret):
        assert "the secret of run 2" in str(copy.verify(runs=[RunRow(2, flipped)]))
    assert "the secret of run 2" in str(copy.verify(runs=[]))


def test_a_flipped_byte_of_an_artifact_is_named(copy):
    good = bytes(ARTIFACT_BYTES + 1)
    for at in (0, 1000, ARTIFACT_BYTES):
        bad = good[:at] + b"\1" + good[at + 1 :]
        assert "of instalment 3 of run 2 is damaged" in str(copy.verify(artifact=bad))
    assert "of instalment 3 of run 2 is lost" in str(copy.verify(artifact=None))


def rechained(rows, changes):
    """Return the log with other bodies, as somebody with the key could write it."""
    chain, before, made = Chain(KEY), START, []
    for seq, row in enumerate(rows, 1):
        body = changes.get(row.seq, row.body)
        row = EntryRow(seq, *row[1:7], body, b"")
        before = chain.link(before, *row[:-1])
        made.append(row._replace(mac=before))
    return made


@pytest.mark.parametrize(
    ("seq", "body", "problem"),
    [
        (3, {"receipt": 2, "part": 2, "after": 0}, "entry 3 claims instalment 2 out of turn"),
        (5, {"receipt": 2, "part": 1, "after": 1}, "entry 5 claims instalment 1 out of turn"),
        (5, {"receipt": 2, "part": 2, "after": 0}, "entry 5 claims instalment 2 out of turn"),
        (6, {"receipt": 2, "part": 5, "after": 1}, "entry 6 is an instalment that nobody has paid for"),
        (6, {"receipt": 2, "part": 0, "after": 1}, "entry 6 is an instalment that nobody has paid for"),
        (6, {"receipt": 1, "part": 3, "after": 1}, "entry 6 is an instalment that nobody has paid for"),
    ],
)
def test_claims_out_of_turn_or_beyond_what_was_paid_are_named(copy, seq, body, problem):
    rows = rechained(copy.rows, {seq: canonical({**body, "at": "2026-01-01T00:00:00.000+00:00"})})
    assert problem in str(copy.verify(rows=rows))


def test_an_instalment_that_was_stored_without_its_claim_is_named(copy):
    without = [row for row in copy.rows if row.seq != 6]
    assert "stores instalment 3, which was not claimed for it" in str(
        copy.verify(rows=rechained(without, {}))
    )
    twice = [*copy.rows, copy.rows[-1]]
    assert "stores instalment 3, which was not claimed for it" in str(copy.verify(rows=rechained(twice, {})))
    late = [copy.rows[i] for i in (0, 1, 2, 4, 3, 5, 6)]  # the first is stored after the second was claimed
    assert "stores instalment 1, which was not claimed for it" in str(copy.verify(rows=rechained(late, {})))


# secrets


def test_a_secret_belongs_to_one_place_and_one_key():
    chain = Chain(KEY)
    run = EntryRow(2, "run", 1, "1", "1;0;-", "p", "", "{}", b"\1" * 32)
    for secret in (b"", b"\0" * 100, os.urandom(1000)):
        row = hide_secret(chain, run, 3, "ab" * 32, secret)
        assert reveal_secret(chain, run, 3, "ab" * 32, row) == secret
        assert len(row.secret) == len(secret) + 64
        assert hide_secret(chain, run, 3, "ab" * 32, secret) != row  # a fresh nonce
        for other in (
            partial(reveal_secret, Chain(b"\7" * 32), run, 3, "ab" * 32),
            partial(reveal_secret, chain, run._replace(mac=b"\2" * 32), 3, "ab" * 32),
            partial(reveal_secret, chain, run, 4, "ab" * 32),
            partial(reveal_secret, chain, run, 3, "ac" * 32),
        ):
            assert other(row) is None


def test_hidden_secrets_look_random():
    chain = Chain(KEY)
    run = EntryRow(2, "run", 1, "1", "1;0;-", "p", "", "{}", b"\1" * 32)
    hidden = b"".join(hide_secret(chain, run, part, "ab" * 32, bytes(2**14)).secret for part in range(8))
    counts = [hidden.count(bytes([value])) for value in range(256)]
    mean = len(hidden) / 256
    assert sum((seen - mean) ** 2 / mean for seen in counts) < 400  # chi-square, 255 degrees: p < 1e-8


# faults


def test_a_disk_that_takes_no_artifact_loses_the_instalment(tmp_path, monkeypatch):
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        run = started(ledger)
        (tmp_path / "a.ledger.artifacts").write_bytes(b"a file where the folder should be")
        with refused("release-failed"):
            run.draw(lambda number, secret: (bytes(ARTIFACT_BYTES + 1), b""))
        with refused("release-failed"):
            ledger.draw("visits", HALF, plan="p", compute=lambda _: bytes(ARTIFACT_BYTES + 1))
        assert run.draw(day).number == 2
        assert ledger.verify().ok


def test_a_commit_that_fails_loses_the_instalment(tmp_path):
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        run = started(ledger)
        store = ledger._writer.store
        commit = store.commit

        def full(start, keys, changes):
            if changes.runs:
                store._fail(full_disk())
            return commit(start, keys, changes)

        store.commit = full
        with refused("release-failed"):
            run.draw(day)
        store.commit = commit
        assert run.draw(lambda number, secret: (secret, b"")).payload == b""
        assert [one.number for one in run] == [2]
        assert ledger.verify().ok


def full_disk():
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    error.sqlite_errorname = "SQLITE_FULL"
    return error


def test_an_interrupt_passes_and_loses_the_instalment(tmp_path):
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        run = started(ledger)

        def interrupted(number, secret):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run.draw(interrupted)
        assert run.draw(day).number == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_takes_its_turn(tmp_path):
    with Ledger.open(tmp_path / "a.ledger", wait=30) as ledger:
        run = started(ledger)
        ready, tell = os.pipe()

        def while_a_child_waits(number, secret):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    code = 0 if run.draw(day).number == 2 else 2
                finally:
                    os.write(tell, b"x")
                    os._exit(code)
            children.append(child)
            return b"parent", b"parent's"

        children = []
        run.draw(while_a_child_waits)
        os.read(ready, 1)
        _, status = os.waitpid(children[0], 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert [one.payload for one in run] == [b"parent", b"day 2"]
        assert ledger.verify().ok


def test_a_run_without_a_lock_file_still_draws(tmp_path):
    (tmp_path / "a.ledger.runs").mkdir()
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        assert started(ledger).draw(day).number == 1


HOLDER = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.lockf(file, fcntl.LOCK_EX, 1, 2)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs the locks of POSIX")
def test_an_instalment_waits_for_the_process_that_draws_one_and_no_longer_than_it_lives(tmp_path):
    with Ledger.open(tmp_path / "a.ledger", wait=0.05) as ledger:
        run = started(ledger)
        words = [sys.executable, "-c", HOLDER, str(tmp_path / "a.ledger.runs")]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout.readline() == b"held\n"
            before = ledger.head
            with refused("ledger-locked"):
                run.draw(day)
            assert ledger.head == before
            holder.kill()
        assert run.draw(day).number == 1


@pytest.mark.parametrize("number", [0, -1, 4, True, 1.0, "1", slice(1, 3)])
def test_a_wrong_number_of_an_instalment_is_answered_with_the_right_ones(number):
    with Ledger.memory() as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
        run = ledger.run("visits", Cost.pure(0.5), plan="daily", instalments=3)
        with pytest.raises(TacitError, match="number must be a whole number from 1 to 3"):
            run.instalment(number)
