"""The blocks of code in README and docs, as tests run them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FENCE", "blocks"]

FENCE = re.compile(r"(?ms)^(?P<fence>```+|:::+)(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)\s*$")


def blocks(
    page: Path, kinds: frozenset[str] = frozenset({"python", "{code-cell}", "console"})
) -> list[tuple[int, str, str]]:
    """(line, kind, text) of every Python and console block, without MyST options (`:tags:` ...)."""
    text = page.read_text()
    found = []
    for match in FENCE.finditer(text):
        kind = match["info"].strip().split()[0] if match["info"].strip() else ""
        if kind in kinds:
            body = re.sub(r"\A(---\n.*?---\n|(:[^\n]*\n)+)", "", match["body"], flags=re.DOTALL)
            found.append((text[: match.start()].count("\n") + 2, kind, body))
    return found
