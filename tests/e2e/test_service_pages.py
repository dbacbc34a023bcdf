"""The pages of a real `tacit serve` in Chromium: sizes, colours, keyboard, without scripts, hostile texts."""

from __future__ import annotations

import re

import pytest

from support.browsing import (
    NARROW,
    WIDE,
    ZOOMED,
    click,
    colours,
    console,
    fill,
    focused,
    heading,
    in_browser,
    page_findings,
    press,
    resize,
    tab_to,
    type_into,
    wait_for,
    without_scripts,
)
from support.served import Served

pytestmark = [in_browser, pytest.mark.usefixtures("as_it_was")]
OPEN_PAGES = (
    "/", "/sign-in", "/welcome", "/learn", "/learn/epsilon", "/learn/epsilon?epsilon=0", "/learn/attacks",
    "/learn/attacks/membership?epsilon=2", "/learn/game", "/learn/game?guess1=in", "/learn/glossary",
    "/errors/bad-sql", "/nothing/here",
)  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    served = Served(tmp_path_factory.mktemp("service") / "s").start()
    yield served
    served.stop()


@pytest.mark.parametrize("path", OPEN_PAGES)
def test_a_page_that_needs_no_account_is_sound_in_every_size_and_colour(service, browser, path):
    for size, scheme in (
        (WIDE, "light"),
        (WIDE, "dark"),
        (NARROW, "light"),
        (NARROW, "dark"),
        (ZOOMED, "light"),
    ):
        resize(browser, size)
        colours(browser, scheme)
        browser.get(service.url + path)
        assert page_findings(browser) == [], (size, scheme)


def test_the_explorer_answers_in_place_and_keeps_the_focus(service, browser):
    browser.get(service.url + "/learn/epsilon")
    fill(browser, epsilon="3")
    press(browser, "\t")
    wait_for(browser, "What epsilon 3 means")
    assert focused(browser) == "Delta"
    said = browser.execute_script("return document.getElementById('live').textContent")
    assert "95.3" in said
    fill(browser, epsilon="-3")
    press(browser, "\t")
    wait_for(browser, "Error: the field epsilon is not valid")
    assert focused(browser) == "Delta"
    fill(browser, epsilon="1/5")
    press(browser, "\t")
    wait_for(browser, "What epsilon 0.2 means")
    assert console(browser) == []
    assert page_findings(browser) == []


def test_the_explorer_works_without_scripts(service, browser):
    with without_scripts(browser):
        browser.get(service.url + "/learn/epsilon")
        fill(browser, epsilon="4")
        click(browser, "Explain")
        wait_for(browser, "What epsilon 4 means")
        assert "epsilon=4" in browser.current_url


def test_everything_is_reached_by_keyboard_and_the_skip_link_skips(service, browser):
    browser.get(service.url + "/learn/epsilon")
    tab_to(browser, "Skip to the content", most=1)
    press(browser, "\ue007")
    assert browser.current_url.endswith("#content")
    type_into(browser, "Epsilon", "2")
    press(browser, "\ue007")
    wait_for(browser, "What epsilon 2 means")
    tab_to(browser, "The same as a table")
    press(browser, "\ue007")
    wait_for(browser, "after, at least")
    browser.get(service.url + "/")
    tab_to(browser, "Attack lab")
    press(browser, "\ue007")
    tab_to(browser, "Is this person in the data?")
    press(browser, "\ue007")
    type_into(browser, "Try another epsilon", "0.3")
    press(browser, "\ue007")
    wait_for(browser, "Your epsilon 0.3")


def test_the_policy_of_the_pages_lets_no_foreign_script_or_style_run(service, browser):
    browser.get(service.url + "/")
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'document.title = \"taken\"';"
        "document.body.append(s); const p = document.createElement('p');"
        "p.setAttribute('style', 'position: fixed'); document.body.append(p);"
    )
    assert browser.title != "taken"
    assert any("Content Security Policy" in one for one in console(browser))


def test_the_first_administrator_arrives_by_the_link_and_invites_a_person_with_a_hostile_name(
    service, browser
):
    link = re.search(r"http\S+/welcome#\S+", service.said)[0]
    browser.get(link)
    assert heading(browser) == "Welcome"
    fill(browser, name="ada", shown="Ada", password="four ordinary words here")
    click(browser, "Set the password and sign in")
    wait_for(browser, "What would you like to do?")
    click(browser, "People")
    hostile = "<script>document.title='taken'</script><b>Eve</b>\"'"
    fill(browser, name="eve", shown=hostile)
    click(browser, "Invite")
    wait_for(browser, "Eve")
    browser.get(service.url + "/users")
    assert hostile in wait_for(browser, "Invite a person")
    assert browser.title.startswith("People")
    assert page_findings(browser) == []
    click(browser, "Sign out")
    wait_for(browser, "Sign in")
    browser.get(service.url + "/users")
    assert heading(browser) == "Sign in"
