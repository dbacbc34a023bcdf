"""``tacit serve check``: what is wrong is found before people find it."""

from dataclasses import replace

import pytest

from tacit.service import ListedSource
from tacit.service._service import Service
from tacit.service.operation import examine_service


@pytest.fixture
def good(settings):
    Service(settings).close()
    settings.folder.chmod(0o700)
    return settings


def states(settings):
    return {finding.about: finding.state for finding in examine_service(settings)}


def test_a_good_service_has_nothing_wrong(good):
    found = states(good)
    assert "wrong" not in found.values()
    assert found["source visits"] in {"ok", "note"}
    assert found["key"] == found["ledger"] == found["database"] == "ok"
    assert found["drawer"] == "note"


def test_permissions_that_are_too_wide_are_found(good):
    good.folder.chmod(0o755)
    (good.folder / "service.ledger.key").chmod(0o644)
    found = states(good)
    assert found["folder"] == found["key"] == "wrong"


def test_a_missing_source_is_found(good, tmp_path):
    sources = {"gone": ListedSource("gone", str(tmp_path / "gone.parquet"))}
    assert states(replace(good, sources=sources))["source gone"] == "wrong"
    elsewhere = {"far": ListedSource("far", "claims", engine="postgresql://db/x")}
    assert states(replace(good, sources=elsewhere))["source far"] == "note"
    assert states(replace(good, sources={}))["sources"] == "note"


def test_an_unreadable_ledger_is_found(good):
    (good.folder / "service.ledger.key").unlink()
    assert states(good)["ledger"] == "wrong"


def test_a_certificate_that_does_not_match_is_found(good, tmp_path):
    (tmp_path / "c.pem").write_text("no certificate")
    assert states(replace(good, certificate=str(tmp_path / "c.pem")))["certificate"] == "wrong"


def test_a_network_disk_is_found(good, monkeypatch):
    from tacit.service.operation import _preparation

    monkeypatch.setattr(_preparation, "_file_system", lambda _: "nfs4")
    assert states(good)["disk"] == "wrong"
    on_server = replace(good, ledger="postgresql://nobody@127.0.0.1:1/none")
    assert states(on_server)["disk"] == "ok"
