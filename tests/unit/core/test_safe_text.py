"""Texts from the data are harmless on a screen and in a spreadsheet, and unchanged for programs."""

from __future__ import annotations

import csv
import io

import pytest

from tacit.core import AnswerTable, Cells
from tacit.core._tabular import for_spreadsheet
from tacit.show import visible

HOSTILE = [
    "\x1b[2J\x1b[31mred",
    "bell\x07",
    "back\x08\x08\x08space",
    "line\nbreak",
    "re\rturn",
    "c1\x9b31m",
    "delete\x7f",
    "\u202eright to left",
    "\u2066isolate\u2069",
    "line\u2028separator",
    "\ufeffmark",
    "\ud800",
    "\ue000",
    "nul\x00",
]


def answer(*keys: str) -> AnswerTable:
    n = len(keys)
    top = tuple(reversed(keys))
    return AnswerTable(
        {"ward": keys},
        {"n": Cells((5.0,) * n, (4.0,) * n, (6.0,) * n), "top": Cells(top, (None,) * n, (None,) * n)},
        0.95,
    )


@pytest.mark.parametrize("hostile", HOSTILE)
def test_printed_tables_hold_no_control_characters(hostile: str) -> None:
    made = answer(hostile, "ICU")
    for text in (made.text(), made.html(), repr(made)):
        assert all(char.isprintable() or char == "\n" for char in text)
    assert made.text().count("\n") == answer("x", "ICU").text().count("\n")


def test_names_of_columns_and_notes_are_made_visible_too() -> None:
    made = AnswerTable(
        {"w\x1b[1m": ("ICU",)},
        {"n\x1b[2J": Cells((5.0,), (4.0,), (6.0,))},
        0.95,
        {"n\x1b[2J": "note\x1b[2J"},
        ("left\x1b[2J",),
    )
    assert "\x1b" not in made.text()
    assert "\x1b" not in made.html()


def test_pictures_show_control_characters_written_out() -> None:
    pytest.importorskip("matplotlib")
    axes = answer("\x1b[31m", "a\nb").figures("n")[0].picture()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["\\x1b[31m", "a\\nb"]


@pytest.mark.parametrize(
    "text", ["ICU", "Zürich 1", "a\u00a0b", "a\u3000b", "می\u200cخواهم", "👩\u200d⚕", "$x$", "a\\b"]
)
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    assert visible(text) == text


FORMULAE = ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\uff1d1", '=cmd|" /C calc"!A0']


@pytest.mark.parametrize("formula", FORMULAE)
def test_a_spreadsheet_computes_nothing(formula: str) -> None:
    made = answer(formula, "ICU")
    lines = list(csv.reader(io.StringIO(made.to_csv(), newline="")))
    assert [line[0] for line in lines] == ["ward", "'" + formula, "ICU"]
    assert lines[2][4] == "'" + formula
    named = AnswerTable({formula: ("a",)}, {"n": Cells((5.0,), (4.0,), (6.0,))}, 0.95)
    assert next(csv.reader(io.StringIO(named.to_csv(), newline="")))[0] == "'" + formula


@pytest.mark.parametrize("text", [*FORMULAE, *HOSTILE])
def test_programs_read_texts_as_they_are(text: str) -> None:
    made = answer(text, "ICU")
    assert made.to_dict()["ward"] == [text, "ICU"]
    assert AnswerTable.from_json(made.to_json()).keys["ward"] == (text, "ICU")
    if text != "\ud800":
        assert made.to_arrow()["ward"].to_pylist() == [text, "ICU"]
        assert made.to_pandas()["ward"].tolist() == [text, "ICU"]
        assert made.to_polars()["ward"].to_list() == [text, "ICU"]


def test_numbers_stay_numbers_in_a_csv_file() -> None:
    made = AnswerTable({"y": (-1.0, 2.5)}, {"n": Cells((-5.0, 5.0), (-6.0, 4.0), (-4.0, 6.0))}, 0.95)
    assert made.to_csv() == "y,n,n_low,n_high\n-1,-5.0,-6.0,-4.0\n2.5,5.0,4.0,6.0\n"
    assert for_spreadsheet(True) is True
    assert for_spreadsheet(None) is None
