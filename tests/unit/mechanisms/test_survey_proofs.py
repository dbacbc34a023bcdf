"""The proofs of local randomizers speak of the code as it is."""

import importlib
import math
import re
from pathlib import Path

import pytest

import tacit as tc

PAGE = (Path(__file__).parents[3] / "docs/proofs/surveys.md").read_text()
ROWS = re.findall(r"^\| `([\w.]+)\.(\w+)` \| (\d+)\^(\d+) \|$", PAGE, re.MULTILINE)


def test_the_constants_of_the_proof_are_those_of_the_code():
    assert len(ROWS) == 1
    for module, name, base, power in ROWS:
        assert getattr(importlib.import_module(f"tacit.mechanisms.{module}"), name) == int(base) ** int(power)


def test_every_local_randomizer_has_its_argument():
    names = [
        name
        for name in tc.mechanisms.__all__
        if isinstance(kind := getattr(tc.mechanisms, name), type)
        and issubclass(kind, tc.mechanisms.LocalRandomizer)
        and not kind.__abstractmethods__
    ]
    assert len(names) == 5
    for name in names:
        assert f"`{name}`" in PAGE


@pytest.mark.parametrize(
    ("home", "name"),
    [
        ("local._local_randomizer", "largest_odds"),
        ("local._local_randomizer", "log_up"),
        ("local._linear_hashing", "walsh_hadamard"),
        ("local._linear_hashing.LinearHashing", "seeds_for"),
        ("local._local_randomizer.SupportRandomizer", "liar_factor"),
        ("local._number_window.NumberWindow", "unbiased"),
        ("local._memo.Memo", "change_shown"),
    ],
)
def test_the_code_that_the_proof_names_exists(home, name):
    folder, module, *kind = home.split(".")
    place = importlib.import_module(f"tacit.mechanisms.{folder}.{module}")
    assert f"`{name}`" in PAGE
    assert hasattr(getattr(place, *kind) if kind else place, name)


def test_the_figures_of_the_proof_are_those_of_the_code():
    [row] = re.findall(r"the flat variance is ([\d., and]+)\. Wang", PAGE)
    figures = [float(one) for one in re.findall(r"[\d.]+\d", row)]
    for epsilon, figure in zip((1, 2, 4, 6), figures, strict=True):
        window = tc.mechanisms.NumberWindow(epsilon=epsilon, steps=10_000, expected="any")
        assert window.variance(0) == pytest.approx(
            figure, abs=6 * 10 ** -(len(str(figure).split(".")[1]) + 1)
        )


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 3, 7])
@pytest.mark.parametrize("steps", [1, 2, 7, 40])
def test_no_mixture_of_a_window_and_the_coin_is_better_than_the_flat_one(epsilon, steps):
    """The lemma, for every half-width: a + k is at least D^2."""
    for h in range(steps + 1):
        window = tc.mechanisms.NumberWindow(epsilon=epsilon, steps=steps, half_width=h, duchi=False)
        second_moment = window.variance(1) + 1
        assert second_moment >= float(window.coin_value) ** 2 * (1 - 1e-12)
        assert math.isclose(window.variance(-1), window.variance(1))
