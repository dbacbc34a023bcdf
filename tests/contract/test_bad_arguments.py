"""A bad argument of a question has one code, in Python, in the command and in a service."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stdout

import pytest

import tacit as tc
from support.asked_questions import DATASETS
from tacit import TacitError
from tacit.cli import main
from tacit.core import questions_of
from tacit.parameters import Anything, Choice, ColumnName, Day, Flag, Integer, RealNumber, Text
from tacit.service._kinds import kind_names, plan_of_question, served_questions

SERVED = [(kind, one.name) for kind in kind_names() for one in served_questions(kind)]
#: How the command asks about a kind; QUESTION stands for the name of the question.
COMMANDS = {
    "table": ("limits",),
    "graph": ("ask", "graph", ".", "QUESTION", "--source-column", "a", "--target-column", "b"),
    "points": ("ask", "points", ".", "QUESTION", "--lat", "lat", "--lon", "lon", "--box", "0 0 1 1"),
}
#: Commands of their own beside these, with the questions that they ask.
OWN = {
    ("graph", one.name): ("graph", "pyproject.toml", "QUESTION", "--unit", "edge")
    for one in questions_of("graph")
} | {
    ("cohort", name): ("genome", word, "cohort.vcf")
    for name, word in {
        "frequencies": "frequencies", "hardy_weinberg": "hardy-weinberg", "missingness": "missingness",
        "components": "components",
    }.items()
}  # fmt: skip
RENAMED = {("graph", "group"): "by"}


def wrong(accepts):
    """Return values that a parameter does not accept, and how each is typed."""
    match accepts:
        case Integer(low, high):
            above = [] if high is None else [high + 1]
            return [(value, str(value)) for value in ("many", 1.5, low - 1, *above)]
        case RealNumber():
            return [("many", "many"), (float("nan"), "nan"), (-1, "-1")]
        case Choice():
            return [("no such choice", "no such choice"), (3, "3")]
        case Day():
            return [("2026-02-30", "2026-02-30"), (3, "3")]
        case Text() | ColumnName():
            return [("", ""), ("x" * 201, "x" * 201)]
        case Flag():
            return [("maybe", None)]
        case Anything():
            return []
        case _:  # rows and columns of a grid
            return [("many", "many"), ((0, 5), "0x5")]


def written(value):
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def cases(question):
    """Yield a wrong argument, and all arguments with it: for Python, and as they are typed."""
    needed = {one.name: (one.served or one.accepts).example for one in question.arguments if one.needed}
    typed = {name: written(value) for name, value in needed.items()}
    yield "no_such_argument", {**needed, "no_such_argument": 1}, {**typed, "no_such_argument": "1"}
    for argument in question.arguments:
        name = argument.name
        if argument.needed:
            yield name, *({k: v for k, v in one.items() if k != name} for one in (needed, typed))
        for value, text in wrong(argument.accepts):
            yield name, {**needed, name: value}, None if text is None else {**typed, name: text}


def question_named(kind, name):
    return next(one for one in questions_of(kind) if one.name == name)


def code_of_python(question, data, given, bad):
    with pytest.raises(TacitError) as refused:
        question.ask(data, **given)
    assert bad in refused.value.what
    return refused.value.code


def code_of_command(kind, name, command, typed, bad):
    """Return the code of the refusal, which names the wrong argument, or its option."""
    option = {one: RENAMED.get((kind, one), one).replace("_", "-") for one in {*typed, bad}}
    words = [name.replace("_", "-") if word == "QUESTION" else word for word in command]
    words += [f"--{option[one]}={text}" for one, text in typed.items()]
    words += ["--cut"] if name == "measure_cut" else []
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), pytest.raises(SystemExit) as end:
        patch.setattr(sys, "argv", ["tacit", *words, "--epsilon", "1", "--json"])
        main()
    assert end.value.code == 2
    refusal = json.loads(said.getvalue())["error"]
    assert bad in refusal["what"] or f"--{option[bad]}" in refusal["what"]
    assert refusal["fix"]
    return refusal["code"]


def test_every_kind_of_a_service_is_tried_and_only_streams_have_no_such_command():
    assert {*COMMANDS, "stream"} == set(kind_names())


@pytest.mark.parametrize(("kind", "name"), SERVED)
def test_a_bad_argument_has_one_code_in_python_in_the_command_and_in_a_service(kind, name):
    question, data = question_named(kind, name), DATASETS[kind](tc.Ledger.memory())
    for bad, given, typed in cases(question):
        codes = [code_of_python(question, data, given, bad)]
        with pytest.raises(TacitError) as refused:
            plan_of_question(data, name, given, {"epsilon": 1})
        codes.append(refused.value.code)
        if typed is not None and kind in COMMANDS:
            codes.append(code_of_command(kind, name, COMMANDS[kind], typed, bad))
        assert set(codes) == {"bad-parameter"}, given


@pytest.mark.parametrize(("kind", "name"), OWN)
def test_a_bad_argument_has_one_code_in_python_and_in_the_command_of_a_field(kind, name):
    question, data = question_named(kind, name), DATASETS[kind](tc.Ledger.memory())
    for bad, given, typed in cases(question):
        codes = [code_of_python(question, data, given, bad)]
        if typed is not None:
            codes.append(code_of_command(kind, name, OWN[kind, name], typed, bad))
        assert set(codes) == {"bad-parameter"}, given
