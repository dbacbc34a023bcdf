"""The words of a refusal for a plan: what it promised, where the ledger was charged in other numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.accounting import Cost, Remaining, Spend
from tacit.fixes import Either, Set

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from tacit.errors import TacitError
    from tacit.fixes import Fix


def promise_in_words(promised: Mapping[str, Fraction]) -> str:
    """Return what a plan promises.

    Examples
    --------
    >>> from fractions import Fraction
    >>> promise_in_words({"epsilon": Fraction(1, 2), "delta": Fraction(1, 10**6)})
    'epsilon 0.5, delta 1e-06'
    """
    return ", ".join(f"{name} {float(value):g}" for name, value in promised.items())


def in_promised_words(refusal: TacitError, promised: Mapping[str, Fraction]) -> TacitError:
    """Return a ledger's refusal of a plan with the promised epsilon in place of the rho of the charge.

    Gaussian noise is charged by rho, or by a curve of which rho is a rough summary. Who asked for an epsilon
    cannot compare that with an epsilon that is left. Beside a rho that is left, the charge stays.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from tacit.accounting import Budget, Filter, Spend
    >>> from tacit.errors import TacitError
    >>> try:
    ...     Filter.start(Budget(epsilon=0.4)).after(Spend(rho=2.2))
    ... except TacitError as refusal:
    ...     in_promised_words(refusal, {"epsilon": Fraction(1, 2)}).what
    'a plan that promises epsilon 0.5 does not fit into what is left: epsilon 0.4 of 0.4'
    """
    charge, left = refusal.facts.get("charge"), refusal.facts.get("left")
    if (
        "epsilon" not in promised
        or not isinstance(charge, Spend)
        or charge.epsilon is not None
        or not charge.rho
    ):
        return refusal
    of = left.of if isinstance(left, Remaining) else None
    charged = "" if of is None or of.rho is None else f" and is charged with {charge}"
    where = f"{refusal.facts['where']}: " if "where" in refusal.facts else ""
    plan = f"a plan that promises {promise_in_words(promised)}{charged}"
    what = f"{where}{plan} does not fit into what is left: {left}"
    return refusal.but(what=what, fix=_in_epsilon(refusal.fix, promised))


def _in_epsilon(fix: Fix, promised: Mapping[str, Fraction]) -> Fix:
    """Return a fix with the epsilon that a Gaussian plan of the same delta may have, where it names a rho."""
    if isinstance(fix, Either):
        return Either(*(_in_epsilon(one, promised) for one in fix.fixes))
    if not isinstance(fix, Set) or "rho" not in fix.values or not promised.get("delta"):
        return fix
    sigma = (2 * float(str(fix.values["rho"]))) ** -0.5
    most = Cost.gaussian(sigma=sigma, sensitivity=1).epsilon(delta=promised["delta"])
    short = float(f"{float(most):.3g}")  # three digits, rounded down
    return Set.at_most(epsilon=short if short <= most else float(f"{short * (1 - 5e-3):.3g}"))
