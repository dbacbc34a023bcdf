"""The tables of threats in the documentation: every threat names tests, and these exist."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def rows(page, heading=""):
    """Return the rows of a table of threats: threat, counter, tests."""
    text = (
        page.read_text(encoding="utf-8").partition(heading)[2]
        if heading
        else page.read_text(encoding="utf-8")
    )
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[2:]]


def check_tests_exist(table):
    """Fail for a threat without a test, and for a test that is not there."""
    for threat, *_, named in table:
        tests = re.findall(r"`([\w/]+\.py)::(test_\w+)`", named)
        assert tests or named == "out of scope", f"{threat} has no test"
        for file, name in tests:
            path = TESTS / file
            assert path.exists(), file
            assert re.search(rf"^def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE), name
