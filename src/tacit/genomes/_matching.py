"""Declared variants against those of a file: the same alleles, or a refusal before anything is charged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.fixes import Say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.genomes._sites import SiteList

#: What PLINK writes for an allele that nobody in the file has.
_UNSEEN = frozenset({"0", "."})
_OTHER_STRAND = str.maketrans("ACGT", "TGCA")


def match_alleles(
    wanted: SiteList, place: int, found: Sequence[tuple[str, tuple[str, ...]]], *, swap: bool = False
) -> tuple[int, int]:
    """Return which record of a file has the alleles of a declared variant, and which of its allele counts.

    A file may leave out the name of an allele because nobody in it has that allele. This depends on
    the genotypes, so it is no reason to refuse: the declared allele stands for the one without a name.

    Parameters
    ----------
    wanted, place
        The declared list, and which of its variants is looked for.
    found
        The records of the file at this position: ref, and the alternate alleles.
    swap
        Whether the two alleles of a record may be exchanged, because its format has no order (PLINK). The
        second number is then 1 if they are; else it is the place among the alternate alleles.
    """
    ref, alt = wanted.ref[place], wanted.alt[place]
    for record, (own_ref, own_alts) in enumerate(found):
        if own_ref == ref and alt in own_alts:
            return record, own_alts.index(alt)
    if swap:
        for record, (own_ref, own_alts) in enumerate(found):
            if own_alts == (ref,) and own_ref == alt:
                return record, 1
    for record, (own_ref, own_alts) in enumerate(found):
        crossed = _unseen_match(ref, alt, own_ref, own_alts) if swap else None
        if crossed is not None or (not swap and own_ref == ref and not own_alts):
            return record, int(crossed or 0)
    if not found:
        raise TacitError(
            "sites-differ",
            f"the genotypes have no variant at {wanted.label(place)}",
            why="a declared variant that the file lacks would look like a variant without any calls",
            fix=Say("remove the variant from the table of variants, or add it to the file"),
        )
    there = ", ".join(f"{r}>{','.join(a)}" for r, a in found)
    turned = (ref.translate(_OTHER_STRAND), alt.translate(_OTHER_STRAND))
    strand = any({r, *a} >= set(turned) for r, a in found)
    raise TacitError(
        "sites-differ",
        f"the genotypes have {there} where the table of variants has {wanted.label(place)}",
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
        own = (own_ref, *own_alts)
        if all(one in {wanted, *_UNSEEN} for one, wanted in zip(own, pair, strict=True)):
            return crossed
    return None
