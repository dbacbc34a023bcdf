"""Genotypes in VCF and BCF files, read in a stream.

Text is parsed here, call by call, because a general parser drops a whole line for one call that it cannot
read: one person could then remove everybody's calls at a site. BCF is read with cyvcf2.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from tacit.core import needs
from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.genomes._blocks import MISSING, GenotypeBlock, GenotypeSource, pack
from tacit.genomes._matching import match_alleles
from tacit.genomes._sites import SiteList, plain_chromosome, read_sites

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import NDArray

_TAB, _COLON, _DOT, _ZERO, _NINE = (ord(sign) for sign in "\t:.09")
#: Where the alleles of a call stand that has none: missing, or (second allele) haploid.
_NO_CALL, _HAPLOID = -1, -2


class VcfGenotypes(GenotypeSource):
    """A VCF (plain, gzip or bgzip) or BCF file.

    A site with several alternate alleles is one variant for each: copies of that allele. A call with a dot,
    of one allele out of two, with more than two alleles, or that cannot be read, is missing. A haploid call
    counts as two copies or none, as in PLINK. Of two records of the same variant the first counts. A line
    that does not have one cell for each sample is refused when the file is opened, as bcftools does.
    """

    def __init__(self, path: str | os.PathLike[str], sites: SiteList | None) -> None:
        self._path = Path(path)
        if not self._path.is_file():
            raise _bad(f"there is no file {self._path}", "the genotypes are read from it")
        self._samples, records = self._read_sites()
        own = _split(records)
        self.sites = own if sites is None else sites
        #: Record -> the variants that it holds: place in the site list, number of the alternate allele.
        self._wanted: dict[int, list[tuple[int, int]]] = {}
        self._match(records, self.sites)

    @property
    def missing_file(self) -> str:
        """The path if the file does not exist now."""
        return "" if self._path.is_file() else str(self._path)

    @property
    def _binary(self) -> bool:
        return self._path.suffix == ".bcf"

    def people(self) -> int:
        """Return the number of samples in the header."""
        return self._samples

    def _read_sites(self) -> tuple[int, list[tuple[str, int, str, tuple[str, ...], str]]]:
        """Read the header, the first five cells of each line and its number of cells: they are public."""
        if self._binary:
            return self._read_binary_sites()
        try:
            with self._open() as file:
                samples = _read_header(file, self._path.name)
                lines = (line for line in file if line.strip())
                return samples, [_read_site(line, self._path.name, samples) for line in lines]
        except (OSError, EOFError, zlib.error) as error:
            raise _bad(
                f"{self._path.name} cannot be read as VCF", "the file is damaged or cut off"
            ) from error

    def _read_binary_sites(self) -> tuple[int, list[tuple[str, int, str, tuple[str, ...], str]]]:
        needs("a BCF file", "cyvcf2", "tacit[genomes]")
        from cyvcf2 import VCF

        try:
            file = VCF(str(self._path), lazy=True)
            found = [
                (r.CHROM, r.POS, r.REF.upper(), tuple(a.upper() for a in r.ALT), r.ID or ".") for r in file
            ]
            return len(file.samples), found
        except Exception as error:  # cyvcf2 raises the bare class
            raise _bad(
                f"{self._path.name} cannot be read as BCF", "the file is damaged or cut off"
            ) from error

    def _match(self, records: list[tuple[str, int, str, tuple[str, ...], str]], sites: SiteList) -> None:
        there: dict[tuple[str, int], list[int]] = {}
        for number, record in enumerate(records):
            there.setdefault((plain_chromosome(record[0]), record[1]), []).append(number)
        for place in range(len(sites)):
            found = there.get((plain_chromosome(sites.chromosome[place]), sites.position[place]), [])
            number, allele = match_alleles(sites, place, [(records[i][2], records[i][3]) for i in found])
            self._wanted.setdefault(found[number], []).append((place, allele + 1))

    def blocks(self, size: int | None = None) -> Iterator[GenotypeBlock]:
        """Return blocks in the order of the file."""
        people = self.people()
        step = self.rows_at_once(people, size)
        places: list[int] = []
        rows: list[NDArray[np.int8]] = []
        for number, (first, second) in self._calls(people):
            for place, allele in self._wanted[number]:
                places.append(place)
                rows.append(copies_of(first, second, allele))
            if len(rows) >= step:
                yield GenotypeBlock(np.array(places), pack(np.stack(rows)), people)
                places, rows = [], []
        if rows:
            yield GenotypeBlock(np.array(places), pack(np.stack(rows)), people)

    def _calls(self, people: int) -> Iterator[tuple[int, tuple[NDArray[np.int16], NDArray[np.int16]]]]:
        """Return the alleles of all calls of each wanted record."""
        if self._binary:
            from cyvcf2 import VCF

            for number, record in enumerate(VCF(str(self._path), lazy=True)):
                if number in self._wanted:
                    yield number, _binary_calls(record, people)
            return
        with self._open() as file:
            _read_header(file, self._path.name)
            for number, line in enumerate(line for line in file if line.strip()):
                if number in self._wanted:
                    yield number, parse_calls(line, people)

    def _open(self) -> BinaryIO:
        with self._path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        return cast("BinaryIO", gzip.open(self._path, "rb") if packed else self._path.open("rb"))


def parse_calls(line: bytes, people: int) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    r"""Return both alleles of each person's call in a line of a VCF; no text makes it fail.

    Examples
    --------
    >>> line = b"1\t10\t.\tA\tG\t.\t.\t.\tGT:DP\t0/1:9\t1|1\t./1\t1\t12/0\tx"
    >>> [part.tolist() for part in parse_calls(line, 7)]
    [[0, 1, -1, 1, 12, -1, -1], [1, 1, 1, -2, 0, -1, -1]]
    """
    first, second = np.full(people, _NO_CALL, np.int16), np.full(people, _NO_CALL, np.int16)
    cells = line.rstrip(b"\r\n").split(b"\t", 9)
    if len(cells) < 10 or cells[8].split(b":")[0] != b"GT":
        return first, second
    text = np.frombuffer(cells[9] + b"\t\t\t\t", np.uint8)
    ends = np.flatnonzero(text == _TAB)[:people]
    ends = ends[ends <= len(cells[9])]
    starts = np.concatenate(([0], ends[:-1] + 1)).astype(np.int64) if len(ends) else ends
    a, between, b, after = (text[starts + i] for i in range(4))
    short = (after == _TAB) | (after == _COLON)
    split = (between == ord("/")) | (between == ord("|"))
    single = (between == _TAB) | (between == _COLON)
    read_a, read_b = _digit(a), _digit(b)
    diploid = split & short & (read_a > -3) & (read_b > -3)
    haploid = single & (read_a > -3)
    count = len(starts)
    first[:count] = np.where(diploid | haploid, read_a, _NO_CALL)
    second[:count] = np.where(diploid, read_b, np.where(haploid, _HAPLOID, _NO_CALL))
    for i in np.flatnonzero(~diploid & ~haploid).tolist():
        first[i], second[i] = _long_call(text[starts[i] : ends[i]].tobytes())
    return first, second


def _digit(signs: NDArray[np.uint8]) -> NDArray[np.int16]:
    """Return the digit, -1 for a dot, -3 for everything else."""
    whole = signs.astype(np.int16)
    digits = (whole >= _ZERO) & (whole <= _NINE)
    return np.where(digits, whole - _ZERO, np.where(whole == _DOT, _NO_CALL, -3)).astype(np.int16)


def _long_call(cell: bytes) -> tuple[int, int]:
    """Read a call that is not two or one signs, such as 12/0."""
    alleles = cell.split(b":")[0].replace(b"|", b"/").split(b"/")
    if len(alleles) > 2 or not all(one.isdigit() and len(one) < 5 for one in alleles):
        return _NO_CALL, _NO_CALL
    return int(alleles[0]), int(alleles[1]) if len(alleles) == 2 else _HAPLOID


def _binary_calls(record: Any, people: int) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """Return both alleles of each person's call of a BCF record."""
    first, second = np.full(people, _NO_CALL, np.int16), np.full(people, _NO_CALL, np.int16)
    held = record.genotype
    if held is None:
        return first, second
    alleles = np.asarray(held.array())[:people, :-1]
    if alleles.shape[1] == 1:
        alleles = np.column_stack([alleles, np.full(len(alleles), _HAPLOID)])
    extra = (alleles[:, 2:] != _HAPLOID).any(axis=1)
    first[: len(alleles)] = np.where(extra, _NO_CALL, alleles[:, 0])
    second[: len(alleles)] = np.where(extra, _NO_CALL, alleles[:, 1])
    return first, second


