"""The interactive page that explains a cost: one HTML file, from public facts, that needs no network."""

from __future__ import annotations

import html
import json
import math
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from tacit.explain._deployments import DEPLOYMENTS
from tacit.explain._odds import best_test, exceeded_with
from tacit.report import ReportTable

if TYPE_CHECKING:
    from tacit.explain._explanation import Explanation

_POINTS = 80
_FAR = 10.0  # the end of the slider where no limit on the odds holds with probability 1 - 1e-9


def page(explanation: Explanation) -> str:
    """Return the page; its slider sets epsilon for a pure cost, and otherwise how far the odds move."""
    report = explanation.report()
    rows = tuple((one.name, one.parameters, one.unit, one.where, one.source) for one in DEPLOYMENTS)
    published = ReportTable("", ("who", "figure", "protects", "model", "source"), rows)
    parts = {
        "@TITLE@": html.escape(report.title),
        "@LEAD@": "\n".join(f'<p class="lead">{html.escape(line)}</p>' for line in report.lead),
        "@HEAD@": html.escape(_head(explanation)),
        "@DEPLOYMENTS@": published.html(),
        "@DATA@": json.dumps(_facts(explanation), allow_nan=False).replace("<", "\\u003c"),
    }
    text = files("tacit.explain").joinpath("page.html").read_text(encoding="utf-8")
    for mark, value in parts.items():
        text = text.replace(mark, value)
    return text


def _head(explanation: Explanation) -> str:
    """Say what the slider and everything below it describe: any release, not only the one explained."""
    if not explanation.pure:
        return "Move the slider to see how far the odds can move, and how rarely they move further."
    compared = "For comparison: any" if explanation.any_release is not None or explanation.about else "Any"
    return f"{compared} release with the epsilon that you choose here. Everything below follows the slider."


def _facts(explanation: Explanation) -> dict[str, object]:
    """Collect what the script of the page needs."""
    shared: dict[str, object] = {
        "priors": [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99],
        "advantage": explanation.advantage,
        "question": {
            "name": str(explanation.question),
            "sensitivity": float(explanation.question.sensitivity),
            "lattice": explanation.question.statistic == "count",
            "confidence": 0.95,
        }
        if explanation.errors
        else None,
    }
    if explanation.pure:
        return shared | {
            "mode": "pure",
            "start": explanation.epsilon,
            "families": [family.size for family in explanation.families],
        }
    cost, power = explanation.cost, best_test(explanation.cost)
    start = explanation.epsilon if math.isfinite(explanation.epsilon) else 1.0
    furthest = exceeded_with(cost, 1e-9) or max(start, _FAR)
    losses = np.linspace(0, 1.1 * furthest, _POINTS + 1)
    rates = np.concatenate([[0], np.geomspace(1e-3, 1, 80)])
    return shared | {
        "mode": "loss",
        "start": start,
        "losses": [[float(t), cost.loss_exceeds(float(t))] for t in losses],
        "tests": [[float(rate), power(float(rate))] for rate in rates],
        "families": [[family.size, family.reading] for family in explanation.families],
    }
