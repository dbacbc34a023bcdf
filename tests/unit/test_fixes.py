"""Fixes as data: each class is written in Python and as JSON, and travels between processes."""

from __future__ import annotations

import ast
import copy
import json
import pickle
from string import Formatter
from typing import get_args

import pytest

from tacit.fixes import (
    ACTIONS,
    FROM_PUBLIC_KNOWLEDGE,
    Choose,
    Code,
    Declare,
    Do,
    Either,
    Fix,
    Say,
    Set,
    as_fix,
    from_json,
    to_json,
)

FIXES = [
    (Say("a larger epsilon"), "a larger epsilon", {"fix": "say", "text": "a larger epsilon"}),
    (Code("tc.Unit.row()"), "tc.Unit.row()", {"fix": "code", "python": "tc.Unit.row()"}),
    (
        Set(within=1, size=1000),
        "within=1, size=1000",
        {"fix": "set", "values": {"within": 1, "size": 1000}},
    ),
    (
        Set(keys={"ward": ["A", 'the "B"']}),
        'keys={"ward": ["A", "the \\"B\\""]}',
        {"fix": "set", "values": {"keys": {"ward": ["A", 'the "B"']}}},
    ),
    (Set(size=None, monotone=False), "size=None, monotone=False",
     {"fix": "set", "values": {"size": None, "monotone": False}}),
    (
        Declare("bounds", (0, 30), column="stay"),
        'tc.protect(..., bounds={"stay": (LOW, HIGH)}) (from public knowledge, not from the data)',
        {"fix": "declare", "fact": "bounds", "column": "stay", "value": [0, 30], "example": True},
    ),
    (
        Declare("never_null", ("stay",), example=False),
        'tc.protect(..., never_null=("stay",))',
        {"fix": "declare", "fact": "never_null", "column": "", "value": ["stay"], "example": False},
    ),
    (
        Declare("budget", {"epsilon": 1, "delta": 1e-06}),
        "tc.protect(..., budget=tc.Budget(epsilon=1, delta=1e-06))",
        {"fix": "declare", "fact": "budget", "column": "", "value": {"epsilon": 1, "delta": 1e-06},
         "example": True},
    ),
    (
        Choose(("stay", "age"), given="stai", close="stay"),
        "did you mean stay? one of: stay, age",
        {"fix": "choose", "names": ["stay", "age"], "given": "stai", "close": "stay"},
    ),
    (Choose(("stay", "age")), "one of: stay, age",
     {"fix": "choose", "names": ["stay", "age"], "given": "", "close": ""}),
    (
        Do("open-ledger", path="study.ledger"),
        "Ledger.open('study.ledger')",
        {"fix": "do", "action": "open-ledger", "arguments": {"path": "study.ledger"}},
    ),
    (Do("verify-ledger"), "ledger.verify()", {"fix": "do", "action": "verify-ledger", "arguments": {}}),
    (
        Either(Set(delta=1e-07), Either(Say("ask the curator"), Code("tc.count()"))),
        "delta=1e-07, or ask the curator, or tc.count()",
        {
            "fix": "either",
            "fixes": [
                {"fix": "set", "values": {"delta": 1e-07}},
                {"fix": "either", "fixes": [
                    {"fix": "say", "text": "ask the curator"}, {"fix": "code", "python": "tc.count()"},
                ]},
            ],
        },
    ),
]  # fmt: skip
EACH = [fix for fix, _, _ in FIXES]


def test_every_class_of_fix_is_here():
    assert {type(fix) for fix in EACH} == set(get_args(Fix))


@pytest.mark.parametrize(("fix", "python", "document"), FIXES, ids=[str(fix) for fix in EACH])
def test_a_fix_is_written_in_python_and_as_json(fix, python, document):
    assert str(fix) == python
    assert to_json(fix) == document
    assert json.loads(json.dumps(to_json(fix), allow_nan=False)) == document


@pytest.mark.parametrize("fix", EACH, ids=str)
def test_a_fix_survives_pickling_and_copying(fix):
    for again in (pickle.loads(pickle.dumps(fix)), copy.copy(fix), copy.deepcopy(fix)):
        assert again == fix
        assert type(again) is type(fix)
        assert str(again) == str(fix)
        assert to_json(again) == to_json(fix)


@pytest.mark.parametrize("fix", EACH, ids=str)
def test_a_fix_cannot_be_changed(fix):
    [name, *_] = type(fix).__dataclass_fields__
    with pytest.raises(AttributeError):
        setattr(fix, name, "other")


@pytest.mark.parametrize("fix", [fix for fix in EACH if isinstance(fix, Set | Declare | Code)], ids=str)
def test_what_is_written_in_python_is_python(fix):
    ast.parse(f"f({str(fix).removesuffix(FROM_PUBLIC_KNOWLEDGE)})")


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_is_written_with_its_arguments_and_refused_without(action):
    needed = {name for _, name, _, _ in Formatter().parse(ACTIONS[action]) if name}
    fix = Do(action, **dict.fromkeys(needed, "thing"))
    assert str(fix).count("thing") == sum(bool(name) for _, name, _, _ in Formatter().parse(ACTIONS[action]))
    assert to_json(fix) == {"fix": "do", "action": action, "arguments": dict.fromkeys(needed, "thing")}
    assert pickle.loads(pickle.dumps(fix)) == fix
    if needed:
        with pytest.raises(KeyError):
            Do(action)


def test_an_unknown_action_is_a_mistake_of_the_program():
    with pytest.raises(KeyError):
        Do("hope-for-the-best")


def test_text_stands_for_words_and_a_fix_for_itself():
    assert as_fix("ask the curator") == Say("ask the curator")
    for fix in EACH:
        assert as_fix(fix) is fix


def test_a_long_list_of_names_is_cut_on_the_screen_only():
    names = tuple(f"c{i}" for i in range(53))
    assert str(Choose(names)).endswith(", c39 and 13 more")
    assert "more" not in str(Choose(names[:40]))
    assert to_json(Choose(names))["names"] == list(names)


@pytest.mark.parametrize("fix", [fix for fix, _, _ in FIXES], ids=str)
def test_a_fix_is_read_back_from_json(fix):
    """Tuples arrive as lists; what a person reads is the same, but for the brackets of a list."""
    again = from_json(json.loads(json.dumps(to_json(fix))))
    assert type(again) is type(fix)
    assert to_json(again) == to_json(fix)
    assert str(again).translate(BRACKETS) == str(fix).translate(BRACKETS)


BRACKETS = str.maketrans("()", "[]", ",")


@pytest.mark.parametrize(
    "document",
    [
        None, 5, "say", [], {}, {"fix": "say", "text": 5}, {"fix": "dance"}, {"fix": "code"},
        {"fix": "set", "values": []}, {"fix": "set", "values": {"self": 1}},
        {"fix": "set", "values": {"a b": 1}},
        {"fix": "do", "action": "rm", "arguments": {}}, {"fix": "do", "action": "install", "arguments": {}},
        {"fix": "do", "action": "install", "arguments": {"self": 1, "package": "x"}},
        {"fix": "do", "action": "install", "arguments": {"action": "x", "package": "x"}},
        {"fix": "declare", "fact": "secret", "column": "", "value": 1}, {"fix": "either", "fixes": [{}]},
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_read_says_nothing(document):
    assert str(from_json(document)) == ""
