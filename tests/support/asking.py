"""Questions of tables that several tests ask, and many draws of one plan."""

from __future__ import annotations

import numpy as np

import tacit as tc
from support.exact_integers import exact_of
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


def subject_of(plan):
    """Return what a plan of tables measures of which rows; only tests may look."""
    return task_of(plan).subject


def ledger_of(data):
    """Return the ledger that a dataset charges; only tests may look."""
    return data._ledger


def cells_of(plan, draws):
    """Return the cells of many independent draws of a plan with one line, by column, read all at once."""
    tasks = [member.task for member in plan._members]
    subject = tasks[0].subject
    noisy = [
        sum(
            np.asarray(mechanism.release_many(np.array(lines), draws)).reshape(draws, -1)
            for mechanism, lines in zip(mechanisms, exact, strict=True)
        )
        for mechanisms, exact in zip(
            zip(*(task.mechanisms for task in tasks), strict=True),
            zip(*(exact_of(task) for task in tasks), strict=True),
            strict=True,
        )
    ]
    return {
        column.name: column.reading.read(
            subject.noises[column.step], noisy[column.step].tolist(), plan.confidence
        )
        for column in subject.columns
    }
