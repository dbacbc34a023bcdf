"""Releases made elsewhere: read strictly, compared with the ledger, shown as what they are, published."""

import copy
import json

import numpy as np
import pytest

import tacit as tc
from tacit.core import AnswerTable, Cells, Certificate, Release
from tacit.service.curation._publications import MAX_RELEASE
from unit.service.curation.test_pages import HOSTILE, Browser

PLACE = "/api/v1/datasets/visits/registered-releases"
UNVERIFIED = "Charged in another ledger; not verified here."


def fitted():
    data = {"x": [0.1, 0.4, 0.6, 0.9] * 20, "y": [0, 0, 1, 1] * 20}
    import pandas as pd

    table = tc.protect(
        pd.DataFrame(data), unit=tc.Unit.row(), name="cases", budget=tc.Budget(epsilon=2),
        bounds={"x": (0, 1), "y": (0, 1)},
    )  # fmt: skip
    return table.agg(n=tc.count(), m=tc.mean("x")).plan(epsilon=1).release()


def unbound(certificate):
    """Return a certificate as older versions wrote it: it binds no values."""
    fields = certificate.fields
    return Certificate({name: one for name, one in fields.items() if name not in {"values", "binds"}})


def trained(certificate):
    from tacit.learn import TrainedModel

    weights = {"layer.weight": np.arange(6, dtype=np.float32).reshape(2, 3)}
    return Release(TrainedModel(weights, {"steps": 5}), certificate)


def surface():
    sites = tc.points(
        tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites", box=tc.maps.EXAMPLE_BOX,
        budget=tc.Budget(epsilon=1),
    )  # fmt: skip
    return sites.grid(4, 4).plan(epsilon=1).release()


def instalment():
    flu = tc.stream(None, name="flu", level="event", start="2026-01-01", days=30, budget=tc.Budget(epsilon=1))
    flu.begin(flu.daily(cases=tc.count()).plan(epsilon=1))
    flu.append("2026-01-01", [{"age": 40}, {"age": 7}])
    return flu.release("2026-01-01")


def estimate():
    """An estimate of a survey: its shares as a table of answers, with the certificate of the randomizer."""
    local = unbound(fitted().certificate).fields
    return Release(
        AnswerTable({"answer": ("yes", "no")}, {"share": Cells((0.4, 0.6), (0.3, 0.5), (0.5, 0.7))}, 0.95),
        Certificate({**local, "filter": None, "ledger": None}),
    )


MADE = {
    "table": fitted,
    "model": lambda: trained(unbound(fitted().certificate)),
    "surface": surface,
    "instalment": instalment,
    "survey": estimate,
}


def send(house, token, release, **more):
    document = release if isinstance(release, dict) else release.to_json()
    return house.call("POST", PLACE, token, json={"release": document, **more})


