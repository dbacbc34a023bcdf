"""Training on several processes: one charge, one sample, one draw of noise, the same sums."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

SCRIPT = """
import json, os, sys
import numpy as np, torch
import tacit as tc
from torch import distributed
from tacit.learn import AdaptiveClip, Trainer
from tacit.learn.training import _mechanisms

def train(place, case, world, rank):
    if world > 1:
        meet = f"file://{place}/meet"
        distributed.init_process_group("gloo", init_method=meet, rank=rank, world_size=world)
    drawn = []
    draw = lambda self, n: drawn.append(1) or np.arange(0, n, 2)
    _mechanisms.TrainingSteps.draw = draw
    _mechanisms.training_noise = lambda n: drawn.append(2) or np.linspace(-1, 1, n, dtype=np.float32)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)).astype(np.float32)
    X[4, 0] = np.inf
    X = np.roll(X, rank, axis=0) if case == "shards" else X
    data = tc.learn.examples(
        X, (X[:, 1] > 0).astype(int), unit="pid", owners=[f"{i // 2:02d}" for i in range(30)], per_unit=2,
        size=15,
        budget=tc.Budget(epsilon=0.1 if case == "poor" else 100, delta=1e-2),
    )
    torch.manual_seed(rank if case == "differs" else 5)
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))
    trainer = Trainer(
        model, torch.nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9),
        data=data, batch=6, steps=4, noise=1, delta=1e-3,
        clip=AdaptiveClip(0.5) if case == "adaptive" else 0.5,
    )
    found = {"rank": rank}
    try:
        release = trainer.release()
        found["weights"] = {name: array.tolist() for name, array in release.weights.items()}
        found["cost"] = str(release.certificate.fields["plan"])
    except tc.TacitError as error:
        found["code"] = error.code
    found["drawn"] = len(drawn)
    found["left"] = str(data.remaining)
    open(f"{place}/found{world}_{rank}.json", "w").write(json.dumps(found))

torch.set_num_threads(1)
torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1)  # the first optimizer imports as much again
place, case, *worlds = sys.argv[1:]
for world in map(int, worlds):
    ranks = []
    for rank in range(world):
        ranks.append(os.fork())
        if ranks[-1] == 0:
            train(place, case, world, rank)
            os._exit(0)
    assert not any([os.waitpid(one, 0)[1] for one in ranks])
"""


def train(place, *worlds, case="plain"):
    """Train in worlds of so many processes; all are forked from one that has imported PyTorch."""
    source = str(Path(__file__).parents[3] / "src")
    words = [str(place), case, *map(str, worlds)]
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words], env={**os.environ, "PYTHONPATH": source}, timeout=120
    )
    assert run.returncode == 0
    return [
        json.loads((place / f"found{world}_{rank}.json").read_text())
        for world in worlds
        for rank in range(world)
    ]


@pytest.mark.parametrize("case", ["plain", pytest.param("adaptive", marks=pytest.mark.long)])
def test_two_processes_train_as_one_does(tmp_path, case):
    alone, first, second = train(tmp_path, 1, 2, case=case)
    assert first["weights"] == second["weights"]
    assert first["cost"] == second["cost"] == alone["cost"]
    for name, expected in alone["weights"].items():
        assert np.allclose(first["weights"][name], expected, atol=1e-5)
    # sample and noise come from the first process alone, as often as without the second
    assert first["drawn"] == alone["drawn"] > 0
    assert second["drawn"] == 0
    assert first["left"] == alone["left"] != second["left"]


@pytest.mark.long
def test_an_exhausted_budget_ends_all_processes(tmp_path):
    assert [one["code"] for one in train(tmp_path, 2, case="poor")] == ["budget-exceeded"] * 2


@pytest.mark.long
def test_processes_with_different_examples_are_refused_before_the_charge(tmp_path):
    found = train(tmp_path, 2, case="shards")
    assert [one["code"] for one in found] == ["plan-differs", "plan-differs"]
    assert all(not one["drawn"] for one in found)


@pytest.mark.long
def test_processes_with_different_models_are_refused(tmp_path):
    found = train(tmp_path, 2, case="differs")
    assert [one["code"] for one in found] == ["plan-differs"] * 2
    assert all("weights" not in one for one in found)
