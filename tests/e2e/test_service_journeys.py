"""The journeys of curators, analysts and auditors through a real `tacit serve`, in Chromium."""

from __future__ import annotations

import json

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from support.browsing import (
    NARROW,
    WIDE,
    click,
    colours,
    crawl,
    field,
    fill,
    heading,
    in_browser,
    page_findings,
    press,
    resize,
    sign_in_as,
    sign_out,
    tab_to,
    type_into,
    wait_for,
    without_scripts,
)
from support.served import Served

pytestmark = [in_browser, pytest.mark.usefixtures("as_it_was")]
HOSPITALS = ["Ahorn", "Buche", "Eiche", "Fichte", "Linde"]
QUESTION = "SELECT hospital, COUNT(*) AS n FROM visits GROUP BY hospital"
DECLARED = {
    "name": "visits", "source": "visits", "unit": "patient_id", "title": "Hospital visits",
    "budget": {"epsilon": "3"}, "bounds": {"age": [0, 120], "length_of_stay": [0, 60]},
    "keys": {"hospital": HOSPITALS}, "limits": {"rows": 5},
}  # fmt: skip
#: Answers leave after five seconds, which is enough on a busy machine.
CLOCK = 'folder = "."\ntick = "1/4"\nlag = 20\nrate = 0\n'
#: How many rows, patients and so on the data has: no page may show them.
SECRETS = ("12,700", "12700", "6,000", "6000")


def hospital(folder):
    """Start a service with a curator and another, an analyst, an auditor, and a declared dataset."""
    served = Served(folder, more=CLOCK).start()
    served.person("carla", everywhere="owner")
    served.person("omar", everywhere="curator")
    served.person("ana", visits="analyst")
    served.person("aude", everywhere="auditor")
    served.person("ada", everywhere="admin")
    status, said = served.call("POST", "/api/v1/datasets", served.token("carla"), DECLARED)
    assert status == 201, said
    give(served, "1")
    return served


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    served = hospital(tmp_path_factory.mktemp("service") / "s")
    yield served
    served.stop()


def give(service, epsilon):
    body = {"person": service.people["ana"], "epsilon": epsilon, "purpose": "quality of care"}
    status, said = service.call("POST", "/api/v1/datasets/visits/accounts", service.token("carla"), body)
    assert status == 201, said
    return said


def text(browser):
    return browser.find_element(By.TAG_NAME, "main").text


def no_secret(browser):
    shown = browser.find_element(By.TAG_NAME, "body").text
    assert not [one for one in SECRETS if one in shown]


def entries(service):
    status, said = service.call("GET", "/api/v1/ledger/entries?limit=100", service.token("aude"))
    assert status == 200, said
    return len(said["entries"])


def ask(browser, service, sql=QUESTION, epsilon="1/4"):
    """Ask as the person who is signed in, and wait for the answer; return the address of the release."""
    browser.get(service.url + "/datasets/visits/ask")
    fill(browser, sql=sql, epsilon=epsilon)
    click(browser, "Show the price")
    wait_for(browser, "The price of this question")
    click(browser, "Ask, and pay this price")
    wait_for(browser, "Show the answer", seconds=60)
    click(browser, "Show the answer")
    wait_for(browser, "Values and intervals")
    return browser.current_url


def test_a_curator_declares_a_dataset_and_changes_its_policy(service, browser):
    sign_in_as(browser, service, "carla")
    browser.get(service.url + "/")
    click(browser, "Protect a dataset")
    wait_for(browser, "Choose the data")
    fill(browser, source="visits", name="stays", title="Stays in hospital")
    click(browser, "Continue")
    wait_for(browser, "Who is protected?")
    fill(browser, unit="patient_id")
    click(browser, "Continue")
    wait_for(browser, "What does everybody know about the columns?")
    assert "from what everybody knows" in text(browser)
    names = [one.text for one in browser.find_elements(By.TAG_NAME, "legend")]
    age, hospital = names.index("age"), names.index("hospital")
    fill(browser, **{f"low-{age}": "0", f"high-{age}": "120", f"keys-{hospital}": "\n".join(HOSPITALS)})
    no_secret(browser)
    assert page_findings(browser) == []
    click(browser, "Continue")
    wait_for(browser, "How much may one")
    fill(browser, rows="5")
    click(browser, "Continue")
    wait_for(browser, "How much may be learned")
    fill(browser, epsilon="2")
    click(browser, "Show what this budget means")
    assert "50:50" in wait_for(browser, "What epsilon 2 means") or "factor" in text(browser)
    assert page_findings(browser) == []
    click(browser, "Continue")
    wait_for(browser, "Nothing is declared yet")
    click(browser, "Declare the dataset")
    wait_for(browser, "Stays in hospital")
    no_secret(browser)
    assert page_findings(browser) == []
    click(browser, "Change the policy")
    wait_for(browser, "New policy of stays")
    fill(browser, **{f"high-{age}": "110"})
    for step in ("Limits", "Answers", "Review"):
        click(browser, "Continue")
        wait_for(browser, f"New policy of stays: {step}")
    shown = wait_for(browser, "This is what changes")
    assert "120" in shown
    assert "110" in shown
    click(browser, "Save this policy")
    wait_for(browser, "Policy 2")
    browser.get(service.url + "/datasets/stays/policies/2")
    shown = wait_for(browser, "110")
    assert "120" in shown
    no_secret(browser)
    assert page_findings(browser) == []


