"""Every source gives the same counts; malformed calls are missing, malformed files are refused."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import tacit as tc
from tacit.genomes._sites import read_sites
from tacit.genomes._sources import open_genotypes, parse_calls

HEAD = (
    "##fileformat=VCFv4.2\n##contig=<ID=1>\n"
    '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n'
    "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
)
SITES = {"chromosome": ["1", "1"], "position": [10, 20], "ref": ["A", "C"], "alt": ["G", "T"]}


def write_vcf(path, lines, people):
    text = HEAD + "\t".join(f"s{i}" for i in range(people)) + "\n" + "".join(f"{line}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def line_of(position, ref, alt, calls, form="GT"):
    return "\t".join(["1", str(position), ".", ref, alt, ".", ".", ".", form, *calls])


def calls_of(source):
    read = np.full((source.people(), len(source.sites)), -1)
    for block in source.blocks(2):
        read[:, block.places] = block.genotypes
    return read.tolist()


@pytest.mark.parametrize("name", ["c.vcf", "c.vcf.gz"])
def test_the_rules_for_calls_of_a_vcf(tmp_path, name):
    calls = ["0/0", "0|1:9", "1/1", "./.", "./1", "1", "0", "0/0/1", "x", "", "12/1"]
    path = write_vcf(tmp_path / name, [line_of(10, "A", "G", calls, "GT:DP")], len(calls))
    source = open_genotypes(path, None)
    assert [one for [one] in calls_of(source)] == [0, 1, 2, -1, -1, 2, 0, -1, -1, -1, 1]


def test_a_site_with_two_alternate_alleles_is_two_variants(tmp_path):
    path = write_vcf(tmp_path / "c.vcf", [line_of(10, "A", "G,T", ["0/2", "1|2", "2/2"])], 3)
    source = open_genotypes(path, None)
    assert [source.sites.label(i) for i in range(2)] == ["1:10 A>G", "1:10 A>T"]
    assert calls_of(source) == [[0, 1], [1, 1], [0, 2]]


def test_one_malformed_call_leaves_the_calls_of_others(tmp_path):
    lines = [line_of(10, "A", "G", ["1/1", "q/1", "0/1"]), line_of(20, "C", "T", ["1/1", "0/0", "?"])]
    assert calls_of(open_genotypes(write_vcf(tmp_path / "c.vcf", lines, 3), None)) == [
        [2, 2], [-1, 0], [1, -1],
    ]  # fmt: skip


def test_no_text_makes_a_line_fail():
    random = np.random.default_rng(0)
    signs = np.frombuffer(b"01./|:\tx\n", np.uint8)
    for _ in range(2000):
        tail = bytes(random.choice(signs, random.integers(0, 30)))
        people = int(random.integers(0, 6))
        first, second = parse_calls(b"1\t1\t.\tA\tG\t.\t.\t.\tGT\t" + tail, people)
        assert len(first) == len(second) == people
        assert (first >= -1).all()


def test_a_person_changes_no_call_of_another():
    before = b"1\t1\t.\tA\tG\t.\t.\t.\tGT\t0/1\t%s\t1/1\t0/0"
    kept = [0, 2, 3]
    plain = [part[kept].tolist() for part in parse_calls(before % b"0/0", 4)]
    for odd in (b"", b".", b"x", b"1", b"0/1/1:99", b"/", b"999999/1"):
        assert [part[kept].tolist() for part in parse_calls(before % odd, 4)] == plain


def test_a_bcf_is_read_as_its_vcf(tmp_path):
    from cyvcf2 import VCF, Writer

    calls = ["0/0", "0|1", "1/1", "./.", "./1"]
    lines = [line_of(10, "A", "G", calls), line_of(20, "C", "T,G", ["0/2", "1/2", "2/2", "1/1", "0/0"])]
    path = write_vcf(tmp_path / "c.vcf", lines, 5)
    read = VCF(str(path))
    out = Writer(str(tmp_path / "c.bcf"), read, mode="wb")
    for record in read:
        out.write_record(record)
    out.close()
    assert calls_of(open_genotypes(tmp_path / "c.bcf", None)) == calls_of(open_genotypes(path, None))


def test_both_layouts_of_zarr(tmp_path):
    import zarr

    plain = np.array([[0, 1], [2, -1], [1, 1]], np.int8)
    zarr.save_array(str(tmp_path / "a.zarr"), plain)
    assert calls_of(open_genotypes(tmp_path / "a.zarr", None)) == plain.tolist()
    group = zarr.open_group(str(tmp_path / "b.zarr"), mode="w", zarr_format=2)
    for name, values in {
        "call_genotype": np.array([[[0, 0], [1, 1], [0, 1]], [[1, 0], [-1, 0], [1, -2]]], np.int8),
        "variant_position": np.array([10, 20], np.int32),
        "variant_contig": np.array([0, 0], np.int8),
        "variant_allele": np.array([["A", "G"], ["C", "T"]]),
        "contig_id": np.array(["chr1"]),
    }.items():
        group.create_array(name, data=values)
    source = open_genotypes(tmp_path / "b.zarr", read_sites(SITES))
    assert calls_of(source) == [[0, 1], [2, -1], [1, 2]]


def test_an_allele_that_nobody_has_is_no_reason_to_refuse(tmp_path):
    """A file names no such allele, so a refusal would say that nobody has it."""
    lines = [line_of(10, "A", ".", ["0/0", "./."]), line_of(20, "C", "T", ["0/1", "0/0"])]
    source = open_genotypes(write_vcf(tmp_path / "c.vcf", lines, 2), read_sites(SITES))
    assert calls_of(source) == [[0, 1], [-1, 0]]


@pytest.mark.parametrize("dtype", ["f4", "U2"])
def test_a_zarr_store_with_other_cells_than_whole_numbers_is_refused(tmp_path, dtype):
    group = pytest.importorskip("zarr").open_group(str(tmp_path / "b.zarr"), mode="w", zarr_format=2)
    for name, values in {
        "call_genotype": np.zeros((1, 2, 2), dtype), "variant_position": np.array([10]),
        "variant_allele": np.array([["A", "G"]]), "variant_contig": np.array([0]),
        "contig_id": np.array(["1"]),
    }.items():  # fmt: skip
        group.create_array(name, data=values)
    with pytest.raises(tc.TacitError) as refused:
        tc.genotypes(tmp_path / "b.zarr", budget=tc.Budget(rho=1))
    assert refused.value.code == "bad-genotypes"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([line_of(10, "A", "G", ["0/0"])], "no variant at 1:20 C>T"),
        ([line_of(10, "A", "G", ["0/0"]), line_of(20, "G", "A", ["0/0"])], "other strand"),
        ([line_of(10, "A", "G", ["0/0"]), line_of(20, "C", "A", ["0/0"])], "frequencies would be of another"),
        ([line_of(10, "A", "G", ["0/0"]), line_of(20, "T", "C", ["0/0"])], "frequencies would be of another"),
    ],
)
def test_other_alleles_than_declared_are_refused_before_a_charge(tmp_path, lines, words):
    path = write_vcf(tmp_path / "c.vcf", lines, 1)
    with pytest.raises(tc.TacitError) as refused:
        tc.genotypes(path, variants=SITES, budget=tc.Budget(rho=1))
    assert refused.value.code == "sites-differ"
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.vcf", "chr1\t10\n"),
        ("b.vcf", "##fileformat=VCFv4.2\n1\t10\t.\tA\tG\n"),
        ("c.vcf", HEAD + "s0\n1\tten\t.\tA\tG\t.\t.\t.\tGT\t0/0\n"),
        ("d.vcf", HEAD + "s0\n"),
        ("e.vcf.gz", "\x1f\x8b nothing"),
        (
            "j.vcf.gz",
            gzip.compress(b"##fileformat=VCFv4.2\n" * 9, mtime=0)[:20].decode("latin-1") + "xxxxxxxx",
        ),
        ("f.bcf", "nothing"),
        ("g.bed", "\x6c\x1b\x00"),
        ("h.txt", "0 1 2"),
        ("i.zarr", "nothing"),
    ],
)
def test_a_bad_file_is_refused_at_its_declaration(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="latin-1")
    for other in ("g.bim", "g.fam"):
        (tmp_path / other).write_text("")
    with pytest.raises(tc.TacitError) as refused:
        tc.genotypes(tmp_path / name, budget=tc.Budget(rho=1))
    assert refused.value.code == "bad-genotypes"


def test_masked_and_odd_cells_of_an_array_are_missing():
    masked = np.ma.masked_array([[0, 1], [2, 2]], mask=[[False, True], [False, False]])
    assert calls_of(open_genotypes(masked, None)) == [[0, -1], [2, 2]]
    odd = np.array([["1", "x"], [None, 2.0]], object)
    assert calls_of(open_genotypes(odd, None)) == [[1, -1], [-1, 2]]


def test_one_word_in_a_list_changes_no_other_cell():
    """NumPy would turn all cells into words, and True into "True", which is not a number."""
    assert calls_of(open_genotypes([[True, False], [True, "x"]], None)) == [[1, 0], [1, -1]]
    assert calls_of(open_genotypes([[True, False], [True, True]], None)) == [[1, 0], [1, 1]]


def test_a_word_in_a_masked_array_is_missing():
    words = np.ma.masked_array(np.array([["1", "x"], ["2", "0"]]), mask=[[0, 0], [1, 0]])
    assert calls_of(open_genotypes(words, None)) == [[1, -1], [-1, 0]]


@pytest.mark.parametrize("people", [0, 2])
def test_an_arrow_table_has_a_column_for_each_variant(people):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"a": arrow.array([0, None][:people], "int8"), "b": ["2", "x"][:people]})
    assert calls_of(open_genotypes(table, None)) == [[0, 2], [-1, -1]][:people]


def test_a_sparse_matrix_is_read_by_columns():
    sparse = pytest.importorskip("scipy.sparse")
    calls = np.array([[0, 2, 1], [0, 0, -1]])
    for kind in (sparse.csr_matrix, sparse.coo_array, sparse.csc_array):
        assert calls_of(open_genotypes(kind(calls), None)) == calls.tolist()


@pytest.mark.parametrize("shape", [(1234,), (1234, 0), (1234, 5, 2)])
def test_the_refusal_of_an_array_does_not_tell_how_many_people_there_are(shape):
    with pytest.raises(tc.TacitError) as refused:
        tc.genotypes(np.zeros(shape, np.int8), budget=tc.Budget(rho=1))
    assert "1234" not in str(refused.value)
    assert "1,234" not in str(refused.value)


@pytest.mark.parametrize("people", [0, 1])
def test_a_cohort_of_nobody_is_released_like_any_other(tmp_path, people):
    """With a private number of people, the last person who leaves must not change what happens."""
    bed = tmp_path / "c.bed"
    bed.write_bytes(b"\x6c\x1b\x01" + b"\x00\x00" * people)
    (tmp_path / "c.bim").write_text("1 a 0 10 G A\n1 b 0 20 T C\n")
    (tmp_path / "c.fam").write_text("f p 0 0 0 -9\n" * people)
    head = HEAD.rstrip("\t") + "".join("\ts" * people) + "\n"
    rows = (line_of(at, ref, alt, ["0/1"] * people) for at, ref, alt in ((10, "A", "G"), (20, "C", "T")))
    (tmp_path / "c.vcf").write_text(head + "".join(f"{row}\n" for row in rows))
    for source in (bed, tmp_path / "c.vcf", np.zeros((people, 2), np.int8)):
        cohort = tc.genotypes(
            source, clusters=["a"] * people, cluster_names=["a", "b"], budget=tc.Budget(rho=9)
        )
        for calls in (False, True):
            plan = cohort.frequencies(by="cluster", reference=[0.1, 0.2], calls=calls).plan(rho=1)
            assert len(plan.release()) == 4
        assert len(cohort.hardy_weinberg().plan(rho=1).release()) == 2
        assert len(cohort.missingness(clip=1).plan(rho=1).release()) == 2
