"""Distances to significance are exact, and one person moves a score by one person and one step.

docs/proofs/gwas.md, "Distance to significance". All tables of small cohorts are tried, with every change
of one person, so the sensitivity is checked exhaustively there; large cohorts are tried at random.
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.genomes._association import SCORE_SENSITIVITY, AssociationTest

DESIGNS = [(3, 3, 2.0), (4, 2, 3.0), (5, 5, 4.0), (6, 4, 1.5), (2, 7, 3.84), (7, 6, 6.6), (1, 9, 2.7)]
KINDS = ["allelic", "trend"]
MOVES = [(a, b) for a in range(3) for b in range(3) if a != b]


def triples(people):
    return [(people - i - j, i, j) for i in range(people + 1) for j in range(people + 1 - i)]


def moved(counts, a, b):
    """Return the counts after one person changed from genotype a to b, or None if nobody has a."""
    if counts[a] == 0:
        return None
    changed = list(counts)
    changed[a] -= 1
    changed[b] += 1
    return tuple(changed)


def neighbours(table):
    r, s = table
    for a, b in MOVES:
        if (other := moved(r, a, b)) is not None:
            yield other, s
        if (other := moved(s, a, b)) is not None:
            yield r, other


def statistic(kind, r, s):
    """Return chi-square as a fraction, from the textbook's table; 0 if everybody has the same alleles."""
    R, S = sum(r), sum(s)
    x, w = r[1] + 2 * r[2], s[1] + 2 * s[2]
    if kind == "allelic":
        u, n = x + w, 2 * (R + S)
        cells = [(x, 2 * R, u), (2 * R - x, 2 * R, n - u), (w, 2 * S, u), (2 * S - w, 2 * S, n - u)]
        if u in {0, n}:
            return Fraction(0)
        return sum((seen - Fraction(row * column, n)) ** 2 / Fraction(row * column, n)
                   for seen, row, column in cells)  # fmt: skip
    n = R + S
    mean = Fraction(x + w, n)
    variance = Fraction(r[1] + s[1] + 4 * (r[2] + s[2]), n) - mean**2
    if variance == 0:
        return Fraction(0)
    return (x - R * mean) ** 2 / (variance * Fraction(R * S, n))


def all_scores(kind, cases, controls, critical):
    tables = list(product(triples(cases), triples(controls)))
    test = AssociationTest(kind, cases, controls, critical)
    found = test.scores(np.array([t[0] for t in tables]), np.array([t[1] for t in tables]))
    return dict(zip(tables, found.tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("cases", "controls", "critical"), DESIGNS)
def test_one_person_moves_no_score_by_more_than_the_sensitivity(kind, cases, controls, critical):
    scores = all_scores(kind, cases, controls, critical)
    largest = max(
        abs(score - scores[other]) for table, score in scores.items() for other in neighbours(table)
    )
    assert 1_000 <= largest <= SCORE_SENSITIVITY


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("cases", "controls", "critical"), DESIGNS)
def test_a_score_below_zero_is_the_exact_distance(kind, cases, controls, critical):
    scores = all_scores(kind, cases, controls, critical)
    significant = {t for t in scores if statistic(kind, *t) > Fraction(critical)}
    assert significant
    assert len(significant) < len(scores)
    away = search(kind, significant, scores)
    for table, score in scores.items():
        if table in significant:
            assert score >= -1_000
        else:
            assert score == -1_000 * away[table], table


def search(kind, significant, tables):
    """Return how far each table is from a significant one, by breadth-first search.

    For the allelic test only allele counts matter, and a person changes them by up to two.
    """
    away = dict.fromkeys(significant, 0)
    if kind == "trend":
        queue = deque(significant)
        while queue:
            table = queue.popleft()
            for other in neighbours(table):
                if other not in away:
                    away[other] = away[table] + 1
                    queue.append(other)
        return away
    alleles = {(r[1] + 2 * r[2], s[1] + 2 * s[2]) for r, s in significant}
    found = {}
    for r, s in tables:
        x, w = r[1] + 2 * r[2], s[1] + 2 * s[2]
        if (r, s) not in away:
            found[r, s] = min((abs(x - y) + abs(w - z) + 1) // 2 for y, z in alleles)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_distance_of_a_significant_snp_is_never_overstated(kind):
    cases, controls, critical = 7, 6, 6.6
    scores = all_scores(kind, cases, controls, critical)
    inside = {t for t in scores if statistic(kind, *t) <= Fraction(critical)}
    away = dict.fromkeys(inside, 0)
    queue = deque(inside)
    while queue:
        table = queue.popleft()
        for other in neighbours(table):
            if other not in away:
                away[other] = away[table] + 1
                queue.append(other)
    assert max(scores.values()) > 0
    assert all(score <= 1_000 * (away[t] - 1) for t, score in scores.items() if t not in inside)


def random_counts(rng, people, size):
    p = rng.beta(0.5, 0.5, (size, 1))
    cuts = rng.dirichlet([0.3, 0.3, 0.3], size) * (1 - p) + p * np.eye(3)[rng.integers(0, 3, size)]
    return np.array([rng.multinomial(people, row / row.sum()) for row in cuts])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("cases", "controls", "threshold"), [(60, 45, 1e-3), (500, 4_000, 5e-8), (50_000, 50_000, 5e-8)]
)
def test_one_person_moves_no_score_of_a_large_cohort_too_far(kind, cases, controls, threshold):
    rng = np.random.default_rng(11)
    test = AssociationTest.at(kind, cases=cases, controls=controls, threshold=threshold)
    r, s = random_counts(rng, cases, 3_000), random_counts(rng, controls, 3_000)
    s[::2] = np.array([rng.multinomial(controls, row / cases) for row in r[::2]])  # near the border
    other_r, other_s = r.copy(), s.copy()
    for row in range(len(r)):
        side = other_r if rng.random() < 0.5 else other_s
        a = rng.choice(np.flatnonzero(side[row]))
        side[row, a] -= 1
        side[row, (a + rng.integers(1, 3)) % 3] += 1
    change = np.abs(test.scores(r, s) - test.scores(other_r, other_s))
    assert 0 < change.max() <= SCORE_SENSITIVITY


@pytest.mark.parametrize("kind", KINDS)
def test_a_verdict_that_floats_cannot_decide_is_exact(kind):
    """The critical value is the statistic of one table: it is not above it, however floats round."""
    r, s = np.array([[700, 250, 50]]), np.array([[600, 300, 100]])
    exact = statistic(kind, r[0].tolist(), s[0].tolist())
    for critical in (float(exact), np.nextafter(float(exact), 0), np.nextafter(float(exact), 9e9)):
        test = AssociationTest(kind, 1_000, 1_000, critical)
        a, b = r[:, 1] + 2 * r[:, 2], s[:, 1] + 2 * s[:, 2]
        q = r[:, 1] + 4 * r[:, 2] + s[:, 1] + 4 * s[:, 2]
        verdict = test._allelic(a, b) if kind == "allelic" else test._trend(a, b, q)
        assert bool(verdict[0]) == (exact > Fraction(critical))


@pytest.mark.parametrize("kind", KINDS)
def test_a_cohort_in_which_nothing_can_be_significant_is_refused(kind):
    with pytest.raises(TacitError, match="no SNP can reach") as refused:
        AssociationTest.at(kind, cases=5, controls=5, threshold=5e-8)
    assert refused.value.code == "bad-parameter"


def test_a_threshold_that_is_not_a_p_value_is_refused():
    with pytest.raises(TacitError, match="threshold must be a number above 0 and below 1"):
        AssociationTest.at("trend", cases=100, controls=100, threshold=0)
