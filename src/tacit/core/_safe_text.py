"""The core's texts that people wrote into the data: made safe for a spreadsheet (`tacit.show`: for a screen).

What a person or a spreadsheet opens is changed: the printed table, the notebook, the picture, the CSV file.
What a program reads is not: ``to_dict``, ``to_pandas``, ``to_polars``, ``to_arrow``, ``to_parquet``, JSON.
"""

from __future__ import annotations

_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


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
