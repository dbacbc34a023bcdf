"""A release is read by its kind, in a process that has not used the room of that kind yet."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

import tacit as tc
from tacit.core import Content
from tacit.core._registry import _built_in

#: The room of each kind of content that Tacit's rooms register.
ROOMS = {
    name.removeprefix("content."): entry.module.split(".")[1]
    for name, entry in _built_in().items()
    if name.startswith("content.")
}
#: Prints for each kind why an empty content of it is refused.
READ = """
import json, sys
import tacit as tc
for kind in json.loads(sys.argv[1]):
    try:
        tc.Release.from_json({"schema": "tacit/release/1", "kind": kind, "content": {}, "marks": []})
    except tc.TacitError as refusal:
        print(refusal.why)
"""


def in_a_fresh_process(code: str, argument: str) -> list[str]:
    command = [sys.executable, "-W", "error", "-c", code, argument]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_kind_there_is_is_registered_by_its_room():
    for module in pkgutil.walk_packages(tc.__path__, "tacit."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    own = {k: c for k, c in Content._kinds.items() if c.__module__.startswith("tacit.")}
    found = {kind: content.__module__.split(".")[1] for kind, content in own.items()}
    assert found == {**ROOMS, "answer-table": "core", "batch": "core"}


@pytest.mark.parametrize("room", sorted(set(ROOMS.values())))
def test_every_kind_is_found_in_a_fresh_process(room):
    kinds = [kind for kind in ROOMS if ROOMS[kind] == room]
    said = in_a_fresh_process(READ, json.dumps([*kinds, "nothing-known"]))
    assert len(said) == len(kinds) + 1
    assert not any("has the kind" in why for why in said[:-1])  # found, and its form is refused
    assert said[-1] == "neither Tacit nor an imported module has the kind 'nothing-known'"


def test_importing_the_core_imports_no_field():
    code = "import sys, tacit as tc; tc.Release; print([m for m in sys.modules if m.startswith(sys.argv[1])])"
    for room in set(ROOMS.values()):
        assert in_a_fresh_process(code, f"tacit.{room}") == ["[]"]


def test_a_saved_model_is_loaded_in_a_fresh_process(tmp_path):
    pytest.importorskip("sklearn")
    model = tc.learn.LogisticRegression(
        epsilon=1, delta=1e-6, classes=[0, 1], bounds=(-1, 1), size=20,
        budget=tc.Budget(epsilon=1, delta=1e-6), dataset="a few",
    )  # fmt: skip
    model.fit([[0.5], [-0.5]] * 10, [1, 0] * 10)
    model.release_.save(tmp_path / "model.json")
    code = "import sys, tacit as tc; print(tc.Release.load(sys.argv[1]).content.kind)"
    assert in_a_fresh_process(code, str(tmp_path / "model.json")) == [model.release_.content.kind]
