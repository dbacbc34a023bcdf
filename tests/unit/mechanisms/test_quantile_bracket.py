"""Two picks that enclose a quantile: bounded scores, and a best score of zero whatever the rows."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.mechanisms import QuantileBracket

LEVELS = st.sampled_from([Fraction(1, 2), Fraction(1, 100), Fraction(9, 10), Fraction(2, 7)])
COUNTS = st.lists(st.integers(0, 60), min_size=2, max_size=7)


@given(counts=COUNTS, level=LEVELS, where=st.integers(0, 6), rows=st.integers(1, 4))
def test_the_rows_of_one_unit_move_no_score_by_more_than_the_sensitivity(counts, level, where, rows):
    m = QuantileBracket(2, level=level, rows=rows, candidates=len(counts))
    more = list(counts)
    more[where % len(counts)] += rows
    for before, after in zip(m.scores(counts), m.scores(more), strict=True):
        assert np.abs(after - before).max() <= m.sensitivity


@given(counts=COUNTS, level=LEVELS)
def test_some_candidate_always_scores_zero(counts, level):
    m = QuantileBracket(2, level=level, rows=1, candidates=len(counts))
    assert [scores.max() for scores in m.scores(counts)] == [0, 0]


@given(counts=COUNTS, level=LEVELS)
def test_a_score_above_the_margin_lies_on_its_side_of_the_quantile(counts, level):
    m = QuantileBracket(2, level=level, rows=1, candidates=len(counts))
    up_to = np.cumsum(counts)
    below = up_to - counts
    possible = np.flatnonzero((below <= level * up_to[-1]) & (up_to >= level * up_to[-1]))  # the quantiles
    lower, upper = (np.flatnonzero(scores > -m.margin) for scores in m.scores(counts))
    if up_to[-1]:
        assert lower.max() <= possible.min()
        assert upper.min() >= possible.max()
    else:
        assert lower.tolist() == [0]
        assert upper.tolist() == [len(counts) - 1]


def test_groups_share_one_price_and_pairs_are_in_order():
    m = QuantileBracket(4, level=0.5, rows=1, candidates=3)
    pairs = m.release([[900, 0, 900], [0, 900, 0], [0, 0, 0]])
    assert pairs.shape == (3, 2)
    assert (pairs[:, 0] <= pairs[:, 1]).all()
    assert m.cost.epsilon(delta=0) == 4
    assert m.release_many([900, 0, 900], 5).shape == (5, 2)


def test_numbers_of_rows_beyond_64_bits_are_scored_exactly():
    m = QuantileBracket(1, level=Fraction(1, 3), rows=1, candidates=2)
    lower, _ = m.scores(np.array([10**18, 2 * 10**18], dtype=object))
    assert lower.tolist()[0] == 0


def test_other_numbers_of_candidates_are_refused():
    with pytest.raises(TacitError):
        QuantileBracket(1, level=0.5, rows=1, candidates=3).release([1, 2])
