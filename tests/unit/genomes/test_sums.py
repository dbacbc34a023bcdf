"""Clipped sums agree with a plain loop, and one person moves them by no more than the bound."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest

from tacit.genomes._genotypes import ArrayGenotypes
from tacit.genomes._sums import clipped_sums, norms_squared


def plain_person(calls, values, clip):
    """Return the clipped integers of one person: part x variant, without NumPy's packed ways."""
    own = [[int(row[c]) for row, c in zip(part, calls, strict=True)] for part in values]
    square = sum(v * v for part in own for v in part)
    if clip is None or square <= clip:
        return np.array(own)
    scale = isqrt(clip * 2**40 // square)
    return np.array([[(1 if v > 0 else -1) * (abs(v) * scale >> 20) for v in part] for part in own])


def plain_sums(calls, values, groups, clip):
    found = np.zeros((len(values), values.shape[1], values.shape[2]), np.int64)
    for person, group in zip(calls, groups, strict=True):
        if group >= 0:
            found[group] += plain_person(person, values[group], clip)
    return found


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("largest", [3, 40, 300])
def test_sums_agree_with_a_plain_loop(seed, largest):
    random = np.random.default_rng(seed)
    people, variants, parts, groups = random.integers(1, [70, 12, 3, 4])
    calls = random.integers(0, 4, (people, variants))
    values = random.integers(-largest, largest + 1, (groups, parts, variants, 4))
    label = random.integers(-1, groups, people)
    clip = [None, 1, int(largest**2 * variants * parts // 6) + 1][seed % 3]
    source = ArrayGenotypes(np.where(calls == 3, -1, calls).astype(np.int8), None)
    assert np.array_equal(clipped_sums(source, values, label, clip), plain_sums(calls, values, label, clip))
    squares = (values[0] ** 2).sum(axis=0)
    own = [sum(int(squares[j, c]) for j, c in enumerate(row)) for row in calls]
    assert norms_squared(source, squares, people).tolist() == own


def test_lanes_do_not_overflow():
    """1,024 in each of 1,000 variants: a lane of 16 bits holds 63 of them."""
    source = ArrayGenotypes(np.full((5, 1000), 2, np.int8), None)
    squares = np.tile([0, 0, 1024, 0], (1000, 1))
    assert norms_squared(source, squares, 5).tolist() == [1024 * 1000] * 5


@pytest.mark.parametrize("seed", range(4))
def test_a_clipped_person_stays_within_the_bound(seed):
    random = np.random.default_rng(seed)
    for _ in range(300):
        variants = int(random.integers(1, 9))
        values = random.integers(-33, 34, (1, 1, variants, 4))
        clip = int(random.integers(1, 2000))
        calls = random.integers(-1, 3, (1, variants)).astype(np.int8)
        moved = clipped_sums(ArrayGenotypes(calls, None), values, np.zeros(1, np.int64), clip)
        assert (moved**2).sum() <= clip
        plain = values[0, 0][np.arange(variants), calls[0]]
        assert (np.abs(moved[0, 0]) <= np.abs(plain)).all()
        if Fraction(int((plain**2).sum())) <= clip:
            assert np.array_equal(moved[0, 0], plain)


@pytest.mark.parametrize("tables", [(0, 1, 0), (0, 1, 1), (0, 0, 1), (1, 0, 0, 1)])
def test_each_cluster_is_clipped_by_its_own_table(tables):
    """Also a cluster whose table equals that of the first one and not that of the one before."""
    references = np.zeros((2, 1, 40, 4), np.int64)
    references[:, 0, :, :3] = 16 * np.arange(3) - np.array([2, 30])[:, None, None]
    values = references[list(tables)]
    for group in range(len(tables)):
        for call in (0, 1, 2):
            source = ArrayGenotypes(np.full((1, 40), call, np.int8), None)
            moved = clipped_sums(source, values, np.array([group]), 1000)
            assert (moved**2).sum() <= 1000
            own = plain_sums(np.full((1, 40), call), values, [group], 1000)
            assert np.array_equal(moved, own)


@pytest.mark.parametrize("clip", [None, 900])
def test_a_variant_that_never_comes_has_only_missing_calls(clip):
    class Shorter(ArrayGenotypes):
        def blocks(self, size=None):
            return (block for block in super().blocks(1) if block.places[0] != 1)

    random = np.random.default_rng(4)
    calls = random.integers(0, 4, (40, 3))
    values = random.integers(-33, 34, (1, 2, 3, 4))
    source = Shorter(np.where(calls == 3, -1, calls).astype(np.int8), None)
    calls[:, 1] = 3
    groups = np.zeros(40, np.int64)
    assert np.array_equal(clipped_sums(source, values, groups, clip), plain_sums(calls, values, groups, clip))
