"""Example tables to try things on: synthetic, so that nobody needs protection while learning."""

from __future__ import annotations

from pathlib import Path

EXAMPLE_HOSPITALS = ("Ahorn", "Birke", "Buche", "Eiche", "Erle", "Fichte", "Linde", "Ulme")


def example_visits() -> Path:
    """Return the file of synthetic hospital visits: 12,700 visits of 6,000 patients who do not exist.

    Columns: patient_id, hospital, icd, age, length_of_stay (a tenth is missing), admitted. Made by
    ``scripts/make_visits.py``.

    Examples
    --------
    >>> example_visits().name
    'visits.parquet'
    """
    return Path(__file__).parent / "data" / "visits.parquet"
