"""Facts without data, on every engine: the same plans and the same SQL as where the data is."""

from __future__ import annotations

import json

import pytest

from support import random_plans as rp
from support.asking import ledger_of
from support.engine_places import ENGINES
from support.random_plans import nb
from tacit import TacitError
from tacit.tables import open_facts

PLANS = 25


@pytest.mark.parametrize("name", ENGINES)
def test_plans_without_data_are_those_of_the_engine(name, place_of):
    place, tables = place_of(name), rp.crowd(5)
    stored = place.keep({**tables, "codes": nb.CODES})
    codes = stored.pop("codes")
    real = nb.dataset(stored, {"rows": 2}, codes=codes, engine=place.engine)
    facts = open_facts(json.loads(json.dumps(real.public_facts())), ledger_of(real))
    assert facts.tables == real.tables
    seen = 0
    for seed in range(PLANS):
        dice = rp.Dice(seed)
        try:
            plan = nb.draw_question(dice, real, dice).plan(epsilon=1, delta=1e-6)
        except TacitError:
            continue
        dice, seen = rp.Dice(seed), seen + 1
        other = nb.draw_question(dice, facts, dice).plan(epsilon=1, delta=1e-6)
        assert other.sql == plan.sql
        assert other.to_json() == plan.to_json()
    assert seen > PLANS / 2
