"""Random small maps and their neighbours, for the sensitivities of docs/proofs/maps.md."""

import numpy as np
import pandas as pd

import tacit as tc
from support.exact_integers import exact_of_plan

BOX = ((0, 0), (4, 4))
DISTRICTS = {
    "features": [
        {
            "properties": {"name": f"{x}{y}", "region": str(x), "country": "all"},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[x, y], [x + 2, y], [x + 2, y + 2], [x, y + 2], [x, y]]],
            },
        }
        for x in (0, 2)
        for y in (0, 2)
    ]
}


def integers(question, secret):
    """Return the exact integers of all steps of a question, with a given ranking secret."""
    question.dataset._source._secret = secret
    return [np.asarray(one, dtype=np.int64) for one in exact_of_plan(question.plan(epsilon=1))]


def random_points(draw, people, most):
    """Owner, latitude and longitude of points on a coarse lattice (so that borders are hit).

    Some points lie outside, are missing or repeated.
    """
    size = draw.integers(1, most + 1, people)
    owner = np.repeat(np.arange(people), size)
    spot = draw.integers(-1, 10, (len(owner), 2)) / 2
    spot[draw.random(spot.shape) < 0.05] = np.nan
    if draw.random() < 0.7:  # everybody in a few places
        spot = spot[draw.integers(0, min(len(spot), draw.integers(1, 4)), len(spot))]
    return np.c_[owner, spot]


def random_rows(draw, people, most):
    points = random_points(draw, people, most)
    return pd.DataFrame({"u": points[:, 0].astype(np.int64), "lat": points[:, 1], "lon": points[:, 2]})


def declared(rows, limits, adjacency="add/remove", unit="u"):
    return tc.points(
        rows, unit=unit, box=BOX, limits=limits, adjacency=adjacency, budget=tc.Budget(epsilon=100)
    )
