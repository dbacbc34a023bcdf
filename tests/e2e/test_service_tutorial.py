"""The tutorial in the browser, walked as it is written: what is bold is pressed, in the order of the page."""

from __future__ import annotations

import re
from pathlib import Path

from selenium.webdriver.common.by import By

from support.browsing import click, fill, in_browser, open_browser, sign_out, wait_for
from support.served import Served

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "service_in_the_browser.md"
CLOCK = 'folder = "."\ntick = "1/4"\nlag = 20\nrate = 0\n'
HOSPITALS = "Ahorn\nBuche\nEiche\nFichte\nLinde"


class Reader:
    """Somebody who follows the page: presses what is bold, in the order of the page."""

    def __init__(self, browser):
        self.browser = browser
        self.bold = re.findall(r"\*\*([^*]+)\*\*", PAGE.read_text(encoding="utf-8").replace("\n", " "))
        self.place = 0

    def press(self, words):
        assert self.bold[self.place] == words, f"the page says {self.bold[self.place]!r} here"
        self.place += 1
        click(self.browser, words)


@in_browser
def test_the_tutorial_leads_to_a_published_figure(tmp_path):
    service = Served(tmp_path / "s", more=CLOCK).start()
    browser = open_browser(tmp_path / "chromium")
    try:
        reader = Reader(browser)
        arrive(reader, service, re.search(r"http\S+/welcome#\S+", service.said)[0], name="ada")
        links = invite(reader)
        sign_out(browser, service)
        protect(reader, service, links["carla"])
        sign_out(browser, service)
        ask(reader, service, links["ana"])
        published = publish(reader, service)
        sign_out(browser, service)
        browser.get(published)
        assert "Ahorn" in wait_for(browser, "What is promised")
        assert reader.place == len(reader.bold)
    finally:
        browser.quit()
        service.stop()


def arrive(reader, service, link, **fields):
    reader.browser.get(service.url + "/robots.txt")
    reader.browser.get(link)
    wait_for(reader.browser, "New password")
    fill(reader.browser, password="four ordinary words here", **fields)
    if fields:
        reader.press("Set the password and sign in")
    else:
        click(reader.browser, "Set the password and sign in")
    wait_for(reader.browser, "What would you like to do?")


def invite(reader):
    browser, links = reader.browser, {}
    for name, role in (("carla", "owner"), ("ana", "analyst")):
        follow = reader.press if name == "carla" else lambda words: click(browser, words)
        follow("People")
        wait_for(browser, "Invite a person")
        fill(browser, name=name)
        follow("Invite")
        wait_for(browser, "shown once")
        links[name] = browser.find_element(By.CSS_SELECTOR, "pre.code").text
        follow(f"Give roles to {name}")
        wait_for(browser, "No role yet")
        fill(browser, role=role)
        follow("Give the role")
        wait_for(browser, "all datasets")
    return links


def protect(reader, service, link):
    browser = reader.browser
    arrive(reader, service, link)
    reader.press("Protect a dataset")
    wait_for(browser, "Choose the data")
    fill(browser, source="visits", name="visits")
    reader.press("Continue")
    wait_for(browser, "Who is protected?")
    fill(browser, unit="patient_id")
    click(browser, "Continue")
    wait_for(browser, "What does everybody know")
    names = [one.text for one in browser.find_elements(By.TAG_NAME, "legend")]
    age, hospital = names.index("age"), names.index("hospital")
    fill(browser, **{f"low-{age}": "0", f"high-{age}": "120", f"keys-{hospital}": HOSPITALS})
    click(browser, "Continue")
    wait_for(browser, "How much may one")
    fill(browser, rows="5")
    click(browser, "Continue")
    wait_for(browser, "How much may be learned")
    fill(browser, epsilon="3")
    reader.press("Show what this budget means")
    wait_for(browser, "What epsilon 3 means")
    click(browser, "Continue")
    wait_for(browser, "Nothing is declared yet")
    reader.press("Declare the dataset")
    wait_for(browser, "Version of the data", seconds=60)
    reader.press("Open an allotment for an analyst")
    browser.find_element(By.ID, "f-epsilon-give").send_keys("1")
    browser.find_element(By.ID, "f-purpose-give").send_keys("first steps")
    reader.press("Open the allotment")
    wait_for(browser, "first steps")


def ask(reader, service, link):
    browser = reader.browser
    arrive(reader, service, link)
    reader.press("Ask a question")
    wait_for(browser, "what is left of each budget")
    click(browser, "visits")
    wait_for(browser, "Version of the data")
    reader.press("Ask a question")
    wait_for(browser, "Question in SQL")
    question = re.search(r"^SELECT.*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[0]
    fill(browser, sql=question, epsilon="0.25")
    reader.press("Show the price")
    wait_for(browser, "The price of this question")
    reader.press("Ask, and pay this price")
    wait_for(browser, "Show the answer", seconds=60)
    reader.press("Show the answer")
    wait_for(browser, "Values and intervals")


def publish(reader, service):
    browser = reader.browser
    sign_out(browser, service)
    browser.get(service.url + "/sign-in")
    fill(browser, name="carla", password="four ordinary words here")
    click(browser, "Sign in")
    wait_for(browser, "What would you like to do?")
    browser.get(service.url + "/datasets/visits")
    reader.press("Publish a release")
    wait_for(browser, "Which release?")
    fill(browser, title="Visits by hospital")
    reader.press("Publish")
    wait_for(browser, "What is promised")
    return browser.current_url
