"""The offline map of a surface, in a real headless Chromium: what it shows, zooms and loads."""

import re
import shutil

import pytest

import tacit as tc

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
in_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="Chromium is not installed: apt-get install -y chromium chromium-driver",
)


def release(kind):
    sites = tc.points(
        tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="<sites> & 'co'",
        box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=5),
    )  # fmt: skip
    return {
        "grid": lambda: sites.grid(12, 16).plan(epsilon=1),
        "tree": lambda: sites.tree(depth=5).plan(epsilon=1),
        "districts": lambda: sites.districts(tc.maps.example_districts()).plan(epsilon=1),
    }[kind]().release()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--window-size=1000,1000",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):  # fmt: skip
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    yield driver
    driver.quit()


def text_at(browser, x, y):
    """Move the pointer to a place of the map, from 0 (left, top) to 1, and return what the page says."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    drawing = browser.find_element(By.ID, "map")
    box = browser.execute_script(
        "const m = document.getElementById('map'), c = m.getScreenCTM(), f = facts;"
        "const a = new DOMPoint(f.width * arguments[0], f.height * arguments[1]).matrixTransform(c);"
        "const r = m.getBoundingClientRect();"
        "return [a.x - r.left - r.width / 2, a.y - r.top - r.height / 2];", x, y,
    )  # fmt: skip
    ActionChains(browser).move_to_element_with_offset(drawing, *map(round, box)).perform()
    return browser.find_element(By.ID, "say").text


@in_browser
@pytest.mark.parametrize("kind", ["grid", "tree", "districts"])
def test_the_page_shows_value_and_interval_under_the_pointer(browser, tmp_path, kind):
    made = release(kind)
    path = tmp_path / "map.html"
    made.to_html(path)
    browser.get(path.as_uri())
    assert browser.get_log("browser") == []
    said = [text_at(browser, x, y) for x in (0.22, 0.51, 0.77) for y in (0.23, 0.52, 0.76)]
    read = [re.search(r"(-?[\d,.]+) points, 95 % interval (-?[\d,.]+) to (-?[\d,.]+) ", one) for one in said]
    assert any(read)
    for found in read:
        if found:
            value, low, high = (float(one.replace(",", "")) for one in found.groups())
            assert low <= value <= high
            assert min(abs(made.counts - value)) < 0.06
    assert browser.get_log("browser") == []


@in_browser
def test_the_value_is_that_of_the_cell_under_the_pointer(browser, tmp_path):
    made = release("grid")
    path = tmp_path / "map.html"
    made.to_html(path)
    browser.get(path.as_uri())
    rows, columns = made.regions.shape
    for row, column in ((0, 0), (11, 15), (5, 9)):
        said = text_at(browser, (column + 0.5) / columns, (rows - row - 0.5) / rows)
        shown = float(said.split(" points")[0].replace(",", ""))
        assert shown == made.counts[row * columns + column], said


@in_browser
def test_the_page_zooms_and_comes_back(browser, tmp_path):
    from selenium.webdriver.common.by import By

    path = tmp_path / "map.html"
    release("grid").to_html(path)
    browser.get(path.as_uri())
    shown = lambda: browser.find_element(By.ID, "map").get_dom_attribute("viewBox")  # noqa: E731
    whole = shown()
    browser.find_element(By.ID, "in").click()
    assert float(shown().split()[2]) == pytest.approx(600)
    before = text_at(browser, 0.5, 0.5)
    assert "points" in before
    browser.find_element(By.ID, "all").click()
    assert [float(one) for one in shown().split()] == pytest.approx(
        [float(one) for one in whole.split()], abs=0.01
    )
    browser.find_element(By.ID, "sure").click()
    assert browser.find_element(By.ID, "certain").get_dom_attribute("visibility") == "visible"
    assert browser.get_log("browser") == []


@in_browser
def test_a_foreign_script_does_not_run_in_the_page(browser, tmp_path):
    page = release("grid").to_html()
    path = tmp_path / "map.html"
    path.write_text(
        page.replace("</main>", "<script>document.title = 'taken'</script></main>"), encoding="utf-8"
    )
    browser.get(path.as_uri())
    assert browser.title != "taken"
    assert any("Content Security Policy" in one["message"] for one in browser.get_log("browser"))


def test_the_page_is_one_file_with_its_facts_and_no_address():
    page = release("grid").to_html()
    assert "default-src 'none'; img-src data:;" in page
    assert not re.findall(r"(?:src|href)=\"(?!data:)", page)
    assert "&lt;sites&gt;" in page
    assert "<sites>" not in page
    assert "epsilon 1" in page
    assert "protects each row" in page
    assert len(page) < 40_000


@in_browser
@pytest.mark.parametrize("kind", ["tree", "districts"])
def test_regions_that_may_be_empty_are_pale_and_can_be_hidden(browser, tmp_path, kind):
    from selenium.webdriver.common.by import By

    path = tmp_path / "map.html"
    made = release(kind)
    made.to_html(path)
    browser.get(path.as_uri())
    look = "return [...document.querySelectorAll('path.unclear')].map(p => getComputedStyle(p).fill)"
    before = browser.execute_script(look)
    assert len(before) == int((made.counts - made.half_widths <= 0).sum())
    browser.find_element(By.ID, "sure").click()
    assert set(browser.execute_script(look)) <= {"rgb(255, 255, 255)"}
    if kind == "tree":
        assert set(before) != {"rgb(255, 255, 255)"}


def test_the_page_has_a_legend_with_values_and_says_how_far_off_a_region_may_be():
    made = release("grid")
    page = made.to_html()
    legend = page.split('<svg id="legend"')[1].split("</svg>")[0]
    top = made.counts.max()
    assert f">{top:.3g}</text>" in legend
    assert f">{top / 4:.3g}</text>" in legend
    assert "points in a cell" in legend
    assert "within 3 points of its exact count with 95 % confidence" in page
