"""`tacit plan` says what the ledger has left; a first question that is refused opens no account."""

import json
import shlex

import pytest

from support.command import tacit

COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture
def folder(tmp_path):
    rows = "".join(f"{n},{'FM'[n % 2]},{n % 80},{50 + n / 1000},{8 + n / 1000}\n" for n in range(200))
    (tmp_path / "people.csv").write_text("id,sex,age,lat,lon\n" + rows)
    declare(tmp_path, "10")
    return tmp_path


def declare(folder, epsilon, *more):
    said(
        "init", "people.csv", "--unit", "id", "--epsilon", epsilon, "--keys", "sex=F,M",
        "--bounds", "age=0:80", "--limit", "rows=1", *more, cwd=folder,
    )  # fmt: skip


def said(*words, cwd):
    done = tacit(*words, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(*words, cwd):
    done = tacit(*words, cwd=cwd)
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stderr


def files(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_a_plan_says_what_the_ledger_has_left_and_writes_nothing(folder):
    before = files(folder)
    assert "a budget of epsilon 10 can pay for this plan 2 times" in said(
        "plan", COUNT, "-e", "5", cwd=folder
    )
    assert files(folder) == before
    said("query", COUNT, "-e", "9", cwd=folder)
    before = files(folder)
    told = said("plan", COUNT, "-e", "5", cwd=folder)
    assert "left now: one more question of up to epsilon 1; none like this one" in told
    assert "the budget cannot pay for this plan now: --epsilon 1 or less" in told
    assert "can pay for this plan 2 times" not in told
    told = said("plan", COUNT, "-e", "0.25", cwd=folder)
    assert "left now: one more question of up to epsilon 1; or 4 more like this one" in told
    assert "left afterwards: one more question of up to epsilon 0.75; or 3 more like this one" in told
    assert "this answer is stored: asking again is free" in said("plan", COUNT, "-e", "9", cwd=folder)
    found = json.loads(said("plan", COUNT, "-e", "5", "--json", cwd=folder))
    assert (found["fits"], found["fits_now"], found["left"]["epsilon"]) == (2, 0, "1")
    assert files(folder) == before


def test_a_plan_says_when_the_ledger_would_refuse(folder):
    said("query", COUNT, "-e", "1", cwd=folder)
    config = (folder / "tacit.toml").read_text()
    (folder / "tacit.toml").write_text(config.replace("{epsilon = 10}", "{epsilon = 20}"))
    told = said("plan", COUNT, "-e", "5", cwd=folder)
    assert (
        "the ledger has a budget of epsilon 10 for this dataset, but the config declares epsilon 20" in told
    )
    (folder / "tacit.ledger").write_bytes(b"damaged")
    assert "what is left is not known" in said("plan", COUNT, "-e", "5", cwd=folder)


def test_a_plan_knows_an_account_above_the_dataset(folder):
    config = (folder / "tacit.toml").read_text()
    above = ("budget", "open", "tacit.ledger", "--account", "town", "--unit", "id", "--epsilon", "2")
    said("query", COUNT, "-e", "1", cwd=folder)  # there is a ledger
    said(*above, cwd=folder)
    config = config.replace("[datasets.people]\n", '[datasets.people]\nparent = "town"\n')
    (folder / "tacit.toml").write_text(config.replace("datasets.people", "datasets.folk"))
    told = said("plan", "SELECT COUNT(*) AS n FROM folk", "-e", "5", cwd=folder)
    assert "left now of town: one more question of up to epsilon 2; none like this one" in told
    assert "cannot pay for this plan now: --epsilon 2 or less" in told
    refused("query", "SELECT COUNT(*) AS n FROM folk", "-e", "5", cwd=folder)
    assert "folk" not in said("budget", cwd=folder)


MAP = ("map", "people.csv", "--box", "50", "8", "51", "9", "--grid", "2x2")
GRAPH = ("graph", "people.csv", "edges", "--unit", "edge", "--columns", "id,age", "--nodes", "300")
TOO_DEAR = {
    "query": ("query", COUNT, "-e", "20"),
    "map": (*MAP, "-e", "5", "--budget", "1"),
    "graph": (*GRAPH, "-e", "5", "--budget", "1"),
}


@pytest.mark.parametrize("case", TOO_DEAR)
def test_a_refused_first_question_opens_no_account(folder, case):
    told = refused(*TOO_DEAR[case], cwd=folder)
    assert "does not fit into what is left" in told
    assert not (folder / "tacit.ledger").exists()
    declare(folder, "25", "--force")
    said("query", COUNT, "-e", "20", cwd=folder)  # the corrected budget holds


def test_a_refused_first_question_about_genotypes_opens_no_account(folder):
    sites = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ta\tb\n"
    (folder / "c.vcf").write_text(sites + "1\t5\t.\tA\tG\t.\t.\t.\tGT\t0/1\t1/1\n")
    told = refused("genome", "frequencies", "c.vcf", "-e", "5", "--budget", "1", cwd=folder)
    assert "does not fit into what is left" in told
    assert not (folder / "tacit.ledger").exists()


def test_the_file_of_genotypes_is_checked_before_a_budget_is_asked_for(folder):
    told = refused("genome", "frequencies", "nofile.vcf", "-e", "1", cwd=folder)
    assert "the file nofile.vcf does not exist" in told
    assert "budget" not in told


def test_budget_finds_the_ledger_of_a_map_without_a_config(folder):
    (folder / "tacit.toml").unlink()
    assert "does not exist" in refused("budget", cwd=folder)
    said(*MAP, "-e", "1", "--budget", "3", cwd=folder)
    assert "epsilon 2 of 3" in said("budget", cwd=folder)
    said("budget", "verify", cwd=folder)
    done = tacit("budget", cwd=folder, TACIT_CONFIG="other.toml")  # a config that was named must be there
    assert done.returncode == 2


@pytest.mark.parametrize("asked_before", [False, True])
def test_each_fix_of_synth_works_when_it_is_pasted(folder, asked_before):
    if asked_before:
        said("query", COUNT, "-e", "1", cwd=folder)
    asked = ("synth", "age,sex", "--bins", "age=4", "-e", "1")
    for price in ((), ("--delta", "1e-9")):
        told = refused(*asked, *price, cwd=folder)
        assert "the budget of 'people' has none" in told
    [fix] = [line.partition("fix: ")[2] for line in told.splitlines() if "fix: " in line]
    command, _, line = fix.partition(", and ") if asked_before else ("", "", fix)
    if asked_before:
        said(*shlex.split(command)[1:], cwd=folder)
    where, _, declared = line.partition(": ")
    assert where == "in tacit.toml, under [datasets.people]"
    config = (folder / "tacit.toml").read_text()
    (folder / "tacit.toml").write_text(config.replace("budget = {epsilon = 10}", declared))
    told = refused(*asked, cwd=folder)
    options = next(line.partition("fix: ")[2] for line in told.splitlines() if "fix: " in line).split(", or ")
    assert options[0] == "--epsilon 1 --delta 1e-9"
    for fix in options:
        said("synth", "age,sex", "--bins", "age=4", *shlex.split(fix), cwd=folder)
