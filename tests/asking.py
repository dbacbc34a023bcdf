"""Questions of tables that several tests ask, and many draws of one plan."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import tacit as tc
from tacit.core._plan_run import run
from tacit.tables import EXAMPLE_HOSPITALS, example_visits

#: A budget that no test uses up.
HUGE = tc.Budget(epsilon=10**9)


def visits(**options):
    return tc.protect(
        example_visits(),
        **{
            "name": "visits",
            "unit": "patient_id",
            "bounds": {"length_of_stay": (0, 30)},
            "keys": {"hospital": EXAMPLE_HOSPITALS},
            "budget": tc.Budget(epsilon=10**6, delta=0.01),
            **options,
        },
    )


def task_of(plan):
    """Return what a plan does once it is paid for; only tests may look."""
    return plan._members[0].task


def ledger_of(data):
    """Return the ledger that a dataset charges; only tests may look."""
    return data._ledger


def draws_of(plan, draws):
    """Yield the columns of many independent draws of a plan; no ledger stores them, as only a test can."""
    task = task_of(plan)
    seen = {}

    class Kept:
        """The exact integers do not change from draw to draw."""

        def integers(self, sql, keys, limited=()):
            if sql not in seen:
                seen[sql] = task.engine.integers(sql, keys, limited)
            return seen[sql]

    kept = replace(task, engine=Kept())
    for _ in range(draws):
        yield kept.read(json.loads(run(kept))["noisy"], Fraction(95, 100)).columns
