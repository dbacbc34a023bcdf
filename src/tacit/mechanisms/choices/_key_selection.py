"""Key selection: a group is shown only if enough units are in it.

Where there are very many keys, the large groups come one by one and the others are only counted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Code, Set
from tacit.mechanisms._input_values import read_integers, wrong_input
from tacit.mechanisms._mechanism import (
    IntegerMechanism,
    confidence_level,
    exactly_one,
    figure,
    half_width_of_sum,
    read_adjacency,
    show,
)
from tacit.mechanisms._noise_laws import GaussianLaw, TruncatedLaplaceLaw, check_width, square_root_up
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from tacit.accounting import Adjacency, Cost


K = TypeVar("K", bound=Hashable)
#: For each number of units the ranks of some keys that have so many, from 0 and in order.
Ranks: TypeAlias = Mapping[int, Sequence[int]]


@dataclass(frozen=True, slots=True)
class KeysBySize(Generic[K]):
    """Numbers of units by key, of which those of small keys are only counted.

    It stands for the mapping from every key to its number of units. `KeySelection` gives the same answers, by
    the same law, as for the whole mapping, but asks only for those small keys that it shows.

    Guarantee: this holds if `find` numbers the keys of one size by any order that does not depend on the
    ranks asked for, and if it finds the keys that `sizes` has counted.

    Parameters
    ----------
    large
        The keys that come with their numbers of units; all that reach the threshold must be among them.
    sizes
        Of all other keys: how many have one unit, how many two, and so on.
    find
        Return the keys at some ranks: from ``{1: [5]}`` the sixth key of one unit, as ``{1: ["Vik"]}``.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.KeySelection(epsilon=1, delta=1e-6, groups=1)
    >>> def find(ranks):
    ...     return {units: [f"village {rank}" for rank in some] for units, some in ranks.items()}
    >>> keys = tc.mechanisms.KeysBySize({"Oslo": 5000}, {1: 10**3}, find)
    >>> "Oslo" in m.release(keys)
    True
    """

    large: Mapping[K, int]
    sizes: Mapping[int, int]
    find: Callable[[Ranks], Mapping[int, Sequence[K]]]

    def below(self, threshold: int) -> list[tuple[int, int]]:
        """Return how many keys have how many units, by size; refuse a size that reaches the threshold."""
        pairs = [
            (count("a size", n, zero=False), count("a number of keys", k)) for n, k in self.sizes.items()
        ]
        if any(n >= threshold for n, _ in pairs):
            raise bad_parameter(
                "sizes",
                f"numbers of units below the threshold, {threshold}",
                "a larger one",
                fix=Set(sizes={1: 250}),
            )
        return sorted(pairs)

    def found(self, chosen: Ranks) -> dict[int, Sequence[K]]:
        """Return the keys at the chosen ranks; refuse anything but one new key for each rank."""
        requests = {units: ranks for units, ranks in chosen.items() if len(ranks)}
        names = self.find(requests) if requests else {}
        keys = {units: names.get(units, ()) for units in requests}
        if any(len(keys[units]) != len(ranks) for units, ranks in requests.items()) or not _differ(
            [self.large, *keys.values()]
        ):
            raise TacitError(
                "bad-parameter",
                "find must return one key for each rank, and no key twice",
                why="another number of keys, or a key twice, would change the law of the selection",
                fix="read the sizes and the keys from the same data",
            )
        return keys


def _differ(parts: Iterable[Iterable[Hashable]]) -> bool:
    """Return whether no key occurs twice."""
    keys = [key for part in parts for key in part]
    return len(set(keys)) == len(keys)


_DIGITS = 60  # of the decimal arithmetic behind the reach; half of them are certain
_SEVERAL = 4  # keys of a unit, below which Gaussian noise never shows more of them
_WIDER = Fraction(11, 10)
#: The smallest chance of a Gaussian tail that doubles hold with all their digits.
_SMALLEST = Fraction(1, 10**280)
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, init=False, repr=False, slots=True)
class KeySelection(IntegerMechanism):
    """Show the keys whose noisy number of units reaches a threshold, with that noisy number.

    Guarantee: (epsilon, delta), where one unit belongs to at most `groups` keys; with `rho` in place of
    epsilon, rho-zCDP and, in addition, probability delta.

    Argument for epsilon (Desfontaines, Voss, Gipson and Mandayam 2022): one unit changes at most s numbers by
    one each, s = `groups` (twice that under replace). Every number gets discrete Laplace noise of scale
    s/epsilon, cut off beyond +-r. The laws of two neighbouring numbers have ratios of at most exp(epsilon/s)
    where both are possible, and one end of each is impossible for the other; r is the smallest reach with
    P(noise = r) <= delta/s. So each number is (epsilon/s, delta/s)-private by itself, whether it is shown or
    not, and s of them compose. A key appears from 1 + r on, which a key without units never reaches. For one
    key per unit no law shows more keys.

    Argument for rho: the numbers get discrete Gaussian noise, rho = s / (2 sigma^2). A key that only one of
    two neighbours has holds one unit, and there are at most s of them; each appears with a probability of at
    most delta/s (Wilson et al. 2020; Swanberg et al. 2023). Noise in L2 shows more keys where a unit has
    many: for epsilon too, the rho of (epsilon, delta/2) is used with the other half of delta where that
    lowers the threshold and widens the interval of a number by no more than a tenth.

    With a ``minimum`` of k, the numbers are max(0, units - (k - 1)), and k - 1 is added to what is shown. One
    unit still changes at most s of these numbers by one each, so both arguments hold as they are. A key of
    fewer than k units has the number 0, that of a key without units: it is never shown.

    Of very many keys, those below the threshold can be given by size alone (`KeysBySize`). The output has the
    same law: keys of one size get independent noise of one law, so their exceedances are drawn by rank, and
    only the keys at these ranks are asked for.

    Parameters
    ----------
    epsilon, rho
        The promise for all keys and their noisy numbers together, one of the two.
    delta
        The probability that belongs to the promise.
    groups
        The most keys that one unit belongs to.
    adjacency
        ``"add/remove"`` or ``"replace"``.
    minimum
        The fewest units of a key that may ever be shown.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.KeySelection(epsilon=1, delta=1e-6, groups=1)
    >>> m.threshold, m.nearly_always
    (15, 18)
    >>> list(m.release({"Oslo": 5000, "Vik": 1}))
    ['Oslo']
    >>> tc.mechanisms.KeySelection(epsilon=1, delta=1e-6, groups=1, minimum=8).threshold
    22
    """

    epsilon: Fraction | None
    rho: Fraction | None
    delta: Fraction
    groups: int
    adjacency: Adjacency
    threshold: int
    law: TruncatedLaplaceLaw | GaussianLaw
    minimum: int

    def __init__(
        self,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        delta: Number,
        groups: int,
        adjacency: Adjacency = "add/remove",
        minimum: int = 1,
    ) -> None:
        promise = exactly_one(epsilon=epsilon, rho=rho)
        spent = rational(promise, epsilon if rho is None else rho)  # type: ignore[arg-type]
        missed = RealNumber(above=0, below=1, instead=1e-6).read("delta", delta)
        reach, relation = count("groups", groups, zero=False), read_adjacency(adjacency)
        fewest = count("minimum", minimum, zero=False)
        for name, value in (
            ("epsilon", spent if rho is None else None),
            ("rho", None if rho is None else spent),
            ("delta", missed),
            ("groups", reach),
            ("adjacency", relation),
            ("minimum", fewest),
        ):
            object.__setattr__(self, name, value)
        law, threshold = (_best if rho is None else _gaussian)(spent, missed, self.sensitivity)
        object.__setattr__(self, "law", law)
        object.__setattr__(self, "threshold", threshold + fewest - 1)

    @property
    def sensitivity(self) -> int:
        """How many numbers of units one unit can change, each by one."""
        return self.groups * (2 if self.adjacency == "replace" else 1)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on every number of units."""
        return self.law.sigma if isinstance(self.law, GaussianLaw) else self.law.scale

    @property
    def cost(self) -> Cost:
        """Epsilon with delta; or the rho of the noise, and delta."""
        from tacit.accounting import Cost

        if self.epsilon is not None:
            return Cost.approximate(self.epsilon, self.delta, adjacency=self.adjacency)
        noisy = Cost.zcdp(self.sensitivity / (2 * self.scale**2), adjacency=self.adjacency)
        return noisy + Cost.approximate(0, self.delta, adjacency=self.adjacency)

    def release(self, value: Mapping[_Key, int] | KeysBySize[_Key]) -> dict[_Key, int]:  # type: ignore[override]
        """Return the keys that reach the threshold with their noisy numbers of units, in sorted order.

        The noise is independent and alike for all keys, and the order is made from the keys shown: nothing
        depends on how the mapping is ordered. A key without units counts as absent.
        """
        if isinstance(value, KeysBySize):
            return self._by_size(value)
        present = self._present(value)
        return self._shown(present, self.law.draws(len(present)).tolist())

    def release_many(  # type: ignore[override]
        self, value: Mapping[_Key, int] | KeysBySize[_Key], count: int
    ) -> list[dict[_Key, int]]:
        """Return `count` independent outputs on the same value, each at the full cost: for auditors only."""
        if isinstance(value, KeysBySize):
            return [self._by_size(value) for _ in range(count)]
        present = self._present(value)
        draws = [tuple(noise) for noise in self.law.draws((count, len(present))).tolist()]
        answers = {noise: self._shown(present, noise) for noise in set(draws)}
        return [answers[noise].copy() for noise in draws]

    def _present(self, value: Mapping[_Key, int]) -> dict[_Key, int]:
        """Return the keys that have enough units, with their numbers."""
        return {key: units for key, units in _present(value).items() if units >= self.minimum}

    def _shown(self, present: dict[_Key, int], noise: Iterable[int]) -> dict[_Key, int]:
        noisy = {key: n + k for (key, n), k in zip(present.items(), noise, strict=True)}
        return _in_order({key: n for key, n in noisy.items() if n >= self.threshold})

    def _by_size(self, keys: KeysBySize[_Key]) -> dict[_Key, int]:
        """Draw the noise of small keys only where it lifts them to the threshold, and ask for those keys."""
        exceedances = {
            n: self.law.exceedances(k, self.threshold - n)
            for n, k in keys.below(self.threshold)
            if n >= self.minimum
        }
        present = self._present(keys.large)
        lifted = self._shown(present, self.law.draws(len(present)).tolist())
        names = keys.found({n: ranks.tolist() for n, (ranks, _) in exceedances.items()})
        for n, some in names.items():
            lifted.update((key, n + k) for key, k in zip(some, exceedances[n][1].tolist(), strict=True))
        return _in_order(lifted)

    def half_width(self, confidence: Number, *, copies: int = 1) -> int:
        """Return the half-width of the noise on a number of units."""
        return half_width_of_sum(self.law, confidence_level(confidence), copies)

    @property
    def nearly_always(self) -> int:
        """The number of units from which a key is shown with a probability of at least 95 %."""
        return self.threshold + self.half_width(Fraction(95, 100))

    def to_json(self) -> dict[str, Any]:
        """Return the name, the law with its exact scale, the sensitivity, the threshold, and the cost."""
        gaussian = isinstance(self.law, GaussianLaw)
        return {
            "mechanism": "key-selection",
            "law": "discrete-gaussian" if gaussian else "truncated-discrete-laplace",
            "scale": str(self.scale),
            "sensitivity": self.sensitivity,
            "threshold": self.threshold,
            **({"minimum": self.minimum} if self.minimum > 1 else {}),
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words."""
        gaussian = isinstance(self.law, GaussianLaw)
        law = "discrete Gaussian, sigma" if gaussian else "truncated discrete Laplace, scale"
        return f"{law} {figure(self.scale * unit)}, shown at {self.threshold} units or more"

    @property
    def worst_pair(self) -> tuple[dict[str, int], dict[str, int]]:
        """Keys at the threshold, with and without the unit in question."""
        names = [f"key {place}" for place in range(self.groups)]
        return dict.fromkeys(names, self.threshold), dict.fromkeys(names, self.threshold - 1)

    def __repr__(self) -> str:
        spent = f"rho={show(self.rho)}" if self.rho else f"epsilon={show(self.epsilon or 0)}"
        fewest = f"minimum={self.minimum}, " if self.minimum > 1 else ""
        return (
            f"KeySelection({spent}, delta={show(self.delta)}, groups={self.groups}, {fewest}"
            f"shown at {self.threshold} units or more)"
        )


def _present(value: Mapping[_Key, int]) -> dict[_Key, int]:
    """Return the keys that have units, with their numbers."""
    if not isinstance(value, Mapping):
        raise wrong_input("a mapping from keys to numbers of units", value, fix=Code('{"A": 12}'))
    return {key: units for key, one in value.items() if (units := _units(one)) > 0}


def _units(units: object) -> int:
    number = read_integers(units)
    if not isinstance(number, int):
        raise wrong_input("a whole number of units for each key", number, fix=Code('{"A": 12}'))
    return number


def _in_order(groups: dict[_Key, int]) -> dict[_Key, int]:
    """Sort by the keys themselves, None last, or by how they are written if they have no order.

    Sets and NaN can be compared but have no order: sorting would keep a trace of how they were stored.
    """
    try:
        unordered = any(map(_without_order, groups))
        order = sorted(groups, key=_as_written if unordered else _missing_last)
    except TypeError:
        order = sorted(groups, key=_as_written)
    return {key: groups[key] for key in order}


def _without_order(key: object) -> bool:
    """Return whether a part of a key is a set, or is not equal to itself."""
    parts = key if isinstance(key, tuple) else (key,)
    return any(isinstance(part, frozenset) or part != part for part in parts)


def _as_written(key: object) -> tuple[str, str]:
    if isinstance(key, frozenset):
        return type(key).__name__, repr(sorted(map(repr, key)))
    return type(key).__name__, repr(key)


def _missing_last(key: object) -> list[tuple[bool, Any]]:
    return [
        (part is None, 0 if part is None else part) for part in (key if isinstance(key, tuple) else (key,))
    ]


@lru_cache(maxsize=1024)
def _best(epsilon: Fraction, delta: Fraction, movement: int) -> tuple[TruncatedLaplaceLaw | GaussianLaw, int]:
    """Return the law and the threshold for (epsilon, delta), by public numbers alone."""
    from tacit.accounting import rho_cap

    cut, threshold = _truncated(epsilon, delta, movement)
    rho = rho_cap(epsilon, delta / 2)
    # the last two: sigma above 2^55, odd delta
    if movement < _SEVERAL or rho * 2**111 < movement or delta < 2 * _SMALLEST * movement:
        return cut, threshold
    gaussian, lower = _gaussian(rho, delta / 2, movement)
    if lower >= threshold:
        return cut, threshold
    level = Fraction(95, 100)
    narrow = gaussian.half_width(level) <= _WIDER * cut.half_width(level)
    return (gaussian, lower) if narrow else (cut, threshold)


@lru_cache(maxsize=1024)
def _truncated(epsilon: Fraction, delta: Fraction, movement: int) -> tuple[TruncatedLaplaceLaw, int]:
    """Return the law with the smallest reach that holds, and the threshold, which lies one above it."""
    check_width(movement / epsilon, power=56)
    with localcontext() as context:
        context.prec = _DIGITS
        per_step = Decimal(epsilon.numerator) / Decimal(epsilon.denominator) / movement
        allowed = Decimal(delta.numerator) / Decimal(delta.denominator) / movement
        a = (-per_step).exp()
        guess = ((1 - a + 2 * allowed * a) / (allowed * (1 + a))).ln() / per_step
        reach = max(1, int(guess) - 1)
    while not _holds(reach, per_step, allowed):
        reach += 1
    while reach > 1 and _holds(reach - 1, per_step, allowed):
        reach -= 1
    return TruncatedLaplaceLaw(movement / epsilon, reach), 1 + reach


def _holds(reach: int, per_step: Decimal, allowed: Decimal) -> bool:
    """Check P(noise = reach) <= allowed, as a^r (1 - a + 2 d a) <= d (1 + a), every rounding against us."""
    slack = Decimal(10) ** (-_DIGITS // 2)
    with localcontext() as context:
        context.prec, context.rounding = _DIGITS, ROUND_CEILING
        a = (-per_step).exp()
        bound = (-per_step * reach).exp() * (1 - a + 2 * allowed * a) * (1 + slack)
        context.rounding = ROUND_FLOOR
        return bound <= allowed * (1 + a) * (1 - slack)


@lru_cache(maxsize=1024)
def _gaussian(rho: Fraction, delta: Fraction, movement: int) -> tuple[GaussianLaw, int]:
    """Return the law for rho and 1 + t, t the smallest number with P(noise >= t) <= delta/moved."""
    why = "the chance of a Gaussian tail must be at least 10^-280 for each key"
    RealNumber(least=_SMALLEST * movement, below=1, instead=1e-6, why=why).read("delta", delta)
    law = GaussianLaw(square_root_up(Fraction(movement) / (2 * rho)))
    check_width(law.sigma, power=56)
    return law, 2 + law.reaches(2 * delta / movement)  # P(noise >= t) is half of P(|noise| > t - 1)
