"""Changed bytes in a ledger file: every way to read it answers or refuses, and never fails in another way."""

import random
import sqlite3
from contextlib import suppress
from functools import partial

import pytest
from typer.testing import CliRunner

from tacit.accounting import Budget, Cost
from tacit.cli import app
from tacit.errors import TacitError
from tacit.ledger import Blocks, Ledger

REFUSALS = {
    "ledger-damaged", "ledger-tampered", "ledger-rolled-back", "ledger-newer", "ledger-key",
    "ledger-unavailable", "not-a-ledger", "unknown-account",
}  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a ledger with every kind of row, and of its witness."""
    path = tmp_path_factory.mktemp("sound") / "a.ledger"
    with Ledger.open(path, key=bytes(32)) as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
        ledger.create_account("ana", parent="visits", budget=Budget(epsilon=2), labels={"team": "oncology"})
        ledger.create_account("days", unit="row", budget=Budget(epsilon=1), blocks=Blocks("day"))
        ledger.create_account("trials", unit="person", budget=Budget(epsilon=2, delta=1e-6))
        for number in range(12):
            ledger.draw("ana", Cost.pure(0.1), plan=f"p{number}", asked="n = count", compute=lambda _: b"40")
        ledger.charge("days", Cost.pure(0.5), blocks=["monday"])
        ledger.charge("trials", Cost.gaussian(sigma=30, sensitivity=1), who="bob")
        run = ledger.run("visits", Cost.pure(0.5), plan="daily", instalments=3)
        run.draw(lambda number, secret: (f"day {number}".encode(), secret + b"x"))
        ledger.grow("visits", Budget(epsilon=4), statement="decision 12", who="curator")
        ledger.freeze("trials", statement="consent", who="curator")
    return path.read_bytes(), path.with_name("a.ledger.witness").read_bytes()


@pytest.fixture
def copy(sound, tmp_path):
    def write(content):
        path = tmp_path / "a.ledger"
        for file in tmp_path.glob("a.ledger*"):
            file.unlink()
        path.write_bytes(content)
        path.with_name("a.ledger.witness").write_bytes(sound[1])
        return path

    return write


def reads(ledger):
    """Every way to read, and one charge."""
    return [
        ledger.accounts,
        ledger.history,
        ledger.verify,
        lambda: [entry.cost for entry in ledger.history()],
        lambda: list(ledger.export()),
        lambda: ledger.blocks("days"),
        lambda: ledger.remaining("days", block="monday"),
        lambda: ledger.filters("visits"),
        lambda: ledger.entry(7),
        lambda: ledger.certified(7),
        *(partial(ledger.remaining, name) for name in ("visits", "ana", "days", "trials")),
        *(partial(ledger.paid_release, "ana", f"p{number}") for number in (0, 6, 11)),
        *(partial(ledger.stored_release, "visits", f"p{number}") for number in (0, 6, 11)),
        lambda: ledger.charge("ana", Cost.pure(0.01)),
    ]


def try_all(path):
    """Open and read a ledger in every way; return the codes of the refusals."""
    codes = set()
    try:
        with Ledger.open(path, key=bytes(32)) as ledger:
            for read in reads(ledger):
                try:
                    read()
                except TacitError as error:
                    codes.add(error.code)
    except TacitError as error:
        codes.add(error.code)
    return codes


@pytest.mark.parametrize("seed", range(3))
def test_changed_bytes_never_end_in_a_raw_error(sound, copy, seed):
    dice = random.Random(seed)
    refused = 0
    for _ in range(25):
        content = bytearray(sound[0])
        for _ in range(dice.randint(1, 10)):
            content[dice.randrange(100, len(content))] = dice.randrange(256)
        codes = try_all(copy(bytes(content)))
        assert codes <= REFUSALS
        refused += bool(codes)
    assert refused > 8  # the bytes that were changed matter


COLUMNS = {
    "ledger_entries": ["levels", "spend", "body", "kind"],
    "ledger_accounts": ["facts", "state"],
    "ledger_blocks": ["state"],
    "ledger_meta": ["value", "name"],
}


@pytest.mark.parametrize(("table", "column"), [(t, c) for t, names in COLUMNS.items() for c in names])
@pytest.mark.parametrize("how", ["x", "", "[]", '{"at":"1"}', "1/0", "cut", "byte", "[" * 5000])
def test_a_text_that_is_not_what_the_ledger_wrote_is_refused(sound, copy, table, column, how):
    path = copy(sound[0])
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER entries_stay")
    new = {"cut": f"substr({column}, 1, length({column}) / 2)", "byte": f"cast(x'ff' || {column} AS TEXT)"}
    with suppress(sqlite3.IntegrityError):
        connection.execute(f"UPDATE {table} SET {column} = {new.get(how, '?')}", () if how in new else (how,))
    connection.commit()
    connection.close()
    assert try_all(path) <= REFUSALS


def test_the_commands_of_a_budget_refuse_a_damaged_body_without_a_traceback(sound, copy):
    path = copy(sound[0])
    path.with_name("a.ledger.key").write_text(bytes(32).hex())
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER entries_stay")
    connection.execute("UPDATE ledger_entries SET body = 'x' || body WHERE seq = 6")
    connection.execute("UPDATE ledger_accounts SET state = 'x' || state")
    connection.commit()
    connection.close()
    for words in ([], ["history"], ["export"], ["burn-down"], ["verify"]):
        result = CliRunner().invoke(app, ["budget", *words, str(path)])
        known = isinstance(result.exception, TacitError) and result.exception.code in REFUSALS
        assert known or (words == ["verify"] and result.exit_code == 3), (words, result.exception)
