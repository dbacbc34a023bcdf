"""A first charge may take the whole budget in epsilon and delta; then nothing else is admitted."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import tacit as tc
from tacit.accounting import Cost, Filter, Spend
from tacit.ledger.accounts import _charges

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting import Budget

BUDGET = tc.Budget(epsilon=1, delta=1e-6)
WHOLE = Cost.approximate(1, 1e-6)
GAUSSIAN = Cost.gaussian(sigma=4.2248, sensitivity=1)  # epsilon 1 at delta 1e-6
LARGER = Cost.gaussian(sigma=4.2, sensitivity=1)
LITTLE = Cost.pure(1e-9)
DAYS = tc.Blocks("day")


def opened(**facts: object) -> tc.Ledger:
    ledger = tc.Ledger.memory()
    ledger.create_account("visits", unit="row", budget=BUDGET, **facts)  # type: ignore[arg-type]
    return ledger


def refused(ledger: tc.Ledger, cost: Cost, account: str = "visits", **facts: object) -> tc.TacitError:
    with pytest.raises(tc.TacitError) as caught:
        ledger.charge(account, cost, **facts)  # type: ignore[arg-type]
    assert caught.value.code == "budget-exceeded"
    return caught.value


@pytest.mark.parametrize("cost", [WHOLE, GAUSSIAN], ids=["stated", "gaussian"])
def test_a_first_charge_may_take_everything_and_then_nothing_is_left(cost: Cost) -> None:
    ledger = opened()
    assert not ledger.account("visits").filter.admits(ledger.account("visits").filter.spend_of(cost))
    ledger.charge("visits", cost)
    assert str(ledger.remaining("visits")) == "nothing of epsilon 1"
    assert "nothing of epsilon 1" in refused(ledger, LITTLE).what
    assert refused(ledger, cost)
    assert ledger.verify().ok
    assert str(ledger.filters("visits")[-1][1].remaining) == "nothing of epsilon 1"


def test_a_cost_above_the_budget_and_a_later_charge_are_refused() -> None:
    ledger = opened()
    refused(ledger, LARGER)
    ledger.charge("visits", LITTLE)
    refused(ledger, GAUSSIAN)
    refused(ledger, WHOLE)


def test_what_takes_nothing_neither_opens_nor_closes_an_account() -> None:
    ledger = opened()
    ledger.charge("visits", Cost.zero())
    ledger.charge("visits", GAUSSIAN)
    ledger.charge("visits", Cost.zero())
    refused(ledger, LITTLE)
    assert ledger.verify().ok


def test_each_level_decides_by_its_own_charges() -> None:
    ledger = opened()
    ledger.create_account("ana", parent="visits", budget=BUDGET)
    ledger.create_account("ben", parent="visits", budget=BUDGET)
    ledger.charge("ana", GAUSSIAN)
    assert "visits" in refused(ledger, LITTLE, "ben").what  # ben has charged nothing, but the dataset has
    other = opened()
    other.create_account("ana", parent="visits", budget=tc.Budget(epsilon=9, delta=1e-5))
    other.charge("visits", LITTLE)
    assert "visits" in refused(other, GAUSSIAN, "ana").what
    assert ledger.verify().ok


def test_a_new_version_of_the_data_is_not_a_first_charge() -> None:
    ledger = opened()
    ledger.charge("visits", GAUSSIAN)
    ledger.create_account("visits", unit="row", budget=BUDGET, version=2)
    refused(ledger, GAUSSIAN)


def test_after_the_budget_grows_the_first_charge_counts_in_full() -> None:
    ledger = opened()
    ledger.charge("visits", GAUSSIAN)
    ledger.grow("visits", tc.Budget(epsilon=1.01, delta=1e-6), statement="a little more", who="curator")
    refused(ledger, LITTLE)
    ledger.grow("visits", tc.Budget(epsilon=4, delta=1e-6), statement="more", who="curator")
    spent = ledger.account("visits").filter
    ledger.charge("visits", GAUSSIAN)
    both = ledger.account("visits").filter
    assert both.rho == 2 * spent.rho  # type: ignore[operator]
    assert both.within
    assert ledger.verify().ok


def test_other_people_come_with_a_first_charge_of_their_own() -> None:
    ledger = opened()
    ledger.charge("visits", GAUSSIAN)
    ledger.refresh("visits", statement="new patients, none of the old", who="curator")
    ledger.charge("visits", GAUSSIAN)
    refused(ledger, LITTLE)
    assert ledger.verify().ok


def test_each_block_has_its_own_first_charge() -> None:
    ledger = opened(blocks=DAYS)
    ledger.charge("visits", GAUSSIAN, blocks=["monday"])
    ledger.charge("visits", GAUSSIAN, blocks=["tuesday", "wednesday"])
    refused(ledger, LITTLE, blocks=["monday"])
    refused(ledger, LITTLE, blocks=["monday", "friday"])
    refused(ledger, LITTLE)
    assert str(ledger.remaining("visits", block="monday")) == "nothing of epsilon 1"
    ledger.charge("visits", LITTLE, blocks=["friday"])
    refused(ledger, GAUSSIAN, blocks=["friday"])
    assert ledger.verify().ok
    everything = opened(blocks=DAYS)
    everything.charge("visits", GAUSSIAN)
    refused(everything, LITTLE, blocks=["monday"])
    assert everything.verify().ok


def test_a_unit_in_several_blocks_pays_a_first_charge_once_and_no_second() -> None:
    ledger = opened(blocks=replace(DAYS, per_unit=2))
    ledger.charge("visits", GAUSSIAN, blocks=["monday", "tuesday"])
    for names in itertools.product(["monday", "tuesday", "friday"], repeat=1):
        refused(ledger, LITTLE, blocks=names)
    assert ledger.verify().ok
    other = opened(blocks=replace(DAYS, per_unit=2))
    other.charge("visits", LITTLE, blocks=["friday"])
    refused(other, GAUSSIAN, blocks=["monday"])  # a unit may be in both


def test_a_run_may_take_everything() -> None:
    ledger = opened()
    run = ledger.run("visits", GAUSSIAN, plan="days", instalments=3)
    assert run.instalments == 3
    refused(ledger, LITTLE)
    assert ledger.verify().ok


def test_the_largest_single_charge_is_read_as_a_whole_too() -> None:
    ledger = tc.Ledger.memory()
    budget = tc.Budget(epsilon=9, delta=1e-5)
    ledger.create_account("visits", unit="row", budget=budget, per_charge=BUDGET)
    ledger.charge("visits", GAUSSIAN)
    with pytest.raises(tc.TacitError, match="at most epsilon 1, delta 1e-06"):
        ledger.charge("visits", LARGER)
    assert ledger.verify().ok


def test_accounts_of_the_first_schema_have_the_rule_too() -> None:
    start = Filter.start(BUDGET, version=1)
    after = start.after(GAUSSIAN.spend, GAUSSIAN.fits)
    assert not after.admits(LITTLE.spend, LITTLE.fits)
    assert str(after.remaining) == "nothing of epsilon 1"


def test_nothing_is_left_of_epsilon_if_a_first_charge_took_the_delta() -> None:
    half = Cost.approximate(0.5, 1e-6)
    start = Filter.start(BUDGET)
    assert start.how_many(half) == 1
    after = start.after(start.spend_of(half), half.fits)
    assert (after.remaining.epsilon, after.remaining.delta, after.how_many(LITTLE)) == (0, 0, 0)


def test_pure_budgets_and_budgets_in_rho_admit_what_they_admitted() -> None:
    for budget, cost in ((tc.Budget(epsilon=1), Cost.pure(1.001)), (tc.Budget(rho=0.1), Cost.zcdp(0.1001))):
        start = Filter.start(budget)
        assert not start.admits(start.spend_of(cost), cost.fits)


def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin that forgets that a first charge was there: every charge may take the whole budget."""

    def charged(self: Filter, spend: Spend, fits: Callable[[Budget], bool] | None = None) -> Filter | None:
        after = self.added(spend)
        return after if after.within or (fits is not None and fits(self.budget)) else None

    monkeypatch.setattr(Filter, "charged", charged)


def test_verification_finds_a_second_charge_of_the_whole_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened()
    with monkeypatch.context() as patch:
        broken(patch)
        ledger.charge("visits", GAUSSIAN)
        assert ledger.verify().ok
        ledger.charge("visits", GAUSSIAN)
    assert "visits" in str(ledger.verify())
    assert not ledger.verify().ok


def test_verification_finds_a_first_charge_above_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened()
    with monkeypatch.context() as patch:
        patch.setattr(_charges, "fits_alone", lambda _: lambda _: True)
        ledger.charge("visits", LARGER)
    assert not ledger.verify().ok


def test_the_whole_cost_is_read_outside_of_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    inside = []
    compute = _charges.FitNeeded.compute

    def watched(self: _charges.FitNeeded) -> None:
        inside.append(self.budget)
        compute(self)

    monkeypatch.setattr(_charges, "_FITS", {})
    monkeypatch.setattr(_charges.FitNeeded, "compute", watched)
    opened().charge("visits", GAUSSIAN)
    assert inside == [BUDGET]
