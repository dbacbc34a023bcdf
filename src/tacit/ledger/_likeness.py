"""Names that look alike: what people see of a name, so that two accounts can be told apart."""

from __future__ import annotations

import re
import unicodedata

# Printable by their category and yet without ink: fillers, joiners, variation selectors, blank signs.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)


def appearance(name: str) -> str:
    """Return what is left of a name without case, encoding and invisible characters.

    Two names of the same appearance look alike: ``Visits`` and ``visits``, an e-acute in one character and
    in two, ``ward`` in full-width letters. Letters of different scripts that look alike (the Latin and the
    Cyrillic a) stay different.

    Examples
    --------
    >>> appearance("Visits") == appearance("visits")
    True
    >>> appearance("visits 1") == appearance("visits 2")
    False
    """
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
    seen = "".join(sign for sign in _INVISIBLE.sub("", folded) if unicodedata.category(sign) != "Cf")
    return unicodedata.normalize("NFKC", " ".join(seen.split()))
