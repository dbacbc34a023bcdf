"""Triangles, wedges, stars and clustering: exact counts, how far one edge or node moves them, and questions.

Degrees, wedges, stars and triangles are counted together with what one edge can make or break. For the node
level, a linear programme gives the largest weighted count of triangles in which no node takes part in more
than tau. It is solved by the simplex method in whole numbers: slow, exact, and certain to end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import AnswerTable, Cells, Forecast, swamped, without_hidden
from tacit.fixes import Set
from tacit.graphs._edge_questions import ratio_cells
from tacit.graphs._graph_draft import graph_draft, graph_step, one_number, pure_goal
from tacit.graphs._verdict import verdict_of
from tacit.mechanisms import DiscreteLaplace, LadderNoise, StarLadder
from tacit.parameters import Integer, Omitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from tacit.core import Draft, Goal, Step
    from tacit.graphs._edges import EdgeArrays, LoadedGraph
    from tacit.graphs._graph import Graph
    from tacit.graphs._graph_facts import GraphFacts


#: How many paths of two edges a block holds at most, if one row alone does not hold more: 12 bytes each in a
#: product of matrices, 60 in a list.
_PATHS = 4_000_000
_LISTED_PATHS = 1_000_000


def top_degree(edges: EdgeArrays) -> int:
    """Return the largest degree. One edge moves it by at most 1.

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> top_degree(EdgeArrays(4, [0, 0, 0], [1, 2, 3]))
    3
    """
    return int(np.max(edges.degrees(), initial=0))


def count_wedges(edges: EdgeArrays) -> int:
    """Return the number of wedges: pairs of edges that share a node.

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> count_wedges(EdgeArrays(4, [0, 0, 0], [1, 2, 3]))
    3
    """
    return count_stars(edges, 2)


def count_stars(edges: EdgeArrays, legs: int) -> int:
    """Return the number of stars: a node with a set of `legs` of its edges.

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> count_stars(EdgeArrays(5, [0, 0, 0, 0], [1, 2, 3, 4]), 3)
    4
    """
    nodes_of_degree = np.bincount(edges.degrees()).tolist()
    return sum(number * comb(degree, legs) for degree, number in enumerate(nodes_of_degree) if number)


def largest_wedge_change(edges: EdgeArrays, *, unseen: bool = False) -> int:
    """Return how many wedges one edge more or less can make or break.

    An edge between two nodes is in as many wedges as the two have other edges. The largest number is thus the
    largest sum of the degrees of two nodes, minus 2 if they are connected. One edge moves it by at most 1.

    The two largest degrees, of sum s, give s - 2 at least. Only two nodes that are not connected can give
    more, with a sum of s or s - 1. Such two exist if more pairs than edges have that sum.

    ``unseen``: whether there may be nodes that no edge mentions. The next edge may lead to one of them, so
    one node without edges is added to the others.

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> star = EdgeArrays(4, [0, 0, 0], [1, 2, 3])
    >>> largest_wedge_change(star), largest_wedge_change(star, unseen=True)
    (2, 3)
    """
    degrees = np.append(edges.degrees(), 0) if unseen else edges.degrees()
    if len(degrees) < 2:
        return 0
    top = int(np.partition(degrees, -2)[-2:].sum())
    nodes_of_degree = np.bincount(degrees)
    sums = degrees[edges.source] + degrees[edges.target]
    for total in (top, top - 1):
        if total >= 0 and _pairs_of_sum(nodes_of_degree, total) > int(np.count_nonzero(sums == total)):
            return total
    return top - 2


def _pairs_of_sum(nodes_of_degree: NDArray[np.int64], total: int) -> int:
    """Return how many pairs of nodes have degrees of this sum, if none has a degree beyond the list."""
    low, high = max(0, total - len(nodes_of_degree) + 1), min(total, len(nodes_of_degree) - 1)
    low_nodes = nodes_of_degree[low : high + 1]
    ordered = int(np.dot(low_nodes, low_nodes[::-1]))
    same = int(nodes_of_degree[total // 2]) if total % 2 == 0 and total // 2 < len(nodes_of_degree) else 0
    return (ordered - same) // 2


def count_triangles(edges: EdgeArrays) -> int:
    """Return the number of triangles: three nodes, each pair of which is connected.

    Every edge points from the end of smaller degree to the other, so that no node has more than
    ``sqrt(2 * edges.size)`` edges out (Chiba and Nishizeki 1985).

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> count_triangles(EdgeArrays(4, [0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3]))
    4
    """
    out = _outward(edges)
    total = 0
    for start, end in _blocks(out @ _row_sizes(out)):
        rows = out[start:end]
        total += int((rows @ out).multiply(rows).sum(dtype=np.int64))
    return total


def list_triangles(edges: EdgeArrays) -> NDArray[np.int64]:
    """Return the triangles as rows of three codes, each row and the rows in order.

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> list_triangles(EdgeArrays(4, [0, 0, 1, 1, 2], [1, 2, 2, 3, 3])).tolist()
    [[0, 1, 2], [1, 2, 3]]
    """
    order = _by_degree(edges)[::-1]
    out = _outward(edges)
    starts, sizes = out.indptr.astype(np.int64), _row_sizes(out)
    u = np.repeat(np.arange(edges.nodes), sizes)
    v = out.indices.astype(np.int64)
    keys = u * max(edges.nodes, 1) + v
    batches = [np.empty((0, 3), dtype=np.int64)]
    for start, end in _blocks(sizes[v], _LISTED_PATHS):
        repeats = sizes[v[start:end]]
        path = np.repeat(np.arange(start, end), repeats)
        step = np.arange(len(path)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        w = v[starts[v[path]] + step]
        closing = u[path] * edges.nodes + w
        positions = np.minimum(np.searchsorted(keys, closing), edges.size - 1)
        closed = keys[positions] == closing
        batches.append(order[np.column_stack([u[path][closed], v[path][closed], w[closed]])])
    rows = np.sort(np.concatenate(batches), axis=1)
    return rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]


def largest_common(edges: EdgeArrays) -> int:
    """Return the largest number of common neighbours of two nodes, connected or not.

    This is how many triangles one edge more or less can make or break. One edge moves it by at most 1.

    Two nodes have no more common neighbours than edges. So the nodes come in the order of their degrees, and
    the search ends at the first node whose degree is not above the number that was found.

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> largest_common(EdgeArrays(5, [0, 0, 0, 1, 1, 1], [2, 3, 4, 2, 3, 4]))
    3
    """
    order = _by_degree(edges)
    rank = np.empty(edges.nodes, dtype=np.int64)
    rank[order] = np.arange(edges.nodes)
    u, v = rank[edges.source], rank[edges.target]
    adjacency = _matrix(np.concatenate([u, v]), np.concatenate([v, u]), edges.nodes)
    degrees = _row_sizes(adjacency)
    best = 0
    for start, end in _blocks(adjacency @ degrees):
        if degrees[start] <= best:
            break
        stop = start + int(np.searchsorted(-degrees[start:end], -best))  # the first of degree `best` or less
        common = adjacency[start:stop] @ adjacency[:, :stop]
        row = np.repeat(np.arange(start, stop, dtype=common.indices.dtype), _row_sizes(common))
        best = max(best, int(np.max(common.data, where=common.indices < row, initial=0)))
    return best


def _by_degree(edges: EdgeArrays) -> NDArray[np.int64]:
    """Return the nodes, largest degree first."""
    return np.argsort(-edges.degrees(), kind="stable")


def _outward(edges: EdgeArrays) -> csr_array:
    """Return the matrix of the edges, each from its end of smaller degree; nodes in the order of degrees."""
    rank = np.empty(edges.nodes, dtype=np.int64)
    rank[_by_degree(edges)[::-1]] = np.arange(edges.nodes)
    u, v = rank[edges.source], rank[edges.target]
    return _matrix(np.minimum(u, v), np.maximum(u, v), edges.nodes)


def _matrix(rows: NDArray[np.int64], columns: NDArray[np.int64], nodes: int) -> csr_array:
    from scipy.sparse import csr_array

    ones = np.ones(len(rows), dtype=np.int32)
    matrix = csr_array((ones, (rows, columns)), shape=(nodes, nodes))
    matrix.sort_indices()
    return matrix


def _row_sizes(matrix: csr_array) -> NDArray[np.int64]:
    sizes: NDArray[np.int64] = np.diff(matrix.indptr).astype(np.int64)
    return sizes


def _blocks(work: NDArray[np.int64], max_work: int = _PATHS) -> Iterator[tuple[int, int]]:
    """Split rows into blocks of about equal work; a row with more work is a block of its own."""
    total = np.concatenate([[0], np.cumsum(work)])
    start = 0
    while start < len(work):
        end = int(np.searchsorted(total, total[start] + max_work, side="right")) - 1
        end = max(end, start + 1)
        yield start, end
        start = end


def largest_sum(rows: NDArray[np.int64], limits: Sequence[int]) -> Fraction:
    """Return the largest sum of numbers x >= 0 with ``rows @ x <= limits``, as an exact fraction.

    Guarantee: it always ends (Bland 1977). Limits are not negative, and every number has a limit. Divisions
    in the table are exact (Edmonds 1967), so that it holds whole numbers alone.

    Examples
    --------
    >>> largest_sum(np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]]), [1, 1, 1])
    Fraction(3, 2)
    """
    height, width = rows.shape
    table = np.zeros((height + 1, width + height + 1), dtype=object)
    table[:height, :width] = rows.astype(object)
    table[:height, width:-1] = np.eye(height, dtype=np.int64).astype(object)
    table[:height, -1] = list(limits)
    table[-1, :width] = -1
    basis, scale = list(range(width, width + height)), 1
    while True:
        enters = next((j for j in range(width + height) if table[-1, j] < 0), None)
        if enters is None:
            return Fraction(int(table[-1, -1]), scale)
        candidates = [i for i in range(height) if table[i, enters] > 0]
        leaves = min(candidates, key=lambda i: (Fraction(table[i, -1], table[i, enters]), basis[i]))
        pivot_row, pivot = table[leaves].copy(), table[leaves, enters]
        table = (table * pivot - np.outer(table[:, enters], pivot_row)) // scale
        table[leaves] = pivot_row
        basis[leaves], scale = enters, pivot


#: Weights are checked as whole numbers, in units of 2^-30.
_UNIT = 1 << 30
_SOLVERS = ("highs-ipm", "highs-ds")


def triangle_programme(edges: EdgeArrays, tau: int) -> int:
    """Return the largest sum of weights in [0, 1] on triangles with at most `tau` at every node, rounded.

    It is the number of triangles if no node is in more than `tau`.

    Guarantee: it moves by at most ``tau + 1`` if a node joins or leaves with all its edges. The solver is not
    trusted: its weights and prices prove a lower and an upper bound of the optimum, in whole numbers, and the
    middle of the two is rounded only if they are at most 1/2 apart. If no solver reaches that, an exact
    method follows. It is slow but always ends: no graph makes this function fail, and no answer is further
    from the optimum than 3/4 (docs/proofs/graphs.md, "Node level"; Kasiviswanathan and others 2013).

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> book = EdgeArrays(6, [0, 0, 0, 0, 0, 1, 1, 1, 1], [1, 2, 3, 4, 5, 2, 3, 4, 5])  # four on one edge
    >>> triangle_programme(book, tau=10), triangle_programme(book, tau=3)
    (4, 3)
    """
    triangles = list_triangles(edges)
    crowded = np.bincount(triangles.ravel(), minlength=edges.nodes) > tau
    contested = crowded[triangles].any(axis=1)
    free = int(np.count_nonzero(~contested))
    row_of_node = np.where(crowded, np.cumsum(crowded) - 1, -1)  # limits of crowded nodes alone can bind
    ends = row_of_node[triangles[contested]]
    ends, multiplicity = np.unique(
        np.sort(ends, axis=1), axis=0, return_counts=True
    )  # triangles with the same limits
    if not len(ends):
        return free
    for solver in _SOLVERS:
        bounds = _bounds(ends, multiplicity, tau, solver)
        if bounds is not None and 2 * (bounds[1] - bounds[0]) <= _UNIT:
            return free + (sum(bounds) + _UNIT) // (2 * _UNIT)
    return free + int(_solve_exactly(ends, multiplicity, tau) + Fraction(1, 2))


def _bounds(
    ends: NDArray[np.int64], multiplicity: NDArray[np.int64], tau: int, solver: str
) -> tuple[int, int] | None:
    """Return proven bounds of the optimum in units of 2^-30, or nothing if the solver finds no solution.

    Below: weights that keep all limits. Above, for any prices y >= 0 of the nodes: the sum of tau y over
    nodes and of max(0, 1 - prices of its nodes) over triangles (weak duality).
    """
    limits = _limits(ends)
    solution = _solve(limits, multiplicity, tau, solver)
    if solution is None:
        return None
    weights, prices = (
        np.clip(np.nan_to_num(solution[0]), 0, multiplicity),
        np.clip(np.nan_to_num(solution[1]), 0, 1),
    )
    fitting = tau / np.maximum(limits @ weights, max(tau, 1)) * (1 - 1e-12)
    share = np.min(np.where(ends >= 0, fitting[ends], 1), axis=1)
    units = np.floor(weights * share * _UNIT).astype(np.int64)
    if np.any(limits @ units > tau * _UNIT):
        return None
    price = np.floor(prices * _UNIT).astype(np.int64)
    saved = np.maximum(0, _UNIT - price @ limits)
    return int(units.sum()), tau * int(price.sum()) + int((saved * multiplicity).sum())


def _limits(ends: NDArray[np.int64]) -> csr_array:
    """Return which group of triangles (columns) counts towards the limit of which node (rows)."""
    from scipy.sparse import csr_array

    group, corner = np.nonzero(ends >= 0)
    ones = np.ones(len(group), dtype=np.int64)
    return csr_array((ones, (ends[group, corner], group)), shape=(int(ends.max()) + 1, len(ends)))


def _solve(
    limits: csr_array, multiplicity: NDArray[np.int64], tau: int, solver: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the solver's weights of the groups and prices of the nodes, whatever they are worth."""
    from scipy.optimize import linprog

    bounds = np.column_stack([np.zeros(len(multiplicity)), multiplicity])
    solution = linprog(
        -np.ones(len(multiplicity)), limits, np.full(limits.shape[0], tau), bounds=bounds, method=solver
    )
    if solution.x is None or solution.ineqlin.marginals is None:
        return None
    return np.asarray(solution.x), -np.asarray(solution.ineqlin.marginals)


