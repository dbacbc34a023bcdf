"""What a start refuses and says: files that another copy has replaced, and files that others may read."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import replace
from typing import Any

import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.service._service import Service
from tacit.service._times import now_text
from tacit.service.operation import _supervisor, prepare, start_notes


@pytest.fixture
def declared(settings: Any) -> Any:
    """A service with a dataset, as the database and the ledger know it."""
    service = Service(settings)
    service.ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=3), dataset=True)
    with service.database.change() as change:
        change.run(
            "INSERT INTO datasets (name, kind, policy, created_by, created)"
            " VALUES ('visits', 'table', 1, 'u', ?)",
            now_text(),
        )
    service.close()
    return settings


def test_a_new_ledger_beside_a_database_that_knows_datasets_is_refused(declared: Any) -> None:
    prepare(declared)
    for file in declared.folder.glob("service.ledger*"):  # the witness too
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    with pytest.raises(TacitError, match="does not know the dataset 'visits'") as refused:
        prepare(declared)
    assert refused.value.code == "ledger-rolled-back"


def test_an_operator_is_told_at_each_start_that_ledger_and_witness_share_a_disk(declared: Any) -> None:
    assert any("an old copy of the disk brings back both" in note for note in start_notes(declared))
    assert start_notes(replace(declared, witness=str(declared.folder / "elsewhere" / "w"))) == []


def test_what_the_process_of_the_runner_writes_is_for_its_user_alone(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_supervisor, "_begin", lambda **_: None)
    monkeypatch.setattr("tacit.service.runner.serve_runner", lambda given: Service(given).close())
    before = os.umask(0o022)
    try:
        _supervisor.serve_runner_process(settings)
    finally:
        os.umask(before)
    files = [file for file in settings.folder.rglob("*") if file.is_file()]
    assert {"service.db", "service.ledger"} <= {file.name for file in files}
    assert [file.name for file in files if stat.S_IMODE(file.stat().st_mode) & 0o077] == []
