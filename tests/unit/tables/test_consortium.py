"""A consortium: several datasets answer together, each with its own noise and its own budget."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from asking import HUGE
from tacit import TacitError
from tacit.tables import EXAMPLE_HOSPITALS, example_visits


def test_a_consortium_adds_up_its_members():
    frame = pd.read_parquet(example_visits())
    parts = [frame[frame["patient_id"] % 3 == i] for i in range(3)]
    members = [
        tc.protect(
            part,
            name=f"part{i}",
            unit="patient_id",
            bounds={"length_of_stay": (0, 30)},
            limits={"rows": 100},
            budget=HUGE,
            ledger=tc.Ledger.memory(),
        )
        for i, part in enumerate(parts)
    ]
    both = tc.consortium(members, disjoint=True)
    release = (
        both.ask(lambda d: d.agg(n=tc.count(), m=tc.mean("length_of_stay"))).plan(epsilon=10**7).release()
    )
    assert release["n"].value[0] == pytest.approx(len(frame), abs=1)
    assert release["m"].value[0] == pytest.approx(frame["length_of_stay"].clip(0, 30).mean(), rel=1e-3)
    assert all(m.remaining != HUGE for m in members)
    keys = EXAMPLE_HOSPITALS
    grouped = (
        both.where("age >= 65")
        .group_by("hospital", keys=keys)
        .agg(n=tc.count())
        .plan(epsilon=10**7)
        .release()
    )
    old = frame[frame["age"] >= 65].groupby("hospital").size()
    np.testing.assert_allclose(grouped["n"].value, old[list(keys)], atol=1)
    median = both.ask(lambda d: d.agg(q=tc.median("length_of_stay"))).plan(epsilon=10**5).release()
    assert median["q"].value[0] == pytest.approx(frame["length_of_stay"].clip(0, 30).median(), abs=0.2)
    assert median["q"].low[0] <= median["q"].value[0] <= median["q"].high[0]
    for asked in (lambda d: d.group_by("icd").agg(n=tc.count()), lambda d: d.agg(x=_most_common())):
        with pytest.raises(TacitError, match="can add noisy numbers"):
            both.ask(asked).plan(epsilon=1, delta=1e-6)


def _most_common():
    return tc.most_common("hospital", 1, EXAMPLE_HOSPITALS)


@pytest.mark.parametrize("disjoint", [True, False])
def test_a_consortium_stays_within_the_error_that_is_asked_for(disjoint):
    members = [
        tc.protect(f"absent{i}.csv", name=f"m{i}", unit="pid", budget=HUGE, ledger=tc.Ledger.memory())
        for i in range(4)
    ]
    plan = tc.consortium(members, disjoint=disjoint).agg(n=tc.count()).plan(within=50)
    assert plan.forecast[0].error == 50
    assert plan.cost.epsilon(delta=0) == pytest.approx(
        plan._members[0].cost.epsilon(delta=0) * (1 if disjoint else 4)
    )
    noise = [_noise_of(plan) for _ in range(2000)]
    assert np.mean(np.abs(noise) > 50) < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 2000)


def _noise_of(plan):
    return sum(member.task.mechanisms[0].release(0) for member in plan._members)
