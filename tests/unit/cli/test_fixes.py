"""Fixes as the command shows them: no Python, the names of the running command, the line of the file."""

import ast
from pathlib import Path

import pytest

import tacit
from support.python_words import speaks_python
from tacit.accounting import Budget
from tacit.cli._context import CommandContext
from tacit.cli._fixes import ADVICE, WORDS_OF_ACTIONS, in_words_of_the_command
from tacit.errors import CODES, TacitError
from tacit.fixes import ACTIONS, FROM_PUBLIC_KNOWLEDGE, Choose, Code, Declare, Do, Either, Say, Set

SOURCES = sorted(Path(tacit.__file__).parent.rglob("*.py"))
INIT = CommandContext("visits")
EXPLAIN = CommandContext()
QUESTION = CommandContext(
    "visits", Path("nowhere.toml"), "h.ledger", "SELECT AVG(stay + 1) FROM visits", delta=True
)
#: An argument of each name that the actions take.
ARGUMENTS = {
    "encoding": "latin-1", "reading": ", encoding='latin-1'", "source": "visits.csv",
    "target": "visits.parquet",
    "account": "ana", "column": "stay", "dataset": "visits", "expression": "stay + 1", "high": 30,
    "low": 0, "new": Budget(2),
    "package": "tacit[plot]", "path": "some/file", "seconds": 30, "statement": "disk checked", "table": "t",
    "type": "DOUBLE", "unit": "pid", "value": "TRUE",
}  # fmt: skip


def words(fix, context=QUESTION, code="bad-parameter"):
    return str(in_words_of_the_command(TacitError(code, "x", fix=fix), context).fix)


def _texts(node):
    """Return what a ``fix=`` may say as plain text, with a word in place of what is filled in."""
    match node:
        case ast.Constant(str() as text):
            return [text]
        case ast.JoinedStr(parts):
            return ["".join(p.value if isinstance(p, ast.Constant) else "thing" for p in parts)]
        case ast.IfExp():
            return _texts(node.body) + _texts(node.orelse)
        case ast.Call(ast.Name("Say"), [text]):
            return _texts(text)
        case ast.Call(ast.Name("Either"), fixes):
            return [text for fix in fixes for text in _texts(fix)]
    return []


def _plain_fixes():
    """Return every plain text that the library gives as a fix, with its file."""
    home = Path(tacit.__file__).parent
    for file in SOURCES:
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call):
                fixes = [k.value for k in call.keywords if k.arg == "fix"]
                yield from ((str(file.relative_to(home)), text) for fix in fixes for text in _texts(fix))


def test_every_code_has_advice_without_python():
    assert set(ADVICE) == set(CODES)
    assert [text for text in ADVICE.values() if speaks_python(text)] == []


def test_no_plain_fix_of_the_library_contains_python():
    found = list(_plain_fixes())
    assert len(found) > 50  # the scan sees what it is meant to see
    assert [one for one in found if speaks_python(one[1])] == []


def test_every_action_has_words_without_python():
    assert set(ACTIONS) <= set(WORDS_OF_ACTIONS)
    for action in ACTIONS:
        fix = Do(action, **ARGUMENTS)
        for context in (QUESTION, INIT, EXPLAIN):
            shown = words(fix, context)
            assert shown != ADVICE["bad-parameter"], action
            assert not speaks_python(shown), action


