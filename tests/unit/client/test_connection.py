"""Datasets of a service behave like local ones; lost connections, refusals and strange answers."""

from __future__ import annotations

import json
import pickle
import threading

import pytest

import tacit as tc
from support.small_service import ANA, TOKEN, SmallService, problem, serving
from tacit import TacitError
from tacit.client import _http_calls
from tacit.fixes import Choose, Either, Set


@pytest.fixture
def served(monkeypatch):
    monkeypatch.setattr(_http_calls, "_PAUSES", (0.01, 0.01))
    with serving() as (service, url):
        yield service, tc.connect(url, token=TOKEN, timeout=60)


def charged(service):
    return service.ledger.account(ANA).spent.epsilon


QUESTION = "SELECT hospital, COUNT(*) AS n FROM visits GROUP BY hospital ORDER BY n DESC LIMIT 3"


def test_a_dataset_is_asked_like_a_local_one(served):
    service, connection = served
    assert connection.datasets == ("visits",)
    data = connection["visits"]
    assert isinstance(data, tc.tables.TableDataset)
    assert data.unit == tc.Unit("patient_id")
    plan = data.sql(QUESTION).plan(epsilon=0.5)
    local = service.visits.sql(QUESTION).plan(epsilon=0.5)
    assert plan == local
    assert plan.forecast == local.forecast
    assert plan.stored() is None
    assert charged(service) == 0
    release = plan.release(purpose="report")
    assert charged(service) == 0.5
    same = local.stored(account=ANA)
    assert release.to_json() == same.to_json()
    assert repr(release) == repr(same)
    assert release._repr_html_() == same._repr_html_()
    assert release.to_pandas().equals(same.to_pandas())
    assert release.certificate.matches(service.ledger)
    assert plan.stored().to_json() == release.to_json()
    assert "report" in [entry.purpose for entry in service.ledger.history(ANA)]


def test_fluent_questions(served):
    _, connection = served
    data = connection.dataset("visits")
    release = data.where("age > 65").agg(n=tc.count(), m=tc.mean("length_of_stay")).plan(epsilon=1).release()
    assert list(release.columns) == ["n", "m"]
    assert all(
        low <= high
        for cells in release.columns.values()
        for low, high in zip(cells.low, cells.high, strict=True)
    )


def test_what_is_left_is_that_of_the_allotment(served):
    service, connection = served
    data = connection["visits"]
    assert str(data.remaining) == "epsilon 2 of 2"
    assert data.budget == tc.Budget(epsilon=2)
    assert "left: epsilon 2 of 2" in repr(data)
    plan = data.agg(n=tc.count()).plan(epsilon=0.5)
    assert "left afterwards: one more question of up to epsilon 1.5; or 3 more like this one" in repr(plan)
    plan.release()
    assert str(data.remaining) == "epsilon 1.5 of 2"
    named = connection.dataset("visits", account=ANA)
    assert named.remaining == data.remaining
    with pytest.raises(TacitError, match="you have no allotment 'visits/u_ben/1'"):
        connection.dataset("visits", account="visits/u_ben/1").remaining  # noqa: B018
    assert service.ledger.remaining("visits").epsilon == 4.5


def test_a_refusal_of_the_service_is_the_same_error(served):
    service, connection = served
    with pytest.raises(TacitError) as caught:
        connection["visits"].agg(n=tc.count()).plan(epsilon=3).release(purpose="x")
    assert caught.value.code == "budget-exceeded"
    assert isinstance(caught.value.fix, Either)
    assert caught.value.fix.fixes[0].values == {"epsilon": 2}
    assert charged(service) == 0


