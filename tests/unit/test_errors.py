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
