"""The interactive page and the notebook displays, in a real headless Chromium."""

import base64
import math
import shutil

import pytest

import tacit as tc
from tacit.audit import lab

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="Chromium is not installed: apt-get install -y chromium chromium-driver",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1000,1400",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    yield driver
    driver.quit()


def open_page(browser, path, html):
    path.write_text(html, encoding="utf-8")
    browser.get(path.as_uri())
    assert browser.get_log("browser") == []


def text(browser, name):
    return browser.find_element("id", name).text


def slide(browser, epsilon):
    """Move the slider to an epsilon as a script would; the page reacts to the same event as to a hand."""
    browser.execute_script(
        "const s = document.getElementById('slider'); s.value = toSlider(arguments[0]);"
        "s.dispatchEvent(new Event('input'));",
        epsilon,
    )


def test_the_page_loads_and_says_the_sentence(browser, tmp_path):
    meaning = tc.explain(tc.Cost.pure(0.5))
    open_page(browser, tmp_path / "pure.html", meaning.html_report())
    assert browser.title == "What epsilon 0.5 means"
    assert text(browser, "sentence") == meaning.sentence
    assert text(browser, "slider-label") == "epsilon = 0.5"


def test_a_hand_on_the_slider_changes_every_number(browser, tmp_path):
    from selenium.webdriver.common.keys import Keys

    open_page(browser, tmp_path / "pure.html", tc.explain(tc.Cost.pure(0.5)).html_report())
    names = ("slider-label", "sentence", "factor", "bits", "advantage", "error", "beliefs", "families")
    before = {name: text(browser, name) for name in names}
    curves = browser.find_element("id", "posterior").get_attribute("innerHTML")
    browser.find_element("id", "slider").send_keys(Keys.END)
    after = {name: text(browser, name) for name in names}
    assert all(before[name] != after[name] for name in names)
    assert after["slider-label"] == "epsilon = 10"
    assert browser.find_element("id", "posterior").get_attribute("innerHTML") != curves
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1, 2.5, 3, 7])
def test_the_page_and_the_library_agree(browser, tmp_path, epsilon):
    open_page(browser, tmp_path / "pure.html", tc.explain(tc.Cost.pure(0.3)).html_report())
    slide(browser, epsilon)
    meaning = tc.explain(tc.Cost.pure(epsilon), priors=[0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99])
    assert text(browser, "sentence") == meaning.sentence
    assert text(browser, "error") == f"+/- {meaning.errors[2][1]:g}"
    assert float(text(browser, "bits")) == pytest.approx(meaning.bits, rel=2e-3)
    assert float(text(browser, "bits")) >= meaning.bits * (1 - 1e-9)
    families = [row.text.split() for row in browser.find_elements("css selector", "#families tbody tr")]
    assert all(float(row[1]) >= int(row[0]) * epsilon * (1 - 1e-9) for row in families)
    rows = [
        row.text.replace(" %", "").split()
        for row in browser.find_elements("css selector", "#beliefs tbody tr")
    ]
    for row, belief in zip(rows, meaning.beliefs, strict=True):
        assert float(row[1]) / 100 == pytest.approx(belief.at_least, abs=1e-4)
        assert float(row[2]) / 100 == pytest.approx(belief.at_most, abs=1e-4)
        assert float(row[1]) / 100 <= belief.at_least + 1e-12
        assert float(row[2]) / 100 >= belief.at_most - 1e-12


@pytest.mark.parametrize("value", [1e-9, 0.0123456, 0.1234567, 9.99999, 123.4, 123.456, 12345.678, 1.2341e6])
def test_the_page_rounds_bounds_up(browser, tmp_path, value):
    open_page(browser, tmp_path / "pure.html", tc.explain(tc.Cost.pure(1)).html_report())
    shown = float(browser.execute_script("return numberUp(arguments[0])", value))
    assert value * (1 - 1e-12) <= shown <= value * 1.01


def test_a_question_changes_the_error(browser, tmp_path):
    question = tc.explain.ExplainedQuestion("mean", n=5000, bounds=(80, 200))
    open_page(browser, tmp_path / "mean.html", tc.explain(tc.Cost.pure(1), question=question).html_report())
    shown = float(text(browser, "error").removeprefix("+/- "))
    assert shown == pytest.approx(0.024 * math.log(20), rel=1e-3)


def test_a_cost_of_parts_is_compared_with_any_of_its_epsilon(browser, tmp_path):
    meaning = tc.explain(2 * tc.Cost.pure(0.5))
    open_page(browser, tmp_path / "parts.html", meaning.html_report())
    assert text(browser, "panel-head").startswith("For comparison: any release")
    assert text(browser, "advantage") == "46.22 %"
    assert "46.22 %" in browser.find_element("tag name", "body").text  # the text says why its own is less


def test_a_cost_with_delta_names_the_exception(browser, tmp_path):
    from selenium.webdriver.common.keys import Keys

    cost = tc.Cost.gaussian(sigma=4, sensitivity=1)
    open_page(browser, tmp_path / "gaussian.html", tc.explain(cost).html_report())
    assert "except with probability" in text(browser, "sentence")
    before = float(text(browser, "exceeds"))
    t = float(text(browser, "slider-label").removeprefix("t = ").split()[0])
    assert before >= float(cost.loss_exceeds(t * 1.001))
    browser.find_element("id", "slider").send_keys(Keys.END)
    assert float(text(browser, "exceeds")) < before
    assert browser.get_log("browser") == []


def test_a_cost_without_an_epsilon_names_the_exception_too(browser, tmp_path):
    meaning = tc.explain(tc.Cost.approximate(0.5, 0.5))
    open_page(browser, tmp_path / "leak.html", meaning.html_report())
    assert browser.title == "What this cost means (no epsilon holds at delta 1e-06)"
    slide(browser, 2)
    assert float(text(browser, "exceeds")) >= 0.5
    assert "no limit" in text(browser, "families")


def test_the_page_fetches_nothing(browser, tmp_path):
    open_page(browser, tmp_path / "pure.html", tc.explain(tc.Cost.pure(1)).html_report())
    fetched = browser.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert fetched == []


def test_the_page_is_readable_in_the_dark(browser, tmp_path):
    """Text and background differ by at least 7:1 (WCAG AAA) in both colour schemes."""
    for scheme in ("light", "dark"):
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        open_page(browser, tmp_path / "pure.html", tc.explain(tc.Cost.pure(1)).html_report())
        style = "return getComputedStyle(document.body)[arguments[0]]"
        ink, paper = (luminance(browser.execute_script(style, name)) for name in ("color", "backgroundColor"))
        assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) >= 7
        assert (ink < paper) == (scheme == "light")


def luminance(color):
    channels = [int(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_notebook_tables_and_pictures_show(browser, tmp_path):
    attack = lab.membership_attack(epsilons=[0.5, 1], trials=500)
    picture = base64.b64encode(attack.plot()._repr_png_()).decode()
    image = f"<img id='p' src='data:image/png;base64,{picture}'>"
    page = f"<!doctype html><title>t</title>{attack._repr_html_()}{image}"
    open_page(browser, tmp_path / "notebook.html", page)
    assert browser.execute_script("return document.getElementById('p').naturalWidth") >= 600
    assert len(browser.find_elements("css selector", "table")) == 2
    assert "Membership attack" in browser.find_element("tag name", "h4").text
