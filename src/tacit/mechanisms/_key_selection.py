"""The key selection mechanism: a group is shown only if enough units are in it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Code, Set
from tacit.mechanisms._input_values import read_integers
from tacit.mechanisms._integer_mechanism import IntegerMechanism, half_width_of_sum
from tacit.mechanisms._mechanism import Adjacency, confidence_level, figure, read_adjacency, show
from tacit.mechanisms._noise_laws import LaplaceLaw, check_width

if TYPE_CHECKING:
    from tacit.accounting import Cost

__all__ = ["KeySelection"]

_DIGITS = 60
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, init=False, repr=False, slots=True)
class KeySelection(IntegerMechanism):
    """Show the keys whose noisy number of units reaches a threshold, with that noisy number.

    Guarantee: (epsilon, delta), where one unit belongs to at most `groups` keys.

    Argument (Korolova et al. 2009; Wilson et al. 2020), under add/remove: numbers of units get discrete
    Laplace noise with a = exp(-epsilon/k), k = `groups`; a key appears if its noisy number is at least 1 + t.
    Keys that both neighbours have are epsilon-private together, since the numbers move by at most k in L1.
    A key that only the larger neighbour has holds one unit, the one in question; it appears with probability
    P(noise >= t) = a^t / (1+a), and there are at most k of them: delta = k a^t / (1+a). Keys without units
    never appear. Under replace one unit goes and another comes: two add/remove steps of epsilon/2 each, with
    delta / (1 + exp(epsilon/2)) for each.

    Parameters
    ----------
    epsilon, delta
        The promise for all keys and their noisy numbers together.
    groups
        The most keys that one unit belongs to.
    adjacency
        ``"add/remove"`` or ``"replace"``.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.KeySelection(epsilon=1, delta=1e-6, groups=1)
    >>> m.threshold, m.nearly_always
    (15, 18)
    >>> list(m.release({"Oslo": 5000, "Vik": 1}))
    ['Oslo']
    """

    epsilon: Fraction
    delta: Fraction
    groups: int
    adjacency: Adjacency
    threshold: int

    def __init__(
        self, epsilon: Number, *, delta: Number, groups: int, adjacency: Adjacency = "add/remove"
    ) -> None:
        spent, missed = rational("epsilon", epsilon), rational("delta", delta)
        if missed >= 1:
            raise bad_parameter("delta", "between 0 and 1", delta, fix=Set(delta=1e-6))
        reach, near = count("groups", groups, zero=False), read_adjacency(adjacency)
        times = 2 if near == "replace" else 1
        for name, value in (("epsilon", spent), ("delta", missed), ("groups", reach), ("adjacency", near)):
            object.__setattr__(self, name, value)
        check_width(self.scale, power=56)
        object.__setattr__(self, "threshold", _threshold(spent / times, missed, reach, times))

    @property
    def sensitivity(self) -> int:
        """The most that one unit can move the numbers of units, in L1."""
        return self.groups * (2 if self.adjacency == "replace" else 1)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on every number of units."""
        return self.sensitivity / self.epsilon

    @property
    def cost(self) -> Cost:
        """Epsilon with delta."""
        from tacit.accounting import Cost

        return Cost.approximate(self.epsilon, self.delta, adjacency=self.adjacency)

    def release(self, value: Mapping[_Key, int]) -> dict[_Key, int]:  # type: ignore[override]
        """Return the keys that reach the threshold with their noisy numbers of units, in sorted order.

        The noise is independent and alike for all keys, and the order is made from the keys shown: nothing
        depends on how the mapping is ordered. A key without units counts as absent.
        """
        if not isinstance(value, Mapping):
            raise bad_parameter(
                "value",
                "a mapping from keys to numbers of units",
                type(value).__name__,
                fix=Code('{"A": 12}'),
            )
        present = {key: units for key, one in value.items() if (units := _units(one)) > 0}
        drawn = LaplaceLaw(self.scale).draws(len(present)).tolist()
        noisy = {key: n + k for (key, n), k in zip(present.items(), drawn, strict=True)}
        return _in_order({key: n for key, n in noisy.items() if n >= self.threshold})

    def half_width(self, confidence: Number, *, copies: int = 1) -> int:
        """Return the half-width of the noise on a number of units."""
        return half_width_of_sum(LaplaceLaw(self.scale), confidence_level(confidence), copies)

    @property
    def nearly_always(self) -> int:
        """The number of units from which a key is shown with a probability of at least 95 %."""
        return self.threshold + self.half_width(Fraction(95, 100))

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact scale and sensitivity, the threshold, and the cost."""
        return {
            "mechanism": "key-selection",
            "scale": str(self.scale),
            "sensitivity": self.sensitivity,
            "threshold": self.threshold,
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words."""
        return f"discrete Laplace, scale {figure(self.scale * unit)}, shown from {self.threshold} units"

    @property
    def worst_pair(self) -> tuple[dict[str, int], dict[str, int]]:
        """Keys at the threshold, with and without the unit in question."""
        names = [f"key {place}" for place in range(self.groups)]
        return dict.fromkeys(names, self.threshold), dict.fromkeys(names, self.threshold - 1)

    def __repr__(self) -> str:
        return (
            f"KeySelection(epsilon={show(self.epsilon)}, delta={show(self.delta)}, groups={self.groups}, "
            f"shown from {self.threshold} units)"
        )


def _units(one: object) -> int:
    number = read_integers(one)
    if not isinstance(number, int):
        raise bad_parameter(
            "value", "a whole number of units for each key", "an array", fix=Code('{"A": 12}')
        )
    return number


def _in_order(shown: dict[_Key, int]) -> dict[_Key, int]:
    """Sort by the keys themselves, None last, or by how they are written if they cannot be compared."""
    try:
        order = sorted(shown, key=_missing_last)
    except TypeError:
        order = sorted(shown, key=lambda key: (type(key).__name__, repr(key)))
    return {key: shown[key] for key in order}


def _missing_last(key: object) -> list[tuple[bool, Any]]:
    return [(part is None, part or 0) for part in (key if isinstance(key, tuple) else (key,))]


@lru_cache(maxsize=1024)
def _threshold(epsilon: Fraction, delta: Fraction, groups: int, times: int) -> int:
    """Return 1 + t: the smallest noisy number of units at which a key may be shown.

    `epsilon` is that of the noisy numbers under add/remove. With ``times=2`` (replace) the cost is that of a
    group of two, (2 epsilon, delta (1 + exp(epsilon))).
    """
    with localcontext() as context:
        context.prec = _DIGITS
        whole = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        per_step = whole / groups
        allowed = Decimal(delta.numerator) / Decimal(delta.denominator)
        if times == 2:
            allowed /= 1 + whole.exp()
        t = max(1, int((Decimal(groups) / allowed).ln() / per_step) - 2)
        while not _holds(t, per_step, groups, allowed):
            t += 1
        while t > 1 and _holds(t - 1, per_step, groups, allowed):
            t -= 1
    return 1 + t


def _holds(t: int, per_step: Decimal, groups: int, allowed: Decimal) -> bool:
    """Check k a^t <= delta (1 + a), every rounding against us."""
    slack = Decimal(10) ** (10 - _DIGITS)
    with localcontext() as context:
        context.rounding = ROUND_CEILING
        left = groups * (-per_step * t).exp() * (1 + slack)
    with localcontext() as context:
        context.rounding = ROUND_FLOOR
        right = allowed * (1 + (-per_step).exp()) * (1 - slack)
    return left <= right
