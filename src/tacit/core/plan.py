"""The plan: what will be computed, what it costs and how far off it may be. Touches no data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from tacit.core.certificate import SCHEMA, Certificate
from tacit.core.release import Release

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.accounting import Cost
    from tacit.core.protocols import JSON, Ledger, Task
    from tacit.core.unit import Identity

__all__ = ["Forecast", "Plan"]

Post = Callable[[Release], Release]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What to expect of one column.

    The mechanism, and the half-width of its interval where it follows from public facts; ``stands_for`` says
    what the released column is, where its name may say more than it holds; ``counts``: its exact value is
    never below zero.
    """

    column: str
    meaning: str
    mechanism: str
    error: float | None
    note: str = ""
    stands_for: str = ""
    counts: bool = False


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Plan:
    """What will be computed, its sensitivity, mechanism, cost and expected error.

    A plan is a function of the question and of public facts. `release` charges the ledger and only then
    touches the data; the same plan on the same declared version gives the stored release again.

    Parameters
    ----------
    identity
        The dataset's declared identity.
    question
        What is asked, as JSON; with the identity and the cost it makes the plan's hash.
    cost
        The total cost of the plan.
    promised
        The total that was asked for: epsilon, delta, rho.
    columns
        What to expect of each column.
    facts
        Limits, keys, grids, split: label and text.
    mechanisms
        The mechanisms as they go into the certificate.
    sql
        The statements that will run.
    asked
        The question in words, for the ledger's record.
    left_out
        Which rows are not counted and which groups are not shown, in words.
    """

    identity: Identity
    question: JSON
    cost: Cost
    promised: Mapping[str, Fraction]
    columns: tuple[Forecast, ...]
    facts: tuple[tuple[str, str], ...]
    mechanisms: tuple[Mapping[str, JSON], ...]
    sql: tuple[str, ...]
    confidence: float
    task: Task
    ledger: Ledger
    post: Post | None = None
    asked: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """The plan's hash: equal for equal questions of the same declared data with the same noise."""
        body = {
            "dataset": self.identity.document(),
            "question": self.question,
            "cost": self.cost.to_json(),
            "mechanisms": [dict(m) for m in self.mechanisms],
        }
        return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=True).encode()).hexdigest()

    @property
    def notes(self) -> dict[str, str]:
        """What a released column stands for, where its name may say more than it holds."""
        return {c.column: c.stands_for for c in self.columns if c.stands_for}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def release(self, *, who: str = "", purpose: str = "", account: str | None = None) -> Release:
        """Charge the ledger, compute, add noise, store, return.

        If anything goes wrong after the charge there is one opaque error and the charge stays. Asking again
        for the same plan returns the stored release at no further cost to the dataset.

        Parameters
        ----------
        who, purpose
            Recorded in the ledger.
        account
            An account below the dataset's that pays as well; any other is refused.
        """
        drawn = self.draw(who=who, purpose=purpose, account=account)
        payload = self.task.read(json.loads(drawn.payload), self.confidence)
        return self.told(Release.from_payload(payload, self.confidence, self.certificate(drawn), self.notes))

    def told(self, release: Release) -> Release:
        """Say with a release what is left out and which columns count; then post-process it."""
        counts = tuple(c.column for c in self.columns if c.counts)
        release = replace(release, left_out=self.left_out, counts=counts)
        return release if self.post is None else self.post(release)

    def draw(self, *, who: str = "", purpose: str = "", account: str | None = None) -> Any:
        """Charge, compute and store as `release` does; return what the ledger hands out."""
        return self.ledger.draw(
            account or self.identity.account,
            self.cost,
            plan=self.hash,
            compute=lambda _: json.dumps(self.task.run()).encode(),
            who=who,
            purpose=purpose,
            asked=self.asked,
            dataset=self.identity.account,
        )

    def certificate(self, drawn: Any) -> Certificate:
        """Write the certificate of a drawn release."""
        from importlib.metadata import version

        head = drawn.receipt.head
        return Certificate(
            {
                "schema": SCHEMA,
                "dataset": self.identity.document(),
                "mechanisms": self.mechanisms,
                "cost": cast("JSON", self.cost.to_json()),
                "promised": {name: str(value) for name, value in self.promised.items()},
                "filter": drawn.receipt.charged and list(drawn.receipt.charged),
                "plan": self.hash,
                "software": f"tacit {version('tacit')}",
                "ledger": {"entry": head.count, "hash": _hex(head.hash)},
            }
        )

    def __repr__(self) -> str:
        from tacit.core.display import plan_text

        return plan_text(self)

    def _repr_html_(self) -> str:
        from tacit.core.display import plan_html

        return plan_html(self)


def _hex(digest: bytes | str) -> str:
    return digest.hex() if isinstance(digest, bytes) else digest
