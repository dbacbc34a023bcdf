"""Every kind of release answers figures, and each of them is drawn as SVG, as text and by matplotlib."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from functools import cache

import pytest

import tacit as tc
from support.kinds_of_contents import MADE, WITHOUT_FIGURE, answer, certificate
from tacit.core import AnswerBatch, AnswerTable, BatchAnswer, Cells, Content, Release
from tacit.core._registry import _built_in
from tacit.service._rendering import chart_of, kind_words, lines_of, value_tables

SVG = "{http://www.w3.org/2000/svg}"
MARKS = {SVG + one for one in ("circle", "path", "rect", "polyline")}


@cache
def release(kind: str) -> Release[Content]:
    return Release(MADE[kind](), certificate())


def test_every_registered_kind_is_made_here_or_says_why_it_has_nothing_to_show():
    registered = {name.removeprefix("content.") for name in _built_in() if name.startswith("content.")}
    assert {*MADE, *WITHOUT_FIGURE} == {*registered, "answer-table", "batch"}
    assert not set(MADE) & set(WITHOUT_FIGURE)


@pytest.mark.parametrize("kind", MADE)
def test_each_figure_is_drawn_as_svg_with_words_and_marks_inside_the_frame(kind):
    figures = release(kind).figures()
    assert figures
    for figure in figures:
        assert figure.title.startswith("visits")
        assert "epsilon 0.5" in figure.title
        for file in (False, True):
            root = ET.fromstring(figure.svg(file=file))
            assert root[0].text == figure.title
            assert root[1].text == figure.alt != ""
            width, height = (float(one) for one in root.get("viewBox").split()[2:])
            assert width <= 440
            assert height <= 4000
            assert any(part.tag in MARKS for part in root.iter())
            drawn = {part.tag.removeprefix(SVG) for part in root.iter()}
            assert not drawn & {"style", "script", "foreignObject", "image", "a", "use"}


@pytest.mark.parametrize("kind", MADE)
def test_each_figure_has_a_preview_for_a_terminal(kind):
    for figure in release(kind).figures():
        lines = figure.text(80).splitlines()
        assert lines[0] == figure.title
        assert len(lines) > 1 + len(figure.words)
        assert all("\x1b" not in line for line in lines)


@pytest.mark.parametrize("kind", MADE)
def test_each_figure_is_a_picture_of_matplotlib(kind, tmp_path):
    for number, figure in enumerate(release(kind).figures()):
        figure.save(tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")
    assert release(kind).plot().axes


@pytest.mark.parametrize("kind", MADE)
def test_a_figure_is_found_by_its_name_and_an_unknown_name_is_refused(kind):
    content = release(kind).content
    for figure in content.figures():
        if figure.name and not isinstance(content, AnswerBatch):
            assert content.figures(figure.name)[0].alt == figure.alt


@pytest.mark.parametrize("kind", MADE)
def test_the_service_draws_each_kind_and_lists_its_tables(kind):
    document = release(kind).to_json()
    chart = chart_of(document)
    assert chart is not None
    assert chart.file().startswith("<?xml")
    assert kind_words(kind)
    tables = list(release(kind).content.answer_tables())
    assert len(value_tables(document)) == len(tables)
    assert (lines_of(document) is None) == (not tables)


@pytest.mark.parametrize("kind", ["answer-table", "ordered-counts", "series", "gwas-summary-statistics"])
def test_an_unknown_picture_is_refused_with_the_known_ones(kind):
    with pytest.raises(tc.TacitError) as refused:
        release(kind).plot("pie")
    assert refused.value.code == "unknown-column"
    assert release(kind).figures()[0].name in str(refused.value.fix)


def test_groups_whose_long_names_begin_alike_stay_apart():
    names = tuple(f"a group with a long name, number {i}" for i in range(70))
    [figure] = answer(70, names=names).figures()
    assert figure.svg().count("<circle") == 60
    assert figure.words == ("bars: 95 % interval for the noise only; first 60 of 70 groups",)
    [axes] = figure.picture().axes
    assert len({label.get_text() for label in axes.get_xticklabels()}) == 60


def test_a_missing_group_does_not_hide_that_the_others_have_intervals():
    cells = Cells((None, 2.0, None), (-9.0, 1.0, None), (30.0, 3.0, None))
    [figure] = AnswerTable({"ward": ("a", "b", "c")}, {"m": cells}, 0.9).figures()
    assert figure.words == ("bars: 90 % interval for the noise only",)
    assert figure.svg().count("<circle") == 1


def test_a_batch_draws_each_answer_below_the_other_or_one_by_its_name():
    both = Release(AnswerBatch((BatchAnswer("a", answer()), BatchAnswer("b", answer(3)))), certificate())
    [figure] = both.figures()
    assert [panel.title.split(":")[0] for panel in figure.panels] == ["a", "b"]
    assert both.figures("b")[0].alt == answer(3).figures()[0].alt


@pytest.mark.parametrize("kind", MADE)
def test_each_figure_of_a_release_has_a_title_of_its_own(kind):
    titles = [figure.title for figure in release(kind).figures()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("kind", ["alarm", "client-model", "federated-model", "fitted-numbers", "regression"])
def test_numbers_that_are_no_picks_do_not_claim_that_close_values_hide_their_interval(kind):
    page = release(kind).report().html()
    assert "how close together" not in page
    assert "no interval" in page
