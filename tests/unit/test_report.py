"""One page of facts, shown in the same way everywhere."""

import io
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.report import Report, Reportable, ReportTable, percent, plain


@dataclass(frozen=True, slots=True, repr=False)
class Facts(Reportable):
    name: str
    values: np.ndarray

    def report(self):
        table = ReportTable("a <table>", ("name", "n"), (("first [bold]", "1"), ("second", "20")))
        return Report("Title & more", ("One line.",), (table,), ("A note.",))


def test_text_aligns_columns():
    lines = str(Facts("x", np.arange(2))).splitlines()
    assert lines[0] == "Title & more"
    assert lines[1] == "=" * len(lines[0])
    first = next(line for line in lines if line.startswith("first"))
    second = next(line for line in lines if line.startswith("second"))
    assert first.index("1") == second.index("20")


def test_html_escapes_everything():
    html = Facts("x", np.arange(2))._repr_html_()
    assert "Title &amp; more" in html
    assert "a &lt;table&gt;" in html


def test_markup_in_cells_is_text():
    from rich.console import Console

    console = Console(width=80)
    with console.capture() as said:
        console.print(Facts("x", np.arange(2)))
    assert "first [bold]" in said.get()


def test_plain_data_is_json():
    facts = Facts("x", np.array([1.5, np.inf, np.nan]))
    assert facts.to_dict() == {"name": "x", "values": [1.5, None, None]}
    json.dumps(plain({"a": (np.int64(3), np.float64(2.5), np.bool_(True), None, object)}), allow_nan=False)


def test_what_is_not_a_dataclass_has_no_plain_data():
    class Odd(Reportable):
        pass

    with pytest.raises(TypeError):
        Odd().to_dict()
    with pytest.raises(NotImplementedError):
        str(Odd())


def test_a_terminal_gets_lines_that_fit(monkeypatch):
    class Wide(Reportable):
        def report(self):
            cells = ("smokes", "the true answer with chance 73.1 %, " * 4, "any other one with 26.9 % " * 2)
            table = ReportTable("", ("question", "sent", "other"), (cells, ("age", "a number", "")))
            return Report("wide", ("word " * 40,), (table,), ("note " * 40,))

    assert max(map(len, str(Wide()).splitlines())) > 150  # into a file: one line for each row
    monkeypatch.setattr("sys.stdout", Screen())
    monkeypatch.setenv("COLUMNS", "80")
    shown = str(Wide()).splitlines()
    assert max(map(len, shown)) <= 80
    assert " ".join(shown).count("73.1") == 4
    assert any(line.split() == ["age", "a", "number"] for line in shown)


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self):
        return True


def test_percentages_have_a_space_everywhere():
    """A person reads "95 %", so messages write a share with `percent`, not with the format of Python."""
    home = Path(tacit.__file__).parent
    compact = re.compile(r"\{[^{}]*:\.\d%\}")
    assert [
        path.name for path in home.rglob("*.py") if compact.search(path.read_text(encoding="utf-8"))
    ] == []
    assert compact.search('f"{share:.1%}"')
    assert percent(0.0714) == "7.1 %"
    assert percent(1, 0) == "100 %"
