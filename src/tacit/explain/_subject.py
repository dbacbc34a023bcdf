"""The subject to explain: the cost, dataset and counts of a plan, a release or a certificate."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from tacit.accounting import Budget, Cost
from tacit.core import Certificate, Plan, Release
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code
from tacit.mechanisms import DiscreteLaplace

if TYPE_CHECKING:
    from tacit.core import Forecast

_COUNTED: Final = {"rows": "number of rows", "units": "number of people (units)"}


class Priced(Protocol):
    """Anything that has a cost: a mechanism, a plan, a release."""

    @property
    def cost(self) -> Cost:
        """What it takes from a budget."""


#: What `explain` can explain.
Explainable: TypeAlias = Cost | Budget | Priced | Release[Any] | Certificate


def cost_of(subject: Explainable) -> Cost:
    """Return the cost of a subject; a budget costs what it takes to spend all of it."""
    if isinstance(subject, Cost):
        return subject
    promise = promise_of(subject)
    if promise is not None:
        return Cost.from_json(promise.fields["cost"])
    if isinstance(subject, Budget):
        return _whole(subject)
    cost = getattr(subject, "cost", None)
    if isinstance(cost, Cost):
        return cost
    raise bad_parameter(
        "subject",
        "a cost, a budget, or an object that has a cost",
        type(subject).__name__,
        fix=Code("tc.explain(tc.Cost.pure(0.5))"),
    )


def promise_of(subject: object) -> Certificate | None:
    """Return the certificate, if the subject is one or is a release."""
    if isinstance(subject, Release):
        return subject.certificate
    return subject if isinstance(subject, Certificate) else None


def forecasts_of(subject: object) -> tuple[Forecast, ...]:
    """Return what a plan expects of each column; empty for other subjects."""
    return subject.forecast if isinstance(subject, Plan) else ()


def about(subject: object) -> str:
    """Name the dataset of a plan, a release or a certificate, and who is protected."""
    promise = promise_of(subject)
    if isinstance(subject, Plan):
        name, unit = subject.name, str(subject.unit)
    elif promise is not None:
        facts = promise.members[0].fields["dataset"]
        name, unit = promise.names, str(facts.get("unit")) if isinstance(facts, Mapping) else ""
    else:
        return ""
    whom = f"all data about one {unit} together" if unit not in {"", "row"} else "each row separately"
    what = "plan" if isinstance(subject, Plan) else "release"
    return f"A {what} from the dataset {name}. It protects {whom}."


def counts_of(certificate: Certificate) -> tuple[tuple[str, float], ...]:
    """Return the 95 % error of each count in a release, from the noise that its certificate states."""
    found = []
    stated = certificate.fields.get("mechanisms")
    for one in stated if isinstance(stated, list | tuple) else ():
        what = _COUNTED.get(str(one.get("statistic"))) if isinstance(one, Mapping) else None
        if what is None or one.get("mechanism") != "discrete-laplace":
            continue
        try:
            scale = Fraction(str(one.get("scale")))
            found.append((what, DiscreteLaplace(epsilon=1 / scale, sensitivity=1).error(Fraction(19, 20))))
        except (
            ArithmeticError,
            ValueError,
            TacitError,
        ):  # not written by Tacit: report nothing, do not guess
            continue
    return tuple(found)


def _whole(budget: Budget) -> Cost:
    if budget.rho is not None:
        inner = Cost.zcdp(budget.rho)
        return inner + Cost.approximate(0, budget.delta) if budget.delta else inner
    return Cost.approximate(budget.epsilon or 0, budget.delta)
