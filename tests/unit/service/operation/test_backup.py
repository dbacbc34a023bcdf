"""Backup and restore: what belongs together is copied, the key apart, the witness never."""

from dataclasses import replace
from fractions import Fraction

import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.service._service import Service
from tacit.service._times import later_text, now_text
from tacit.service.operation import back_up, readiness, restore


@pytest.fixture
def used(settings):
    """A service with a charge, a long release, a session and a token."""
    service = Service(settings)
    service.ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=3))
    service.ledger.draw("visits", tc.Cost.pure(1), plan="p1", compute=lambda _: b"x" * 3_000_000)
    with service.database.change() as change:
        change.run("INSERT INTO users (id, name, shown, created) VALUES ('u_1', 'ana', 'Ana', ?)", now_text())
        change.run(
            "INSERT INTO sessions (digest, person, csrf, created, expires) VALUES ('d', 'u_1', '', ?, ?)",
            now_text(), later_text(hours=1),
        )  # fmt: skip
        change.run(
            "INSERT INTO tokens (id, person, label, digest, scopes, created, expires)"
            " VALUES ('t_1', 'u_1', 'l', 'd', 'read', ?, ?)",
            now_text(), later_text(hours=1),
        )  # fmt: skip
    yield service
    service.close()


def test_a_backup_of_a_running_service_can_be_used_elsewhere(used, settings, tmp_path):
    report = back_up(settings, tmp_path / "copy", with_key=True)
    assert set(report.copied) >= {"service.db", "service.ledger", "service.ledger.key"}
    assert any(name.startswith("service.ledger.artifacts/") for name in report.copied)
    assert not list((tmp_path / "copy").rglob("*witness*"))
    assert all(file.stat().st_mode & 0o077 == 0 or file.is_dir() for file in (tmp_path / "copy").iterdir())
    elsewhere = replace(settings, folder=tmp_path / "elsewhere", witness=str(tmp_path / "new.witness"))
    told = restore(elsewhere, tmp_path / "copy")
    assert any("not older than its witness" in words for words in told.left)
    service = Service(elsewhere)
    assert service.ledger.paid_release("visits", "p1").payload == b"x" * 3_000_000
    assert service.ledger.remaining("visits").epsilon == 2
    assert service.database.rows("SELECT * FROM sessions") == []
    assert service.database.row("SELECT revoked FROM tokens") == {"revoked": 1}
    assert readiness(service.database, service.ledger)["ledger"] == "ok"
    service.close()


def test_the_key_is_kept_apart_unless_asked(used, settings, tmp_path):
    report = back_up(settings, tmp_path / "copy")
    assert not list((tmp_path / "copy").rglob("*key*"))
    assert any("service.ledger.key" in words for words in report.left)
    elsewhere = replace(settings, folder=tmp_path / "elsewhere")
    with pytest.raises(TacitError) as refused:
        restore(elsewhere, tmp_path / "copy")
    assert refused.value.code == "ledger-key"
    assert not elsewhere.folder.exists()
    restore(elsewhere, tmp_path / "copy", key=settings.folder / "service.ledger.key")


def test_an_old_copy_in_the_place_of_the_newest_is_read_only(used, settings, tmp_path):
    back_up(settings, tmp_path / "copy")
    used.ledger.charge("visits", tc.Cost.pure(1))
    used.close()
    for file in settings.folder.glob("service.*"):
        if file.suffix in {".db", ".ledger"} or "-" in file.name:
            file.unlink()
    told = restore(settings, tmp_path / "copy")
    assert any("read-only" in words for words in told.left)
    assert any("continue-from-backup" in words for words in told.left)
    service = Service(settings)
    assert readiness(service.database, service.ledger)["ledger"] == "ledger-rolled-back"
    with pytest.raises(TacitError):
        service.ledger.charge("visits", tc.Cost.pure(1))
    assert service.ledger.paid_release("visits", "p1") is not None  # what was paid for stays readable
    service.close()


def test_a_restore_replaces_nothing_and_takes_no_changed_file(used, settings, tmp_path):
    back_up(settings, tmp_path / "copy", with_key=True)
    with pytest.raises(TacitError) as refused:
        restore(settings, tmp_path / "copy")
    assert refused.value.code == "cannot-write"
    (tmp_path / "copy" / "service.db").write_bytes(b"other")
    elsewhere = replace(settings, folder=tmp_path / "elsewhere")
    with pytest.raises(TacitError) as refused:
        restore(elsewhere, tmp_path / "copy")
    assert refused.value.code == "bad-parameter"
    assert not elsewhere.folder.exists()


def test_a_manifest_cannot_name_files_elsewhere(used, settings, tmp_path):
    import json

    back_up(settings, tmp_path / "copy", with_key=True)
    file = tmp_path / "copy" / "manifest.json"
    manifest = json.loads(file.read_text())
    (tmp_path / "secret").write_text("x")
    manifest["files"]["../secret"] = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    file.write_text(json.dumps(manifest))
    with pytest.raises(TacitError):
        restore(replace(settings, folder=tmp_path / "elsewhere"), tmp_path / "copy")


def test_a_backup_needs_a_new_folder(used, settings, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TacitError) as refused:
        back_up(settings, tmp_path)
    assert refused.value.code == "cannot-write"


def test_a_backup_of_a_service_that_never_ran_says_which_folder_it_wants(settings, tmp_path):
    with pytest.raises(TacitError, match="has run: tacit serve --folder FOLDER backup TARGET"):
        back_up(replace(settings, folder=tmp_path / "none"), tmp_path / "copy")


def test_a_backup_says_how_to_copy_what_is_on_a_server(settings, tmp_path):
    place = "postgresql://tacit:S3CRET@db.example/tacit"
    report = back_up(replace(settings, database=place, ledger=place), tmp_path / "copy")
    assert sum("pg_dump" in words for words in report.left) == 2
    assert "S3CRET" not in "".join(report.left)


def test_a_backup_while_others_write_is_one_state(used, settings, tmp_path):
    import threading

    stop = threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            number += 1
            receipt = used.ledger.charge("visits", tc.Cost.pure(Fraction(1, 100_000)), key=f"k{number}")
            with used.database.change() as change:
                change.run(
                    "INSERT INTO facts (name, fact) VALUES (?, ?)", f"k{number}", str(receipt.head.count)
                )

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for n in range(5):
            back_up(settings, tmp_path / f"copy{n}", with_key=True)
    finally:
        stop.set()
        thread.join()
    for n in range(5):
        elsewhere = replace(
            settings, folder=tmp_path / f"elsewhere{n}", witness=str(tmp_path / f"{n}.witness")
        )
        restore(elsewhere, tmp_path / f"copy{n}")
        service = Service(elsewhere)
        known = service.database.rows("SELECT fact FROM facts WHERE name LIKE 'k%'")
        assert all(int(row["fact"]) <= service.ledger.head.count for row in known)
        assert service.ledger.verify().ok
        service.close()


def test_the_line_for_a_server_names_its_port_and_no_password(settings, tmp_path):
    from tacit.service.operation._backup import _dump

    line = _dump("ledger", "postgresql://tacit:secret@[::1]:5499/tacit?sslmode=require&password=s", tmp_path)
    assert "'postgresql://tacit@[::1]:5499/tacit?sslmode=require'" in line
    assert "'postgresql://db/tacit'" in _dump("ledger", "postgresql://db/tacit", tmp_path)
    assert "secret" not in line
