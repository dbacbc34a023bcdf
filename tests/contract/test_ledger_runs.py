"""What every ledger promises about runs and artifacts, on every store."""

import hashlib
import json
import os
import sqlite3
import threading
import time
import traceback
from contextlib import nullcontext
from fractions import Fraction

import psycopg
import pytest

from support.ledger_sites import lineage, refused, spent, visits
from tacit.accounting import Budget, Cost
from tacit.errors import TacitError
from tacit.ledger import Ledger
from tacit.ledger.draws._draws import claim_key
from tacit.ledger.draws._runs import instalment_key, run_progress
from tacit.ledger.stores._artifacts import ARTIFACT_BYTES

HALF = Cost.pure(0.5)
LONG = bytes(range(256)) * (ARTIFACT_BYTES // 256) + b"x"


@pytest.fixture
def ledger(everywhere):
    return everywhere.open()


def start(ledger, instalments=3, account="visits", **more):
    return ledger.run(account, HALF, plan="daily", instalments=instalments, **more)


def day(number, secret):
    return f"day {number}".encode(), secret + bytes([number])


def fail(number, secret):
    raise ZeroDivisionError(f"row 7 is ann, {secret!r}")


def payloads(run):
    return [one.payload.decode() for one in run]


def kinds(ledger):
    return [entry.kind for entry in ledger.history()]


# runs


def test_one_charge_pays_for_a_year_of_instalments(ledger):
    visits(ledger)
    run = start(ledger, 365)
    for number in range(1, 366):
        assert run.next == number
        assert run.draw(lambda n, s: ({"day": n}, s)).number == number
    assert spent(ledger, "visits") == Fraction(1, 2)
    assert [json.loads(one.payload)["day"] for one in run] == list(range(1, 366))
    assert run.next is None
    with refused("run-finished"):
        run.draw(day)
    assert ledger.verify().ok
    assert len(ledger.history("visits")) == 2 + 2 * 365


def test_an_instalment_gets_the_secret_that_the_last_one_left(ledger):
    visits(ledger)
    run, seen = start(ledger), []

    def remember(number, secret):
        seen.append(secret)
        return day(number, secret)

    for _ in range(3):
        run.draw(remember)
    assert seen == [b"", b"\1", b"\1\2"]


def test_the_same_plan_again_goes_on_with_the_run(ledger):
    visits(ledger)
    start(ledger).draw(day)
    again = start(ledger)
    assert (again.next, payloads(again)) == (2, ["day 1"])
    assert again.draw(lambda number, secret: (secret, b"")).payload == b"\1"
    assert spent(ledger, "visits") == Fraction(1, 2)
    assert kinds(ledger) == ["open", "run", "claim", "release", "claim", "release"]


def test_a_run_goes_on_after_the_ledger_was_opened_again(durable):
    first = durable.open()
    visits(first)
    start(first).draw(day)
    first.close()
    run = start(durable.open())
    assert payloads(run) == ["day 1"]
    assert run.draw(lambda number, secret: (secret, b"")).payload == b"\1"
    assert run.receipt.head == run.head


def test_another_number_of_instalments_is_refused(ledger):
    visits(ledger)
    start(ledger, 3)
    with refused("bad-parameter"):
        start(ledger, 4)
    for wrong in (0, -1, 1.5, None, True):
        with refused("bad-parameter"):
            ledger.run("visits", HALF, plan="other", instalments=wrong)
    assert spent(ledger, "visits") == Fraction(1, 2)


def test_a_new_version_of_the_data_has_its_own_run(ledger):
    visits(ledger)
    start(ledger).draw(day)
    visits(ledger, version=2)
    assert start(ledger).next == 1
    assert spent(ledger, "visits") == 1


def test_a_run_that_does_not_fit_is_refused_and_leaves_nothing(ledger):
    visits(ledger, Budget(epsilon=0.25))
    with refused("budget-exceeded"):
        start(ledger)
    assert kinds(ledger) == ["open"]


def test_the_key_of_a_run_makes_a_retry_safe(ledger):
    visits(ledger)
    first = start(ledger, key="k")
    assert start(ledger, key="k").receipt == first.receipt
    with refused("key-reused"):
        start(ledger, 4, key="k")
    with refused("key-reused"):
        ledger.draw("visits", HALF, plan="daily", key="k", compute=lambda _: b"x")
    with refused("key-reused"):
        ledger.charge("visits", HALF, plan="daily", key="k")
    ledger.charge("visits", Cost.pure(0.125), plan="other", key="c")
    with refused("key-reused"):
        ledger.run("visits", Cost.pure(0.125), plan="other", instalments=2, key="c")


def test_each_account_below_pays_once_what_the_run_cost(ledger):
    lineage(ledger)
    ledger.create_account("ben", parent="oncology", budget=Budget(epsilon=1))
    start(ledger, account="ana").draw(day)
    assert spent(ledger, "visits", "oncology", "ana", "ben") == [Fraction(1, 2)] * 3 + [0]
    for _ in range(2):
        run = ledger.run("ben", Cost.pure(0.001), plan="daily", instalments=3)
        assert run.receipt.charged == ("ben",)
    assert payloads(run) == ["day 1"]
    assert run.draw(day).number == 2
    assert spent(ledger, "visits", "oncology", "ana", "ben") == [Fraction(1, 2)] * 4
    assert start(ledger).receipt.head == run.head
    assert ledger.verify().ok


@pytest.mark.parametrize("level", ["visits", "oncology", "ben"])
def test_a_frozen_account_draws_no_instalment_of_a_run_that_another_one_started(ledger, level):
    lineage(ledger)
    ledger.create_account("ben", parent="oncology", budget=Budget(epsilon=1))
    start(ledger, account="visits").draw(day)
    run = start(ledger, account="ben")
    ledger.freeze(level, statement="stop", who="curator")
    for asked in (run, start(ledger, account="ben"), ledger.paid_run("ben", "daily")):
        with refused("account-frozen"):
            asked.draw(day)
        assert payloads(asked) == ["day 1"]  # paid for: still readable
    if level == "ben":
        assert start(ledger, account="visits").draw(day).number == 2


def test_an_account_without_room_cannot_see_a_run(ledger):
    lineage(ledger, analyst=0.25)
    start(ledger).draw(day)
    with refused("budget-exceeded"):
        start(ledger, account="ana")


def test_a_draw_and_a_run_of_one_plan_do_not_pay_for_each_other(ledger):
    lineage(ledger)
    ledger.draw("ana", HALF, plan="daily", compute=lambda _: b"one")
    start(ledger)
    start(ledger, account="ana")
    assert spent(ledger, "visits", "ana") == [1, 1]
    assert ledger.paid_release("ana", "daily").payload == b"one"
    ledger.create_account("ben", parent="visits", budget=Budget(epsilon=1))
    start(ledger, account="ben")
    assert ledger.paid_release("ben", "daily") is None
    assert ledger.verify().ok


def test_the_receipt_of_a_run_authorises_no_other_draw(ledger):
    visits(ledger)
    receipt = start(ledger).receipt
    for ask in (ledger.claim, lambda r: ledger.store_release(r, b"x")):
        with refused("bad-parameter"):
            ask(receipt)


def test_a_run_that_is_paid_is_found_without_a_charge(ledger):
    lineage(ledger)
    assert ledger.paid_run("visits", "daily") is None
    start(ledger).draw(day)
    assert ledger.paid_run("ana", "daily") is None
    assert payloads(ledger.paid_run("visits", "daily")) == ["day 1"]
    start(ledger, account="ana")
    before = ledger.head
    found = ledger.paid_run("ana", "daily")
    assert (payloads(found), found.receipt.charged, found.next) == (["day 1"], ("ana", "oncology"), 2)
    assert ledger.paid_run("ana", "daily", version=2) is None
    assert ledger.paid_run("ana", "other") is None
    assert ledger.head == before
    assert found.draw(day).number == 2


def test_a_paid_run_is_found_by_a_process_that_knows_no_curve_yet(ledger, monkeypatch):
    ledger.create_account("visits", unit="patient_id", budget=Budget(rho=1))
    ledger.create_account("ana", parent="visits", budget=Budget(epsilon=3, delta=1e-6))
    noise = Cost.gaussian(sigma=30, sensitivity=1)
    for name in ("visits", "ana"):
        ledger.run(name, noise, plan="daily", instalments=3)
    monkeypatch.setattr("tacit.ledger.accounts._charges._KNOWN", {})
    assert ledger.paid_run("ana", "daily").receipt.account == "ana"


def test_a_run_of_another_dataset_is_refused(ledger):
    visits(ledger)
    ledger.create_account("other", unit="patient_id", budget=Budget(epsilon=1))
    with refused("account-differs"):
        start(ledger, account="other", dataset="visits")


# what is lost


class Panic(BaseException):
    """What a library in Rust raises when it fails: no `Exception`."""


def panic(number, secret):
    raise Panic(f"row 7 is ann, ZeroDivision, {secret!r}")


@pytest.mark.parametrize("fail", [fail, panic])
def test_a_failed_instalment_says_nothing_and_is_lost(ledger, fail):
    visits(ledger)
    run = start(ledger)
    run.draw(day)
    with pytest.raises(TacitError) as failed:
        run.draw(fail)
    assert failed.value.code == "release-failed"
    text = "".join(traceback.format_exception(failed.value))
    assert "ann" not in text
    assert "ZeroDivision" not in text
    with refused("instalment-lost"):
        run.instalment(2)
    with refused("instalment-not-drawn"):
        run.instalment(3)
    assert run.draw(lambda number, secret: (secret, b"")).payload == b"\1"  # from the last stored one
    assert [one.number for one in run] == [1, 3]
    assert spent(ledger, "visits") == Fraction(1, 2)
    with refused("run-finished"):
        run.draw(day)
    assert ledger.verify().ok


@pytest.mark.parametrize("made", [b"payload alone", (b"x",), (b"x", "text"), (7, b""), None, (b"x", None)])
def test_what_cannot_be_stored_loses_its_instalment(ledger, made):
    visits(ledger)
    run = start(ledger)
    with refused("release-failed"):
        run.draw(lambda number, secret: made)
    assert run.next == 2
    assert payloads(run) == []


def test_an_instalment_that_was_overtaken_is_never_stored(durable):
    one, two = durable.open(), durable.open()
    visits(one)
    slow, quick = start(one), start(two)
    slow.draw(day)
    for ledger in (one, two):  # as if the first process had lost its lock
        ledger._writer.store.hold_run = lambda _: nullcontext()

    def overtaken(number, secret):
        assert quick.draw(lambda n, s: (b"quick " + s, s + b"q")).number == number + 1
        return b"slow", secret + b"s"

    with refused("release-failed"):
        slow.draw(overtaken)
    assert [(one.number, one.payload) for one in slow] == [(1, b"day 1"), (3, b"quick \1")]
    with refused("run-finished"):
        slow.draw(day)
    assert one.verify().ok


def test_a_client_waits_for_the_one_that_draws_an_instalment(postgres_url, tmp_path):
    with (
        Ledger.open(postgres_url, key=tmp_path / "key") as one,
        Ledger.open(postgres_url, key=tmp_path / "key", wait=0.05) as two,
    ):
        visits(one)
        slow, quick = start(one), start(two)

        def slowly(number, secret):
            before = two.head
            with refused("ledger-locked"):
                quick_in_another_thread(quick)
            assert two.head == before
            return b"slow", b""

        slow.draw(slowly)
        assert payloads(quick) == ["slow"]
        assert quick.draw(day).number == 2
        assert one.verify().ok


def quick_in_another_thread(run):
    caught = []

    def work():
        try:
            run.draw(day)
        except TacitError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    for error in caught:
        raise error


@pytest.mark.parametrize("opened", [1, 4])
def test_threads_that_race_never_draw_the_same_instalment(durable, opened):
    ledgers = [durable.open(wait=60) for _ in range(opened)]
    visits(ledgers[0])
    computed, drawn, refusals = [], [], []

    def work(ledger):
        run = start(ledger, 20)
        while True:
            try:
                drawn.append(run.draw(lambda n, s: (computed.append(n) or str(n).encode(), s)))
            except TacitError as error:
                refusals.append(error.code)
                return

    threads = [threading.Thread(target=work, args=(ledgers[i % opened],)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(computed) == list(range(1, 21))
    assert sorted(one.number for one in drawn) == list(range(1, 21))
    assert refusals == ["run-finished"] * 8
    assert spent(ledgers[0], "visits") == Fraction(1, 2)
    assert ledgers[0].verify().ok


def test_the_search_for_the_last_claim_finds_it_from_anywhere():
    for last in range(70):
        keys = {claim_key(7, part): f'{{"after":{part // 2}}}' for part in range(1, last + 1)}
        if last % 3 == 0 and last:
            keys[instalment_key(7, last)] = ""

        def find(key, keys=keys):
            return Row(keys[key]) if key in keys else None

        for known in range(last + 1):
            found = run_progress(find, 7, known)
            assert found == (last, last if last % 3 == 0 else last // 2)


class Row:
    def __init__(self, body):
        self.body = body


# secrets


CANARY = b"the noise of yesterday, which nobody may see"


def test_a_secret_appears_nowhere(durable, tmp_path):
    ledger = durable.open()
    visits(ledger)
    run = start(ledger)
    run.draw(lambda number, secret: (b"day 1", CANARY))
    assert run.draw(lambda number, secret: (b"day 2", secret)).payload == b"day 2"
    with pytest.raises(TacitError) as failed:
        run.draw(fail)
    seen = [str(failed.value), repr(run), *ledger.export(), *map(repr, ledger.history())]
    seen += [one.payload.decode() for one in run]
    assert not any(CANARY.decode() in text for text in seen)
    if durable.kind == "sqlite":
        ledger.close()
        raw = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        assert any(b"daily" in data for data in raw)
        assert not any(CANARY[:16] in data for data in raw)
    else:
        with psycopg.connect(durable.where) as connection:
            [(kept,)] = connection.execute("SELECT secret FROM ledger_runs").fetchall()
        assert len(kept) == len(CANARY) + 64
        assert CANARY[:16] not in kept


class Vandal:
    """Someone who can write to the store and has no key."""

    def __init__(self, site):
        self._site = site

    def execute(self, sql, *values):
        if self._site.kind == "sqlite":
            with sqlite3.connect(self._site.where) as connection:
                return connection.execute(sql, values).fetchall()
        with psycopg.connect(self._site.where, autocommit=True) as connection:
            done = connection.execute(sql.replace("?", "%s"), values)
            return done.fetchall() if done.description else []

    @property
    def secret(self):
        return bytes(self.execute("SELECT secret FROM ledger_runs ORDER BY receipt")[0][0])

    @secret.setter
    def secret(self, value):
        self.execute("UPDATE ledger_runs SET secret = ? WHERE receipt = 2", value)


def run_with_secrets(site):
    ledger = site.open()
    visits(ledger)
    run = start(ledger, 9)
    run.draw(day)
    return ledger, run, Vandal(site)


def refuses_the_secret(ledger, run):
    before = ledger.head
    with refused("ledger-tampered"):
        run.draw(day)
    assert ledger.head == before, "an instalment was wasted"
    report = ledger.verify()
    assert not report.ok
    assert "secret of run 2" in str(report)


def test_each_flipped_byte_of_a_secret_is_refused(durable):
    ledger, run, vandal = run_with_secrets(durable)
    good = vandal.secret
    for at in range(len(good)):
        vandal.secret = good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]
        with refused("ledger-tampered"):
            run.draw(day)
    for bad in (b"", good[:31], good[:-1], good + b"\0", bytes(len(good))):
        vandal.secret = bad
        refuses_the_secret(ledger, run)
    vandal.secret = good
    assert run.draw(day).number == 2
    assert ledger.verify().ok


def test_the_secret_of_an_earlier_instalment_or_another_run_is_refused(durable):
    ledger, run, vandal = run_with_secrets(durable)
    early = vandal.secret
    run.draw(day)
    late = vandal.secret
    assert early != late
    vandal.secret = early
    refuses_the_secret(ledger, run)
    other = ledger.run("visits", Cost.pure(0.25), plan="other", instalments=2)
    other.draw(lambda number, secret: (b"day 2", b"\1\2"))
    [(theirs,)] = vandal.execute("SELECT secret FROM ledger_runs WHERE receipt > 2")
    vandal.secret = bytes(theirs)
    refuses_the_secret(ledger, run)
    vandal.execute("DELETE FROM ledger_runs WHERE receipt = 2")
    refuses_the_secret(ledger, run)


def test_a_secret_that_belongs_to_no_stored_instalment_is_named(durable):
    ledger, _, vandal = run_with_secrets(durable)
    other = ledger.run("visits", HALF, plan="other", instalments=3).head.count
    for receipt in (other, 99):
        vandal.execute("INSERT INTO ledger_runs (receipt, secret) VALUES (?, ?)", receipt, b"x" * 64)
        assert [f"run {receipt}," in problem for problem in ledger.verify().problems] == [True]
        vandal.execute("DELETE FROM ledger_runs WHERE receipt = ?", receipt)
    assert ledger.verify().ok


def test_a_rolled_back_run_row_and_release_are_refused(durable):
    ledger, run, vandal = run_with_secrets(durable)
    early = vandal.secret
    run.draw(day)
    vandal.secret = early
    vandal.execute("DELETE FROM ledger_releases WHERE part = 2")
    refuses_the_secret(ledger, run)
    with refused("ledger-tampered"):
        run.instalment(2)


def test_more_instalments_than_were_paid_for_are_refused(durable):
    ledger, run, vandal = run_with_secrets(durable)
    if durable.kind == "sqlite":
        vandal.execute("DROP TRIGGER entries_stay")
    else:
        vandal.execute("DROP TRIGGER ledger_entries_stay ON ledger_entries")
    vandal.execute(
        "UPDATE ledger_entries SET body = replace(body, '\"parts\":9', '\"parts\":99') WHERE seq = 2"
    )
    for ask in (lambda: run.draw(day), lambda: start(ledger, 99), lambda: start(ledger, 9)):
        with refused("ledger-tampered"):
            ask()


@pytest.mark.parametrize(
    "column", ["receipt", "part", "root", "version", "plan", "payload", "artifact", "seq"]
)
def test_an_edited_instalment_is_named_and_refused(durable, column):
    ledger, run, vandal = run_with_secrets(durable)
    value = {"plan": "x", "payload": b"day 9", "artifact": "00" * 32}.get(column, 7)
    vandal.execute(f"UPDATE ledger_releases SET {column} = ?", value)
    report = ledger.verify()
    assert not report.ok
    assert "instalment" in str(report)
    if column != "root":
        with refused("ledger-tampered"):
            run.instalment(1)


# artifacts


def artifacts(site, tmp_path):
    """Return the digests of what is kept outside of rows."""
    if site.kind == "sqlite":
        return sorted(path.name for path in (tmp_path / "a.ledger.artifacts").glob("*"))
    return [name for (name,) in Vandal(site).execute("SELECT sha256 FROM ledger_artifacts ORDER BY sha256")]


def harm(site, tmp_path, how):
    """Lose or edit the one artifact."""
    if site.kind == "sqlite":
        [path] = (tmp_path / "a.ledger.artifacts").glob("*")
        path.unlink() if how == "lost" else path.write_bytes(how(path.read_bytes()))
        return
    vandal = Vandal(site)
    if how == "lost":
        vandal.execute("DELETE FROM ledger_artifacts")
    else:
        [(kept,)] = vandal.execute("SELECT payload FROM ledger_artifacts")
        vandal.execute("UPDATE ledger_artifacts SET payload = ?", how(bytes(kept)))


def flipped(data):
    return data[:1000] + bytes([data[1000] ^ 1]) + data[1001:]


def draw(ledger, payload=LONG, account="visits"):
    return ledger.draw(account, HALF, plan="model", compute=lambda _: payload)


def test_a_long_payload_is_an_artifact_and_comes_back(ledger):
    visits(ledger)
    first = draw(ledger)
    assert first.payload == LONG
    assert first.fresh
    again = draw(ledger, b"not run")
    assert again.payload == LONG
    assert not again.fresh
    assert ledger.stored_release("visits", "model").payload == LONG
    assert ledger.paid_release("visits", "model").payload == LONG
    with ledger._writer.reading() as reader:
        [row] = reader.releases()
    assert (row.payload, row.artifact) == (b"", hashlib.sha256(LONG).hexdigest())
    assert ledger.verify().ok


def test_a_payload_of_one_mebibyte_stays_in_its_row(ledger):
    visits(ledger)
    draw(ledger, LONG[:ARTIFACT_BYTES])
    with ledger._writer.reading() as reader:
        [row] = reader.releases()
    assert len(row.payload) == ARTIFACT_BYTES
    assert row.artifact == ""
    assert ledger.verify().ok


def test_artifacts_outlive_the_process_and_serve_instalments_too(durable, tmp_path):
    first = durable.open()
    visits(first)
    start(first).draw(lambda number, secret: (LONG, LONG + b"secret"))
    first.close()
    ledger = durable.open()
    run = start(ledger)
    assert run.instalment(1).payload == LONG
    assert run.draw(lambda number, secret: (secret, b"")).payload == LONG + b"secret"
    assert len(artifacts(durable, tmp_path)) == 2
    assert ledger.verify().ok


def test_store_release_keeps_a_long_payload(ledger):
    visits(ledger)
    receipt = ledger.charge("visits", HALF, plan="model")
    assert ledger.store_release(receipt, LONG).payload == LONG
    assert ledger.store_release(receipt, LONG).payload == LONG
    with refused("spent"):
        ledger.store_release(receipt, LONG + b"x")
    other = ledger.charge("visits", HALF, plan="model")
    assert ledger.store_release(other, b"another").payload == LONG


@pytest.mark.parametrize("how", ["lost", flipped, lambda data: b"", lambda data: data + b"\0"])
def test_a_lost_or_edited_artifact_is_named_and_never_drawn_again(durable, tmp_path, how):
    ledger = durable.open()
    lineage(ledger)
    draw(ledger)
    harm(durable, tmp_path, how)
    calls = []
    for account in ("visits", "ana"):
        with pytest.raises(TacitError) as caught:
            ledger.draw(account, HALF, plan="model", compute=lambda _: calls.append(1) or LONG)
        assert caught.value.code == "artifact-lost"
        assert ("lost" if how == "lost" else "damaged") in caught.value.what
    assert calls == []
    assert spent(ledger, "visits", "ana") == [Fraction(1, 2), 0]  # nobody pays for what is lost
    for ask in (ledger.stored_release, ledger.paid_release):
        with refused("artifact-lost"):
            ask("visits", "model")
    report = ledger.verify()
    assert not report.ok
    assert hashlib.sha256(LONG).hexdigest()[:16] in str(report)


def test_a_restored_artifact_is_good_again(durable, tmp_path):
    ledger = durable.open()
    visits(ledger)
    draw(ledger)
    harm(durable, tmp_path, flipped)
    assert not ledger.verify().ok
    harm(durable, tmp_path, flipped)
    assert draw(ledger).payload == LONG
    assert ledger.verify().ok


def test_a_lost_artifact_of_an_instalment_leaves_the_others(durable, tmp_path):
    ledger = durable.open()
    visits(ledger)
    run = start(ledger)
    run.draw(lambda number, secret: (LONG, b"s"))
    harm(durable, tmp_path, "lost")
    with refused("artifact-lost"):
        run.instalment(1)
    assert run.draw(lambda number, secret: (secret, b"")).payload == b"s"
    assert "instalment 1 of run 2" in str(ledger.verify())


def test_an_edited_name_of_an_artifact_reads_no_other_file(durable, tmp_path):
    ledger = durable.open()
    visits(ledger)
    draw(ledger)
    (tmp_path / "elsewhere").write_bytes(b"private")
    for name in ("../elsewhere", "", hashlib.sha256(b"private").hexdigest()):
        Vandal(durable).execute("UPDATE ledger_releases SET artifact = ?", name)
        with refused("ledger-tampered"):
            draw(ledger)
        assert "is not the one that was stored" in str(ledger.verify())


def test_an_account_below_pays_for_a_stored_artifact_once(ledger):
    lineage(ledger)
    draw(ledger)
    for _ in range(2):
        assert draw(ledger, account="ana").payload == LONG
    assert spent(ledger, "visits", "ana") == [Fraction(1, 2)] * 2


def test_what_a_killed_process_left_is_harmless(tmp_path):
    folder = tmp_path / "a.ledger.artifacts"
    folder.mkdir()
    for name, age in (("old.new", 90_000), ("young.new", 10), ("00" * 32, 90_000)):
        (folder / name).write_bytes(b"half written")
        then = time.time() - age
        os.utime(folder / name, (then, then))
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        visits(ledger)
        draw(ledger)
        assert ledger.verify().ok
    assert {path.name for path in folder.glob("*")} == {
        "young.new", "00" * 32, hashlib.sha256(LONG).hexdigest(),
    }  # fmt: skip