def _solve_exactly(ends: NDArray[np.int64], multiplicity: NDArray[np.int64], tau: int) -> Fraction:
    """Return the exact optimum."""
    limits = _limits(ends).toarray()
    rows = np.concatenate([limits, np.eye(len(multiplicity), dtype=np.int64)])
    return largest_sum(rows, [tau] * len(limits) + multiplicity.tolist())


_FOR_WIDTH = Fraction(15, 100)  # of epsilon, for the width that an interval needs
_FOR_TRIANGLES = Fraction(3, 5)  # of epsilon, in a clustering coefficient
_HUB = "one node that is connected to all others closes a triangle with every edge between them"


@dataclass(frozen=True, slots=True, eq=False)
class _Ladder:
    """A count whose noise follows its local sensitivity, at edge level; or has a known one, at node level.

    Parameters
    ----------
    name
        The column.
    exact, width
        The count, and how far one edge can move it; the width moves by at most 1.
    shared
        What the width is, in words: "two nodes have at most {} neighbours in common".
    per_degree
        The largest width for each edge of a node: widths are at most this often the largest degree.
    by_node
        How far one node moves the count, if no node has more edges than a bound.
    legs
        Of stars with three edges or more, how many; their width is the largest degree.
    """

    name: str
    exact: Callable[[EdgeArrays], int]
    width: Callable[[LoadedGraph], int]
    shared: str
    per_degree: int
    by_node: Callable[[int], int]
    legs: int = 2

    def most(self, facts: GraphFacts) -> int | None:
        """Return the largest possible width, where the list of nodes guarantees it."""
        n = facts.nodes.most
        return None if n is None else max(self.per_degree * (n - 2), 1)

    def floor(self, facts: GraphFacts, epsilon: Fraction) -> int:
        """Return the public floor of the ladder: about 10 / sqrt(epsilon); 5 times that for wedges."""
        usual = LadderNoise.default_floor(epsilon) * (5 if self.per_degree > 1 else 1)
        n = facts.nodes.number
        return usual if n is None else max(1, min(usual, self.per_degree * (n - 2)))


