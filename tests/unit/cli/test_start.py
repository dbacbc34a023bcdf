"""The command starts without the fields that it may be asked about; they are loaded when they are used."""

import subprocess
import sys

import pytest

FIELDS = {"tacit.core", "tacit.tables", "tacit.graphs", "tacit.maps", "tacit.genomes", "tacit.streams"}
SOURCES = {"tacit.engines", "tacit.ledger"}


def loaded(*words):
    code = f"import sys\nsys.argv = {['tacit', *words]!r}\nfrom tacit.cli import main\ntry:\n    main()\n"
    code += (
        "finally:\n    print(*(name for name in sys.modules if name.startswith('tacit.')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    return set(done.stderr.split())


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("map", "--help")], ids=" ".join)
def test_a_field_is_not_loaded_before_it_is_used(words):
    modules = loaded(*words)
    assert "tacit.cli" in modules
    assert not modules & FIELDS


def test_only_the_field_of_the_command_is_loaded():
    modules = loaded("graph", "--help")
    assert modules & FIELDS == {"tacit.core", "tacit.graphs"}
    assert not modules & SOURCES


@pytest.mark.parametrize(
    "words", [("ask", "points"), ("ask", "trips"), ("genome", "frequencies")], ids=" ".join
)
def test_options_are_built_without_what_reads_sources_and_budgets(words):
    assert not loaded(*words, "--help") & SOURCES
