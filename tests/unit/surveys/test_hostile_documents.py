"""A survey document with one changed value is refused, or it can be used; nothing else fails."""

import copy

import pytest

import tacit as tc
from tacit import TacitError
from tacit.surveys import Survey

DICE = tc.mechanisms.Design.forced(truth="2/3", yes="1/6", no="1/6")
SURVEYS = {
    "choice": tc.survey("a", ["no", "yes"], epsilon=1),
    "scale": tc.survey("b", range(1, 6), epsilon=1),
    "number": tc.survey("c", (18, 90), epsilon=1),
    "pair": tc.survey("d", {"x": ["a", "b"], "y": ["a", "b"]}, epsilon=1, pairs=[("x", "y")]),
    "repeated": tc.survey("e", ["no", "yes"], epsilon=2, once=1),
    "hash": tc.survey("f", 2000, epsilon=1),
    "design": tc.survey("g", {"u": tc.surveys.question(["no", "yes"], randomizer=DICE)}, epsilon=1.61),
    "one of two": tc.survey("h", {"a": ["no", "yes"], "b": (0, 1)}, epsilon=1, strategy="one"),
}
DIGITS = "1" + "0" * 400
VALUES = [
    10**400, -(10**400), 10**18, 2**1024, 0, -1, 1e308, float("inf"), float("nan"), "1e999999999", DIGITS,
    "-" + DIGITS, "1/" + DIGITS, "9" * 5000, None, True, [], {},
    [10**400, 10**400 + 1], [DIGITS, "2" + DIGITS],
]  # fmt: skip


def places(document, path=()):
    """Return the paths of all values; the costs are computed again and not read."""
    items = document.items() if isinstance(document, dict) else enumerate(document[:3])
    for key, value in items:
        if key != "cost":
            yield (*path, key)
            if isinstance(value, dict | list):
                yield from places(value, (*path, key))


def changed(document, path, value):
    made = copy.deepcopy(document)
    part = made
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return made


def use(survey):
    str(survey)
    str(survey.predict(1000))
    for question in survey.questions:
        try:
            survey.respondents_for(half_width=0.1, question=question.name)
        except TacitError:
            continue  # such as a half-width that is too small for these bounds


@pytest.mark.parametrize("kind", SURVEYS)
def test_every_value_of_a_document_may_be_any_number(kind):
    document = SURVEYS[kind].document()
    for path in places(document):
        for value in VALUES:
            try:
                survey = Survey.from_document(changed(document, path, value))
            except TacitError as refused:
                assert refused.code == "bad-survey", (path, value)
            else:
                use(survey)


@pytest.mark.parametrize("answers", [range(10**400, 10**400 + 3), [1, 10**400], (0, 10**400)])
def test_numbers_that_no_computer_holds_are_not_declared(answers):
    with pytest.raises(TacitError) as refused:
        tc.survey("a", answers, epsilon=1)
    assert refused.value.code == "bad-parameter"


def test_a_chance_is_never_written_out():
    for text in ("1e999999999", "1e-999999999", "x", "1/0", "inf", "nan"):
        with pytest.raises(TacitError):
            tc.mechanisms.Design.warner(text)
    assert tc.mechanisms.Design.warner("0.75") == tc.mechanisms.Design.warner(" 3/4 ")
