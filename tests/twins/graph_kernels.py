"""Broken counts of graphs: each takes edges and a bound, and claims a sensitivity that it does not have."""

from __future__ import annotations

import numpy as np

from tacit.graphs._edges import EdgeArrays, project_greedily
from tacit.graphs._subgraphs import count_triangles, top_degree


def greedy_triangles(edges, bound):
    """Triangles after greedy projection, as if a projection with small degrees kept triangles stable."""
    return count_triangles(project_greedily(edges, bound))


def mutual_top(edges, bound):
    """Keep an edge if each end is among the first `bound` neighbours of the other (Blocki 2013)."""
    first = {}
    for u, v in edges.pairs():
        first.setdefault(u, []).append(v)
        first.setdefault(v, []).append(u)
    chosen = {node: set(sorted(near)[:bound]) for node, near in first.items()}
    kept = [(u, v) for u, v in edges.pairs() if v in chosen[u] and u in chosen[v]]
    return EdgeArrays(edges.nodes, [u for u, _ in kept], [v for _, v in kept])


def mutual_top_edges(edges, bound):
    """The edge count after mutual top-D, claimed for the node level."""
    return mutual_top(edges, bound).size


def without_crowded_nodes(edges, bound):
    """The edge count after all nodes with more than `bound` edges are dropped."""
    crowded = edges.degrees() > bound
    return int(np.count_nonzero(~(crowded[edges.source] | crowded[edges.target])))


def greedy_mixing(edges, bound, names):
    """Edges between four public groups of names after greedy projection, as if all sums were stable."""
    kept = project_greedily(edges, bound)
    groups = np.sort(np.column_stack([names[kept.source] % 4, names[kept.target] % 4]), axis=1)
    return np.bincount(groups[:, 0] * 4 + groups[:, 1], minlength=16)


def bound_from_the_data(edges, bound):
    """The edge count with the largest degree of this very graph as its sensitivity; `bound` is not used."""
    return edges.size, top_degree(edges)


def text_order(pairs):
    """Edges in the order of text: two positions can change their order if a third node leaves."""
    names = sorted({str(node) for pair in pairs for node in pair})
    code = {name: i for i, name in enumerate(names)}
    return EdgeArrays(len(names), [code[str(u)] for u, _ in pairs], [code[str(v)] for _, v in pairs])


def text_ordered_edges(pairs, bound):
    """The edge count after greedy projection in the order of text, claimed for sources without names."""
    return project_greedily(text_order(pairs), bound).size
