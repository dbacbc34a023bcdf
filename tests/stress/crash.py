"""Kill processes that charge and draw, at random moments, and look at what is left.

Run as a script: ``python crash.py WHERE KEY FOLDER KILLS SEED``; prints what it saw as JSON.
"""

import json
import os
import random
import select
import signal
import sys
import threading
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import psycopg  # noqa: F401 - so that a short life is not spent on importing it

from tacit.accounting import Budget, Cost
from tacit.errors import TacitError
from tacit.ledger import Ledger

COST = Cost.pure(Fraction(1, 40))
PER_ACCOUNT = 10  # kills, then the next account: most of them end at their cap
THREADS = 4


def note(log: Path, *words: str) -> None:
    """Append one line in one write: it is there whole, or the process died before it."""
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(handle, (" ".join(words) + "\n").encode())
    os.close(handle)


def live(where: str, key: str, folder: Path, life: int, ready: int) -> None:
    """Draw until killed; also ask again for what an earlier life may have left undone."""
    ledger = Ledger.open(where, key=key, wait=60)
    os.write(ready, b"x")
    account = f"analyst {life // PER_ACCOUNT}"

    def compute(receipt):
        note(folder / "computed", receipt.id)
        return os.urandom(8).hex().encode()

    def work(me: int) -> None:
        for i in range(10_000):
            back = life - i % 3
            if back < 0 or back // PER_ACCOUNT != life // PER_ACCOUNT:
                continue
            name = f"{back}-{me}-{i // 3}"
            try:
                release = ledger.draw(account, COST, plan=f"plan {name}", key=f"key {name}", compute=compute)
            except TacitError as error:
                note(folder / "refused", error.code)
                if error.code not in {"budget-exceeded", "spent"}:
                    raise
            else:
                note(
                    folder / "seen",
                    release.receipt.id,
                    f"plan {name}".replace(" ", "_"),
                    release.payload.decode(),
                )

    threads = [threading.Thread(target=work, args=(me,), daemon=True) for me in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def lines(log: Path) -> list[list[str]]:
    return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


def check(where: str, key: str, folder: Path) -> dict[str, int]:
    """Whatever was seen is charged, no receipt was drawn twice, no cap was passed, the chain holds."""
    with Ledger.open(where, key=key, wait=60) as ledger:
        report = ledger.verify(witness=ledger.witness)
        assert report.complete, str(report)
        charged = {}
        for entry in ledger.history("visits"):
            if entry.kind == "draw":
                charged[f"{entry.seq}-{entry.hash[:16]}"] = entry
        answers: dict[str, str] = {}
        for receipt, plan, payload in lines(folder / "seen"):
            assert receipt in charged, f"{receipt} was seen and not charged"
            assert answers.setdefault(plan, payload) == payload, f"{plan} was answered in two ways"
            stored = ledger.stored_release("visits", plan.replace("_", " "))
            assert stored is not None
            assert stored.payload.decode() == payload
        drawn = Counter(receipt for (receipt,) in lines(folder / "computed"))
        assert max(drawn.values(), default=0) <= 1, "a receipt was drawn twice"
        assert set(drawn) <= set(charged), "a draw was not charged"
        for account in ledger.accounts():
            assert account.spent.epsilon <= account.budget.epsilon
        return {"entries": report.entries, "charged": len(charged), "seen": len(answers), "drawn": len(drawn)}


def pace(where: str, key: str) -> float:
    """Measure how long a draw takes here and now, so that lives are long enough to die at work."""
    with Ledger.open(where, key=key, wait=60) as ledger:
        ledger.create_account("trial", unit="patient_id", budget=Budget(epsilon=1))
        start = time.monotonic()
        for i in range(10):
            ledger.draw("trial", COST, plan=f"trial {i}", compute=lambda _: b"x")
        return (time.monotonic() - start) / 10


def main(where: str, key: str, folder: Path, kills: int, seed: int) -> None:
    dice = random.Random(seed)
    died_at_work = 0
    longest = 15 * pace(where, key)
    for life in range(kills):
        if life % PER_ACCOUNT == 0:
            with Ledger.open(where, key=key, wait=60) as ledger:
                ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=10**6))
                ledger.create_account(
                    f"analyst {life // PER_ACCOUNT}", parent="visits", budget=Budget(epsilon=1)
                )
        ready, tell = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                live(where, key, folder, life, tell)
            finally:
                os._exit(1)
        if dice.random() < 0.8:  # most die at work, some while they open the ledger
            select.select([ready], [], [], 10)
        time.sleep(dice.uniform(0, longest))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        died_at_work += os.WIFSIGNALED(status)
        os.close(ready)
        os.close(tell)
        if life % 100 == 99:
            check(where, key, folder)
    found = check(where, key, folder)
    refused = Counter(code for (code,) in lines(folder / "refused"))
    print(json.dumps({**found, "kills": kills, "died_at_work": died_at_work, "refused": refused}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
