"""The proof speaks of the code as it is: its constants and names are those of the modules."""

import importlib
import re
from fractions import Fraction
from pathlib import Path

import pytest

import tacit as tc

PAGE = (Path(__file__).parents[3] / "docs/proofs/mechanisms.md").read_text()
ROWS = re.findall(r"^\| `([\w.]+)\.(\w+)` \| (\d+)(?:\^(\d+))? \|$", PAGE, re.MULTILINE)


def test_the_proof_has_its_constants():
    assert len(ROWS) == 3


@pytest.mark.parametrize(("module", "name", "base", "power"), ROWS)
def test_the_constants_of_the_proof_are_those_of_the_code(module, name, base, power):
    assert getattr(importlib.import_module(f"tacit.mechanisms.{module}"), name) == int(base) ** int(
        power or 1
    )


def test_the_pad_of_the_corollary_is_that_of_the_code():
    from tacit.mechanisms.additive._grid_noise import _PAD

    assert Fraction(1, 2**20) == _PAD - 1
    assert "$S (1 + 2^{-20})$ steps" in PAGE


@pytest.mark.parametrize(
    "name",
    [
        "coarsest",
        "fine_grid",
        "clip",
        "DiscreteGaussian",
        "Gaussian",
        "KeySelection",
        "Laplace",
        "Moments",
        "QuantileChoice",
        "Quantiles",
        "Cost.sampled",
    ],
)
def test_the_code_that_the_proof_names_exists(name):
    assert f"`{name}`" in PAGE
    homes = [
        tc,
        tc.mechanisms,
        *(importlib.import_module(f"tacit.mechanisms.{m}") for m in ("additive._lattice_noise", "_grid")),
    ]
    first, *rest = name.split(".")
    found = next(getattr(home, first) for home in homes if hasattr(home, first))
    for part in rest:
        found = getattr(found, part)
    assert callable(found)


@pytest.mark.parametrize(
    "word",
    [
        "Exponential",
        "Noisy max",
        "permute-and-flip",
        "Top k",
        "Quantiles",
        "Randomized response",
        "Sparse vector",
        "**Sum**",
        "**Mean",
        "**Variance",
        "**Histogram**",
        "**Bounds",
        "Sampling",
        "The auditor",
    ],
)
def test_every_kind_of_mechanism_has_its_argument(word):
    assert word in PAGE
