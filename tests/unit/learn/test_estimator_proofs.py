"""The proofs of estimators speak of the code as it is."""

from pathlib import Path

import pytest

import tacit as tc
from tacit.learn.estimators import _generalised_linear, _linear, _whole_features

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/proofs/estimators.md").read_text()


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("`FEATURE_STEPS` is $2^{12}$", _whole_features.FEATURE_STEPS == 2**12),
        ("$2^{-16}$ (`RESIDUAL_STEPS`)", _generalised_linear.RESIDUAL_STEPS == 2**16),
        ("$B = 2^{28}$ (`CLIP_STEPS`", _generalised_linear.CLIP_STEPS == 2**28),
        (
            "$41^2 = 1681 \\le 2 \\cdot 29^2 = 1682$",
            (_linear.SQUARE, _linear.PRODUCT) == (29, 41),
        ),
        ("\\lambda \\ge 3 \\cdot 2 s\\sqrt{D}", _linear._CLEAR == 3),
        (
            "weights $W$",
            (_generalised_linear._WEIGHT_STEPS, _generalised_linear._MAX_WEIGHT) == (2**16, 2**8),
        ),
        ("`Ledger.keyed_digest`", hasattr(tc.Ledger, "keyed_digest")),
        ("`BestRun.draw_runs`", hasattr(tc.mechanisms.BestRun, "draw_runs")),
    ],
)
def test_the_constants_of_the_proof_are_those_of_the_code(said, value):
    assert said in PAGE
    assert value


def test_the_files_that_the_proof_names_exist():
    for name in (
        "tests/unit/learn/test_unit_gradients.py", "tests/twins/learn_estimators.py",
        "tests/statistical/test_learn_estimators.py",
    ):  # fmt: skip
        assert name in PAGE
        assert (ROOT / name).exists()