def test_an_analyst_sees_the_price_asks_and_reads_the_answer_again_for_nothing(service, browser):
    sign_in_as(browser, service, "ana")
    before = entries(service)
    browser.get(service.url + "/datasets")
    click(browser, "Hospital visits")
    click(browser, "Ask a question")
    wait_for(browser, "Question in SQL")
    assert field(browser, "Pay from").get_property("value").endswith("/1")  # the only allotment
    browser.execute_script("window.live = document.querySelector('[role=status]#live')")
    fill(browser, sql=QUESTION.replace("GROUP BY hospital", "GROUP BY hospitl"), epsilon="1/4")
    click(browser, "Show the price")
    wait_for(browser, "What helps")
    assert page_findings(browser) == []
    fill(browser, sql=QUESTION, epsilon="1/4")
    click(browser, "Show the price")
    shown = wait_for(browser, "The price of this question")
    assert "hospital" in shown
    assert page_findings(browser) == []
    assert entries(service) == before  # a price is free
    # the same element as before, so that a change of it is read aloud
    live = browser.execute_script("return window.live.isConnected && window.live.innerText")
    assert live.startswith("The price is epsilon 1/4 (0.25). 3 more questions like this one"), live
    click(browser, "Ask, and pay this price")
    wait_for(browser, "Show the answer", seconds=60)
    assert page_findings(browser) == []
    click(browser, "Show the answer")
    wait_for(browser, "Values and intervals")
    assert page_findings(browser) == []
    no_secret(browser)
    first = text(browser)
    assert all(name in first for name in HOSPITALS)
    assert browser.find_elements(By.CSS_SELECTOR, "figure.chart svg[role=img] circle")
    number = browser.current_url.rpartition("/")[2]
    csv = browser.execute_async_script(
        "const done = arguments[1]; fetch(arguments[0]).then(r => r.text()).then(done)",
        f"/api/v1/releases/{number}.csv",
    )
    assert csv.startswith("hospital,n,n_low,n_high")
    after = entries(service)
    assert after > before
    browser.get(service.url + "/datasets/visits/ask")
    fill(browser, sql=QUESTION, epsilon="1/4")
    click(browser, "Show the price")
    wait_for(browser, "asking again is free")
    click(browser, "Show the answer, which is paid for")
    wait_for(browser, "Values and intervals")
    values = [line for line in first.splitlines() if line.split(" ")[0] in HOSPITALS]
    assert values
    assert all(line in text(browser) for line in values)
    assert entries(service) == after


def test_an_analyst_rehearses_a_question_and_comes_back_to_its_price(service, browser):
    sign_in_as(browser, service, "ana")
    before = entries(service)
    browser.get(service.url + "/datasets/visits/ask")
    fill(browser, sql=QUESTION, epsilon="1/4")
    click(browser, "Rehearse on invented rows")
    wait_for(browser, "Answer from invented rows")
    assert browser.current_url.endswith("/sandbox")
    fill(browser, epsilon="1/8")
    click(browser, "Rehearse on invented rows")
    wait_for(browser, "The answer from invented rows is there.")
    assert page_findings(browser) == []
    click(browser, "Show the price of a real answer")
    wait_for(browser, "The price of this question")
    assert browser.current_url.endswith("/ask")
    assert entries(service) == before


