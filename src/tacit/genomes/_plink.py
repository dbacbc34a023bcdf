"""Genotypes in the files of PLINK: cohort.bed (two bits each), cohort.bim (variants), cohort.fam (people)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.genomes._blocks import GenotypeBlock, GenotypeSource, padded
from tacit.genomes._matching import match_alleles
from tacit.genomes._sites import SiteList, plain_chromosome, read_sites

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_MAGIC = b"\x6c\x1b\x01"
#: Byte -> the byte with two copies and none exchanged, for files that count the other allele.
_CROSSED = np.array([3, 1, 2, 0], np.uint8)[(np.arange(256)[:, None] >> np.arange(0, 8, 2)) & 3]
_CROSSED = (_CROSSED << np.arange(0, 8, 2, dtype=np.uint8)).sum(axis=1, dtype=np.uint8)
_MISSING_BYTE = 0b01010101


class PlinkGenotypes(GenotypeSource):
    """A bed file with its bim and fam.

    Without declared variants the counted allele is A1, the fifth column of the bim, and ``ref`` is A2. With
    declared variants it is ``alt``, whichever column it stands in. PLINK 1.9 makes A1 the rarer allele of the
    cohort: without declared variants the order of the alleles depends on the genotypes. Opening reads the bim
    and the first three bytes of the bed. A bed whose size does not fit the bim and the fam is refused.
    """

    def __init__(self, path: str | os.PathLike[str], sites: SiteList | None) -> None:
        self._bed = Path(path)
        for other in (self._bed, self._bed.with_suffix(".bim"), self._bed.with_suffix(".fam")):
            if not other.is_file():
                raise TacitError(
                    "bad-genotypes",
                    f"there is no file {other}",
                    why="PLINK keeps genotypes in three files with the same name, which end in bed, bim and "
                    "fam",
                    fix=Say("copy the missing file to the folder of the others"),
                )
        with self._bed.open("rb") as file:
            if file.read(3) != _MAGIC:
                raise TacitError(
                    "bad-genotypes",
                    f"{self._bed.name} is not a bed file with one row for each variant",
                    why="its first three bytes are not 6c 1b 01; a file with one row for each person has 00 "
                    "as the third",
                    fix=Say("write the file again with PLINK 1.9 or 2: --make-bed"),
                )
        own = read_bim(self._bed.with_suffix(".bim"))
        if self._bed.stat().st_size != 3 + len(own) * -(-self.people() // 4):
            raise TacitError(
                "bad-genotypes",
                f"the size of {self._bed.name} does not fit its bim and fam files",
                why="a bed file has one row for each line of the bim and room for each person of the fam; a "
                "file that was cut off would give wrong frequencies",
                fix=Say("copy the three files again, and check them with PLINK: --bfile"),
            )
        self._rows, self._crossed = np.arange(len(own)), np.zeros(len(own), np.bool_)
        self.sites = own
        if sites is not None:
            self._rows, self._crossed = _match(own, sites)
            self.sites = sites

    @property
    def missing_file(self) -> str:
        """The path of the bed or the fam if it does not exist now."""
        needed = (self._bed, self._bed.with_suffix(".fam"))
        return next((str(one) for one in needed if not one.is_file()), "")

    def people(self) -> int:
        """Return the number of lines of the fam that are not empty."""
        with self._bed.with_suffix(".fam").open("rb") as file:
            return sum(1 for line in file if line.strip())

    def blocks(self, size: int | None = None) -> Iterator[GenotypeBlock]:
        """Return blocks in the order of the site list."""
        people = self.people()
        step, width = self.rows_at_once(people, size), -(-people // 4)
        with self._bed.open("rb", buffering=0) as file:
            for start in range(0, len(self._rows), step):
                rows = self._rows[start : start + step]
                packed = np.zeros((len(rows), padded(people)), np.uint8)
                packed[:, :width] = _read_rows(file.fileno(), rows, width)
                crossed = self._crossed[start : start + step]
                if crossed.any():
                    packed[crossed] = _CROSSED[packed[crossed]]
                yield GenotypeBlock(np.arange(start, start + len(rows)), packed, people)


def read_bim(path: Path) -> SiteList:
    """Read the variants of a bim file: chromosome, name, centimorgans, position, A1, A2."""
    columns: dict[str, list[object]] = {n: [] for n in ("chromosome", "id", "position", "alt", "ref")}
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            cells = line.split()
            if not cells:
                continue
            if len(cells) != 6 or not cells[3].lstrip("-").isdigit():
                raise TacitError(
                    "bad-genotypes",
                    f"line {number} of {path.name} is not a variant",
                    why="a line of a bim file has six cells: chromosome, name, distance, position, A1, A2",
                    fix=Say("write the file again with PLINK 1.9 or 2: --make-bed"),
                )
            for name, cell in zip(columns, (cells[0], cells[1], cells[3], cells[4], cells[5]), strict=True):
                columns[name].append(cell)
    return read_sites(columns)


def _match(own: SiteList, wanted: SiteList) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the row of each declared variant, and whether the file counts its other allele."""
    there = own.places()
    rows, crossed = [], []
    for place in range(len(wanted)):
        found = there.get((plain_chromosome(wanted.chromosome[place]), wanted.position[place]), [])
        row, other = match_alleles(wanted, place, [(own.ref[i], (own.alt[i],)) for i in found], swap=True)
        rows.append(found[row])
        crossed.append(bool(other))
    return np.array(rows, np.int64), np.array(crossed, np.bool_)


def _read_rows(file: int, rows: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
    """Read rows of a bed, neighbouring ones at once; what the file does not have is missing."""
    found = np.full((len(rows), width), _MISSING_BYTE, np.uint8)
    ends = np.flatnonzero(np.diff(rows) != 1) + 1
    for first, last in zip([0, *ends.tolist()], [*ends.tolist(), len(rows)], strict=True):
        data = os.pread(file, (last - first) * width, 3 + int(rows[first]) * width)
        found[first:last].reshape(-1)[: len(data)] = np.frombuffer(data, np.uint8)
    return found
