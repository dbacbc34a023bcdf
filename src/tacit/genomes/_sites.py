"""The site list of a cohort: which variants there are, with public numbers such as a reference frequency.

Declared variants are matched with those of a file: the same alleles, or a refusal before anything is charged.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Fix, Say

_COLUMNS = ("chromosome", "position", "ref", "alt")
_ALLELE = re.compile(r"[ACGTNacgtn]+|\*|\.|0|<[^<>\s,;]{1,40}>")
_EXAMPLE = Code('variants={"chromosome": ["1"], "position": [752566], "ref": ["G"], "alt": ["A"]}')
#: What PLINK writes for an allele that nobody in the file has.
_UNSEEN = frozenset({"0", "."})
_OTHER_STRAND = str.maketrans("ACGT", "TGCA")


@dataclass(frozen=True)
class SiteList:
    """The variants of a cohort, in order: one line for each site and alternate allele.

    The list is public. Whoever declares it says that it was not made from the cohort itself: an array panel,
    a public catalogue.

    Parameters
    ----------
    chromosome, position, ref, alt, names
        Where a variant is, its alleles (``alt`` is the one that is counted), and its name, such as an rsID.
    numbers
        Further public columns, such as ``frequency``: the frequency of ``alt`` in a public reference. NaN
        where it is not known.
    numbered
        Whether the variants are only numbered, because nothing was declared about them.

    Examples
    --------
    >>> sites = read_sites({"chromosome": ["1", "1"], "position": [10, 20], "ref": ["A", "C"],
    ...                     "alt": ["G", "T"], "frequency": [0.2, 0.5]})
    >>> len(sites), sites.label(1), sites.numbers["frequency"]
    (2, '1:20 C>T', (0.2, 0.5))
    """

    chromosome: tuple[str, ...]
    position: tuple[int, ...]
    ref: tuple[str, ...]
    alt: tuple[str, ...]
    names: tuple[str, ...]
    numbers: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    numbered: bool = False

    @classmethod
    def of_number(cls, count: int) -> SiteList:
        """Return the list of so many variants that are only numbered, from 1."""
        blank = (".",) * count
        return cls(blank, tuple(range(1, count + 1)), blank, blank, blank, {}, numbered=True)

    def __len__(self) -> int:
        return len(self.position)

    def label(self, place: int) -> str:
        """Return a variant as people write it."""
        if self.numbered:
            return f"variant {place + 1}"
        return f"{self.chromosome[place]}:{self.position[place]} {self.ref[place]}>{self.alt[place]}"

    @cached_property
    def digest(self) -> str:
        """A digest of the places and alleles, which is part of every question."""
        lines = zip(self.chromosome, self.position, self.ref, self.alt, strict=True)
        return hashlib.sha256("\n".join(f"{c} {p} {r} {a}" for c, p, r, a in lines).encode()).hexdigest()

    def places(self) -> dict[tuple[str, int], list[int]]:
        """Return the variants at each chromosome (without "chr") and position."""
        variants: dict[tuple[str, int], list[int]] = {}
        for index, site in enumerate(zip(self.chromosome, self.position, strict=True)):
            variants.setdefault((plain_chromosome(site[0]), site[1]), []).append(index)
        return variants


def plain_chromosome(name: str) -> str:
    """Return a chromosome's name without "chr", so that ``chr1`` and ``1`` are the same.

    Examples
    --------
    >>> plain_chromosome("chr1"), plain_chromosome("X")
    ('1', 'X')
    """
    return name[3:] if name[:3].lower() == "chr" else name


def read_sites(variants: object) -> SiteList:
    """Read a public table of variants: columns by name, a data frame, or a CSV or TSV file."""
    if isinstance(variants, SiteList):
        return variants
    columns = _columns_of(variants)
    missing = next((name for name in _COLUMNS if name not in columns), None)
    if missing is not None:
        has = f"; the table has {', '.join(map(str, columns))}" if columns else ""
        raise TacitError(
            "bad-parameter",
            f"the table of variants has no column {missing!r}",
            why="without chromosome, position, ref and alt nobody can say which allele is counted",
            fix=Say(f"rename the columns to chromosome, position, ref and alt{has}"),
        )
    lengths = {len(values) for values in columns.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise _wrong_table("columns of one length, at least 1", lengths)
    names = columns.get("id", ["."] * lengths.pop())
    sites = SiteList(
        tuple(_text("chromosome", one) for one in columns["chromosome"]),
        tuple(_position(one) for one in columns["position"]),
        tuple(_allele("ref", one) for one in columns["ref"]),
        tuple(_allele("alt", one) for one in columns["alt"]),
        tuple(_name(one) for one in names),
        {
            name: numbers
            for name, values in columns.items()
            if name not in {*_COLUMNS, "id"} and (numbers := _numbers(values)) is not None
        },
    )
    check_unique(sites)
    return sites


def check_unique(sites: SiteList) -> None:
    """Refuse a list that has a variant twice."""
    variants: set[tuple[str, int, str, str]] = set()
    for index in range(len(sites)):
        variant = (plain_chromosome(sites.chromosome[index]), sites.position[index],
               sites.ref[index], sites.alt[index])  # fmt: skip
        if variant in variants:
            raise TacitError(
                "sites-differ",
                f"the site list has {sites.label(index)} twice",
                why="each variant is counted once",
                fix=Say("remove one of the two lines"),
            )
        variants.add(variant)


def _columns_of(table: Any) -> dict[str, Sequence[object]]:
    """Return the columns of a mapping, a data frame, an Arrow table or a text file."""
    if isinstance(table, str | os.PathLike):
        return _columns_of_file(Path(table))
    if isinstance(table, Mapping):
        return {str(name): list(values) for name, values in table.items()}
    for method, options in (("to_pydict", {}), ("to_dict", {"as_series": False}),
                            ("to_dict", {"orient": "list"})):  # fmt: skip
        if hasattr(table, method):
            try:
                return {str(name): list(v) for name, v in getattr(table, method)(**options).items()}
            except TypeError:
                continue
    raise _wrong_table("a table of variants or the path of one", type(table).__name__)


def _wrong_table(must_be: str, got: object, fix: Fix = _EXAMPLE) -> TacitError:
    return bad_parameter("variants", must_be, got, fix=fix)


def _columns_of_file(path: Path) -> dict[str, Sequence[object]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        fix = Say("name a CSV or TSV file with one line for each variant")
        raise _wrong_table("a text file that can be read", str(path), fix) from None
    header_line = text.partition("\n")[0]
    lines = list(csv.reader(text.splitlines(), delimiter="\t" if "\t" in header_line else ","))
    header, body = (lines[0], [line for line in lines[1:] if line]) if lines else ([], [])
    if any(len(line) != len(header) for line in body):
        fix = Say("write one cell for each column in every line")
        raise _wrong_table("a file whose lines have the same number of cells", str(path), fix)
    return {name.strip(): [line[i] for line in body] for i, name in enumerate(header)}


def _text(name: str, value: object) -> str:
    text = str(value).strip()
    if not text or not text.isprintable() or any(sign.isspace() for sign in text) or len(text) > 100:
        raise _wrong_cell(name, "text without blanks", value)
    return text


def _name(value: object) -> str:
    """Return the name of a variant for files with tabs: blanks and control signs become underscores."""
    text = "" if value is None else str(value).strip()
    return "".join(sign if sign.isprintable() and not sign.isspace() else "_" for sign in text) or "."


def _allele(name: str, value: object) -> str:
    text = str(value).strip()
    if not _ALLELE.fullmatch(text):
        raise _wrong_cell(name, "an allele such as A or GT", value)
    return text if text.startswith("<") else text.upper()


def _position(value: object) -> int:
    try:
        position = int(str(value).strip())
    except ValueError:
        position = -1
    if not 0 <= position < 2**40:
        raise _wrong_cell("position", "a whole number of base pairs", value)
    return position


def _wrong_cell(column: str, must_be: str, cell: object) -> TacitError:
    return bad_parameter(column, must_be, cell, fix=_EXAMPLE)


def _numbers(values: Sequence[object]) -> tuple[float, ...] | None:
    """Return a column of numbers, NaN where one is missing; None where it is not a column of numbers."""
    numbers = []
    for value in values:
        try:
            numbers.append(float(value) if value not in {None, "", "NA", "."} else math.nan)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return None
    return tuple(numbers)


def match_alleles(
    declared: SiteList, index: int, records: Sequence[tuple[str, tuple[str, ...]]], *, swap: bool = False
) -> tuple[int, int]:
    """Return which record of a file has the alleles of a declared variant, and which of its allele counts.

    A file may leave out the name of an allele because nobody in it has that allele. This depends on
    the genotypes, so it is no reason to refuse: the declared allele stands for the one without a name.

    Parameters
    ----------
    declared, index
        The declared list, and which of its variants is looked for.
    records
        The records of the file at this position: ref, and the alternate alleles.
    swap
        Whether the two alleles of a record may be exchanged, because its format has no order (PLINK). The
        second number is then 1 if they are; else it is the place among the alternate alleles.
    """
    ref, alt = declared.ref[index], declared.alt[index]
    for record, (own_ref, own_alts) in enumerate(records):
        if own_ref == ref and alt in own_alts:
            return record, own_alts.index(alt)
    if swap:
        for record, (own_ref, own_alts) in enumerate(records):
            if own_alts == (ref,) and own_ref == alt:
                return record, 1
    for record, (own_ref, own_alts) in enumerate(records):
        crossed = _unseen_match(ref, alt, own_ref, own_alts) if swap else None
        if crossed is not None or (not swap and own_ref == ref and not own_alts):
            return record, int(crossed or 0)
    if not records:
        raise TacitError(
            "sites-differ",
            f"the genotypes have no variant at {declared.label(index)}",
            why="a declared variant that the file lacks would look like a variant without any calls",
            fix=Say("remove the variant from the table of variants, or add it to the file"),
        )
    listing = ", ".join(f"{r}>{','.join(a)}" for r, a in records)
    turned = (ref.translate(_OTHER_STRAND), alt.translate(_OTHER_STRAND))
    strand = any({r, *a} >= set(turned) for r, a in records)
    raise TacitError(
        "sites-differ",
        f"the genotypes have {listing} where the table of variants has {declared.label(index)}",
        why="the alleles are those of the other strand, so frequencies would be of another allele"
        if strand
        else "frequencies would be of another allele",
        fix=Say(
            "write the alleles of the table on the strand of the file"
            if strand
            else "correct ref and alt in the table of variants, or remove the variant"
        ),
    )


def _unseen_match(ref: str, alt: str, own_ref: str, own_alts: tuple[str, ...]) -> bool | None:
    """Return whether a record that leaves out an allele has the two exchanged; None if it does not fit."""
    for crossed, pair in ((False, (ref, alt)), (True, (alt, ref))):
        own_alleles = (own_ref, *own_alts)
        if all(one in {wanted, *_UNSEEN} for one, wanted in zip(own_alleles, pair, strict=True)):
            return crossed
    return None
