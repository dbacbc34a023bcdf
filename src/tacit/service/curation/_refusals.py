"""The refusals of curation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.service._refusals import not_permitted

if TYPE_CHECKING:
    from collections.abc import Collection

    from tacit.service._callers import Role


def needs_role(held: Collection[str], role: Role) -> None:
    """Refuse whoever does not have a role now."""
    if role not in held:
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


def no_allotment(dataset: str) -> TacitError:
    """Refuse to charge somebody who has no account for the dataset."""
    return TacitError(
        "no-allotment",
        f"you have no allotment of the budget of {dataset} that can pay for this",
        why="questions are paid from an allotment that a curator has approved",
        fix="ask the curator for an allotment: the form is on the page of the dataset",
    )
