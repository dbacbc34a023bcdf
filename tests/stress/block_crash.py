"""Kill processes that charge and draw from blocks, at random moments, and look at what is left.

Run as a script: ``python block_crash.py WHERE KEY FOLDER KILLS SEED``; prints what it saw as JSON.
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
from tacit.ledger import Blocks, Ledger

COST = Cost.pure(Fraction(1, 10))
PER_MONTH = 10  # kills, then the next blocks: most of them end full
DAYS = 6
THREADS = 4


def note(log: Path, *words: str) -> None:
    """Append one line in one write: it is there whole, or the process died before it."""
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(handle, (" ".join(words) + "\n").encode())
    os.close(handle)


def live(where: str, key: str, folder: Path, life: int, ready: int) -> None:
    """Draw from some blocks until killed."""
    ledger = Ledger.open(where, key=key, wait=60)
    os.write(ready, b"x")

    def compute(receipt):
        note(folder / "computed", receipt.id)
        return os.urandom(8).hex().encode()

    def work(me: int) -> None:
        dice = random.Random(f"{life} {me}")
        for i in range(10_000):
            days = dice.sample(range(DAYS), dice.choice((1, 1, 1, 2)))
            blocks = [f"{life // PER_MONTH}-{day}" for day in days]
            name = f"{life}-{me}-{i}"
            try:
                release = ledger.draw("visits", COST, plan=name, key=name, compute=compute, blocks=blocks)
            except TacitError as error:
                note(folder / "refused", error.code)
                if error.code != "budget-exceeded":
                    raise
            else:
                note(folder / "seen", release.receipt.id, ",".join(sorted(blocks)), release.payload.decode())

    threads = [threading.Thread(target=work, args=(me,), daemon=True) for me in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def lines(log: Path) -> list[list[str]]:
    return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


def check(where: str, key: str, folder: Path) -> dict[str, int]:
    """Whatever was seen is charged to its blocks, no block is beyond its budget, the chain holds."""
    with Ledger.open(where, key=key, wait=60) as ledger:
        report = ledger.verify(witness=ledger.witness)
        assert report.complete, str(report)
        charged = {f"{e.seq}-{e.hash[:16]}": e for e in ledger.history("visits") if e.kind == "draw"}
        for receipt, blocks, _ in lines(folder / "seen"):
            assert receipt in charged, f"{receipt} was seen and not charged"
            assert ",".join(charged[receipt].blocks) == blocks
        drawn = Counter(receipt for (receipt,) in lines(folder / "computed"))
        assert max(drawn.values(), default=0) <= 1, "a receipt was drawn twice"
        assert set(drawn) <= set(charged), "a draw was not charged"
        counts = Counter(block for entry in charged.values() for block in entry.blocks)
        assert max(counts.values(), default=0) <= 10, "a block is beyond its budget"
        kept = {block: spend.epsilon for block, spend in ledger.blocks("visits").items()}
        assert kept == {block: Fraction(count, 10) for block, count in counts.items()}
        full = sum(count == 10 for count in counts.values())
        seen = len(lines(folder / "seen"))
        return {"entries": report.entries, "charged": len(charged), "seen": seen, "full": full}


def pace(where: str, key: str) -> float:
    """Measure how long a draw takes here and now, so that lives are long enough to die at work."""
    with Ledger.open(where, key=key, wait=60) as ledger:
        ledger.create_account("trial", unit="row", budget=Budget(epsilon=1))
        start = time.monotonic()
        for i in range(10):
            ledger.draw("trial", COST, plan=f"trial {i}", compute=lambda _: b"x")
        return (time.monotonic() - start) / 10


def main(where: str, key: str, folder: Path, kills: int, seed: int) -> None:
    dice = random.Random(seed)
    died_at_work = 0
    longest = 12 * pace(where, key)
    with Ledger.open(where, key=key, wait=60) as ledger:
        ledger.create_account("visits", unit="row", budget=Budget(epsilon=1), blocks=Blocks("day"))
    for life in range(kills):
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
    print(json.dumps({**found, "kills": kills, "died_at_work": died_at_work}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
