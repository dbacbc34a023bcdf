"""Learning on Adult, which is not in the project; `benchmarks/teacher_ensemble.py` says where to get it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def benchmark():
    path = Path(__file__).parents[2] / "benchmarks" / "teacher_ensemble.py"
    spec = importlib.util.spec_from_file_location("teacher_ensemble", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_a_student_at_epsilon_2_is_within_a_point_and_a_half_of_its_noise_free_twin(benchmark):
    """In six runs the student was ahead by 0.2 to 0.4 points: chance does not make it fall behind."""
    folder = benchmark.adult_folder()
    if folder is None:
        pytest.skip("Adult is not installed (TACIT_ADULT)")
    student, plain = benchmark.compare(folder, teachers=250, queries=1200, epsilon=2, seed=0)
    assert student > plain - 0.015
    assert student > 0.79
