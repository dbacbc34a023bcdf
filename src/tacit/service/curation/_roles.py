"""Who has which role now, read inside the transaction that relies on it; and refusals of whoever lacks one.

Pages show the names of people that are read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.service._refusals import not_found, not_permitted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from tacit.service._database import Change, Database
    from tacit.service._operations import Role, ServiceCall


def roles_now(change: Change | Database, person: str, dataset: str) -> frozenset[str]:
    """Return the roles that a person has on a dataset at this moment; nobody who is disabled has any.

    A call knows the roles of its start. What decides about a budget reads them again, in its transaction.
    """
    roles = frozenset(
        row["role"]
        for row in change.rows(
            "SELECT g.role FROM grants g JOIN users u ON u.id = g.person"
            " WHERE g.person = ? AND g.dataset IN ('', ?) AND u.disabled = 0",
            person,
            dataset,
        )
    )
    return roles | {"curator"} if "owner" in roles else roles


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
    ids = sorted(set(people))
    names: dict[str, str] = {}
    for start in range(0, len(ids), 500):
        part = ids[start : start + 500]
        marks = ", ".join("?" * len(part))
        rows = database.rows(f"SELECT id, shown FROM users WHERE erased = 0 AND id IN ({marks})", *part)  # noqa: S608
        names |= {row["id"]: row["shown"] for row in rows}
    return names


def seen_dataset(call: ServiceCall, dataset: str) -> str:
    """Return the name of a dataset on which the caller has a role; refuse every other one as not found."""
    if call.caller is None or not call.caller.roles_on(dataset):
        raise not_found()
    return call.service.dataset(dataset).name


def needs_role(roles: Collection[str], role: Role) -> None:
    """Refuse whoever does not have a role now."""
    if role not in roles:
        raise not_permitted()


def own_request() -> TacitError:
    """Refuse a decision about one's own request."""
    return TacitError(
        "own-request",
        "nobody decides their own request, and nobody opens an account for themselves",
        why="a budget is an agreement between people: one person asks, another person decides",
        fix="ask another owner or curator of the dataset to decide",
    )


def already_decided() -> TacitError:
    """Refuse a second decision."""
    return TacitError(
        "already-decided",
        "this request was decided before",
        why="a request is decided once",
        fix="make a new request",
    )


def changed_meanwhile() -> TacitError:
    """Refuse a change of something that somebody else has just changed."""
    return TacitError(
        "already-decided",
        "somebody else has changed this dataset in the meantime",
        fix="open the page again, look at what has changed, and try again",
    )
