"""A small builder of SVG: elements are values, and every text and attribute is escaped when written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
#: What XML does not allow, not even escaped: control characters, lone surrogates, two non-characters.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9:-]*")


@dataclass(frozen=True, slots=True)
class SvgElement:
    """An element with its attributes and its children: other elements, or plain text.

    Guarantee: what is written contains no markup but the tags and attributes that code named. Text stays
    text, whatever it holds.

    Examples
    --------
    >>> str(element("text", "<script>", x=1, text_anchor="end"))
    '<text x="1" text-anchor="end">&lt;script&gt;</text>'
    """

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()
    children: tuple[SvgElement | str, ...] = ()

    def __post_init__(self) -> None:
        for name in (self.tag, *(name for name, _ in self.attributes)):
            if not _NAME.fullmatch(name):
                raise ValueError("a tag or an attribute of SVG has letters, digits, hyphens and colons")

    def __str__(self) -> str:
        return "".join(self._parts())

    def __html__(self) -> str:
        """Let a template write the element as it is: it escapes by itself."""
        return str(self)

    def _parts(self) -> Iterator[str]:
        written = "".join(f' {name}="{_escaped(value)}"' for name, value in self.attributes)
        if not self.children:
            yield f"<{self.tag}{written}/>"
            return
        yield f"<{self.tag}{written}>"
        for child in self.children:
            if isinstance(child, SvgElement):
                yield from child._parts()  # noqa: SLF001 - the same class
            else:
                yield _escaped(child)
        yield f"</{self.tag}>"


def element(tag: str, *children: SvgElement | str, **attributes: object) -> SvgElement:
    """Return an element; ``text_anchor=`` becomes ``text-anchor``, ``class_=`` becomes ``class``.

    Attributes that are None are not written; numbers are written with at most two decimals.
    """
    pairs = (
        (name.rstrip("_").replace("_", "-"), _value(value))
        for name, value in attributes.items()
        if value is not None
    )
    return SvgElement(tag, tuple((("viewBox" if n == "viewbox" else n), v) for n, v in pairs), children)


def number(value: float) -> str:
    """Write a coordinate with at most two decimals.

    Examples
    --------
    >>> number(3.0), number(0.1234), number(-0.0001)
    ('3', '0.12', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


def _escaped(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text).translate(_ESCAPES)
