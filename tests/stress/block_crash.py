"""Kill processes that charge and draw from blocks, at random moments, and look at what is left.

Run as a script: ``python block_crash.py WHERE KEY FOLDER KILLS SEED``; prints what it saw as JSON.
"""

import json
import os
import random
import sys
from collections import Counter
from fractions import Fraction
from functools import partial
from pathlib import Path

import psycopg  # noqa: F401 - so that a short life is not spent on importing it
from killing import kill_lives, lines, longest_life, note, work_in_threads

from tacit.accounting import Budget, Cost
from tacit.errors import TacitError
from tacit.ledger import Blocks, Ledger

COST = Cost.pure(Fraction(1, 10))
PER_MONTH = 3  # kills, then the next blocks: most of them end full
DAYS = 6


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

    work_in_threads(work)


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


def main(where: str, key: str, folder: Path, kills: int, seed: int) -> None:
    longest = longest_life(where, key, COST, draws=12, least=0.1)
    with Ledger.open(where, key=key, wait=60) as ledger:
        ledger.create_account("visits", unit="row", budget=Budget(epsilon=1), blocks=Blocks("day"))
    died_at_work = kill_lives(
        partial(live, where, key, folder),
        kills=kills,
        longest=longest,
        seed=seed,
        check=partial(check, where, key, folder),
    )
    found = check(where, key, folder)
    print(json.dumps({**found, "kills": kills, "died_at_work": died_at_work}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
