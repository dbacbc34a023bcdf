"""What every ledger promises about blocks and about sums at Renyi orders, on every store."""

import itertools
import sqlite3
import threading
from fractions import Fraction
from functools import partial

import pytest

from support.ledger_sites import refused
from tacit.accounting import Budget, Cost, Filter
from tacit.errors import TacitError
from tacit.ledger import Blocks, Ledger
from tacit.ledger._arguments import read_charge
from tacit.ledger._refusals import disk_full
from tacit.ledger.accounts import _charges
from tacit.ledger.accounts._charges import charge
from tacit.ledger.accounts._decisions import refresh_account
from tacit.ledger.stores._store import BlockRow
from tacit.ledger.stores._writer import Job, _Request

DAYS = Blocks("day")
LARGE = Cost.pure(0.8)
TENTH = Cost.pure(0.1)
SAMPLED = Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01)
APPROXIMATE = Budget(epsilon=3, delta=1e-6)


@pytest.fixture
def ledger(everywhere):
    return everywhere.open()


def visits(ledger, budget=None, blocks=DAYS, **facts):
    return ledger.create_account(
        "visits", unit="row", budget=budget or Budget(epsilon=1), blocks=blocks, **facts
    )


def spent(ledger, name="visits"):
    return ledger.account(name).spent.epsilon


def left(ledger, block=None, name="visits"):
    return ledger.remaining(name, block=block).epsilon


# charges


def test_five_days_at_epsilon_0_8_fit_into_epsilon_1(ledger):
    visits(ledger)
    for day in "12345":
        ledger.charge("visits", LARGE, blocks=[day])
    assert spent(ledger) == Fraction(4, 5)
    for day in "12345":
        with refused("budget-exceeded"):
            ledger.charge("visits", Cost.pure(0.21), blocks=[day])
        ledger.charge("visits", Cost.pure(0.2), blocks=[day])
    assert spent(ledger) == 1
    assert (left(ledger), left(ledger, "1"), left(ledger, "6")) == (0, 0, 1)
    assert ledger.verify().ok


def test_what_concerns_all_is_added_to_every_block(ledger):
    visits(ledger)
    ledger.charge("visits", Cost.pure(0.5), blocks=["1"])
    ledger.charge("visits", Cost.pure(0.25))
    assert (spent(ledger), left(ledger), left(ledger, "1"), left(ledger, "2")) == (
        Fraction(3, 4),
        Fraction(1, 4),
        Fraction(1, 4),
        Fraction(3, 4),
    )
    with refused("budget-exceeded"):
        ledger.charge("visits", Cost.pure(0.3))
    ledger.charge("visits", Cost.pure(0.75), blocks=["2"])
    with refused("budget-exceeded"):
        ledger.charge("visits", Cost.pure(0.01))
    assert ledger.verify().ok


def test_a_unit_in_two_blocks_pays_for_the_two_fullest(ledger):
    visits(ledger, blocks=Blocks("week", per_unit=2))
    for week, amount in (("1", 0.3), ("2", 0.4), ("3", 0.5)):
        ledger.charge("visits", Cost.pure(amount), blocks=[week])
    assert spent(ledger) == Fraction(9, 10)
    assert [left(ledger, week) for week in "1234"] == [Fraction(n, 10) for n in (2, 1, 1, 5)]
    with refused("budget-exceeded"):
        ledger.charge("visits", Cost.pure(0.15), blocks=["2"])
    ledger.charge("visits", Cost.pure(0.2), blocks=["1"])
    assert spent(ledger) == 1
    assert ledger.verify().ok


def test_a_charge_to_several_blocks_is_charged_to_each_or_to_none(ledger):
    visits(ledger)
    ledger.charge("visits", LARGE, blocks=["b"])
    before = ledger.head
    with pytest.raises(TacitError, match="block 'b'") as caught:
        ledger.charge("visits", Cost.pure(0.3), blocks=["a", "b", "c"])
    assert "0.2" in caught.value.what
    assert ledger.head == before
    assert [left(ledger, block) for block in "abc"] == [1, Fraction(1, 5), 1]
    receipt = ledger.charge("visits", TENTH, blocks=["c", "b", "a", "a"])
    assert receipt.blocks == ledger.history("visits")[-1].blocks == ("a", "b", "c")
    assert [left(ledger, block) for block in "abc"] == [Fraction(9, 10), Fraction(1, 10), Fraction(9, 10)]


