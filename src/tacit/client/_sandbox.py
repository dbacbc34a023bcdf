"""The sandbox of a dataset: invented rows of its declared schema, on this machine, free and unlimited."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, NoReturn

from tacit.accounting import Budget
from tacit.client._service_ledger import elsewhere
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.core import JSON

#: The mark of an answer of a sandbox.
INVENTED: Final = "a rehearsal on invented rows: these numbers say nothing about anybody"


class SandboxLedger:
    """The ledger of a sandbox: it charges nobody, and every answer says that its rows were invented.

    Guarantee: nothing is sent to the service, and nothing of the data is involved. The rows are a function of
    the public facts.

    Parameters
    ----------
    facts
        The public facts of the dataset.
    """

    def __init__(self, facts: Mapping[str, JSON]) -> None:
        self._facts = facts

    def answer(
        self,
        plan: Mapping[str, JSON],
        *,
        account: str | None,
        purpose: str,
        key: str | None,
        stored: bool = False,
    ) -> Mapping[str, JSON] | None:
        """Answer a plan from invented rows; nothing is stored."""
        del account, purpose, key
        if stored:
            return None
        from tacit.ledger import Ledger
        from tacit.tables import open_facts, rehearsal

        planned = open_facts(self._facts, Ledger.memory())
        promised: dict[str, Any] = dict(planned.plan_from(plan).promised)
        digest = hashlib.sha256(json.dumps(self._facts, sort_keys=True).encode()).digest()
        trial = rehearsal(planned, seed=int.from_bytes(digest[:8], "big"), budget=Budget(**promised))
        release = trial.plan_from(plan).release()
        return {**release.to_json(), "marks": [INVENTED, *release.marks]}

    def account(self, name: str) -> NoReturn:
        """Refuse: nothing is charged in a sandbox."""
        raise TacitError(
            "unknown-account",
            f"the sandbox of {name!r} has no account",
            fix="release the plan: in the sandbox it is free and unlimited",
        )

    def remaining(self, account: str, *, block: str | None = None) -> NoReturn:
        """Refuse: a sandbox has no budget."""
        del block
        self.account(account)

    def create_account(self, name: str, **_: object) -> NoReturn:
        """Refuse: nothing is charged in a sandbox."""
        self.account(name)

    def paid_release(self, account: str, plan: str, *, version: int | None = None) -> None:
        """Return nothing: a sandbox stores no answer."""
        del account, plan, version

    def draw(self, *_: object, **__: object) -> NoReturn:
        """Refuse: `answer` draws."""
        raise elsewhere("nothing is drawn from a sandbox in this way", "release the plan")

    def run(self, *_: object, **__: object) -> NoReturn:
        """Refuse: a rehearsal is one draw."""
        raise elsewhere("a run of many draws cannot be rehearsed", "rehearse a plan of one draw")
