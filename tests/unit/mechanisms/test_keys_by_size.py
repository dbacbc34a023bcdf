"""Keys by size: the same law as key by key, and only keys that are shown are asked for."""

import itertools
import math
from fractions import Fraction

import pytest
from scipy import stats

from tacit.errors import TacitError
from tacit.mechanisms import KeysBySize, KeySelection

MECHANISMS = {
    "laplace": KeySelection(1, delta=0.2, groups=1),
    "short reach": KeySelection(0.05, delta=0.2, groups=1),
    "replace": KeySelection(2, delta=0.2, groups=2, adjacency="replace"),
    "gaussian": KeySelection(rho=0.5, delta=0.2, groups=1),
}


def by_size(units, threshold):
    """Numbers of units by key, as an engine gives them: small keys counted, and numbered by their names."""
    small = {key: n for key, n in units.items() if n < threshold}
    ranked = {n: sorted(k for k, m in small.items() if m == n) for n in set(small.values())}

    def find(ranks):
        return {n: [ranked[n][rank] for rank in some] for n, some in ranks.items()}

    large = {key: n for key, n in units.items() if n >= threshold}
    return KeysBySize(large, {n: len(keys) for n, keys in ranked.items()}, find)


def outcomes(shown):
    return tuple(sorted(shown.items()))


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_shown_has_the_same_law_as_key_by_key(name):
    """Whole outputs of both ways in one table; P < 1e-9 for equal laws."""
    mechanism = MECHANISMS[name]
    top = mechanism.threshold
    units = {"a": 1, "b": 1, "c": 1, "d": max(1, top - 1), "e": top, "f": top + 1}
    seen = [
        [outcomes(one) for one in mechanism.release_many(value, 4_000)]
        for value in (units, by_size(units, top))
    ]
    features = [
        lambda out: tuple(key for key, _ in out),  # which keys
        lambda out: dict(out).get("a", -1),
        lambda out: dict(out).get("d", -1),
        lambda out: sum(n for _, n in out),
    ]
    for feature in features:
        counts = {}
        for side in (0, 1):
            for out in seen[side]:
                counts.setdefault(feature(out), [0, 0])[side] += 1
        often = [pair for pair in counts.values() if sum(pair) >= 50]
        rare = [sum(pair[side] for pair in counts.values() if sum(pair) < 50) for side in (0, 1)]
        table = [*often, rare] if sum(rare) else often
        if len(table) > 1:
            assert stats.chi2_contingency(table).pvalue > 1e-9


def test_the_comparison_has_power():
    """The same table refuses keys that are shown by rank instead of evenly."""
    mechanism = MECHANISMS["laplace"]
    units = dict.fromkeys("abcdef", 1)
    fair = by_size(units, mechanism.threshold)
    first = KeysBySize({}, fair.sizes, lambda ranks: {n: sorted(units)[: len(r)] for n, r in ranks.items()})
    shown = [[len(o) and "a" in o for o in mechanism.release_many(v, 4_000)] for v in (units, first)]
    table = [[sum(map(bool, side)), 4_000 - sum(map(bool, side))] for side in shown]
    assert stats.chi2_contingency(table).pvalue < 1e-9


def test_the_law_by_classes_is_the_law_of_each_key_in_exact_fractions():
    """Alpha 3/8, reach 4, five keys of two units: shown sets by gaps against one coin per key."""
    a, reach, n, keys = Fraction(3, 8), 4, 2, 5
    threshold = reach + 1
    whole = sum(a ** abs(z) for z in range(-reach, reach + 1))
    level = threshold - n
    q = sum(a**z for z in range(level, reach + 1)) / whole
    assert q == (a**level - a ** (reach + 1)) / (1 + a - 2 * a ** (reach + 1))
    u = 1 - q
    for many in range(keys + 1):
        for chosen in itertools.combinations(range(keys), many):
            gaps = [b - c - 1 for b, c in zip(chosen, (-1, *chosen), strict=False)]
            by_gaps = math.prod((u**gap * q for gap in gaps), start=Fraction(1))
            by_gaps *= u ** (keys - 1 - (chosen[-1] if chosen else -1))  # the last gap leads beyond the end
            assert by_gaps == q**many * u ** (keys - many)
    size = reach - level + 1  # the excess: a geometric number modulo this
    for excess in range(size):
        modulo = (1 - a) * a**excess / (1 - a**size)
        assert q * modulo == a ** (level + excess) / whole


