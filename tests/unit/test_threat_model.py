"""The threat model: each class of defect that other systems have shipped has a row and tests that exist."""

from pathlib import Path

from support.threat_pages import check_tests_exist, rows

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "threat_model.md"


def test_every_class_of_defect_has_a_test_that_exists():
    table = rows(PAGE, "## Defects of other systems")
    assert len(table) >= 45
    check_tests_exist(table)
