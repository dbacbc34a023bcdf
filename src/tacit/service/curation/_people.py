"""Who has which role now, read inside the transaction that relies on it; and the names that pages show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.service._refusals import not_found

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.service._database import Change, Database
    from tacit.service._operations import ServiceCall


def roles_now(change: Change | Database, person: str, dataset: str) -> frozenset[str]:
    """Return the roles that a person has on a dataset at this moment; nobody who is disabled has any.

    A call knows the roles of its start. What decides about a budget reads them again, in its transaction.
    """
    found = frozenset(
        row["role"]
        for row in change.rows(
            "SELECT g.role FROM grants g JOIN users u ON u.id = g.person"
            " WHERE g.person = ? AND g.dataset IN ('', ?) AND u.disabled = 0",
            person,
            dataset,
        )
    )
    return found | {"curator"} if "owner" in found else found


def analysts_of(database: Database, dataset: str, without: str) -> list[tuple[str, str]]:
    """Return the ids and names of a dataset's analysts, for a form; without the person who fills it in."""
    rows = database.rows(
        "SELECT DISTINCT u.id, u.shown FROM users u JOIN grants g ON g.person = u.id"
        " WHERE g.role = 'analyst' AND g.dataset IN ('', ?) AND u.disabled = 0 AND u.id <> ?"
        " ORDER BY u.shown",
        dataset,
        without,
    )
    return [(row["id"], row["shown"]) for row in rows]


def names_of(database: Database, people: Iterable[str]) -> dict[str, str]:
    """Return the shown names of people by id; whoever was erased is not among them."""
    wanted = sorted(set(people))
    found: dict[str, str] = {}
    for start in range(0, len(wanted), 500):
        part = wanted[start : start + 500]
        marks = ", ".join("?" * len(part))
        rows = database.rows(f"SELECT id, shown FROM users WHERE erased = 0 AND id IN ({marks})", *part)  # noqa: S608
        found |= {row["id"]: row["shown"] for row in rows}
    return found


def seen_dataset(call: ServiceCall, dataset: str) -> str:
    """Return the name of a dataset on which the caller has a role; refuse every other one as not found."""
    if call.caller is None or not call.caller.roles_on(dataset):
        raise not_found()
    return call.service.dataset(dataset).name
