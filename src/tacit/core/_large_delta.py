"""The core's warning about a large delta: the promise may fail completely with that probability."""

from __future__ import annotations

#: Without a public size of the data, a delta above this is warned of.
_MOST = 1e-3


def warn_of_delta(delta: float, size: int | None = None) -> str:
    """Say that a delta is too large, for a public size of the data if there is one; else return no text.

    A delta of 1/n lets somebody pick one of n people at random and publish their record.

    Examples
    --------
    >>> warn_of_delta(1e-6), warn_of_delta(1e-6, size=1000)
    ('', '')
    >>> warn_of_delta(0.01).partition(";")[0]
    'warning: delta 0.01 is above 0.001'
    >>> warn_of_delta(1e-3, size=50_000).partition(";")[0]
    'warning: delta 0.001 is above 1 / 50,000'
    """
    most = _MOST if size is None else 1 / size
    if delta <= most:
        return ""
    above = f"{most:g}" if size is None else f"1 / {size:,}"
    safe = 1e-6 if size is None else 1 / (100 * size)
    return (
        f"warning: delta {delta:g} is above {above}; the promise may fail completely with this probability; "
        f"choose {safe:.0e} or less"
    )
