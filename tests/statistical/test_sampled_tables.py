"""Plans on a secret sample under attack: the sample is really drawn, and without it the attack wins."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import tacit as tc
from support.asking import task_of
from tacit.audit import audit
from tacit.core._plan_run import run
from tacit.engines.duckdb._dialect import DuckDBDialect

BASE = pd.DataFrame({"pid": [1, 2, 3]})
ONE = pd.DataFrame({"pid": [1, 2, 3, 99]})
EPSILON = 0.5


def _attack(samples):
    tasks = {}
    for which, frame in (("without", BASE), ("with", ONE)):
        data = tc.protect(frame, name="d", unit="pid", limits={"rows": 1}, budget=tc.Budget(epsilon=1))
        tasks[which] = task_of(data.sample(0.25).agg(n=tc.count()).plan(epsilon=EPSILON))

    def draw(which, size):
        return [float(json.loads(run(tasks[which]))["noisy"][0][0][0]) for _ in range(size)]

    return audit(draw, "with", "without", samples=samples, confidence=1 - 1e-6)


@pytest.mark.long
def test_no_attack_on_a_sampled_plan_exceeds_its_cost():
    assert _attack(3000).epsilon_lower <= EPSILON


@pytest.mark.long
def test_the_attack_finds_a_plan_that_charges_for_a_sample_and_draws_none(monkeypatch):
    monkeypatch.setattr(DuckDBDialect, "in_sample", lambda *_: "TRUE")
    assert _attack(3000).epsilon_lower > EPSILON