_TRIANGLES = _Ladder(
    "triangles", count_triangles, lambda loaded: largest_common(loaded.edges),
    "two nodes have at most {} neighbours in common", 1, lambda bound: comb(bound, 2),
)  # fmt: skip
_WEDGES = _Ladder(
    "wedges", count_wedges, lambda loaded: largest_wedge_change(loaded.edges, unseen=not loaded.listed),
    "two nodes have at most {} edges to others together", 2, lambda bound: 3 * comb(bound, 2),
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Measurement:
    """The steps of one count, and how its noisy integers become a value with a half-width."""

    ladder: _Ladder
    steps: tuple[Step[LoadedGraph], ...]
    half: Callable[[Sequence[Any], Fraction], int]

    def value(self, noisy: Sequence[Any]) -> int:
        return int(noisy[len(self.steps) - 1])


def _measurement(graph: Graph, ladder: _Ladder, epsilon: Fraction) -> _Measurement:
    """Return the steps of a count: at edge level the ladder, and a paid width unless a bound is declared."""
    facts = graph.facts
    if facts.by_node:
        sensitivity = max(1, ladder.by_node(facts.bound(ladder.name)))
        noise = DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity, adjacency=graph.adjacency)
        step = graph_step(ladder.name, noise, lambda loaded: ladder.exact(loaded.edges))
        return _Measurement(ladder, (step,), lambda _, level: noise.half_width(level))
    bound = facts.degree_bound
    share = Fraction(0) if bound is not None else _FOR_WIDTH
    rest = epsilon * (1 - share)
    law = _law(graph, ladder, rest)
    main = graph_step(ladder.name, law, lambda loaded: (ladder.exact(loaded.edges), ladder.width(loaded)))
    if bound is not None:
        stated = _capped(ladder, facts, ladder.per_degree * bound)
        return _Measurement(ladder, (main,), lambda _, level: law.half_width(level, width=stated))
    width = DiscreteLaplace(epsilon=epsilon * share, sensitivity=1, adjacency=graph.adjacency)
    width_step = graph_step(f"width of {ladder.name}", width, ladder.width)

    def half(noisy: Sequence[Any], level: Fraction) -> int:
        """Use a fifth of the chance to fail for the width (one side), and the rest for the count."""
        miss = 1 - level
        upper = int(noisy[0]) + width.half_width(1 - 2 * miss / 5)
        return law.half_width(1 - miss * 4 / 5, width=_capped(ladder, facts, max(0, upper)))

    return _Measurement(ladder, (width_step, main), half)


