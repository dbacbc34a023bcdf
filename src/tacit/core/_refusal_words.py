"""The words of a refusal for a plan: what it promised, where the ledger was charged in other numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

__all__ = ["in_promised_words", "promise_in_words"]

_CHARGE, _REFUSED = "a charge of rho ", " does not fit"


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
    >>> refusal = TacitError("budget-exceeded", "a charge of rho 2.2 does not fit into what is left: nothing")
    >>> in_promised_words(refusal, {"epsilon": Fraction(1, 2)}).what
    'a plan that promises epsilon 0.5 does not fit into what is left: nothing'
    """
    where, charge, rest = refusal.what.partition(_CHARGE)
    number, fits, left = rest.partition(_REFUSED)
    if refusal.code != "budget-exceeded" or "epsilon" not in promised or not (charge and fits):
        return refusal
    stated = f" and is charged with rho {number}" if " rho " in left else ""
    what = f"{where}a plan that promises {promise_in_words(promised)}{stated}{fits}{left}"
    return TacitError(refusal.code, what, why=refusal.why, fix=refusal.fix)
