"""Genomes: allele frequencies and association tests that protect each person in a cohort."""

from __future__ import annotations

from tacit.calls import refuse_wrong_calls
from tacit.genomes._blocks import GenotypeBlock, GenotypeSource
from tacit.genomes._cohort import Cohort
from tacit.genomes._component_table import PrincipalComponents
from tacit.genomes._declaration import genotypes
from tacit.genomes._distances import AssociationTest
from tacit.genomes._example import example_cohort
from tacit.genomes._frequency_table import AlleleFrequencies
from tacit.genomes._gwas_files import read_gwas_ssf
from tacit.genomes._questions import COHORT
from tacit.genomes._sites import SiteList
from tacit.genomes._summary_statistics import SummaryStatistics

__all__ = [
    "COHORT",
    "AlleleFrequencies",
    "AssociationTest",
    "Cohort",
    "GenotypeBlock",
    "GenotypeSource",
    "PrincipalComponents",
    "SiteList",
    "SummaryStatistics",
    "example_cohort",
    "genotypes",
    "read_gwas_ssf",
]

refuse_wrong_calls(__name__, __all__)
