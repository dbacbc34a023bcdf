"""Write the ledger file of schema 3 that the tests keep: accounts whose filters are of version 2.

    python tests/data/make_ledger_schema_3.py FOLDER

The last build of schema 3 wrote the kept file. Do not write it again: later versions must read it as it is.
"""

import sys
from pathlib import Path

from tacit.accounting import Budget, Cost
from tacit.ledger import Blocks, Ledger


def main(folder: Path) -> None:
    noise = Cost.gaussian(sigma=9, sensitivity=1)
    with Ledger.open(folder / "visits.ledger") as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1, delta=1e-6))
        ledger.create_account("ana", parent="visits", budget=Budget(epsilon=0.8, delta=1e-6))
        ledger.create_account("scans", unit="person", budget=Budget(rho=0.1, delta=1e-6))
        ledger.create_account("pure", unit="person", budget=Budget(epsilon=3))
        ledger.create_account("days", unit="row", budget=Budget(1, 1e-6), blocks=Blocks("day", per_unit=2))
        ledger.create_account("alone", unit="person", budget=Budget(epsilon=0.5, delta=1e-6))
        ledger.create_account("old", unit="person", budget=Budget(epsilon=2, delta=1e-6))
        ledger.charge("ana", noise, plan="p0", who="ana", purpose="trial", key="k0")
        ledger.draw("ana", Cost.approximate(0.1, 1e-8), plan="p1", asked="n", compute=lambda _: b"about 40")
        ledger.charge("scans", noise, who="bob")
        ledger.charge("pure", Cost.pure(0.5))
        for day in ("monday", "tuesday", "wednesday"):
            ledger.charge("days", noise, blocks=[day])
        ledger.charge("alone", Cost.approximate(0.5, 1e-6), purpose="the whole budget")
        ledger.charge("old", noise)
        ledger.grow("old", Budget(epsilon=3, delta=1e-6), statement="decision 12", who="curator")
        run = ledger.run("visits", noise, plan="daily", instalments=3)
        run.draw(lambda number, secret: (f"day {number}".encode(), secret + b"x"))
        print(ledger.verify(witness=ledger.head), ledger.head)
        for account in ledger.accounts():
            print(account.name, account.filter.remaining, account.filter.how_many(noise))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
