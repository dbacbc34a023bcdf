"""How many groups a private selection shows, against the best law there is and against what showed fewer.

Figures before, with a threshold on discrete Laplace noise: 96 and 20 keys of the Zipf tables; of the flights
below none, since the selection got a two-hundredth of epsilon.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import tacit as tc

#: Planes and flights of the carriers that left New York in 2013, sizes as in nycflights13.
CARRIERS = {
    "UA": (621, 58665), "B6": (193, 54635), "EV": (316, 54173), "DL": (629, 48110), "AA": (601, 32729),
    "MQ": (238, 26397), "US": (290, 20536), "9E": (204, 18460), "WN": (583, 12275), "VX": (53, 5162),
    "FL": (129, 3260), "AS": (84, 714), "F9": (26, 685), "YV": (58, 601), "HA": (14, 342), "OO": (28, 32),
}  # fmt: skip


def zipf(largest: int) -> dict[str, int]:
    """Keys of sizes largest/1, largest/2, ... down to single units."""
    return {f"key {r}": largest // r for r in range(1, largest + 1)}


def plain_threshold(epsilon: float, delta: float, groups: int) -> int:
    """Korolova et al. 2009 on the integers: the threshold on discrete Laplace noise."""
    a, t = math.exp(-epsilon / groups), 1
    while groups * a**t / (1 + a) > delta:
        t += 1
    return 1 + t


def chance(mechanism, units: int) -> float:
    """Return the chance that a key with so many units is shown, by the law that the mechanism states."""
    missing = mechanism.threshold - units
    if missing > 0:
        return mechanism.law.exceeds(missing - 1) / 2
    return 1 - mechanism.law.exceeds(-missing) / 2


@pytest.mark.parametrize(
    ("groups", "largest", "before", "goal"), [(1, 12_800, 96, 116), (5, 14_800, 20, 27)], ids=["1", "5"]
)
def test_a_zipf_table_shows_as_many_keys_as_the_best_law(groups, largest, before, goal):
    sizes = zipf(largest)
    plain = plain_threshold(0.1, 1e-6, groups)
    assert sum(n >= plain for n in sizes.values()) == before
    mechanism = tc.mechanisms.KeySelection(0.1, delta=1e-6, groups=groups)
    known = {n: chance(mechanism, n) for n in set(sizes.values())}
    chances = np.array([known[n] for n in sizes.values()])
    assert goal <= chances.sum() < goal + 3  # no law shows many more
    shown = [len(mechanism.release(sizes)) for _ in range(60)]
    six = 6 * math.sqrt((chances * (1 - chances)).sum() / len(shown))
    assert six < 2.4
    assert np.mean(shown) == pytest.approx(chances.sum(), abs=six)


@pytest.fixture(scope="module")
def flights():
    rng = np.random.default_rng(13)
    lines = []
    for carrier, (planes, many) in CARRIERS.items():
        flown = np.concatenate([np.arange(planes), rng.integers(0, planes, many - planes)])
        lines += [(f"{carrier}{plane}", carrier) for plane in flown]
    return pd.DataFrame(lines, columns=["tailnum", "carrier"])


def test_flights_by_carrier_show_at_least_ten_carriers(flights):
    """Epsilon 1, delta 1e-7, 200 flights of each plane, which has one carrier."""
    data = tc.protect(
        flights,
        unit="tailnum",
        limits={"rows": 200, "groups": 1},
        budget=tc.Budget(epsilon=100, delta=1e-3),
    )
    plan = data.group_by("carrier").agg(flights=tc.count()).plan(epsilon=1, delta=1e-7)
    release = plan.release()
    assert len(release) >= 10
    sizes = flights.groupby(["carrier", "tailnum"]).size().clip(upper=200).groupby("carrier").sum()
    errors = [
        abs(n - sizes[c]) for c, n in zip(release.keys["carrier"], release["flights"].value, strict=True)
    ]
    assert max(errors) < 400 * 20  # scale 400; P < 1e-7
    both = data.group_by("carrier").agg(flights=tc.count(), planes=tc.count_units())
    again = both.plan(epsilon=1, delta=1e-7)
    assert again.mechanisms == plan.mechanisms  # the selection of the carriers has counted their planes
    assert next(f.error for f in again.forecast if f.column == "planes") <= 6


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_no_attack_on_keys_that_are_given_by_size_exceeds_the_cost(law):
    """The key of the unit in question stands among others of its size, or reaches the threshold by it."""
    spent = {"epsilon": 1} if law == "laplace" else {"rho": 0.125}
    mechanism = tc.mechanisms.KeySelection(**spent, delta=0.05, groups=1)

    def draw(units, size):
        small = {n: sorted({"other", *(["own"] * (n == units))}) for n in (1, mechanism.threshold - 1)}
        large = {"own": units} if units >= mechanism.threshold else {}
        keys = tc.mechanisms.KeysBySize(
            large,
            {n: len(keys) for n, keys in small.items()},
            lambda ranks: {n: [f"{small[n][rank]} {n}" for rank in some] for n, some in ranks.items()},
        )
        made = [{k.split()[0]: n for k, n in one.items()} for one in mechanism.release_many(keys, size)]
        return [one.get("own", -1) for one in made]

    for pair in ((1, 0), (mechanism.threshold, mechanism.threshold - 1)):
        found = tc.audit.audit(draw, *pair, samples=4_000, delta=0.05, claimed=mechanism.cost)
        assert found.holds, found
