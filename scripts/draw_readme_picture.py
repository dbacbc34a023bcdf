"""Draw the picture at the top of README.md: its ten lines, what they print, and their chart.

Run: python scripts/draw_readme_picture.py

It runs the first block of README.md with the noise that the built documentation has, which is fixed.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.fixed_noise import noise_of  # noqa: E402
from support.pages import blocks  # noqa: E402

TARGET = ROOT / "docs" / "images" / "plan_release_chart.png"
SIZE = 8.6  # of the letters, in points
LINE = 1.1 * SIZE / 72  # the height of a line, in inches
WIDTH, HEIGHT = 10.6, 5.1
CODE, OUTPUT = "#0b4f9c", "#222222"


def main() -> None:
    """Run the block, and draw what came back: what one types in blue, what Tacit answers in black."""
    os.environ["COLUMNS"] = "78"
    code = next(body for _, kind, body in blocks(ROOT / "README.md") if kind == "python")
    space: dict[str, Any] = {}
    os.chdir(tempfile.mkdtemp())
    with noise_of("docs/index.md"), redirect_stdout(io.StringIO()):
        exec(compile(code, "README.md", "exec"), space)  # noqa: S102 - the project's own page
    asked = [line.partition("  #")[0] for line in code.splitlines()]
    begin = next(i for i, line in enumerate(asked) if line.startswith("question ="))
    typed = asked[begin:]
    facts = str(space["plan"]).splitlines()
    shown = facts[: next(i for i, line in enumerate(facts) if line.startswith("groups")) + 1]
    answers = {"print(plan)": "\n".join(shown), "print(release)": str(space["release"])}
    picture = Figure(figsize=(WIDTH, HEIGHT), layout="constrained", facecolor="white")
    left, right = picture.subfigures(1, 2, width_ratios=(1.35, 1))
    down = 0.1
    for line in typed:
        if line.startswith(("print(visits", "release.plot")):
            continue
        for text, colour in ((line, CODE), (answers.get(line, ""), OUTPUT)):
            _write(left, text, colour, down)
            down += LINE * len(text.splitlines()) + (0.05 if text and colour == OUTPUT else 0)
    _write(right, 'release.plot("stay")', CODE, 0.1)
    space["release"].plot("stay", ax=right.add_axes((0.1, 0.16, 0.86, 0.7)))
    picture.savefig(TARGET, dpi=150)


def _write(where: Any, text: str, colour: str, down: float) -> None:
    """Write lines of text, ``down`` inches below the upper edge."""
    style = {"family": "DejaVu Sans Mono", "fontsize": SIZE, "color": colour, "linespacing": 1.1}
    where.text(0.02, 1 - down / HEIGHT, text.replace("$", r"\$"), va="top", **style)


if __name__ == "__main__":
    main()
