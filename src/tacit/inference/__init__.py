"""Inference: what releases say about the population, with noise and sampling together."""

from __future__ import annotations

from tacit.inference._estimate import Estimate

__all__ = ["Estimate"]
