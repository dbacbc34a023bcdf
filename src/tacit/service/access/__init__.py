"""Who may do what: people, passwords, sessions, tokens, grants, single sign-on.

In reading order:

- `_sessions`: who sends a request
- `_passwords`: hashes, and delays against guessing
- `_sign_in`: signing in and out, and one-time links
- `_oidc`: the protocol of single sign-on, and its checks
- `_single_sign_on`: to the provider and back
- `_people`: people, for administrators, and audit events
- `_grants`: roles on one dataset or everywhere
- `_tokens`: secrets of programs
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.service._bodies import cursor_of
from tacit.service.access import _grants, _people, _sign_in, _single_sign_on, _tokens
from tacit.service.access._grants import give_role, still_has
from tacit.service.access._sessions import SESSION_COOKIE, digest_of_secret, identify
from tacit.service.access._sign_in import first_link, link_for, links_made_for

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
    *_people.EVENT_OPERATIONS,
)
