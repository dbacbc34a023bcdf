"""Sources of genotypes by what they are: files of PLINK, VCF and BCF, Zarr, and arrays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import needs
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Say
from tacit.genomes._arrays import ArrayGenotypes
from tacit.genomes._plink import PlinkGenotypes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.genomes._blocks import GenotypeSource
    from tacit.genomes._sites import SiteList

_ENDINGS = {".bed": "bed", ".vcf": "vcf", ".vcf.gz": "vcf", ".vcf.bgz": "vcf", ".bcf": "vcf", ".zarr": "zarr"}


def open_genotypes(source: Any, sites: SiteList | None) -> GenotypeSource:
    """Open a source; this reads its header and its site list, and nothing about any person.

    Parameters
    ----------
    source
        The path of a bed, VCF, BCF or Zarr, or an array of people x variants.
    sites
        The declared variants; by default those of the source.
    """
    if not isinstance(source, str | os.PathLike):
        return _open_array(source, sites)
    path = os.fspath(source)
    kind = next((kind for ending, kind in _ENDINGS.items() if path.rstrip("/").endswith(ending)), "")
    match kind:
        case "bed":
            return PlinkGenotypes(path, sites)
        case "vcf":
            needs("a VCF or BCF file", "cyvcf2", "tacit[genomes]")
            from tacit.genomes._vcf import VcfGenotypes

            return VcfGenotypes(path, sites)
        case "zarr":
            needs("a Zarr store", "zarr", "tacit[genomes]")
            from tacit.genomes._zarr import open_zarr

            return open_zarr(path, sites)
    raise TacitError(
        "bad-genotypes",
        f"the kind of {Path(path).name!r} is not known",
        why="the end of the name shows how to read a file",
        fix=Say("give a file whose name ends with .bed, .vcf, .vcf.gz, .bcf or .zarr"),
    )


def _open_array(source: Any, sites: SiteList | None) -> GenotypeSource:
    if isinstance(source, list | tuple):
        try:
            # cell by cell: one word or list among numbers must not change how the cells of others are read
            source = np.array(source, object)
        except ValueError:
            source = None
    if hasattr(source, "to_pydict"):  # an Arrow table, whose columns are the variants
        source = _of_columns([column.to_pylist() for column in source.columns])
    if not hasattr(source, "shape") or not hasattr(source, "__getitem__"):
        raise bad_parameter(
            "source", "a path or an array of people x variants", type(source).__name__,
            fix=Code("tc.genotypes(frame.to_numpy(), ...)"),
        )  # fmt: skip
    if hasattr(source, "iloc") or hasattr(source, "get_column"):
        source = source.to_numpy()
    if hasattr(source, "tocsc"):
        source = source.tocsc()
    return ArrayGenotypes(source, sites)


def _of_columns(columns: list[list[Any]]) -> NDArray[Any]:
    """Put columns side by side, cell by cell: a cell that is a list stays one cell."""
    table = np.empty((len(columns[0]) if columns else 0, len(columns)), object)
    for number, cells in enumerate(columns):
        for row, cell in enumerate(cells):
            table[row, number] = cell
    return table
