"""`tacit.__all__` is the public surface, and importing it stays light."""

import importlib
import inspect
import json
import subprocess
import sys

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


@pytest.mark.parametrize(
    "room",
    [
        "accounting",
        "client",
        "core",
        "genomes",
        "graphs",
        "ledger",
        "maps",
        "mechanisms",
        "streams",
        "surveys",
        "tables",
    ],
)
def test_what_a_room_exports_is_documented(room):
    module = importlib.import_module(f"tacit.{room}")
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
        "py4j",
        "psycopg",
        "fastapi",
        "pandas",
        "polars",
        "pyarrow",
        "matplotlib",
        "networkx",
        "igraph",
        "rich",
        "typer",
    ]
    code = f"import sys, json, tacit; print(json.dumps([m for m in {heavy!r} if m in sys.modules]))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(found) == []
