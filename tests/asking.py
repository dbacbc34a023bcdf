"""Questions of tables that several tests ask, and many draws of one plan."""

from __future__ import annotations

from dataclasses import replace

import tacit as tc
from tacit.tables import example_visits
from tacit.tables.examples import EXAMPLE_HOSPITALS


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


def draws_of(plan, draws):
    """Yield the columns of many independent draws of a plan; no ledger stores them, as only a test can."""
    task = plan.task
    seen = {}

    class Kept:
        """The exact integers do not change from draw to draw."""

        def integers(self, sql, keys, limited=()):
            if sql not in seen:
                seen[sql] = task.engine.integers(sql, keys, limited)
            return seen[sql]

    kept = replace(task, engine=Kept())
    for _ in range(draws):
        yield kept.read(kept.run(), 0.95)["columns"]
