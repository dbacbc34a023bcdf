"""Bounds are written rounded outwards, never better than they are."""

from decimal import Decimal

import pytest

from tacit.explain import believe
from tacit.explain._odds import at_least, at_most, number_up, shown_odds


def test_bounds_are_shown_rounded_outwards():
    assert at_most(0.244918) == "24.50 %"
    assert at_least(0.377541) == "37.75 %"
    assert at_most(0.5) == at_least(0.5) == "50.00 %"
    assert number_up(0.72134752) == "0.7214"
    assert [shown_odds(chance) for chance in (0.5, 0.9933, 0.99995, 1e-6)] == [
        "50:50",
        "99.4:0.6",
        "99.995:0.005",
        "0.0001:99.9999",
    ]


@pytest.mark.parametrize(
    "epsilon", [1e-6, 0.004, 0.01, 0.1, 0.2, 0.3, 0.5, 1, 2.5, 2.94, 2.95, 3, 5, 7, 20, 30]
)
def test_the_odds_are_never_shown_smaller_than_they_are(epsilon):
    reached = believe(0.5, epsilon).at_most
    shown = shown_odds(reached)
    odds, _, percents = shown.partition(" (")
    yes, no = (Decimal(side) for side in odds.split(":"))
    assert yes + no == 100
    stated = Decimal(percents.removesuffix(" %)")) if percents else yes
    assert reached - 1e-14 <= float(stated) / 100 < 1
    assert float(stated) / 100 - reached <= max(0.001, 0.5 * (reached - 0.5))
    assert yes > 50  # no epsilon leaves even odds even


def test_odds_that_are_whole_need_no_decimals():
    assert [shown_odds(chance) for chance in (0.5, 0.55, 0.75, 1)] == ["50:50", "55:45", "75:25", "100:0"]
    assert shown_odds(0.627) == "63:37 (62.7 %)"
    assert shown_odds(believe(0.5, 0.01).at_most) == "50.3:49.7"
    assert shown_odds(believe(0.5, 50).at_most) == "100:0"


@pytest.mark.parametrize("value", [1e-9, 0.1234567, 0.99999, 1.000001, 9.99999, 12345.678])
def test_numbers_rounded_up_are_not_below(value):
    assert value * (1 - 1e-12) <= float(number_up(value)) <= value * 1.002


def test_beliefs_survive_extremes():
    assert believe(0.5, 1000).at_most == 1
    assert believe(0.5, 1000).at_least == pytest.approx(0, abs=1e-300)
    assert believe(1e-12, 0).at_most == pytest.approx(1e-12)
