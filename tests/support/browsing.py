"""A real headless Chromium for the pages of the service: what it sees, how it is used, what axe finds."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from functools import cache

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
in_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="Chromium is not installed: apt-get install -y chromium chromium-driver",
)
WIDE, NARROW, ZOOMED = (1200, 1000, 1), (320, 800, 1), (640, 500, 2)


def open_browser(folder):
    """Start Chromium with an empty profile in a folder."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-features=PasswordLeakDetection",
        "--window-size=1200,1000", f"--user-data-dir={folder}",
    ):  # fmt: skip
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"credentials_enable_service": False})
    service = webdriver.ChromeService(executable_path=DRIVER)
    return webdriver.Chrome(options=options, service=service)


def resize(browser, size=WIDE):
    """Show pages in a size: width and height in CSS pixels, and device pixels for each of them."""
    width, height, scale = size
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False},
    )


def colours(browser, scheme):
    """Ask pages for their light or dark colours."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def as_new(browser):
    """Show pages wide and light, and forget the messages of earlier pages."""
    resize(browser, WIDE)
    colours(browser, "light")
    console(browser)


@contextmanager
def without_scripts(browser):
    """Let pages run no scripts; ours, through the driver, do not run either."""
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        yield browser
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@cache
def _axe():
    from axe_core_python.base import AXE_SCRIPT

    return AXE_SCRIPT


def axe_findings(browser):
    """Return what axe finds on the page, as lines; rules of WCAG 2 A and AA and its best practices."""
    if not browser.execute_script("return 'axe' in window"):  # it stays while the page does
        browser.execute_script(_axe())
    result = browser.execute_async_script(
        "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']})"
        ".then(r => done(r.violations), e => done([{id: 'axe failed', impact: String(e), nodes: []}]))"
    )
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:160]}"
        for one in result
        for node in one["nodes"] or [{"html": ""}]
    ]


def page_findings(browser):
    """Return what people stumble over: axe, small targets, sideways scrolling, messages of the console.

    What is folded away is unfolded first.
    """
    browser.execute_script("document.querySelectorAll('details').forEach(one => one.open = true)")
    wrong = axe_findings(browser)
    wrong += [f"target smaller than 24 px: {one}" for one in browser.execute_script(_SMALL_TARGETS)]
    if browser.execute_script("return document.documentElement.scrollWidth > window.innerWidth"):
        wrong.append("the page scrolls sideways")
    return wrong + console(browser)


#: WCAG 2.2, 2.5.8: links inside sentences are exempt.
_SMALL_TARGETS = """
const inline = e => e.tagName === 'A' && e.closest('p, dd, li, figcaption, caption')
  && getComputedStyle(e).display === 'inline';
