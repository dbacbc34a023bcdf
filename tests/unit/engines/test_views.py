"""The views that an engine lays over its tables."""

from __future__ import annotations

import pytest

import tacit as tc
from tacit.tables import example_visits


@pytest.mark.parametrize("name", ["stays AS kept", 'a "quoted" AS name', "SELECT * FROM stays"])
def test_a_table_may_have_any_name(name):
    data = tc.protect(
        example_visits(),
        name=name,
        unit="patient_id",
        bounds={"length_of_stay": (0, 30)},
        budget=tc.Budget(epsilon=1000),
    )
    release = data.agg(stay=tc.mean("length_of_stay")).plan(epsilon=1000).release()
    assert 0 < release.value < 30
