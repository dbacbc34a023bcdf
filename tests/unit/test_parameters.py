"""Refusals of declared parameters name the limit, the reason and a value that may be given."""

import numpy as np
import pytest

import tacit as tc
from tacit import mechanisms
from tacit.parameters import (
    Choice,
    ColumnName,
    Delta,
    Flag,
    Integer,
    Listed,
    Needed,
    Probability,
    RealNumber,
    Share,
    Text,
)

SENTENCES = {
    "k must be a whole number from 1 to 20, got 0": (Integer(1, 20), "k", 0),
    "k must be 1 or 2, got 3": (Integer(1, 2), "k", 3),
    "k must be 1, got 2": (Integer(1, 1), "k", 2),
    "delta must be a number of at least 0 and below 1, got 1": (Delta(), "delta", 1),
    "share must be a number above 0 and at most 1, got 2": (Share(), "share", 2),
    "x must be a number of at most 5, got 6": (RealNumber(most=5), "x", 6),
    "cuts must be a list of rising numbers, got values that do not rise": (
        Listed("numbers", "[1, 2]", 0, rising=True), "cuts", [2, 1],
    ),
    "zones must be a list of one or more different names, got one of them twice": (
        Listed("names", '["a", "b"]', different=True), "zones", ["a", "a"],
    ),
    "members must be a list of at least 2 datasets, got 1": (
        Listed("datasets", "[a, b]", 2), "members", [1],
    ),
    "names must be a list of 3 different names, got 1": (
        Listed("names", "None", 3, 3, different=True), "names", ["a"],
    ),
    "origin must be a list of 1 or 2 columns, got none": (Listed("columns", '["a"]', 1, 2), "origin", []),
    "blocks must be a list of at most 9 names, got 10": (Listed("names", "()", 0, 9), "blocks", range(10)),
    "spread must be True, False or None, got 3": (Flag("True, False or None"), "spread", 3),
    "lat must be the name of a column, got 3": (ColumnName(), "lat", 3),
    "note must be a text, with at most 200 characters, got '" + "x" * 76 + "...": (Text(), "note", "x" * 201),
}  # fmt: skip


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_refusal_names_what_may_be_given(sentence):
    parameter, name, value = SENTENCES[sentence]
    with pytest.raises(tc.TacitError) as refused:
        parameter.read(name, value)
    assert refused.value.what == sentence


@pytest.mark.parametrize(
    "parameter",
    [
        Integer(1, 20, "there are 20"), Probability(why="there are 20"), Choice(("a", "b"), "there are 20"),
        RealNumber(above=0, why="there are 20"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", [object(), -1, "many"])
def test_a_refusal_gives_its_reason_also_for_another_type(parameter, value):
    with pytest.raises(tc.TacitError) as refused:
        parameter.read("k", value)
    assert refused.value.why == "there are 20"


def test_the_fix_names_the_column_that_was_written():
    columns = Listed("columns", '["hospital"]', 0, each=ColumnName())
    with pytest.raises(tc.TacitError) as refused:
        columns.read("never_null", "ward")
    assert str(refused.value.fix) == 'never_null=["ward"]'
    with pytest.raises(tc.TacitError) as refused:
        ColumnName().read("lat", 3)
    assert str(refused.value.fix) == 'lat="lat"'


def test_a_narrow_number_of_numpy_is_converted():
    with pytest.raises(tc.TacitError) as refused:
        Share().read("q", np.float32(0.5))
    assert str(refused.value.fix) == "q=float(...)"


def test_a_needed_parameter_can_have_another_way_out():
    with pytest.raises(tc.TacitError) as refused:
        Needed("patient_id", "at the level person", fix='level="event"').read("unit", None)
    assert str(refused.value.fix) == 'level="event"'


def test_a_histogram_without_cells_is_told_its_categories():
    with pytest.raises(tc.TacitError) as refused:
        mechanisms.Histogram(epsilon=1)
    assert str(refused.value.fix) == 'categories=["A", "B"]'


def test_a_window_takes_words_or_a_size():
    for wrong in ("zero", -1, 1.5, object()):
        with pytest.raises(tc.TacitError, match='"usual", "any" or a size from 0 to 1'):
            mechanisms.NumberWindow(epsilon=1, steps=10, expected=wrong)


def test_streams_name_both_ways_out_of_a_unit():
    declared = {"start": "2026-01-01", "days": 30, "budget": tc.Budget(epsilon=1)}
    with pytest.raises(tc.TacitError) as refused:
        tc.stream(None, name="flu", level="event", unit="patient_id", **declared)
    assert str(refused.value.fix) == 'unit=None, or level="person-day"'
    with pytest.raises(tc.TacitError) as refused:
        tc.stream(None, name="flu", level="person-day", **declared)
    assert str(refused.value.fix) == 'unit="patient_id", or level="event"'
