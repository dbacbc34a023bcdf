"""The figures of shape functions: a small chart for each feature, with the band of the noise."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tacit.show import GREY, Chart, ChartAxis, ChartSeries, Figure, chosen

if TYPE_CHECKING:
    from tacit.learn._shape_functions import ShapeFunction, ShapeFunctions

_MOST = 9  # charts in one figure
_WORDS = 8  # bins up to which each is named


def shape_figures(model: ShapeFunctions, what: str | None) -> tuple[Figure, ...]:
    """Return the shapes of the most important features in one figure, or the shape of one feature."""
    ordered = sorted(model.shapes, key=lambda one: -one.importance)
    if what is None:
        return (_figure(model, *ordered[:_MOST]),)
    return chosen(what, {one.feature: partial(_figure, model, one) for one in ordered})


def _figure(model: ShapeFunctions, *shapes: ShapeFunction) -> Figure:
    words = f"log odds of {model.classes[1]}; the band is the interval for the noise"
    return Figure("shapes", tuple(map(_chart, shapes)), (words,), across=min(3, len(shapes)))


def _chart(one: ShapeFunction) -> Chart:
    """Return a step for each bin but the one of missing values, and the band around it."""
    value, error = np.asarray(one.values[:-1]), np.asarray(one.error[:-1])
    edges = np.arange(len(value) + 1) - 0.5
    if one.words or len(value) <= _WORDS:
        ticks = [(float(i), str(label)) for i, label in enumerate(one.labels[:-1])]
    else:
        every = math.ceil(len(one.cuts) / 6)
        ticks = [(i + 0.5, f"{cut:g}") for i, cut in list(enumerate(one.cuts))[::every]]
    band = ((value - error).tolist(), (value + error).tolist())
    steps = ChartSeries("steps", edges.tolist(), value.tolist(), *band)
    zero = ChartSeries("across", (), (0.0,), colour=GREY)
    return Chart((zero, steps), ChartAxis("", ticks=tuple(ticks)), ChartAxis(), one.feature)