def _law(graph: Graph, ladder: _Ladder, epsilon: Fraction) -> LadderNoise | StarLadder:
    """Return the ladder of a count, with a public floor, and a cap where a list of nodes guarantees it."""
    facts, max_width = graph.facts, ladder.most(graph.facts)
    if ladder.legs > 2:
        return StarLadder(epsilon, stars=ladder.legs, most=max_width, adjacency=graph.adjacency)
    floor = ladder.floor(facts, epsilon)
    return LadderNoise(epsilon, floor=floor, most=max_width, adjacency=graph.adjacency)


def _capped(ladder: _Ladder, facts: GraphFacts, width: int) -> int:
    n = facts.nodes.number
    if n is None:
        return width
    return min(width, n - 1 if ladder.legs > 2 else ladder.per_degree * max(n - 2, 0))


def _forecast(measurement: _Measurement, facts: GraphFacts, goal: Goal, words: str) -> Forecast:
    """Say which interval to expect; if the width is private, for a noisy width at the floor."""
    ladder, law = measurement.ladder, measurement.steps[-1].mechanism
    describe = law.describe()  # type: ignore[attr-defined]
    if facts.by_node or facts.degree_bound is not None:
        return Forecast(ladder.name, words, describe, measurement.half((0,), goal.confidence))
    assert isinstance(law, LadderNoise | StarLadder)  # noqa: S101 - edge level
    half = measurement.half((law.floor,), goal.confidence)
    note = f"about {half:,} if {ladder.shared.format(law.floor)}, more in denser graphs"
    return Forecast(ladder.name, words, describe, None, note)


