"""A CSV file is checked when its curator opens it; nobody else sees the result, and nothing is opened."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tacit.service._settings import ListedSource

if TYPE_CHECKING:
    from pathlib import Path

DECLARED = {
    "name": "stays", "source": "stays", "unit": "id", "budget": {"epsilon": "3"}, "lag": 4,
    "bounds": {"los": ["0", "30"]},
}  # fmt: skip
GOOD, BAD = "id,los\n1,3\n2,4\n", 'id,los\n1,3\n"2,4\n3,5\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "stays.csv"


@pytest.fixture
def settings(settings: Any, file: Path) -> Any:
    return replace(settings, sources={**settings.sources, "stays": ListedSource("stays", str(file))})


def test_a_file_that_breaks_its_form_is_refused_to_its_curator_alone(
    house: Any, drawing: Any, file: Path
) -> None:
    house.person("cora", everywhere="curator")
    house.person("ana", everywhere="analyst auditor")
    cora, ana = house.token("cora"), house.token("ana")
    asked = {"dataset": "stays", "sql": "SELECT COUNT(*) AS n FROM stays", "epsilon": "1"}

    def seen() -> list[Any]:
        calls = [
            ("GET", "/datasets/stays", {}),
            ("GET", "/datasets", {}),
            ("POST", "/plans", {"json": asked}),
        ]
        told = [house.call(method, f"/api/v1{path}", ana, **more) for method, path, more in calls]
        return [(one.status_code, {**one.json(), "request": ""}) for one in told]

    before, head = seen(), house.service.ledger.head
    file.write_text(BAD)
    refused = house.call("POST", "/api/v1/datasets", cora, json=DECLARED)
    assert refused.status_code == 400, refused.text
    assert "line 3" in refused.text
    assert seen() == before
    assert house.service.ledger.head == head
    assert "line 3" not in str(house.call("GET", "/api/v1/audit-events", ana).json())
    file.write_text(GOOD)
    assert house.call("POST", "/api/v1/datasets", cora, json=DECLARED).status_code == 201
    assert house.call("GET", "/api/v1/datasets/stays", ana).status_code == 200
    assert drawing
