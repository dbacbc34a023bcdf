"""Write the ledger file of schema 1 that the tests keep: every kind of entry and of budget.

    python tests/data/make_ledger_schema_1.py FOLDER

Version 0.1 of Tacit wrote the kept file. Do not write it again: later versions must read it as it is.
"""

import sys
from fractions import Fraction
from pathlib import Path

from tacit.accounting import Budget, Cost
from tacit.ledger import Ledger

GAUSSIAN = Cost.gaussian(sigma=30, sensitivity=1)


def main(folder: Path) -> None:
    with Ledger.open(folder / "visits.ledger") as ledger:
        first = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
        ledger.create_account(
            "oncology", parent="visits", budget=Budget(epsilon=2), labels={"team": "oncology"}
        )
        ledger.create_account(
            "ana", parent="oncology", budget=Budget(epsilon=1), per_charge=Budget(epsilon=0.5)
        )
        ledger.create_account("scans", unit="patient_id", budget=Budget(rho=0.5, delta=1e-6))
        ledger.create_account("trials", unit="person", budget=Budget(epsilon=2, delta=1e-6))
        ledger.charge("ana", Cost.pure(Fraction(1, 3)), plan="p0", who="ana", purpose="trial", key="k0")
        ledger.draw("ana", Cost.pure(0.25), plan="p1", asked="n = count", compute=lambda _: b"about 40")
        ledger.draw("scans", GAUSSIAN, plan="p2", compute=lambda _: {"n": 41})
        ledger.charge("trials", GAUSSIAN, who="bob")
        receipt = ledger.charge("visits", Cost.pure(0.125), plan="p3", key="k3")
        ledger.claim(receipt)
        ledger.store_release(receipt, b"stored by hand")
        ledger.draw("oncology", Cost.pure(0.125), plan="p3", compute=lambda _: b"never drawn")  # a view
        ledger.grow("visits", Budget(epsilon=4), statement="decision 12", who="curator")
        ledger.refresh("ana", statement="a new cohort", who="curator")
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=4), version=2)
        ledger.draw("visits", Cost.pure(0.25), plan="p1", compute=lambda _: b"about 50")
        ledger.draw(first, Cost.pure(0.25), plan="p1", compute=lambda _: b"never drawn")
        ledger.unseal(statement="disk checked", who="operator")
        print(ledger.verify(witness=ledger.head), *(entry.kind for entry in ledger.history()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
