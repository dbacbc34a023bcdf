"""Refusals as the command shows them: no Python, the names at hand, the line of the file."""

import ast
from pathlib import Path

import pytest

import tacit
from tacit.cli.advice import ADVICE
from tacit.cli.refusals import _PUBLIC, Asked, in_words_of_the_command, speaks_python
from tacit.errors import CODES, TacitError

SOURCES = sorted(Path(tacit.__file__).parent.rglob("*.py"))
ASKED = Asked("visits", "visits", Path("nowhere.toml"), "h.ledger", "SELECT AVG(stay + 1) FROM visits")


def _texts(node):
    """Return what a ``fix=`` may read, with a word in the place of what is filled in."""
    match node:
        case ast.Constant(str() as text):
            return [text]
        case ast.JoinedStr(parts):
            return ["".join(p.value if isinstance(p, ast.Constant) else "thing" for p in parts)]
        case ast.IfExp():
            return _texts(node.body) + _texts(node.orelse)
    return []


def _fixes():
    for file in SOURCES:
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call):
                first = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else ""
                code = first if first in CODES else "bad-parameter"
                fixes = [k.value for k in call.keywords if k.arg == "fix"]
                yield from ((file.name, code, text) for fix in fixes for text in _texts(fix))


def test_every_code_has_advice_without_python():
    assert set(ADVICE) == set(CODES)
    assert [text for text in ADVICE.values() if speaks_python(text)] == []


def test_no_fix_of_the_library_reaches_a_terminal_as_python():
    found = list(_fixes())
    assert len(found) > 250  # the scan sees what it is meant to see
    assert sum(speaks_python(text) for _, _, text in found) > 100
    for asked in (ASKED, Asked(), Asked("visits", sql="SELECT 1")):
        shown = [
            (name, text, fix)
            for name, code, text in found
            if speaks_python(fix := str(in_words_of_the_command(TacitError(code, "x", fix=text), asked).fix))
        ]
        assert shown == []


@pytest.mark.parametrize(
    ("code", "what", "python", "command"),
    [
        ("missing-bounds", "", 'tc.protect(..., bounds={"stay": (0, 30)})', "stay = [LOW, HIGH] (from"),
        ("missing-bounds", "", "bounds=(0, 30) in the aggregate", "(LEAST(GREATEST(stay + 1, LOW), HIGH))"),
        ("unknown-kind", "", 'tc.protect(..., types={"stay": "number"})', 'visits.types]: stay = "number"'),
        ("bad-parameter", "", "epsilon=0.5", "--epsilon 0.5"),
        ("bad-parameter", "", "delta=0.5", "--delta 1e-6"),
        ("bad-parameter", "", ".plan(within=1, size=1000)", "--within 1 --size 1000"),
        ("bad-parameter", "keys of 'ward' must be", "keys=[1, 2]", "visits.keys]: ward = [1, 2]"),
        ("ledger-key", "", "Ledger.open(..., key='k.key')", "export TACIT_LEDGER_KEY_FILE=k.key"),
        ("ledger-sealed", "", "ledger.unseal(statement=..., who=...)", "tacit budget unseal h.ledger"),
        (
            "account-differs",
            "account 'visits' has budget Budget(epsilon=1), not Budget(epsilon=2, delta=1e-06)",
            "ledger.grow(...) records a larger budget",
            "tacit budget grow h.ledger --account visits --epsilon 2 --delta 1e-06",
        ),
    ],
)  # fmt: skip
def test_python_becomes_what_can_be_typed(code, what, python, command):
    assert command in str(in_words_of_the_command(TacitError(code, what, fix=python), ASKED).fix)


def test_the_line_of_the_config_is_named(tmp_path):
    file = tmp_path / "tacit.toml"
    lines = ("[datasets.visits]", 'source = "v.csv"', "[datasets.visits.bounds]", "# age = []", "# stay = []")
    file.write_text("\n".join(lines))
    asked = Asked("visits", "visits", file)
    shown = in_words_of_the_command(TacitError("missing-bounds", "x", fix='bounds={"stay": (0, 30)}'), asked)
    assert str(shown.fix) == f"{file} line 5, under [datasets.visits.bounds]: stay = [LOW, HIGH]{_PUBLIC}"


def test_what_happened_shows_no_python_either():
    error = TacitError("account-differs", "account 'v' has budget Budget(epsilon=1), not Budget(epsilon=2)")
    said = in_words_of_the_command(error, ASKED)
    assert said.what == "account 'v' has a budget of epsilon 1, not a budget of epsilon 2"
    assert said.code == "account-differs"