def test_the_same_key_with_other_blocks_is_another_charge(ledger):
    visits(ledger)
    first = ledger.charge("visits", TENTH, blocks=["a"], key="k")
    assert ledger.charge("visits", TENTH, blocks=["a"], key="k") == first
    for others in (["b"], ["a", "b"], ()):
        with refused("key-reused"):
            ledger.charge("visits", TENTH, blocks=others, key="k")


def test_names_of_every_script_are_blocks_of_their_own(ledger):
    names = [
        "a",
        "A",
        "a b",
        "\u00e4",
        "a\u0308",
        "日",
        "%",
        "_",
        "!",
        '"',
        "\\",
        "a,b",
        "[",
        "levels",
        "1",
        "01",
    ]
    visits(ledger)
    for name in names:
        ledger.charge("visits", LARGE, blocks=[name])
    again = [name for name in names if left(ledger, name) != Fraction(1, 5)]
    assert again == []
    assert set(ledger.blocks("visits")) == set(names)
    assert ledger.verify().ok


def test_blocks_need_a_partition_and_a_partition_needs_add_or_remove(ledger):
    ledger.create_account("plain", unit="row", budget=Budget(epsilon=1))
    with refused("bad-parameter"):
        ledger.charge("plain", TENTH, blocks=["a"])
    with refused("bad-parameter"):
        ledger.remaining("plain", block="a")
    with refused("not-allowed"):
        visits(ledger, adjacency="replace")
    with refused("bad-parameter"):
        visits(ledger, blocks="day")
    visits(ledger)
    for other in (None, Blocks("day", per_unit=2), Blocks("week")):
        with refused("account-differs"):
            visits(ledger, blocks=other)
    assert visits(ledger).blocks == DAYS


# lineage


def test_an_account_below_has_the_same_partition_or_none(ledger):
    visits(ledger, Budget(epsilon=1))
    ledger.create_account("ana", parent="visits", budget=Budget(epsilon=1), blocks=DAYS)
    ledger.create_account("bob", parent="visits", budget=Budget(epsilon=1))
    with refused("account-differs"):
        ledger.create_account("eve", parent="visits", budget=Budget(epsilon=1), blocks=Blocks("week"))
    for day in "12":
        ledger.charge("ana", Cost.pure(0.6), blocks=[day])
    assert (spent(ledger, "ana"), spent(ledger)) == (Fraction(3, 5), Fraction(3, 5))
    ledger.charge("bob", Cost.pure(0.4), blocks=["1"])
    ledger.charge("bob", Cost.pure(0.4), blocks=["2"])
    assert (spent(ledger, "bob"), spent(ledger)) == (Fraction(4, 5), 1)
    with pytest.raises(TacitError, match="account 'bob'"):
        ledger.charge("bob", Cost.pure(0.3), blocks=["3"])
    assert ledger.verify().ok


def test_no_account_between_hides_another_partition(ledger):
    """Blocks of days would be taken for blocks of hospitals: thirty days of a patient for one hospital."""
    visits(ledger, Budget(epsilon=1), blocks=Blocks("hospital"))
    ledger.create_account("project", parent="visits", budget=Budget(epsilon=100))
    with refused("account-differs"):
        ledger.create_account(
            "ana", parent="project", budget=Budget(epsilon=30), blocks=Blocks("day", per_unit=30)
        )
    ledger.create_account("bob", parent="project", budget=Budget(epsilon=1), blocks=Blocks("hospital"))


def test_an_account_above_without_the_partition_pays_for_all(ledger):
    ledger.create_account("hospital", unit="row", budget=Budget(epsilon=1))
    ledger.create_account("visits", parent="hospital", budget=Budget(epsilon=1), blocks=DAYS)
    ledger.charge("visits", Cost.pure(0.6), blocks=["1"])
    with pytest.raises(TacitError, match="account 'hospital'"):
        ledger.charge("visits", Cost.pure(0.6), blocks=["2"])
    ledger.charge("visits", Cost.pure(0.4), blocks=["2"])
    assert (spent(ledger, "hospital"), spent(ledger)) == (1, Fraction(3, 5))
    assert ledger.verify().ok


