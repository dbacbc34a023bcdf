"""Fixes as the service shows them: fields, SQL and acts of people, never Python."""

import ast
import json
from pathlib import Path

import pytest

import tacit
from support.python_words import speaks_code
from tacit.accounting import Budget
from tacit.errors import CODES, TacitError
from tacit.fixes import ACTIONS, Choose, Code, Declare, Do, Either, Say, Set
from tacit.service._refusals import SERVICE_ADVICE, WORDS_OF_SERVICE_ACTIONS, fix_words, problem_of

#: The command's own refusals name its options, and never reach a service.
SOURCES = sorted(path for path in Path(tacit.__file__).parent.rglob("*.py") if path.parent.name != "cli")
ARGUMENTS = {
    "encoding": "latin-1", "reading": ", encoding='latin-1'", "source": "visits.csv",
    "target": "visits.parquet",
    "account": "ana", "column": "stay", "dataset": "visits", "expression": "stay + 1", "high": 30, "low": 0,
    "new": Budget(2), "package": "tacit[plot]", "path": "some/file", "seconds": 30, "statement": "checked",
    "table": "t", "type": "DOUBLE", "unit": "pid", "value": "TRUE",
}  # fmt: skip


def made_fixes():
    """Return every fix that the library's sources write, with a stand-in for what is filled in."""
    names = {"Set": Set, "Declare": Declare, "Choose": Choose, "Code": Code, "Say": Say, "Do": Do}
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                args = [_stands_for(one) for one in node.args]
                if node.func.id == "Choose":
                    args[:1] = [("a", "b")]
                given = {one.arg: _stands_for(one.value) for one in node.keywords if one.arg}
                try:
                    if node.func.id == "Do":
                        given = {**ARGUMENTS, **given}
                    yield file.name, names[node.func.id](*args, **given)
                except (TypeError, KeyError, ValueError):
                    continue


def _stands_for(node):
    try:
        return ast.literal_eval(node)
    except ValueError:
        if isinstance(node, ast.JoinedStr):
            return "".join(str(p.value) if isinstance(p, ast.Constant) else "thing" for p in node.values)
        return "thing"


def test_no_problem_contains_python_whatever_the_library_advises():
    found = list(made_fixes())
    assert len(found) > 300  # the scan sees what it is meant to see
    assert {type(fix) for _, fix in found} >= {Set, Declare, Choose, Code, Say, Do}
    for file, fix in found:
        for code in ("bad-parameter", "not-allowed", "missing-bounds"):
            for one in (fix, Either(fix, Say("ask the curator"))):
                problem = problem_of(TacitError(code, "x", fix=one), "x_1")
                assert not speaks_code(problem["fix"]), (file, fix)
                assert '"python"' not in json.dumps(problem["fix_data"]), (file, fix)


def test_every_code_has_advice_without_python():
    assert set(SERVICE_ADVICE) == set(CODES)
    assert [text for text in SERVICE_ADVICE.values() if speaks_code(text)] == []


def test_every_action_has_words_without_python():
    assert set(WORDS_OF_SERVICE_ACTIONS) == set(ACTIONS)
    for action in ACTIONS:
        words = fix_words(TacitError("bad-parameter", "x", fix=Do(action, **ARGUMENTS)))
        assert words, action
        assert words != SERVICE_ADVICE["bad-parameter"], action


@pytest.mark.parametrize(
    ("fix", "shown"),
    [
        (Say("a larger epsilon"), "a larger epsilon"),
        (Set(epsilon=0.5), "set epsilon to 0.5"),
        (Set.at_most(epsilon=0.5), "set epsilon to 0.5 or less"),
        (Set(delta=0.5), "set delta to 1e-6"),  # 0.5 is the example for any number
        (Set(within=1, size=1000),
         "set the error to stay within to 1 and the guess of rows in each group to 1000"),
        (Set(keys={"ward": ["A", "B"]}), "set the keys of ward to A, B"),
        (Choose(("age", "stay"), close="stay"), "did you mean stay? one of: age, stay"),
        (Declare("bounds", (0, 30), column="stay"),
         "ask the curator to declare a range for stay (from public knowledge, not from the data)"),
        (Declare("keys", ["A"], column="ward"),
         "ask the curator to declare the list of groups of ward, or list the groups in the field keys"),
        (Do("ask-a-count", table="my visits"), 'SELECT COUNT(*) FROM "my visits"'),
        (Do("convert-in-question", expression="age", type="DOUBLE"), "CAST(age AS DOUBLE)"),
        (Either(Code("cost.rho"), Set(delta=1e-6)), "set delta to 1e-06"),
        (Code("plan.release()"), SERVICE_ADVICE["bad-parameter"]),
    ],
)  # fmt: skip
def test_a_fix_becomes_words_for_people_at_a_page(fix, shown):
    assert fix_words(TacitError("bad-parameter", "x", fix=fix)) == shown


def test_a_refusal_without_a_fix_gets_none():
    assert fix_words(TacitError("not-found", "x")) == ""