@pytest.mark.parametrize(
    ("fix", "shown"),
    [
        (Say("a larger epsilon"), "a larger epsilon"),
        (Set(epsilon=0.5), "--epsilon 0.5"),
        (Set(delta=1e-7), "--delta 1e-7"),
        (Set(delta=0.5), "--delta 1e-6"),  # 0.5 is the example for any number
        (Set(within=1, size=1000), "--within 1 --size 1000"),
        (Set(samples=1_000_000), "--samples 1000000"),
        (Set(priors=[0.5]), "--prior 0.5"),
        (Set(families=(2, 5)), "--family 2 --family 5"),
        (Set(who="Ana B."), '--who "Ana B."'),
        (Choose(("laplace", "gaussian")), "one of: laplace, gaussian"),
        (Choose(("LOS", "Cost (EUR)"), close="LOS"), 'LOS? one of: LOS, "Cost (EUR)"'),
        (Do("give-key-file", path="k.key"), "export TACIT_LEDGER_KEY_FILE=k.key"),
        (Do("unseal-ledger", statement=...), 'tacit budget unseal h.ledger --statement "disk checked"'),
        (Do("verify-ledger"), "tacit budget verify h.ledger"),
        (Do("install", package="tacit[plot]"), "pip install 'tacit[plot]'"),
        (Do("compare-in-question", expression="smokes", value="TRUE"), "smokes = TRUE"),
        (Do("ask-a-count", table="my visits"), 'SELECT COUNT(*) FROM "my visits"'),
        (Do("open-ledger", path="x", create=True), "the first tacit query creates it"),
        (
            Do("clip-in-question", expression="stay + 1", low=0, high=30),
            "AVG(LEAST(GREATEST(stay + 1, LOW), HIGH)) (from public knowledge, not from the data)",
        ),
        (
            Do("grow-budget", account="visits", new=Budget(epsilon=2, delta=1e-6)),
            "tacit budget grow h.ledger --account visits --epsilon 2 --delta 1e-6 --statement",
        ),
        (Either(Set(epsilon=0.5), Say("ask the curator")), "--epsilon 0.5, or ask the curator"),
        (Either(Code("cost.rho"), Set(delta=1e-6)), "--delta 1e-6"),
    ],
)  # fmt: skip
def test_a_fix_becomes_words_that_can_be_typed(fix, shown):
    assert shown in words(fix)


@pytest.mark.parametrize(
    "fix",
    [
        Code("tc.Unit.row()"),
        Set(sensitivity=1),
        Set(size=None),
        Say(""),
        Either(Code("x")),
    ],
)
def test_what_only_python_can_do_becomes_the_advice_for_the_code(fix):
    assert words(fix) == ADVICE["bad-parameter"]
    assert words(fix, code="ledger-locked") == ADVICE["ledger-locked"]


@pytest.mark.parametrize(
    ("fix", "option", "line"),
    [
        (Declare("bounds", (0, 30), column="stay"), "--bounds stay=LOW:HIGH", "bounds]: stay = [LOW, HIGH]"),
        (
            Declare("bounds", (0, 30), column="stay", example=False),
            "--bounds stay=0:30",
            "bounds]: stay = [0, 30]",
        ),
        (Declare("keys", ["A", "B"], column="ward"), "--keys ward=A,B", 'keys]: ward = ["A", "B"]'),
        (Declare("keys", [...], column="my ward"), '--keys "my ward=A,B"', 'keys]: "my ward" = ["A", "B"]'),
        (Declare("keys", [True, False], column="old"), "--keys old=true,false", "keys]: old = [true, false]"),
        (Declare("types", "number", column="stay"), "--type stay=number", 'types]: stay = "number"'),
        (Declare("limits", 10, column="rows"), "--limit rows=10", "limits]: rows = 10"),
        (Declare("unit", "patient_id"), "--unit patient_id", 'visits]: unit = "patient_id"'),
        (Declare("unit", ""), "--row", 'visits]: unit = ""'),
        (Declare("name", "visits"), "--name visits", "[datasets.visits]"),
        (
            Declare("budget", Budget(3, 1e-6)),
            "--epsilon 3 --delta 1e-6",
            "budget = {epsilon = 3, delta = 1e-6}",
        ),
        (Declare("budget", {"rho": 0.1}), "--rho 0.1", "visits]: budget = {rho = 0.1}"),
        (
            Declare("public", ("h.csv", "hospital"), column="hospitals"),
            'hospitals = {source = "h.csv", key = "hospital"}',
            'visits.public]: hospitals = {source = "h.csv", key = "hospital"}',
        ),
        (Declare("source", "v.csv"), 'source = "v.csv"', 'visits]: source = "v.csv"'),
        (Declare("adjacency", "replace"), 'adjacency = "replace"', 'visits]: adjacency = "replace"'),
        (Declare("never_null", ["stay"]), 'never_null = ["stay"]', 'visits]: never_null = ["stay"]'),
        (Declare("version", 2), "version = 2", "visits]: version = 2"),
    ],
)
def test_a_fact_is_an_option_of_init_or_a_line_of_the_config(fix, option, line):
    assert option in words(fix, INIT)
    assert line in words(fix)
    assert words(fix).startswith("nowhere.toml, under [") or fix.fact == "name"


def test_parameters_that_are_facts_are_declared():
    assert words(Set(limits={"rows": 10}), INIT) == "--limit rows=10"
    assert words(Set(unit="patient_id"), INIT) == "--unit patient_id"
    assert words(Set(bounds=(0, 100)), EXPLAIN) == "--bounds 0 100"


