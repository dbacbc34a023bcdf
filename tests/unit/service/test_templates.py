"""The templates: they compile, hold no inline code, escape everything, and label every field."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from jinja2 import UndefinedError, nodes

import tacit.service
from support.html_checks import check_forms, elements, findings
from tacit.service._operations import Caller
from tacit.service._rendering import environment

HOME = Path(tacit.service.__file__).parent
TEMPLATES = sorted(str(path.relative_to(HOME / "templates")) for path in HOME.glob("templates/**/*.html"))
HOSTILE = "\"><script>alert(1)</script><b onclick='x' \u2028 {{ 7 * 7 }}"
CALL = SimpleNamespace(
    caller=Caller("u_1", HOSTILE, {"": frozenset({"analyst", "admin"})}),
    csrf="form-token",
    service=SimpleNamespace(ledger=SimpleNamespace(refusal=None, sealed=False)),
    request=SimpleNamespace(url=SimpleNamespace(path="/datasets/visits")),
)


def written(body, doc=None, call=CALL):
    text = '{% extends "base.html" %}{% import "macros.html" as ui with context %}'
    text += "{% block heading %}Page{% endblock %}{% block content %}" + body + "{% endblock %}"
    return environment().from_string(text).render(doc=doc or {}, call=call, service_name="Tacit")


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_compiles_and_has_no_inline_code(name):
    source = (HOME / "templates" / name).read_text(encoding="utf-8")
    environment().get_template(name)
    source = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "", source, flags=re.DOTALL)
    assert not re.search(r"\sstyle\s*=|<style|\son[a-z]+\s*=|hx-on|javascript:|js:", source)
    assert re.findall(r"<script(?![^>]*\ssrc=\"/static/)", source) == []
    assert not re.search(r"hx-trigger=\"[^\"]*\[", source)
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", source)


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_template_turns_escaping_off(name):
    source = (HOME / "templates" / name).read_text(encoding="utf-8")
    tree = environment().parse(source)
    assert [one.name for one in tree.find_all(nodes.Filter) if one.name in {"safe", "tojson"}] == []
    assert list(tree.find_all(nodes.ScopedEvalContextModifier)) == []
    assert "Markup" not in source


@pytest.mark.parametrize("name", [n for n in TEMPLATES if n not in {"base.html", "macros.html"}])
def test_a_page_has_the_frame_or_is_a_part_of_a_page(name):
    source = (HOME / "templates" / name).read_text(encoding="utf-8")
    part = Path(name).name.startswith("_") or "{% macro " in source
    assert '{% extends "base.html" %}' in source or part
    if "macros.html" in source:
        assert 'import "macros.html" as ui with context' in source


def test_a_missing_name_is_an_error():
    with pytest.raises(UndefinedError):
        written("{{ doc.nothing }}")


FIELDS = (
    '{{ ui.text("a", doc.t, doc.t, doc.t, doc.t) }}{{ ui.number("b", doc.t, doc.t, optional=true) }}'
    '{{ ui.textarea("c", doc.t, doc.t, hint=doc.t, code=true) }}'
    '{{ ui.select("d", doc.t, [(doc.t, doc.t), "x"], doc.t, error=doc.t) }}'
    '{{ ui.checkbox("e", doc.t, hint=doc.t, error=doc.t) }}{{ ui.password("f", doc.t) }}'
    '{{ ui.choices("g", doc.t, [(doc.t, doc.t), ("y", doc.t, doc.t)], doc.t, doc.t, doc.t) }}'
    '{{ ui.day("h", doc.t, doc.t) }}{{ ui.hidden("i", doc.t) }}{{ ui.button(doc.t, name="j", value=doc.t) }}'
)
PARTS = (
    "{{ ui.notice(doc.t) }}{{ ui.notice(doc.t, 'warn', doc.t) }}{{ ui.facts([(doc.t, doc.t)]) }}"
    "{{ ui.problem({'title': doc.t, 'detail': doc.t + 'x', 'why': doc.t, 'code': doc.t, 'request': doc.t,"
    " 'fix': {'text': doc.t, 'paste': doc.t, 'href': '/x', 'link': doc.t}}) }}"
    "{{ ui.table(doc.t, [doc.t, doc.t], [[doc.t, ui.link('/x', doc.t)]], [1]) }}{{ ui.pager(doc.t) }}"
    "{{ ui.badge(doc.t, 'good') }}{{ ui.code(doc.t, doc.t) }}{{ ui.time('2026-01-02T03:04:05Z') }}"
    "{{ ui.trail([('/x', doc.t)]) }}{{ ui.steps([(doc.t, doc.t)]) }}"
    "{{ ui.cards([{'href': '/x', 'title': doc.t, 'about': doc.t}], 'h2') }}"
    "{{ ui.waiting(doc.t, '/x') }}{{ ui.budget('1/2', 3, doc.t, doc.t) }}"
    "{{ ui.chart(charts.answer(doc.release), '/x.svg') }}{{ ui.changes([(doc.t, doc.t, doc.t)], doc.t) }}"
    "{{ ui.tree({'title': doc.t, 'spent': 1, 'budget': '3/2', 'note': doc.t, 'children': ["
    "{'title': doc.t, 'href': '/x', 'spent': 0, 'budget': 1, 'unit': doc.t}]}) }}"
)
RELEASE = {
    "keys": {HOSTILE: [HOSTILE]}, "columns": {HOSTILE: {"value": [1], "low": [0], "high": [2]}},
    "confidence": 0.95, "notes": {HOSTILE: HOSTILE}, "left_out": [HOSTILE], "counts": [],
}  # fmt: skip


@pytest.mark.parametrize("body", [FIELDS, PARTS])
def test_hostile_text_stays_text_in_every_macro(body):
    form = '{% call ui.form("/x", hx={"post": "/y", "target": "#z"}) %}' + body + "{% endcall %}"
    html = written(form, {"t": HOSTILE, "release": RELEASE})
    assert findings(html) == []
    assert html.count("<script") == 1
    assert "{{ 7 * 7 }}" in html
    assert "49" not in re.findall(r"<b onclick='x' \u2028 (\S+)", html)
    assert not [one for one in elements(html) if one["tag"] == "b"]


def test_an_account_is_drawn_with_those_below_it():
    below = {"title": "Ada", "spent": "1/2", "budget": 1}
    html = written("{{ ui.tree(doc) }}", {"title": "visits", "spent": 1, "budget": 3, "children": [below]})
    assert findings(html) == []
    assert html.index("1 of 3 epsilon spent, 2 left") < html.index("0.5 of 1 epsilon spent, 0.5 left")
    inner = next(one for one in elements(html) if one["tag"] == "strong" and one["text"] == "Ada")
    assert [one["tag"] for one in inner["in"]].count("ul") == 2


def test_changes_show_before_and_after():
    html = written("{{ ui.changes([('bounds of age', '0 to 100', '0 to 120'), ('keys', '', 'A')]) }}")
    marks = {one["tag"]: one["text"] for one in elements(html) if one["tag"] in {"ins", "del"}}
    assert marks == {"del": "0 to 100", "ins": "A"}
    assert "nothing" in html


def test_a_form_holds_the_token_of_its_session_and_a_search_does_not():
    html = written('{% call ui.form("/x") %}{% endcall %}{% call ui.form("/y", "get") %}{% endcall %}')
    assert check_forms(html) == []
    tokens = [one for one in elements(html) if one["attrs"].get("name") == "csrf"]
    assert [one["attrs"]["value"] for one in tokens] == ["form-token"] * 2  # sign out, and the form
    assert all(around["attrs"].get("action") != "/y" for one in tokens for around in one["in"])


def test_a_wrong_page_would_be_found():
    assert findings('<title>t</title><h1>a</h1><input name="x">') == ["the field x has no label"]
    assert findings("<title>t</title><h1>a</h1><h3>b</h3>") == ["h3 follows h1"]
    assert findings('<title>t</title><h1 style="x">a</h1>') == ["<h1> has style"]
    assert findings("<title>t</title><h1>a</h1><div>") == ["<div> is never closed"]
    assert check_forms('<form method="post" action="/x"></form>') == ["/x"]


def test_the_navigation_follows_the_roles():
    def places(*roles, dataset=""):
        caller = Caller("u_1", "A", {dataset: frozenset(roles)})
        call = SimpleNamespace(**{**vars(CALL), "caller": caller})
        html = written("", call=call)
        return {
            one["text"]
            for one in elements(html)
            if one["tag"] == "a" and "nav" in [i["tag"] for i in one["in"]]
        }

    assert places("auditor") == {
        "Datasets",
        "Questions",
        "Ledger",
        "Audit events",
        "Tokens",
        "Published",
        "Learn",
    }
    assert places("admin") == {"Datasets", "People", "Audit events", "Tokens", "Published", "Learn"}
    assert "Requests" in places("curator")
    assert "Audit events" not in places("auditor", dataset="visits")  # they need the role everywhere


def test_the_page_where_one_is_is_marked():
    html = written("")
    marked = [one["text"] for one in elements(html) if "aria-current" in one["attrs"]]
    assert marked == ["Datasets"]


def test_nobody_is_offered_to_sign_out_before_signing_in():
    html = written("", call=SimpleNamespace(**{**vars(CALL), "caller": None}))
    assert "Sign out" not in html
    assert "Sign in" in html


def test_htmx_is_the_file_that_the_licences_name():
    licences = (HOME / "static" / "LICENSES.txt").read_text(encoding="utf-8")
    digest = hashlib.sha256((HOME / "static" / "htmx.min.js").read_bytes()).hexdigest()
    assert f"sha256 {digest}" in licences
    assert "Zero-Clause BSD" in licences


def test_the_stylesheet_is_small_and_loads_nothing():
    sheet = (HOME / "static" / "tacit.css").read_text(encoding="utf-8")
    assert len(sheet.encode()) < 14_000
    assert "url(" not in sheet
    assert "@import" not in sheet
    assert sheet.count("{") == sheet.count("}")


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_colours_have_enough_contrast_in_light_and_dark():
    sheet = (HOME / "static" / "tacit.css").read_text(encoding="utf-8")
    themes = re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)
    assert len(themes) == 2
    for theme in themes:
        colour = {
            name: value if len(value) == 7 else "#" + "".join(2 * c for c in value[1:])
            for name, value in re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6});", theme)
        }
        grounds = ("paper", "raised", "sunken", "accent-wash", "good-wash", "warn-wash", "bad-wash")
        for ground in grounds:
            assert contrast(colour["ink"], colour[ground]) >= 7
            assert contrast(colour["soft"], colour[ground]) >= 4.5
            assert contrast(colour["accent"], colour[ground]) >= 4.5
        for kind in ("good", "warn", "bad"):
            assert contrast(colour[kind], colour[f"{kind}-wash"]) >= 4.5
            assert contrast(colour[kind], colour["sunken"]) >= 4.5
            assert contrast(colour[kind], colour["raised"]) >= 4.5
        assert contrast(colour["accent"], colour["accent-ink"]) >= 4.5
        for ground in ("paper", "raised"):
            assert contrast(colour["edge"], colour[ground]) >= 3
