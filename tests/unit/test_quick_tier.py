"""The table of `make quick` names what there is, touches every room, and runs without the large packages."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from support import quick_tier
from support.quick_tier import (
    FILES,
    ROOT,
    SLOW,
    SLOW_CASES,
    SLOW_TESTS,
    UNINSTALLED,
    UNINSTALLED_TESTS,
    is_quick,
    is_quick_test,
)

TESTS = ROOT / "tests"
ROOMS = sorted(path.parent.name for path in (ROOT / "src/tacit").glob("*/__init__.py"))


def quick_files():
    return [path for path in sorted(TESTS.rglob("test_*.py")) if is_quick(path)]


def names_of_tests(path):
    return set(re.findall(r"(?m)^ *def (test_\w+)", path.read_text(encoding="utf-8")))


def imports(path):
    """Return the packages that a file imports at its top level, and the modules of `support`."""
    text = path.read_text(encoding="utf-8")
    inside = re.findall(r"(?m)^from support(?:\.(\w+) import| import (\w+(?:, \w+)*))", text)
    modules = {name for one, several in inside for name in (one or several).split(", ")}
    return set(re.findall(r"(?m)^(?:from|import) (\w+)", text)) | {f"support/{name}" for name in modules}


def rooms_without_quick_tests():
    return [
        room
        for room in ROOMS
        if not any(
            is_quick(path) and any(map(is_quick_test, names_of_tests(path)))
            for path in (TESTS / "unit" / room).rglob("test_*.py")
        )
    ]


def test_every_file_that_is_named_is_there():
    slow = [
        f"{folder}/{'' if folder.startswith('src') else 'test_'}{name}.py"
        for folder, names in SLOW.items()
        for name in names.split()
        if name != "*"
    ]
    assert [name for name in [*FILES, *slow] if not (ROOT / name).is_file()] == []
    assert [folder for folder in SLOW if not (ROOT / folder).is_dir()] == []


def test_every_test_that_is_named_is_in_a_quick_file():
    there = set().union(*map(names_of_tests, quick_files()))
    named = {name.partition("[")[0] for name in SLOW_TESTS + SLOW_CASES + UNINSTALLED_TESTS}
    assert named <= there


def test_every_room_has_quick_tests():
    assert rooms_without_quick_tests() == []


def test_a_room_without_quick_tests_would_be_found(monkeypatch):
    fixes = names_of_tests(TESTS / "unit/cli/test_fixes.py")
    monkeypatch.setattr(quick_tier, "SLOW_TESTS", (*SLOW_TESTS, *fixes))
    monkeypatch.setitem(SLOW, "tests/unit/cli", "limit_option risk_options start")
    monkeypatch.setitem(SLOW, "tests/unit/ledger", "*")
    assert rooms_without_quick_tests() == ["cli", "ledger"]


def test_what_quick_files_share_imports_nothing_large():
    files, helpers = quick_files(), set()
    while files:
        path = files.pop()
        found = imports(path)
        assert not found & UNINSTALLED, path
        shared = {helper for name in found if (helper := TESTS / f"{name}.py").is_file()} - helpers
        files += shared
        helpers |= shared
    assert TESTS / "support/ledger_sites.py" in helpers


@pytest.mark.parametrize(
    ("line", "large"),
    [
        ("import torch", True),
        ("from pyspark.sql import SparkSession", True),
        ('torch = pytest.importorskip("torch")', True),
        (">>> import torch, tacit as tc", True),
        ("import torchlike", False),
        ("    import torch", False),
        ("from tacit.learn import Trainer  # imports torch", False),
    ],
)
def test_files_that_begin_with_a_large_package_wait(line, large, monkeypatch, tmp_path):
    monkeypatch.setattr(quick_tier, "ROOT", tmp_path)
    path = tmp_path / "tests/unit/learn/test_anything.py"
    path.parent.mkdir(parents=True)
    path.write_text(f'"""Tests."""\n\n{line}\n')
    assert is_quick(path) != large


@pytest.mark.parametrize(
    ("name", "quick"),
    [
        ("test_a_store_answers[sqlite]", True),
        ("test_a_store_answers[postgres]", False),
        ("test_two_engines_agree[duckdb-spark-7]", False),
        ("test_sparkling_water", True),
        (SLOW_TESTS[0], False),
        (f"{SLOW_TESTS[0]}[7]", False),
        (f"{SLOW_TESTS[0]}_again", True),
        ("test_python_blocks_run[README.md]", True),
        ("test_python_blocks_run[docs/tutorial/survey.md]", False),
    ],
)
def test_slow_tests_and_tests_on_servers_wait(name, quick):
    assert is_quick_test(name) == quick


def test_the_option_collects_the_tier_and_nothing_else():
    command = [sys.executable, "-m", "pytest", "--quick", "--collect-only", "-q", "tests/unit/strategies"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    collected = {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}
    assert any(line.startswith("tests/unit/strategies/test_residuals.py::") for line in collected)
    assert not any("test_factorisation" in line for line in collected)
    assert not {line.rpartition("::")[2] for line in collected} & set(SLOW_TESTS)
