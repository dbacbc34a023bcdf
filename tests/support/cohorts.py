"""Small random cohorts and their neighbours, and how far one person moves the exact integers of a task."""

from __future__ import annotations

import numpy as np

import tacit as tc
from support.exact_integers import exact_of_plan
from tacit.core import members_of

NAMES = ("a", "b")


def random_person(random, variants):
    """Return calls of one person: ordinary ones, or only extreme or missing ones."""
    kind = random.integers(5)
    if kind < 2:
        return np.full(variants, random.choice([0, 2, -1]))
    if kind == 2:
        return random.choice([0, 2], variants)
    return random.integers(-1, 3, variants)


def random_neighbours(random, *, replace):
    """Return two neighbouring cohorts of calls with labels, and the public reference of the variants."""
    variants, people = int(random.integers(1, 7)), int(random.integers(replace, 6))
    calls = np.array([random_person(random, variants) for _ in range(people)]).reshape(people, variants)
    labels = random.choice([*NAMES, "other"], people).tolist()
    reference = np.round(random.choice([random.random(variants), random.integers(0, 2, variants)]), 2)
    one, label = random_person(random, variants), str(random.choice([*NAMES, "other"]))
    kept = slice(None, -1) if replace else slice(None)
    other = np.concatenate([calls[kept], one[None]])
    return (calls, labels), (other, [*labels[kept], label]), reference.tolist()


def cohort_of(rows, *, people=None):
    calls, labels = rows
    return tc.genotypes(
        calls.astype(np.int8), clusters=labels, cluster_names=NAMES, people=people, budget=tc.Budget(rho=100)
    )


def exact_integers(plan):
    """Return the exact integers of each mechanism of a plan."""
    return [np.asarray(one, np.int64) for one in exact_of_plan(plan)]


def moves(plan, other):
    """Return how far two neighbours differ for each mechanism: L1, squared L2; and the mechanisms."""
    pairs = zip(exact_integers(plan), exact_integers(other), strict=True)
    changes = [(int(np.abs(b - a).sum()), int(((b - a) ** 2).sum())) for a, b in pairs]
    return changes, members_of(plan)[0].task.mechanisms
