"""Charts drawn by the server: what they show, that they escape, and that they stand on their own."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from tacit.service._charts import (
    attack_chart,
    budget_bar,
    burn_down_chart,
    odds_chart,
)
from tacit.service._interval_charts import MOST_MARKS, MOST_ROWS, intervals_chart
from tacit.service._scales import days_scale, number_scale
from tacit.service._svg import SvgElement, element

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</text><script>alert(1)</script>\"'&\x00\ud800"


def content(groups, key="ward", dates=(), **more):
    cells = {"value": [5] * len(groups), "low": [2] * len(groups), "high": [8] * len(groups)}
    return {
        "keys": {key: groups}, "columns": {"n": cells}, "confidence": 0.95, "dates": list(dates), **more,
    }  # fmt: skip


def every_chart():
    return [
        intervals_chart(content(["A", "B"])),
        intervals_chart(content(["2026-01-01", "2026-01-02", "2026-01-03"], "day", ["day"])),
        burn_down_chart([{"at": "2026-01-05T10:00:00Z", "spent": "1/2"}], "2"),
        burn_down_chart([], 2),
        odds_chart([{"prior": 0.5, "at_least": 0.4, "at_most": 0.6}]),
        attack_chart([{"epsilon": 1, "low": 0.4, "right": 0.6, "high": 0.7, "limit": 0.73}]),
        budget_bar("3/4", 3),
    ]


def test_every_chart_is_a_file_of_its_own_with_title_description_and_role():
    for chart in every_chart():
        root = ET.fromstring(chart.file())
        assert root.tag == SVG + "svg"
        assert root.get("role") == "img"
        assert root[0].tag == SVG + "title"
        assert root[0].text == chart.title
        assert root[1].tag == SVG + "desc"
        assert chart.summary in root[1].text
        assert re.fullmatch(r"0 0 \d+ [\d.]+", root.get("viewBox"))


def test_charts_have_neither_style_nor_script_and_colours_as_attributes():
    for chart in every_chart():
        root = ET.fromstring(chart.file())
        for part in root.iter():
            assert part.tag.removeprefix(SVG) in {
                "svg", "g", "title", "desc", "rect", "line", "circle", "text", "path", "polyline",
            }  # fmt: skip
            assert "style" not in part.attrib
            assert not [name for name in part.attrib if name.startswith("on") or "href" in name]
            if part.get("class"):
                assert part.get("fill") or part.get("stroke")


def test_every_mark_lies_on_the_page():
    for chart in every_chart():
        root = ET.fromstring(chart.file())
        width, height = (float(one) for one in root.get("viewBox").split()[2:])
        for part in root.iter():
            for name in ("x", "x1", "x2", "cx"):
                assert 0 <= float(part.get(name, 0)) <= width
            for name in ("y", "y1", "y2", "cy"):
                assert 0 <= float(part.get(name, 0)) <= height


@given(st.text())
def test_a_hostile_group_stays_text(group):
    chart = intervals_chart(content([group, HOSTILE], key=HOSTILE))
    root = ET.fromstring(chart.file())
    assert [part.tag for part in root.iter() if "script" in part.tag] == []
    assert "<script" not in str(chart.drawing)


def test_a_tag_cannot_come_from_outside():
    with pytest.raises(ValueError, match="letters"):
        SvgElement("g onload=alert(1)")
    with pytest.raises(ValueError, match="letters"):
        element("g", **{"on load": "x"})


def test_a_value_lies_between_its_ends_and_right_of_a_smaller_one():
    document = {
        "keys": {"ward": ["A", "B"]}, "confidence": 0.9,
        "columns": {"n": {"value": [-3, 9], "low": [-6, 6], "high": [0, 12]}},
    }  # fmt: skip
    root = ET.fromstring(intervals_chart(document).file())
    dots = [float(c.get("cx")) for c in root.iter(SVG + "circle")]
    assert dots[0] < dots[1]
    lines = [
        one
        for one in root.iter(SVG + "line")
        if one.get("class") == "c-line" and one.get("y1") == one.get("y2")
    ]
    for dot, line in zip(dots, lines, strict=True):
        assert float(line.get("x1")) < dot < float(line.get("x2"))
    assert "90 %" in intervals_chart(document).title


def test_a_real_release_can_be_drawn():
    visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
    release = visits.agg(n=tc.count()).plan(epsilon=1).release()
    chart = intervals_chart(release.to_json())
    assert chart.header == ("column", "value", "low", "high")
    assert chart.rows[0][0] == "n"
    assert float(chart.rows[0][1].replace(",", "")) == release.value


def test_more_groups_than_marks_are_in_the_table_and_the_summary_says_so():
    chart = intervals_chart(content([f"g{i}" for i in range(200)]))
    root = ET.fromstring(chart.file())
    assert len(list(root.iter(SVG + "circle"))) == MOST_MARKS
    assert len(chart.rows) == 200
    assert f"the first {MOST_MARKS} of 200 groups" in chart.summary


def test_days_are_a_line_and_the_latest_are_drawn():
    days = [f"2026-{m:02d}-{d:02d}" for m in range(1, 5) for d in range(1, 29)]
    chart = intervals_chart(content(days, "day", ["day"]))
    root = ET.fromstring(chart.file())
    assert len(list(root.iter(SVG + "polyline"))) == 1
    assert "the last 60 of 112 groups" in chart.summary
    shuffled = intervals_chart(content(days[::-1], "day", ["day"]))
    assert not list(ET.fromstring(shuffled.file()).iter(SVG + "polyline"))


def test_a_series_of_a_stream_is_drawn_by_its_days():
    day = content(["2026-01-01", "2026-01-02"], "day", ["day"])
    chart = intervals_chart({"kind": "series", "content": {"days": 2, "tables": {"day": day}}})
    assert chart.rows == intervals_chart(day).rows


def test_missing_values_open_ends_and_columns_of_text_do_not_break_a_chart():
    document = {
        "keys": {"a": [None, 2024.0, "x"]}, "confidence": 0.95,
        "columns": {
            "n": {"value": [None, 5, 7], "low": [None, None, None], "high": [None, 9, None]},
            "name": {"value": ["u", "v", "w"], "low": [None] * 3, "high": [None] * 3},
        },
    }  # fmt: skip
    chart = intervals_chart(document)
    assert chart.header == ("a", "n", "n, low", "n, high")
    assert chart.rows == (("(missing)", "–", "–", "–"), ("2024", "5", "–", "9"), ("x", "7", "–", "–"))
    assert "no value" in str(chart.drawing)
    assert intervals_chart(document | {"totals": True}).rows[0][0] == "(all)"
    none = intervals_chart({**document, "columns": {"name": document["columns"]["name"]}})
    assert none.summary == "This release has no numbers to draw."
    empty = intervals_chart(content([]))
    assert empty.rows == ()


def test_a_burn_down_goes_down_and_says_what_is_left():
    chart = burn_down_chart([{"at": 0, "spent": "1/3"}, {"at": 86400, "spent": "2/3"}], "1")
    assert chart.summary == "0.3333 of 1 epsilon are left."
    assert chart.rows[1][1:] == ("0.6667", "0.3333")
    path = next(p for p in ET.fromstring(chart.file()).iter(SVG + "path") if p.get("class") == "c-line")
    downs = [float(y) for y in re.findall(r"V([\d.]+)", path.get("d"))]
    assert downs == sorted(downs)
    over = burn_down_chart([{"at": 0, "spent": 5}], 2)
    assert over.rows[0][2] == "0"


def test_limits_are_rounded_outwards():
    assert odds_chart([{"prior": 1 / 3, "at_least": 0.12399, "at_most": 0.12301}]).rows == (
        ("33.3 %", "12.3 %", "12.4 %"),
    )


@pytest.mark.parametrize(("spent", "total", "share"), [("0", 3, 0), ("3/2", 3, 0.5), (7, 3, 1), (0, 0, 1)])
def test_a_budget_bar_is_as_long_as_its_share(spent, total, share):
    bar = list(ET.fromstring(budget_bar(spent, total).file()).iter(SVG + "rect"))[1]
    assert float(bar.get("width")) == pytest.approx(199 * share, abs=0.01)


@given(st.lists(st.floats(-1e12, 1e12, allow_subnormal=False), min_size=1))
def test_an_axis_covers_its_values_with_few_round_ticks(values):
    scale = number_scale(values, 0, 100)
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 9
    assert all(0 <= scale.at(value) <= 100 for value in values)
    width = scale.high - scale.low
    assert scale.low <= min(values) + 1e-6 * width
    assert scale.high >= max(values) - 1e-6 * width


@given(st.lists(st.floats(0, 4e9), min_size=1))
def test_an_axis_of_time_has_few_different_words(moments):
    scale = days_scale(moments, 0, 100)
    words = [text for _, text in scale.marks]
    assert 1 <= len(words) <= 5
    assert len(set(words)) == len(words)
    assert all(math.isfinite(scale.at(one)) for one in moments)


@pytest.mark.parametrize("dates", [(), ("day",)])
def test_a_table_beside_a_chart_is_for_reading_and_says_where_the_rest_is(dates):
    days = [f"{2000 + n // 300:04}-{1 + n // 28 % 10:02}-{1 + n % 28:02}" for n in range(2800)]
    keys = sorted(set(days)) if dates else [f"k{n:05}" for n in range(6000)]
    numbers = list(range(len(keys)))
    cells = {"value": numbers, "low": numbers, "high": numbers}
    content = {"keys": {"day": keys}, "columns": {"n": cells}, "confidence": 0.95, "dates": list(dates)}
    chart = intervals_chart(content)
    assert len(chart.rows) == MOST_ROWS
    assert "the table has 500, and the downloads have all" in chart.summary
    shown = chart.rows[-1] if dates else chart.rows[0]
    assert shown[0] == (keys[-1] if dates else keys[0])
    assert float(shown[1].replace(",", "")) == pytest.approx(numbers[-1] if dates else 0, rel=1e-3)
