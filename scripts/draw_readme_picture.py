"""Draw the picture at the top of README.md: a plan, its release and its chart, from one real question.

Run: python scripts/draw_readme_picture.py

The noise is fresh, so the figures differ from run to run.
"""

from __future__ import annotations

import os
from pathlib import Path

import tacit as tc
from tacit.picture import Picture
from tacit.tables import EXAMPLE_HOSPITALS, example_visits

TARGET = Path(__file__).parents[1] / "docs" / "images" / "plan_release_chart.png"
QUESTION = "SELECT hospital, COUNT(*) AS n, AVG(length_of_stay) AS stay\nFROM visits GROUP BY hospital"


def main() -> None:
    """Ask, and draw what came back."""
    os.environ["COLUMNS"] = "84"
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
    picture = Picture(13, 5.4)
    left, right = picture.subfigures(1, 2, width_ratios=(1.3, 1))
    asked = "\n".join(f"  {line}" for line in QUESTION.splitlines())
    facts = str(plan).splitlines()
    shown = "\n".join(facts[: next(i for i, line in enumerate(facts) if line.startswith("groups")) + 1])
    text = (
        f"plan = visits.sql(\n{asked}\n).plan(epsilon=0.5)  # before any data is read\n"
        f"{shown}\n\nplan.release()\n{release}"
    )
    left.text(0.02, 0.98, text.replace("$", r"\$"), family="DejaVu Sans Mono", fontsize=8, va="top")
    release.plot("stay", ax=right.subplots())
    TARGET.parent.mkdir(exist_ok=True)
    picture.savefig(TARGET, dpi=110)


if __name__ == "__main__":
    main()
