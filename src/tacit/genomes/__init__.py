"""Genomes: allele frequencies and association tests that protect each person in a cohort.

Modules, in reading order:

_declaration         the function ``tc.genotypes``, and an invented cohort
_cohort              the dataset and its questions
_sites               the public list of variants
_genotypes           genotypes in blocks, and in arrays
_sources             PLINK, VCF, BCF and Zarr
_cohort_draft        what questions about a cohort share
_sums                clipped sums over people, and products of variants
_frequencies         allele frequencies, and their table
_quality_control     Hardy-Weinberg equilibrium, and missing calls
_components          principal components
_association         the SNPs nearest to significance
_summary_statistics  tests of all SNPs from randomised phenotypes
_summary_output      GWAS-SSF files, and figures
"""

from __future__ import annotations

from tacit.calls import refuse_wrong_calls
from tacit.genomes._association import AssociationTest
from tacit.genomes._cohort import COHORT, Cohort
from tacit.genomes._components import PrincipalComponents
from tacit.genomes._declaration import example_cohort, genotypes
from tacit.genomes._frequencies import AlleleFrequencies
from tacit.genomes._genotypes import GenotypeBlock, GenotypeSource
from tacit.genomes._sites import SiteList
from tacit.genomes._summary_output import read_gwas_ssf
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
