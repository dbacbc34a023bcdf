"""The questionnaire page of a survey, in a real headless Chromium: its law, its keyboard, what it sends."""

import json
import shutil
from fractions import Fraction
from math import comb

import pytest
from scipy.stats import chi2

import tacit as tc
from tacit.errors import TacitError
from tacit.mechanisms import LinearHashing, NumberWindow, SubsetSelection, randomizer_from_json
from tacit.surveys._form import form_page

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
in_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="Chromium is not installed: apt-get install -y chromium chromium-driver",
)
DRAWS = 100_000
LEVEL = 1e-9  # of each chi-square test, fixed beforehand
#: Draw so many reports of one truth and count the different ones.
TALLY = """
const [law, truth, draws, seed] = arguments, found = {};
for (let i = 0; i < draws; i++) {
  const drawn = JSON.stringify(LAWS[law.mechanism](law, truth, seed ?? undefined));
  found[drawn] = (found[drawn] ?? 0) + 1;
}
return found;
"""


def poll(questions=("no", "yes"), **facts):
    """A survey with one question, or with those given."""
    if not isinstance(questions, dict):
        questions = {"smokes": tc.surveys.question(list(questions), text="Do you smoke?")}
    return tc.survey("poll", questions, **{"epsilon": 1, **facts})


def page(survey=None, **options):
    return form_page(survey or poll(), **options)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    folder = tmp_path_factory.mktemp("downloads")
    options.add_experimental_option("prefs", {"download.default_directory": str(folder)})
    profile = tmp_path_factory.mktemp("chromium")
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1000,1400",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    driver.folder = folder
    yield driver
    driver.quit()


def open_page(browser, tmp_path, html, query=""):
    path = tmp_path / "form.html"
    path.write_text(html, encoding="utf-8")
    browser.get(path.as_uri() + query)
    assert browser.get_log("browser") == []


def chance_of_worse(found, law):
    """The chance of a larger chi-square, were the counts drawn from the law (outcome -> exact chance)."""
    assert set(found) <= set(law), "the page drew something that has no chance"
    assert sum(law.values()) == 1
    total = sum(found.values())
    statistic = sum(
        (found.get(one, 0) - total * float(p)) ** 2 / (total * float(p)) for one, p in law.items()
    )
    return chi2.sf(statistic, len(law) - 1)


@in_browser
@pytest.mark.parametrize("truth", [0, 3])
@pytest.mark.parametrize(
    "randomizer",
    [
        SubsetSelection(epsilon=1, size=5, subset=1),
        SubsetSelection(epsilon=0.5, size=7, subset=3),
        NumberWindow(epsilon=1, steps=3),
        NumberWindow(epsilon=4, steps=4, duchi=False),
        NumberWindow(epsilon=0.3, steps=3),
    ],
    ids=["answers", "subsets", "window and coin", "window", "coin"],
)
def test_reports_from_the_page_follow_the_law_of_the_library(browser, tmp_path, randomizer, truth):
    open_page(browser, tmp_path, page())
    found = browser.execute_script(TALLY, randomizer.to_json(), truth, DRAWS, None)
    reports = {one: json.loads(one) for one in found}
    if isinstance(randomizer, SubsetSelection):
        assert len(found) == comb(randomizer.size, randomizer.subset)
    law = {one: randomizer.probability(report, truth=truth) for one, report in reports.items()}
    assert chance_of_worse(found, law) > LEVEL


