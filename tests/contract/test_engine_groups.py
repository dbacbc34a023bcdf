"""The entrance exam of engines, private groups: few or very many, an engine returns the same integers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support import engine_exam as exam
from support import engine_places as places
from support import random_plans as rp
from support.group_parts import compare
from tacit.tables.planning import _exact_integers

#: How many plans each engine answers in the quick tests; Spark needs seconds of CPU for each.
PLANS = {"duckdb": 30, "postgres": 40, "spark": 4}


@pytest.mark.parametrize("name", places.ENGINES)
def test_groups_by_size_and_shown_groups_have_the_integers_of_all_groups(name, place_of, monkeypatch):
    """Random plans with private keys, some of them with the group of missing values."""
    monkeypatch.setattr(_exact_integers, "MAX_READ", 0)
    tables = rp.crowd(60)
    drawn = [plan for plan in rp.drawn_plans(6 * PLANS[name], tables, seed=3) if plan.by][: PLANS[name]]
    engine = exam.crowd_engine(place_of(name), tables)
    groups = 0
    with engine.transaction() as data:
        for i, plan in enumerate(drawn):
            private = replace(plan, keys=None, missing=i % 2 == 0, levels=())
            groups += compare(data, private, threshold=2 + i % 5)
    engine.close()
    assert groups > 2 * PLANS[name]
