"""The reference of the service names exactly the operations and settings that exist."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from tacit.service import ServiceSettings
from tacit.service._app import all_operations

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "service.md"
#: Read from the list of sources and the provider's own table.
TABLES = {"sources", "oidc"}


def table(heading: str) -> list[str]:
    """Return the lines of the table below a heading."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [line for line in text.splitlines() if line.startswith("| `")]


def written(operation) -> str:
    """Return an operation as a line of the table."""
    rule = operation.rule
    if rule.roles is None:
        who, use = "everybody", ""
    else:
        where = {"dataset": " of the dataset", "service": " of all datasets", "any": ""}[rule.on]
        who = (", ".join(sorted(rule.roles)) + where) if rule.roles else "everybody who is signed in"
        use = rule.scope
    page = "yes" if operation.page or operation.method == "POST" else ""
    body = ", ".join(f"`{name}`" for name in operation.body.model_fields) if operation.body else ""
    summary = operation.summary.rstrip(".")
    return f"| `{operation.method} {operation.path}` | {summary} | {who} | {use} | {page} | {body} |"


def test_the_table_of_operations_is_that_of_the_service():
    wanted = sorted((one for one in all_operations() if one.api), key=lambda one: (one.path, one.method))
    assert table("Operations") == [written(one) for one in wanted]


def test_every_setting_is_described():
    named = {line.split("`")[1] for line in table("Settings")}
    assert named == {one.name for one in fields(ServiceSettings)} - TABLES


def test_every_page_has_its_twin_but_those_that_are_only_forms():
    """What a page shows, a program can read at the same address."""
    alone = {one.path for one in all_operations() if one.method == "GET" and one.page and not one.api}
    assert alone == {
        "/declare", "/datasets/{dataset}/change", "/password", "/requests/new", "/robots.txt", "/sign-in",
        "/welcome",
    }  # fmt: skip
