"""Write the ledger file of schema 2 that the tests keep: what schema 2 added, and what it let through.

    python tests/data/make_ledger_schema_2.py FOLDER

A build of schema 2 wrote the kept file. Do not write it again: later versions must read it as it is.
"""

import sys
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from tacit.accounting import Budget, Cost
from tacit.ledger import Blocks, Ledger


def main(folder: Path) -> None:
    with Ledger.open(folder / "visits.ledger") as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
        ledger.create_account("ana", parent="visits", budget=Budget(epsilon=1), labels={"team": "oncology"})
        ledger.create_account("trials", unit="person", budget=Budget(epsilon=2, delta=1e-6))
        ledger.create_account("days", unit="row", budget=Budget(epsilon=1), blocks=Blocks("day"))
        ledger.charge("ana", Cost.pure(Fraction(1, 3)), plan="p0", who="ana", purpose="trial", key="k0")
        ledger.draw("ana", Cost.pure(0.25), plan="p1", asked="n = count", compute=lambda _: b"about 40")
        ledger.charge("trials", Cost.gaussian(sigma=30, sensitivity=1), who="bob")
        ledger.charge("days", Cost.pure(0.5), blocks=["monday"])
        run = ledger.run("visits", Cost.pure(0.5), plan="daily", instalments=3)
        for _ in range(2):
            run.draw(lambda number, secret: (f"day {number}".encode(), secret + b"x"))
        ledger.set_expiry("trials", datetime(2040, 1, 1, tzinfo=UTC), statement="until 2040", who="curator")
        ledger.freeze("trials", statement="consent is being checked", who="curator")
        ledger.grow("visits", Budget(epsilon=4), statement="decision 12", who="curator")
        print(ledger.verify(witness=ledger.head), ledger.head, *(entry.kind for entry in ledger.history()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
