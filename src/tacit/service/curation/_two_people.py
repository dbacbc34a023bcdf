"""The rule of two people, so that an administrator who makes accounts and gives roles is not two people.

Roles are accounts, not people. Whoever gives a role, or makes a link with which a password is chosen, may be
sitting at the other account. So for a waiting time both count as the person who did that. After it, those who
look at the list of people and at the audit events have had time to object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.service._times import later_text
from tacit.service.curation._people import names_of

if TYPE_CHECKING:
    from tacit.service._database import Change, Database

__all__ = ["check_two_people", "decides_as", "roles_given"]

_CURATES = ("curator", "owner")


def check_two_people(change: Change, first: str, second: str, dataset: str, days: int) -> None:
    """Refuse a decision about a budget if the two who agree may be one person.

    Guarantee: the two accounts stand for two people who both have held a curator's or an owner's role on the
    dataset for the waiting time, or who gave or made it. A first owner and whoever declared the dataset gave
    the role to themselves, and count at once.
    """
    ones, others = (decides_as(change, person, dataset, days) for person in (first, second))
    if not any(one != other for one in ones for other in others):
        raise TacitError(
            "not-permitted",
            "these two accounts do not count as two people yet",
            why=f"for {days} days, a role counts as that of the person who gave it, and an account whose "
            "password was chosen with a link counts as that of the person who made the link",
            fix="let another owner or curator of the dataset decide, or wait until the days have passed",
        )


def decides_as(change: Change, person: str, dataset: str, days: int) -> frozenset[str]:
    """Return the people as whom an account decides about a dataset; empty if it may not decide.

    It is the person, once roles and password are older than the waiting time.
    """
    since = later_text(days=-days)
    counted = _counted(change, person, dataset, since, frozenset())
    link = change.row(
        "SELECT made_by FROM made_links WHERE person = ? AND used <> '' AND used > ? ORDER BY used DESC",
        person, since,
    )  # fmt: skip
    first = link is not None and link["made_by"] == ""  # the operator's, for the first administrator
    if not counted or link is None or first:
        return counted
    return frozenset({link["made_by"]})


def _counted(change: Change, person: str, dataset: str, since: str, asked: frozenset[str]) -> frozenset[str]:
    """Return as whom the roles of an account count: of the person, or of those who gave them."""
    found: frozenset[str] = frozenset()
    for row in _grants(change, person, dataset):
        giver = row["granted_by"]
        if row["granted"] <= since or giver == person:
            found |= {person}
        elif giver not in asked:
            found |= _counted(change, giver, dataset, since, asked | {person})
    return found


def _grants(change: Change | Database, person: str, dataset: str) -> list[dict[str, Any]]:
    return change.rows(
        "SELECT g.role, g.dataset, g.granted_by, g.granted FROM grants g JOIN users u ON u.id = g.person"
        " WHERE g.person = ? AND g.dataset IN ('', ?) AND g.role IN (?, ?) AND u.disabled = 0"
        " ORDER BY g.granted",
        person, dataset, *_CURATES,
    )  # fmt: skip


def roles_given(database: Database, people: list[str], dataset: str) -> list[dict[str, str]]:
    """Return since when the people of a request have their roles, and who gave them, for whoever decides."""
    rows = [{**row, "person": one} for one in people for row in _grants(database, one, dataset)]
    names = names_of(database, [row[who] for row in rows for who in ("person", "granted_by")])
    return [
        {
            "person_name": names.get(row["person"], row["person"]),
            "role": row["role"],
            "given": row["granted"],
            "given_by_name": "themselves"
            if row["granted_by"] == row["person"]
            else names.get(row["granted_by"], row["granted_by"]),
        }
        for row in rows
    ]
