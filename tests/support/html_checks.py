"""What every page of the service keeps: labels, one heading, no inline code, forms that cannot be forged."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

_VOID = {"meta", "link", "input", "img", "br", "hr", "rect", "line", "circle", "path", "polyline"}
_FIELDS = {"input", "select", "textarea"}


class _Reader(HTMLParser):
    """Collects elements with their attributes, their ancestors and their text."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.wrong = [], [], []

    def handle_starttag(self, tag, attrs):
        one = {"tag": tag, "attrs": dict(attrs), "in": list(self.open), "text": ""}
        if len(attrs) != len(dict(attrs)):
            self.wrong.append(f"<{tag}> has an attribute twice")
        self.elements.append(one)
        if tag not in _VOID:
            self.open.append(one)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        while self.open and self.open[-1]["tag"] != tag:
            if self.open[-1]["tag"] not in {"p", "li", "dt", "dd"}:
                self.wrong.append(f"</{tag}> closes <{self.open[-1]['tag']}>")
            self.open.pop()
        if self.open:
            self.open.pop()
        else:
            self.wrong.append(f"</{tag}> closes nothing")

    def handle_data(self, data):
        for one in self.open:
            one["text"] += data


def elements(html: str) -> list[dict]:
    """Return the elements of a page in order."""
    reader = _Reader()
    reader.feed(html)
    return reader.elements


def findings(html: str) -> list[str]:
    """Return what is wrong with a page; an empty list for a good one."""
    reader = _Reader()
    reader.feed(html)
    found, wrong = reader.elements, reader.wrong
    wrong += [f"<{one['tag']}> is never closed" for one in reader.open]
    ids = [one["attrs"]["id"] for one in found if "id" in one["attrs"]]
    wrong += [f"the id {one} is there twice" for one in {one for one in ids if ids.count(one) > 1}]
    labelled = {one["attrs"].get("for") for one in found if one["tag"] == "label" and one["text"].strip()}
    for one in found:
        wrong += _element_findings(one, labelled, set(ids))
    headings = [int(one["tag"][1]) for one in found if re.fullmatch("h[1-6]", one["tag"])]
    if headings.count(1) != 1:
        wrong.append(f"the page has {headings.count(1)} headings h1")
    wrong += [f"h{b} follows h{a}" for a, b in pairwise(headings) if b > a + 1]
    titles = [one["text"] for one in found if one["tag"] == "title"]
    if not titles or not titles[0].strip():
        wrong.append("the page has no title")
    return wrong


def _element_findings(one, labelled, ids):
    tag, attrs = one["tag"], one["attrs"]
    wrong = [f"<{tag}> has {name}" for name in attrs if name == "style" or name.startswith(("on", "hx-on"))]
    if tag == "style" or (tag == "script" and ("src" not in attrs or one["text"].strip())):
        wrong.append(f"<{tag}> is inline")
    if "[" in attrs.get("hx-trigger", "") or attrs.get("href", "").lower().startswith("javascript:"):
        wrong.append(f"<{tag}> needs a script that the page may not run")
    if tag in _FIELDS and attrs.get("type") not in {"hidden", "submit"} and attrs.get("id") not in labelled:
        wrong.append(f"the field {attrs.get('name')} has no label")
    for name in ("aria-describedby", "aria-labelledby", "for"):
        wrong += [
            f"{name} names {i}, which is not there" for i in attrs.get(name, "").split() if i not in ids
        ]
    if tag == "img" and "alt" not in attrs:
        wrong.append("an image has no alt")
    if tag in {"a", "button"} and not (one["text"].strip() or attrs.get("aria-label")):
        wrong.append(f"<{tag}> has no words")
    if tag == "th" and "scope" not in attrs:
        wrong.append("a heading of a table has no scope")
    return wrong


def check_forms(html: str) -> list[str]:
    """Return the forms that post without the field that ties them to the session."""
    found = elements(html)
    held = [one["in"] for one in found if one["tag"] == "input" and one["attrs"].get("name") == "csrf"]
    return [
        one["attrs"].get("action", "")
        for one in found
        if one["tag"] == "form" and one["attrs"].get("method") == "post"
        if not any(one in around for around in held)
    ]
