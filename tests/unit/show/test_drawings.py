"""What is drawn of a figure: marks at their places, hostile words as words, gaps, previews and files."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.show import (
    RED,
    Chart,
    ChartAxis,
    ChartSeries,
    Figure,
    Matrix,
    RegionMap,
    meter_svg,
    needed_package,
    numbers,
    shortened,
    together,
)
from tacit.show._scales import PALETTE, days_scale, number_scale, scale_of
from tacit.show._svg import SvgElement, _coarser, element

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</text><script>alert(1)</script>\"'&\x00\ud800\u202e"


def intervals(names=("A", "B"), value=(-3, 9), low=(-6, 6), high=(0, 12), **more):
    points = ChartSeries("points", range(len(names)), value, low, high)
    return Figure(
        "n by ward", (Chart((points,), ChartAxis("ward", names), ChartAxis("n"), **more),), ("bars: 95 %",)
    )


def days(mark="line", count=20):
    x = range(20_000, 20_000 + count + (mark == "steps"))
    y = [float(i % 7) for i in range(count)]
    series = ChartSeries(mark, x, y, [one - 1 for one in y], [one + 1 for one in y])
    return Figure("days", (Chart((series,), ChartAxis(kind="dates"), ChartAxis("n")),))


def grid(rows=4, columns=5):
    cells = rows * columns
    return RegionMap(
        (), np.arange(cells, dtype=float), lambda i: f"cell {i}", "points", np.arange(cells) < 3,
        (0.0, float(cells)), (np.linspace(10, 12, columns + 1), np.linspace(50, 51, rows + 1)),
    )  # fmt: skip


SQUARE = ((10.0, 50.0), (11.0, 50.0), (11.0, 51.0), (10.0, 51.0), (10.0, 50.0))
REGIONS = RegionMap(
    ((SQUARE,), (tuple((lon + 1, lat) for lon, lat in SQUARE),)), np.array([-2.0, 5.0]), "ab".__getitem__,
    "change", np.array([True, False]), (-5.0, 5.0),
)  # fmt: skip
EVERY = [
    intervals(),
    days(),
    days("joined"),
    days("joined", 400),
    days("steps", 2),
    Figure("bars", (Chart((ChartSeries("bars", (1, 2, 3), (2, 0, 3)),), ChartAxis("round")),)),
    Figure(
        "base",
        (
            Chart(
                (ChartSeries("bars", (0, 1), (2, 3), base=(1.0, 2.0), dashed=True),),
                ChartAxis("", ("a", "b")),
            ),
        ),
    ),
    Figure("empty", (Chart((), note="no group was large enough"),)),
    Figure("log", (Chart((ChartSeries("line", (1, 10, 100), (5, 2, 1)),), ChartAxis(kind="logarithmic")),)),
    Figure("matrix", (Matrix(np.eye(3), tuple("abc"), tuple("xyz"), unclear=np.eye(3) == 0, form=".0f"),)),
    Figure(
        "image", (Matrix(np.eye(30), spots=(("found", np.array([[1, 2]])), ("true", np.array([[3, 4]])))),)
    ),
    Figure("grid", (grid(),)),
    Figure("map", (REGIONS,)),
]


def drawn(figure, **more):
    return ET.fromstring(figure.svg(**more))


@pytest.mark.parametrize("figure", EVERY, ids=lambda one: one.title)
def test_every_mark_lies_on_the_page(figure):
    root = drawn(figure, file=True)
    assert (root.get("role"), root[0].tag, root[1].tag) == ("img", SVG + "title", SVG + "desc")
    _, _, width, height = (float(one) for one in root.get("viewBox").split())
    inside(root, 0.0, 0.0, width, height)


def inside(part, right, down, width, height):
    """Check the coordinates of an element and of all parts of it, which may be moved."""
    if moved := re.fullmatch(r"translate\(([\d.]+) ([\d.]+)\)", part.get("transform", "")):
        right, down = right + float(moved[1]), down + float(moved[2])
    for name in ("x", "x1", "x2", "cx"):
        assert 0 <= float(part.get(name, 0)) + right <= width
    for name in ("y", "y1", "y2", "cy"):
        assert 0 <= float(part.get(name, 0)) + down <= height
    assert float(part.get("x", 0)) + float(part.get("width", 0)) + right <= max(
        width, float(part.get("width", 0))
    )
    for child in part:
        inside(child, right, down, width, height)


@pytest.mark.parametrize("figure", EVERY, ids=lambda one: one.title)
def test_a_drawing_has_no_style_and_its_text_takes_the_colour_of_the_page(figure):
    root = drawn(figure)
    assert root.get("fill") == "currentColor"
    for part in root.iter():
        assert "style" not in part.attrib
        assert not [name for name in part.attrib if name.startswith("on") or "href" in name]
        if part.tag == SVG + "text":
            assert part.get("fill") is None
        for name in ("fill", "stroke"):
            assert part.get(name) in {None, "none", "currentColor", *PALETTE}


@pytest.mark.parametrize("figure", EVERY, ids=lambda one: one.title)
def test_every_figure_has_a_preview_and_a_picture(figure, tmp_path):
    assert figure.text(60).startswith(figure.title)
    figure.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000
    figure.save(tmp_path / "a.svg")
    assert "ffffff" in (tmp_path / "a.svg").read_text()
    assert "<svg" in figure._repr_html_()


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colour", PALETTE)
@pytest.mark.parametrize("paper", ["#ffffff", "#fbfaf7", "#14191b", "#1b2225"])
def test_colours_are_visible_on_light_and_on_dark_paper(colour, paper):
    one, two = sorted((luminance(colour), luminance(paper)))
    assert (two + 0.05) / (one + 0.05) >= 3  # WCAG 2.2, non-text contrast


@given(st.text())
def test_hostile_names_stay_text(name):
    root = drawn(intervals((name, HOSTILE)))
    assert [part.tag for part in root.iter() if "script" in part.tag] == []
    figure = Figure(
        HOSTILE,
        (Chart((ChartSeries("line", (0, 1), (1, 2), label=name),), ChartAxis(name), ChartAxis(HOSTILE)),),
    )
    assert "<script" not in figure.svg()
    assert "\u202e" not in figure.svg() + figure.text()
    assert "\x00" not in figure.text()


def test_a_tag_cannot_come_from_outside():
    with pytest.raises(ValueError, match="letters"):
        SvgElement("g onload=alert(1)")
    with pytest.raises(ValueError, match="letters"):
        element("g", **{"on load": "x"})


def test_a_value_lies_between_its_ends_and_right_of_a_smaller_one():
    root = drawn(intervals())
    dots = [float(c.get("cx")) for c in root.iter(SVG + "circle")]
    assert dots[0] < dots[1]
    lines = [
        one
        for one in root.iter(SVG + "line")
        if one.get("stroke") == PALETTE[0] and one.get("y1") == one.get("y2")
    ]
    for dot, line in zip(dots, lines, strict=True):
        assert float(line.get("x1")) < dot < float(line.get("x2"))


def test_open_ends_and_missing_values_are_drawn_as_what_they_are():
    root = drawn(intervals(("open", "hidden", "none"), (5, None, None), (None, 1, None), (9, 3, None)))
    assert len(list(root.iter(SVG + "circle"))) == 1  # the noise hides the second value: its interval stays
    assert [text.text for text in root.iter(SVG + "text")].count("no value") == 1
    said = intervals(("open", "hidden", "none"), (5, None, None), (None, 1, None), (9, 3, None)).text()
    assert "5 [open, 9]" in said
    assert "[1, 3]" in said
    assert "no value" in said


def test_a_gap_in_a_line_stays_a_gap():
    line = ChartSeries("line", (0, 1, 2, 3), (1, None, 2, 3))
    paths = [p for p in drawn(Figure("gap", (Chart((line,)),))).iter(SVG + "path") if p.get("fill") == "none"]
    assert len(paths) == 2


def test_many_points_over_days_become_a_line_with_a_band():
    assert len(list(drawn(days("joined", 100)).iter(SVG + "circle"))) == 100
    root = drawn(days("joined", 2000))
    assert not list(root.iter(SVG + "circle"))
    assert len(list(root.iter(SVG + "path"))) == 2


def test_a_bar_is_as_long_as_its_value_and_begins_at_its_base():
    series = (ChartSeries("bars", (0, 1), (2, 4)), ChartSeries("bars", (2,), (4,), base=(2.0,)))
    bars = [
        float(r.get("width"))
        for r in drawn(Figure("b", (Chart(series, ChartAxis("", ("a", "b", "c"))),))).iter(SVG + "rect")
    ]
    assert bars[1] == pytest.approx(2 * bars[0], abs=0.02)
    assert bars[2] == pytest.approx(bars[0], abs=0.02)


def test_cells_of_the_same_colour_are_one_rectangle():
    flat = Figure("m", (Matrix(np.ones((3, 50))),))
    assert len(list(drawn(flat).iter(SVG + "rect"))) == 3 + 1


def test_many_cells_are_drawn_as_the_means_of_blocks_with_the_same_frame():
    values = np.random.default_rng(1).random((300, 410))
    for figure in (Figure("m", (Matrix(values),)), Figure("m", (grid(300, 410),))):
        cells = [
            (float(r.get("x")), float(r.get("width")))
            for r in drawn(figure).iter(SVG + "rect")
            if r.get("fill") != "none"
        ]
        assert len(cells) <= 10_000 + 10
        assert max(x + width for x, width in cells) <= 440
    blocks, x, y = _coarser(values, np.arange(411.0), np.arange(301.0))
    assert blocks.shape == (75, 103)
    assert blocks[0, 0] == pytest.approx(values[:4, :4].mean())
    assert blocks[-1, -1] == pytest.approx(values[-4:, -2:].mean())
    assert (x[-1], y[-1], len(x), len(y)) == (410, 300, 104, 76)


def test_figures_of_several_answers_stand_below_each_other():
    both = together((intervals(), days()), "two")
    assert [panel.title.splitlines()[0] for panel in both.panels] == ["n by ward", "days"]
    assert together((days(),)) == days() or together((days(),)).title == "days"
    assert drawn(both)[0].text == "two"
    assert both.picture().axes[1].get_title(loc="left") == "days"


def test_the_words_for_who_cannot_see_it_name_the_ends():
    assert intervals().alt == "bars: 95 %. n by ward, values from -3 to 9."
    assert Figure("m", (Matrix(np.eye(2), ("a", "b"), ("x", "y"), label="edges"),)).alt == (
        "edges in 2 x 2 cells; the largest number is 1 (a, x)."
    )
    assert "the largest number is 5 in b" in Figure("r", (REGIONS,)).alt


def test_only_pictures_need_a_package():
    assert needed_package("a.svg") is None
    assert needed_package("a.pdf") == "matplotlib"


def test_numbers_and_labels():
    assert numbers([1, None, float("nan"), float("inf"), "x", np.float64(2)]) == (
        1.0,
        None,
        None,
        None,
        None,
        2.0,
    )
    assert shortened("abc", 3) == "abc"
    assert len(shortened("a" * 100)) == 24


@pytest.mark.parametrize(("share", "width"), [(0, 0), (0.5, 99.5), (7 / 3, 199), (1, 199)])
def test_a_meter_is_as_long_as_its_share(share, width):
    bar = list(ET.fromstring(str(meter_svg(share, "budget", "half"))).iter(SVG + "rect"))[1]
    assert float(bar.get("width")) == pytest.approx(width, abs=0.01)


@given(st.lists(st.floats(-1e12, 1e12, allow_subnormal=False), min_size=1))
def test_an_axis_covers_its_values_with_few_round_ticks(values):
    scale = number_scale(values, 0, 100)
    ticks = [at for at, _ in scale.ticks]
    assert 1 <= len(ticks) <= 9
    assert all(0 <= scale.at(value) <= 100 for value in values)
    width = scale.high - scale.low
    assert scale.low <= min(values) + 1e-6 * width
    assert scale.high >= max(values) - 1e-6 * width


def test_whole_numbers_have_whole_ticks_and_a_hair_below_zero_needs_no_room():
    assert [words for _, words in number_scale([0, 2], 0, 1).ticks] == ["0", "1", "2"]
    assert [words for _, words in number_scale([0, 2.5], 0, 1).ticks][1] == "0.5"
    assert scale_of(ChartAxis(), [-0.4, 400], 0, 1, zero=True).low == 0
    assert scale_of(ChartAxis(), [-40, 400], 0, 1, zero=True).low < 0
    assert scale_of(ChartAxis(kind="shares"), [0.2, 0.9], 0, 1).ticks[0][1].endswith(" %")


@given(st.lists(st.floats(0, 50_000), min_size=1))
def test_an_axis_of_time_has_few_different_words(moments):
    scale = days_scale(moments, 0, 100)
    words = [text for _, text in scale.ticks]
    assert 1 <= len(words) <= 5
    assert len(set(words)) == len(words)
    assert all(0 <= scale.at(one) <= 100 for one in moments)


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=20))
def test_a_logarithmic_axis_covers_its_values(values):
    scale = scale_of(ChartAxis(kind="logarithmic"), values, 0, 100)
    assert all(0 <= scale.at(value) <= 100 for value in values)
    assert len(scale.ticks) <= 12


def test_words_of_a_cell_may_have_two_lines():
    matrix = Matrix(np.eye(2), ("a", "b"), ("x", "y"), words=(("1\n[0, 2]", ""), ("", "1")))
    figure = Figure("m", (matrix,))
    assert ">[0, 2]<" in figure.svg()
    assert figure.picture().axes[0].texts[0].get_text() == "1\n[0, 2]"


def test_the_limit_has_its_own_colour():
    chart = Chart((ChartSeries("bounds", (0,), (0.7,), label="limit", colour=RED),), ChartAxis("", ("e",)))
    assert PALETTE[RED] in Figure("l", (chart,)).svg()


def test_a_preview_names_days_groups_and_steps_and_has_the_digits_that_its_intervals_support():
    assert "  4 Oct 2024" in days().text()
    assert "00:00" not in days().text()
    assert "-3 [-6, 0]" in intervals().text()
    assert "3.14 [3.04, 3.25]" in intervals(value=(3.14159, 9), low=(3.0416, 6), high=(3.2416, 12)).text()
    degrees = ChartSeries("steps", (-0.5, 0.5, 1.5), (8.0, 6.0))
    cells = ChartSeries("steps", (0.0, 5.0, 10.0), (8.0, 6.0))
    beside = ChartSeries("points", (0.85, 1.85), (8.0, 6.0))
    lines = [Figure("n", (Chart((one,)),)).text().splitlines()[1:] for one in (degrees, cells, beside)]
    assert [[line.split("  ")[1].strip() for line in pair] for pair in lines] == [
        ["0", "1"], ["0 to 5", "5 to 10"], ["1", "2"],
    ]  # fmt: skip


def test_a_preview_of_many_points_keeps_the_largest_and_of_many_days_the_last():
    heights = [0.0] * 60
    heights[37] = 10.0
    points = Figure("p", (Chart((ChartSeries("points", range(60), heights),)),))
    assert "  37 " in points.text()
    assert "of each 3 values, the largest is shown" in points.text()
    assert "23 Nov 2024" in days(count=51).text()


def test_the_picture_of_a_figure_carries_its_words_for_whoever_cannot_see_it():
    assert intervals().picture().get_label() == intervals().alt


def test_steps_around_whole_numbers_have_whole_ticks():
    degrees = ChartSeries("steps", [i - 0.5 for i in range(13)], [1.0] * 12)
    figure = Figure("degrees", (Chart((degrees,), ChartAxis("degree"), ChartAxis("n")),))
    words = [part.text for part in drawn(figure).iter(SVG + "text")]
    assert "2.5" not in words
    assert {"0", "3", "6"} <= set(words)
    [axes] = figure.picture().axes
    assert all(float(at).is_integer() for at in axes.get_xticks())


def test_wide_words_below_narrow_panels_stand_slanted():
    ticks = tuple((float(i), f"{10 * i} to {10 * i + 10}") for i in range(8))
    steps = ChartSeries("steps", [i - 0.5 for i in range(9)], [1.0] * 8)
    panels = (Chart((steps,), ChartAxis(ticks=ticks), title="age"),) * 2
    narrow = Figure("shapes", panels, across=2).picture()
    assert {label.get_rotation() for label in narrow.axes[0].get_xticklabels()} == {45.0}
