"""A package outside Tacit adds a field through entry points, and is asked like every other field."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = Path(__file__).parents[2] / "outside_field" / "weighted_graphs.py"
ENTRIES = """[tacit.fields]
content.edge-count = weighted_graphs:EdgeCount
dataset.weighted-graph = weighted_graphs:WEIGHTED_GRAPH
"""


@pytest.fixture
def installed(tmp_path):
    """Install the package into a folder, as pip does, and return a function that runs Python with it."""
    site = tmp_path / "site"
    (site / "weighted_graphs-1.5.dist-info").mkdir(parents=True)
    shutil.copy(MODULE, site)
    about = site / "weighted_graphs-1.5.dist-info"
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: weighted-graphs\nVersion: 1.5\n")
    (about / "entry_points.txt").write_text(ENTRIES)
    (about / "RECORD").write_text("weighted_graphs.py,,\n")
    (about / "top_level.txt").write_text("weighted_graphs\n")
    (tmp_path / "edges.csv").write_text("from,to,weight\nana,ben,3\nben,eva,1\neva,ana,2\n")

    def run(code):
        path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH", "")])])
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False,
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


ASK = """
import json, tacit as tc
from tacit.core import registered
kind = registered("dataset.weighted-graph")
policy = {"budget": {"epsilon": "1000"}}
graph = kind.declare("edges.csv", name="edges", policy=policy, facts={}, ledger=LEDGER)
"""


def test_it_is_asked_from_python_batched_rebuilt_saved_and_certified(installed):
    said = installed(
        ASK.replace("LEDGER", "tc.Ledger.memory()")
        + """
plan = graph.count(least=2).plan(epsilon=50)
release = plan.release()
assert graph.plan_from(json.loads(json.dumps(plan.to_json()))) == plan
batch = tc.batch(all=graph.count(), strong=graph.count(least=3)).plan(epsilon=100).release()
release.save("release.json")
refusals = []
for wrong in ({"least": 0}, {"least": "x"}, {"most": 3}):
    try:
        graph.count(**wrong)
    except tc.TacitError as refusal:
        refusals.append(refusal.code)
print(json.dumps([release.value, batch["all"].value, batch["strong"].value,
                  release.certificate.fields["software"], refusals]))
"""
    )
    value, all_edges, strong, software, refusals = json.loads(said)
    assert (value, all_edges, strong) == (2, 3, 1)
    assert software.endswith("; weighted-graphs 1.5")
    assert refusals == ["bad-parameter"] * 3
    loaded = installed("import tacit as tc; print(tc.Release.load('release.json').value)")
    assert loaded.strip() == "2"


def test_a_process_uses_only_the_packages_that_were_admitted(installed):
    said = installed(
        """
from tacit.core import admit_packages, dataset_kinds, registered
seen = ["weighted-graph" in dataset_kinds()]
admit_packages([])
seen += ["weighted-graph" in dataset_kinds(), registered("dataset.weighted-graph") is None]
admit_packages(["weighted-graphs"])
seen += ["weighted-graph" in dataset_kinds()]
print(seen)
"""
    )
    assert said.strip() == "[True, False, True, True]"


def test_nothing_of_tacit_itself_can_be_replaced(installed):
    said = installed(
        """
import importlib.metadata
from tacit.core import _registry
class Fake:
    name, group = "dataset.graph", "tacit.fields"
    def load(self): raise AssertionError("replaced")
importlib.metadata.entry_points = lambda group: [Fake()]
_registry._outside.cache_clear()
print(_registry.registered("dataset.graph").label)
"""
    )
    assert said.strip() == "a graph"
