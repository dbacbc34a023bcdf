"""A ledger that somebody edits, cuts or restores is found out."""

import shutil
import sqlite3
from fractions import Fraction

import pytest

from tacit.accounting import Budget, Cost, Filter
from tacit.errors import TacitError
from tacit.ledger import Ledger
from tacit.ledger.accounts._accounts import Account
from tacit.ledger.checks._chain import START, Chain, canonical
from tacit.ledger.checks._replay import Replay
from tacit.ledger.checks._verification import verify
from tacit.ledger.stores._memory import MemoryStore
from tacit.ledger.stores._store import EntryRow, StoreChanges


@pytest.fixture
def path(tmp_path):
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
        ledger.create_account("ana", parent="visits", budget=Budget(epsilon=2))
        ledger.charge("ana", Cost.pure(0.25), plan="p0", who="ana", purpose="trial", key="k0")
        ledger.draw("ana", Cost.pure(0.5), plan="p1", compute=lambda _: b"about 40", key="k1")
        ledger.grow("visits", Budget(epsilon=4), statement="board", who="curator")
        ledger.charge("visits", Cost.pure(0.125))
    return tmp_path / "a.ledger"


class Copy:
    """The rows of a ledger, to be changed at will, and what `verify` says of the result."""

    def __init__(self, path):
        with Ledger.open(path) as ledger:
            self.chain, self.head = ledger._writer.chain, ledger.head
            with ledger._writer.store.snapshot() as reader:
                self.rows = list(reader.entries())
                self.accounts = reader.accounts()
                self.releases = list(reader.releases())

    def verify(self, rows=None, accounts=None, releases=None, *, witness=True):
        store = MemoryStore()
        store._apply(
            StoreChanges(
                self.rows if rows is None else rows,
                self.accounts if accounts is None else accounts,
                self.releases if releases is None else releases,
            )
        )
        witnesses = [("the witness", self.head)] if witness else []
        return verify(store, self.chain, witnesses, proves=witness)


def flips(value):
    """Yield a value with each of its bytes flipped in turn."""
    if isinstance(value, int):
        for bit in range(63):
            yield value ^ (1 << bit)
    elif isinstance(value, bytes):
        for i in range(len(value)):
            yield value[:i] + bytes([value[i] ^ 1]) + value[i + 1 :]
    else:
        for i in range(len(value)):
            yield value[:i] + chr(ord(value[i]) ^ 1) + value[i + 1 :]
        yield value + "x"


def test_the_untouched_ledger_verifies(path):
    copy = Copy(path)
    report = copy.verify()
    assert report.ok, report
    assert report.complete
    assert report.entries == 7


def test_each_flipped_byte_of_an_entry_is_detected(path):
    copy = Copy(path)
    tried = 0
    for at, row in enumerate(copy.rows):
        for column, value in enumerate(row):
            for flipped in flips(value):
                forged = EntryRow(*row[:column], flipped, *row[column + 1 :])
                report = copy.verify(rows=[*copy.rows[:at], forged, *copy.rows[at + 1 :]])
                assert not report.ok, (row._fields[column], value, flipped)
                tried += 1
    assert tried > 2000


def test_moving_a_border_between_two_columns_is_detected(path):
    copy = Copy(path)
    row = copy.rows[2]
    joined = f"{row.plan}\x1f{row.key}"
    forged = row._replace(plan=joined, key="")
    assert not copy.verify(rows=[*copy.rows[:2], forged, *copy.rows[3:]]).ok


def rechained(rows, key):
    chain, before, out = Chain(key), START, []
    for row in rows:
        before = chain.link(before, *row[:-1])
        out.append(row._replace(mac=before))
    return out


def test_a_chain_recomputed_without_the_key_is_detected(path):
    copy = Copy(path)
    cheaper = [row._replace(spend=row.spend.replace("1/4", "1/400")) for row in copy.rows]
    assert not copy.verify(rows=rechained(cheaper, b"not the key of this ledger at all"), witness=False).ok


