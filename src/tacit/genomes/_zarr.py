"""Genotypes in Zarr: an array of people x variants, or the layout of VCF Zarr (``call_genotype``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.genomes._arrays import ArrayGenotypes
from tacit.genomes._blocks import GenotypeBlock, GenotypeSource, pack
from tacit.genomes._matching import match_alleles
from tacit.genomes._sites import SiteList, plain_chromosome, read_sites
from tacit.genomes._vcf import copies_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_NEEDED = ("call_genotype", "variant_position", "variant_allele", "variant_contig", "contig_id")


def open_zarr(path: str, sites: SiteList | None) -> GenotypeSource:
    """Open a store: one array of people x variants, or a group in the layout of VCF Zarr."""
    import zarr

    try:
        opened = zarr.open(path, mode="r")
    except Exception as error:
        raise _bad(f"{path} cannot be opened as Zarr", "it is missing, or it is not a Zarr store") from error
    if hasattr(opened, "shape"):
        return ArrayGenotypes(opened, sites)
    missing = [name for name in _NEEDED if name not in opened]
    if missing:
        raise _bad(f"the Zarr store has no {missing[0]}", "VCF Zarr has the arrays " + ", ".join(_NEEDED))
    return ZarrGenotypes(opened, sites)


class ZarrGenotypes(GenotypeSource):
    """A store in the layout of VCF Zarr: ``call_genotype`` of variants x people x 2 or 1 alleles.

    Calls and sites with several alternate alleles are read by the rules of VCF files.
    """

    def __init__(self, store: Any, sites: SiteList | None) -> None:
        self._calls = store["call_genotype"]
        if self._calls.ndim != 3 or not self._calls.shape[2] or self._calls.dtype.kind not in "iu":
            raise _bad(
                "call_genotype is not an array of variants x people x alleles",
                "VCF Zarr has whole numbers there, one for each allele of a call",
            )
        contigs = [str(one) for one in store["contig_id"][:]]
        alleles = [
            [str(one).upper() for one in row if str(one) not in {"", "."}]
            for row in store["variant_allele"][:]
        ]
        where = [contigs[int(one)] for one in store["variant_contig"][:]]
        position = [int(one) for one in store["variant_position"][:]]
        if not len(alleles) == len(where) == len(position) == self._calls.shape[0]:
            raise _bad("the arrays of variants have different lengths", "they describe the same variants")
        if not all(alleles):
            raise _bad(
                "a variant of the Zarr store has no allele", "VCF Zarr names the reference allele first"
            )
        self.sites = _split(where, position, alleles) if sites is None else sites
        there: dict[tuple[str, int], list[int]] = {}
        for row, at in enumerate(zip(where, position, strict=True)):
            there.setdefault((plain_chromosome(at[0]), at[1]), []).append(row)
        self._wanted = []
        for place in range(len(self.sites)):
            at = (plain_chromosome(self.sites.chromosome[place]), self.sites.position[place])
            found = there.get(at, [])
            records = [(alleles[i][0], tuple(alleles[i][1:])) for i in found]
            record, allele = match_alleles(self.sites, place, records)
            self._wanted.append((found[record], allele + 1))

    def people(self) -> int:
        """Return the number of samples."""
        return int(self._calls.shape[1])

    def blocks(self, size: int | None = None) -> Iterator[GenotypeBlock]:
        """Return blocks in the order of the site list."""
        people = self.people()
        step = min(self.rows_at_once(people, size), 256)
        for start in range(0, len(self._wanted), step):
            rows = []
            for row, allele in self._wanted[start : start + step]:
                calls = np.asarray(self._calls[row]).astype(np.int16)
                extra = (calls[:, 2:] != -2).any(axis=1)
                second = calls[:, 1] if calls.shape[1] > 1 else np.full(people, -2, np.int16)
                rows.append(np.where(extra, -1, copies_of(calls[:, 0], second, allele)).astype(np.int8))
            yield GenotypeBlock(np.arange(start, start + len(rows)), pack(np.stack(rows)), people)


def _split(where: list[str], position: list[int], alleles: list[list[str]]) -> SiteList:
    """Return one variant for each alternate allele."""
    listed = [
        (contig, at, own[0], alt)
        for contig, at, own in zip(where, position, alleles, strict=True)
        for alt in own[1:]
    ]
    listed = list(dict.fromkeys(listed))
    if not listed:
        raise _bad("the Zarr store has no variant", "no site has an alternate allele")
    columns = zip(*listed, strict=True)
    return read_sites(dict(zip(("chromosome", "position", "ref", "alt"), columns, strict=True)))


def _bad(what: str, why: str) -> TacitError:
    return TacitError("bad-genotypes", what, why=why, fix=Say("write the store again, or give another file"))
