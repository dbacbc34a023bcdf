"""Run the code of one page in a process of its own, and write what each block prints and shows as JSON.

Run: python docs/run_page.py python|console PAGE TARGET

The noise is fixed by the page's name, here alone, so that a page stays the same from build to build and its
text may speak of its figures. Nothing in the package can do this.
"""

from __future__ import annotations

import ast
import base64
import doctest
import io
import json
import re
import shlex
import sys
from contextlib import nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.fixed_noise import noise_of  # noqa: E402
from support.pages import Block, blocks_of  # noqa: E402

_LARGEST = 400_000  # bytes of an SVG; a larger figure becomes a PNG


def run_python(page: Path) -> list[list[dict[str, str]]]:
    """Return what each Python block of a page shows, in the order of the blocks; a doctest shows nothing."""
    from matplotlib.figure import Figure

    space: dict[str, Any] = {"__name__": "__main__"}
    saved: list[Figure] = []
    save = Figure.savefig
    Figure.savefig = lambda figure, *given, **named: (saved.append(figure), save(figure, *given, **named))[1]  # type: ignore[method-assign]
    found = []
    for block in blocks_of(page.read_text()):
        if block.kind == "console":
            continue
        saved.clear()
        before = {id(value) for value in space.values()}
        printed = io.StringIO()
        with redirect_stdout(printed):
            values = _run(block, str(page), space)
        if block.kind == "check":
            continue
        space["printed"] = printed.getvalue()  # for the check that follows
        new = [value for value in space.values() if id(value) not in before]
        figures = {id(one): one for one in [*saved, *new, *values] if isinstance(one, Figure)}
        shown = [] if ">>>" in block.body else [{"kind": "text", "data": printed.getvalue().rstrip()}]
        shown += [_value(one) for one in values if one is not None and not isinstance(one, Figure)]
        shown += [_picture(one, save) for one in figures.values()]
        found.append([one for one in shown if one["data"]])
    return found


def run_console(page: Path) -> list[list[dict[str, str]]]:
    """Return what each line `$ tacit ...` of the console blocks of a page prints."""
    from tacit.cli import main

    found = []
    for block in blocks_of(page.read_text(), frozenset({"console"})):
        printed = []
        for line in re.findall(r"^\$ (.*)$", block.body, flags=re.MULTILINE):
            words, out = shlex.split(line, comments=True), io.StringIO()
            if words[0] == "tacit":
                sys.argv = words
                with redirect_stdout(out):
                    try:
                        main()
                    except SystemExit as end:
                        if end.code:
                            raise RuntimeError(f"{page}: {line} ended with {end.code}") from None
            printed.append({"kind": "text", "data": _plain(out.getvalue())})
        found.append(printed)
    return found


def _run(block: Block, name: str, space: dict[str, Any]) -> list[Any]:
    """Run a block; return the values of its lines that only name a value, and of its last line."""
    if ">>>" in block.body:
        for example in doctest.DocTestParser().get_examples(block.body):
            with suppress(Exception) if example.exc_msg else nullcontext():
                exec(compile(example.source, name, "exec", dont_inherit=True), space)
        return []
    values: list[Any] = []
    statements = ast.parse("\n" * (block.line - 1) + block.body, name).body
    for one in statements:
        if not isinstance(one, ast.Expr):
            exec(compile(ast.Module([one], []), name, "exec", dont_inherit=True), space)
            continue
        value = eval(compile(ast.Expression(one.value), name, "eval", dont_inherit=True), space)
        is_picture = hasattr(value, "savefig")
        if one is statements[-1] or is_picture:
            values.append(value)
        elif not isinstance(one.value, ast.Call):
            print(repr(value))  # a line that only names a value is there to show it
    return values


def _value(value: Any) -> dict[str, str]:
    html = value._repr_html_() if hasattr(value, "_repr_html_") else None
    return {"kind": "html", "data": html} if html else {"kind": "text", "data": repr(value)}


def _picture(figure: Any, save: Any) -> dict[str, str]:
    """Return a figure as an image, with its titles and its description as alternative text."""
    import matplotlib as mpl

    titles = [axes.get_title(loc=side) for axes in figure.axes for side in ("left", "center")]
    named = [figure.get_suptitle(), *titles, str(figure.get_label())]
    about = (
        "; ".join(" ".join(title.split()) for title in named if title) or "the figure that this code draws"
    )
    with mpl.rc_context({"svg.hashsalt": about}):
        drawn, media = _drawn(figure, save, "svg"), "svg+xml"
        if len(drawn) > _LARGEST:
            drawn, media = _drawn(figure, save, "png"), "png"
    data = base64.b64encode(drawn).decode()
    return {"kind": "image", "data": f"data:image/{media};base64,{data}", "about": f"Chart: {about}"}


def _drawn(figure: Any, save: Any, form: str) -> bytes:
    file = io.BytesIO()
    save(figure, file, format=form, metadata={"Date": None} if form == "svg" else {})
    return file.getvalue()


def _plain(text: str) -> str:
    """Return text without colours and without spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()).strip("\n")


if __name__ == "__main__":
    _, how, page, target = sys.argv
    with noise_of(str(Path(page).relative_to(ROOT))):
        made = (run_python if how == "python" else run_console)(Path(page))
    Path(target).write_text(json.dumps(made))
