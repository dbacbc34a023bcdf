"""Neighbour search: a change above the declared sensitivity is found and proven."""

import math

import pytest

from tacit.audit import neighbouring_rows, neighbours
from tacit.errors import TacitError
from tacit.fixes import Choose


def test_changes_are_measured_in_exact_arithmetic():
    pairs = [([0.1, 0.2], [0.1, 0.2, 0.3])]
    assert not neighbours(sum, pairs, 0.3).holds  # 0.1 + 0.2 + 0.3 - (0.1 + 0.2) is a little more in floats
    assert neighbours(lambda rows: 2**70 + len(rows), pairs, 1).holds


def test_norms_differ():
    pairs = [((0, 0), (3, 4))]
    assert [neighbours(list, pairs, norm=norm).largest for norm in ("l1", "l2", "max")] == [7, 5, 4]
    assert neighbours(list, pairs, 5, norm="l2").holds
    assert not neighbours(list, pairs, 4.999, norm="l2").holds


def test_what_an_observer_would_see_counts_as_a_change():
    def fails_on_nine(rows):
        return 1 / (9 - sum(rows))

    assert neighbours(fails_on_nine, [([0], [9])]).largest == math.inf
    assert neighbours(lambda rows: math.nan if 9 in rows else 0.0, [([0], [9])]).largest == math.inf
    assert neighbours(lambda rows: rows, [([0], [0, 9])]).largest == math.inf
    assert neighbours(fails_on_nine, [([9], [9])]).largest == 0
    assert neighbours(lambda rows: math.inf, [([9], [8])]).largest == 0


def test_a_function_may_generate_the_pairs():
    found = neighbours(len, lambda: ([], [1]), 1, tries=7)
    assert (found.tried, found.holds, found.largest) == (7, True, 1)
    assert "holds" in repr(found)
    assert found._repr_html_().startswith("<pre>")


@pytest.mark.parametrize(
    "call",
    [
        lambda: neighbours(sum, [([1], [2])], -1),
        lambda: neighbours(sum, [([1], [2])], 1, norm="l3"),
        lambda: neighbours(sum, [([1], [2])], 1, tries=0),
        lambda: neighbouring_rows(0, 1, rows=0),
        lambda: neighbouring_rows(0, 1, adjacency="swap"),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(TacitError) as refused:
        call()
    assert refused.value.code == "bad-parameter"


def test_a_wrong_name_comes_with_the_right_ones():
    with pytest.raises(TacitError) as refused:
        neighbours(sum, [([1], [2])], 1, norm="l3")
    assert refused.value.fix == Choose(("l1", "l2", "max"), given="l3")
    with pytest.raises(TacitError) as refused:
        neighbouring_rows(0, 1, adjacency="swap")
    assert refused.value.fix == Choose(("add/remove", "replace"), given="swap")


def test_replacement_changes_one_row_and_keeps_the_length():
    from itertools import islice

    for a, b in islice(neighbouring_rows(0, 30, rows=5, adjacency="replace"), 200):
        assert len(a) == len(b) == 5
        assert sum(not (x is y or x == y) for x, y in zip(a, b, strict=True)) <= 1