@in_browser
def test_hashes_from_the_page_follow_the_law_of_the_library(browser, tmp_path):
    open_page(browser, tmp_path, page())
    randomizer = LinearHashing(epsilon=1, size=1000)
    seed = randomizer.seeds_for(["A-17"], label="poll")[0].tolist()
    found = browser.execute_script(TALLY, randomizer.to_json(), 698, DRAWS, seed)
    law = {}
    for answer in range(2**randomizer.bits):
        report = {"seed": seed, "answer": answer}
        law[json.dumps(report, separators=(",", ":"))] = randomizer.probability(report, truth=698)
    assert chance_of_worse(found, law) > LEVEL
    small = LinearHashing(epsilon=1, size=6, bits=2)  # words of three bits
    found = browser.execute_script(TALLY, small.to_json(), 4, DRAWS, None)
    law = {}
    for first in range(8):
        for second in range(8):
            for answer in range(4):
                report = {"seed": [first, second], "answer": answer}
                name = json.dumps(report, separators=(",", ":"))
                law[name] = small.probability(report, truth=4) / 64
    assert chance_of_worse(found, law) > LEVEL


@in_browser
def test_the_page_draws_numbers_without_bias_and_a_bare_modulo_is_caught(browser, tmp_path):
    open_page(browser, tmp_path, page())
    count = """
    const [draws, biased] = arguments, found = {a: 0, b: 0, c: 0}, limit = 3 * 2 ** 30;
    for (let i = 0; i < draws; i++) {
      const drawn = biased ? word() % limit : below(limit);
      found["abc"[Math.floor(drawn / 2 ** 30)]]++;
    }
    return found;
    """
    law = dict.fromkeys("abc", Fraction(1, 3))
    assert chance_of_worse(browser.execute_script(count, DRAWS, False), law) > LEVEL
    assert chance_of_worse(browser.execute_script(count, DRAWS, True), law) < LEVEL


@in_browser
def test_a_respondent_answers_with_the_keyboard_alone(browser, tmp_path):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    open_page(browser, tmp_path, page())
    keys = ActionChains(browser)
    keys.send_keys(Keys.TAB, Keys.SPACE, Keys.ARROW_DOWN, Keys.TAB, Keys.ENTER).perform()
    assert browser.switch_to.active_element.get_attribute("id") == "result-head"
    row = browser.find_element("css selector", "#rows tr").text
    assert row.startswith("Do you smoke? yes ")
    report = json.loads(browser.find_element("id", "report").get_attribute("textContent"))
    assert report["survey"] == poll().digest
    assert report["epsilon"] == "1"
    assert report["answers"]["smokes"] in ([0], [1])
    assert not browser.find_element("id", "draw").is_enabled()
    assert browser.get_log("browser") == []


@in_browser
def test_a_missing_answer_draws_nothing_and_says_what_is_missing(browser, tmp_path):
    open_page(browser, tmp_path, page())
    browser.find_element("id", "draw").click()
    assert browser.find_element("id", "problem-0").text == "Please answer this question."
    assert browser.find_element("id", "problem").get_attribute("role") == "alert"
    assert browser.find_element("id", "report").get_attribute("textContent") == ""
    assert browser.switch_to.active_element.get_attribute("name") == "q0-0"


@in_browser
def test_every_control_has_a_name_for_screen_readers(browser, tmp_path):
    questions = {
        "smokes": tc.surveys.question(["no", "yes"], text="Do you smoke?"),
        "state": tc.surveys.question([f"state {i}" for i in range(51)], text="Where?"),
        "age": tc.surveys.question((18, 90), text="How old?"),
        "drinks": ["no", "yes"],
        "sex": ["f", "m"],
    }
    survey = poll(questions, epsilon=8, pairs=[("drinks", "sex")], strategy="split")
    html = page(survey)
    open_page(browser, tmp_path, html)
    for control in browser.find_elements("css selector", "form input, form select, form button"):
        if control.is_displayed():
            assert control.accessible_name
    names = [one.accessible_name for one in browser.find_elements("css selector", "fieldset")]
    assert names == ["Do you smoke?", "Where?", "How old?", "drinks and sex"]
    browser.find_element("css selector", "#question-0 input[value='1']").click()
    browser.find_element("css selector", "#question-1 option[value='50']").click()
    browser.find_element("css selector", "#question-2 input").send_keys("54")
    browser.find_element("css selector", "input[name='q3-0'][value='1']").click()
    browser.find_element("css selector", "input[name='q3-1'][value='0']").click()
    browser.find_element("id", "draw").click()
    told = [row.text for row in browser.find_elements("css selector", "#rows tr")]
    assert "Where? state 50" in told[1]
    assert "How old? 54" in told[2]
    assert "drinks and sex yes, f" in told[3]
    report = json.loads(wait_for(browser, "#report"))
    assert survey.collect([report]).respondents == 1
    ages = [54, 200, 18.02, 18.1, 77.7, -3]
    truths = browser.execute_script("return arguments[0].map((age) => truthOf(asked[2], [age]))", ages)
    assert truths == survey["age"].encode({"age": ages}).tolist()
    assert browser.execute_script("return truthOf(asked[3], [1, 0])") == 2


