"""Tokens: secrets by which a person's programs are known, for some uses, for one dataset or all, for a time.

The service keeps a digest only, and shows a token once. A token that makes another one passes on at most what
it may do itself, and withdrawing it withdraws whatever was made with it: a stolen token leaves nothing.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from tacit.errors import TacitError
from tacit.service._bodies import Body, DisplayName, MaybeDataset, cursor_of, limit_of, part
from tacit.service._operations import SCOPES, Answer, Operation, Rule, ServiceCall, TokenScope
from tacit.service._refusals import field_missing, not_found, not_permitted
from tacit.service._times import new_id, new_secret, now_text
from tacit.service.access._sessions import digest_of_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._database import Change, Database, ServiceRow
    from tacit.service._operations import Caller

PREFIX = "tct_"
_MAX_DAYS = 400
_MAX_TOKENS = 100
#: The roles of which one is needed for a use; everybody may read.
_ROLES_OF_USE: Final = {
    "plan": {"analyst"},
    "ask": {"analyst"},
    "curate": {"curator", "owner"},
    "audit": {"auditor", "admin"},
    "admin": {"admin"},
}
_SIGNED_IN = Rule(frozenset())
_SELECT = "SELECT id, label, scopes, dataset, created, expires, revoked, parent FROM tokens"


def _words(scopes: object) -> object:
    """Read what a form sends for several choices."""
    return scopes.split() if isinstance(scopes, str) else scopes


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError("must be a day such as 2030-12-31") from None


class TokenRequest(Body):
    """A new token: what it is for, its uses, its dataset (empty for all), and its last day (UTC)."""

    label: DisplayName
    scopes: Annotated[list[TokenScope], BeforeValidator(_words), Field(min_length=1, max_length=len(SCOPES))]
    dataset: MaybeDataset = ""
    until: Annotated[str, StringConstraints(min_length=10, max_length=10), AfterValidator(_day)]


def tokens_of(database: Database, person: str) -> list[dict[str, Any]]:
    """Return the tokens of a person that work, newest first; their secrets are not known."""
    rows = database.rows(
        _SELECT + " WHERE person = ? AND revoked = 0 AND expires > ?"
        " ORDER BY created DESC, id LIMIT ?",
        person, now_text(), _MAX_TOKENS,
    )  # fmt: skip
    return [_shown(row) for row in rows]


def _list(call: ServiceCall) -> dict[str, Any]:
    """List one's own tokens, newest first, with those that do not work any more.

    A token for one dataset sees those for the same dataset alone.
    """
    limit, after = limit_of(call), cursor_of(call)
    me, only = call.person.id, call.person.only
    rows = call.service.database.rows(
        _SELECT + " WHERE person = ? AND (? = '' OR dataset = ?) AND (? = ''"  # noqa: S608 - constants only
        " OR created < (SELECT created FROM tokens WHERE id = ? AND person = ?)"
        " OR (created = (SELECT created FROM tokens WHERE id = ? AND person = ?) AND id > ?))"
        " ORDER BY created DESC, id LIMIT ?",
        me, only, only, after, after, me, after, me, after, limit + 1,
    )  # fmt: skip
    return {**part("tokens", [_shown(row) for row in rows], limit, "id"), **_form(call, {})}


def _form(call: ServiceCall, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return what the form for a new token offers."""
    last_day = datetime.now(UTC).date() + timedelta(days=_MAX_DAYS)
    usual = datetime.now(UTC).date() + timedelta(days=90)
    return {
        "scopes": [
            scope for scope in SCOPES if scope in call.person.scopes and _is_of_use(call.person, scope)
        ],
        "chosen": fields.get("scopes", "read plan").split(),
        "label": fields.get("label", "")[:100],
        "dataset": fields.get("dataset", "")[:100],
        "until": fields.get("until", usual.isoformat())[:10],
        "last_day": last_day.isoformat(),
    }


def _is_of_use(caller: Caller, scope: str) -> bool:
    """Whether a role of the person allows what a use is for."""
    return scope not in _ROLES_OF_USE or bool(_ROLES_OF_USE[scope] & caller.roles)


