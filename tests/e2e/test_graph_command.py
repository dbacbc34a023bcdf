"""`tacit graph`: a plan, a verdict, an answer and refusals, as a person would run them."""

import json

import networkx as nx
import pytest

from support.command import tacit

ASK = ("graph", "friends.csv", "triangles", "--unit", "edge", "--nodes", "34", "--epsilon", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("graph")
    club = nx.karate_club_graph()
    rows = [f"{u},{v},{data['weight']}" for u, v, data in club.edges(data=True)]
    (place / "friends.csv").write_text("\n".join(["from,to,hours", *rows, "3,3,1", ",5,1"]) + "\n")
    labels = [f"{node},{data['club']}" for node, data in club.nodes(data=True)]
    (place / "clubs.csv").write_text("\n".join(["node,club", *labels]) + "\n")
    (place / "nodes.txt").write_text("\n".join(map(str, club)) + "\n")
    return place


def test_a_plan_charges_nothing(folder):
    done = tacit(*ASK, "--mean-degree", "4.6", "--plan", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "number of triangles" in done.stdout
    assert "verdict: with about 34 nodes of mean degree 4.6" in " ".join(done.stdout.split())
    assert not (folder / "tacit.ledger").exists()


def test_a_verdict_charges_nothing(folder):
    words = ("graph", "friends.csv", "verdict", "--unit", "edge", "--nodes", "34", "--mean-degree", "4.6")
    done = tacit(*words, "--epsilon", "0.1", cwd=folder)
    assert done.stdout.strip().endswith("too small"), done.stderr


def test_answers_are_charged_once_and_the_budget_is_kept(folder):
    first = tacit(*ASK, "--budget", "3", "--ledger", "a.ledger", "--json", cwd=folder)
    assert first.returncode == 0, first.stderr + first.stdout
    found = json.loads(first.stdout)
    assert found["left"]["epsilon"] == "2"
    assert found["rows"][0]["triangles_low"] < found["rows"][0]["triangles_high"]
    again = json.loads(tacit(*ASK, "--ledger", "a.ledger", "--json", cwd=folder).stdout)
    assert (again["rows"], again["left"]) == (found["rows"], found["left"])


def test_groups_names_weights_and_files(folder):
    shared = (
        "--unit",
        "edge",
        "--nodes",
        "@nodes.txt",
        "--epsilon",
        "1",
        "--budget",
        "9",
        "--ledger",
        "b.ledger",
    )
    mixing = tacit(
        "graph", "friends.csv", "mixing", *shared, "--group", "club=clubs.csv", "--by", "club", "--out",
        "mixing.csv", "--plot", "mixing.png", cwd=folder,
    )  # fmt: skip
    assert mixing.returncode == 0, mixing.stderr
    assert (folder / "mixing.csv").read_text().startswith("club,club_2,edges")
    assert (folder / "mixing.png").stat().st_size > 1000
    weights = tacit("graph", "friends.csv", "weights", *shared, "--weight", "hours=8", cwd=folder)
    assert "weight" in weights.stdout, weights.stderr
    stars = tacit("graph", "friends.csv", "stars", *shared, "--k", "2", "--columns", "from,to", cwd=folder)
    assert "wedges" in stars.stdout, stars.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--unit", "person"), "unit must be edge or node"),
        (("--unit", "node"), "--tau 64"),
        (("--unit", "edge", "--nodes", "many"), "--nodes 1000"),
        (("--unit", "edge", "--k", "3"), "leave --k out"),
        (("--unit", "edge", "--columns", "from,nobody"), "no column 'nobody'"),
        (("--unit", "edge", "--group", "club"), "--group class=classes.csv"),
        (("--unit", "edge", "--ledger", "new.ledger"), "add --budget 3"),
    ],
)
def test_a_refusal_can_be_typed(folder, words, said):
    done = tacit("graph", "friends.csv", "triangles", "--epsilon", "1", *words, cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_budget_in_rho_pays_for_a_question_in_rho(folder):
    words = ("graph", "friends.csv", "edges", "--unit", "edge", "--rho", "0.1", "--ledger", "rho.ledger")
    done = tacit(*words, "--budget", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "left: rho 0.9 of 1" in done.stdout
    plan = tacit(*words, "--plan", cwd=folder).stdout
    assert "left now, before this question: rho 0.9 of 1" in plan


def test_a_picture_of_an_answer_without_numbers_says_so(folder):
    """Its lack of numbers must not fail after the charge."""
    words = (
        "graph",
        "friends.csv",
        "densest",
        "--unit",
        "edge",
        "--nodes",
        "34",
        "--group",
        "club=clubs.csv",
    )
    paid = ("--by", "club", "--epsilon", "1", "--budget", "1", "--ledger", "densest.ledger")
    done = tacit(*words, *paid, "--plot", "densest.svg", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "no numbers to draw" in (folder / "densest.svg").read_text()
