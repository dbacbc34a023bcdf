"""What a budget means, in odds and in one sentence; the words are those of plans and of `tacit.explain`."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.core import Unit, odds_factor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.accounting import Budget


def budget_meaning(
    budget: Budget, noun: str, adjacency: str, what: str = "all answers together move"
) -> dict[str, Any]:
    """Return what the answers of a budget together can reveal about one unit; ``what`` is subject and verb.

    Examples
    --------
    >>> from tacit.accounting import Budget
    >>> budget_meaning(Budget(epsilon=1), "patient", "add/remove")["odds"]
    '2.719'
    """
    from tacit.explain import believe, explain

    told = explain(budget)
    loss = budget.epsilon
    beliefs = []
    if loss is not None and loss < 50:
        for prior in (0.01, 0.1, 0.5, 0.9):
            one = believe(prior, float(loss))
            beliefs.append({"prior": prior, "at_least": one.at_least, "at_most": one.at_most})
    return {
        "odds": None if loss is None else odds_factor(loss),
        "sentence": promise_sentence(budget, noun, adjacency, what),
        "attacker": told.sentence,
        "beliefs": beliefs,
    }


def promise_sentence(budget: Budget, noun: str, adjacency: str, what: str) -> str:
    """Say how far something can move the odds about one unit; ``what`` is subject and verb.

    Examples
    --------
    >>> from tacit.accounting import Budget
    >>> promise_sentence(Budget(epsilon=1), "row", "replace", "this figure moves")
    'this figure moves the odds between any two values that the data of one row may have by at most a factor \
of 2.719'
    """
    about = f"the odds of any fact about one {noun}, such as being in the data,"
    if adjacency == "replace":
        about = f"the odds between any two values that the data of one {noun} may have"
    if budget.epsilon is None:
        rho = f"rho {float(budget.rho or 0):g}"
        return f"{what} {about} by a random factor that {rho} limits; rho sets no largest factor"
    text = f"{what} {about} by at most a factor of {odds_factor(budget.epsilon)}"
    if budget.delta:
        text += f"; this promise may fail completely with probability at most {float(budget.delta):g}"
    return text


def promise_of(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was promised about one unit, as the certificate states it."""
    from tacit.accounting import Budget

    promised = {name: Fraction(value) for name, value in certificate["promised"].items()}
    budget = Budget(promised.get("epsilon"), promised.get("delta", Fraction(0)), rho=promised.get("rho"))
    noun = Unit.from_text(certificate["dataset"]["unit"]).noun
    return {
        "unit": noun,
        "exact": {name: str(value) for name, value in promised.items()},
        "value": {name: float(value) for name, value in promised.items()},
        "sentence": promise_sentence(budget, noun, certificate["dataset"]["adjacency"], "this figure moves"),
    }
