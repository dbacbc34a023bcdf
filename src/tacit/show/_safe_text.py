"""Texts that people wrote into the data, made safe for a screen."""

from __future__ import annotations

import unicodedata

_JOINERS = "\u200c\u200d"  # several scripts and emoji need them; they move nothing


def visible(text: str) -> str:
    r"""Show what others wrote, without letting it move the cursor, colour the screen or turn text around.

    Control characters are written out, and so are line breaks, marks of direction and halves of surrogate
    pairs; spaces of every width stay.

    Examples
    --------
    >>> visible("ward\x1b[2J\n")
    'ward\\x1b[2J\\n'
    """
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(char: str) -> str:
    if char.isprintable() or char in _JOINERS or unicodedata.category(char) == "Zs":
        return char
    return char.encode("unicode_escape").decode()
