"""Trips between public zones (docs/proofs/map_trees.md, section "Trips")."""

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from support.exact_integers import exact_of_plan
from tacit.core import members_of
from tacit.errors import TacitError

rng = np.random.default_rng(4)
ZONES = ["north", "south", "west"]


def rides(people, each=5):
    size = people * each
    names = np.array([*ZONES, "elsewhere", None], dtype=object)
    return pd.DataFrame({
        "who": np.repeat(np.arange(people), each),
        "from": rng.choice(names, size), "to": rng.choice(names, size),
        "lat1": rng.uniform(-1, 9, size), "lon1": rng.uniform(-1, 9, size),
        "lat2": rng.uniform(-1, 9, size), "lon2": rng.uniform(-1, 9, size),
    })  # fmt: skip


def by_name(frame, rows=3, **more):
    facts = {"unit": "who", "limits": {"rows": rows}, "budget": tc.Budget(epsilon=100)} | more
    return tc.maps.trips(frame, origin="from", destination="to", **facts)


def by_place(frame, rows=3, **more):
    facts = {"unit": "who", "limits": {"rows": rows}, "budget": tc.Budget(epsilon=100)} | more
    return tc.maps.trips(
        frame, origin=("lat1", "lon1"), destination=("lat2", "lon2"), box=((0, 0), (8, 8)), **facts
    )


def matrix(plan):
    return exact_of_plan(plan)[0]


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize(("make", "zones"), [(by_name, ZONES), (by_place, (2, 3))], ids=["names", "points"])
def test_one_person_moves_all_pairs_by_at_most_the_limit(make, zones, adjacency):
    for _ in range(25):
        frame = rides(int(rng.integers(2, 8)))
        other = frame[frame.who != 0]
        if adjacency == "replace":
            other = pd.concat([other, rides(1)])
        made = [make(data, adjacency=adjacency) for data in (frame, other)]
        made[1]._source._secret = made[0]._source._secret
        plans = [trips.flows(zones).plan(epsilon=1) for trips in made]
        a, b = (matrix(plan) for plan in plans)
        [noise] = members_of(plans[0])[0].task.mechanisms
        assert np.abs(a - b).sum() <= noise.sensitivity == 3 * (2 if adjacency == "replace" else 1)


def test_all_pairs_are_released_also_those_without_a_trip():
    frame = pd.DataFrame({"who": [1] * 3, "from": ["north"] * 3, "to": ["south"] * 3})
    flows = by_name(frame).flows(ZONES).plan(epsilon=50).release()
    assert len(flows) == 9
    assert flows.matrix()[0, 1] == 3
    assert flows.zones == tuple(ZONES)
    assert flows["trips"].low[0] <= 0 <= flows["trips"].high[0]


def test_trips_between_points_are_counted_by_cell():
    frame = pd.DataFrame(
        {"who": range(40), "lat1": [1.0] * 40, "lon1": [1.0] * 40, "lat2": [7.0] * 40, "lon2": [5.0] * 40}
    )
    flows = by_place(frame, rows=1).flows((2, 2)).plan(epsilon=50).release()
    assert flows.matrix()[0, 3] == pytest.approx(40, abs=2)


@pytest.mark.parametrize(("make", "zones"), [(by_name, ZONES), (by_place, (2, 3))], ids=["names", "points"])
@pytest.mark.parametrize("cost", [{"epsilon": 0.5}, {"rho": 0.1}, {"epsilon": 1, "delta": 1e-6}], ids=str)
def test_a_plan_comes_back_from_json_and_a_release_from_its_file(make, zones, cost, tmp_path):
    budget = tc.Budget(rho=1) if "rho" in cost else tc.Budget(5, 1e-5)
    trips = make(rides(4), budget=budget)
    plan = trips.flows(zones).plan(**cost)
    assert trips.plan_from(plan.to_json()).hash == plan.hash
    plan.release().save(tmp_path / "flows.json")
    again = tc.Release.load(tmp_path / "flows.json")
    assert again.matrix().tolist() == plan.release().matrix().tolist()
    plan.release().plot().savefig(tmp_path / "flows.png")


def test_bad_trips_are_refused():
    frame = rides(2)
    for ask in (
        lambda: by_name(frame, limits=None),
        lambda: by_name(frame, limits={"groups": 2}),
        lambda: by_name(frame, box=((0, 0), (8, 8))),
        lambda: tc.maps.trips(frame, origin=("lat1", "lon1"), destination=("lat2", "lon2"), unit="who",
                              limits={"rows": 2}, budget=tc.Budget(epsilon=1)),
        lambda: tc.maps.trips(frame, origin="from", destination=("lat2", "lon2"), unit="who",
                              limits={"rows": 2}, budget=tc.Budget(epsilon=1)),
        lambda: by_name(frame).flows("north").plan(epsilon=1),
        lambda: by_name(frame).flows(["a", "a"]).plan(epsilon=1),
        lambda: by_place(frame).flows([1, 2, 3]).plan(epsilon=1),
        lambda: by_place(frame).flows((100, 100)).plan(epsilon=1),
        lambda: by_name(frame, unit="from"),
        lambda: by_name(frame, unit=tc.Unit.row()),
    ):  # fmt: skip
        with pytest.raises(TacitError) as refused:
            ask()
        assert str(refused.value.fix)


def test_a_missing_limit_names_the_function_that_declares_trips():
    rides = pd.DataFrame({"who": [1], "from": ["N"], "to": ["S"]})
    with pytest.raises(tc.TacitError, match="nothing bounds") as refused:
        tc.maps.trips(rides, origin="from", destination="to", unit="who", budget=tc.Budget(epsilon=1))
    assert "tc.maps.trips(..., limits=" in str(refused.value)


def test_the_picture_of_flows_shows_the_error():
    rides = pd.DataFrame({"from": ["N"], "to": ["S"]})
    made = tc.maps.trips(
        rides, origin="from", destination="to", unit=tc.Unit.row(), budget=tc.Budget(epsilon=1)
    )
    found = made.flows(["N", "S"]).plan(epsilon=1).release()
    title = found.plot().axes[0].get_title(loc="left")
    assert "each pair +/- 3 at 95 %" in title


def test_zones_that_are_whole_numbers_match_however_they_are_written():
    frame = pd.DataFrame({"who": [1, 2], "from": [1.0, 2.0], "to": [2, 2]})
    for zones in ([1, 2], [1.0, 2.0], ["1", "2"]):
        assert matrix(by_name(frame).flows(zones).plan(epsilon=1)).tolist() == [0, 1, 0, 1]


def test_neither_direction_of_a_daily_trip_vanishes():
    frame = pd.DataFrame({"who": np.repeat(np.arange(400), 2), "from": ["north", "south"] * 400})
    frame["to"] = ["south", "north"] * 400
    there, back = matrix(by_name(frame, rows=1).flows(["north", "south"]).plan(epsilon=1))[[1, 2]]
    assert there + back == 400
    assert min(there, back) > 130
