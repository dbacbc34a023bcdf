"""Charts of the service's pages: what they show, their words and their tables."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

import tacit as tc
from support.kinds_of_contents import answer, certificate
from tacit.core import AnswerTable, Cells, Release
from tacit.service._rendering import (
    answer_chart,
    attack_chart,
    budget_bar,
    burn_down_chart,
    chart_of,
    odds_chart,
)

SVG = "{http://www.w3.org/2000/svg}"


def every_chart():
    return [
        answer_chart(answer().to_json()),
        chart_of(Release(answer(), certificate()).to_json()),
        burn_down_chart([{"at": "2026-01-05T10:00:00Z", "spent": "1/2"}], "2"),
        burn_down_chart([], 2),
        odds_chart([{"prior": 0.5, "at_least": 0.4, "at_most": 0.6}]),
        attack_chart([{"epsilon": 1, "low": 0.4, "right": 0.6, "high": 0.7, "limit": 0.73}]),
    ]


def test_every_chart_is_a_file_of_its_own_with_title_description_and_role():
    for chart in every_chart():
        root = ET.fromstring(chart.file())
        assert root.tag == SVG + "svg"
        assert root.get("role") == "img"
        assert root[0].text == chart.title
        assert root[1].text
        assert chart.summary


def test_a_real_release_can_be_drawn():
    visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
    release = visits.agg(n=tc.count()).plan(epsilon=1).release()
    chart = answer_chart(release.to_json()["content"])
    assert chart.header == ("n", "n, low", "n, high")
    assert float(chart.rows[0][0].replace(",", "")) == release.value
    assert chart_of(release.to_json()).title == "data: n, epsilon 1"


def test_more_groups_than_marks_are_in_the_table_and_the_summary_says_so():
    chart = answer_chart(answer(200, names=tuple(f"g{i}" for i in range(200))).to_json())
    root = ET.fromstring(chart.file())
    assert len(list(root.iter(SVG + "circle"))) == 60
    assert len(chart.rows) == 200
    assert "first 60 of 200 groups" in chart.summary


def test_columns_of_text_have_no_chart():
    words = Cells(("u", "v"), (None, None), (None, None))
    assert answer_chart(AnswerTable({"a": (1, 2)}, {"name": words}, 0.95).to_json()) is None
    assert chart_of(Release(AnswerTable({}, {"name": words}, 0.95), certificate()).to_json()) is None


def test_a_burn_down_goes_down_and_says_what_is_left():
    chart = burn_down_chart([{"at": 0, "spent": "1/3"}, {"at": 86400, "spent": "2/3"}], "1")
    assert chart.summary == "0.3333 of 1 epsilon are left."
    assert chart.rows[1][1:] == ("0.6667", "0.3333")
    path = next(p for p in ET.fromstring(chart.file()).iter(SVG + "path") if p.get("fill") == "none")
    heights = [float(y) for _, y in re.findall(r"([\d.]+) ([\d.]+)", path.get("d"))]
    assert heights == sorted(heights)
    over = burn_down_chart([{"at": 0, "spent": 5}], 2)
    assert over.rows[0][2] == "0"


def test_limits_are_rounded_outwards():
    assert odds_chart([{"prior": 1 / 3, "at_least": 0.12399, "at_most": 0.12301}]).rows == (
        ("33.3 %", "12.3 %", "12.4 %"),
    )


@pytest.mark.parametrize(
    ("spent", "total", "share"), [("0", 3, 0), ("3/2", 3, 0.5), (7, 3, 7 / 3), (0, 0, 1)]
)
def test_a_budget_bar_is_as_long_as_its_share(spent, total, share):
    bar = budget_bar(spent, total)
    assert bar.share == pytest.approx(share)
    assert bar.summary in bar.__html__()
