"""The account that pays for questions to a service, read from what the service shows of a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.accounting import Budget, Filter, Remaining
from tacit.errors import TacitError, bad_parameter
from tacit.exact import read_fraction
from tacit.fixes import Set

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """An account at a service: its name, its budget and what is left of it.

    Parameters
    ----------
    name, purpose
        Its name, and what it may be spent for.
    budget
        What may be learned in total.
    remaining
        What can be used now: what is left here, or of the dataset if that is less.
    state
        What was spent, in every detail; None where the service does not show it.
    """

    name: str
    purpose: str
    budget: Budget
    remaining: Remaining
    state: Filter | None = None

    @property
    def filter(self) -> Filter:
        """The budget and what was spent of it."""
        if self.state is None:
            raise TacitError(
                "not-allowed",
                "the service does not show in detail how much of an account was spent",
                fix="ask the service for the price of the question",
            )
        return self.state


def check_purpose(purpose: str) -> None:
    """Refuse a question or a request that does not say what its answers are for."""
    if not purpose.strip():
        raise bad_parameter("purpose", "what the answer is for", purpose, fix=Set(purpose="monthly report"))


def paying_account(document: Mapping[str, Any], named: str | None) -> ServiceAccount | None:
    """Return the account that pays: the one that was named, else the newest allotment, else the dataset's.

    None if there is no account of that name. The service chooses in the same way, but for a question that was
    paid for, or approved, it takes the account that paid or was opened for it.
    """
    below = [one for one in document["accounts"] if one.get("mine", not document.get("oversees", False))]
    if named is not None:
        found = [one for one in document["accounts"] if one["account"] == named]
    else:
        found = sorted((one for one in below if not one.get("plan")), key=_age)[-1:]
    if found:
        return _account(found[0], str(found[0]["account"]))
    return None if named is not None else _account(document, str(document["name"]))


def _age(account: Mapping[str, Any]) -> tuple[str, str]:
    return str(account.get("created", "")), str(account["account"])


def _account(shown: Mapping[str, Any], name: str) -> ServiceAccount:
    whole = _amounts(shown["budget"])
    budget = Budget(whole["epsilon"], whole["delta"] or 0, rho=whole["rho"])
    left = _amounts(shown.get("left_to_use", shown["left"]))
    remaining = Remaining(left["epsilon"], left["delta"] or Fraction(0), left["rho"], budget)
    state = shown.get("filter")
    purpose = str(shown.get("purpose", ""))
    return ServiceAccount(
        name, purpose, budget, remaining, None if state is None else Filter.from_json(state)
    )


def _amounts(written: Mapping[str, Any]) -> dict[str, Fraction | None]:
    """Read an amount: exact numbers as text."""
    exact = written["exact"]
    return {name: _number(exact.get(name)) for name in ("epsilon", "delta", "rho")}


def _number(text: str | None) -> Fraction | None:
    return None if text is None else read_fraction(text if "/" in text else f"{text}/1")