def _facts(measurement: _Measurement, facts: GraphFacts) -> list[tuple[str, str]]:
    """Say where the interval comes from."""
    if facts.by_node:
        return []
    if facts.degree_bound is not None:
        return [("interval", (f"holds if no node has more than {facts.degree_bound:,} edges, as declared; "
                             "privacy does not depend on it"))]  # fmt: skip
    width_note = f"15 % of epsilon measure how far one edge can move the {measurement.ladder.name}"
    return [("interval", f"{width_note}; a public degree bound would make the interval narrower")]


def _draft_count(
    graph: Graph, goal: Goal, ladder: _Ladder, words: str, about: dict[str, int] | None = None
) -> Draft[AnswerTable]:
    facts = graph.facts
    pure = pure_goal(goal, ladder.name)
    assert pure.epsilon is not None  # noqa: S101 - pure_goal
    measurement = _measurement(graph, ladder, pure.epsilon)

    def reading(noisy: Any, level: Fraction) -> AnswerTable:
        return one_number(ladder.name, measurement.value(noisy), measurement.half(noisy, level), level)

    return graph_draft(
        graph, pure, ask=ladder.name, words=words, steps=measurement.steps, reading=reading, assumed=True,
        about={**_interval_bound(facts), **(about or {})},
        facts=[*_facts(measurement, facts), *(_verdict(facts, pure.epsilon) if ladder is _TRIANGLES else [])],
        forecast=[_forecast(measurement, facts, pure, words.removeprefix("the "))],
    )  # fmt: skip


