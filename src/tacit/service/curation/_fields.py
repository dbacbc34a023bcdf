"""Fields of forms and bodies that curation shares: amounts, last days, reasons."""

from __future__ import annotations

from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, StringConstraints, WithJsonSchema

from tacit.accounting import Budget
from tacit.service._bodies import Body, ExactNumber, empty_as_none

_TEXT = r"^[^\x00]*$"


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
