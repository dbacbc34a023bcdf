"""A store that is put back under a process that has it open: noticed before the next charge."""

import os
import threading

import pytest

from support.ledger_sites import refused, visits
from tacit.accounting import Budget, Cost
from tacit.errors import TacitError
from tacit.ledger import Ledger
from tacit.ledger.checks._witness import read_head
from twins.witnesses import CountsOnly

TENTH = Cost.pure(0.1)


def answers(ledger, times, cost=TENTH):
    """Draw new plans, and return how many answers were given, and why the last one was refused."""
    for number in range(times):
        try:
            plan = f"{id(ledger)}-{number}"
            ledger.draw("visits", cost, plan=plan, compute=lambda _: b"about 40")
        except TacitError as error:
            return number, error.code
    return times, None


def rolled_back(durable):
    """Let one process give three answers that the store loses, while another one has it open and is idle."""
    with durable.open() as first:
        visits(first)
    idle, busy = durable.open(), durable.open()
    durable.copy_live()
    assert answers(busy, 3, Cost.pure(0.3)) == (3, None)
    seen = read_head(idle.witness, idle.id)
    assert seen == busy.head
    durable.restore_live()
    assert idle.head.count == 1
    return idle, seen


def test_an_idle_process_gives_no_answer_from_a_store_that_was_put_back(durable):
    idle, seen = rolled_back(durable)
    assert answers(idle, 10) == (0, "ledger-rolled-back")
    for change in (
        lambda: idle.charge("visits", TENTH),
        lambda: idle.grow("visits", Budget(epsilon=2), statement="more", who="curator"),
        lambda: idle.create_account("ana", parent="visits", budget=Budget(epsilon=1)),
    ):
        with refused("ledger-rolled-back"):
            change()
    assert idle.head.count == 1
    assert read_head(idle.witness, idle.id) == seen  # the evidence is still there
    with durable.open() as fresh:
        assert fresh.refusal.code == "ledger-rolled-back"
        assert not fresh.verify(witness=fresh.witness).ok


def test_a_twin_that_compares_only_counts_spends_nearly_twice_the_budget(durable, monkeypatch):
    monkeypatch.setattr("tacit.ledger.stores._opening.Witness", CountsOnly)
    idle, seen = rolled_back(durable)
    assert answers(idle, 12) == (10, "budget-exceeded")  # 3 answers of 0.3, and 10 of 0.1, of a budget of 1
    assert read_head(idle.witness, idle.id) != seen
    assert idle.verify(witness=idle.witness).complete


def test_one_lost_answer_is_enough_and_so_is_one_lost_refusal_to_freeze(durable):
    with durable.open() as first:
        visits(first)
    idle, busy = durable.open(), durable.open()
    durable.copy_live()
    busy.freeze("visits", statement="consent is being checked", who="curator")
    durable.restore_live()
    with refused("ledger-rolled-back"):
        idle.charge("visits", TENTH)


def test_no_thread_of_an_idle_process_gives_an_answer(durable):
    idle, _ = rolled_back(durable)
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(answers(idle, 3))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [(0, "ledger-rolled-back")] * 4


def test_no_forked_child_of_an_idle_process_gives_an_answer(durable):
    idle, _ = rolled_back(durable)
    child = os.fork()
    if child == 0:
        os._exit(0 if answers(idle, 3) == (0, "ledger-rolled-back") else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_idle_process_goes_on_when_the_latest_copy_is_back(durable):
    with durable.open() as first:
        visits(first)
    idle, busy = durable.open(), durable.open()
    durable.copy_live()
    busy.charge("visits", TENTH)
    durable.copy_live("latest")
    durable.restore_live()
    with refused("ledger-rolled-back"):
        idle.charge("visits", TENTH)
    durable.restore_live("latest")
    idle.charge("visits", TENTH)
    assert idle.verify(witness=idle.witness).complete


def test_a_curator_continues_from_the_old_state_in_the_process_that_noticed_it(durable):
    idle, seen = rolled_back(durable)
    with refused("ledger-rolled-back"):
        idle.charge("visits", TENTH)
    assert idle.continue_from_backup(statement="failover", who="curator", opened=[]).ok
    assert idle.remaining("visits").epsilon == 0
    gap = next(entry for entry in idle.history() if entry.kind == "gap")
    assert gap.body["seen"]["count"] == seen.count
    with durable.open() as fresh:
        fresh.grow("visits", Budget(epsilon=2), statement="more", who="curator")
        fresh.charge("visits", TENTH)
        idle.charge("visits", TENTH)
        assert fresh.verify(witness=fresh.witness).complete


def test_many_processes_that_share_a_witness_disturb_nobody(durable):
    ledgers = [durable.open() for _ in range(3)]
    visits(ledgers[0])
    for turn in range(9):
        ledgers[turn % 3].charge("visits", TENTH)
        assert read_head(ledgers[0].witness, ledgers[0].id) == ledgers[0].head
    assert ledgers[0].verify(witness=ledgers[0].witness).complete


@pytest.mark.parametrize("content", [b"", b"x" * 288], ids=["empty", "garbage"])
def test_a_witness_that_lost_its_content_while_open_is_not_written_again(durable, content):
    ledger = durable.open()
    visits(ledger)
    with ledger.witness.open("r+b") as witness:
        witness.truncate(0)
        witness.write(content)
    with refused("ledger-unavailable"):
        ledger.charge("visits", TENTH)
    assert ledger.witness.read_bytes() == content


@pytest.mark.parametrize("how", ["unlink", "replace"])
def test_a_witness_that_was_removed_or_replaced_while_open_stops_the_charges(durable, how):
    ledger = durable.open()
    visits(ledger)
    if how == "replace":
        other = ledger.witness.with_name("other")
        other.write_bytes(ledger.witness.read_bytes())
        other.replace(ledger.witness)
    else:
        ledger.witness.unlink()
    with refused("ledger-unavailable") as caught:
        ledger.charge("visits", TENTH)
    assert "was removed or replaced" in caught.value.what
    assert ledger.head.count == 1


def test_a_named_witness_that_is_new_starts_at_the_end_of_the_log(tmp_path):
    with Ledger.open(tmp_path / "a.ledger", witness=tmp_path / "w") as ledger:
        visits(ledger)
        ledger.charge("visits", TENTH)
        assert read_head(tmp_path / "w", ledger.id) == ledger.head