def test_a_sandbox_is_free_and_says_so(served):
    service, connection = served
    rehearsal, seen = connection.sandbox("visits"), len(service.seen)
    for goal in ({"epsilon": 40}, {"epsilon": 40}, {"rho": 1}, {"epsilon": 1, "delta": 1e-6}):
        plan = rehearsal.sql(QUESTION).plan(**goal)
        assert plan == service.visits.sql(QUESTION).plan(**goal)
        release = plan.release(purpose="x", key="x", account="x")
        assert "invented rows" in release.marks[0]
        assert "invented rows" in repr(release)
        assert plan.stored() is None
    assert len(service.seen) == seen  # nothing is sent
    assert charged(service) == service.ledger.account("visits").spent.epsilon == 0
    assert "left" not in repr(rehearsal)
    for call in (
        rehearsal._ledger.draw,
        rehearsal._ledger.run,
        lambda: rehearsal._ledger.create_account("x"),
    ):
        with pytest.raises(TacitError):
            call()


def test_requests_for_an_allotment(served):
    service, connection = served
    asked = connection.request_allotment(
        "visits", budget=tc.Budget(epsilon=0.5), purpose="report", last_day="2026-12-31"
    )
    assert (asked.name, asked.state) == ("r_1", "open")
    _, _, body, _ = service.seen[-1]
    assert body == {
        "kind": "allotment", "dataset": "visits", "epsilon": "1/2", "purpose": "report",
        "last_day": "2026-12-31",
    }  # fmt: skip
    assert [one.state for one in connection.requests] == ["approved"]
    plan = connection["visits"].agg(n=tc.count()).plan(epsilon=1)
    assert connection.request_plan(plan, purpose="report").kind == "plan"
    _, _, body, _ = service.seen[-1]
    assert service.visits.plan_from(body.pop("ask")["plan"]) == plan
    assert body == {"kind": "plan", "dataset": "visits", "purpose": "report"}
    with pytest.raises(TacitError, match="what the answer is for"):
        connection.request_plan(plan, purpose="")
    for wrong in ({"budget": 0.5, "purpose": "x"}, {"budget": tc.Budget(epsilon=1), "purpose": ""}):
        with pytest.raises(TacitError):
            connection.request_allotment("visits", **wrong)


def test_a_request_is_not_sent_twice_when_the_connection_is_cut(served):
    service, connection = served
    service.faults = ["cut after"]
    with pytest.raises(TacitError) as caught:
        connection.request_allotment("visits", budget=tc.Budget(epsilon=1), purpose="report")
    assert caught.value.code == "service-unreachable"
    assert len(service.seen) == 1


@pytest.mark.parametrize("fault", ["cut before", "cut after", "slow"])
def test_a_question_that_is_sent_again_is_charged_once(fault, monkeypatch):
    """The network is cut before the service has the question, or after it was charged; or it is slow."""
    monkeypatch.setattr(_http_calls, "_PAUSES", (0.01, 0.01, 0.01))
    with serving() as (service, url):
        connection = tc.connect(url, token=TOKEN, timeout=3 if fault == "slow" else 60)
        plan = connection["visits"].agg(n=tc.count()).plan(epsilon=0.5)
        service.faults = [fault, None, fault]
        release = plan.release(purpose="report")
        posts = [
            headers["Idempotency-Key"] for _, path, _, headers in service.seen if path.endswith("/queries")
        ]
        assert len(posts) == 2
        assert len(set(posts)) == 1
        assert charged(service) == 0.5
        assert release.value == service.visits.plan_from(plan.to_json()).stored(account=ANA).value


def test_after_many_failures_the_error_names_the_key(served):
    service, connection = served
    plan = connection["visits"].agg(n=tc.count()).plan(epsilon=0.5)
    service.faults = ["cut after"] * 4
    with pytest.raises(TacitError) as caught:
        plan.release(purpose="report")
    assert caught.value.code == "service-unreachable"
    assert isinstance(caught.value.fix, Set)
    again = plan.release(purpose="report", key=caught.value.fix.values["key"])
    assert charged(service) == 0.5
    assert again.value == plan.stored().value


