"""The core's texts that people wrote into the data: made safe for a screen and for a spreadsheet.

What a person or a spreadsheet opens is changed: the printed table, the notebook, the picture, the CSV file.
What a program reads is not: ``to_dict``, ``to_pandas``, ``to_polars``, ``to_arrow``, ``to_parquet``, JSON.
"""

from __future__ import annotations

import unicodedata

_JOINERS = "\u200c\u200d"  # several scripts and emoji need them; they move nothing
_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


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


def for_spreadsheet(value: object) -> object:
    """Return text that a spreadsheet shows and does not compute: an apostrophe stands before a formula.

    Numbers stay, also negative ones.

    Examples
    --------
    >>> for_spreadsheet("=1+1"), for_spreadsheet("ICU"), for_spreadsheet(-1)
    ("'=1+1", 'ICU', -1)
    """
    if not isinstance(value, str):
        return value
    begins = value.startswith(_STARTS) or value.lstrip().startswith(_STARTS)
    return f"'{value}" if begins else value
