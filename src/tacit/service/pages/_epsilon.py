"""The epsilon explorer: what a price means for one person, in odds, bits and an attacker's success."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import TacitError
from tacit.fixes import Set
from tacit.parameters import RealNumber
from tacit.service._bodies import Body, ExactNumber, read_body, read_field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.report import ReportTable
    from tacit.service._operations import ServiceCall

_LARGEST: Final = 100
_LARGEST_DELTA: Final = Fraction(1, 100)
_PRIORS: Final = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
_TRIED: Final = ("0.1", "0.5", "1", "3", "10")


class EpsilonChoice(Body):
    """What the explorer explains; everything has a default."""

    epsilon: ExactNumber = Fraction(1)
    delta: ExactNumber = Fraction(0)
    prior: ExactNumber = Fraction(1, 2)


def epsilon_page(call: ServiceCall) -> Mapping[str, Any]:
    """Explain the epsilon, the delta and the prior of the address."""
    chosen = read_body(EpsilonChoice, dict(call.query))
    _check(chosen)
    return epsilon_document(chosen.epsilon, chosen.delta, chosen.prior) | {"given": _given(call.query)}


def epsilon_form(call: ServiceCall, written: Mapping[str, str]) -> Mapping[str, Any]:
    """Return what the page shows beside a problem: the fields as they were written, and no result."""
    del written
    return {"given": _given(call.query), "tried": _TRIED, "lead": None}


def _given(query: Mapping[str, str]) -> dict[str, str]:
    defaults = {"epsilon": "1", "delta": "0", "prior": "0.5"}
    return {name: query.get(name, text)[:60] for name, text in defaults.items()}


def _check(chosen: EpsilonChoice) -> None:
    """Refuse what has no meaning, or would take too long to compute."""
    read_field(RealNumber(above=0, most=_LARGEST, instead=1), "epsilon", chosen.epsilon)
    if chosen.delta > _LARGEST_DELTA or 0 < chosen.delta < Fraction(1, 10**30):
        raise TacitError("bad-parameter", "delta must be 0, or from 1e-30 to 0.01", fix=Set(delta=0))
    read_field(RealNumber(above=0, below=1), "prior", chosen.prior)


@lru_cache(maxsize=512)
def epsilon_document(epsilon: Fraction, delta: Fraction, prior: Fraction) -> dict[str, Any]:
    """Return what a price means, as a document; every figure is a bound that holds for every attacker.

    Examples
    --------
    >>> document = epsilon_document(Fraction(1, 2), Fraction(0), Fraction(1, 2))
    >>> document["lead"][0]
    'An attacker who gave 50:50 odds that you are in the data can reach at most 62:38 (62.3 %).'
    >>> round(document["bits"], 4)
    0.7213
    """
    from tacit.accounting import Cost
    from tacit.explain import believe, explain

    priors = sorted({*_PRIORS, prior})
    cost = Cost.approximate(epsilon, delta) if delta else Cost.pure(epsilon)
    found = explain(cost, priors=priors, families=(1, 2) if delta else (1, 2, 5, 10), delta=delta or 1e-6)
    loss, condition = found.odds_limit
    after = [believe(float(one), loss) for one in priors]
    report = found.report()
    return {
        "title": report.title,
        "lead": list(report.lead),
        "condition": condition,
        "epsilon": float(epsilon),
        "delta": float(delta),
        "bits": found.bits,
        "advantage": found.advantage,
        "right_at_most": (1 + found.advantage) / 2,
        "beliefs": [{"prior": b.prior, "at_least": b.at_least, "at_most": b.at_most} for b in after],
        "tables": [_table(table) for table in report.tables],
        "notes": list(report.notes),
        "tried": _TRIED,
    }


def _table(table: ReportTable) -> dict[str, Any]:
    return {"title": table.title, "header": list(table.header), "rows": [list(row) for row in table.rows]}
