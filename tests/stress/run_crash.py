"""Kill processes inside runs and artifacts, between any two of their writes, and look at what is left.

Run as a script: ``python run_crash.py WHERE KEY FOLDER KILLS SEED``; prints what it saw as JSON. With 0
kills, one process after another dies at the first, second, third ... point of a short run, until one comes
to its end.
"""

import hashlib
import json
import os
import random
import signal
import sys
import traceback
from collections import Counter
from fractions import Fraction
from pathlib import Path

import psycopg  # noqa: F401 - so that a short life is not spent on importing it
from killing import lines, note

from tacit.accounting import Budget, Cost
from tacit.ledger import Ledger
from tacit.ledger.stores._artifacts import ARTIFACT_BYTES

COST = Cost.pure(Fraction(1, 1000))


class Fate:
    """Kills the process at one of the points that it passes."""

    def __init__(self, last: int) -> None:
        self.left = last

    def point(self, *_: object) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, call):
        def between(*arguments, **named):
            self.point()
            answer = call(*arguments, **named)
            self.point()
            return answer

        return between

    def watch(self, ledger: Ledger) -> None:
        """Put points around every commit, statement, sync and rename from now on."""
        store = ledger._writer.store
        store.commit = self.around(store.commit)
        store.keep_artifact = self.around(store.keep_artifact)
        os.fsync = self.around(os.fsync)
        Path.replace = self.around(Path.replace)
        if hasattr(store, "_mark_name"):  # SQLite: inside of a transaction, too
            store._write.set_trace_callback(self.point)


def live(where: str, key: str, folder: Path, plan: str, instalments: int, fate: Fate) -> None:
    """Draw the instalments of a run until killed, or until the run is at its end."""
    ledger = Ledger.open(where, key=key, wait=60)
    fate.watch(ledger)

    def compute(number: int, secret: bytes):
        fate.point()
        left = os.urandom(16)
        payload = {
            "before": hashlib.sha256(secret).hexdigest(),
            "after": hashlib.sha256(left).hexdigest(),
            "long": "x" * (ARTIFACT_BYTES if number % 2 else 10),
        }
        note(folder / "computed", plan, number)
        fate.point()
        return payload, left

    run = ledger.run("visits", COST, plan=plan, instalments=instalments)
    while run.next is not None:
        drawn = run.draw(compute)
        note(folder / "seen", plan, drawn.number, hashlib.sha256(drawn.payload).hexdigest())
    ledger.close()


def life(*arguments: object) -> bool:
    """Live in a child process; return whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            live(*arguments)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "a life ended in an error"
    return os.WIFSIGNALED(status)


def check(where: str, key: str, folder: Path, plans: dict[str, int]) -> dict[str, int]:
    """Nothing was drawn twice, what was seen is stored, secrets form one line, and each run was paid once."""
    computed = Counter(tuple(words) for words in lines(folder / "computed"))
    assert max(computed.values(), default=0) <= 1, "an instalment was computed twice"
    seen = {(plan, int(number)): digest for plan, number, digest in lines(folder / "seen")}
    stored = lost = 0
    with Ledger.open(where, key=key, wait=60) as ledger:
        report = ledger.verify(witness=ledger.witness)
        assert report.complete, str(report)
        paid = [entry.plan for entry in ledger.history("visits") if entry.kind == "run"]
        assert sorted(paid) == sorted(plans), "a run was paid twice, or not at all"
        assert ledger.account("visits").spent.epsilon == len(plans) * Fraction(1, 1000)
        for plan, instalments in plans.items():
            run = ledger.run("visits", COST, plan=plan, instalments=instalments)
            before = hashlib.sha256(b"").hexdigest()
            found = {}
            for one in run:
                facts = json.loads(one.payload)
                assert facts["before"] == before, f"{plan}: {one.number} did not build on the one before it"
                before = facts["after"]
                found[plan, one.number] = hashlib.sha256(one.payload).hexdigest()
            handed = {which: digest for which, digest in seen.items() if which[0] == plan}
            assert handed.items() <= found.items(), "what was handed out is not what is stored"
            assert {(name, str(n)) for name, n in found} <= set(computed)
            stored += len(found)
            lost += run.claimed - len(found)
    return {"stored": stored, "lost": lost, "seen": len(seen), "computed": len(computed)}


def every_point(where: str, key: str, folder: Path) -> dict[str, object]:
    """Die at each point of a run with two instalments, then let another process bring it to its end."""
    plans: dict[str, int] = {}
    killed = True
    while killed:
        plan = f"run-{len(plans)}"
        plans[plan] = 2
        killed = life(where, key, folder, plan, 2, Fate(len(plans)))
        assert not life(where, key, folder, plan, 2, Fate(0))
    return {**check(where, key, folder, plans), "kills": len(plans) - 1}


def any_point(where: str, key: str, folder: Path, kills: int, seed: int) -> dict[str, object]:
    """Die at random points of longer runs, again and again."""
    dice = random.Random(seed)
    plans: dict[str, int] = {}
    died = 0
    while died < kills:
        plan = f"run-{len(plans)}"
        plans[plan] = dice.randint(1, 12)
        while died < kills and life(where, key, folder, plan, plans[plan], Fate(dice.randint(1, 120))):
            died += 1
        if died % 100 == 0:
            check(where, key, folder, ended(where, key, plans))
    return {**check(where, key, folder, ended(where, key, plans)), "kills": died}


def ended(where: str, key: str, plans: dict[str, int]) -> dict[str, int]:
    """Return the runs that are charged: a process may have died before it charged the last one."""
    with Ledger.open(where, key=key, wait=60) as ledger:
        paid = {entry.plan for entry in ledger.history("visits") if entry.kind == "run"}
    assert set(plans) - paid <= {list(plans)[-1]}
    return {plan: number for plan, number in plans.items() if plan in paid}


def main(where: str, key: str, folder: Path, kills: int, seed: int) -> None:
    with Ledger.open(where, key=key, wait=60) as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=10**6))
    if kills:
        print(json.dumps(any_point(where, key, folder, kills, seed)))
    else:
        print(json.dumps(every_point(where, key, folder)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
