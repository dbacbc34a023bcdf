"""The core's draws of a plan, one for each dataset: charged and run by its ledger, or found there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from tacit.core._certificate import Certificate, certificate_body
from tacit.core._plan_run import digest_of, run
from tacit.core._refusal_words import in_promised_words
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.core._plan_run import Member
    from tacit.core._protocols import Charger
    from tacit.core._task import Task


def draw(
    member: Member, *, who: str, purpose: str, account: str | None, key: str | None
) -> tuple[list[Any], Certificate]:
    """Charge one dataset's part of a plan and run it; return the noisy integers with their certificate.

    What the ledger has stored of the same plan is returned instead. A part without a ledger runs at once.
    """
    if member.ledger is None:
        return json.loads(run(cast("Task[Any, Any]", member.task)))["noisy"], Certificate.of_local(member)
    body = certificate_body(member)
    try:
        drawn = member.ledger.draw(
            account or member.identity.name,
            member.cost,
            compute=lambda _: run(cast("Task[Any, Any]", member.task), body),
            **_recorded(member, body, who, purpose, key),
        )
    except TacitError as refusal:
        raise in_promised_words(refusal, member.promised) from None
    return _noisy_of(drawn, body, member)


def stored_draw(member: Member, account: str | None) -> tuple[list[Any], Certificate] | None:
    """Return what the ledger has stored and this account has paid for; nothing is charged."""
    if member.ledger is None:
        return None
    identity = member.identity
    found = member.ledger.paid_release(account or identity.name, member.hash, version=identity.version)
    return None if found is None else _noisy_of(found, certificate_body(member), member)


def held_run(
    member: Member,
    ledger: Charger,
    instalments: int,
    *,
    who: str,
    purpose: str,
    account: str | None,
    key: str | None,
) -> tuple[Any, Any]:
    """Charge a whole run, or find it if it was charged; return it with the body of its certificate."""
    body = certificate_body(member)
    try:
        held = ledger.run(
            account or member.identity.name,
            member.cost,
            instalments=instalments,
            **_recorded(member, body, who, purpose, key),
        )
    except TacitError as refusal:
        raise in_promised_words(refusal, member.promised) from None
    return held, body


def _recorded(member: Member, body: Any, who: str, purpose: str, key: str | None) -> dict[str, Any]:
    """Return what the ledger records of a charge, whether it pays for one draw or for a run."""
    return {
        "plan": member.hash,
        "who": who,
        "purpose": purpose,
        "asked": member.asked,
        "record": member.record,
        "key": key,
        "dataset": member.identity.name,
        "version": member.identity.version,
        "certificate": digest_of(body),
        **({"blocks": member.blocks} if member.blocks else {}),
    }


def _noisy_of(drawn: Any, body: Any, member: Member) -> tuple[list[Any], Certificate]:
    """Return the noisy integers that a ledger has stored, and the certificate with them."""
    stored = json.loads(drawn.payload)
    return stored["noisy"], Certificate.of_draw(
        drawn.receipt, stored.get("certificate"), body, drawn.payload, getattr(member.ledger, "kept", "")
    )