return [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')]
  .filter(e => !inline(e) && e.getClientRects().length && !e.closest('.skip'))
  .filter(e => { const b = e.getBoundingClientRect(); return b.width < 24 || b.height < 24; })
  .map(e => e.outerHTML.slice(0, 120));
"""


def console(browser):
    """Return the messages of the console since the last call; a refusal that a test provokes is not one."""
    found = [one["message"] for one in browser.get_log("browser") if one["level"] in {"SEVERE", "WARNING"}]
    return [one for one in found if "the server responded with a status of 4" not in one]


def focused(browser):
    """Return the words of the element that has the focus."""
    return browser.execute_script(
        "const e = document.activeElement; return (e.getAttribute('aria-label') || "
        "(e.labels && e.labels.length ? e.labels[0].innerText : '') || e.innerText || e.tagName).trim();"
    )


def press(browser, *keys):
    """Press keys, wherever the focus is."""
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser).send_keys(*keys).perform()


def tab_to(browser, words, most=80):
    """Press Tab until the element with these words has the focus, and see that the focus is visible."""
    from selenium.webdriver.common.keys import Keys

    seen = []
    for _ in range(most):
        press(browser, Keys.TAB)
        now = focused(browser)
        seen.append(now)
        if now == words or now.split("\n")[0].strip() == words:
            assert browser.execute_script(_FOCUS_IS_SEEN), f"the focus on {words!r} is not visible"
            return
    raise AssertionError(f"no way by keyboard to {words!r}; seen: {seen}")


_FOCUS_IS_SEEN = """
const e = document.activeElement, s = getComputedStyle(e), b = e.getBoundingClientRect();
return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2
  && b.bottom > 0 && b.top < window.innerHeight;
"""


def type_into(browser, label, text):
    """Go to a field by keyboard and write into it."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    tab_to(browser, label)
    ActionChains(browser).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()
    press(browser, text)


def field(browser, label):
    """Return the field with a label."""
    from selenium.webdriver.common.by import By

    for one in browser.find_elements(By.TAG_NAME, "label"):
        if one.text.split("\n")[0].removesuffix("(optional)").strip() == label:
            return browser.find_element(By.ID, one.get_dom_attribute("for"))
    raise AssertionError(f"no field is labelled {label!r}")


def fill(browser, **fields):
    """Write into fields by their names."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    for name, text in fields.items():
        found = browser.find_element(By.NAME, name)
        if found.tag_name == "select":
            Select(found).select_by_value(text)
        elif found.get_dom_attribute("type") in {"checkbox", "radio"}:
            browser.find_element(By.CSS_SELECTOR, f"[name='{name}'][value='{text}']").click()
        else:
            found.clear()
            found.send_keys(text)


def click(browser, words):
    """Click the button or link with these words, and wait until the page that it opens is there."""
    from selenium.webdriver.common.by import By

    for places in ("main button, main a, main summary", "header a, header button"):
        for one in browser.find_elements(By.CSS_SELECTOR, places):
            if one.text.strip() == words:
                one.click()
                return
    raise AssertionError(f"nothing to click is called {words!r}")


def wait_for(browser, words, seconds=20):
    """Wait until the page shows some words, and return its text."""
    from selenium.common.exceptions import TimeoutException, WebDriverException
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    def shown(driver):
        return words in driver.find_element(By.TAG_NAME, "body").text

    try:
        WebDriverWait(browser, seconds, ignored_exceptions=[WebDriverException]).until(shown)
    except TimeoutException:
        there = browser.find_element(By.TAG_NAME, "body").text
        raise AssertionError(f"{words!r} did not appear at {browser.current_url}:\n{there}") from None
    return browser.find_element(By.TAG_NAME, "body").text


def heading(browser):
    """Return the heading of the page."""
    from selenium.webdriver.common.by import By

    return browser.find_element(By.TAG_NAME, "h1").text


def sign_in_as(browser, service, name):
    """Give the browser a session of a person of the service, as if the person had signed in."""
    from tacit.service._times import later_text, new_secret, now_text
    from tacit.service.access import SESSION_COOKIE, digest_of_secret

    secret = new_secret()
    with service.database.change() as change:
        change.run(
            "INSERT INTO sessions (digest, person, csrf, created, expires) VALUES (?, ?, ?, ?, ?)",
            digest_of_secret(secret), service.people[name], new_secret(), now_text(), later_text(hours=1),
        )  # fmt: skip
    sign_out(browser, service)
    browser.add_cookie({"name": SESSION_COOKIE, "value": secret, "httpOnly": True, "sameSite": "Lax"})


def sign_out(browser, service):
    """Forget who uses the browser."""
    browser.get(service.url + "/robots.txt")
    browser.delete_all_cookies()


def links(browser):
    """Return the addresses of pages that the page leads to, without those that save files."""
    found = browser.execute_script(
        "return [...document.querySelectorAll('a[href]:not([download])')].map(a => a.href)"
        ".filter(h => h.startsWith(location.origin)).map(h => h.slice(location.origin.length).split('#')[0])"
    )
    saved = (".json", ".csv", ".parquet", ".svg", ".txt")
    return [one for one in found if not one.startswith("/api/") and not one.split("?")[0].endswith(saved)]


def crawl(browser, service, look, most=60, each=3, without=()):
    """Follow every link from the start page, some of each kind; return what `look` says of each page.

    Pages whose address begins with one of ``without`` are left out.
    """
    import re

    seen, kinds, waiting, said = set(), {}, ["/"], {}
    while waiting and len(seen) < most:
        path = waiting.pop(0)
        kind = re.sub(r"[a-z]_[a-z2-7]{16}|/\d+(?=/|$)|(?<==)[^&]*", "*", path)
        if path in seen or kinds.get(kind, 0) >= each or path.startswith(tuple(without)):
            continue
        seen.add(path)
        kinds[kind] = kinds.get(kind, 0) + 1
        browser.get(service.url + path)
        said[path] = look(path)
        waiting += [one for one in links(browser) if one not in seen]
    return said
