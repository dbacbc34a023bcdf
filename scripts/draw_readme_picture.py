"""Draw the picture at the top of README.md: a plan, its release and its chart, from one real question.

Run: python scripts/draw_readme_picture.py

The noise is fresh, so the figures differ from run to run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import tacit as tc
from tacit.picture import Picture
from tacit.tables import EXAMPLE_HOSPITALS, example_visits

TARGET = Path(__file__).parents[1] / "docs" / "images" / "plan_release_chart.png"
QUESTION = "SELECT hospital, COUNT(*) AS n, AVG(length_of_stay) AS stay\nFROM visits GROUP BY hospital"
SIZE = 8.6  # of the letters, in points
LINE = 1.1 * SIZE / 72  # the height of a line, in inches
WIDTH, HEIGHT = 10.6, 5.1
CODE, OUTPUT = "#0b4f9c", "#222222"


def main() -> None:
    """Ask, and draw what came back: what one types in blue, what Tacit answers in black."""
    os.environ["COLUMNS"] = "78"
    visits = tc.protect(
        example_visits(),
        name="visits",
        unit="patient_id",
        bounds={"length_of_stay": (0, 30)},
        limits={"rows": 5},
        keys={"hospital": EXAMPLE_HOSPITALS},
        budget=tc.Budget(epsilon=3, delta=1e-6),
    )
    plan = visits.sql(QUESTION).plan(epsilon=0.5, size=1000)
    release = plan.release()
    asked = "\n".join(f"    {line}" for line in QUESTION.splitlines())
    facts = str(plan).splitlines()
    shown = facts[: next(i for i, line in enumerate(facts) if line.startswith("groups")) + 1]
    parts = [
        (f'>>> plan = visits.sql("""\n{asked}\n""").plan(epsilon=0.5, size=1000)  # reads no data', CODE),
        (">>> print(plan)", CODE),
        ("\n".join(shown), OUTPUT),
        (">>> release = plan.release()  # charges the budget, then reads", CODE),
        (">>> print(release)", CODE),
        (str(release), OUTPUT),
    ]
    picture = Picture(WIDTH, HEIGHT)
    left, right = picture.subfigures(1, 2, width_ratios=(1.35, 1))
    down = 0.1
    for text, colour in parts:
        _write(left, text, colour, down)
        down += LINE * len(text.splitlines()) + (0.05 if colour == OUTPUT else 0)
    _write(right, '>>> release.plot("stay")', CODE, 0.1)
    release.plot("stay", ax=right.add_axes((0.1, 0.16, 0.86, 0.7)))
    TARGET.parent.mkdir(exist_ok=True)
    picture.savefig(TARGET, dpi=150)


def _write(where: Any, text: str, colour: str, down: float) -> None:
    """Write lines of text, ``down`` inches below the upper edge."""
    style = {"family": "DejaVu Sans Mono", "fontsize": SIZE, "color": colour, "linespacing": 1.1}
    where.text(0.02, 1 - down / HEIGHT, text.replace("$", r"\$"), va="top", **style)


if __name__ == "__main__":
    main()
