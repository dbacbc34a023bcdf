"""`tacit genome`: frequencies, tests of SNPs, components and missing calls, as a person would run them."""

import json

import numpy as np
import pytest

from support.command import tacit

HEAD = (
    '##fileformat=VCFv4.2\n##contig=<ID=1>\n##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n'
    "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
)

NEW = ("cohort.vcf", "--rho", "0.1", "--budget", "1", "--name", "new")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("genome")
    random = np.random.default_rng(0)
    calls = random.choice(["0/0", "0/1", "1/1", "./."], (4, 300), p=[0.5, 0.3, 0.15, 0.05])
    lines = [f"1\t{10 * i + 10}\trs{i}\tA\tG\t.\t.\t.\tGT\t" + "\t".join(row) for i, row in enumerate(calls)]
    text = HEAD + "\t".join(f"s{i}" for i in range(300)) + "\n" + "\n".join(lines) + "\n"
    (place / "cohort.vcf").write_text(text, encoding="utf-8")
    table = "".join(f"1,{10 * i + 10},A,G,0.3\n" for i in range(4))
    (place / "sites.csv").write_text("chromosome,position,ref,alt,frequency\n" + table, encoding="utf-8")
    (place / "strand.csv").write_text("chromosome,position,ref,alt\n1,10,T,C\n", encoding="utf-8")
    (place / "clusters.txt").write_text("north\nsouth\n" * 150, encoding="utf-8")
    (place / "status.txt").write_text("1\n0\n" * 150, encoding="utf-8")
    (place / "height.txt").write_text("\n".join(f"{150 + i % 40}" for i in range(300)), encoding="utf-8")
    ages = "".join(f"{20 + i % 50},{i % 2}\n" for i in range(300))
    (place / "covariates.csv").write_text("age,sex\n" + ages, encoding="utf-8")
    return place


def test_frequencies_are_written_as_vcf(folder):
    asked = ("genome", "frequencies", "cohort.vcf", "--rho", "0.1")
    done = tacit(*asked, "--budget", "5", "--out", "af.vcf", "--certificate", "af.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "written: af.vcf" in done.stdout
    lines = (folder / "af.vcf").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[1] for line in lines if line[0] != "#"] == ["10", "20", "30", "40"]
    assert tacit("verify", "af.json", "--ledger", "tacit.ledger", cwd=folder).returncode == 0
    again = tacit(*asked, "--out", "again.vcf", cwd=folder)
    assert again.returncode == 0, again.stderr  # the stored answer, free
    assert (folder / "again.vcf").read_text() == (folder / "af.vcf").read_text()


def test_frequencies_by_cluster_around_a_reference(folder):
    done = tacit(
        "genome", "frequencies", "cohort.vcf", "--rho", "0.5", "--budget", "5", "--name", "clusters",
        "--variants", "sites.csv", "--reference", "frequency", "--clusters", "clusters.txt",
        "--cluster-names", "north,south", "--by", "cluster", "--plot", "af.png", "--json", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    rows = json.loads(done.stdout)["rows"]
    assert [row["cluster"] for row in rows] == ["north", "south"] * 4
    assert (folder / "af.png").stat().st_size > 1000


@pytest.mark.parametrize("question", ["hardy-weinberg", "missingness", "components"])
def test_the_other_questions_answer_and_plan(folder, question):
    asked = ("genome", question, "cohort.vcf", "--rho", "0.5", "--budget", "5", "--name", question)
    plan = tacit(*asked, "--plan", cwd=folder)
    assert plan.returncode == 0, plan.stderr
    assert ("4 of 4, a public list" if question == "components" else "4, a public list") in plan.stdout
    done = tacit(*asked, "--out", "answer.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert len((folder / "answer.csv").read_text(encoding="utf-8").splitlines()) == 5


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("cohort.vcf", "--rho", "0.1", "--name", "new"), "bad-parameter"),
        (("cohort.vcf", "--budget", "1", "--name", "new"), "bad-parameter"),
        (("cohort.txt", "--rho", "0.1", "--budget", "1"), "bad-genotypes"),
        ((*NEW, "--variants", "strand.csv"), "sites-differ"),
        (("cohort.vcf", "--rho", "0.1", "--budget", "1", "--out", "af.txt"), "bad-parameter"),
        ((*NEW, "--clusters", "none.txt"), "bad-parameter"),
    ],
)  # fmt: skip
def test_a_refusal_names_its_code(folder, words, code):
    done = tacit("genome", "frequencies", *words, "--json", cwd=folder)
    assert done.returncode == 2, done.stdout + done.stderr
    assert json.loads(done.stdout)["error"]["code"] == code


