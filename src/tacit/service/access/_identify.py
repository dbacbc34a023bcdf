"""Who sends a request: a token in its header, or the session of its cookie.

One indexed query finds the token or session, the person and all grants. Nothing is kept between requests, so
whatever is withdrawn is gone with the next request, in every worker.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from tacit.service._callers import SCOPES, Caller
from tacit.service._times import now_text

if TYPE_CHECKING:
    from starlette.requests import Request

    from tacit.service._database import Database, ServiceRow

SESSION_COOKIE = "tacit_session"
_OF_TOKEN = (
    "SELECT t.id AS token, t.scopes, t.dataset AS only_on, u.id, u.shown, g.dataset, g.role"  # noqa: S105 - a statement
    " FROM tokens t JOIN users u ON u.id = t.person LEFT JOIN grants g ON g.person = u.id"
    " WHERE t.digest = ? AND t.revoked = 0 AND t.expires > ? AND u.disabled = 0"
)
_OF_SESSION = (
    "SELECT s.csrf, u.id, u.shown, g.dataset, g.role"
    " FROM sessions s JOIN users u ON u.id = s.person LEFT JOIN grants g ON g.person = u.id"
    " WHERE s.digest = ? AND s.expires > ? AND u.disabled = 0"
)


def digest_of_secret(secret: str) -> str:
    """Return what the service keeps of a token, a session or a link: random secrets need one hash only."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def identify(database: Database, request: Request, cookie: str = SESSION_COOKIE) -> Caller | None:
    """Return the caller, or None for somebody unknown; a token in the header makes the cookie void."""
    header = request.headers.get("authorization")
    if header is not None:
        scheme, _, secret = header.partition(" ")
        return _of_token(database, secret.strip()) if scheme.lower() == "bearer" else None
    secret = request.cookies.get(cookie, "")
    return _of_session(database, secret) if secret else None


def _of_token(database: Database, secret: str) -> Caller | None:
    rows = database.rows(_OF_TOKEN, digest_of_secret(secret), now_text())
    if not rows:
        return None
    first = rows[0]
    return Caller(
        first["id"], first["shown"], _grants(rows), frozenset(first["scopes"].split()) & set(SCOPES),
        first["only_on"], first["token"],
    )  # fmt: skip


def _of_session(database: Database, secret: str) -> Caller | None:
    rows = database.rows(_OF_SESSION, digest_of_secret(secret), now_text())
    return Caller(rows[0]["id"], rows[0]["shown"], _grants(rows), csrf=rows[0]["csrf"]) if rows else None


def _grants(rows: list[ServiceRow]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for row in rows:
        if row["role"] is not None:
            found[row["dataset"]] = found.get(row["dataset"], frozenset()) | {row["role"]}
    return found
