"""``tacit audit``, as a user runs it."""

import re

from support.command import installed, tacit


def test_an_audit_reports_a_lower_bound_and_a_verdict():
    done = installed("audit", "laplace", "--epsilon", "1", "--samples", "100000")
    assert done.returncode == 0, done.stderr
    bound = float(re.search(r"epsilon >= ([0-9.]+)", done.stdout)[1])
    assert bound >= 0.8  # and the verdict, at its own confidence, that it is not above 1
    assert "verdict: holds" in done.stdout


def test_refusals_are_clear():
    assert tacit("audit", "laplace").returncode == 2
    for words in (
        ("nosuch", "--epsilon", "1"),
        ("laplace", "--epsilon", "-1"),
        ("laplace", "--epsilon", "nan"),
    ):
        done = tacit("audit", *words)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
        assert "Traceback" not in done.stderr


def test_every_name_can_be_audited(monkeypatch):
    from typer.testing import CliRunner

    from tacit.cli import app
    from tacit.cli._attacks import _mechanisms

    monkeypatch.setattr("tacit.audit._audit._SINGLE", 200)  # the names are tried here, not the attack's power
    for name in _mechanisms():
        done = CliRunner().invoke(app, ["audit", name, "--epsilon", "1", "--samples", "1000"])
        assert done.exit_code == 0, (name, done.output)