def test_a_stored_answer_is_charged_to_the_blocks_that_it_was_drawn_from(ledger):
    visits(ledger)
    ledger.create_account("ana", parent="visits", budget=Budget(epsilon=1), blocks=DAYS)
    ledger.draw("visits", LARGE, plan="p", compute=lambda _: b"40", blocks=["1"])
    release = ledger.draw("ana", LARGE, plan="p", compute=None, blocks=["2"])  # whatever the caller says
    assert release.payload == b"40"
    assert release.receipt.blocks == ("1",)
    assert (left(ledger, "1", "ana"), left(ledger, "2", "ana")) == (Fraction(1, 5), 1)
    assert left(ledger, "1") == Fraction(1, 5)
    assert ledger.paid_release("ana", "p").payload == b"40"
    assert ledger.verify().ok


def test_an_account_without_the_partition_reads_what_was_drawn_from_blocks(ledger):
    visits(ledger, Budget(epsilon=1))
    ledger.create_account("ana", parent="visits", budget=Budget(epsilon=1))
    ledger.draw("visits", Cost.pure(0.5), plan="p", blocks=["1"], compute=lambda _: b"one")
    assert ledger.draw("ana", Cost.pure(0.5), plan="p", compute=lambda _: b"two").payload == b"one"
    assert (spent(ledger, "ana"), spent(ledger)) == (Fraction(1, 2), Fraction(1, 2))
    assert ledger.verify().ok


def test_a_payment_for_other_blocks_pays_for_nothing(ledger):
    visits(ledger)
    ledger.create_account("ana", parent="visits", budget=Budget(epsilon=2), blocks=DAYS)
    ledger.draw("visits", Cost.pure(0.5), plan="p", compute=lambda _: b"40", blocks=["1"])
    receipt = ledger.charge("ana", Cost.pure(0.5), plan="p", blocks=["2"])
    ledger.claim(receipt)
    assert ledger.paid_release("ana", "p") is None
    ledger.draw("ana", Cost.pure(0.5), plan="p", compute=None)
    assert ledger.paid_release("ana", "p").payload == b"40"
    assert left(ledger, "1", "ana") == Fraction(3, 2)


# decisions of the curator


def test_a_larger_budget_holds_for_every_block(ledger):
    visits(ledger)
    for day in "12":
        ledger.charge("visits", LARGE, blocks=[day])
    ledger.grow("visits", Budget(epsilon=2), statement="more", who="curator")
    assert (spent(ledger), left(ledger, "1"), left(ledger, "3")) == (Fraction(4, 5), Fraction(6, 5), 2)
    ledger.charge("visits", Cost.pure(1.2), blocks=["2"])
    assert ledger.verify().ok


def test_a_refresh_empties_every_block(ledger):
    visits(ledger)
    ledger.charge("visits", LARGE, blocks=["1"])
    ledger.charge("visits", Cost.pure(0.2))
    ledger.refresh("visits", statement="other people", who="curator")
    assert (spent(ledger), left(ledger, "1"), ledger.blocks("visits")) == (0, 1, {})
    assert ledger.verify().ok
    ledger.charge("visits", Cost.pure(0.9), blocks=["1"])
    ledger.charge("visits", Cost.pure(0.7), blocks=["2"])
    assert (left(ledger, "1"), left(ledger, "2")) == (Fraction(1, 10), Fraction(3, 10))
    assert list(ledger.blocks("visits")) == ["1", "2"]
    assert ledger.verify().ok


# several sessions


def test_sessions_see_each_other_charge_a_block(durable):
    one, two = durable.open(), durable.open()
    visits(one)
    one.charge("visits", Cost.pure(0.5), blocks=["1"])
    two.charge("visits", Cost.pure(0.25), blocks=["1"])
    with refused("budget-exceeded"):
        one.charge("visits", Cost.pure(0.3), blocks=["1"])
    one.refresh("visits", statement="other people", who="curator")
    two.charge("visits", Cost.pure(1), blocks=["1"])
    with refused("budget-exceeded"):
        one.charge("visits", TENTH, blocks=["1"])
    third = durable.open()
    assert spent(third) == 1
    assert third.verify(witness=third.witness).complete