@in_browser
def test_the_page_asks_one_question_where_the_survey_says_so(browser, tmp_path):
    html = page(poll({"Do you smoke?": ["no", "yes"], "Do you drink?": ["no", "yes"]}, strategy="one"))
    seen = set()
    for _ in range(40):  # the chance that one of the two is never asked is 2^-39
        open_page(browser, tmp_path, html)
        [field] = browser.find_elements("css selector", "fieldset legend")
        seen.add(field.text)
        if len(seen) == 2:
            break
    assert seen == {"Do you smoke?", "Do you drink?"}
    assert browser.find_element("id", "one-question").is_displayed()


@in_browser
def test_the_page_uses_the_seed_of_the_invitation(browser, tmp_path):
    randomizer = LinearHashing(epsilon=1, size=30)
    words = tc.surveys.question([f"word {i}" for i in range(30)], randomizer=randomizer)
    survey = poll({"word": words})
    html = page(survey, invitation=True)
    open_page(browser, tmp_path, html, query="?invitation=A-17")
    assert not browser.find_element("id", "invitation-box").is_displayed()
    browser.find_element("css selector", "option[value='3']").click()
    browser.find_element("id", "draw").click()
    shown = wait_for(browser, "#report")
    report = json.loads(shown)
    assert report["invitation"] == "A-17"
    [row] = survey.collect([report]).answered["word"].reports  # its seed is that of the invitation
    assert row["answer"] == report["answers"]["word"]["answer"]
    with pytest.raises(TacitError):
        survey.collect([{**report, "invitation": "A-18"}])


@in_browser
@pytest.mark.parametrize("drawn", [False, True])
def test_the_back_button_brings_no_true_answer_back(browser, tmp_path, drawn):
    survey = poll({"smokes": ["no", "yes"], "age": (18, 90)}, strategy="split")
    open_page(browser, tmp_path, page(survey))
    browser.find_element("css selector", "input[value='1']").click()
    browser.find_element("css selector", "input[type=number]").send_keys("44")
    if drawn:
        browser.find_element("id", "draw").click()
        wait_for(browser, "#report")
    browser.get("about:blank")
    browser.back()
    found = browser.execute_script(
        "return [document.querySelector('input:checked')?.value ?? '',"
        " document.querySelector('input[type=number]').value,"
        " ...[...document.querySelectorAll('#rows td:nth-child(2)')].map((one) => one.textContent)].join('')"
    )
    assert found == ""


@in_browser
def test_a_long_list_of_numbers_is_asked(browser, tmp_path):
    open_page(browser, tmp_path, page(tc.survey("long", 1500, epsilon=1)))
    browser.find_element("css selector", "option[value='1499']").click()
    browser.find_element("id", "draw").click()
    assert json.loads(wait_for(browser, "#report"))["answers"]["answer"]


def test_a_survey_that_the_page_cannot_draw_is_refused():
    kuk = tc.surveys.question(["no", "yes"], randomizer=tc.mechanisms.Design.kuk("0.3", "0.7"))
    for survey in (tc.survey("memo", ["no", "yes"], epsilon=2, once=1), poll({"smokes": kuk})):
        with pytest.raises(TacitError) as refused:
            page(survey)
        assert refused.value.code == "not-allowed"