def test_the_strongest_snps_are_chosen(folder):
    asked = ("genome", "top", "cohort.vcf", "--status", "status.txt", "--epsilon", "1", "--name", "cases")
    few = tacit(*asked, "--budget", "3", "--plan", cwd=folder)
    assert "fix: --k 4" in few.stderr  # there are four SNPs, and by default five are chosen
    plan = tacit(*asked, "--budget", "3", "--k", "2", "--plan", cwd=folder)
    assert plan.returncode == 0, plan.stderr
    assert "150 cases, 150 controls" in " ".join(plan.stdout.split())
    done = tacit(*asked, "--budget", "3", "-k", "2", "--out", "top.csv", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr + done.stdout
    told = json.loads(done.stdout)
    assert told["certificate"]["dataset"]["unit"] == "person"
    assert len({row["variant"] for row in told["rows"]}) == 2
    assert len((folder / "top.csv").read_text(encoding="utf-8").splitlines()) == 3


def test_summary_statistics_are_written_and_have_an_account_of_their_own(folder):
    asked = (
        "genome", "summary", "cohort.vcf", "--phenotype", "height.txt", "--trait", "170, 10", "-e", "3",
        "--covariates", "covariates.csv", "--budget", "3",
    )  # fmt: skip
    done = tacit(*asked, "--adjust", "age,sex", "--out", "height.tsv", "--plot", "height.png", cwd=folder)
    assert done.returncode == 0, done.stderr + done.stdout
    assert len((folder / "height.tsv").read_text(encoding="utf-8").splitlines()) == 5
    assert (folder / "height.tsv-meta.yaml").exists()
    again = tacit(*asked, "--json", cwd=folder)  # other covariates are free
    assert again.returncode == 0, again.stderr + again.stdout
    told = json.loads(again.stdout)
    assert told["certificate"]["dataset"] == {
        "name": "cohort phenotypes", "version": 1, "unit": "phenotype", "adjacency": "replace",
    }  # fmt: skip
    assert [row["position"] for row in told["rows"]] == [10, 20, 30, 40]
    other = tacit("genome", "frequencies", "cohort.vcf", "--epsilon", "1", "--name", "cohort phenotypes",
                  "--json", cwd=folder)  # fmt: skip
    assert json.loads(other.stdout)["error"]["code"] == "account-differs"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("top", "cohort.vcf", "--status", "none.txt", "-e", "1"), "bad-parameter"),
        (("top", "cohort.vcf", "--status", "sites.csv", "-e", "1"), "bad-parameter"),
        (("top", "cohort.vcf", "--status", "status.txt", "-e", "1", "--test", "t"), "bad-parameter"),
        (("top", "cohort.vcf", "--status", "status.txt"), "bad-parameter"),
        (
            ("summary", "cohort.vcf", "--phenotype", "height.txt", "-e", "1", "--trait", "170"),
            "bad-parameter",
        ),
        (
            ("summary", "cohort.vcf", "--phenotype", "height.txt", "-e", "1", "--adjust", "age"),
            "unknown-column",
        ),
        (
            ("summary", "cohort.vcf", "--phenotype", "height.txt", "-e", "1", "--out", "a.csv"),
            "bad-parameter",
        ),
    ],
)
def test_a_refusal_about_associations_names_its_code(folder, words, code):
    done = tacit("genome", *words, "--budget", "1", "--name", f"refused {words[0]}", "--json", cwd=folder)
    assert done.returncode == 2, done.stdout + done.stderr
    assert json.loads(done.stdout)["error"]["code"] == code


def test_a_plan_needs_no_budget_and_makes_no_ledger(folder, tmp_path):
    here = str(folder / "cohort.vcf")
    done = tacit("genome", "frequencies", here, "--rho", "0.1", "--plan", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "rho 0.1" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["sample,cluster\ns0,north\n", "s0\tnorth\n"])
def test_a_table_of_clusters_is_refused_before_a_charge(folder, tmp_path, content):
    (tmp_path / "clusters.csv").write_text(content, encoding="utf-8")
    done = tacit(
        "genome", "frequencies", str(folder / "cohort.vcf"), "--rho", "0.1", "--budget", "1",
        "--clusters", "clusters.csv", "--cluster-names", "north,south", "--by", "cluster", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    assert "one label in each line" in done.stderr
    assert not (tmp_path / "tacit.ledger").exists()


def test_labels_are_read_without_the_mark_of_their_encoding(tmp_path):
    from tacit.cli._fields import read_labels

    (tmp_path / "labels.txt").write_bytes(b"\xef\xbb\xbfnorth\r\nsouth \r\n")
    assert read_labels("--clusters", tmp_path / "labels.txt") == ["north", "south"]
