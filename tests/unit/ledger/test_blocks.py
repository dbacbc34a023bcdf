"""Blocks: their arithmetic against brute force, their names, and the entries that name them."""

import itertools
import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting import Budget, Cost, Filter, Spend
from tacit.errors import TacitError
from tacit.ledger import Blocks, Ledger
from tacit.ledger.accounts._blocks import BlockFull, BlockTotals, charge_blocks, read_block_names, with_blocks
from tacit.ledger.checks._chain import blocks_of, canonical, spend_from_text, spend_to_text
from tacit.ledger.draws._draws import covers
from tacit.ledger.stores._store import EntryRow

BUDGETS = [
    Budget(epsilon=1),
    Budget(rho=0.1),
    Budget(rho=0.1, delta=1e-6),
    Budget(epsilon=1, delta=1e-6),
    Budget(epsilon=3, delta=1e-5),
]
COSTS = [
    Cost.pure(Fraction(1, 7)),
    Cost.pure(0.4),
    Cost.gaussian(sigma=20, sensitivity=1),
    Cost.gaussian(sigma=8, sensitivity=1),
    Cost.approximate(0.05, 1e-8),
    Cost.gaussian(sigma=2, sensitivity=1).sampled(0.01),
]
NAMES = ["a", "b", "c", "d"]

charges = st.lists(
    st.tuples(st.sampled_from(COSTS), st.sets(st.sampled_from(NAMES), max_size=3)), min_size=1, max_size=25
)


class Model:
    """An account with blocks that keeps every charge of every unit, and nothing else."""

    def __init__(self, budget, per_unit):
        self.start, self.per_unit = Filter.start(budget), per_unit
        self.everywhere, self.blocks = self.start, {}

    def charge(self, spend, names):
        if not names:
            self.everywhere = self.everywhere.added(spend)
        for name in names:
            self.blocks[name] = self.blocks.get(name, self.start).added(spend)

    def of_unit(self, names):
        """Add up exactly what a unit in these blocks has paid at most."""
        total = self.everywhere
        for name in names:
            total = total.added(self.blocks[name].spent)
        return total

    def units(self):
        known = sorted(self.blocks)
        most = min(self.per_unit, len(known))
        return itertools.combinations(known, most)


def coordinates(filter_):
    orders = (total for _, total in filter_.curve)
    return (filter_.epsilon, filter_.delta, filter_.rho, *orders, *(filter_.promised or ()))


def apply(totals, own, cost, names):
    """Charge as the ledger does; None if the charge is refused."""
    spend = totals.all.spend_of(cost)
    if not names:
        if not totals.whole().admits(spend):
            return None
        return replace(totals, all=totals.all.added(spend)), own
    try:
        totals, charged = charge_blocks(totals, {n: own.get(n, totals.empty) for n in sorted(names)}, spend)
    except BlockFull:
        return None
    return totals, own | charged


@given(charges, st.sampled_from(BUDGETS), st.integers(1, 3))
def test_every_choice_of_blocks_that_a_unit_can_be_in_stays_within_the_budget(charged, budget, per_unit):
    totals, own, model = BlockTotals.start(Filter.start(budget), per_unit), {}, Model(budget, per_unit)
    for cost, names in charged:
        done = apply(totals, own, cost, names)
        if done is None:
            continue
        totals, own = done
        model.charge(totals.all.spend_of(cost), names)
        for unit in model.units():
            assert model.of_unit(unit).within
        assert model.everywhere.within


@given(charges, st.sampled_from(BUDGETS), st.integers(1, 3))
def test_the_largest_sums_are_those_of_all_blocks_in_each_coordinate(charged, budget, per_unit):
    totals, own, model = BlockTotals.start(Filter.start(budget), per_unit), {}, Model(budget, per_unit)
    for cost, names in charged:
        done = apply(totals, own, cost, names)
        if done is None:
            continue
        totals, own = done
        model.charge(totals.all.spend_of(cost), names)
        everything = [coordinates(one) for one in model.blocks.values()]
        assert sorted(own.values(), key=str) == sorted(everything, key=str)
        for place, column in enumerate(zip(*totals.fullest, strict=True)):
            values = [one[place] for one in everything] + [Fraction(0)] * per_unit
            values.sort(key=lambda value: (value is None, value or 0), reverse=True)
            assert list(column) == values[:per_unit]
        assert totals == with_blocks(totals, own) == with_blocks(totals.without_blocks(), own)
        assert totals.last == max(own, default="")
        assert BlockTotals.from_json(json.loads(canonical(totals.to_json())), per_unit) == totals


