"""Kill processes that charge and draw, at random moments, and look at what is left.

Run as a script: ``python crash.py WHERE KEY FOLDER KILLS SEED``; prints what it saw as JSON.
"""

import json
import os
import sys
from collections import Counter
from fractions import Fraction
from functools import partial
from pathlib import Path

import psycopg  # noqa: F401 - so that a short life is not spent on importing it
from killing import kill_lives, lines, longest_life, note, work_in_threads

from tacit.accounting import Budget, Cost
from tacit.errors import TacitError
from tacit.ledger import Ledger

COST = Cost.pure(Fraction(1, 40))
PER_ACCOUNT = 10  # kills, then the next account: most of them end at their cap


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

    work_in_threads(work)


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


def main(where: str, key: str, folder: Path, kills: int, seed: int) -> None:
    def open_accounts(life: int) -> None:
        if life % PER_ACCOUNT == 0:
            with Ledger.open(where, key=key, wait=60) as ledger:
                ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=10**6))
                ledger.create_account(
                    f"analyst {life // PER_ACCOUNT}", parent="visits", budget=Budget(epsilon=1)
                )

    died_at_work = kill_lives(
        partial(live, where, key, folder),
        kills=kills,
        longest=longest_life(where, key, COST, draws=15, least=0.04),
        seed=seed,
        before=open_accounts,
        check=partial(check, where, key, folder),
    )
    found = check(where, key, folder)
    refused = Counter(code for (code,) in lines(folder / "refused"))
    print(json.dumps({**found, "kills": kills, "died_at_work": died_at_work, "refused": refused}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
