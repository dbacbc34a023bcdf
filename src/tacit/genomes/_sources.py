"""Sources of genotypes by what they are: files of PLINK, VCF and BCF, Zarr, and arrays.

PLINK has cohort.bed (two bits each), cohort.bim (variants) and cohort.fam (people). Zarr has an array of
people x variants, or the layout of VCF Zarr (``call_genotype``). VCF and BCF are read in a stream. Text is
parsed here, call by call, because a general parser drops a whole line for one call that it cannot read: one
person could then remove everybody's calls at a site. BCF is read with cyvcf2.
"""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from tacit.core import needs
from tacit.errors import TacitError, missing_file
from tacit.fixes import Say
from tacit.genomes._genotypes import MISSING, ArrayGenotypes, GenotypeBlock, GenotypeSource, pack, padded
from tacit.genomes._sites import SiteList, match_alleles, plain_chromosome, read_sites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray


_ENDINGS = {".bed": "bed", ".vcf": "vcf", ".vcf.gz": "vcf", ".vcf.bgz": "vcf", ".bcf": "vcf", ".zarr": "zarr"}
_TAB, _COLON, _DOT, _ZERO, _NINE = (ord(sign) for sign in "\t:.09")
#: Where the alleles of a call stand that has none: missing, or (second allele) haploid.
_NO_CALL, _HAPLOID = -1, -2


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

            return VcfGenotypes(path, sites)
        case "zarr":
            needs("a Zarr store", "zarr", "tacit[genomes]")

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
                raise missing_file(
                    other,
                    "bad-genotypes",
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
        file_sites = read_bim(self._bed.with_suffix(".bim"))
        if self._bed.stat().st_size != 3 + len(file_sites) * -(-self.people() // 4):
            raise TacitError(
                "bad-genotypes",
                f"the size of {self._bed.name} does not fit its bim and fam files",
                why="a bed file has one row for each line of the bim and room for each person of the fam; a "
                "file that was cut off would give wrong frequencies",
                fix=Say("copy the three files again, and check them with PLINK: --bfile"),
            )
        self._rows, self._crossed = np.arange(len(file_sites)), np.zeros(len(file_sites), np.bool_)
        self.sites = file_sites
        if sites is not None:
            self._rows, self._crossed = _match(file_sites, sites)
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


def _match(file_sites: SiteList, declared: SiteList) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the row of each declared variant, and whether the file counts its other allele."""
    rows_of_site = file_sites.places()
    rows, crossed = [], []
    for index in range(len(declared)):
        candidates = rows_of_site.get(
            (plain_chromosome(declared.chromosome[index]), declared.position[index]), []
        )
        row, other = match_alleles(
            declared, index, [(file_sites.ref[i], (file_sites.alt[i],)) for i in candidates], swap=True
        )
        rows.append(candidates[row])
        crossed.append(bool(other))
    return np.array(rows, np.int64), np.array(crossed, np.bool_)


def _read_rows(file: int, rows: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
    """Read rows of a bed, neighbouring ones at once; what the file does not have is missing."""
    packed = np.full((len(rows), width), _MISSING_BYTE, np.uint8)
    ends = np.flatnonzero(np.diff(rows) != 1) + 1
    for start, stop in zip([0, *ends.tolist()], [*ends.tolist(), len(rows)], strict=True):
        data = os.pread(file, (stop - start) * width, 3 + int(rows[start]) * width)
        packed[start:stop].reshape(-1)[: len(data)] = np.frombuffer(data, np.uint8)
    return packed


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
            raise missing_file(self._path, "bad-genotypes", why="the genotypes are read from it")
        self._samples, records = self._read_sites()
        file_sites = _variants_of(records, _bad_file)
        self.sites = file_sites if sites is None else sites
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
            raise _bad_file(
                f"{self._path.name} cannot be read as VCF", "the file is damaged or cut off"
            ) from error

    def _read_binary_sites(self) -> tuple[int, list[tuple[str, int, str, tuple[str, ...], str]]]:
        needs("a BCF file", "cyvcf2", "tacit[genomes]")
        from cyvcf2 import VCF

        try:
            file = VCF(str(self._path), lazy=True)
            records = [
                (r.CHROM, r.POS, r.REF.upper(), tuple(a.upper() for a in r.ALT), r.ID or ".") for r in file
            ]
            return len(file.samples), records
        except Exception as error:  # cyvcf2 raises the bare class
            raise _bad_file(
                f"{self._path.name} cannot be read as BCF", "the file is damaged or cut off"
            ) from error

    def _match(self, records: list[tuple[str, int, str, tuple[str, ...], str]], sites: SiteList) -> None:
        numbers_of_site: dict[tuple[str, int], list[int]] = {}
        for number, record in enumerate(records):
            numbers_of_site.setdefault((plain_chromosome(record[0]), record[1]), []).append(number)
        for index in range(len(sites)):
            numbers = numbers_of_site.get(
                (plain_chromosome(sites.chromosome[index]), sites.position[index]), []
            )
            number, allele = match_alleles(sites, index, [(records[i][2], records[i][3]) for i in numbers])
            self._wanted.setdefault(numbers[number], []).append((index, allele + 1))

    def blocks(self, size: int | None = None) -> Iterator[GenotypeBlock]:
        """Return blocks in the order of the file."""
        people = self.people()
        step = self.rows_at_once(people, size)
        places: list[int] = []
        rows: list[NDArray[np.int8]] = []
        for number, (first_alleles, second_alleles) in self._calls(people):
            for index, allele in self._wanted[number]:
                places.append(index)
                rows.append(copies_of(first_alleles, second_alleles, allele))
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
    first_alleles, second_alleles = np.full(people, _NO_CALL, np.int16), np.full(people, _NO_CALL, np.int16)
    cells = line.rstrip(b"\r\n").split(b"\t", 9)
    if len(cells) < 10 or cells[8].split(b":")[0] != b"GT":
        return first_alleles, second_alleles
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
    first_alleles[:count] = np.where(diploid | haploid, read_a, _NO_CALL)
    second_alleles[:count] = np.where(diploid, read_b, np.where(haploid, _HAPLOID, _NO_CALL))
    for i in np.flatnonzero(~diploid & ~haploid).tolist():
        first_alleles[i], second_alleles[i] = _long_call(text[starts[i] : ends[i]].tobytes())
    return first_alleles, second_alleles


def _digit(signs: NDArray[np.uint8]) -> NDArray[np.int16]:
    """Return the digit, -1 for a dot, -3 for everything else."""
    signed = signs.astype(np.int16)
    digits = (signed >= _ZERO) & (signed <= _NINE)
    return np.where(digits, signed - _ZERO, np.where(signed == _DOT, _NO_CALL, -3)).astype(np.int16)


def _long_call(cell: bytes) -> tuple[int, int]:
    """Read a call that is not two or one signs, such as 12/0."""
    alleles = cell.split(b":")[0].replace(b"|", b"/").split(b"/")
    if len(alleles) > 2 or not all(one.isdigit() and len(one) < 5 for one in alleles):
        return _NO_CALL, _NO_CALL
    return int(alleles[0]), int(alleles[1]) if len(alleles) == 2 else _HAPLOID


def _binary_calls(record: Any, people: int) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """Return both alleles of each person's call of a BCF record."""
    first_alleles, second_alleles = np.full(people, _NO_CALL, np.int16), np.full(people, _NO_CALL, np.int16)
    genotype = record.genotype
    if genotype is None:
        return first_alleles, second_alleles
    alleles = np.asarray(genotype.array())[:people, :-1]
    if alleles.shape[1] == 1:
        alleles = np.column_stack([alleles, np.full(len(alleles), _HAPLOID)])
    extra = (alleles[:, 2:] != _HAPLOID).any(axis=1)
    first_alleles[: len(alleles)] = np.where(extra, _NO_CALL, alleles[:, 0])
    second_alleles[: len(alleles)] = np.where(extra, _NO_CALL, alleles[:, 1])
    return first_alleles, second_alleles


def copies_of(
    first_alleles: NDArray[np.int16], second_alleles: NDArray[np.int16], allele: int
) -> NDArray[np.int8]:
    """Return the copies of an allele in each call, -1 where it is missing; a haploid call counts twice."""
    haploid = second_alleles == _HAPLOID
    copies = (first_alleles == allele).astype(np.int8) + np.where(
        haploid, first_alleles == allele, second_alleles == allele
    )
    return np.where((first_alleles < 0) | ((second_alleles < 0) & ~haploid), MISSING, copies).astype(np.int8)


def _read_header(file: BinaryIO, name: str) -> int:
    """Read up to the line of column names; return how many samples it has."""
    first_line = file.readline()
    if not first_line.startswith(b"##fileformat=VCF"):
        raise _bad_file(f"{name} is not a VCF file", "its first line does not name the format")
    for line in file:
        if line.startswith(b"##"):
            continue
        cells = line.rstrip(b"\r\n").split(b"\t")
        if cells[:5] == [b"#CHROM", b"POS", b"ID", b"REF", b"ALT"]:
            return max(0, len(cells) - 9)
        break
    raise _bad_file(f"{name} has no line of column names", "a VCF file has a line that starts with #CHROM")


def _read_site(line: bytes, name: str, samples: int) -> tuple[str, int, str, tuple[str, ...], str]:
    """Read chromosome, position, ref, alternate alleles and name of a line; it has a cell for each sample."""
    cells = [cell.decode("utf-8", "replace").strip() for cell in line.split(b"\t", 5)[:5]]
    if len(cells) < 5 or not cells[1].isdecimal() or not all(cells):
        raise _bad_file(
            f"{name} has a line without a variant", "a line starts with chromosome, position, id, ref, alt"
        )
    if samples and line.count(b"\t") != samples + 8:
        where = f"{plain_chromosome(cells[0])}:{cells[1]}"
        raise _bad_file(
            f"the line of {where} in {name} does not have one field for each sample",
            "the header names the samples; a file that was cut off would give a wrong frequency",
            Say("copy the file again, and check it: bcftools view -H"),
        )
    alts = () if cells[4] == "." else tuple(one.upper() for one in cells[4].split(","))
    return cells[0], int(cells[1]), cells[3].upper(), alts, cells[2]


def _variants_of(
    records: list[tuple[str, int, str, tuple[str, ...], str]], refusal: Callable[[str, str], TacitError]
) -> SiteList:
    """Return one variant for each alternate allele; of two equal ones the first."""
    variants: set[tuple[str, int, str, str]] = set()
    columns: dict[str, list[object]] = {n: [] for n in ("chromosome", "position", "ref", "alt", "id")}
    for chromosome, position, ref, alts, name in records:
        for alt in alts:
            variant = (plain_chromosome(chromosome), position, ref, alt)
            if variant not in variants:
                variants.add(variant)
                for column, cell in zip(columns, (chromosome, position, ref, alt, name), strict=True):
                    columns[column].append(cell)
    if not variants:
        raise refusal("there is no variant", "no site has an alternate allele")
    return read_sites(columns)


def _bad_file(problem: str, why: str, fix: Say | None = None) -> TacitError:
    usual = Say("write the file again with bcftools view, or give another file")
    return TacitError("bad-genotypes", problem, why=why, fix=fix or usual)


_NEEDED = ("call_genotype", "variant_position", "variant_allele", "variant_contig", "contig_id")


def open_zarr(path: str, sites: SiteList | None) -> GenotypeSource:
    """Open a store: one array of people x variants, or a group in the layout of VCF Zarr."""
    import zarr

    try:
        store = zarr.open(path, mode="r")
    except Exception as error:
        raise _bad_store(
            f"{path} cannot be opened as Zarr", "it is missing, or it is not a Zarr store"
        ) from error
    if hasattr(store, "shape"):
        return ArrayGenotypes(store, sites)
    missing = [name for name in _NEEDED if name not in store]
    if missing:
        raise _bad_store(
            f"the Zarr store has no {missing[0]}", "VCF Zarr has the arrays " + ", ".join(_NEEDED)
        )
    return ZarrGenotypes(store, sites)


class ZarrGenotypes(GenotypeSource):
    """A store in the layout of VCF Zarr: ``call_genotype`` of variants x people x 2 or 1 alleles.

    Calls and sites with several alternate alleles are read by the rules of VCF files.
    """

    def __init__(self, store: Any, sites: SiteList | None) -> None:
        self._calls = store["call_genotype"]
        if self._calls.ndim != 3 or not self._calls.shape[2] or self._calls.dtype.kind not in "iu":
            raise _bad_store(
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
            raise _bad_store(
                "the arrays of variants have different lengths", "they describe the same variants"
            )
        if not all(alleles):
            raise _bad_store(
                "a variant of the Zarr store has no allele", "VCF Zarr names the reference allele first"
            )
        lines = zip(where, position, alleles, strict=True)
        file_records = [(contig, at, own[0], tuple(own[1:]), ".") for contig, at, own in lines]
        self.sites = _variants_of(file_records, _bad_store) if sites is None else sites
        rows_of_site: dict[tuple[str, int], list[int]] = {}
        for row, at in enumerate(zip(where, position, strict=True)):
            rows_of_site.setdefault((plain_chromosome(at[0]), at[1]), []).append(row)
        self._wanted = []
        for index in range(len(self.sites)):
            at = (plain_chromosome(self.sites.chromosome[index]), self.sites.position[index])
            rows_found = rows_of_site.get(at, [])
            records = [(alleles[i][0], tuple(alleles[i][1:])) for i in rows_found]
            record, allele = match_alleles(self.sites, index, records)
            self._wanted.append((rows_found[record], allele + 1))

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


def _bad_store(problem: str, why: str) -> TacitError:
    return TacitError(
        "bad-genotypes", problem, why=why, fix=Say("write the store again, or give another file")
    )