def test_an_answer_that_does_not_come_is_reported_with_its_key(served):
    service, connection = served
    service.looks = 10**9
    connection._patience = 0.1
    with pytest.raises(TacitError, match=r"not there after 0\.1 seconds") as caught:
        connection["visits"].agg(n=tc.count()).plan(epsilon=0.5).release(key="mine-0001")
    assert caught.value.fix == Set(key="mine-0001")
    service.looks = 0
    connection["visits"].agg(n=tc.count()).plan(epsilon=0.5).release(key="mine-0001")
    assert charged(service) == 0.5


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("failed", "release-failed"),
        ("spent", "spent"),
        ("cancelled", "not-allowed"),
        ("refused", "not-allowed"),
    ],
)
def test_how_a_question_ends(served, state, code):
    service, connection = served
    data = connection["visits"]
    service.faults = [(202, {"query": "q_9", "state": "waiting"}), (200, {"query": "q_9", "state": state})]
    with pytest.raises(TacitError) as caught:
        data.agg(n=tc.count()).plan(epsilon=0.5).release()
    assert caught.value.code == code
    told = problem(TacitError("account-expired", "the last day was yesterday", fix=Set(account="x")), 403)
    service.faults = [(200, {"query": "q_9", "state": state, "problem": told})]
    with pytest.raises(TacitError, match="the last day was yesterday") as caught:
        data.agg(n=tc.count()).plan(epsilon=0.5).release()
    assert (caught.value.code, caught.value.fix) == ("account-expired", Set(account="x"))


