"""The proof speaks of the code as it is: its constants and names are those of the modules."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs/proofs/noise.md").read_text()
ROWS = re.findall(r"^\| `(\w+)\.(\w+)` \| (\d+)(?:\^(-?\d+))? \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("module", "name", "base", "power"), ROWS)
def test_the_constants_of_the_proof_are_those_of_the_code(module, name, base, power):
    value = getattr(importlib.import_module(f"tacit.noise.{module}"), name)
    assert value == float(base) ** int(power or 1)


def test_the_proof_has_its_constants():
    assert len(ROWS) == 10


@pytest.mark.parametrize(
    ("module", "name"),
    [("_intervals", n) for n in ("Place", "below", "exp_minus", "logistic", "minus_log")]
    + [("_floats", n) for n in ("exp_minus", "log", "minus_log_uniform")]
    + [("_exceedances", "successes"), ("_intervals", "gaussian_mass"), ("_intervals", "pi")]
    + [("_bulk", n) for n in ("_Energy", "_Excess", "_TailHeight", "_tail_bound")],
)
def test_the_code_that_the_proof_names_exists(module, name):
    assert name in PAGE
    assert hasattr(importlib.import_module(f"tacit.noise.{module}"), name)