@pytest.mark.parametrize("kind", MADE)
def test_a_release_of_each_kind_is_registered_shown_downloaded_and_published(house, visits, kind):
    made = MADE[kind]()
    head = house.service.ledger.head
    answer = send(house, visits["cora"], made, note="From the annual report.")
    assert answer.status_code == 201, answer.text
    assert house.service.ledger.head == head
    release = answer.json()["release"]
    found = house.call("GET", f"/api/v1/releases/{release}", visits["cora"]).json()
    assert (found["kind"], found["registered"]["charge"]) == (
        made.content.kind, "none" if kind == "survey" else "elsewhere",
    )  # fmt: skip
    assert found["registered"]["by"] == house.people["cora"]
    saved = house.call("GET", f"/api/v1/releases/{release}.json", visits["cora"]).json()
    assert saved == json.loads(json.dumps(made.to_json()))
    assert Release.from_json(saved).certificate.digest == made.certificate.digest
    for ending in ("csv", "parquet", "svg"):
        status = house.call("GET", f"/api/v1/releases/{release}.{ending}", visits["cora"]).status_code
        assert status == (404 if (kind, ending) == ("model", "svg") else 200)  # it watched no examples
    page = house.call("GET", f"/releases/{release}", visits["cora"])
    assert page.status_code == 200
    assert "Registered, not drawn here" in page.text
    assert (UNVERIFIED in page.text) == (kind != "survey")
    given = {"release": release, "title": "From elsewhere", "about": ""}
    published = house.call("POST", "/api/v1/publications", visits["cora"], json=given)
    assert published.status_code == 201, published.text
    where = published.headers["location"].removeprefix("/api/v1")
    public = house.call("GET", where)
    assert public.status_code == 200
    assert (UNVERIFIED in public.text) == (kind != "survey")
    shown = house.call("GET", f"/api/v1{where}").json()["registered"]
    assert set(shown) == {"at", "charge", "verified", "sentence"}
    assert house.call("GET", f"/api/v1{where}/release.json").json() == saved
    again = send(house, visits["cora"], made)
    assert (again.status_code, again.json()["release"]) == (200, release)
    listed = house.call("GET", PLACE, visits["cora"]).json()["releases"]
    assert [(one["release"], one["kind"]) for one in listed] == [(release, made.content.kind)]
    events = [row["what"] for row in house.service.database.rows("SELECT what FROM events")]
    assert events.count("release-registered") == 1


@pytest.fixture
def charged(house, visits):
    """A release that the service's own ledger was charged for, by a program beside the service."""
    assert visits
    data = tc.protect(
        tc.tables.example_visits(), unit="patient_id", name="visits", ledger=house.service.ledger,
        budget=house.service.ledger.account("visits").budget,
    )  # fmt: skip
    return data.agg(n=tc.count()).plan(epsilon=0.25).release(who="u_x")


def test_a_charge_in_the_ledger_of_the_service_is_verified(house, visits, charged):
    answer = send(house, visits["cora"], charged)
    assert answer.json()["registered"]["charge"] == "bound", answer.text
    assert answer.json()["registered"]["verified"]
    page = house.call("GET", f"/releases/{answer.json()['release']}", visits["cora"])
    assert "was made for these values" in page.text
    assert house.call("GET", f"/api/v1/releases/{answer.json()['release']}", visits["ana"]).status_code == 404


def forged(release):
    """Return the document of a release whose every value is larger by 10,000."""
    document = json.loads(json.dumps(release.to_json()))
    for cells in document["content"]["columns"].values():
        cells["value"] = [value + 10_000 for value in cells["value"]]
    return document


def test_forged_values_of_an_own_charge_are_refused(house, visits, charged):
    answer = send(house, visits["cora"], forged(charged))
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-release"), answer.text
    cut = forged(charged)
    del cut["certificate"]["values"]
    answer = send(house, visits["cora"], cut)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-certificate"), answer.text
    assert house.service.database.rows("SELECT id FROM releases") == []


def test_values_that_were_changed_are_never_shown_as_verified(house, visits, charged):
    said = {**forged(charged), "marks": ["non-negative whole numbers: n"]}
    answer = send(house, visits["cora"], said)
    assert answer.json()["registered"]["charge"] == "here", answer.text
    assert not answer.json()["registered"]["verified"]
    page = house.call("GET", f"/releases/{answer.json()['release']}", visits["cora"])
    assert "they were not verified" in page.text


@pytest.mark.parametrize("field", ["promised", "cost", "software", "mechanisms", "plan", "filter", "dataset"])
def test_an_edited_certificate_of_an_own_charge_is_refused(house, visits, charged, field):
    document = json.loads(json.dumps(charged.to_json()))
    edited = {
        "promised": {"epsilon": "1/8"}, "software": "tacit 9", "plan": "0" * 64, "filter": ["other"],
    }  # fmt: skip
    found = document["certificate"]
    if field in edited:
        found[field] = edited[field]
    elif field == "dataset":
        found["dataset"]["unit"] = "row"
    elif field == "cost":
        found["cost"] = {}
    else:
        found["mechanisms"] = found["mechanisms"] * 2
    answer = send(house, visits["cora"], document)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-certificate"), answer.text
    assert house.service.database.rows("SELECT id FROM releases") == []


