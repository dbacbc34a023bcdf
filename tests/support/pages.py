"""The blocks of code in README and docs, as tests run them and as the documentation is built from them.

A comment ``<!-- check`` ... ``-->`` holds lines of Python that readers do not see: tests run them where they
stand, after the blocks before them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FENCE", "Block", "blocks", "blocks_of"]

FENCE = re.compile(r"(?ms)^(?P<fence>```+|:::+)(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)\s*$")
_CHECK = r"^<!-- check\n(?P<check>.*?)^-->\s*$"
_EITHER = re.compile(f"(?ms){_CHECK}|{FENCE.pattern.removeprefix('(?ms)')}")
_RUN = frozenset({"python", "console", "check"})


class Block(NamedTuple):
    """A block of a page: the line of its first line, its kind, its text, and where it stands in the page."""

    line: int
    kind: str
    body: str
    start: int
    end: int


def blocks_of(text: str, kinds: frozenset[str] = _RUN) -> list[Block]:
    """Return the Python and console blocks and the hidden checks of a page, without MyST options."""
    found = []
    for match in _EITHER.finditer(text):
        info = (match["info"] or "").split()
        kind = "check" if match["check"] is not None else info[0] if info else ""
        if kind in kinds:
            body = match["check"] if kind == "check" else match["body"]
            body = re.sub(r"\A(---\n.*?---\n|(:[^\n]*\n)+)", "", body, flags=re.DOTALL)
            line = text[: match.start()].count("\n") + 2
            found.append(Block(line, kind, body, match.start(), match.end()))
    return found


def blocks(page: Path, kinds: frozenset[str] = _RUN) -> list[tuple[int, str, str]]:
    """Return (line, kind, text) of every Python and console block and every hidden check of a page."""
    return [block[:3] for block in blocks_of(page.read_text(), kinds)]
