"""Amounts as the service reads and writes them: exact numbers as text, a float beside each, and words.

Curation's forms and bodies share the fields here: amounts, last days, reasons. A budget's meaning is written
in odds and in one sentence; the words are those of plans and of `tacit.explain`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, StringConstraints, WithJsonSchema

from tacit.accounting import Budget, Filter
from tacit.core import Unit, odds_factor
from tacit.service._bodies import Body, ExactNumber, empty_as_none

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.accounting import Remaining
    from tacit.core import Plan
    from tacit.ledger import Account

_TEXT = r"^[^\x00]*$"


def amount_document(
    epsilon: Fraction | None = None, delta: Fraction = Fraction(0), rho: Fraction | None = None
) -> dict[str, Any]:
    """Return an amount of privacy loss: ``exact`` texts and ``value`` floats under the same names.

    Examples
    --------
    >>> amount_document(Fraction(1, 2))["exact"]
    {'epsilon': '1/2', 'delta': '0', 'rho': None}
    """
    parts = {"epsilon": epsilon, "delta": delta, "rho": rho}
    numbers = {name: one for name, one in parts.items() if one is not None and (one or name != "delta")}
    return {
        "exact": {name: None if one is None else str(one) for name, one in parts.items()},
        "value": {name: None if one is None else float(one) for name, one in parts.items()},
        "words": ", ".join(f"{name} {float(one):g}" for name, one in numbers.items() if one) or "nothing",
    }


def budget_text(budget: Budget) -> dict[str, str | None]:
    """Return a budget as a policy or a request keeps it: exact numbers as text.

    Examples
    --------
    >>> budget_text(Budget(rho=0.1))
    {'epsilon': None, 'delta': '0', 'rho': '1/10'}
    """
    parts = (("epsilon", budget.epsilon), ("delta", budget.delta), ("rho", budget.rho))
    return {name: None if one is None else str(one) for name, one in parts}


def budget_from(document: Mapping[str, str | Fraction | None]) -> Budget:
    """Read a budget from exact texts or numbers; what is missing or empty is not part of it.

    Examples
    --------
    >>> budget_from({"epsilon": "1/2", "rho": ""})
    Budget(epsilon=0.5)
    """
    numbers = {name: Fraction(one) for name, one in document.items() if one not in (None, "")}
    return Budget(numbers.get("epsilon"), numbers.get("delta", Fraction(0)), rho=numbers.get("rho"))


def budget_document(budget: Budget) -> dict[str, Any]:
    """Return a budget as an amount."""
    return amount_document(budget.epsilon, budget.delta, budget.rho)


def main_name(budget: Budget) -> str:
    """Return the number in which a budget is counted: ``epsilon`` or ``rho``."""
    return "epsilon" if budget.rho is None else "rho"


def left_document(remaining: Remaining) -> dict[str, Any]:
    """Return what is left, in the number in which the budget is counted."""
    budget = remaining.of
    name = "epsilon" if budget is None else main_name(budget)
    document = amount_document(**{name: getattr(remaining, name) or Fraction(0)}, delta=remaining.delta)
    return {**document, "words": str(remaining)}


def spent_document(account: Account) -> dict[str, Any]:
    """Return what was spent: the budget less what is left, so that the three always agree."""
    name, remaining = main_name(account.budget), account.filter.remaining
    total = getattr(account.budget, name)
    return amount_document(**{name: total - (getattr(remaining, name) or Fraction(0))})


def plan_budget(plan: Plan[Any]) -> Budget:
    """Return the budget that one plan fills: its cost in epsilon or in rho, else what it promises.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.protect("visits.csv", unit="pid", budget=tc.Budget(epsilon=1))
    >>> plan_budget(visits.agg(n=tc.count()).plan(epsilon=0.25))
    Budget(epsilon=0.25)
    """
    cost, spend = plan.cost, plan.cost.spend
    tried = []
    if spend.epsilon:
        tried.append(Budget(spend.epsilon, spend.delta))
    elif spend.epsilon is None and spend.rho:
        tried.append(Budget(rho=spend.rho, delta=spend.delta))
    for budget in tried:
        start = Filter.start(budget)
        if start.charged(start.spend_of(cost, plan.promise), cost.fits) is not None:
            return budget
    return Budget(plan.promised.get("epsilon"), plan.promised.get("delta", 0), rho=plan.promised.get("rho"))


def last_day_of(expires: datetime | None) -> str:
    """Return the last day of an account as text; empty without one."""
    return "" if expires is None else (expires - timedelta(microseconds=1)).date().isoformat()


def _day(value: object) -> str:
    """Read a last day such as 2030-12-31, or nothing."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return ""
    try:
        day = date.fromisoformat(value) if isinstance(value, str) and len(value) == 10 else None
    except ValueError:
        day = None
    if day is None or not 2000 <= day.year <= 9000:
        raise ValueError("must be a day such as 2030-12-31")
    return day.isoformat()


def _words(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value.strip()


#: An exact number that may be left empty in a form.
OptionalNumber = Annotated[
    ExactNumber | None,
    BeforeValidator(empty_as_none),
    WithJsonSchema({"anyOf": [{"type": "string", "maxLength": 60}, {"type": "number"}, {"type": "null"}]}),
]
LastDay = Annotated[str, BeforeValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]
#: A sentence for people that the ledger keeps, so it is shorter than the ledger's limit.
Sentence = Annotated[str, StringConstraints(max_length=1000, pattern=_TEXT)]
Reason = Annotated[Sentence, AfterValidator(_words)]


class ReasonBody(Body):
    """A decision with its reason."""

    reason: Reason


class AmountBody(Body):
    """An amount of the budget, in epsilon or in rho."""

    epsilon: OptionalNumber = None
    delta: OptionalNumber = None
    rho: OptionalNumber = None

    def budget(self) -> Budget:
        """Return the amount as a budget, or refuse what is not one."""
        return Budget(self.epsilon, Fraction(0) if self.delta is None else self.delta, rho=self.rho)

    def is_given(self) -> bool:
        """Whether any number is given."""
        return any(one is not None for one in (self.epsilon, self.delta, self.rho))


def read_last_day(text: str) -> date | None:
    """Return a last day for the ledger; refuse one that has passed."""
    from tacit.errors import TacitError

    if not text:
        return None
    day = date.fromisoformat(text)
    if day < datetime.now(UTC).date():
        raise TacitError(
            "bad-parameter", "the last day has passed", fix="choose today or a later day, in UTC"
        )
    return day


def budget_meaning(
    budget: Budget, noun: str, adjacency: str, subject: str = "all answers together move"
) -> dict[str, Any]:
    """Return what the answers of a budget together can reveal about one unit.

    ``subject`` is the subject of the sentence with its verb.

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
            belief = believe(prior, float(loss))
            beliefs.append({"prior": prior, "at_least": belief.at_least, "at_most": belief.at_most})
    return {
        "odds": None if loss is None else odds_factor(loss),
        "sentence": promise_sentence(budget, noun, adjacency, subject),
        "attacker": told.sentence,
        "beliefs": beliefs,
    }


def promise_sentence(budget: Budget, noun: str, adjacency: str, subject: str) -> str:
    """Say how far something can move the odds about one unit; ``subject`` is subject and verb.

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
        return f"{subject} {about} by a random factor that {rho} limits; rho sets no largest factor"
    text = f"{subject} {about} by at most a factor of {odds_factor(budget.epsilon)}"
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