def test_the_charge_of_another_dataset_is_not_registered_here(house, visits):
    other = tc.protect(
        tc.tables.example_visits(), unit="patient_id", name="others", ledger=house.service.ledger,
        budget=tc.Budget(epsilon=1),
    )  # fmt: skip
    answer = send(house, visits["cora"], other.agg(n=tc.count()).plan(epsilon=1).release(who="u_x"))
    assert answer.json()["code"] == "not-allowed"


def hostile():
    document = json.loads(json.dumps(fitted().to_json()))
    grid = json.loads(json.dumps(surface().to_json()))

    def changed(part, value, base=document):
        made = copy.deepcopy(base)
        *path, last = part.split(".")
        place = made
        for name in path:
            place = place[name]
        place[last] = value
        return made

    return {
        "empty": {},
        "kind": changed("kind", "os.system"),
        "room": changed("kind", "__main__"),
        "report": changed("kind", "survey-report"),
        "content": changed("content", []),
        "cells": changed("content.columns.n", {"value": [1], "low": [], "high": []}),
        "certificate": changed("certificate", {}),
        "members": changed("certificate.members", []),
        "promise": changed("certificate.promised", {"epsilon": "x"}),
        "negative": changed("certificate.promised", {"epsilon": "-1"}),
        "huge": changed("certificate.promised", {"epsilon": "1e999999"}),
        "unit": changed("certificate.dataset", {"name": "x", "unit": 7, "adjacency": "add/remove"}),
        "marks": changed("marks", 7),
        "grid": changed("content.regions.shape", [8192, 8192], grid),
        "infinite": changed("content.counts", [1e308 * 10] * 16, grid),
    }


@pytest.mark.parametrize("name", list(hostile()))
def test_a_hostile_document_is_refused_without_a_trace(house, visits, name):
    document = hostile()[name]
    text = json.dumps({"release": document}).replace("Infinity", "1e309")
    answer = house.call("POST", PLACE, visits["cora"], content=text.encode())
    assert answer.status_code in {400, 422}, answer.text
    assert house.service.database.rows("SELECT id FROM releases") == []


def test_the_body_has_its_own_limit(house, visits):
    document = fitted().to_json()
    large = {**document, "marks": ["x" * 1_000_000]}
    assert send(house, visits["cora"], large).status_code == 201
    too_large = send(house, visits["cora"], {**document, "marks": ["x" * MAX_RELEASE]})
    assert (too_large.status_code, too_large.json()["code"]) == (413, "body-too-large")
    other = house.call("POST", "/api/v1/datasets", visits["cora"], json={"about": "x" * 70_000})
    assert other.status_code == 413


def test_only_curators_register(house, visits):
    assert send(house, visits["ana"], fitted()).status_code == 403
    assert house.call("POST", PLACE, json={}).status_code == 401


def test_a_release_is_pasted_into_the_page(house, visits):
    assert visits
    cora = Browser(house, "cora")
    page = cora.get("/datasets/visits/registered-releases")
    assert "No release is registered yet" in page.text
    made = fitted()
    wrong = cora.post("/datasets/visits/registered-releases", release="not JSON", note=HOSTILE)
    assert wrong.status_code == 400
    assert "<script>alert" not in wrong.text
    answer = cora.post(
        "/datasets/visits/registered-releases", release=json.dumps(made.to_json(), indent=1), note=HOSTILE
    )
    assert answer.status_code == 303, answer.text
    for path in (
        answer.headers["location"],
        "/datasets/visits/registered-releases",
        "/releases?dataset=visits",
    ):
        shown = cora.get(path)
        assert shown.status_code == 200
        assert "<script>alert" not in shown.text
