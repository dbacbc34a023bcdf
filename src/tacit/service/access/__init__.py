"""Who may do what: people, passwords, sessions, tokens, grants, single sign-on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.service.access import _events, _grants, _people, _sign_in, _single_sign_on, _tokens
from tacit.service.access._grants import give_role, still_has
from tacit.service.access._identify import SESSION_COOKIE, digest_of_secret, identify
from tacit.service.access._links import first_link, link_for, links_made_for
from tacit.service.access._paging import cursor_of

if TYPE_CHECKING:
    from tacit.service._operations import Operation

__all__ = [
    "OPERATIONS", "SESSION_COOKIE", "cursor_of", "digest_of_secret", "first_link", "give_role", "identify",
    "link_for", "links_made_for", "still_has",
]  # fmt: skip

OPERATIONS: tuple[Operation, ...] = (
    *_sign_in.OPERATIONS,
    *_single_sign_on.OPERATIONS,
    *_people.OPERATIONS,
    *_grants.OPERATIONS,
    *_tokens.OPERATIONS,
    *_events.OPERATIONS,
)
