"""One cell changes nothing for others: no warning, no refusal, no other call. Cut-off files are refused."""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from tacit.genomes._sources import open_genotypes
from tacit.genomes._summary_statistics import PhenotypeRandomizer


class Refusing:
    """A cell that fails at everything that can be done with it."""

    def __float__(self):
        raise RuntimeError

    def __str__(self):
        raise RuntimeError


CELLS = [
    1e308, -1e308, 10**400, 10**5000, float("inf"), float("nan"), "x", "9" * 5000, b"1", None, (1,), [1, 2],
    [], {}, np.array([1.0]), np.array(1.0), np.complex64(1), 1j, np.ma.masked, Decimal("sNaN"),
    Fraction(10**400), np.datetime64("NaT"), Refusing(),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _warnings_are_failures():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def calls_of(source):
    opened = open_genotypes(source, None)
    read = np.full((opened.people(), len(opened.sites)), -9)
    for block in opened.blocks():
        read[:, block.places] = block.genotypes
    return read


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: type(cell).__name__)
def test_a_cell_of_a_list_changes_no_call_of_others(cell):
    rows = [[0, 1, 2], [cell, 2, 1], [1, 0, 0]]
    array = np.empty((3, 3), object)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            array[i, j] = value
    for source in (rows, tuple(map(tuple, rows)), array):
        read = calls_of(source)
        assert read[0].tolist() == [0, 1, 2]
        assert read[1].tolist()[1:] == [2, 1]
        assert read[2].tolist() == [1, 0, 0]


def test_a_list_is_read_cell_by_cell_from_an_arrow_table_too():
    arrow = pytest.importorskip("pyarrow")
    for cells in ([[1], [2]], [[1, 2], [0]], [None, [1]]):
        table = arrow.table({"a": arrow.array(cells, arrow.list_(arrow.int8())), "b": [0, 2]})
        assert calls_of(table).tolist() == [[-1, 0], [-1, 2]]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: type(cell).__name__)
def test_a_phenotype_or_a_label_changes_no_answer_of_others(cell):
    trait = PhenotypeRandomizer(Fraction(3), 170.0, 1e-3)
    answers = trait.answers([169.0, cell, 171.0], 3)
    assert answers.tolist()[::2] == trait.answers([169.0, None, 171.0], 3).tolist()[::2]
    disease = PhenotypeRandomizer(Fraction(3))
    assert disease.answers([1, cell, 0], 3).tolist()[::2] == [1, 0]
    cohort = tc.genotypes(
        [[0, 1], [1, 2], [2, 0]], clusters=["a", cell, "b"], cluster_names=["a", "b"], budget=tc.Budget(rho=9)
    )
    assert cohort._cluster_codes(3).tolist() == [0, -1, 1]
    assert len(cohort.frequencies(by="cluster").plan(rho=1).release()) == 4


def test_a_masked_phenotype_is_missing():
    masked = np.ma.masked_array([1.0, 1.0, 0.0], mask=[False, True, False])
    assert PhenotypeRandomizer(Fraction(3)).answers(masked, 3).tolist() == [1, 0, 0]


HEAD = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ta\tb\tc\n"
FIRST = "1\t10\t.\tA\tG\t.\t.\t.\tGT\t0/0\t0/1\t1/1\n"


@pytest.mark.parametrize("tail", ["", "\t0/1", "\t0/1\t0/1", "\t0/1\t0/1\t0/0\t0/0", "\t0/1\t0/1\t0/0\t"])
def test_a_line_that_was_cut_off_is_refused_before_anything_is_charged(tmp_path, tail):
    path = tmp_path / "a.vcf"
    path.write_text(HEAD + FIRST + "1\t20\t.\tC\tT\t.\t.\t.\tGT" + tail + "\n")
    ledger = tc.Ledger.memory()
    with pytest.raises(tc.TacitError, match="does not have one field for each sample") as refused:
        tc.genotypes(path, budget=tc.Budget(rho=1), ledger=ledger)
    assert refused.value.code == "bad-genotypes"
    assert "3" not in refused.value.why  # how many people there are is private
    path.write_text(HEAD + FIRST.replace("\n", "\r\n"), newline="")
    assert calls_of(path).tolist() == [[0], [1], [2]]


@pytest.mark.parametrize("size", [3, 4, 6])
def test_a_bed_that_was_cut_off_is_refused(tmp_path, size):
    (tmp_path / "c.bed").write_bytes((b"\x6c\x1b\x01" + b"\x00" * 3)[:size])
    (tmp_path / "c.bim").write_text("1 a 0 10 G A\n1 b 0 20 T C\n")
    (tmp_path / "c.fam").write_text("f p 0 0 0 -9\n" * 3)
    with pytest.raises(tc.TacitError, match="does not fit its bim and fam") as refused:
        tc.genotypes(tmp_path / "c.bed", budget=tc.Budget(rho=1))
    assert refused.value.code == "bad-genotypes"
    (tmp_path / "c.bed").write_bytes(b"\x6c\x1b\x01" + b"\x00" * 2)
    assert calls_of(tmp_path / "c.bed").shape == (3, 2)
