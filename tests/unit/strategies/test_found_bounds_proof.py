"""The proof of bounds and limits that a plan finds speaks of the code as it is, and its losses are right."""

import math
import re
from pathlib import Path

import pytest

from tacit import algebra, strategies
from tacit.strategies import (
    ANSWER_SHARE,
    LIMIT_SHARE,
    MAX_GROUPS,
    NARROWING_SHARE,
    OCTAVE_SHARE,
    CellNoise,
    OctaveCells,
    _octaves,
    answer_share,
)

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/proofs/found_bounds.md").read_text()


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        ("(`OCTAVE_SHARE`, 17/80)", str(OCTAVE_SHARE) == "17/80"),
        ("(`NARROWING_SHARE`, 3/80)", str(NARROWING_SHARE) == "3/80"),
        ("`ANSWER_SHARE`, 3/4,", str(ANSWER_SHARE) == "3/4"),
        ("and 63/80 otherwise (`answer_share`)", str(answer_share(narrowed=False)) == "63/80"),
        ("(`LIMIT_SHARE`, 1/5)", str(LIMIT_SHARE) == "1/5"),
        ("$K = 184$ public cells (124 for integers)", OctaveCells().size == 184),
        ("(124 for integers)", OctaveCells(integer=True).size == 124),
        ("`MAX_GROUPS` groups (1,000)", MAX_GROUPS == 1_000),
        ("$k = -30, \\dots, 60$", (_octaves._SMALLEST, _octaves._LARGEST) == (-30, 60)),
        ("$w \\in \\{1, 2, 4, 8\\}$", _octaves._WINDOWS == (1, 2, 4, 8)),
        ("with probability $0.005/(4K)$", _octaves._FALSE_RANGE == 0.005),
        ("$\\max(0.0005/K,\\ 2^{-1.5 d}/12)$", (_octaves._FAR_CELL, _octaves._DECAY) == (0.0005, 1.5)),
        ("4 octaves beyond", _octaves._FAR == 4),
        ("a hundred times as rarely", _octaves._UNLIKELY == 100),
        ("at most 16 equal parts", _octaves._PARTS == 16),
    ],
    ids=str,
)
def test_the_constants_of_the_proof_are_those_of_the_code(said, holds):
    assert said in PAGE
    assert holds


def test_the_code_and_the_files_that_the_proof_names_exist():
    for name in (
        "find_bounds", "OctaveRange.narrow", "find_group_bounds", "narrow_group_bounds", "choose_limit",
        "CellNoise.pooled",
    ):  # fmt: skip
        assert f"`{name}`" in PAGE
        holder = strategies
        for part in name.split("."):
            holder = getattr(holder, part)
    assert "`laplace_tail`" in PAGE
    assert hasattr(_octaves, "laplace_tail")
    assert "`MomentSums`" in PAGE
    assert hasattr(algebra, "MomentSums")
    files = re.findall(r"`((?:src|tests|benchmarks)/[\w/]+\.py)`", PAGE)
    assert len(files) >= 5
    assert all((ROOT / file).exists() for file in files)


def test_each_branch_of_the_table_adds_up():
    rows = re.findall(
        r"^\| (?:the|no) range.*?\| (\d+)/80 \| ([^|]*) \| ([^|]*) \| 1 \|$", PAGE, re.MULTILINE
    )
    assert len(rows) == 3
    for octaves, *others in rows:
        assert (
            int(octaves) + sum(int(part) for cell in others for part in re.findall(r"(\d+)/80", cell)) == 80
        )


def laplace_loss(moved, scale):
    """Return the largest privacy loss of discrete Laplace noise on counts that move so."""
    return sum(abs(step) for step in moved) / scale


def test_the_loss_of_a_histogram_is_its_epsilon_and_the_twins_lose_more():
    rows, epsilon = 5, 1.0
    joins = [rows, 0, 0]  # a unit with all its rows in one cell
    assert laplace_loss(joins, rows / epsilon) == epsilon
    assert laplace_loss([2, 2, 1], rows / epsilon) == epsilon
    assert laplace_loss(joins, 1 / epsilon) == 5 * epsilon  # the twin forgets the rows of a unit
    replaced = [-rows, rows, 0]
    assert laplace_loss(replaced, 2 * rows / epsilon) == epsilon
    assert laplace_loss(replaced, rows / epsilon) == 2 * epsilon  # the twin takes replace for add/remove
    assert math.hypot(*replaced) == pytest.approx(math.sqrt(2) * rows)


def test_discrete_noise_exceeds_a_threshold_at_most_twice_as_often():
    for scale in (0.2, 0.5, 1, 3, 20):
        for tail in (0.4, 0.1, 0.005 / 736):
            above = math.floor(CellNoise(scale).upper(tail)) + 1
            assert math.exp(-above / scale) / (1 + math.exp(-1 / scale)) <= 2 * tail