def test_an_analyst_requests_more_and_nobody_approves_their_own(service, browser):
    sign_in_as(browser, service, "ana")
    browser.get(service.url + "/datasets/visits/ask")
    fill(browser, sql=QUESTION, epsilon="2")
    click(browser, "Show the price")
    shown = wait_for(browser, "Request an allotment")
    assert "Show the price with epsilon" in shown
    click(browser, "Request an allotment")
    wait_for(browser, "Purpose")
    assert page_findings(browser) == []
    fill(browser, epsilon="0.5", purpose="a report about waiting times")
    click(browser, "Ask for this allotment")
    wait_for(browser, "Somebody else decides")
    request = browser.current_url.rpartition("/")[2]
    sign_in_as(browser, service, "omar")
    browser.get(service.url + "/requests")
    wait_for(browser, "please decide")
    assert page_findings(browser) == []
    browser.get(service.url + f"/requests/{request}")
    shown = wait_for(browser, "a report about waiting times")
    assert (
        "After approval: if all accounts are used up, epsilon 1.5 of the dataset's budget is left." in shown
    )
    assert page_findings(browser) == []
    click(browser, "Approve")
    wait_for(browser, "approved")
    sign_in_as(browser, service, "carla")
    browser.get(service.url + "/datasets/visits")
    click(browser, "Propose a larger budget")
    browser.find_element(By.ID, "f-epsilon-growth").send_keys("4")
    browser.find_element(By.ID, "f-statement-growth").send_keys("the study was extended")
    browser.find_element(By.ID, "f-statement-growth").submit()
    wait_for(browser, "nobody approves their own request")
    growth = browser.current_url.rpartition("/")[2]
    status, said = service.call("POST", f"/api/v1/requests/{growth}/approve", service.token("carla"), {})
    assert (status, said["code"]) == (403, "own-request")
    sign_in_as(browser, service, "omar")
    browser.get(service.url + f"/requests/{growth}")
    click(browser, "Approve")
    wait_for(browser, "approved")
    status, said = service.call("GET", "/api/v1/datasets/visits", service.token("ana"))
    assert said["budget"]["exact"]["epsilon"] == "4"


def test_a_curator_publishes_and_everybody_reads_it_and_nothing_else(service, browser):
    sign_in_as(browser, service, "ana")
    ask(browser, service, "SELECT AVG(age) AS mean_age FROM visits", "1/8")
    sign_in_as(browser, service, "carla")
    browser.get(service.url + "/datasets/visits/publish")
    wait_for(browser, "Which release?")
    assert page_findings(browser) == []
    fill(browser, title="How old patients are", about="All hospitals together.")
    click(browser, "Publish")
    wait_for(browser, "How old patients are")
    published = browser.current_url
    sign_out(browser, service)
    browser.get(published)
    shown = wait_for(browser, "What is promised")
    assert "mean_age" in shown
    assert "95 %" in shown
    no_secret(browser)
    assert page_findings(browser) == []
    certificate = browser.execute_async_script(
        "const done = arguments[0]; fetch(document.querySelector('a[download][href*=certificate]').href)"
        ".then(r => r.text()).then(done)"
    )
    assert json.loads(certificate)
    for path in ("/datasets", "/datasets/visits", "/queries", "/releases", "/requests", "/ledger"):
        browser.get(service.url + path)
        assert heading(browser) in {"Sign in", "Nothing here"}, path


def test_an_auditor_verifies_checks_a_certificate_and_cannot_ask(service, browser):
    sign_in_as(browser, service, "ana")
    number = ask(browser, service, "SELECT COUNT(*) AS n FROM visits", "1/8").rpartition("/")[2]
    status, certificate = service.call("GET", f"/api/v1/releases/{number}/certificate", service.token("ana"))
    assert status == 200, certificate
    sign_in_as(browser, service, "aude")
    browser.get(service.url + "/ledger")
    wait_for(browser, "The end of the log")
    assert page_findings(browser) == []
    click(browser, "Verify the ledger")
    wait_for(browser, "Checked:")
    assert page_findings(browser) == []
    for changed, said in ((False, "matches the ledger"), (True, "does not match the ledger")):
        browser.get(service.url + "/certificates/check")
        document = json.dumps(certificate)
        if changed:  # one digit of what the charge cost
            other = json.loads(document)
            part = other["cost"]["parts"][0]
            part["scale"] = str((int(part["scale"][0]) + 1) % 10) + part["scale"][1:]
            document, before = json.dumps(other), document
            assert sum(one != two for one, two in zip(document, before, strict=True)) == 1
        browser.execute_script("document.querySelector('textarea').value = arguments[0]", document)
        click(browser, "Check it")
        wait_for(browser, said)
        assert page_findings(browser) == []
    browser.get(service.url + "/datasets/visits")
    assert "Ask a question" not in text(browser)
    browser.get(service.url + "/datasets/visits/ask")
    assert heading(browser) in {"This is not permitted", "Nothing here"}


