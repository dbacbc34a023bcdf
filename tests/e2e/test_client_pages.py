"""The page about asking a service from Python runs, against a small service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.pages import FENCE, blocks
from support.small_service import ANA, TOKEN, serving

DOCS = Path(__file__).parents[2] / "docs"
ADDRESS = "https://stats.example.org"


def test_the_page_about_asking_a_service_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("token.txt").write_text(TOKEN)
    page, namespace = DOCS / "howto/connect_to_a_service.md", {"__name__": "__main__"}
    with serving() as (service, url):
        for line, _, body in blocks(page, frozenset({"py"})):
            code = "\n" * (line - 1) + body.replace(ADDRESS, url)
            exec(compile(code, str(page), "exec"), namespace)
        assert service.ledger.account(ANA).spent.epsilon == 0.5
    printed = capsys.readouterr().out
    assert "invented rows" in printed
    assert "code: budget-exceeded" in printed
    assert "finished monthly report" in printed
    assert Path("answer.json").exists()
    assert json.loads(Path("certificate.json").read_text())["plan"] == namespace["plan"].hash


@pytest.mark.parametrize("words", ["mcp", "--token-file"])
def test_the_settings_of_a_host_are_json_and_start_the_command(words):
    page = (DOCS / "howto/assistants.md").read_text()
    [settings] = [m["body"] for m in FENCE.finditer(page) if m["info"].strip() == "json"]
    assert words in json.loads(settings)["mcpServers"]["tacit"]["args"]
