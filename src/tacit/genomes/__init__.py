"""Genomes: allele frequencies and association tests that protect each person in a cohort."""

from __future__ import annotations

__all__: list[str] = []
