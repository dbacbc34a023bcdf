"""The entrance exam of engines, plans: every exact integer of random plans equals DuckDB's.

The plans are those of the search for neighbours: conditions, computed columns, joins, units' own statistics,
limits, public and private keys, on people with missing, infinite and tiny numbers and odd words. Which rows a
limit keeps is decided by the same keyed order on every engine.
"""

from __future__ import annotations

from typing import Any

import pytest

import random_plans as rp
from engine_exam import crowd_engine, exact
from engine_places import ENGINES, OTHERS

#: How many plans each engine answers in the quick tests; Spark needs about 0.15 s of two cores for each.
PLANS = {"postgres": 2000, "spark": 500}
#: How many more in the long tests.
MANY = 10_000


class Answers:
    """DuckDB's integers of random plans about one crowd, computed once for all engines."""

    def __init__(self, engine: Any, tables: Any, seed: int) -> None:
        self.tables, self._engine, self._seed = tables, engine, seed
        self.plans: list[Any] = []
        self._found: dict[int, Any] = {}

    def draw(self, count: int) -> list[Any]:
        if len(self.plans) < count:
            self.plans = rp.drawn_plans(count, self.tables, seed=self._seed)
        return self.plans[:count]

    def of(self, number: int) -> Any:
        if number not in self._found:
            self._found[number] = exact(self._engine, self.plans[number])
        return self._found[number]


@pytest.fixture(scope="module")
def answers(place_of):
    tables = rp.crowd(60)
    return Answers(crowd_engine(place_of("duckdb"), tables), tables, 1)


@pytest.mark.parametrize("name", OTHERS)
def test_all_integers_of_random_plans_equal_duckdbs(name, place_of, answers):
    plans = answers.draw(max(PLANS.values()))[: PLANS[name]]
    engine = crowd_engine(place_of(name), answers.tables)
    wrong = [i for i, plan in enumerate(plans) if exact(engine, plan) != answers.of(i)]
    engine.close()
    assert not wrong, f"{len(wrong)} of {len(plans)} plans differ; the first: {plans[wrong[0]]}"