def test_the_line_of_the_config_is_named(tmp_path):
    file = tmp_path / "tacit.toml"
    lines = ("[datasets.visits]", 'source = "v.csv"', "[datasets.visits.bounds]", "# age = []", "# stay = []")
    file.write_text("\n".join(lines))
    shown = words(Declare("bounds", (0, 30), column="stay"), CommandContext("visits", file))
    line = "under [datasets.visits.bounds]: stay = [LOW, HIGH]"
    assert shown == f"{file} line 5, {line}{FROM_PUBLIC_KNOWLEDGE}"


def test_a_config_that_fails_before_its_dataset_is_known_names_the_dataset(tmp_path):
    file = tmp_path / "tacit.toml"
    file.write_text("[datasets.a]\nbudget = {}\n[datasets.b]\n# budget = {}\n")
    shown = words(Declare("budget", Budget(3), column="b"), CommandContext(config=file))
    assert shown == f"{file} line 4, under [datasets.b]: budget = {{epsilon = 3}}"


def test_a_name_that_the_question_defines_gets_its_range_in_the_question():
    sql = "SELECT AVG(m) FROM (SELECT pid, SUM(stay) AS m FROM visits GROUP BY pid) t"
    fix = Do("clip-in-question", expression="m", low="LOW", high="HIGH")
    shown = words(fix, CommandContext("visits", sql=sql))
    assert (
        shown == f"give the range in the question: AVG(LEAST(GREATEST(m, LOW), HIGH)){FROM_PUBLIC_KNOWLEDGE}"
    )


def test_missing_keys_name_every_column_that_lacks_them():
    fix = Either(*(Declare("keys", ["A", "B"], column=c) for c in ("ward", "odd")), Set(delta=1e-7))
    shown = words(fix, code="keys-missing")
    assert shown == "--keys ward=A,B --keys odd=A,B, or --delta 1e-7 to select groups privately"
    keyed = CommandContext("visits", sql="SELECT 1", keyed=frozenset({"ward"}))  # a budget without delta
    assert words(fix, keyed, "keys-missing") == "--keys odd=A,B"


def test_missing_keys_of_an_expression_are_an_option_too():
    fix = Either(Set(keys={"tens": range(3)}), Set(delta=1e-7))
    shown = words(fix, code="keys-missing")
    assert shown == "--keys tens=0,1,2, or --delta 1e-7 to select groups privately"


def test_a_charge_that_does_not_fit_says_how_much_would():
    fix = Set.at_most(epsilon=0.5)
    assert words(fix, code="budget-exceeded") == "--epsilon 0.5 or less"
    assert str(Either(fix, Say("ask the curator"))) == "epsilon=0.5 or less, or ask the curator"


def test_a_changed_budget_is_put_back_or_recorded():
    fix = Either(
        Declare("budget", Budget(epsilon=1), example=False),
        Do("grow-budget", account="visits", new=Budget(epsilon=2)),
    )
    shown = words(fix, code="account-differs")
    both = Do("grow-budget", account="visits", old=Budget(epsilon=1), new=Budget(epsilon=2))
    assert words(both, code="account-differs") == shown
    assert "under [datasets.visits]: budget = {epsilon = 1}, or record a larger budget: tacit budget" in shown


def test_code_what_and_why_stay():
    error = TacitError("missing-bounds", "what", why="why", fix=Declare("bounds", (0, 1), column="x"))
    shown = in_words_of_the_command(error, INIT)
    assert (shown.code, shown.what, shown.why) == ("missing-bounds", "what", "why")


def test_keys_of_a_public_table_are_named_in_the_config():
    fix = Either(Declare("keys", "codes.chapter", column="chapter", example=False), Set(delta=1e-7))
    shown = words(fix, code="keys-missing")
    assert 'chapter = "codes.chapter"' in shown
    assert "A,B" not in shown
    both = Either(*fix.fixes, Declare("keys", ["A", "B"], column="ward"))
    assert words(both, code="keys-missing").startswith("--keys ward=A,B and nowhere.toml")


def test_maps_and_graphs_have_their_options_in_the_fix():
    assert words(Set(box=((46.2, 7.2), (47.4, 9.4)))) == "--box 46.2 7.2 47.4 9.4"
    assert words(Set(lat="Breite", lon="Länge")) == "--lat Breite --lon Länge"
    assert words(Set(source_column="from", target_column="to")) == "--columns from,to"