def test_a_dropped_reordered_or_repeated_entry_is_detected(path):
    copy = Copy(path)
    for at in range(len(copy.rows)):
        assert not copy.verify(rows=copy.rows[:at] + copy.rows[at + 1 :]).ok
    for at in range(len(copy.rows) - 1):
        swapped = [*copy.rows[:at], copy.rows[at + 1], copy.rows[at], *copy.rows[at + 2 :]]
        assert not copy.verify(rows=swapped).ok
    assert not copy.verify(rows=[*copy.rows, copy.rows[-1]]).ok


def accounts_after(rows, chain):
    """Replay totals as somebody would who cuts a ledger carefully, and has the key."""
    replay = Replay()
    for row in rows:
        replay.take(row)
    replay.end()
    return [
        replayed.account.to_row(chain, replay.last_change(id_)) for id_, replayed in replay.accounts.items()
    ]


def test_each_dropped_suffix_is_detected_against_the_witness_even_with_matching_totals(path):
    copy = Copy(path)
    for keep in range(len(copy.rows)):
        rows = copy.rows[:keep]
        releases = [one for one in copy.releases if one.seq <= keep]
        with_witness = copy.verify(rows, accounts_after(rows, copy.chain), releases)
        assert not with_witness.ok, keep
        assert any("old copy" in problem for problem in with_witness.problems)
        without = copy.verify(rows, accounts_after(rows, copy.chain), releases, witness=False)
        assert without.ok
        assert not without.complete
        assert "completeness not proven" in str(without)


def test_an_edited_total_is_detected(path):
    copy = Copy(path)
    for at, row in enumerate(copy.accounts):
        account = Account.from_row(row)
        fresh = row._replace(state=canonical(Filter.start(account.budget).to_json()))
        report = copy.verify(accounts=[*copy.accounts[:at], fresh, *copy.accounts[at + 1 :]])
        assert any("total" in problem for problem in report.problems), report


def fields(account):
    return {name: getattr(account, name) for name in account.__slots__}


@pytest.mark.parametrize("column", ["name", "parent", "facts", "state"])
def test_each_flipped_byte_of_an_account_is_detected(path, column):
    copy = Copy(path)
    for at, row in enumerate(copy.accounts):
        for flipped in flips(getattr(row, column)):
            forged = row._replace(**{column: flipped})
            accounts = [*copy.accounts[:at], forged, *copy.accounts[at + 1 :]]
            report = copy.verify(accounts=accounts)
            if report.ok:  # white space in JSON and the like: the same account, written otherwise
                assert Account.from_row(forged) == Account.from_row(row)


def test_a_missing_or_added_account_is_detected(path):
    copy = Copy(path)
    assert not copy.verify(accounts=copy.accounts[1:]).ok
    extra = copy.accounts[1]._replace(id=99, name="eve")
    assert not copy.verify(accounts=[*copy.accounts, extra]).ok


@pytest.mark.parametrize("column", ["receipt", "root", "version", "plan", "payload", "seq"])
def test_each_flipped_byte_of_a_stored_release_is_detected(path, column):
    copy = Copy(path)
    (release,) = copy.releases
    for flipped in flips(getattr(release, column)):
        assert not copy.verify(releases=[release._replace(**{column: flipped})]).ok
    assert not copy.verify(releases=[]).ok


def test_a_total_above_the_cap_is_detected_even_with_the_key(path):
    copy = Copy(path)
    with Ledger.open(path) as ledger:
        key = ledger._writer.chain
    before, rows = START, []
    for row in copy.rows:
        forged = row._replace(spend=row.spend.replace("1/4;", "400;"))
        before = key.link(before, *forged[:-1])
        rows.append(forged._replace(mac=before))
    report = copy.verify(rows=rows, witness=False)
    assert any("beyond its budget" in problem for problem in report.problems)


