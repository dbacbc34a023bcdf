"""Which file a name stands for: the system's own number of a file, which a new file of that name lacks."""

from __future__ import annotations

import os


def identity_of(file: str | int) -> tuple[int, int] | None:
    """Return the numbers of a file's device and of the file on it, or None if there is no such file.

    Examples
    --------
    >>> identity_of(".") == identity_of(".")
    True
    >>> identity_of("nothing has this name") is None
    True
    """
    try:
        status = os.stat(file)  # noqa: PTH116 - once for each transaction
    except OSError:
        return None
    return status.st_dev, status.st_ino
