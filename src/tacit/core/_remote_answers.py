"""Answers from a service: a plan whose ledger is far away sends its document and reads the release back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.core._release import Release
from tacit.errors import TacitError
from tacit.parameters import Omitted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core._plan import Plan
    from tacit.core._plan_run import Member
    from tacit.core._protocols import AnsweringService


def service_of(members: Sequence[Member]) -> AnsweringService | None:
    """Return the service that charges and draws for a plan; None where this process does."""
    services: list[Any] = [member.ledger for member in members if hasattr(member.ledger, "answer")]
    if not services:
        return None
    if len(members) > 1:
        raise TacitError(
            "not-allowed",
            "datasets of a service cannot be asked together with others",
            why="a service returns the finished answer, and only noisy numbers before that can be added up",
            fix="ask each dataset by itself",
        )
    return services[0]  # type: ignore[no-any-return]


def answer_of(
    service: AnsweringService,
    plan: Plan[Any],
    *,
    who: str = "",
    purpose: str = "",
    account: str | None = None,
    key: str | None = None,
    stored: bool = False,
) -> Release[Any] | None:
    """Send a plan to its service; return the release, or None if only stored ones are asked for.

    Guarantee: the release belongs to this plan; its certificate names the plan's hash.
    """
    Omitted("here", why="the service records who asks by itself", absent="").read("who", who)
    document = service.answer(plan.to_json(), account=account, purpose=purpose, key=key, stored=stored)
    if document is None and stored:
        return None
    release = Release.from_json({} if document is None else document)
    if release.certificate.plan != plan.hash:
        raise TacitError(
            "bad-release",
            "the service returned the answer to another question",
            why="the certificate of the answer names another plan than the one that was sent",
            fix="report this to the people who run the service",
        )
    return release