def test_a_spend_below_its_cost_is_detected_even_with_the_key(path):
    copy = Copy(path)
    before, rows = START, []
    for row in copy.rows:
        forged = row._replace(spend=row.spend.replace("1/4;", "1/400;"))
        before = copy.chain.link(before, *forged[:-1])
        rows.append(forged._replace(mac=before))
    report = copy.verify(rows=rows, witness=False)
    assert any("less than its cost" in problem for problem in report.problems)


# in the file itself


def edit(path, *statements):
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER entries_keep")
    connection.execute("DROP TRIGGER entries_stay")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_the_store_itself_refuses_to_change_an_entry(path):
    connection = sqlite3.connect(path)
    for statement in ("UPDATE ledger_entries SET who = ''", "DELETE FROM ledger_entries"):
        with pytest.raises(sqlite3.Error):
            connection.execute(statement.replace("who", "body"))
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_entries SET spend = '1/1000;0;1/100000' WHERE seq = 3",
        "UPDATE ledger_entries SET body = replace(body, 'ana', 'bob') WHERE seq = 3",
        "UPDATE ledger_entries SET idem = '' WHERE seq = 3",
        "DELETE FROM ledger_entries WHERE seq = 3",
        "DELETE FROM ledger_entries WHERE seq = 7",
        "UPDATE ledger_releases SET payload = x'00'",
        "DELETE FROM ledger_releases",
        "UPDATE ledger_accounts SET state = (SELECT state FROM ledger_accounts WHERE name = 'ana')",
    ],
)
def test_an_edit_of_the_file_is_detected(path, statement):
    edit(path, statement)
    with Ledger.open(path) as ledger:
        report = ledger.verify()
    assert not report.ok
    assert "NOT consistent" in str(report)


def test_an_edited_release_is_not_handed_out(path):
    edit(path, "UPDATE ledger_releases SET payload = x'3939'")
    with Ledger.open(path) as ledger:
        with pytest.raises(TacitError, match="ledger-tampered"):
            ledger.draw("ana", Cost.pure(0.5), plan="p1", compute=lambda _: b"new")
        with pytest.raises(TacitError, match="ledger-tampered"):
            ledger.stored_release("ana", "p1")
        with pytest.raises(TacitError, match="ledger-tampered"):
            ledger.paid_release("ana", "p1")


def test_an_invented_payment_does_not_show_a_release(path):
    with Ledger.open(path) as ledger:
        bob = ledger.create_account("bob", parent="visits", budget=Budget(epsilon=2)).id
    edit(
        path,
        "INSERT INTO ledger_entries SELECT 99, 'view', "
        f"{bob}, '{bob}', spend, plan, '', body, mac FROM ledger_entries WHERE plan = 'p1' AND kind = 'draw'",
    )
    with Ledger.open(path) as ledger, pytest.raises(TacitError, match="ledger-tampered"):
        ledger.paid_release("bob", "p1")


def test_an_edited_price_is_not_charged(path):
    with Ledger.open(path) as ledger:
        ledger.create_account("bob", parent="visits", budget=Budget(epsilon=2))
    edit(path, "UPDATE ledger_entries SET spend = '1/1000;0;1/100000' WHERE plan = 'p1' AND kind = 'draw'")
    with Ledger.open(path) as ledger:
        with pytest.raises(TacitError, match="ledger-tampered"):
            ledger.draw("bob", Cost.pure(0.5), plan="p1", compute=lambda _: b"new")
        assert ledger.account("bob").spent.epsilon == 0


@pytest.mark.parametrize(
    ("statement", "unread"),
    [
        ("UPDATE ledger_entries SET body = replace(body, 'ana', 'bob') WHERE seq = 3", {3}),
        ("UPDATE ledger_entries SET spend = '1/1000;0;1/100000' WHERE seq = 3", {3}),
        ("UPDATE ledger_entries SET mac = zeroblob(32) WHERE seq = 3", {3, 4}),
        ("DELETE FROM ledger_entries WHERE seq = 3", {4}),
    ],
)
def test_an_edited_entry_is_not_read_by_its_number(path, statement, unread):
    edit(path, statement)
    with Ledger.open(path) as ledger:
        for number in range(1, 8):
            if number in unread:
                with pytest.raises(TacitError, match="ledger-tampered"):
                    ledger.entry(number)
            else:
                ledger.entry(number)


