"""Keys by size: the large ones one by one, the others only counted, for a selection among very many keys."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Set

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
        made = [(count("a size", n, zero=False), count("a number of keys", k)) for n, k in self.sizes.items()]
        if any(n >= threshold for n, _ in made):
            raise bad_parameter(
                "sizes",
                f"numbers of units below the threshold, {threshold}",
                "a larger one",
                fix=Set(sizes={1: 250}),
            )
        return sorted(made)

    def found(self, chosen: Ranks) -> dict[int, Sequence[K]]:
        """Return the keys at the chosen ranks; refuse anything but one new key for each rank."""
        asked = {units: ranks for units, ranks in chosen.items() if len(ranks)}
        found = self.find(asked) if asked else {}
        keys = {units: found.get(units, ()) for units in asked}
        if any(len(keys[units]) != len(ranks) for units, ranks in asked.items()) or not _differ(
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
    listed = [key for part in parts for key in part]
    return len(set(listed)) == len(listed)
