"""The one error family, and its page in the docs."""

import json
import pickle
import re
from pathlib import Path

import pytest

from tacit.errors import CODES, TacitError, bad_parameter
from tacit.fixes import Choose, Code, Declare, Do, Either, Say, Set, to_json

ROOT = Path(__file__).parents[2]


def test_docs_and_code_list_the_same_codes():
    page = (ROOT / "docs/reference/errors.md").read_text()
    assert re.findall(r"^## (\S+)$", page, flags=re.MULTILINE) == list(CODES)


def test_every_code_has_a_way_out_in_the_docs():
    page = (ROOT / "docs/reference/errors.md").read_text()
    for section in page.split("\n## ")[1:]:
        assert "*What to do*" in section, section.splitlines()[0]


def test_every_code_is_raised_somewhere():
    source = "\n".join(p.read_text() for p in (ROOT / "src").rglob("*.py") if p.name != "errors.py")
    for code in set(CODES) - {"bad-parameter"}:
        assert f'"{code}"' in source, f"{code} is listed but never raised"


def test_an_error_says_what_why_and_how():
    error = TacitError("bad-parameter", "no", why="because", fix="do this")
    assert str(error).splitlines() == ["no", "  why: because", "  fix: do this", "  code: bad-parameter"]


def test_an_unlisted_code_cannot_be_raised():
    with pytest.raises(KeyError, match="unknown error code"):
        TacitError("nosuch", "no")


@pytest.mark.parametrize(
    "fix",
    [
        Say("do this"),
        Code("tc.count()"),
        Set(epsilon=0.5),
        Set.at_most(epsilon=0.5),
        Declare("bounds", (0, 30), column="stay"),
        Choose(("a", "b"), given="c", close="b"),
        Do("open-ledger", path="study.ledger"),
        Either(Set(delta=1e-7), Say("ask the curator")),
    ],
)
def test_an_error_survives_pickling_with_its_fix(fix):
    error = TacitError("bad-parameter", "no", why="because", fix=fix)
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, again.what, again.why, again.fix) == ("bad-parameter", "no", "because", fix)
    assert str(again) == str(error)
    assert json.loads(json.dumps(to_json(fix)))["fix"] == type(fix).__name__.lower()


def test_plain_text_is_a_fix_in_words():
    assert TacitError("bad-parameter", "no", fix="do this").fix == Say("do this")


def test_a_huge_value_is_not_echoed_whole():
    assert len(bad_parameter("n", "small", "x" * 10**6).what) < 200


def test_a_notebook_shows_the_four_lines_and_the_traceback_on_request(monkeypatch):
    error = TacitError("bad-parameter", "no", why="because", fix="do this")
    lines = ["TacitError: no", "  why: because", "  fix: do this", "  code: bad-parameter"]
    assert error._render_traceback_() == lines
    with pytest.raises(TacitError) as raised:
        raise error
    monkeypatch.setattr(TacitError, "show_traceback", True)
    shown = raised.value._render_traceback_()
    assert shown[0] == "Traceback (most recent call last):"
    assert any("raise error" in line for line in shown)
    assert shown[-4:] == ["tacit.errors.TacitError: no", *lines[1:]]


def test_a_refusal_in_other_words_keeps_its_code_its_facts_and_what_is_not_reworded():
    error = TacitError("bad-parameter", "no", why="because", fix="do this", facts={"column": "stay"})
    again = pickle.loads(pickle.dumps(error.but(what="never", row=3)))
    assert (again.code, again.what, again.why, str(again.fix)) == (
        "bad-parameter",
        "never",
        "because",
        "do this",
    )
    assert again.facts == {"column": "stay", "row": 3}


def test_no_source_reads_the_sentences_of_a_refusal():
    """What a program wants to know of a refusal is in its code, its fix and its facts."""
    read = re.compile(r"\.(what|why)\.(partition|r?split|startswith|endswith|replace|find|index|remove\w+)\(")
    parsed = [
        f"{path.name}: {line.strip()}"
        for path in (ROOT / "src").rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if read.search(line)
    ]
    assert parsed == []
