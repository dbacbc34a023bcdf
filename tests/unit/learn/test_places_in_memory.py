"""An example has the same bits wherever it lies: kernels may round by the place of a row in memory."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tacit.learn.evaluation._scorer import predictions_of  # noqa: E402
from tacit.learn.federated import TorchGradients  # noqa: E402

LINE = 64  # PyTorch starts its own tensors at whole lines of memory


class Aligned(nn.Module):
    """A layer that rounds otherwise where its rows do not start at a whole line, and a ReLU."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(3, 2, bias=False)

    def forward(self, x):
        return self.last(torch.relu(x - 1 + 2.0**-20 * (x.data_ptr() % LINE != 0)) * 2**20)


def test_a_hospital_computes_the_same_gradient_wherever_a_row_lies():
    model = TorchGradients(Aligned(), nn.functional.cross_entropy, shape=(3,))
    X, y = np.ones((40, 3), np.float32), np.zeros(40, np.int64)
    assert len({X[i : i + 1].ctypes.data % LINE == 0 for i in range(40)}) == 2
    found = [model.gradients(model.start(), X[i : i + 1], y[i : i + 1]) for i in range(40)]
    assert np.ptp(found, axis=0).max() == 0


def test_a_row_is_scored_as_a_copy_of_its_own():
    class Sliced:
        def predict(self, rows):
            return np.array([rows.base is not None])

    X = np.ones((40, 3))
    assert predictions_of(Sliced(), X).tolist() == [False] * 40


@pytest.mark.parametrize(("given", "kept"), [(None, "AUTO,STRICT"), ("COMPATIBLE", "COMPATIBLE")])
def test_products_do_not_depend_on_memory_from_the_import_on(given, kept):
    """Intel's library reads the variable before its first product; a value that somebody has chosen stays."""
    env = {name: value for name, value in os.environ.items() if name != "MKL_CBWR"}
    if given is not None:
        env["MKL_CBWR"] = given
    said = "import os, tacit.learn; print(os.environ['MKL_CBWR'])"
    done = subprocess.run([sys.executable, "-c", said], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == kept
