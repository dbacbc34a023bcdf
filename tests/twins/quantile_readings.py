"""Readings of quantiles that end at candidates, as if the engine had not moved the values there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.tables.reading._quantile_readings import BracketedQuantile, QuantileFromCounts

__all__ = ["twin_of"]


def at_candidates(noise, bounds):
    """Return the candidates as both ends of their cells."""
    del bounds
    values = np.array([float(value) for value in noise.statistic.bins.values])
    return values, values


@dataclass(frozen=True, slots=True)
class CountsAtCandidates(QuantileFromCounts):
    """Counts whose interval ends at candidates."""

    ends = staticmethod(at_candidates)


@dataclass(frozen=True, slots=True)
class PicksAtCandidates(BracketedQuantile):
    """Two picks that are taken for the quantile's bounds themselves."""

    ends = staticmethod(at_candidates)


def twin_of(reading):
    """Return the same reading with an interval that ends at candidates."""
    made = CountsAtCandidates if isinstance(reading, QuantileFromCounts) else PicksAtCandidates
    return made(reading.level, reading.bounds)
