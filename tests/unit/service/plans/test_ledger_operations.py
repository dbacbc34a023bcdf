"""The ledger for auditors: entries by a cursor, verification with a witness, certificates, an old copy."""

import json
import time
from fractions import Fraction
from pathlib import Path

import pytest

import tacit as tc
from tacit.service import create_app

SQL = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def answered(ward):
    """The service after one release of ana; ``other`` is a dataset that only zoe may use."""
    release = (
        ward.data.sql(SQL)
        .plan(epsilon=Fraction(1, 4))
        .release(account=ward.account, who=ward.people["ana"], purpose="care")
    )
    ward.certificate = json.loads(release.certificate.to_json())
    ward.service.ledger.create_account("other", unit="row", budget=tc.Budget(epsilon=1))
    ward.service.ledger.charge("other", tc.Cost.pure(Fraction(1, 8)), who="u_zoe")
    return ward


def get(house, path, who):
    return house.call("GET", "/api/v1" + path, house.tokens[who])


def post(house, path, who, body):
    return house.call("POST", "/api/v1" + path, house.tokens[who], json=body)


@pytest.mark.parametrize(
    ("who", "status"),
    [("ana", 403), ("zoe", 403), ("adi", 403), ("dora", 200), ("cem", 200), ("eva", 200), ("olga", 200)],
)
def test_who_reads_the_ledger(answered, who, status):
    for path in ("/ledger", "/ledger/entries", "/ledger/head"):
        assert get(answered, path, who).status_code == status, path
    allowed = {"dora", "olga"}
    assert post(answered, "/ledger/verify", who, {}).status_code == (200 if who in allowed else 403)


def test_entries_by_a_cursor_and_only_of_own_datasets(answered):
    all_of_them = get(answered, "/ledger/entries?limit=200", "olga").json()["entries"]
    assert [one["seq"] for one in all_of_them] == list(range(1, len(all_of_them) + 1))
    assert "other" in {one["account"] for one in all_of_them}
    seen, after = [], "0"
    while after is not None:
        page = get(answered, f"/ledger/entries?limit=2&after={after}", "dora").json()
        seen, after = seen + page["entries"], page["next"]
    mine = [one for one in all_of_them if (one["account"] or "").partition("/")[0] == "visits"]
    assert seen == mine
    assert "u_zoe" not in json.dumps(seen)
    assert answered.people["ana"] in json.dumps(seen)


@pytest.mark.parametrize(
    "query", ["after=-1", "after=x", "limit=201", "limit=1e3", "after=99999999999999999999"]
)
def test_a_bad_cursor_is_refused(answered, query):
    assert get(answered, f"/ledger/entries?{query}", "olga").status_code == 400


def test_verification_with_and_without_a_witness(answered):
    head = get(answered, "/ledger/head", "dora").json()["head"]
    plain = post(answered, "/ledger/verify", "dora", {}).json()["verification"]
    assert (plain["ok"], plain["complete"]) == (True, False)
    given = {"count": head["count"], "hash": head["hash"]}
    for body in (given, {"witness": json.dumps(head)}, {"witness": json.dumps({"head": head})}):
        found = post(answered, "/ledger/verify", "dora", body).json()["verification"]
        assert (found["ok"], found["complete"], found["witnessed"]) == (True, True, head["count"])
    file = answered.service.ledger.witness.read_text()
    assert post(answered, "/ledger/verify", "dora", {"witness": file}).json()["verification"]["complete"]
    wrong = {"count": head["count"], "hash": "0" * 64}
    found = post(answered, "/ledger/verify", "dora", wrong).json()["verification"]
    assert not found["ok"]
    assert found["problems"] == [f"entry {head['count']} is not the one that the given witness has seen"]
    later = post(answered, "/ledger/verify", "dora", {"count": 10**6, "hash": "a" * 64}).json()[
        "verification"
    ]
    assert "its end was cut off" in later["problems"][0]
    for bad in ({"witness": "hello"}, {"count": 3}, {"hash": "x"}, {"witness": "/etc/passwd"}):
        assert post(answered, "/ledger/verify", "dora", bad).status_code == 400


def test_the_pages_of_the_ledger(answered):
    for path in ("/ledger", "/certificates/check"):
        page = answered.call("GET", path, answered.tokens["dora"])
        assert page.status_code == 200
        assert "<h1>" in page.text
    form = {
        "content": "csrf=&count=&hash=&witness=",
        "headers": {"content-type": "application/x-www-form-urlencoded"},
    }
    page = answered.call("POST", "/ledger/verify", answered.tokens["dora"], **form)
    assert "consistent, completeness not proven" in page.text


def test_a_certificate_matches_and_an_edited_one_does_not(answered):
    ok = post(answered, "/certificates/check", "ana", {"certificate": answered.certificate})
    assert ok.json()["matches"], ok.text
    edited = json.loads(json.dumps(answered.certificate))
    edited["promised"]["epsilon"] = "1/8"
    found = post(answered, "/certificates/check", "ana", {"certificate": edited}).json()
    assert not found["matches"]
    assert "was charged for another certificate" in found["problems"][0]
    text = post(answered, "/certificates/check", "ana", {"certificate": json.dumps(answered.certificate)})
    assert text.json()["matches"]


