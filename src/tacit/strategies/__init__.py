"""Strategies: what to measure so that many questions are answered best. Public numbers only; no data."""

from tacit.strategies._dial import dial_coefficients, inverse_series, window_series

__all__ = ["dial_coefficients", "inverse_series", "window_series"]
