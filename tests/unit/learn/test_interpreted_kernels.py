"""The kernels for devices, in Triton's interpreter: so they are tested on machines without a device too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")


def test_the_kernels_agree_with_pytorch():
    source = Path(__file__).parents[3]
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/unit/learn/test_layer_kernels.py",
        ],
        cwd=source,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
            "TRITON_INTERPRET": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONPATH": str(source / "src"),
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-3000:]
    assert " passed" in run.stdout
    assert "skipped" not in run.stdout
