"""The journeys by keyboard alone, without scripts, and at twice the size, in Chromium."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from e2e.test_service_journeys import ask, hospital
from support.browsing import (
    ZOOMED,
    click,
    crawl,
    fill,
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

pytestmark = [in_browser, pytest.mark.usefixtures("as_it_was")]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    served = hospital(tmp_path_factory.mktemp("service") / "s")
    yield served
    served.stop()


def go(browser, words, then):
    """Reach something by Tab, press Enter, and wait for what it opens."""
    tab_to(browser, words, most=150)
    press(browser, Keys.ENTER)
    return wait_for(browser, then, seconds=60)


def test_a_curator_declares_a_dataset_by_keyboard(service, browser):
    sign_in_as(browser, service, "carla")
    browser.get(service.url + "/")
    go(browser, "Protect a dataset", "Choose the data")
    type_into(browser, "Name", "keyed")
    go(browser, "Continue", "Who is protected?")
    tab_to(browser, "Each value of patient_id")
    press(browser, Keys.SPACE)
    go(browser, "Continue", "What does everybody know")
    go(browser, "Continue", "How much may one")
    go(browser, "Continue", "How much may be learned")
    type_into(browser, "Epsilon (optional)", "2")
    go(browser, "Show what this budget means", "What epsilon 2 means")
    go(browser, "Continue", "Nothing is declared yet")
    go(browser, "Declare the dataset", "Version of the data")


def test_a_request_is_made_and_approved_by_keyboard(service, browser):
    sign_in_as(browser, service, "ana")
    browser.get(service.url + "/datasets/visits")
    go(browser, "Ask for an allotment", "Another purpose is another request")
    type_into(browser, "Epsilon (optional)", "0.5")
    type_into(browser, "Purpose", "by keyboard")
    go(browser, "Ask for this allotment", "Somebody else decides")
    place = browser.current_url
    sign_in_as(browser, service, "omar")
    browser.get(service.url + "/")
    go(browser, "Decide requests", "please decide")
    browser.get(place)
    go(browser, "Approve", "approved")


def test_a_figure_is_published_by_keyboard(service, browser):
    sign_in_as(browser, service, "ana")
    ask(browser, service, "SELECT COUNT(*) AS n FROM visits WHERE age > 30", "1/16")
    sign_in_as(browser, service, "carla")
    browser.get(service.url + "/datasets/visits")
    go(browser, "Publish a release", "Which release?")
    type_into(browser, "Title", "Patients above thirty")
    go(browser, "Publish", "What is promised")
    place = browser.current_url
    sign_out(browser, service)
    browser.get(place)
    wait_for(browser, "Patients above thirty")
    tab_to(browser, "Save the certificate")


def test_an_auditor_verifies_by_keyboard(service, browser):
    sign_in_as(browser, service, "aude")
    browser.get(service.url + "/")
    go(browser, "Check the ledger", "The end of the log")
    go(browser, "Verify the ledger", "Checked:")
    go(browser, "Check a certificate", "A certificate says what a release cost")
    type_into(browser, "Certificate", "{}")
    go(browser, "Check it", "certificate")


def test_everybody_else_works_without_scripts(service, browser):
    sign_in_as(browser, service, "ana")
    ask(browser, service, "SELECT COUNT(*) AS n FROM visits WHERE age > 40", "1/16")
    with without_scripts(browser):
        browser.get(service.url + "/requests/new?dataset=visits")
        fill(browser, epsilon="0.25", purpose="without scripts")
        click(browser, "Ask for this allotment")
        wait_for(browser, "Somebody else decides")
        place = browser.current_url
    sign_in_as(browser, service, "omar")
    with without_scripts(browser):
        browser.get(place)
        click(browser, "Approve")
        wait_for(browser, "approved")
    sign_in_as(browser, service, "carla")
    with without_scripts(browser):
        browser.get(service.url + "/declare")
        fill(browser, source="visits", name="plain")
        click(browser, "Continue")
        wait_for(browser, "Who is protected?")
        fill(browser, unit="patient_id")
        for then in ("What does everybody know", "How much may one", "How much may be learned"):
            click(browser, "Continue")
            wait_for(browser, then)
        fill(browser, epsilon="2")
        click(browser, "Continue")
        wait_for(browser, "Nothing is declared yet")
        click(browser, "Declare the dataset")
        wait_for(browser, "Version of the data", seconds=60)
        browser.get(service.url + "/datasets/visits/publish")
        fill(browser, title="A figure without scripts")
        click(browser, "Publish")
        wait_for(browser, "What is promised")
    sign_in_as(browser, service, "aude")
    with without_scripts(browser):
        browser.get(service.url + "/ledger")
        click(browser, "Verify the ledger")
        wait_for(browser, "Checked:")


@pytest.mark.long
@pytest.mark.parametrize("name", ["ana", "carla", "aude"])
def test_every_page_is_sound_at_twice_the_size(service, browser, name):
    sign_in_as(browser, service, name)

    def look(path):
        resize(browser, ZOOMED)
        return page_findings(browser)

    said = crawl(browser, service, look)
    assert {path: wrong for path, wrong in said.items() if wrong} == {}
    assert len(said) > 8
