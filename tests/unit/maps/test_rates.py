"""Rates over public denominators."""

import numpy as np
import pytest

import tacit as tc
from tacit.errors import TacitError


@pytest.fixture(scope="module")
def surface():
    sites = tc.points(
        tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), box=tc.maps.EXAMPLE_BOX,
        budget=tc.Budget(epsilon=2),
    )  # fmt: skip
    return sites.districts(tc.maps.example_districts()).plan(epsilon=1).release()


def test_a_rate_is_the_count_over_a_public_number(surface):
    below = np.arange(len(surface.counts)) * 100.0
    rates = surface.rate(below, per=1000)["rate"]
    assert rates.value[0] is None
    assert rates.value[3] == pytest.approx(surface.counts[3] * 1000 / 300)
    wide = surface.half_widths[3] * 1000 / 300
    assert rates.high[3] - rates.value[3] == pytest.approx(wide)
    assert rates.value[3] - rates.low[3] == pytest.approx(wide)


def test_denominators_by_name_are_those_in_order(surface):
    names = surface.regions.keys["region"]
    by_name = {str(name): 10.0 + i for i, name in enumerate(reversed(names))}
    in_order = [by_name[str(name)] for name in names]
    assert surface.rate(by_name)["rate"].value == surface.rate(in_order)["rate"].value


@pytest.mark.parametrize(
    "bad", [[1, 2], [-1.0] * 12, [float("nan")] * 12, {"nowhere": 1}, "many", 3], ids=str
)
def test_denominators_that_do_not_fit_are_refused(surface, bad):
    with pytest.raises(TacitError) as refused:
        surface.rate(bad)
    assert str(refused.value.fix)
