"""Choosing and measuring tables is attacked on its worst pair; broken copies are caught."""

from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from tacit import Cost
from tacit.audit import audit
from tacit.synth._choices import SteppedTables, SynthDesign, steps_of
from tacit.tables import CodedRows
from twins import synth

CLAIMED = Cost.zcdp(synth.RHO)
TWINS = [
    synth.monotone_score,
    synth.rows_counted_exactly,
    synth.candidates_kept,
    synth.categories_of_the_data,
]


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_a_broken_copy_of_synthetic_rows_is_caught(twin):
    found = audit(twin, 0, 1, samples=60_000, delta=0.01, claimed=CLAIMED)
    assert found.holds is False, found


def test_the_right_copy_is_not_caught():
    found = audit(synth.right, 0, 1, samples=60_000, delta=0.01, claimed=CLAIMED)
    assert found.holds, found
    assert found.epsilon_lower > 0.5 * CLAIMED.epsilon(delta=0.01), found  # the attack has power


@pytest.mark.parametrize("adjacency", ["add/remove", pytest.param("replace", marks=pytest.mark.long)])
def test_no_attack_on_adaptive_tables_exceeds_their_cost(adjacency):
    mechanism = tc.mechanisms.AdaptiveTables(rho=2, rows=2, adjacency=adjacency)
    found = audit(mechanism, samples=2_000, delta=0.01)
    assert found.holds, found
    assert adjacency == "replace" or found.epsilon_lower > 0.3, found


def released(method, extra, rho, count):
    """Run a whole method on three columns, `count` times; return all noisy numbers in a fixed order.

    Tables have a fixed place each, and those that are not measured are far away, so choices show too.
    """
    codes = np.array([[0, 0, 0], [1, 1, 0], [0, 1, 1]], np.int32)
    rows = CodedRows((2, 2, 2), codes, np.array([5 + extra, 4, 3], np.int64))
    mechanism = tc.mechanisms.AdaptiveTables(rho=rho, rows=1)
    design = SynthDesign((2, 2, 2), method, 2, 8)
    lines = []
    for _ in range(count):
        line = np.zeros((8, 4))
        for kind, columns, sigma, *cells in mechanism.release(
            SteppedTables(rows, steps_of(design, mechanism))
        ):
            if kind == "table":
                at = sum(1 << c for c in columns)
                line[at, : len(cells[0])] += np.array(cells[0]) / float(Fraction(sigma)) ** 2
        lines.append(line.ravel())
    return np.array(lines)


@pytest.mark.long
@pytest.mark.parametrize("method", ["mst", "aim"])
def test_no_attack_on_a_whole_method_exceeds_its_cost(method):
    rho = 1

    def run(extra):
        return released(method, extra, rho, 1)[0]

    found = audit(run, 0, 1, samples=3_000, delta=0.01, claimed=Cost.zcdp(rho))
    assert found.holds, found
