"""Members of a certificate in the core: what one unit pays for several datasets, and what they promise."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.accounting import Cost
    from tacit.core._certificate import Certificate
    from tacit.core._protocols import JSON


def cost_together(members: Sequence[Certificate], *, disjoint: bool) -> Cost:
    """Return what one unit pays for all members: the largest cost if they are disjoint, else the sum.

    Where members share the noise of one sum, a unit in all of them moves this sum several times against one
    noise. It pays like a group of so many units, which is more than the sum of the costs.
    """
    from tacit.accounting import Cost

    each = [Cost.from_json(cast("Any", member.fields["cost"])) for member in members]
    shared = _share_noise(members)
    if not disjoint and not shared:
        return reduce(add, each)
    largest = each[0] if len(set(each)) == 1 else Cost.parallel(*each)
    return largest if disjoint else largest.group(len(each))


def _share_noise(members: Sequence[Certificate]) -> bool:
    """Whether the noise of a member is a share of what several members add to one sum."""
    return any("shares" in law for member in members for law in cast("Any", member.fields["mechanisms"]))


def promised_together(members: Sequence[Certificate], *, disjoint: bool) -> dict[str, JSON]:
    """Return the total that follows from what each member promised: the largest if disjoint, else the sum.

    Where members share noise and a unit may be in several, no total follows; the cost says what holds.
    """
    if not disjoint and _share_noise(members):
        return {}
    stated = [cast("Any", member.fields.get("promised")) or {} for member in members]
    try:
        return {
            name: str((max if disjoint else sum)(Fraction(one[name]) for one in stated))
            for name in stated[0]
            if all(name in one for one in stated)
        }
    except (TypeError, ValueError, ArithmeticError):
        return {}
