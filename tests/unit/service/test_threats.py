"""Threats that belong to no single area: foreign sources, uploads, frames; and the page that lists all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.threat_pages import check_tests_exist, rows
from tacit.service._app import all_operations

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "explanation" / "service_threats.md"
FOREIGN = (
    "../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "s3://bucket/rows.parquet", "http://127.0.0.1/x",
    r"\\server\share\rows.csv", "visits.parquet", "visits; DROP TABLE users", "~/visits", "*",
)  # fmt: skip


@pytest.mark.parametrize("place", FOREIGN)
def test_no_place_can_be_named_instead_of_a_listed_source(house, place):
    house.person("cora", everywhere="curator")
    token, before = house.token("cora"), house.service.ledger.head
    declared = {"name": "mine", "source": place, "unit": "row", "budget": {"epsilon": "1"}}
    answer = house.call("POST", "/api/v1/datasets", token, json=declared)
    assert answer.status_code in {400, 404, 422}, answer.text
    assert place not in answer.text
    assert house.call("GET", "/api/v1/datasets", token).json()["datasets"] == []
    assert house.service.ledger.head == before


@pytest.mark.parametrize("path", sorted({one.path for one in all_operations() if one.body is not None}))
def test_no_file_is_taken(house, path):
    house.person("root", everywhere="admin owner analyst auditor")
    token = house.token("root")
    place = re.sub(r"\{\w+\}", "visits", path)
    for side in ("", "/api/v1"):
        answer = house.call("POST", side + place, token, files={"file": ("bomb.zip", b"PK\x03\x04" * 9)})
        assert answer.status_code in {400, 401, 403, 404, 405, 415}, (side, answer.status_code)


def test_no_other_site_can_show_a_page_in_a_frame(house):
    for path in ("/", "/sign-in", "/nothing", "/api/v1/health", "/static/tacit.css"):
        headers = house.call("GET", path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"], path
        assert headers["x-frame-options"] == "DENY"


def test_every_threat_has_a_test_that_exists():
    table = rows(PAGE)
    assert len(table) >= 16
    check_tests_exist(table)