def _verdict(facts: GraphFacts, epsilon: Fraction) -> list[tuple[str, str]]:
    """Say whether a graph of the declared size has enough triangles."""
    if facts.by_node:
        return []
    if facts.nodes.number is None or facts.mean_degree is None:
        missing = "nodes" if facts.nodes.number is None else "mean_degree"
        return [("verdict", f"not known: {missing} is not declared")]
    rest = epsilon if facts.degree_bound is not None else epsilon * (1 - _FOR_WIDTH)
    verdict = verdict_of(facts.nodes.number, facts.mean_degree, epsilon=rest)
    return [("verdict", replace(verdict, epsilon=float(epsilon)).text)]


def _interval_bound(facts: GraphFacts) -> dict[str, int]:
    return {} if facts.degree_bound is None else {"degree_bound": facts.degree_bound}


def draft_triangles(graph: Graph, goal: Goal, tau: int | None) -> Draft[AnswerTable]:
    """Draft the number of triangles: the ladder for edges; for nodes the linear programme with a bound."""
    facts = graph.facts
    facts.undirected("triangles")
    if not facts.by_node:
        Omitted("unless nodes are protected").read("tau", tau)
    if tau is None:
        facts.edge_level("triangles", _HUB, also=Set(tau=64))
        return _draft_count(graph, goal, _TRIANGLES, "the number of triangles")
    noise = goal.noise(l1=tau + 1, l2_squared=(tau + 1) ** 2, adjacency=graph.adjacency)
    half = noise.half_width(goal.confidence)
    note = f"at most {tau:,} triangles of each node count; the interval covers the noise only"
    return graph_draft(
        graph, goal, ask="triangles", words="the number of triangles",
        about={"tau": tau}, facts=[("tau", f"{note}; choose it from public knowledge")],
        steps=[graph_step("triangles", noise, lambda loaded: triangle_programme(loaded.edges, tau))],
        reading=lambda noisy, level: one_number(
            "triangles", noisy[0], noise.half_width(level), level, note=note
        ),
        forecast=[Forecast("triangles", "number of triangles", noise.describe(), half)],
    )  # fmt: skip


