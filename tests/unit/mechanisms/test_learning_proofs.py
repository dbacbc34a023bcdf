"""The proof of training speaks of the code as it is: its names exist, and its table is what is predicted."""

import re
from fractions import Fraction
from pathlib import Path

import pytest

import tacit as tc

m = tc.mechanisms
ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/proofs/learning.md").read_text()
ROWS = re.findall(r"^\| (\d+), (\d+) \| (.*) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(
    "name", ["RoundedGaussian", "BandedSteps", "choose_bands", "Cost.gaussian", "Cost.sampled"]
)
def test_the_code_that_the_proof_names_exists(name):
    assert f"`{name}`" in PAGE
    first, *rest = name.split(".")
    found = getattr(m, first, None) or getattr(tc, first)
    for part in rest:
        found = getattr(found, part)


def test_the_methods_and_files_that_the_proof_names_exist():
    for holder, name in ((m.SampledSteps, "draw"), (m.BandedRun, "correlated")):
        assert f"`{holder.__name__}.{name}`" in PAGE
        assert hasattr(holder, name)
    assert "`moved`" in PAGE
    assert "`release_next`" in PAGE
    assert isinstance(m.BandedSteps.moved, property)
    for file in re.findall(r"`((?:src|tests)/[\w/]+\.py)`", PAGE):
        assert (ROOT / file).exists(), file


def test_the_table_has_its_rows():
    assert [(int(n), int(e)) for n, e, _ in ROWS] == [(512, 1), (1024, 4), (2048, 4), (2048, 16), (2048, 64)]


@pytest.mark.long
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} steps, {row[1]} epochs")
def test_the_table_is_what_the_choice_predicts(row):
    steps, epochs, cells = int(row[0]), int(row[1]), row[2].split(" | ")
    for epsilon, cell in zip((Fraction(1, 2), 1, 3, 8), cells, strict=True):
        sampled, alone = re.fullmatch(r"([\d.]+) \(([\d.]+)\)", cell).groups()
        asked = {"epsilon": epsilon, "delta": 1e-6, "rate": Fraction(epochs, steps), "steps": steps}
        for shown, found in (
            (sampled, m.choose_bands(**asked)),
            (alone, m.choose_bands(**asked, sampled=False)),
        ):
            assert float(shown) - 0.005 <= found.ratio <= (float(shown) + 0.005) / 0.98
