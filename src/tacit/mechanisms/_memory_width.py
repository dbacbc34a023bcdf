"""The memory of a mechanism as bytes whose length shows nothing: whoever stores it sees how long it is."""

from __future__ import annotations

import json
import re

#: Digits and sign of a number up to 10^47; sums of private numbers stay far below.
_WIDTH = 48
_NUMBER = re.compile(r"-?\d+")


def fixed_width(memory: object) -> bytes:
    """Write integers as JSON whose length follows from how many there are, not from what they are.

    Guarantee: two memories of the same shape have the same length, if no number has more than 48 characters.
    Blanks at the end make up the difference, which JSON allows; so what was written without them is read too.

    Examples
    --------
    >>> len(fixed_width({"past": [[9, 0]]})) == len(fixed_width({"past": [[10, -70000]]}))
    True
    """
    text = json.dumps(memory)
    numbers, rest = len(_NUMBER.findall(text)), len(_NUMBER.sub("", text))
    return text.ljust(rest + _WIDTH * numbers).encode()