def draft_wedges(graph: Graph, goal: Goal) -> Draft[AnswerTable]:
    """Draft the number of wedges: paths of two edges."""
    graph.facts.undirected("wedges")
    graph.facts.edge_level(
        "wedges", "one node with all others as neighbours is the middle of all their pairs"
    )
    return _draft_count(graph, goal, _WEDGES, "the number of wedges (paths of two edges)")


def draft_clustering(graph: Graph, goal: Goal) -> Draft[AnswerTable]:
    """Draft the clustering coefficient: three times the triangles, over the wedges."""
    facts = graph.facts
    facts.undirected("triangles")
    facts.edge_level("the clustering coefficient", _HUB)
    pure = pure_goal(goal, "triangles")
    assert pure.epsilon is not None  # noqa: S101 - pure_goal
    parts = [
        _measurement(graph, _TRIANGLES, pure.epsilon * _FOR_TRIANGLES),
        _measurement(graph, _WEDGES, pure.epsilon * (1 - _FOR_TRIANGLES)),
    ]
    cut = len(parts[0].steps)

    def reading(noisy: Any, level: Fraction) -> AnswerTable:
        part_level = 1 - (1 - level) / 2
        noisy_parts = noisy[:cut], noisy[cut:]
        estimates = [
            (part.value(n), part.half(n, part_level)) for part, n in zip(parts, noisy_parts, strict=True)
        ]
        (triangles, triangles_half), (wedges, wedges_half) = estimates
        share = ratio_cells((3 * triangles, 3 * triangles_half), (wedges, wedges_half))
        columns = {"clustering": without_hidden(share, [swamped(wedges, wedges_half, float(part_level))])}
        for part, n in zip(parts, noisy_parts, strict=True):
            value, half = part.value(n), part.half(n, level)
            columns[part.ladder.name] = Cells((value,), (value - half,), (value + half,))
        return AnswerTable({}, columns, float(level), {}, counts=("triangles", "wedges"))

    return graph_draft(
        graph, pure, ask="clustering", words="the clustering coefficient", assumed=True,
        about=_interval_bound(facts), facts=_facts(parts[0], facts)[:1],
        steps=[*parts[0].steps, *parts[1].steps], reading=reading,
        forecast=[
            Forecast("clustering", "three times the triangles, over the wedges", "from the two below", None,
                     "depends on the number of wedges"),
            _forecast(parts[0], facts, pure, "number of triangles"),
            _forecast(parts[1], facts, pure, "number of wedges"),
        ],
    )  # fmt: skip


def check_stars(graph: Graph) -> None:
    """Refuse stars of a graph whose directions or protected nodes do not allow them."""
    graph.facts.undirected("stars")
    graph.facts.edge_level("stars", "one node with all others as neighbours is the middle of all their stars")


def draft_stars(graph: Graph, goal: Goal, k: int) -> Draft[AnswerTable]:
    """Draft the number of k-stars: nodes with k of their neighbours."""
    facts = graph.facts
    check_stars(graph)
    if k == 2:
        return draft_wedges(graph, goal)
    n = facts.nodes.number
    if n is not None:
        Integer(2, n - 1, f"the number of nodes is {n:,}", instead=max(2, min(3, n - 1))).read("k", k)
    stars = _Ladder(
        "stars", lambda edges: count_stars(edges, k), lambda loaded: top_degree(loaded.edges),
        "no node has more than {} edges", 1,
        lambda bound: comb(bound, k) + bound * comb(bound - 1, k - 1), k,
    )  # fmt: skip
    return _draft_count(graph, goal, stars, f"the number of {k}-stars", {"k": k})