STRANGE = {
    "a page": (200, b"<html>sign in</html>"),
    "a list": (200, []),
    "not a number": (200, b'{"datasets": [NaN]}'),
    "deep": (200, b"[" * 200_000),
    "no list": (200, {"datasets": 5}),
    "a list of texts": (200, {"datasets": ["visits"]}),
    "a refusal without a code": (404, {"detail": "Not Found"}),
    "a redirect": (302, {}, ("Location", "https://elsewhere.example.org/api/v1/datasets")),
    "a page of a proxy": (503, b"<html>busy</html>"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_answer_is_not_understood(served, name):
    service, connection = served
    service.faults = [STRANGE[name]]
    with pytest.raises(TacitError) as caught:
        connection.catalogue()
    assert caught.value.code == "service-differs"
    assert len(service.seen) == 1  # a redirect is not followed


@pytest.mark.parametrize(
    "answer", [{}, {"facts": {}}, {"facts": None}, {"facts": {"schema": "tacit/facts/9"}}]
)
def test_strange_facts_are_not_opened(served, answer):
    service, connection = served
    service.faults = [(200, answer)]
    with pytest.raises(TacitError, match="public facts cannot be read"):
        connection.dataset("visits")


def test_a_code_of_a_newer_service_keeps_its_words(served):
    service, connection = served
    service.faults = [(418, {"code": "teapot", "detail": "the service is a teapot", "fix": "pour"})]
    with pytest.raises(TacitError, match="the service is a teapot") as caught:
        connection.catalogue()
    assert (caught.value.code, str(caught.value.fix)) == ("service-differs", "pour")
    deep = b'{"fix": "either", "fixes": [' * 400 + b"{}" + b"]}" * 400
    service.faults = [
        (400, b'{"code": "bad-sql", "detail": "no", "fix": "words", "fix_data": ' + deep + b"}")
    ]
    with pytest.raises(TacitError) as caught:
        connection.catalogue()
    assert (caught.value.code, str(caught.value.fix)) == ("bad-sql", "words")


def test_the_answer_to_another_plan_is_refused(served):
    service, connection = served
    other = service.visits.agg(n=tc.count()).plan(epsilon=1).release().to_json()
    plan = connection["visits"].agg(n=tc.count()).plan(epsilon=0.5)
    service.faults = [(200, {"query": "q", "state": "finished", "document": other})]
    with pytest.raises(TacitError, match="answer to another question"):
        plan.release()


def test_a_busy_service_is_asked_again(served):
    service, connection = served
    busy = (429, {"code": "x", "detail": "slowly"}, ("Retry-After", "0"))
    service.faults = [busy, (502, b"gateway")]
    assert connection.datasets == ("visits",)
    assert len(service.seen) == 3
    service.faults = [(429, {"code": "bad-sql", "detail": "tomorrow"}, ("Retry-After", "86400"))]
    with pytest.raises(TacitError, match="tomorrow"):
        connection.catalogue()


def test_the_token_is_in_a_header_and_nowhere_else(served):
    service, connection = served
    connection["visits"].agg(n=tc.count()).plan(epsilon=0.5).release(purpose="report")
    for _, path, body, headers in service.seen:
        assert headers.pop("Authorization") == f"Bearer {TOKEN}"
        assert TOKEN not in path + json.dumps(body) + json.dumps(headers)


def test_nothing_that_holds_the_token_is_stored(served):
    _, connection = served
    data = connection["visits"]
    for thing in (connection, data, data.agg(n=tc.count()).plan(epsilon=1)):
        with pytest.raises((TypeError, pickle.PicklingError, AttributeError)):
            pickle.dumps(thing)


def test_a_wrong_token_is_refused(served):
    _, connection = served
    other = tc.connect(str(connection._calls.address), token="tct_somebody-else")
    with pytest.raises(TacitError, match="who are you"):
        other.catalogue()


def test_the_text_of_a_connection_needs_no_service():
    connection = tc.connect("http://127.0.0.1:1", token=TOKEN)
    assert repr(connection).startswith("connection to http://127.0.0.1:1\n")


def test_what_only_the_service_can_do_is_refused(served):
    service, connection = served
    ledger = connection["visits"]._ledger
    for call in (
        lambda: ledger.create_account("ben"), lambda: ledger.draw("visits", None),
        lambda: ledger.run("visits"), lambda: ledger.paid_release("visits", "p"),
        lambda: ledger.remaining("visits", block="monday"),
    ):  # fmt: skip
        with pytest.raises(TacitError) as caught:
            call()
        assert caught.value.code == "not-allowed"
    with pytest.raises(TacitError, match="who must be omitted"):
        connection["visits"].agg(n=tc.count()).plan(epsilon=1).release(who="ben")
    assert charged(service) == 0


def test_a_dataset_that_answers_methods_is_planned_there(served):
    service, connection = served
    asked = {"arguments": {"of": "patients"}, "epsilon": 0.1, "purpose": "report", "key": "k1"}
    release = connection.ask("visits", "count", **asked)
    assert charged(service) == tc.Budget(epsilon=0.1).epsilon
    assert connection.ask("visits", "count", **asked).to_json() == release.to_json()
    assert charged(service) == tc.Budget(epsilon=0.1).epsilon
    with pytest.raises(TacitError, match="epsilon"):
        connection.ask("visits", "count", epsilon="much")


def test_datasets_of_other_kinds_are_not_opened_here():
    with (
        serving(SmallService(kind="points")) as (_, url),
        pytest.raises(TacitError, match="only datasets of tables"),
    ):
        tc.connect(url, token=TOKEN).dataset("visits")


def test_the_newest_allotment_pays_unless_one_is_named(served):
    service, connection = served
    [entry] = service.shown()["accounts"]
    older = {**entry, "account": "old", "created": "2025-01-01"}
    one_plan = {**entry, "account": "plan", "created": "2027-01-01", "plan": "abc"}
    newer = {**entry, "account": "new", "created": "2026-06-01"}
    newer["left_to_use"] = {"exact": {"epsilon": "1/4", "delta": "0", "rho": None}}
    shown = {**service.shown(), "accounts": [newer, older, one_plan]}
    data, named = connection["visits"], connection.dataset("visits", account="old")
    service.faults = [(200, shown), (200, shown), (200, {**shown, "oversees": True})]
    assert str(data.remaining) == "epsilon 0.25 of 2"
    assert str(named.remaining) == "epsilon 2 of 2"
    assert (
        str(data.remaining) == "epsilon 5 of 5"
    )  # none of the accounts that a curator sees is the curator's


def test_a_service_that_does_not_show_what_was_spent(served):
    service, connection = served
    data, shown = connection["visits"], service.shown()
    del shown["accounts"][0]["filter"]
    plan = data.agg(n=tc.count()).plan(epsilon=0.5)
    service.faults = [(200, shown)] * 2
    assert str(data.remaining) == "epsilon 2 of 2"
    assert "left afterwards" not in repr(plan)


@pytest.mark.parametrize(
    "accounts",
    [5, [5], [{}], [{"account": "a"}], [{"account": "a", "budget": {"exact": {"epsilon": "1e9"}}}]],
)
def test_strange_accounts_are_not_read(served, accounts):
    service, connection = served
    data = connection["visits"]
    service.faults = [(200, {**service.shown(), "accounts": accounts})]
    with pytest.raises(TacitError, match="is not a service that this version of Tacit understands"):
        data.remaining  # noqa: B018


def test_threads_share_a_connection(served):
    service, connection = served
    data, found = connection["visits"], []

    def ask(number):
        found.append(data.agg(n=tc.count()).plan(epsilon=0.1 * (number + 1)).release(purpose="x"))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert float(charged(service)) == pytest.approx(1.0)


def test_the_dataset_is_not_the_one_of_another_service(served):
    """A plan of a local dataset of the same declared facts is the same plan."""
    _, connection = served
    local = tc.protect(
        {"visits": tc.tables.example_visits()}, name="visits", unit="patient_id",
        bounds={"length_of_stay": (0, 30)}, keys={"hospital": tc.tables.EXAMPLE_HOSPITALS},
        budget=tc.Budget(epsilon=9),
    )  # fmt: skip
    plan = connection["visits"].agg(m=tc.mean("length_of_stay")).plan(epsilon=1)
    assert local.plan_from(plan.to_json()) == plan


def test_an_unknown_dataset_is_refused_with_the_names(served):
    _, connection = served
    with pytest.raises(TacitError):
        connection.dataset("patients")
    with pytest.raises(TacitError) as caught:
        connection.dataset("")
    assert caught.value.fix == Choose(("visits",))


def test_releases_are_read_by_name(served):
    _, connection = served
    plan = connection["visits"].agg(n=tc.count()).plan(epsilon=0.5)
    answer = plan.release(purpose="report")
    [query] = connection.answers("visits")
    assert query["purpose"] == "report"
    assert connection.release("r_q_0").to_json() == answer.to_json()
    assert connection.answers("other") == []


@pytest.fixture
def certificate(tmp_path):
    """Return a certificate for this machine that no authority has signed, and its key, in one file."""
    import datetime as dt
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now, day = dt.datetime.now(dt.UTC), dt.timedelta(days=1)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - day).not_valid_after(now + day)
        .add_extension(here, critical=True)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file = tmp_path / "service.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, *plain) + made.public_bytes(serialization.Encoding.PEM)
    )
    return file


def test_the_certificate_of_a_service_is_checked(certificate, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with serving(certificate=certificate) as (service, url):
        assert url.startswith("https://")
        with pytest.raises(TacitError, match="does not answer") as caught:
            tc.connect(url, token=TOKEN).catalogue()
        assert "certificate" in caught.value.why
        assert service.seen == []  # the token was not sent
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert tc.connect(url, token=TOKEN).datasets == ("visits",)
        with pytest.raises(TacitError, match="does not answer"):
            tc.connect(url.replace("127.0.0.1", "localhost"), token=TOKEN).catalogue()


def test_a_connection_that_the_service_has_closed_is_opened_again_at_once(served, monkeypatch):
    service, connection = served
    monkeypatch.setattr(_http_calls, "_PAUSES", (60.0,))
    assert connection.datasets == ("visits",)
    service.faults = ["cut before"]
    assert connection.datasets == ("visits",)
