"""Genomes: allele frequencies and association tests that protect each person in a cohort."""

from __future__ import annotations

from tacit.genomes._blocks import GenotypeBlock, GenotypeSource
from tacit.genomes._cohort import Cohort
from tacit.genomes._declaration import genotypes
from tacit.genomes._sites import SiteList

__all__ = ["Cohort", "GenotypeBlock", "GenotypeSource", "SiteList", "genotypes"]
