"""The encrypted secret of a stream has a length that shows nothing, and secrets written before still open."""

import json

import pytest

import tacit as tc

DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"]
PLANS = {
    "dial": lambda flu: flu.daily(n=tc.count(), total=tc.sum("x"), by="g").plan(rho=0.5),
    "tree": lambda flu: flu.daily(n=tc.count(), total=tc.sum("x"), by="g", focus="total").plan(epsilon=1),
}


def lengths(sizes, plan):
    """Return the length of the stored secret after each day; a day has so many rows."""
    flu = tc.stream(
        None, name="flu", level="event", start=DAYS[0], days=100, bounds={"x": (-1000, 1000)},
        keys={"g": ["a", "b"]}, budget=tc.Budget(epsilon=10, delta=1e-6),
    )  # fmt: skip
    made = PLANS[plan](flu)
    flu.begin(made)
    run, found = flu._begun(made)._run._held, []
    for day, size in zip(DAYS, sizes, strict=True):
        flu.append(day, {"x": [-1000] * size, "g": ["a"] * size})
        flu.release(day)
        with flu._ledger._writer.reading() as reader:
            found.append(len(reader.run_secret(run.head.count).secret))
    return found


@pytest.mark.parametrize("plan", PLANS)
def test_the_length_of_the_secret_follows_from_the_days_alone(plan):
    assert lengths([9, 0, 1], plan) == lengths([10, 2000, 0], plan)


@pytest.mark.parametrize(
    "noise",
    [
        tc.mechanisms.ToeplitzNoise(days=9, power=0.35, rho=10**9, sensitivity_squared=1),
        tc.mechanisms.TreeNoise(days=9, branching=2, epsilon=10**6, sensitivity=1),
    ],
    ids=["dial", "tree"],
)
def test_a_memory_that_was_written_without_padding_goes_on(noise):
    _, memory = noise.release_next([[40, -7]], b"")
    before = json.dumps(json.loads(memory)).encode()
    assert len(before) < len(memory)
    rows, after = noise.release_next([[2**70, 0]], before)
    again, same = noise.release_next([[2**70, 0]], memory)
    assert after == same
    assert len(rows) == len(again)


def test_the_memory_of_an_alarm_has_one_length():
    """It holds the noisy threshold, whose digits must stay secret too."""
    vector = tc.mechanisms.SparseVector(0.001, threshold=0, c=3, sensitivity=1, monotone=True, grid=1)
    memories = [vector.release_next([], b"")[1] for _ in range(60)]
    assert len({len(str(json.loads(one)["bar"])) for one in memories}) > 1
    assert len(set(map(len, memories))) == 1
    old = json.dumps(json.loads(memories[0])).encode()
    assert vector.release_next([10**9], old)[0] == [1]
