"""The installed command: explain, lab and doctor, with good and bad input."""

import json
import re
import sys
import tomllib
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from support import command
from tacit.__main__ import main
from tacit.audit import lab

ROOT = Path(__file__).parents[2]
NUMBERS = {13: "thirteen", 14: "fourteen", 15: "fifteen"}


def tacit(*words, cwd=None, **environment):
    return command.tacit(*words, cwd=cwd, **{"COLUMNS": "120", **environment})


def test_what_an_epsilon_means():
    done = tacit("explain", "--epsilon", "0.5")
    assert done.returncode == 0, done.stderr
    assert "at most 62:38" in done.stdout
    assert "\x1b[" not in done.stdout  # no terminal, no colours
    assert done.stdout.count("62:38") == 1  # nothing is printed twice
    assert "more than exp(1e+09) times as likely" in tacit("explain", "--epsilon", "1e9").stdout


def test_which_epsilon_do_i_need():
    done = tacit("explain", "--n", "5000", "--bounds", "80", "200", "--statistic", "mean", "--error", "1")
    assert done.returncode == 0, done.stderr
    assert "epsilon 0.0719" in done.stdout
    assert "X" in done.stdout  # the curve with the answer marked


def test_json_is_one_value_and_nothing_else():
    meaning = json.loads(tacit("explain", "--epsilon", "0.5", "--json").stdout)
    assert meaning["epsilon"] == 0.5
    needed = json.loads(
        tacit("explain", "--statistic", "count", "--error", "5", "--confidence", "0.99", "--json").stdout
    )
    assert needed["confidence"] == 0.99
    attack = json.loads(tacit("lab", "membership", "--epsilon", "1", "--trials", "500", "--json").stdout)
    assert attack["curve"][0]["epsilon"] == 1
    health = json.loads(tacit("doctor", "--json").stdout)
    assert health["ok"] is True


def test_a_cost_with_delta_and_one_in_rho():
    for words in (("--epsilon", "1", "--delta", "1e-6"), ("--rho", "0.1", "--delta", "1e-9")):
        done = tacit("explain", *words)
        assert done.returncode == 0, done.stderr
        assert "xcept with probability" in done.stdout


def test_pages_and_pictures_are_written(tmp_path):
    done = tacit("explain", "--epsilon", "1", "--html", "page.html", "--plot", "picture.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    done = tacit("explain", "--error", "5", "--plot", "curve.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "<svg" in (tmp_path / "curve.svg").read_text()


def test_the_lab_in_short_and_one_attack_in_full(tmp_path):
    done = tacit("lab", "--trials", "500")
    assert done.returncode == 0, done.stderr
    attacks = (
        "homogeneity", "linking", "differencing", "reconstruction", "averaging", "membership", "friendship",
        "heat-map", "genome-membership", "beacon", "singling-out", "update-inversion",
        "update-membership",
    )  # fmt: skip
    for attack in attacks:
        assert re.search(rf"^{attack} ", done.stdout, re.MULTILINE), attack
    assert re.search(r"membership .* 0\.\d\d to 0\.\d\d +0\.462 +(yes|NO)", done.stdout)
    assert "vary by chance" in done.stdout
    done = tacit("lab", "homogeneity", "--k", "3", "-e", "0.5", "-e", "2", "--plot", "h.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3-anonymous" in done.stdout
    assert (tmp_path / "h.png").exists()


def test_the_doctor_says_what_is_there():
    done = tacit("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "numpy" in done.stdout
    assert "Everything works." in done.stdout


def test_the_doctor_lists_every_extra_by_its_packages():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = json.loads(tacit("doctor", "--json").stdout)["extras"]
    assert set(extras) == set(project["optional-dependencies"]) - {"docs", "lint", "test", "test-quick"}
    for extra, module in (("sklearn", "sklearn"), ("service", "fastapi"), ("plot", "matplotlib")):
        assert extras[extra] is (find_spec(module) is not None), extra


def test_the_readme_counts_the_attacks_of_the_lab(monkeypatch, capsys):
    """In this process, with a few rounds of sharpening a map: the command runs the lab in full above."""
    monkeypatch.setattr(lab, "heat_map", partial(lab.heat_map, rounds=10))
    monkeypatch.setattr(sys, "argv", ["tacit", "lab", "--trials", "100", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    attacks = json.loads(capsys.readouterr().out)
    assert f"{NUMBERS[len(attacks)]} attacks" in (ROOT / "README.md").read_text()


def test_the_doctor_verifies_a_ledger(tmp_path):
    from tacit import Budget, Cost, Ledger

    path = tmp_path / "h.ledger"
    with Ledger.open(path) as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
        ledger.charge("visits", Cost.pure(0.5))
    well = json.loads(tacit("doctor", "--ledger", str(path), "--json").stdout)
    assert well["ok"] is True
    assert "consistent" in next(check["detail"] for check in well["checks"] if check["name"] == "ledger")
    path.write_bytes(path.read_bytes()[:100])
    for where in (path, tmp_path / "missing.ledger"):
        ill = tacit("doctor", "--ledger", str(where), "--json")
        assert ill.returncode == 1, ill.stderr
        assert json.loads(ill.stdout)["ok"] is False
    assert not (tmp_path / "missing.ledger").exists()


def test_colours_only_in_a_terminal_and_never_with_no_color():
    plain = tacit("explain", "--epsilon", "1", NO_COLOR="1", FORCE_COLOR="1").stdout
    assert "\x1b[3" not in plain  # no colour codes; bold may stay


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("explain",), "needs one question"),
        (("explain", "--epsilon", "0"), "epsilon"),
        (("explain", "--epsilon", "-1"), "epsilon"),
        (("explain", "--epsilon", "nan"), "epsilon"),
        (("explain", "--epsilon", "1", "--rho", "1"), "needs one question"),
        (("explain", "--epsilon", "1", "--error", "1"), "needs one question"),
        (("explain", "--epsilon", "lots"), "--epsilon"),
        (("explain", "--certificate", "nosuch.json"), "certificate"),
        (("explain", "--statistic", "median", "--error", "1"), "statistic"),
        (("explain", "--statistic", "mean", "--error", "1"), "bounds"),
        (("explain", "--statistic", "mean", "--error", "1", "--bounds", "200", "80", "--n", "9"), "bounds"),
        (("explain", "--epsilon", "1", "--prior", "2"), "priors"),
        (("explain", "--epsilon", "1", "--html", "no/such/folder/page.html"), "could not be written"),
        (("explain", "--epsilon", "1", "--plot", "picture.nosuch"), "could not be written"),
        (("lab", "nosuch"), "nosuch"),
        (("lab", "membership", "--k", "5"), "--k"),
        (("lab", "membership", "--epsilon", "0"), "epsilons"),
        (("lab", "homogeneity", "--k", "999999"), "k must be"),
        (("lab", "--plot", "all.png"), "--plot"),
        (("lab", "membership", "--trials", "1"), "trials"),
    ],
)
def test_bad_input_is_refused_without_a_traceback(words, said, tmp_path):
    done = tacit(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []
