"""The rule of two people, so that an administrator who makes accounts and gives roles is not two people.

Roles are accounts, not people. Whoever gives a role, or makes a link with which a password is chosen, may be
sitting at the other account. So for a waiting time both count as the person who did that, and so on: whoever
did that may be somebody whose own role or link is as new. After the waiting time, those who look at the list
of people and at the audit events have had time to object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.service._times import later_text
from tacit.service.curation._people import names_of

if TYPE_CHECKING:
    from tacit.service._database import Change, Database

_CURATES = ("curator", "owner")


def check_two_people(change: Change, first: str, second: str, dataset: str, days: int) -> None:
    """Refuse a decision about a budget if the two who agree may be one person.

    Guarantee: the two accounts stand for two people who both have held a curator's or an owner's role on the
    dataset for the waiting time, or who gave or made it. A first owner and whoever declared the dataset gave
    the role to themselves, and count at once.
    """
    since = later_text(days=-days)
    ones, others = (_hands(change, person, dataset, since, frozenset()) for person in (first, second))
    if not any(one.isdisjoint(other) for one in ones for other in others):
        raise TacitError(
            "not-permitted",
            "these two accounts do not count as two people yet",
            why=f"for {days} days, a role counts as that of the person who gave it, and an account whose "
            "password was chosen with a link counts as that of the person who made the link",
            fix="let another owner or curator of the dataset decide, or wait until the days have passed",
        )


def _hands(
    change: Change, person: str, dataset: str, since: str, asked: frozenset[str]
) -> set[frozenset[str]]:
    """Return, for each role of an account on the dataset, the people in whose hands it may be.

    These are the account itself, whoever made its links, whoever gave the role, and in whose hands those are.
    A role that was given by somebody who has none on the dataset does not count.
    """
    makers = _makers(change, person, since)
    if makers is None:
        return set()
    own = makers | {person}
    found: set[frozenset[str]] = set()
    for row in _grants(change, person, dataset):
        giver = row["granted_by"]
        if row["granted"] <= since or giver == person:
            found.add(own)
        elif giver not in asked:
            found |= {own | more for more in _hands(change, giver, dataset, since, asked | {person})}
    return found


def _makers(change: Change, person: str, since: str) -> frozenset[str] | None:
    """Return who made the links of an account, and the links and the administrator's roles of those people.

    None if somebody among them is no administrator any more: then nobody can say who gave them that role.
    """
    found: set[str] = set()
    ahead = _link_makers(change, person, since)
    while ahead:
        maker = ahead.pop()
        if maker in found:
            continue
        found.add(maker)
        role = change.row(
            "SELECT granted_by, granted FROM grants WHERE person = ? AND dataset = '' AND role = 'admin'",
            maker,
        )
        if role is None:
            return None
        ahead += _link_makers(change, maker, since)
        if role["granted"] > since:
            ahead.append(role["granted_by"])
    return frozenset(found)


def _link_makers(change: Change, person: str, since: str) -> list[str]:
    """Return who made the links that were used; the operator's, for the first administrator, do not count."""
    rows = change.rows(
        "SELECT DISTINCT made_by FROM made_links WHERE person = ? AND used > ? AND made_by <> ''",
        person, since,
    )  # fmt: skip
    return [row["made_by"] for row in rows]


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
