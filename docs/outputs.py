"""A Sphinx extension: the code of each page runs when the site is built, and shows what it prints and draws.

Every page runs in a process of its own, in an empty folder, with the noise that `run_page` fixes. What a page
shows is kept in ``_build/outputs`` until the page or the package changes. Hidden checks, comments that begin
with ``<!-- check``, run with the blocks and are not shown.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from html import escape
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests"))

from support.pages import Block, blocks_of  # noqa: E402

_SAID = (
    "The outputs on this page were made when it was built. Their noise was fixed for the page, so that they "
    "stay the same. The noise of your own answers is always fresh."
)
_MOST = 80  # lines of one output
_ENVIRONMENT = {
    "COLUMNS": "88", "MPLBACKEND": "Agg", "NO_COLOR": "1", "FORCE_COLOR": "", "PYTHONWARNINGS": "ignore",
    "TACIT_TEST_NOISE": "",
}  # fmt: skip


def setup(app: Any) -> dict[str, bool]:
    """Connect the extension."""
    app.connect("builder-inited", _run_pages)
    app.connect("source-read", _with_outputs)
    return {"parallel_read_safe": True}


def _run_pages(app: Any) -> None:
    """Run all pages, two at a time."""
    code = hashlib.sha256()
    for file in sorted([*(DOCS.parent / "src").rglob("*.py"), DOCS / "run_page.py"]):
        code.update(file.read_bytes())
    names, failed = sorted(app.env.found_docs), []

    def outputs(name: str) -> dict[str, list[list[dict[str, str]]]]:
        try:
            return _outputs(DOCS / f"{name}.md", code.hexdigest())
        except RuntimeError as problem:
            failed.append(str(problem))
            return {}

    with ThreadPoolExecutor(os.cpu_count()) as runners:
        app.tacit_outputs = dict(zip(names, runners.map(outputs, names), strict=True))
    if failed:
        raise RuntimeError("\n".join(failed))


def _outputs(page: Path, code: str) -> dict[str, list[list[dict[str, str]]]]:
    """Return what the blocks of a page show, by kind; from the last build where nothing has changed."""
    found = {}
    for how in ("python", "console"):
        shown = [
            block for block in blocks_of(page.read_text()) if (block.kind == "console") == (how == "console")
        ]
        if not any(block.kind == how for block in shown):
            continue
        key = hashlib.sha256("\0".join([code, how, *(block.body for block in shown)]).encode()).hexdigest()
        kept = DOCS / "_build" / "outputs" / f"{key}.json"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            _run(how, page, kept)
        found[how] = json.loads(kept.read_text())
    return found


def _run(how: str, page: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, DOCS / "run_page.py", how, page, target],
            cwd=folder, env={**os.environ, **_ENVIRONMENT}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the {how} blocks of {page} do not run:\n{done.stderr}")


def _with_outputs(app: Any, name: str, source: list[str]) -> None:
    """Put what the blocks show below them, and take the hidden checks out."""
    text, said = source[0], False
    made = {how: iter(shown) for how, shown in app.tacit_outputs.get(name, {}).items()}
    parts, start = [], 0
    for block in blocks_of(text):
        parts.append(text[start : block.start])
        start = block.end
        shown = next(made[block.kind]) if block.kind in made else []
        if block.kind == "console":
            parts.append(_session(block, shown))
        elif block.kind == "python":
            parts.append("\n".join([text[block.start : block.end], *map(_output, shown)]))
        if shown and block.kind != "check" and not said and any(one["data"] for one in shown):
            parts.append(f'\n```{{raw}} html\n<p class="output-note">{escape(_SAID)}</p>\n```\n')
            said = True
    source[0] = "".join([*parts, text[start:]])


def _output(one: dict[str, str]) -> str:
    if one["kind"] == "text":
        lines = one["data"].splitlines()
        more = [f"... ({len(lines) - _MOST:,} more lines)"] if len(lines) > _MOST else []
        return "\n".join(["\n````{code-block} text\n:class: output\n", *lines[:_MOST], *more, "````\n"])
    image = f'<img src="{one["data"]}" alt="{escape(one.get("about", ""))}">'
    shown = image if one["kind"] == "image" else one["data"]
    return f'\n```{{raw}} html\n<div class="output {one["kind"]}">{shown}</div>\n```\n'


def _session(block: Block, shown: list[dict[str, str]]) -> str:
    """Return a console block with what each of its commands prints."""
    lines, printed = [], iter(shown)
    for line in block.body.splitlines():
        lines.append(line)
        if line.startswith("$ "):
            lines += next(printed, {"data": ""})["data"].splitlines()
    return "\n".join(["````console", *lines, "````"]) + "\n"
