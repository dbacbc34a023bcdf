"""`tacit.__all__` is the public surface, and importing it stays light."""

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tacit


def test_every_public_name_resolves():
    for name in tacit.__all__:
        assert getattr(tacit, name) is not None


def test_dir_shows_exactly_the_public_names():
    assert dir(tacit) == sorted(tacit.__all__)


def test_lazy_names_are_public():
    assert set(tacit._LAZY) <= set(tacit.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        tacit.nosuch  # noqa: B018


def test_every_public_name_is_documented():
    for name in set(tacit.__all__) - {"__version__"}:
        assert getattr(tacit, name).__doc__, f"tacit.{name} has no docstring"


def private_imports(path: Path, room: str) -> list[str]:
    """Return what a file imports from behind another room's door."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            first, *rest = name.split(".")
            if (
                first == "tacit"
                and rest
                and rest[0] != room
                and any(re.match("_[^_]", part) for part in rest)
            ):
                found.append(f"{path.name}: {name}")
    return found


def test_no_room_reaches_behind_the_door_of_another():
    home = Path(tacit.__file__).parent
    found = []
    for path in home.rglob("*.py"):
        inside = path.relative_to(home).parts
        found += private_imports(path, inside[0] if len(inside) > 1 else "")
    assert found == []


@pytest.mark.parametrize(
    "line",
    ["from tacit.accounting._zcdp import rho_cap", "from tacit.noise import _bits", "import tacit.core._x"],
)
def test_a_private_import_would_be_found(tmp_path, line):
    (tmp_path / "somewhere.py").write_text(line)
    assert len(private_imports(tmp_path / "somewhere.py", "tables")) == 1
    assert private_imports(tmp_path / "somewhere.py", line.split(".")[1].split()[0]) == []


@pytest.mark.parametrize("room", ["accounting", "mechanisms"])
def test_what_a_room_exports_is_there_and_documented(room):
    module = importlib.import_module(f"tacit.{room}")
    assert module.__all__ == sorted(module.__all__, key=lambda name: (not name[0].isupper(), name))
    for name in module.__all__:
        thing = getattr(module, name)
        assert thing.__doc__ or not inspect.isroutine(thing) | inspect.isclass(thing), name


def test_import_tacit_imports_nothing_heavy():
    heavy = [
        "scipy",
        "duckdb",
        "sqlglot",
        "torch",
        "pyspark",
        "fastapi",
        "pandas",
        "polars",
        "pyarrow",
        "matplotlib",
        "rich",
        "typer",
    ]
    code = f"import sys, json, tacit; print(json.dumps([m for m in {heavy!r} if m in sys.modules]))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(found) == []
