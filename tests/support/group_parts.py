"""Private groups read by parts, compared with all groups read at once."""

from __future__ import annotations

from typing import Any

from tacit.mechanisms import KeysBySize
from tacit.tables.planning._exact_integers import PrivateGroups, exact_integers
from tacit.tables.planning._pricing import lower


def all_keys(sized: Any, threshold: int) -> dict[Any, int]:
    """Every group with its size, as the ranks of all small groups find them."""
    assert isinstance(sized, KeysBySize)
    assert all(n < threshold for n in sized.sizes)
    assert all(n >= threshold for n in sized.large.values())
    ranks = {n: range(count) for n, count in sized.sizes.items()}
    found = sized.found(ranks)  # refuses a group that comes twice
    return {**sized.large, **{key: n for n, keys in found.items() for key in keys}}


def compare(data: Any, question: Any, threshold: int) -> int:
    """Read a question by parts and at once; every integer of every group must agree. Return their number."""
    steps, _ = lower(question, by_row=False)
    statistics = [step.statistic for step in steps]
    whole = exact_integers(data, question, tuple(dict.fromkeys(statistics)))
    sizes = {key: vector[0] for key, vector in whole[statistics[0]].items()}
    reading = PrivateGroups(data, question, tuple(statistics), threshold)
    first = reading.sizes()
    assert (all_keys(first, threshold) if isinstance(first, KeysBySize) else first) == sizes
    keys = sorted(sizes, key=str)[:: 2 + len(sizes) % 2]  # some are shown: half of them, or a third
    for statistic in statistics[1:]:
        shown = reading.integers(statistic, [[list(key), 1] for key in keys])
        wanted = [whole[statistic].get(key, [0] * statistic.size) for key in keys]
        assert [list(line) for line in shown] == wanted
    return len(sizes)