def test_nobody_tries_out_the_entries_of_others(answered):
    """Without the hash of an entry, the check says the same whatever else is guessed right."""
    for part in ("plan", "cost", "filter"):
        guessed = json.loads(json.dumps(answered.certificate))
        guessed["ledger"]["hash"] = "0" * 64
        right = post(answered, "/certificates/check", "zoe", {"certificate": guessed}).json()
        guessed[part] = {"plan": "0" * 64, "cost": {}, "filter": ["x"]}[part]
        wrong = post(answered, "/certificates/check", "zoe", {"certificate": guessed}).json()
        assert right == wrong
        assert right["problems"] == ["the ledger has no entry with this number and this hash"]
    auditor = post(answered, "/certificates/check", "olga", {"certificate": guessed}).json()
    assert len(auditor["problems"]) > 1


def hostile_certificates(good):
    yield from ({}, {"schema": "x"}, {**good, "ledger": 5}, {**good, "ledger": {"entry": -1, "hash": "x"}})
    yield {**good, "ledger": {"entry": 10**30, "hash": "x"}}
    yield {**good, "members": [good]}
    deep = {"a": 1}
    for _ in range(15):
        deep = {"a": deep}
    yield {**good, "mechanisms": deep}
    yield {**good, "mechanisms": [good["mechanisms"][0]] * 150}
    for value in ("9" * 40_000, "1e999999", "NaN", None, [], {}, True, -1, "1/0", "\u202e"):
        yield {**good, "cost": value}
        yield {**good, "mechanisms": [{**good["mechanisms"][0], "scale": value}]}
        yield {**good, "dataset": value}
        yield {**good, "plan": value}
        yield {**good, "filter": value}
        yield {**good, "promised": value}
    together = {"schema": good["schema"], "disjoint": True, "cost": good["cost"], "promised": {}, "plan": "x"}
    yield {**together, "software": good["software"], "members": [good] * 40}
    yield {**together, "software": good["software"], "members": [{}] * 40}


def test_hostile_certificates_change_nothing_and_are_answered_quickly(answered):
    head = answered.service.ledger.head
    for who in ("zoe", "olga"):
        for one in hostile_certificates(answered.certificate):
            start = time.process_time()
            answer = post(answered, "/certificates/check", who, {"certificate": one})
            assert time.process_time() - start < 5  # 0.04 and the collection of garbage
            assert answer.status_code in {200, 400, 413}, (answer.text, one)
            assert answer.status_code != 200 or not answer.json()["matches"] or one == answered.certificate
            assert "9" * 50 not in answer.text
    assert answered.service.ledger.head == head


def test_without_signing_in_no_certificate_is_checked(answered):
    answered.tokens[""] = ""
    assert post(answered, "/certificates/check", "", {"certificate": {}}).status_code == 401


def test_an_old_copy_of_the_ledger_starts_the_service_with_a_banner_and_takes_no_charges(answered, settings):
    path = Path(settings.ledger_place)
    answered.service.close()
    old = path.read_bytes()
    app = create_app(settings)
    app.state.service.ledger.charge("visits", tc.Cost.pure(Fraction(1, 8)))
    app.state.service.close()
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    path.write_bytes(old)
    answered.app = create_app(settings)
    answered.service = answered.app.state.service
    try:
        state = get(answered, "/ledger/head", "dora").json()
        assert state["code"] == "ledger-rolled-back"
        assert "an old copy may have taken its place" in state["trouble"]
        for page, who in (
            ("/ledger", "dora"),
            ("/datasets/visits/ask", "ana"),
            ("/certificates/check", "ana"),
        ):
            shown = answered.call("GET", page, answered.tokens[who]).text
            assert "Nothing is charged" in shown, page
        card = post(answered, "/plans", "ana", {"dataset": "visits", "sql": SQL, "epsilon": "1/4"}).json()
        assert (card["fits"], card["account"]) == (False, None)
        found = post(answered, "/ledger/verify", "dora", {}).json()["verification"]
        assert not found["ok"]
        assert "the witness of the service has seen" in found["problems"][0]
        assert str(settings.folder) not in json.dumps(found)
        with pytest.raises(tc.TacitError):
            answered.service.ledger.charge("visits", tc.Cost.pure(Fraction(1, 8)))
    finally:
        answered.service.close()


@pytest.mark.parametrize("count", [-1, 2**63, 10**40])
def test_a_number_that_no_entry_has_is_refused_and_not_repeated(ward, count):
    body = {"count": count, "hash": "0" * 64}
    answer = ward.call("POST", "/api/v1/ledger/verify", ward.tokens["dora"], json=body)
    assert answer.status_code == 400
    assert "0" * 64 not in answer.text
    assert str(count) not in answer.text or count == 2**63  # the limit is named
