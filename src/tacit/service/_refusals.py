"""The service's own refusals, beside those of the library: who may not do what, and what cannot be read."""

from __future__ import annotations

from tacit.errors import TacitError


def not_signed_in() -> TacitError:
    """Refuse somebody whom the service does not know."""
    return TacitError(
        "not-signed-in",
        "this needs a signed-in person or a valid token",
        fix="sign in, or send the header Authorization: Bearer TOKEN",
    )


def not_permitted(what: str = "your role does not allow this") -> TacitError:
    """Refuse somebody whose role, grant or token does not allow the operation."""
    return TacitError(
        "not-permitted", what, fix="ask the owner of the dataset or an administrator for the role"
    )


def not_found() -> TacitError:
    """Answer alike for what does not exist and for what this person may not see."""
    return TacitError(
        "not-found", "there is nothing here that you may see", fix="check the address, or ask for access"
    )


def body_unreadable(why: str) -> TacitError:
    """Refuse a body; ``why`` never repeats what was sent."""
    return TacitError("body-unreadable", "the body of the request cannot be read", why=why)


def field_missing(name: str, fix: str) -> TacitError:
    """Refuse a body in which a field that is needed here is empty or not there."""
    return TacitError("bad-parameter", f"the field {name} is missing", fix=fix)


def form_expired() -> TacitError:
    """Refuse a form that was not made for this session."""
    return TacitError(
        "form-expired",
        "this form has expired or comes from another site",
        why="each form is bound to the session that opened it",
        fix="open the page again and send the form once more",
    )


def body_too_large(most: int) -> TacitError:
    """Refuse a body, a form or a document that is larger than its limit."""
    return TacitError(
        "body-too-large",
        f"the body is larger than {most // 1024:,} KiB",
        fix="send less at once; long lists of keys belong in the policy of the dataset",
    )
