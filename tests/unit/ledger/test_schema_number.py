"""Each kind of entry has a schema number, so that an older program refuses what it would misread."""

import ast
from pathlib import Path

import pytest

import tacit.ledger
from tacit.accounting import Budget
from tacit.ledger import Ledger
from tacit.ledger.stores import _transaction as transaction
from tacit.ledger.stores._sql import KINDS, POSTGRES_UPGRADE, SQLITE_UPGRADE, VERSION

ROOM = Path(tacit.ledger.__file__).parent

#: The kinds that the programs of each schema understand. Programs with these numbers exist, so no line may
#: change. A new kind gets a new line, with the next number, which becomes `VERSION`.
ISSUED = {
    1: {"open", "charge", "draw", "view", "claim", "release", "grow", "refresh", "version", "unseal"},
    2: {"run"},
    3: {"record", "gap", "lost", "freeze", "unfreeze", "expiry"},
    4: set(),  # accounts that add up promises, and charges with promises
}


def appended_kinds():
    """Return every text that the ledger's code gives as a kind, and the code that gives something else."""
    kinds, variables = set(), []
    for path in ROOM.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for call in ast.walk(tree):
            named = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
            if named and call.func.attr == "append" and len(call.args) >= 3:
                kind = call.args[0]
                if isinstance(kind, ast.Constant):
                    kinds.add(kind.value)
                else:
                    variables.append((path.name, ast.unparse(kind)))
    return kinds, variables


def test_each_kind_keeps_the_number_under_which_it_was_issued():
    assert {kind: schema for schema, kinds in ISSUED.items() for kind in kinds} == KINDS
    assert max(ISSUED) == VERSION
    assert set(SQLITE_UPGRADE) == set(POSTGRES_UPGRADE) == set(range(1, VERSION))


def test_each_kind_that_the_code_writes_has_a_number():
    kinds, variables = appended_kinds()
    assert kinds <= KINDS.keys()
    assert sorted(variables) == [("_charges.py", "kind"), ("_decisions.py", "kind")]
    assert kinds | {"charge", "draw", "view", "run", "freeze", "unfreeze"} == KINDS.keys()


def test_an_entry_of_a_kind_without_a_number_is_never_written():
    with Ledger.memory() as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
        with pytest.raises(RuntimeError, match="thaw"):
            ledger._writer.run(lambda log: log.append("thaw", 1, {}))
        assert ledger.head.count == 1


def test_an_entry_of_an_unknown_kind_does_not_verify(monkeypatch):
    with Ledger.memory() as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
        with monkeypatch.context() as newer:
            newer.setattr(transaction, "KINDS", {**KINDS, "thaw": VERSION + 1})
            ledger._writer.run(lambda log: log.append("thaw", 1, {}))
        assert "kind that this version of Tacit does not know" in str(ledger.verify())
