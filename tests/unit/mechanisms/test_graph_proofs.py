"""The proofs for graphs speak of the code as it is, and its figures are those of known graphs."""

import re
from pathlib import Path

import pytest

import tacit as tc

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/proofs/graphs.md").read_text()


@pytest.mark.parametrize("name", ["LadderNoise", "StarLadder"])
def test_the_mechanisms_that_the_proof_names_exist(name):
    assert f"`{name}`" in PAGE
    assert hasattr(tc.mechanisms, name)


def test_the_files_that_the_proof_names_exist():
    files = re.findall(r"`((?:src|tests)/[\w/]+\.py)`", PAGE)
    assert len(files) >= 6
    assert [one for one in files if not (ROOT / one).exists()] == []


@pytest.mark.parametrize(
    ("nodes", "triangles", "width", "relative"),
    [
        (34, 45, 10, {0.1: 4.9, 1: 0.184}),  # karate
        (77, 467, 16, {0.1: 0.94, 1: 0.0284}),  # Les Miserables
        (242, 103_760, 99, {0.1: 0.0100, 1: 0.0008}),  # a primary school
    ],
)
def test_the_median_error_of_triangles_is_that_of_the_derivation(nodes, triangles, width, relative):
    """One step is allowed, because the median is a whole number."""
    for epsilon, error in relative.items():
        ladder = tc.mechanisms.LadderNoise(epsilon, most=nodes - 2)
        found = ladder.median_error(width)
        assert abs(found - error * triangles) <= 1 + 0.06 * error * triangles
