"""A package outside Tacit adds a field through entry points, and is asked like every other field."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from outside_field import install


@pytest.fixture
def installed(tmp_path):
    """Install the package into a folder, as pip does, and return a function that runs Python with it."""
    site = install(tmp_path / "site")
    (tmp_path / "edges.csv").write_text("from,to,weight\nana,ben,3\nben,eva,1\neva,ana,2\n")

    def run(*words, status=0):
        path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH", "")])])
        done = subprocess.run(
            [sys.executable, "-W", "error", *words], capture_output=True, text=True, check=False,
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, timeout=120,
        )  # fmt: skip
        assert done.returncode == status, done.stderr + done.stdout
        return done.stdout

    return run


ASK = """
import json, tacit as tc
from tacit.core import registered
kind = registered("dataset.weighted-graph")
policy = {"budget": {"epsilon": "1000"}}
graph = kind.declare("edges.csv", name="edges", policy=policy, facts={"weight": "weight"}, ledger=LEDGER)
"""


def test_it_is_asked_from_python_batched_rebuilt_saved_and_certified(installed):
    said = installed(
        "-c",
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
""",
    )
    value, all_edges, strong, software, refusals = json.loads(said)
    assert (value, all_edges, strong) == (2, 3, 1)
    assert software.endswith("; weighted-graphs 1.5")
    assert refusals == ["bad-parameter"] * 3
    loaded = installed("-c", "import tacit as tc; print(tc.Release.load('release.json').value)")
    assert loaded.strip() == "2"


def test_a_process_uses_only_the_packages_that_were_admitted(installed):
    said = installed(
        "-c",
        """
from tacit.core import admit_packages, dataset_kinds, registered
seen = ["weighted-graph" in dataset_kinds()]
admit_packages([])
seen += ["weighted-graph" in dataset_kinds(), registered("dataset.weighted-graph") is None]
admit_packages(["weighted-graphs"])
seen += ["weighted-graph" in dataset_kinds()]
print(seen)
""",
    )
    assert said.strip() == "[True, False, True, True]"


def test_nothing_of_tacit_itself_can_be_replaced(installed):
    said = installed(
        "-c",
        """
import importlib.metadata
from tacit.core import _registry
class Fake:
    name, group = "dataset.graph", "tacit.fields"
    def load(self): raise AssertionError("replaced")
importlib.metadata.entry_points = lambda group: [Fake()]
_registry._outside.cache_clear()
print(_registry.registered("dataset.graph").label)
""",
    )
    assert said.strip() == "a graph"


ASKED = ("-m", "tacit", "ask", "weighted-graph", "edges.csv", "count", "--weight", "weight", "--json")


def test_it_is_asked_from_the_command(installed):
    paid = (*ASKED, "--least", "2", "--epsilon", "50")
    plan = json.loads(installed(*paid, "--plan"))
    assert plan["promised"] == {"epsilon": 50}
    answer = json.loads(installed(*paid, "--budget", "100", "--out", "answer.json"))
    assert (answer["hash"], answer["release"]["value"]) == (plan["hash"], 2)
    assert answer["certificate"]["software"].endswith("; weighted-graphs 1.5")
    assert answer["left"]["epsilon"] == "50"
    again = json.loads(installed(*paid))
    assert (again["release"], again["left"]) == (answer["release"], answer["left"])
    assert "weighted-graph" in installed("-m", "tacit", "ask", "--help")
    shown = installed("-m", "tacit", "ask", "weighted-graph", "--help")
    assert "smallest weight that counts" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("--least", "0"), "--least 10"),
        (("--least", "many"), "--least 1"),
        (("--least", "2", "--rho", "1"), ""),
        (("--least", "2", "--out", "answer.csv"), "--out answer.json"),
    ],
)
def test_the_command_refuses_a_bad_argument_with_the_code_that_python_gives(installed, words, fix):
    refused = json.loads(installed(*ASKED, *words, "--epsilon", "1", "--budget", "9", status=2))["error"]
    assert refused["code"] == "bad-parameter"
    assert fix in refused["fix"]