@in_browser
def test_the_report_is_saved_as_a_file_and_no_dice_are_rolled_twice(browser, tmp_path):
    import time

    open_page(browser, tmp_path, page())
    browser.find_element("css selector", "input[value='0']").click()
    browser.find_element("id", "draw").click()
    shown = wait_for(browser, "#report")
    browser.execute_script("document.getElementById('form').requestSubmit()")  # a second time
    browser.find_element("id", "save").click()
    until = time.monotonic() + 60
    while not list(browser.folder.glob("poll-report*.json")) and time.monotonic() < until:
        time.sleep(0.05)
    [file] = browser.folder.glob("poll-report*.json")
    assert file.read_text(encoding="utf-8") == shown + "\n"


@in_browser
def test_the_page_posts_the_report_to_its_one_collector(browser, tmp_path):
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    received = []

    class Collector(BaseHTTPRequestHandler):
        def do_OPTIONS(self):
            self.answer()

        def do_POST(self):
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer()

        def answer(self):
            self.send_response(204)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Access-Control-Allow-Headers", "Content-Type")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/reports"
    try:
        open_page(browser, tmp_path, page(post_to=address))
        browser.find_element("css selector", "input[value='1']").click()
        browser.find_element("id", "draw").click()
        shown = wait_for(browser, "#report")
        browser.find_element("id", "send").click()
        wait_for(browser, "#status", "is sent")
        assert received == [shown.encode()]
        blocked = "return fetch(arguments[0]).then(() => 'reached', () => 'blocked')"
        elsewhere = address.replace("/reports", "/other")
        assert browser.execute_script(blocked, elsewhere) == "blocked"
        browser.get_log("browser")  # the policy says there that it has blocked something
    finally:
        server.shutdown()
        server.server_close()


@in_browser
def test_a_second_script_does_not_run(browser, tmp_path):
    html = page().replace("</main>", "<script>window.injected = 1</script></main>")
    (tmp_path / "form.html").write_text(html, encoding="utf-8")
    browser.get((tmp_path / "form.html").as_uri())
    assert browser.execute_script("return window.injected ?? null") is None
    assert "Content Security Policy" in str(browser.get_log("browser"))


def wait_for(browser, selector, part=""):
    from selenium.webdriver.support.ui import WebDriverWait

    def shown(driver):
        text = driver.find_element("css selector", selector).get_attribute("textContent")
        return text if text and part in text else None

    return WebDriverWait(browser, 60).until(shown)


@pytest.mark.parametrize(
    "address",
    ["http://example.org/reports", "javascript:alert(1)", "https://", "https://a.org/x; script-src *", "https://a.org/'"],
)  # fmt: skip
def test_an_address_that_anyone_could_read_or_that_ends_the_policy_is_refused(address):
    with pytest.raises(TacitError) as refused:
        page(post_to=address)
    assert refused.value.code == "bad-parameter"


def test_texts_of_a_survey_cannot_leave_their_place():
    hostile = "</script><script>alert(1)</script> @DATA@ @POLICY@ <b>"
    survey = poll({"smokes": tc.surveys.question(["no", "yes"], text=hostile)})
    html = page(survey, title=hostile, intro=hostile)
    assert html.count("<script") == 2
    assert "<b>" not in html
    assert html.count("default-src 'none'") == 1


def test_the_law_in_the_page_is_that_of_the_survey():
    facts = page().split('<script id="facts" type="application/json">')[1].split("</script>")[0]
    law = json.loads(facts)["survey"]["questions"][0]["randomizer"]
    assert randomizer_from_json(law) == SubsetSelection(epsilon=1, size=2)


def test_the_page_tells_what_a_report_gives_away_never_too_little():
    from tacit.surveys._form import _meaning, _promise

    assert "a factor of 2.72 at most" in _promise(1)
    assert "at most 73.2 % sure" in _meaning(1)  # 73.106
    assert "at most 99.967 % sure" in _meaning(8)  # 99.96647