def copies_of(first: NDArray[np.int16], second: NDArray[np.int16], allele: int) -> NDArray[np.int8]:
    """Return the copies of an allele in each call, -1 where it is missing; a haploid call counts twice."""
    haploid = second == _HAPLOID
    copies = (first == allele).astype(np.int8) + np.where(haploid, first == allele, second == allele)
    return np.where((first < 0) | ((second < 0) & ~haploid), MISSING, copies).astype(np.int8)


def _read_header(file: BinaryIO, name: str) -> int:
    """Read up to the line of column names; return how many samples it has."""
    first = file.readline()
    if not first.startswith(b"##fileformat=VCF"):
        raise _bad(f"{name} is not a VCF file", "its first line does not name the format")
    for line in file:
        if line.startswith(b"##"):
            continue
        cells = line.rstrip(b"\r\n").split(b"\t")
        if cells[:5] == [b"#CHROM", b"POS", b"ID", b"REF", b"ALT"]:
            return max(0, len(cells) - 9)
        break
    raise _bad(f"{name} has no line of column names", "a VCF file has a line that starts with #CHROM")


def _read_site(line: bytes, name: str, samples: int) -> tuple[str, int, str, tuple[str, ...], str]:
    """Read chromosome, position, ref, alternate alleles and name of a line; it has a cell for each sample."""
    cells = [cell.decode("utf-8", "replace").strip() for cell in line.split(b"\t", 5)[:5]]
    if len(cells) < 5 or not cells[1].isdecimal() or not all(cells):
        raise _bad(
            f"{name} has a line without a variant", "a line starts with chromosome, position, id, ref, alt"
        )
    if samples and line.count(b"\t") != samples + 8:
        where = f"{plain_chromosome(cells[0])}:{cells[1]}"
        raise _bad(
            f"the line of {where} in {name} does not have one field for each sample",
            "the header names the samples; a file that was cut off would give a wrong frequency",
            Say("copy the file again, and check it: bcftools view -H"),
        )
    alts = () if cells[4] == "." else tuple(one.upper() for one in cells[4].split(","))
    return cells[0], int(cells[1]), cells[3].upper(), alts, cells[2]


def _split(records: list[tuple[str, int, str, tuple[str, ...], str]]) -> SiteList:
    """Return one variant for each alternate allele; of two equal ones the first."""
    seen: set[tuple[str, int, str, str]] = set()
    columns: dict[str, list[object]] = {n: [] for n in ("chromosome", "position", "ref", "alt", "id")}
    for chromosome, position, ref, alts, name in records:
        for alt in alts:
            one = (plain_chromosome(chromosome), position, ref, alt)
            if one not in seen:
                seen.add(one)
                for column, cell in zip(columns, (chromosome, position, ref, alt, name), strict=True):
                    columns[column].append(cell)
    if not seen:
        raise _bad("the file has no variant", "no line has an alternate allele")
    return read_sites(columns)


def _bad(what: str, why: str, fix: Say | None = None) -> TacitError:
    usual = Say("write the file again with bcftools view, or give another file")
    return TacitError("bad-genotypes", what, why=why, fix=fix or usual)
