"""Health, readiness and who is asking."""

import shutil
import sqlite3

import tacit as tc
from tacit.service._times import later_text
from tacit.service.operation import beat, readiness


def ready(house):
    if hasattr(house.app.state, "readiness"):
        del house.app.state.readiness  # what was found a moment ago
    answer = house.call("GET", "/api/v1/ready")
    return answer.status_code, answer.json()["checks"]


def test_health_answers_without_a_runner(house):
    assert house.call("GET", "/api/v1/health").json() == {"health": "ok"}
    assert ready(house) == (503, {"service": "ok", "ledger": "ok", "database": "ok", "drawer": "drawer-away"})


def test_a_sign_of_life_of_the_runner_makes_the_service_ready(house):
    beat(house.service.database)
    assert ready(house)[0] == 200
    with house.service.database.change() as change:
        change.run("UPDATE facts SET fact = ? WHERE name = 'drawer_seen'", later_text(seconds=-16))
    assert ready(house)[1]["drawer"] == "drawer-away"


def test_an_old_copy_of_the_ledger_is_noticed(settings, tmp_path):
    from tacit.service._service import Service

    service = Service(settings)
    place = settings.folder / "service.ledger"
    service.ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=3))
    service.ledger.close()
    shutil.copy(place, tmp_path / "old")
    with tc.Ledger.open(place) as ledger:
        ledger.charge("visits", tc.Cost.pure(1))
    for file in settings.folder.glob("service.ledger-*"):
        file.unlink()
    shutil.copy(tmp_path / "old", place)
    service.database.close()
    service = Service(settings)
    assert readiness(service.database, service.ledger)["ledger"] == "ledger-rolled-back"
    service.close()


def test_a_sealed_ledger_is_not_ready(house):
    house.service.ledger._writer.store.seal("the disk failed")
    assert readiness(house.service.database, house.service.ledger)["ledger"] == "ledger-sealed"


def test_a_ledger_whose_file_is_not_in_its_place_is_not_ready(house):
    place = house.service.settings.folder / "service.ledger"
    beat(house.service.database)
    assert ready(house)[0] == 200
    place.rename(place.with_suffix(".away"))
    assert ready(house) == (
        503, {"service": "ok", "ledger": "ledger-unavailable", "database": "ok", "drawer": "ok"}
    )  # fmt: skip
    place.write_bytes(b"another file")
    assert ready(house)[1]["ledger"] == "ledger-unavailable"
    place.with_suffix(".away").replace(place)
    assert ready(house)[0] == 200


def test_a_closed_ledger_is_not_ready(house):
    house.service.ledger.close()
    assert readiness(house.service.database, house.service.ledger)["ledger"] == "ledger-closed"


def test_a_database_that_takes_no_change_is_not_ready(house, monkeypatch):
    def refuse():
        raise sqlite3.OperationalError("attempt to write a readonly database")

    monkeypatch.setattr(house.service.database, "change", refuse)
    assert readiness(house.service.database, house.service.ledger)["database"] == "not-writable"


def test_a_probe_that_comes_often_costs_one_look(house, monkeypatch):
    looks = []
    from tacit.service.operation import _metrics

    found = _metrics.readiness
    monkeypatch.setattr(_metrics, "readiness", lambda *given: looks.append(1) or found(*given))
    for _ in range(20):
        house.call("GET", "/api/v1/ready")
    assert len(looks) <= 3


def test_a_stopping_service_is_not_ready_at_once(house):
    from dataclasses import replace
    from threading import Event

    beat(house.service.database)
    assert ready(house)[0] == 200
    stopping = Event()
    house.app.state.shared = replace(house.app.state.shared, stopping=stopping)
    stopping.set()
    answer = house.call("GET", "/api/v1/ready")
    assert (answer.status_code, answer.json()["checks"]["service"]) == (503, "stopping")


def test_whoami_names_the_person_and_the_roles(house):
    person = house.person("ana", visits="analyst", everywhere="auditor")
    answer = house.call("GET", "/api/v1/whoami", house.token("ana"))
    assert answer.json() == {"id": person, "name": "Ana", "roles": ["analyst", "auditor"]}
    assert house.call("GET", "/api/v1/whoami").status_code == 401
