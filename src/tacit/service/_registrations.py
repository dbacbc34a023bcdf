"""Releases that a curator registered: who did, when, and what the service knows of their charge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tacit.service._database import Change, Database

#: What the service says of the charge of a registered release.
CHARGE_WORDS: Final = {
    "bound": (
        "The charge is in the ledger of this service. The certificate agrees with it and was made for these "
        "values."
    ),
    "here": (
        "The charge is in the ledger of this service, and the certificate agrees with it. The values are "
        "those that the curator sent: they were not verified, because the certificate was not made for them."
    ),
    "elsewhere": "Charged in another ledger; not verified here.",
    "none": (
        "The answers were randomized on the respondents' devices: no ledger was charged, so nothing can be "
        "verified here."
    ),
}


def registration_of(database: Database | Change, release: str) -> dict[str, Any] | None:
    """Return who registered a release, and what is known of its charge; None if it was drawn here."""
    row = database.row(
        "SELECT r.person, r.charge, r.note, r.created, u.shown, u.erased FROM registrations r"
        " LEFT JOIN users u ON u.id = r.person WHERE r.release = ?",
        release,
    )
    if row is None:
        return None
    return {
        "by": row["person"],
        "by_name": "" if row["erased"] or row["shown"] is None else row["shown"],
        "at": row["created"],
        "charge": row["charge"],
        "verified": row["charge"] == "bound",
        "sentence": CHARGE_WORDS[row["charge"]],
        "note": row["note"],
    }