def _make(call: ServiceCall) -> Answer:
    """Make a token and show it once."""
    body: TokenRequest = call.body
    caller, service = call.person, call.service
    _check_request(call, body)
    secret, token = new_secret(PREFIX), new_id("t")
    expires = f"{date.fromisoformat(body.until) + timedelta(days=1)}T00:00:00.000000Z"
    with service.database.change() as change:
        _check_room(change, call, expires)
        change.run(
            "INSERT INTO tokens (id, person, label, digest, scopes, dataset, created, expires, parent)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            token, caller.id, body.label, digest_of_secret(secret), " ".join(sorted(set(body.scopes))),
            body.dataset, now_text(), expires, caller.token,
        )  # fmt: skip
        service.record(change, caller.id, "token-made", token, call.id)
        row = _row(change, token)
    return Answer({"token": _shown(row), "secret": secret}, 201)


def _check_request(call: ServiceCall, body: TokenRequest) -> None:
    caller = call.person
    today = datetime.now(UTC).date()
    if not body.label:
        raise field_missing("label", "say what the token is for")
    if not today <= date.fromisoformat(body.until) <= today + timedelta(days=_MAX_DAYS):
        raise TacitError(
            "bad-parameter",
            f"the last day of a token is today or at most {_MAX_DAYS} days later",
            why="a token that nobody remembers should end by itself",
        )
    if not set(body.scopes) <= caller.scopes or (caller.only and body.dataset != caller.only):
        raise not_permitted("a token cannot make a token that may do more than itself")
    if body.dataset and not caller.roles_on(body.dataset):
        raise not_found()


def _check_room(change: Change, call: ServiceCall, expires: str) -> None:
    """Refuse a token that outlives the one that makes it, or one too many."""
    caller = call.person
    if caller.token:
        parent = _row(change, caller.token)
        if parent["revoked"] or parent["expires"] < expires:
            raise not_permitted("a token cannot make a token that lasts longer than itself")
    working = change.rows(
        "SELECT id FROM tokens WHERE person = ? AND revoked = 0 AND expires > ? LIMIT ?",
        caller.id, now_text(), _MAX_TOKENS,
    )  # fmt: skip
    if len(working) >= _MAX_TOKENS:
        raise TacitError(
            "bad-parameter", f"you have {_MAX_TOKENS} tokens already", fix="withdraw those you do not need"
        )


def _withdraw(call: ServiceCall) -> Answer:
    """Withdraw a token and all that were made with it: one's own, or anybody's for an administrator."""
    caller = call.person
    with call.service.database.change() as change:
        row = change.row("SELECT id, person, scopes, dataset FROM tokens WHERE id = ?", call.path["token"])
        is_own = row is not None and row["person"] == caller.id
        if row is None or not (is_own or ("admin" in caller.scopes and caller.may("admin"))):
            raise not_found()
        if is_own and not _covers(caller, row):
            raise not_permitted("a token cannot withdraw a token that may do more than itself")
        withdrawn = [row["id"]]
        for token in withdrawn:
            withdrawn += [one["id"] for one in change.rows("SELECT id FROM tokens WHERE parent = ?", token)]
            change.run("UPDATE tokens SET revoked = 1 WHERE id = ?", token)
        call.service.record(change, caller.id, "token-withdrawn", row["id"], call.id)
    location = "/tokens" if is_own else f"/users/{row['person']}"
    return Answer({"withdrawn": withdrawn}, location=location)


def _covers(caller: Caller, row: ServiceRow) -> bool:
    """Whether the caller may do whatever a token may: a session may, a token for less may not."""
    return set(row["scopes"].split()) <= caller.scopes and caller.only in {"", row["dataset"]}


def _row(change: Change, token: str) -> ServiceRow:
    row = change.row(_SELECT + " WHERE id = ?", token)
    if row is None:
        raise not_found()
    return row


def _shown(row: ServiceRow) -> dict[str, Any]:
    state = "withdrawn" if row["revoked"] else "expired" if row["expires"] <= now_text() else "works"
    last_day = date.fromisoformat(row["expires"][:10]) - timedelta(days=1)
    return {
        "id": row["id"],
        "label": row["label"],
        "scopes": row["scopes"].split(),
        "dataset": row["dataset"],
        "created": row["created"],
        "until": last_day.isoformat(),
        "state": state,
        "made_with": row["parent"],
    }


OPERATIONS = (
    Operation("GET", "/tokens", _SIGNED_IN, _list, page="access/tokens.html", summary="List your tokens"),
    Operation(
        "POST", "/tokens", _SIGNED_IN, _make, TokenRequest, "access/token.html", _form,
        summary="Make a token; it is shown once",
    ),
    Operation("POST", "/tokens/{token}/withdraw", _SIGNED_IN, _withdraw, summary="Withdraw a token"),
)  # fmt: skip
