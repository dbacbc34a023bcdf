"""The steps of synthetic rows stay within their rho, and one unit moves scores and tables as proven."""

from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.mechanisms import AdaptiveTables, ChooseTable, MeasureTable, TableCandidate
from tacit.synth._choices import SteppedTables, SynthDesign, steps_of
from tacit.tables import CodedRows

SIZES = (3, 4, 2, 5)


def coded(rng, rows=400):
    codes = np.stack([rng.integers(0, n, rows) for n in SIZES], axis=1).astype(np.int32)
    codes[:, 1] = np.minimum(codes[:, 0] + (rng.random(rows) < 0.2), 3)  # two columns that go together
    return CodedRows(SIZES, codes, np.ones(rows, np.int64))


def with_unit(rows, unit, sign=1):
    """The same rows and one unit more; or, with the sign -1 in its counts, less."""
    return CodedRows(
        rows.sizes,
        np.concatenate([rows.codes, unit]),
        np.concatenate([rows.counts, np.full(len(unit), sign)]),
    )


def released(method, rho=Fraction(1), rows=1, design=None, adjacency="add/remove", seed=0):
    mechanism = AdaptiveTables(rho=rho, rows=rows, adjacency=adjacency)
    made = design or SynthDesign(SIZES, method, 2 if method == "tables" else 3, 500)
    source = SteppedTables(coded(np.random.default_rng(seed)), steps_of(made, mechanism))
    return mechanism, mechanism.release(source), source


def spent(mechanism, steps):
    return sum(
        mechanism.moved_squared / (2 * Fraction(level) ** 2) if kind == "table" else Fraction(level) ** 2 / 8
        for kind, _, level, *_ in steps
    )


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("rho", [Fraction(1, 10_000), Fraction(1, 3), Fraction(50)])
@pytest.mark.parametrize("method", ["aim", "mst"])
def test_all_steps_together_cost_at_most_the_rho_and_nearly_all_of_it(method, rho, rows, adjacency):
    mechanism, steps, _ = released(method, rho, rows, adjacency=adjacency)
    total = spent(mechanism, steps)
    assert total <= rho
    assert total > rho * Fraction(999, 1000)


def test_kept_tables_get_their_share_first():
    design = SynthDesign(SIZES, "aim", 3, 500, keep=((0, 3), (2,)))
    mechanism, steps, _ = released("aim", design=design)
    first, second = steps[:2]
    assert [first[1], second[1]] == [[0, 3], [2]]
    assert spent(mechanism, steps[:2]) == pytest.approx(1 / 5)
    assert design.certain(mechanism)[0] == ((0, 3), Fraction(first[2]))


def test_mst_measures_a_tree_of_pairs():
    _, steps, _ = released("mst", Fraction(100))
    pairs = [tuple(columns) for kind, columns, *_ in steps if kind == "table" and len(columns) == 2]
    assert len(pairs) == len(SIZES) - 1
    assert (0, 1) in pairs  # the two that go together: at this rho the choice is certain
    joined = {0}
    for _ in pairs:
        joined |= {c for pair in pairs for c in pair if joined & set(pair)}
    assert joined == set(range(len(SIZES)))


def test_the_model_of_aim_stays_within_its_size():
    design = SynthDesign(SIZES, "aim", 3, 30)
    _, steps, _ = released("aim", Fraction(20), design=design)
    assert design.fits([tuple(columns) for kind, columns, *_ in steps if kind == "table"])


def test_exact_tables_are_dropped_after_the_last_step():
    *_, source = released("aim")
    assert source._rows is None
    assert source._held == {}


def test_a_step_beyond_the_rho_is_refused():
    mechanism = AdaptiveTables(rho=1, rows=1)

    class Greedy:
        taken = 0

        def table(self, columns):
            return np.array([1, 2])

        def next_step(self, left):
            return MeasureTable((0,), Fraction(1))  # each costs a half

        def receive(self, result):
            self.taken += 1

    greedy = Greedy()
    with pytest.raises(TacitError, match="rho that is left"):
        mechanism.release(greedy)
    assert greedy.taken == 2


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("rows", [1, 3])
def test_one_unit_moves_tables_and_scores_as_proven_in_both_directions(rows, replace):
    rng = np.random.default_rng(rows)
    mechanism = AdaptiveTables(rho=1, rows=rows, adjacency="replace" if replace else "add/remove")
    tables = [(0,), (1,), (0, 1), (2, 3), (0, 2, 3)]
    up = down = l1 = l2 = 0
    for trial in range(120):
        data = coded(rng, 30)
        # all rows of a unit in one cell are the extreme case: every other trial
        unit = np.stack([rng.integers(0, n, rows) for n in SIZES], axis=1).astype(np.int32)
        other = with_unit(data, unit[:1].repeat(rows, 0) if trial % 2 else unit)
        if replace:
            gone = np.stack([rng.integers(0, n, 1) for n in SIZES], axis=1).astype(np.int32).repeat(rows, 0)
            data = with_unit(data, gone)
        for columns in tables:
            a, b = data.table(columns), other.table(columns)
            weight = int(rng.integers(1, 9))
            estimate = rng.integers(0, 12, a.shape)
            one = TableCandidate(columns, estimate, weight, int(rng.integers(0, 50)))
            moved = Fraction(one.score(b) - one.score(a), weight)
            assert abs(moved) <= mechanism.moved
            change = np.abs(a - b)
            assert change.sum() <= mechanism.moved
            assert (change**2).sum() <= mechanism.moved_squared
            up, down = max(up, moved), min(down, moved)
            l1, l2 = max(l1, change.sum()), max(l2, (change**2).sum())
    # the bounds are met, and scores are not monotone
    assert (up, down) == (mechanism.moved, -mechanism.moved)
    assert (l1, l2) == (mechanism.moved, mechanism.moved_squared)


def test_the_scale_of_a_choice_is_that_of_scores_that_are_not_monotone(monkeypatch):
    seen = []
    law = tc.mechanisms.Exponential

    def watched(*given, **named):
        seen.append(law(*given, **named))
        return seen[-1]

    monkeypatch.setattr("tacit.mechanisms.additive._cross_tables.Exponential", watched)
    mechanism = AdaptiveTables(rho=1, rows=3)
    candidates = [TableCandidate((c,), np.zeros(n, np.int64), c + 1, 0) for c, n in enumerate(SIZES)]

    class One:
        done = False

        def table(self, columns):
            return np.zeros([SIZES[c] for c in columns], np.int64)

        def next_step(self, left):
            return None if self.done else ChooseTable(candidates, Fraction(1, 2))

        def receive(self, result):
            self.done = True

    mechanism.release(One())
    [choice] = seen
    assert choice.scale == 2 * 3 * 4 / Fraction(1, 2)  # 2 rows max(weight) / epsilon
    assert not choice.monotone


def test_counts_beyond_the_largest_are_clipped_and_scores_stay_whole():
    far = TableCandidate((0,), np.array([2**62, -(2**62)]), 7, 3)
    assert far.score(np.array([-(2**63), 2**63 - 1])) == 7 * (4 * 2**40 - 3)
