"""The ranking secret of mechanisms: it ranks a unit's rows where there are more than the limit allows."""

from __future__ import annotations

from tacit import noise

_BITS = 62


def ranking_secret() -> int:
    """Draw a fresh uniform secret of 62 bits, for ranking the rows of one unit by a keyed hash.

    A dataset keeps at most c rows of a unit. Which ones may be chosen by any rule that looks at the rows of
    this unit alone: the sensitivity holds for every rule and every value of the secret, so the secret is no
    noise and spends no budget. It is random so that nobody who writes rows can arrange which of them are
    kept, and it never leaves the process. Whoever knew it would learn which rows were dropped before the
    noise, and nothing about the rows that remain.

    Examples
    --------
    >>> 0 <= ranking_secret() < 2**62
    True
    """
    return int(noise.uniform_below(2**_BITS))
