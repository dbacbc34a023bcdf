"""One unit moves no step of any declared question by more than its mechanism allows: a search for each.

A fault that the search finds is a proof. That it finds faults is shown by broken copies of every question.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import cycle, islice

import numpy as np
import pytest

import tacit as tc
from support.asked_questions import DATASETS, QUESTIONS, asked, data_for
from support.neighbouring_data import PAIRS, fixed_ranking, share_used, shares_used
from tacit.core import Question, members_of
from tacit.mechanisms import DiscreteLaplace

#: How rows with owners are declared; a pair of neighbours fits to its adjacency.
OWNED = (
    {"limits": {"rows": 1}}, {"limits": {"rows": 3}}, {"limits": {"rows": 2}, "adjacency": "replace"},
)  # fmt: skip
#: How many pairs are tried; the days of a stream are slow to open.
TRIES = {"stream": 3, "table": 9, "graph": 20}
#: Questions that take one row of each unit.
ONE_ROW = {("table", "regress"), ("table", "survival")}
#: What share a search reaches, where no pair uses all: a score moves by 1,000, and the rounding by 1.
LOOSE = {("cohort", "top_snps"): Fraction(999, 1000)}
ALL = Fraction(1) - Fraction(1, 10**9)  # roots are rounded up


@cache
def pairs(wanted):
    """Declare neighbours of one kind of dataset, once for all questions."""
    rng, found = np.random.default_rng(7), []
    facts = OWNED if wanted in {"table", "points", "trips"} else ({},)
    with fixed_ranking(5):
        for more in islice(cycle(facts), TRIES.get(wanted, 12)):
            relation = [more["adjacency"]] if "adjacency" in more else []
            pair = PAIRS[wanted](rng, *relation)
            both = [DATASETS[wanted](tc.Ledger.memory(), source=one, **more) for one in pair]
            found.append((more.get("limits", {}).get("rows"), both))
    return found


def largest_shares(kind, name, twin=lambda question: question, rows=None):
    """Return the largest share of what each step's mechanism allows that a pair of neighbours uses."""
    each = [
        shares_used(*(twin(asked(kind, name, one)[0]).plan(**QUESTIONS[kind, name][1]) for one in pair))
        for most, pair in pairs(data_for(kind, name))
        if rows is None or most == rows
    ]
    return [max(shares) for shares in zip(*each, strict=True)]


def steps_of(kind, name, data):
    """Return the steps of a question."""
    return members_of(asked(kind, name, data)[0].plan(**QUESTIONS[kind, name][1]))[0].task.steps


def test_every_kind_of_data_that_is_asked_has_neighbours():
    assert {data_for(*one) for one in QUESTIONS} == set(PAIRS)


@pytest.mark.parametrize(("kind", "name"), QUESTIONS)
def test_one_unit_moves_no_step_by_more_than_its_mechanism_allows(kind, name):
    shares = largest_shares(kind, name, rows=1 if (kind, name) in ONE_ROW else None)
    assert max(shares) <= 1
    assert min(shares) >= LOOSE.get((kind, name), ALL)  # the bound is tight: nothing pays for too much noise


# -- broken copies


def with_steps(question, change):
    """Return the question as a field would declare it that made a mistake in its steps."""
    kind = question.kind

    def draft(dataset, goal, **given):
        sound = kind.draft(dataset, goal, **given)
        steps = tuple(change(number, step) for number, step in enumerate(sound.task.steps))
        return replace(sound, task=replace(sound.task, steps=steps))

    return Question(question.dataset, replace(kind, draft=draft), question.arguments)


def too_sensitive(_number, step):
    """Calibrate a step for a sensitivity that is too small by one; where it is 1, count everything twice."""
    declared = step.mechanism.sensitivity
    if declared == 1:
        return replace(step, exact=lambda data, noisy: (2 * np.asarray(step.exact(data, noisy))).tolist())
    cost = {"epsilon": 1} if isinstance(step.mechanism, DiscreteLaplace) else {"rho": 1}
    less = declared - 1 if declared.denominator > 1 else int(declared) - 1
    return replace(step, mechanism=type(step.mechanism)(**cost, sensitivity=less))


#: Questions whose steps all add noise to numbers.
ADDITIVE = [one for one in QUESTIONS if one[0] in {"trips", "cohort"} and one not in LOOSE] + [
    *[("table", name) for name in ("agg", "suggest_limits", "measure_cut", "crosstabs", "hierarchy")],
    *[("table", name) for name in ("regress", "survival")],
    *[("graph", name) for name in ("edges", "degrees", "degree_histogram", "mixing", "degrees_by")],
    *[("graph", name) for name in ("weights", "reciprocity")],
    *[("points", name) for name in ("grid", "districts", "h3", "adaptive_grid")],
]
ADDITIVE.remove(("cohort", "summary_statistics"))


@pytest.mark.parametrize(("kind", "name"), ADDITIVE)
def test_the_search_catches_a_sensitivity_that_is_too_small(kind, name):
    rows = 1 if kind in {"table", "points", "trips"} else None
    shares = largest_shares(kind, name, lambda question: with_steps(question, too_sensitive), rows)
    assert min(shares) > 1


@pytest.mark.parametrize(
    ("kind", "name"), [("table", "agg"), ("table", "crosstabs"), ("points", "grid"), ("trips", "flows")]
)
def test_the_search_catches_a_question_that_leaves_rows_beyond_the_limit(kind, name):
    source = PAIRS[kind](np.random.default_rng(1))[0]
    promised = steps_of(kind, name, DATASETS[kind](tc.Ledger.memory(), source=source, limits={"rows": 1}))

    def of_one_row(number, step):
        return replace(step, mechanism=promised[number].mechanism)

    assert max(largest_shares(kind, name, lambda question: with_steps(question, of_one_row), rows=3)) > 1


def test_a_mechanism_whose_distance_is_not_said_fails_the_search():
    with pytest.raises(AssertionError, match="for which distance int is calibrated"):
        share_used(1, [0], [0])
