"""Certified bounds against 30-digit references: on the right side of the truth, and close to it."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from tacit.accounting._laws import (
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    LossLaw,
    Parts,
    RandomizedResponseLoss,
    SampledLoss,
    canonical,
)
from tacit.accounting.numeric import delta_bounds, epsilon_bounds

REFERENCES = json.loads((Path(__file__).parents[2] / "data" / "accounting_references.json").read_text())
TIGHT = 1e-5  # relative distance of a certified upper epsilon from the truth
FEW = 2e-5  # the same for two or three sampled steps, which are taken as finite pairs


def _law(fields: dict[str, str]) -> LossLaw:
    name, numbers = fields["law"], {k: Fraction(v) for k, v in fields.items() if k != "law"}
    if name == "Sampled":
        return SampledLoss(numbers["q"], ((GaussianLoss(numbers["sigma"], Fraction(1)), 1),))
    kinds = {
        "Gaussian": GaussianLoss,
        "Laplace": LaplaceLoss,
        "DiscreteGaussian": DiscreteGaussianLoss,
        "DiscreteLaplace": DiscreteLaplaceLoss,
        "RandomizedResponse": RandomizedResponseLoss,
    }
    return kinds[name](**numbers)


def _parts(case: dict[str, object]) -> Parts:
    return canonical((_law(fields), times) for fields, times in case["parts"])


def _name(case: dict[str, object]) -> str:
    return f"{case['family']} {case['parts']} at {case['epsilon']}"


def test_there_are_at_least_200_references_of_every_family():
    families = Counter(case["family"] for case in REFERENCES)
    assert len(REFERENCES) >= 200
    assert len(families) >= 11
    assert min(families.values()) >= 6


@pytest.mark.parametrize("case", REFERENCES, ids=_name)
def test_delta_is_never_below_the_truth_and_close_to_it(case):
    truth, (lower, upper, _) = Decimal(case["delta"]), delta_bounds(_parts(case), float(case["epsilon"]))
    assert Decimal(lower) <= truth <= Decimal(upper)
    # What is promised is 1e-5 of epsilon; delta moves by its steepness times as much.
    assert float(Decimal(upper) / truth) - 1 <= _tight(case) * max(1.0, _steepness(case))


@pytest.mark.parametrize("case", REFERENCES, ids=_name)
def test_epsilon_is_never_below_the_truth_and_close_to_it(case):
    truth, delta = float(case["epsilon"]), float(case["delta"])
    found = epsilon_bounds(_parts(case), delta)
    assert found.lower <= truth * (1 + 1e-12)
    assert truth * (1 - 1e-12) <= found.upper <= truth * (1 + _tight(case))
    assert delta_bounds(_parts(case), found.upper).upper <= delta


def _tight(case: dict[str, object]) -> float:
    return FEW if case["family"] == "sampled gaussian, twice" else TIGHT


def _steepness(case: dict[str, object]) -> float:
    """Return about -d log delta / d log epsilon at the reference."""
    e = float(case["epsilon"])
    near = delta_bounds(_parts(case), e * 1.001).upper
    here = delta_bounds(_parts(case), e).upper
    return (here - near) / (here * 0.001) * 2
