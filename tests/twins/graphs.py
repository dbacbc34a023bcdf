"""The broken twins of graph mechanisms, as functions ``f(value, size)``; epsilon 1 is claimed by all.

A graph is a list of edges between whole numbers.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

import tacit as tc
from twins.broken import integer_laplace


def neighbours_of(edges):
    """The nodes that each node is adjacent to."""
    found = {}
    for u, v in edges:
        found.setdefault(u, set()).add(v)
        found.setdefault(v, set()).add(u)
    return found


def triangles(edges):
    """The number of triangles, and the largest number of common neighbours of all pairs of nodes."""
    near = neighbours_of(edges)
    common = {(u, v): len(near[u] & near[v]) for u, v in itertools.combinations(near, 2)}
    return sum(common.get((u, v), common.get((v, u), 0)) for u, v in edges) // 3, max(common.values())


def wedges(edges):
    """The number of wedges, and the largest sum of two degrees without the edge between the two nodes."""
    near = neighbours_of(edges)
    sums = [len(near[u]) + len(near[v]) - 2 * (v in near[u]) for u, v in itertools.combinations(near, 2)]
    return sum(math.comb(len(one), 2) for one in near.values()), max(sums)


# -- the ladder ----------------------------------------------------------------------------------------


def floor_from_the_data(value, size):
    """The floor is the power of two above the width: it jumps where the width passes one."""
    _, width = value
    return tc.mechanisms.LadderNoise(1, floor=1 << (width - 1).bit_length()).release_many(value, size)


def adjacent_pairs_only(edges, size):
    """Common neighbours are counted over adjacent pairs: the pair that the next edge joins is forgotten."""
    near = neighbours_of(edges)
    width = max((len(near[u] & near[v]) for u, v in edges), default=0)
    return tc.mechanisms.LadderNoise(1, floor=5).release_many((triangles(edges)[0], width), size)


def degrees_with_the_edge(edges, size):
    """Wedges with the largest sum of two degrees, the edge between the two included: it moves by 2."""
    degrees = sorted(len(near) for near in neighbours_of(edges).values())
    return tc.mechanisms.LadderNoise(1, floor=2).release_many((wedges(edges)[0], sum(degrees[-2:])), size)


def scale_of_the_local_sensitivity(value, size):
    """Laplace noise whose scale is the local sensitivity itself."""
    exact, width = value
    return exact + integer_laplace(max(width, 1), size)


# -- stars of three edges; epsilon 1 is claimed --------------------------------------------------------------


def stars_by_the_largest_degree(value, size):
    """Laplace noise whose scale is taken from the exact largest degree."""
    exact, degree = value
    return exact + integer_laplace(2 * math.comb(max(degree, 2), 2), size)


def stars_of_one_end(value, size):
    """An edge has two ends, and both gain stars; the rungs are as wide as one of them needs."""
    exact, degree = value
    drawn = tc.mechanisms.StarLadder(1, stars=3, floor=15).release_many((0, degree), size)
    return exact + np.sign(drawn) * ((np.abs(drawn) + 1) // 2)
