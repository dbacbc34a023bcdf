"""Genotypes in blocks: packing, popcounts and PLINK files agree with plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.genomes._genotypes import ArrayGenotypes, count_copies, pack, pack_mask, unpack
from tacit.genomes._sites import read_sites
from tacit.genomes._sources import PlinkGenotypes


def calls_of(people, variants, seed):
    return np.random.default_rng(seed).integers(-1, 3, (people, variants)).astype(np.int8)


def plain_counts(calls, mask):
    own = calls[mask]
    return np.stack([(own == copies).sum(0) for copies in (0, 1, 2, -1)], axis=1)


@pytest.mark.parametrize("people", [0, 1, 3, 4, 31, 32, 33, 100])
def test_what_is_packed_comes_back(people):
    calls = calls_of(people, 7, people)
    assert np.array_equal(unpack(pack(calls.T), people), calls.T)


@pytest.mark.parametrize("people", [1, 5, 32, 65, 257])
def test_popcounts_agree_with_a_plain_count(people):
    calls = calls_of(people, 9, people)
    masks = [np.random.default_rng(1).random(people) < 0.4, np.ones(people, bool)]
    sizes = np.array([m.sum() for m in masks])
    found = count_copies(pack(calls.T), [pack_mask(m) for m in masks], sizes)
    for group, mask in enumerate(masks):
        assert np.array_equal(found[group], plain_counts(calls, mask))


def test_an_array_is_read_in_blocks():
    calls = calls_of(50, 30, 3)
    source = ArrayGenotypes(calls, None)
    read = np.concatenate([block.genotypes for block in source.blocks(7)], axis=1)
    assert np.array_equal(read, calls)
    mask = np.arange(50) % 2 == 0
    assert np.array_equal(source.table_counts(mask), plain_counts(calls, mask))


def write_bed(folder, calls, ref="A", alt="G"):
    """Write calls (people x variants, copies of alt) as PLINK does: A1 is alt."""
    people, variants = calls.shape
    rows = pack(calls.T)[:, : -(-people // 4)]
    (folder / "c.bed").write_bytes(b"\x6c\x1b\x01" + rows.tobytes())
    (folder / "c.bim").write_text("".join(f"1\trs{i}\t0\t{100 + i}\t{alt}\t{ref}\n" for i in range(variants)))
    (folder / "c.fam").write_text("".join(f"f{i} p{i} 0 0 0 -9\n" for i in range(people)))
    return folder / "c.bed"


@pytest.mark.parametrize("people", [1, 6, 33])
def test_a_bed_counts_its_first_allele(tmp_path, people):
    calls = calls_of(people, 12, people)
    source = PlinkGenotypes(write_bed(tmp_path, calls), None)
    assert source.people() == people
    assert source.sites.label(0) == "1:100 A>G"
    assert np.array_equal(source.table_counts(), plain_counts(calls, np.ones(people, bool)))


def test_declared_alleles_decide_which_is_counted_and_in_which_order(tmp_path):
    calls = calls_of(21, 5, 0)
    path = write_bed(tmp_path, calls)
    wanted = read_sites({
        "chromosome": ["chr1", "1", "1"], "position": [103, 104, 100], "ref": ["A", "A", "G"],
        "alt": ["G", "G", "A"],
    })  # fmt: skip
    source = PlinkGenotypes(path, wanted)
    read = np.concatenate([block.genotypes for block in source.blocks(2)], axis=1)
    turned = np.where(calls[:, 0] < 0, -1, 2 - calls[:, 0])
    assert np.array_equal(read, np.stack([calls[:, 3], calls[:, 4], turned], axis=1))


@pytest.mark.parametrize(
    ("first", "second", "crossed"),
    [("0", "A", False), ("0", "G", True), ("G", "0", False), ("A", "0", True), (".", ".", False)],
)
def test_an_allele_that_nobody_has_is_no_reason_to_refuse(tmp_path, first, second, crossed):
    """PLINK writes 0 for it, so a refusal would say that nobody in the cohort has it."""
    calls = calls_of(9, 1, 4)
    path = write_bed(tmp_path, calls, ref=second, alt=first)
    wanted = read_sites({"chromosome": ["1"], "position": [100], "ref": ["A"], "alt": ["G"]})
    [block] = PlinkGenotypes(path, wanted).blocks()
    expected = np.where(calls < 0, -1, 2 - calls) if crossed else calls
    assert np.array_equal(block.genotypes, expected)


@pytest.mark.parametrize("ending", [".bed", ".fam"])
def test_a_missing_file_of_the_two_that_hold_people_is_named(tmp_path, ending):
    source = PlinkGenotypes(write_bed(tmp_path, calls_of(9, 1, 4)), None)
    assert source.missing_file == ""
    (tmp_path / f"c{ending}").unlink()
    assert source.missing_file.endswith(f"c{ending}")


def test_other_alleles_in_a_bed_are_refused(tmp_path):
    path = write_bed(tmp_path, calls_of(9, 1, 4), ref="C", alt="0")
    wanted = read_sites({"chromosome": ["1"], "position": [100], "ref": ["A"], "alt": ["G"]})
    with pytest.raises(TacitError) as refused:
        PlinkGenotypes(path, wanted)
    assert refused.value.code == "sites-differ"


def test_what_is_cut_off_from_a_bed_after_its_declaration_is_missing(tmp_path):
    calls = np.zeros((8, 4), np.int8)
    path = write_bed(tmp_path, calls)
    declared = PlinkGenotypes(path, None)
    path.write_bytes(path.read_bytes()[:-3])
    counts = declared.table_counts()
    assert counts[:, 3].tolist() == [0, 0, 4, 8]
