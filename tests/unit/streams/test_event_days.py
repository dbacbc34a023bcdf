"""The reporting triangle: totals of event days from cells of reports."""

import numpy as np
import pytest

import tacit as tc
from tacit.core import members_of
from tacit.errors import TacitError
from tacit.streams import event_days


def reported(epsilon, keys, days=6, focus="balanced", delta=0):
    flu = tc.stream(
        None, name="flu", level="event", start="2026-01-01", days=days, keys=keys,
        budget=tc.Budget(epsilon=1000, delta=1e-6),
    )  # fmt: skip
    flu.begin(flu.daily(cases=tc.count(), by=list(keys), focus=focus).plan(epsilon=epsilon, delta=delta))
    return flu


def test_event_days_add_up_what_was_reported_so_far():
    flu = reported(900, {"delay": [0, 1, 2], "region": ["a", "b"]})
    true = np.zeros((6, 2), dtype=int)
    rng = np.random.default_rng(3)
    for day in range(6):
        rows = []
        for number, region in enumerate("ab"):
            for delay in range(3):
                n = int(rng.integers(0, 9))
                rows += [{"delay": delay, "region": region}] * n
                if day >= delay:
                    true[day - delay, number] += n
        flu.append(flu.horizon.name(day + 1), [*rows, {"delay": 7, "region": "a"}])
    flu.release("2026-01-06")
    known = event_days(flu)
    assert [round(value) for value in known["cases"].value] == true.ravel().tolist()
    assert known["delays"].value == (3, 3) * 4 + (2, 2, 1, 1)
    assert known.keys["region"] == ("a", "b") * 6


@pytest.mark.parametrize("more", [{"focus": "day"}, {"delta": 1e-6, "focus": "total"}])
def test_the_interval_of_an_event_day_is_that_of_its_cells(more):
    flu = reported(1, {"delay": [0, 1, 2]}, **more)
    for day in range(1, 7):
        flu.append(flu.horizon.name(day), [])
    flu.release("2026-01-06")
    known = event_days(flu)["cases"]
    halves = [(high - low) / 2 for low, high in zip(known.low, known.high, strict=True)]
    noise = members_of(flu.plans[0])[0].task.subject.noises[0]
    draws = noise.release_many(np.zeros((6, 3), dtype=int), 20_000)
    weights = [noise.weights(1, day, 6) for day in (2, 3, 4)]
    cells = sum(draws[:, :, n] @ w for n, w in enumerate(weights))  # event day 2
    assert 0.944 < (np.abs(cells) <= halves[1]).mean() < 0.98  # four standard deviations below 95 %
    assert halves[1] > 1.3 * halves[5]  # three cells, and one


def test_delays_that_are_not_days_are_refused():
    flu = reported(1, {"region": ["a"]})
    with pytest.raises(TacitError) as refused:
        event_days(flu)
    assert refused.value.code == "bad-parameter"
