"""Attacks on plans of regressions and survival curves, and on broken copies of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tacit as tc
from tacit.algebra import MomentProducts, PartProducts
from tacit.audit import audit_plan

PLANS = {
    "parts": lambda d: d.regress("y", on=["x"]).plan(epsilon=1),
    "pairs": lambda d: d.regress("y", on=["x", "z"]).plan(rho=0.5),
    "logistic": lambda d: d.regress("e", on=["x"], kind="logistic", bins={"x": 3}).plan(epsilon=1),
    "survival": lambda d: d.survival(time="x", event="e", bins=[0, 3, 6]).plan(epsilon=1),
}


@pytest.fixture
def people():
    rng = np.random.default_rng(1)
    table = {"id": np.arange(60), "e": rng.random(60) < 0.5, **{c: rng.uniform(0, 9, 60) for c in "xyz"}}
    return tc.protect(
        pa.table(table), unit="id", limits={"rows": 1}, bounds=dict.fromkeys("xyz", (0, 9)),
        keys={"e": [False, True]}, budget=tc.Budget(rho=9),
    )  # fmt: skip


@pytest.mark.parametrize(
    "which",
    ["parts", *(pytest.param(one, marks=pytest.mark.long) for one in ("pairs", "logistic", "survival"))],
)
def test_an_attack_finds_nothing(people, which):
    """The verdict on noisy answers is wrong with probability 1e-9 at most, that on integers never."""
    assert audit_plan(PLANS[which](people), pairs=15, samples=2000).holds


@pytest.mark.parametrize(
    ("which", "statistic"),
    [pytest.param("parts", PartProducts, marks=pytest.mark.long), ("pairs", MomentProducts)],
)
def test_an_attack_catches_a_sensitivity_that_is_too_small(people, monkeypatch, which, statistic):
    """The broken twins: the weight of one part, or of one product, instead of all together.

    Half of the pairs do not differ in a row that counts; that all of 40 are such pairs has a chance of 1e-11.
    """

    def of_one(self, who):
        most = self.weight // 2 if isinstance(self, PartProducts) else max(self.bounds) ** 2
        return who.l1(most), who.l2_squared(most)

    monkeypatch.setattr(statistic, "sensitivity", of_one)
    plan = PLANS[which](people)
    monkeypatch.undo()
    assert not audit_plan(plan, pairs=40, samples=2000).holds