def test_a_cut_or_edited_end_stops_every_charge(path):
    edit(path, "UPDATE ledger_entries SET body = replace(body, '0', '1') WHERE seq = 7")
    with Ledger.open(path) as ledger, pytest.raises(TacitError, match="ledger-tampered"):
        ledger.charge("ana", Cost.pure(0.1))


@pytest.mark.parametrize("body", ["x", "[]", "{}", '{"at":7}', '{"at":"soon"}'])
def test_an_end_without_a_time_stops_every_charge(tmp_path, body):
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.create_account("visits", unit="u", budget=Budget(epsilon=3))
    edit(tmp_path / "a.ledger", f"UPDATE ledger_entries SET body = '{body}'")
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        with pytest.raises(TacitError, match="ledger-damaged"):
            ledger.charge("visits", Cost.pure(0.1))
        assert not ledger.verify().ok


def test_a_restored_old_copy_is_detected_and_takes_no_charges(path, tmp_path):
    old = tmp_path / "backup"
    shutil.copy(path, old)
    with Ledger.open(path) as ledger:
        receipt = ledger.charge("ana", Cost.pure(0.25))
    shutil.copy(old, path)
    with Ledger.open(path) as ledger:
        with pytest.raises(TacitError, match="ledger-rolled-back"):
            ledger.charge("ana", Cost.pure(0.25))
        assert not ledger.verify(witness=receipt).ok
        assert not ledger.verify(witness=ledger.witness).ok
        assert not ledger.verify().ok


def test_a_restored_copy_that_went_on_differently_is_detected(path, tmp_path):
    old = tmp_path / "backup"
    shutil.copy(path, old)
    with Ledger.open(path) as ledger:
        receipt = ledger.charge("ana", Cost.pure(0.25))
    shutil.copy(old, path)
    with Ledger.open(path, witness=tmp_path / "no.witness") as ledger:
        for _ in range(3):
            ledger.charge("ana", Cost.pure(0.1))
        assert ledger.verify().ok
        report = ledger.verify(witness=receipt)
    assert not report.ok
    assert "not the one" in str(report)


def test_a_process_notices_that_the_store_went_back_under_it(tmp_path):
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.create_account("visits", unit="u", budget=Budget(epsilon=3))
        ledger.charge("visits", Cost.pure(0.5))
        edit(tmp_path / "a.ledger", "DELETE FROM ledger_entries WHERE seq = 2")
        with pytest.raises(TacitError, match="ledger-rolled-back"):
            ledger.charge("visits", Cost.pure(0.5))


@pytest.mark.parametrize("vanish", ["unlink", "empty"])
def test_a_vanished_store_is_not_replaced_by_a_whole_budget(path, vanish):
    for name in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        name.unlink(missing_ok=True)
    if vanish == "empty":
        path.touch()
    with pytest.raises(TacitError, match="ledger-rolled-back"):
        Ledger.open(path)


def test_a_witness_of_another_ledger_proves_nothing(path, tmp_path):
    with Ledger.open(tmp_path / "other.ledger") as other:
        other.create_account("x", unit="u", budget=Budget(epsilon=1))
    with Ledger.open(path) as ledger, pytest.raises(TacitError, match="ledger-rolled-back"):
        ledger.verify(witness=tmp_path / "other.ledger.witness")


def test_totals_of_long_fractions_replay_in_their_order(tmp_path):
    with Ledger.memory() as ledger:
        ledger.create_account("visits", unit="u", budget=Budget(epsilon=9))
        for i in range(60):
            ledger.charge("visits", Cost.pure(Fraction(1, 10**29 + 2 * i + 1)))
        assert ledger.account("visits").spent.epsilon.denominator.bit_length() <= 1000
        assert ledger.verify().ok