@pytest.mark.parametrize("floor", [1, 2, 3, 5])
def test_a_floor_below_the_threshold_is_private_only_if_the_threshold_rises_with_it(floor):
    """In exact fractions: the chance of a key that only one neighbour passes on, with two-sided noise."""
    a, t = Fraction(3, 8), 10
    allowed = a**t / (1 + a)

    def shown(units, threshold):
        missing = threshold - units
        return a**missing / (1 + a) if missing > 0 else 1 - a ** (1 - missing) / (1 + a)

    assert shown(floor, floor + t) == allowed
    assert shown(floor, 1 + t) == allowed / a ** (floor - 1)
    assert (shown(floor, 1 + t) > allowed) == (floor > 1)


def test_only_keys_that_are_shown_are_asked_for():
    mechanism = KeySelection(1, delta=1e-6, groups=1)
    asked = []

    def find(ranks):
        asked.append(ranks)
        return {n: [f"{n} {rank}" for rank in some] for n, some in ranks.items()}

    keys = KeysBySize({"big": 5000}, {1: 10**8, 2: 10**7, 14: 3}, find)
    shown = mechanism.release(keys)
    assert "big" in shown
    assert len(asked) == 1  # one question for all sizes; about 38 + 14 keys
    ranks = {f"{n} {rank}" for n, some in asked[0].items() for rank in some}
    assert ranks == set(shown) - {"big"}
    assert 10 < len(ranks) < 130  # 53 expected; P < 1e-11 otherwise
    assert all(0 <= rank < {1: 10**8, 2: 10**7, 14: 3}[n] for n, some in asked[0].items() for rank in some)
    assert all(n >= mechanism.threshold for n in shown.values())
    assert list(shown) == sorted(shown)


@pytest.mark.parametrize(
    "keys",
    [
        [frozenset({1, 8}), frozenset({2}), frozenset({3})],
        [2.0, float("nan"), 1.0],
        [("a", 2.0), ("a", float("nan")), ("a", 1.0)],
        [None, "b", "a"],
        [1, "b", "a"],
    ],
    ids=["sets", "nan", "nan in a pair", "none", "mixed"],
)
def test_the_order_of_what_is_shown_says_nothing_about_how_keys_were_stored(keys):
    mechanism = KeySelection(50, delta=0.2, groups=1)
    orders = {tuple(mechanism.release(dict.fromkeys(some, 50))) for some in itertools.permutations(keys)}
    assert len(orders) == 1


def test_nothing_is_asked_for_where_nothing_is_shown():
    mechanism = KeySelection(1, delta=1e-30, groups=1)
    keys = KeysBySize({}, {1: 10}, lambda ranks: pytest.fail("asked"))
    assert mechanism.release(keys) == {}
    assert mechanism.release(KeysBySize({}, {}, lambda ranks: pytest.fail("asked"))) == {}


@pytest.mark.parametrize(
    "keys",
    [
        KeysBySize({}, {15: 3}, dict),  # reaches the threshold
        KeysBySize({}, {0: 3}, dict),
        KeysBySize({}, {1: -3}, dict),
        KeysBySize({}, {1.5: 3}, dict),
        KeysBySize({}, {14: 10**4}, lambda ranks: {}),
        KeysBySize({}, {14: 10**4}, lambda ranks: {14: ["a"] * len(ranks[14])}),
        KeysBySize({"a": 50}, {14: 10**4}, lambda ranks: {14: ["a", *ranks[14][1:]]}),
    ],
    ids=["too large", "size 0", "fewer than none", "half a unit", "no keys", "one key twice", "a large key"],
)
def test_wrong_sizes_and_wrong_keys_are_refused(keys):
    with pytest.raises(TacitError) as refused:
        KeySelection(1, delta=1e-6, groups=1).release(keys)
    assert refused.value.code == "bad-parameter"
