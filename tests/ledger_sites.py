"""Where a ledger lives in tests: in memory, in a file, on a server; and what many tests do with it."""

from pathlib import Path

import pytest

from tacit.accounting import Budget
from tacit.errors import TacitError
from tacit.ledger import Ledger


class Site:
    """A place where one ledger lives; `open` may be called again, except in memory."""

    def __init__(self, kind: str, folder: Path, url: str | None) -> None:
        self.kind = kind
        self.where = {"memory": ":memory:", "sqlite": str(folder / "a.ledger"), "postgres": url}[kind]
        self.key = folder / "the.key"
        self._opened: list[Ledger] = []

    def open(self, **how) -> Ledger:
        ledger = Ledger.open(self.where, key=self.key, **how)
        self._opened.append(ledger)
        return ledger

    def close(self) -> None:
        for ledger in self._opened:
            ledger.close()


def site(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    place = Site(request.param, tmp_path, url)
    yield place
    place.close()


def visits(ledger, budget=None, **facts):
    return ledger.create_account("visits", unit="patient_id", budget=budget or Budget(epsilon=1), **facts)


def lineage(ledger, dataset=3, project=2, analyst=1):
    ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=dataset))
    ledger.create_account("oncology", parent="visits", budget=Budget(epsilon=project))
    ledger.create_account("ana", parent="oncology", budget=Budget(epsilon=analyst))


def spent(ledger, *names):
    found = [ledger.account(name).spent.epsilon for name in names]
    return found[0] if len(found) == 1 else found


def refused(code):
    return pytest.raises(TacitError, match=f"code: {code}")
