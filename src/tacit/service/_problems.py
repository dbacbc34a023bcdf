"""Problems as RFC 9457 has them: one table of status codes, one door, nothing of the input in the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tacit.service._fix_words import fix_data, fix_words

if TYPE_CHECKING:
    from tacit.errors import TacitError

#: The status of each code; all others are refusals of planning (422).
STATUS: Final[dict[str, int]] = {
    "bad-parameter": 400, "bad-sql": 400, "bad-certificate": 400, "bad-release": 400, "body-unreadable": 400,
    "form-expired": 403, "sign-on-failed": 403, "body-too-large": 413, "too-many-requests": 429,
    "not-signed-in": 401, "not-permitted": 403, "no-allotment": 403, "own-request": 403, "not-found": 404,
    "key-reused": 409, "account-differs": 409, "spent": 409, "run-spent": 409, "already-decided": 409,
    "budget-exceeded": 403, "charge-too-large": 403, "account-expired": 403, "account-frozen": 403,
    "release-failed": 500, "service-failed": 500, "dataset-paused": 503, "drawer-away": 503,
    "clock-behind": 503,
    **dict.fromkeys((
        "ledger-closed", "ledger-sealed", "ledger-locked", "ledger-unavailable", "ledger-read-only",
        "ledger-damaged", "ledger-rolled-back", "ledger-tampered", "ledger-key", "ledger-newer",
        "not-a-ledger", "not-durable", "disk-full", "artifact-lost", "missing-extra",
        "randomness-failed", "cannot-write",
    ), 503),
}  # fmt: skip
#: What a person outside may know of a failure whose details name files and servers.
_OPERATOR = "the service cannot do this now; its operator sees the reason"


def status_of(code: str) -> int:
    """Return the status of a code."""
    return STATUS.get(code, 422)


def problem_of(error: TacitError, request: str) -> dict[str, Any]:
    """Return a refusal as a problem document; details of the operator's troubles stay with the operator."""
    status = status_of(error.code)
    hidden = status == 503 and error.code not in {"dataset-paused", "drawer-away"}
    what, why, fix = (_OPERATOR, "", "") if hidden else (error.what, error.why, fix_words(error))
    return {
        "type": f"/errors/{error.code}",
        "title": what,
        "status": status,
        "detail": what,
        "why": why,
        "fix": fix,
        "fix_data": None if hidden else fix_data(error),
        "code": error.code,
        "request": request,
    }
