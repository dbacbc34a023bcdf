"""The files of deploy/: not root, nothing writable but the volumes, units that systemd accepts."""

import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from tacit.service import ServiceSettings

DEPLOY = Path(__file__).parents[4] / "deploy"


def test_the_container_does_not_run_as_root_and_has_volumes():
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    words = [line.split() for line in lines if line and not line.startswith(("#", " "))]
    assert ["USER", "10340:10340"] in words
    after = words[words.index(["USER", "10340:10340"]) :]
    assert all(line[0] != "RUN" for line in after)
    assert any(line[0] == "VOLUME" and "/var/lib/tacit" in line[1] for line in words)
    assert any(line[0] == "HEALTHCHECK" for line in words)


def test_the_compose_file_names_settings_that_exist():
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    service = compose["services"]["tacit"]
    known = {f"TACIT_SERVICE_{one.name.upper()}" for one in fields(ServiceSettings)}
    assert {name.removesuffix("_FILE") for name in service["environment"]} <= known
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert [mount for mount in service["volumes"] if ":/data" in mount] == ["./data:/data:ro"]
    assert set(service["secrets"]) <= set(compose["secrets"])
    assert not any("password" in str(value).lower() for value in service["environment"].values())


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_units(tmp_path):
    names = ["tacit.service", "tacit-drawer.service", "tacit-drawer.slice"]
    for name in names:
        text = (DEPLOY / "systemd" / name).read_text()
        (tmp_path / name).write_text(text.replace("/opt/tacit/bin/tacit", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", *(str(tmp_path / name) for name in names)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_web_side_has_no_way_to_the_data_and_the_runner_only_reads_it():
    web = (DEPLOY / "systemd" / "tacit.service").read_text()
    runner = (DEPLOY / "systemd" / "tacit-drawer.service").read_text()
    assert "InaccessiblePaths=-/srv/tacit-data" in web
    assert "--no-runner" in web
    assert "ReadOnlyPaths=/etc/tacit -/srv/tacit-data" in runner
    assert "Slice=tacit-drawer.slice" in runner
    for unit in (web, runner):
        assert "ProtectSystem=strict" in unit
        assert "NoNewPrivileges=yes" in unit