@given(charges, st.sampled_from(BUDGETS), st.integers(1, 3))
def test_a_refused_charge_would_break_the_sum_of_the_fullest_blocks(charged, budget, per_unit):
    totals, own, model = BlockTotals.start(Filter.start(budget), per_unit), {}, Model(budget, per_unit)
    for cost, names in charged:
        done = apply(totals, own, cost, names)
        if done is not None:
            totals, own = done
            model.charge(totals.all.spend_of(cost), names)
            continue
        model_after = Model(budget, per_unit)
        model_after.everywhere, model_after.blocks = model.everywhere, dict(model.blocks)
        model_after.charge(totals.all.spend_of(cost), names)
        after = replace(totals, all=model_after.everywhere)
        sums = {name: coordinates(one) for name, one in model_after.blocks.items()}
        assert not with_blocks(after, sums).whole().within


@given(charges, st.sampled_from(BUDGETS), st.integers(1, 3), st.sampled_from(NAMES))
def test_what_remains_of_a_block_fits_and_what_is_above_does_not(charged, budget, per_unit, name):
    totals, own = BlockTotals.start(Filter.start(budget), per_unit), {}
    for cost, names in charged:
        totals, own = apply(totals, own, cost, names) or (totals, own)
    beside = totals.beside(own.get(name, totals.empty))
    left = beside.remaining.rho if budget.rho is not None else beside.remaining.epsilon
    kind = "rho" if budget.rho is not None else "epsilon"
    if left:
        charge_blocks(totals, {name: own.get(name, totals.empty)}, Spend(**{kind: left}))
    with pytest.raises(BlockFull):
        charge_blocks(totals, {name: own.get(name, totals.empty)}, Spend(**{kind: (left or 0) * 2 + 1}))


@pytest.mark.parametrize(
    "given_",
    ["2026-01-03", b"a", 7, None, [""], ["a\n"], [7], ["x" * 201], [str(i) for i in range(1001)]],
    ids=str,
)
def test_odd_names_of_blocks_are_refused(given_):
    with pytest.raises(TacitError, match="code: bad-parameter"):
        read_block_names(given_)


def test_names_are_in_order_and_each_once():
    assert read_block_names(["b", "a", "b"]) == ("a", "b")
    assert read_block_names(name for name in "ab") == ("a", "b")


@pytest.mark.parametrize(
    "wrong", [{"by": ""}, {"by": 3}, {"per_unit": 0}, {"per_unit": 101}, {"per_unit": 1.5}]
)
def test_odd_partitions_are_refused(wrong):
    with pytest.raises(TacitError, match="code: bad-parameter"):
        Blocks(**{"by": "day", **wrong})


TRICKS = ['","blocks":["all"],"cost":{', '\\","blocks":["x"]', ',"blocks":["x"]', '"],"blocks":["x"']


@pytest.mark.parametrize("text", TRICKS)
@pytest.mark.parametrize("blocks", [(), ("b", 'o"dd', "ä,]")], ids=str)
def test_no_words_of_people_are_taken_for_blocks(text, blocks):
    with Ledger.memory() as ledger:
        ledger.create_account("visits", unit="row", budget=Budget(epsilon=3), blocks=Blocks("day"))
        ledger.charge("visits", COSTS[0], asked=text, purpose=text, who=text, blocks=blocks)
        with ledger._writer.store.reading() as reader:
            body = reader.entry(2).body
        assert tuple(blocks_of(body)) == tuple(sorted(blocks)) == ledger.history()[1].blocks
        assert ledger.verify().ok


def test_a_cost_cannot_name_blocks():
    assert blocks_of('{"at":"x","cost":{"a":1,"blocks":["b"]},"purpose":""}') == []


@given(st.sampled_from(COSTS), st.sampled_from(BUDGETS))
def test_a_spend_with_its_curve_survives_the_log(cost, budget):
    spend = Filter.start(budget).spend_of(cost)
    assert spend_from_text(spend_to_text(spend)) == spend


def payment(spend, blocks=(), cost=COSTS[1]):
    named = {"blocks": list(blocks)} if blocks else {}
    body = canonical({"at": "x", "cost": cost.to_json(), "purpose": "", **named})
    return EntryRow(9, "draw", 1, "1", spend_to_text(spend), "p", "", body, b"")


@pytest.mark.parametrize(
    ("mine", "its", "enough"),
    [
        ((), (), True),
        ((), ("a",), True),
        (("a",), (), False),
        (("a",), ("a",), True),
        (("a", "b"), ("a",), True),
        (("a",), ("a", "b"), False),
        (("b",), ("a",), False),
    ],
)
def test_a_payment_covers_a_draw_only_on_all_of_its_blocks(mine, its, enough):
    spend = COSTS[1].spend
    assert covers(payment(spend, mine), payment(spend, its)) is enough


def test_a_payment_covers_a_draw_only_at_every_order_it_was_charged_at():
    dear = Spend(None, 0, None, [(2, 1), (5, 3)])
    assert covers(payment(Spend(None, 0, None, [(2, 1), (5, 4)])), payment(dear))
    assert not covers(payment(Spend(None, 0, None, [(2, Fraction(1, 2)), (5, 4)])), payment(dear))
    assert covers(payment(Spend(None, 0, None, [(5, 3)])), payment(dear))
    assert covers(payment(Spend(None, 0, None)), payment(dear))