@pytest.mark.parametrize(("names", "per_unit"), [(("1",), 1), (("1", "2"), 1), (("1", "2", "3"), 2)], ids=str)
def test_threads_race_for_the_last_of_a_block(ledger, names, per_unit):
    visits(ledger, blocks=Blocks("day", per_unit=per_unit))
    won, gate = [], threading.Barrier(12)

    def race(me):
        gate.wait()
        for block in itertools.islice(itertools.cycle(names), me, me + 2 * len(names)):
            try:
                ledger.charge("visits", Cost.pure(Fraction(1, 7)), blocks=[block])
            except TacitError as error:
                assert error.code == "budget-exceeded", error
            else:
                won.append(block)

    threads = [threading.Thread(target=race, args=(me,)) for me in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = sorted((won.count(name) for name in names), reverse=True)
    if per_unit == 1:
        assert counts == [7] * len(names)
    else:
        assert sum(counts[:2]) == 7
    assert ledger.verify().ok


def test_a_refresh_that_was_not_committed_empties_no_block(durable, monkeypatch):
    ledger = durable.open()
    visits(ledger)
    ledger.charge("visits", LARGE, blocks=["1"])
    again = read_charge("visits", LARGE, plan=None, who="", purpose="", key=None, blocks=["1"])
    operations = (
        partial(refresh_account, name="visits", statement="other people", who="curator"),
        partial(charge, request=again),
    )
    writer, jobs = ledger._writer, [Job(_Request(operation)) for operation in operations]

    def full(*_):
        raise disk_full("a.ledger")

    with monkeypatch.context() as broken:
        broken.setattr(writer.store, "commit", full)
        with refused("disk-full"):
            writer._run_batch(jobs)
    with refused("budget-exceeded"):
        ledger.charge("visits", LARGE, blocks=["1"])
    assert ledger.verify().ok


def test_a_block_that_others_charge_is_read_again_and_no_other(durable):
    one, two = durable.open(), durable.open()
    visits(one)
    for day in "12":
        one.charge("visits", TENTH, blocks=[day])
    reads = []
    reader = type(one._writer.store.transaction_reader())
    original = reader.block
    with pytest.MonkeyPatch.context() as watched:
        watched.setattr(reader, "block", lambda *words: reads.append(words[2]) or original(*words))
        for _ in range(3):
            two.charge("visits", TENTH, blocks=["1"])
            reads.clear()
            one.charge("visits", TENTH, blocks=["2"])
            one.charge("visits", TENTH, blocks=["1"])
            assert reads == ["1"]
    assert (left(one, "1"), left(one, "2")) == (Fraction(3, 10), Fraction(6, 10))
    assert one.verify().ok


def test_nobody_searches_the_log_for_a_new_day(durable):
    with durable.open() as ledger:
        visits(ledger)
        for day in range(10, 15):
            ledger.charge("visits", TENTH, blocks=[f"2026-01-{day}"])
    ledger = durable.open()
    searched = []
    reader = type(ledger._writer.store.transaction_reader())
    original = reader.bodies_with
    with pytest.MonkeyPatch.context() as watched:
        watched.setattr(reader, "bodies_with", lambda *words: searched.append(words[2]) or original(*words))
        ledger.charge("visits", TENTH, blocks=["2026-01-15"])
        assert searched == []
        ledger.charge("visits", TENTH, blocks=["2026-01-01"])
        assert searched == ['"2026-01-01"']
    ledger.refresh("visits", statement="other people", who="curator")
    assert ledger.account("visits").totals.last == ""
    ledger.charge("visits", TENTH, blocks=["2026-01-12"])
    assert ledger.verify().ok


# tampering


class Rows:
    """The tables of a ledger, for somebody who can write to them and has no key."""

    def __init__(self, place, ledger):
        self.place, self.ledger = place, ledger

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, sql, *values):
        if self.place.kind == "sqlite":
            with sqlite3.connect(self.place.where) as connection:
                found = connection.execute(sql, values).fetchall()
            connection.close()
            return found
        import psycopg

        with psycopg.connect(self.place.where, autocommit=True) as connection:
            cursor = connection.execute(sql.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []


def put_back(rows, row):
    rows.run("UPDATE ledger_blocks SET state = ?, seq = ?, seal = ? WHERE account = ? AND block = ?",
             *row[2:], *row[:2])  # fmt: skip


BLOCK = "SELECT account, block, state, seq, seal FROM ledger_blocks WHERE block = ?"


def test_an_old_block_put_back_is_refused_at_the_next_charge(durable):
    with durable.open() as ledger:
        visits(ledger)
        ledger.charge("visits", TENTH, blocks=["1"])
    rows = Rows(durable, None)
    (old,) = rows.run(BLOCK, "1")
    with durable.open() as ledger:
        ledger.charge("visits", LARGE, blocks=["1"])
    put_back(rows, old)
    ledger = durable.open()
    with refused("ledger-tampered"):
        ledger.charge("visits", LARGE, blocks=["1"])
    assert any("block '1'" in problem for problem in ledger.verify().problems)


@pytest.mark.parametrize("refreshed", [False, True], ids=["at once", "after a refresh"])
def test_a_block_that_was_removed_is_refused_at_the_next_charge(durable, refreshed):
    with durable.open() as ledger:
        visits(ledger)
        ledger.charge("visits", TENTH, blocks=["1"])
    rows = Rows(durable, None)
    (old,) = rows.run(BLOCK, "1")
    with durable.open() as ledger:
        if refreshed:
            ledger.refresh("visits", statement="other people", who="curator")
        ledger.charge("visits", LARGE, blocks=["1", "2"])
    if refreshed:
        put_back(rows, old)  # from before the refresh, where it counts as empty
    else:
        rows.run("DELETE FROM ledger_blocks WHERE block = ?", "1")
    ledger = durable.open()
    with refused("ledger-tampered"):
        ledger.charge("visits", TENTH, blocks=["1"])
    ledger.charge("visits", TENTH, blocks=["2"])  # the others are as they were
    assert any("block '1'" in problem for problem in ledger.verify().problems)


def test_a_block_of_somebody_without_the_key_is_refused(durable):
    with durable.open() as ledger:
        visits(ledger)
        ledger.charge("visits", LARGE, blocks=["1"])
        ledger.charge("visits", TENTH, blocks=["2"])
    rows = Rows(durable, None)
    (one,), (two,) = rows.run(BLOCK, "1"), rows.run(BLOCK, "2")
    for forged in ((*one[:2], two[2], *one[3:]), (*one[:2], *two[2:]), (*one[:2], "junk", *one[3:])):
        put_back(rows, forged)
        with durable.open() as ledger:
            with refused("ledger-tampered"):
                ledger.charge("visits", TENTH, blocks=["1"])
            assert any("block '1'" in problem for problem in ledger.verify().problems)
    put_back(rows, one)
    with durable.open() as ledger:
        ledger.charge("visits", TENTH, blocks=["1"])
        assert ledger.verify().ok


ACCOUNT = "SELECT state, seq, seal FROM ledger_accounts WHERE name = ?"


@pytest.mark.parametrize("how", ["DELETE FROM ledger_accounts WHERE name = ?",
                                 "UPDATE ledger_accounts SET name = 'other' WHERE name = ?"])  # fmt: skip
def test_an_account_that_was_removed_is_not_opened_again(durable, how):
    with durable.open() as ledger:
        visits(ledger)
        ledger.create_account("labs", unit="row", budget=Budget(epsilon=1))
        ledger.charge("visits", LARGE)
    Rows(durable, None).run(how, "visits")
    ledger = durable.open()
    head = ledger.head
    for _ in range(2):
        with refused("ledger-tampered"):
            visits(ledger)
    assert ledger.head == head
    ledger.create_account("new", unit="row", budget=Budget(epsilon=1))
    assert not ledger.verify().ok


@pytest.mark.parametrize("blocks", [None, DAYS], ids=["one total", "blocks"])
def test_an_old_total_put_back_is_refused_at_the_next_charge_of_a_new_client(durable, blocks):
    named = {} if blocks is None else {"blocks": ["1"]}
    with durable.open() as ledger:
        visits(ledger, blocks=blocks)
        ledger.charge("visits", TENTH, **named)
    rows = Rows(durable, None)
    (old,) = rows.run(ACCOUNT, "visits")
    first = durable.open()
    first.charge("visits", LARGE, **named)
    (true,) = rows.run(ACCOUNT, "visits")
    for forged in (old, (old[0], *true[1:]), (true[0], *old[1:]), (*true[:2], "0" * 64)):
        rows.run("UPDATE ledger_accounts SET state = ?, seq = ?, seal = ? WHERE name = 'visits'", *forged)
        second = durable.open()
        with refused("ledger-tampered"):
            second.charge("visits", LARGE, **named)
        assert not second.verify().ok
        with refused("budget-exceeded"):  # a client that has charged goes on from what it knows
            first.charge("visits", LARGE, **named)
    rows.run("UPDATE ledger_accounts SET state = ?, seq = ?, seal = ? WHERE name = 'visits'", *true)
    third = durable.open()
    third.charge("visits", TENTH, **named)
    assert third.verify().ok


def test_each_flipped_byte_of_a_block_is_named(tmp_path):
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.create_account("visits", unit="row", budget=APPROXIMATE, blocks=Blocks("day", per_unit=2))
        ledger.charge("visits", SAMPLED, blocks=["1"])
        ledger.refresh("visits", statement="other people", who="curator")
        ledger.charge("visits", Cost.pure(Fraction(1, 3)), blocks=["2", "3"])
        ledger.charge("visits", SAMPLED, blocks=["2"])
        with ledger._writer.store.snapshot() as reader:
            true = list(reader.blocks(1))
        assert [row.block for row in true] == ["1", "2", "3"]
        tried = 0
        with ledger._writer.store.snapshot() as reader:
            for row in true:
                for column in ("account", "block", "state", "seq", "seal"):
                    for flipped in _flips(getattr(row, column)):
                        forged = row._replace(**{column: flipped})
                        report = _verified(ledger, [forged if one is row else one for one in true])
                        assert not report.ok, forged
                        named = {f"block {row.block!r}", f"block {forged.block!r}"}
                        assert any(name in problem for name in named for problem in report.problems), report
                        tried += 1
        assert tried > 500
        assert _verified(ledger, true).ok


def _flips(value):
    if isinstance(value, int):
        yield from (value ^ (1 << bit) for bit in range(8))
    else:
        yield from (value[:i] + chr(ord(value[i]) ^ 1) + value[i + 1 :] for i in range(len(value)))


def _verified(ledger, blocks: list[BlockRow]):
    from tacit.ledger.checks._verification import verify
    from tacit.ledger.stores._memory import MemoryStore
    from tacit.ledger.stores._store import StoreChanges

    store = MemoryStore()
    with ledger._writer.store.snapshot() as reader:
        store._apply(StoreChanges(list(reader.entries()), reader.accounts(), list(reader.releases()), blocks))
    return verify(store, ledger._writer.chain, (), proves=False)


# sums at Renyi orders


def forget_curves():
    _charges._KNOWN.clear()
    _charges._RECORDED.clear()


def test_an_approximate_budget_takes_a_thousand_sampled_steps_one_by_one(ledger):
    ledger.create_account("visits", unit="row", budget=APPROXIMATE)
    for _ in range(1_200):
        ledger.charge("visits", SAMPLED)
    account = ledger.account("visits")
    start = Filter.start(APPROXIMATE)
    assert account.filter.orders == start.orders
    assert dict(account.spent.curve) == {
        order: 1_200 * value for order, value in start.spend_of(SAMPLED).curve
    }
    assert ledger.verify().ok


def test_each_level_adds_the_orders_that_it_has(ledger):
    ledger.create_account("visits", unit="row", budget=Budget(epsilon=8, delta=1e-5))
    ledger.create_account("oncology", parent="visits", budget=Budget(rho=10))
    ledger.create_account("ana", parent="oncology", budget=APPROXIMATE)
    receipt = ledger.charge("ana", SAMPLED)
    levels = [ledger.account(name).filter for name in ("visits", "ana")]
    wanted = sorted({order for level in levels for order in level.orders})
    assert [order for order, _ in receipt.spend.curve] == wanted
    assert receipt == ledger.charge("ana", SAMPLED, key="k").__class__(
        **{name: getattr(receipt, name) for name in receipt.__slots__}
    )
    for level in levels:
        assert level.curve == level.spend_of(SAMPLED).curve
    assert ledger.account("oncology").filter.orders == ()
    assert ledger.history("ana")[-1].to_json()["spend"]["curve"]
    assert ledger.verify().ok


def test_a_stored_answer_seen_by_an_account_with_other_orders_is_charged_its_curve(ledger):
    ledger.create_account("visits", unit="row", budget=Budget(rho=10**6))
    ledger.create_account("ana", parent="visits", budget=APPROXIMATE)
    ledger.draw("visits", SAMPLED, plan="p", compute=lambda _: b"40")
    forget_curves()
    view = ledger.draw("ana", Cost.pure(0.001), plan="p", compute=None)
    start = Filter.start(APPROXIMATE)
    assert view.receipt.spend.curve == start.spend_of(SAMPLED).curve
    assert ledger.account("ana").filter == start.added(start.spend_of(SAMPLED))
    forget_curves()
    assert ledger.paid_release("ana", "p").payload == b"40"
    assert ledger.verify().ok


def test_a_cheap_curve_does_not_pay_for_a_dear_one(ledger):
    ledger.create_account("visits", unit="row", budget=Budget(epsilon=8, delta=1e-5))
    ledger.create_account("ana", parent="visits", budget=APPROXIMATE)
    ledger.draw("visits", SAMPLED, plan="p", compute=lambda _: b"40")
    cheap = Cost.renyi({40: 1e-6})
    receipt = ledger.charge("ana", cheap, plan="p")
    ledger.claim(receipt)
    assert ledger.paid_release("ana", "p") is None
    ledger.draw("ana", cheap, plan="p", compute=None)
    assert ledger.paid_release("ana", "p").payload == b"40"


def test_no_curve_is_computed_while_the_store_is_locked(everywhere, monkeypatch):
    ledger = everywhere.open()
    ledger.create_account("visits", unit="row", budget=APPROXIMATE)
    busy = []
    compute = _charges.CurveNeeded.compute

    def watched(self):
        busy.append(ledger._writer._group_commit._busy)
        compute(self)

    forget_curves()
    monkeypatch.setattr(_charges.CurveNeeded, "compute", watched)
    ledger.charge("visits", SAMPLED)
    ledger.charge("visits", SAMPLED)
    assert busy == [False]


def test_a_grown_budget_keeps_its_orders(ledger):
    ledger.create_account("visits", unit="row", budget=APPROXIMATE, blocks=DAYS)
    ledger.charge("visits", SAMPLED, blocks=["1"])
    ledger.charge("visits", Cost.gaussian(sigma=2, sensitivity=1), blocks=["2"])
    before = ledger.account("visits").filter
    larger = Budget(epsilon=6, delta=1e-5)
    after = ledger.grow("visits", larger, statement="more", who="curator").filter
    assert after.orders == before.orders
    assert after.curve == before.curve
    assert after.remaining.rho > before.remaining.rho
    ledger.charge("visits", Cost.gaussian(sigma=2, sensitivity=1), blocks=["1"])
    ledger.refresh("visits", statement="other people", who="curator")
    assert ledger.account("visits").filter.orders == before.orders
    ledger.charge("visits", SAMPLED, blocks=["1"])
    assert ledger.verify().ok


def test_a_curve_that_was_edited_down_is_named(ledger):
    ledger.create_account("visits", unit="row", budget=APPROXIMATE)
    ledger.charge("visits", SAMPLED)
    cheaper = "-;0;1/2;" + ",".join(f"{order}:0" for order in Filter.start(APPROXIMATE).orders)
    ledger._writer.run(
        lambda transaction: transaction.append(
            "charge", 1, {"cost": SAMPLED.to_json(), "purpose": "", "version": 1, "who": ""},
            levels="1", spend=cheaper,
        )
    )  # fmt: skip
    assert any("less than its cost" in problem for problem in ledger.verify().problems)


def test_the_largest_single_charge_is_read_by_its_curve(ledger):
    ledger.create_account("visits", unit="row", budget=Budget(epsilon=50, delta=1e-5), per_charge=APPROXIMATE)
    ledger.charge("visits", 1_000 * SAMPLED)
    with refused("charge-too-large"):
        ledger.charge("visits", 5_000 * SAMPLED)
    assert ledger.verify().ok


def test_a_year_of_blocks_of_an_approximate_budget_takes_constant_room(ledger):
    visits(ledger, APPROXIMATE, Blocks("day", per_unit=3))
    sizes = []
    for day in range(60):
        ledger.charge("visits", Cost.gaussian(sigma=5, sensitivity=1), blocks=[f"day {day}"])
        with ledger._writer.store.reading() as reader:
            sizes.append(len(reader.account_named("visits").state))
    assert max(sizes[3:]) == sizes[3]
    assert ledger.verify().ok
