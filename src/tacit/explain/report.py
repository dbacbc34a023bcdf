"""The interactive page: one file, no network, computed from public facts."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from tacit.explain.deployments import DEPLOYMENTS
from tacit.explain.odds import best_test, exceeded_with
from tacit.sheet import Grid

if TYPE_CHECKING:
    from tacit.explain.explanation import Explanation

__all__ = ["page"]

_POINTS = 80


def page(explanation: Explanation) -> str:
    """Return the page: a slider over epsilon for a pure cost, else over the odds and their exceptions."""
    sheet = explanation.sheet()
    rows = tuple((one.name, one.parameters, one.unit, one.where, one.source) for one in DEPLOYMENTS)
    parts = {
        "@TITLE@": html.escape(sheet.title),
        "@LEAD@": "\n".join(f'<p class="lead">{html.escape(line)}</p>' for line in sheet.lead),
        "@HEAD@": html.escape(_head(explanation)),
        "@DEPLOYMENTS@": Grid("", ("who", "figure", "protects", "model", "source"), rows).html(),
        "@DATA@": json.dumps(_facts(explanation), allow_nan=False).replace("<", "\\u003c"),
    }
    text = files("tacit.explain").joinpath("report.html").read_text(encoding="utf-8")
    for mark, value in parts.items():
        text = text.replace(mark, value)
    return text


def _head(explanation: Explanation) -> str:
    """Say of what the slider and all below it speak: of any release, not only of the one explained."""
    if not explanation.pure:
        return "How far the odds can move, and how rarely they move further: move the slider."
    compared = "For comparison: any" if explanation.any_release is not None or explanation.about else "Any"
    return f"{compared} release of the epsilon that you choose by the slider, here and in all that follows."


def _facts(explanation: Explanation) -> dict[str, object]:
    """Collect what the page's script needs."""
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
    furthest = exceeded_with(cost, 1e-9) or explanation.epsilon
    losses = np.linspace(0, 1.1 * furthest, _POINTS + 1)
    rates = np.concatenate([[0], np.geomspace(1e-3, 1, 80)])
    return shared | {
        "mode": "loss",
        "start": explanation.epsilon,
        "losses": [[float(t), cost.loss_exceeds(float(t))] for t in losses],
        "tests": [[float(rate), power(float(rate))] for rate in rates],
        "families": [[family.size, family.reading] for family in explanation.families],
    }
