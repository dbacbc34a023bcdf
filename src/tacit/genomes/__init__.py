"""Genomes: allele frequencies and association tests that protect each person in a cohort."""

from __future__ import annotations

from tacit.genomes._blocks import GenotypeBlock, GenotypeSource
from tacit.genomes._cohort import Cohort
from tacit.genomes._declaration import genotypes
from tacit.genomes._example import example_cohort
from tacit.genomes._frequency_table import AlleleFrequencies
from tacit.genomes._sites import SiteList

__all__ = [
    "AlleleFrequencies",
    "Cohort",
    "GenotypeBlock",
    "GenotypeSource",
    "SiteList",
    "example_cohort",
    "genotypes",
]