def test_an_old_copy_of_the_ledger_is_noticed_and_nothing_is_charged(browser, tmp_path):
    service = Served(tmp_path / "s", more=f'{CLOCK}witness = "{tmp_path / "witness"}"').start()
    try:
        service.person("carla", everywhere="owner")
        service.person("ana", visits="analyst")
        service.person("aude", everywhere="auditor")
        assert service.call("POST", "/api/v1/datasets", service.token("carla"), DECLARED)[0] == 201
        give(service, "1")
        assert service.stop() == 0
        ledger = tmp_path / "s" / "service.ledger"
        old = ledger.read_bytes()
        service.start()
        sign_in_as(browser, service, "ana")
        ask(browser, service)
        assert service.stop() == 0
        for left in (tmp_path / "s").glob("service.ledger-*"):
            left.unlink()
        ledger.write_bytes(old)
        service.start(ready=False)
        sign_in_as(browser, service, "ana")
        browser.get(service.url + "/datasets/visits/ask")
        wait_for(browser, "The ledger is not complete")
        assert page_findings(browser) == []
        body = {"dataset": "visits", "sql": QUESTION, "epsilon": "1/8", "purpose": "quality of care"}
        account = f"visits/{service.people['ana']}/1"
        status, said = service.call(
            "POST",
            "/api/v1/queries",
            service.token("ana"),
            {**body, "account": account},
            {"idempotency-key": "k"},
        )
        assert status in {409, 503}, said
        sign_in_as(browser, service, "aude")
        browser.get(service.url + "/ledger")
        wait_for(browser, "The ledger is not complete")
        click(browser, "Verify the ledger")
        assert "Problem" in wait_for(browser, "The ledger is")
    finally:
        if service.process.poll() is None:
            service.stop()


def test_an_analyst_asks_by_keyboard_alone(service, browser):
    sign_in_as(browser, service, "ana")
    browser.get(service.url + "/")
    tab_to(browser, "Ask a question")
    press(browser, Keys.ENTER)
    wait_for(browser, "what is left of each budget")
    tab_to(browser, "Hospital visits")
    press(browser, Keys.ENTER)
    wait_for(browser, "Version of the data")
    tab_to(browser, "Ask a question")
    press(browser, Keys.ENTER)
    wait_for(browser, "Question in SQL")
    type_into(browser, "Question in SQL", "SELECT COUNT(*) AS n FROM visits WHERE age >= 65")
    type_into(browser, "Epsilon (optional)", "1/16")
    tab_to(browser, "Show the price")
    press(browser, Keys.ENTER)
    wait_for(browser, "The price of this question")
    tab_to(browser, "Ask, and pay this price")
    press(browser, Keys.ENTER)
    wait_for(browser, "Show the answer", seconds=60)
    tab_to(browser, "Show the answer")
    press(browser, Keys.ENTER)
    wait_for(browser, "Values and intervals")
    tab_to(browser, "CSV")
    tab_to(browser, "Sign out", most=120)
    press(browser, Keys.ENTER)
    wait_for(browser, "Sign in")


def test_an_analyst_asks_without_scripts(service, browser):
    sign_in_as(browser, service, "ana")
    with without_scripts(browser):
        browser.get(service.url + "/datasets/visits/ask")
        fill(browser, sql="SELECT COUNT(*) AS n FROM visits WHERE age < 18", epsilon="1/16")
        click(browser, "Show the price")
        wait_for(browser, "The price of this question")
        click(browser, "Ask, and pay this price")
        wait_for(browser, "Show the answer", seconds=60)  # the page asks again by itself
        click(browser, "Show the answer")
        wait_for(browser, "Values and intervals")


@pytest.mark.parametrize(
    ("name", "without"),
    [
        pytest.param("ana", (), id="ana"),
        # ana has looked at the pages of /learn, which need no account
        pytest.param("carla", ("/learn/",), id="carla"),
        *(
            pytest.param(one, (), marks=pytest.mark.long, id=f"{one}-all")
            for one in ("carla", "omar", "aude", "ada")
        ),
    ],
)
def test_every_page_that_a_person_can_reach_is_sound(service, browser, name, without):
    sign_in_as(browser, service, name)

    def look(path):
        resize(browser, WIDE)
        colours(browser, "light")
        no_secret(browser)
        wrong = ["the service failed"] if heading(browser) == "Something went wrong" else []
        wrong += page_findings(browser)
        resize(browser, NARROW)
        colours(browser, "dark")
        return wrong + [f"narrow and dark: {one}" for one in page_findings(browser)]

    said = crawl(browser, service, look, without=without)
    assert {path: wrong for path, wrong in said.items() if wrong} == {}
    assert len(said) > 8
