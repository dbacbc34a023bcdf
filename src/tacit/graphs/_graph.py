"""The graph: edges between nodes, the unit that is protected, and its questions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.core import Dataset, PlanGoal
from tacit.errors import bad_parameter
from tacit.exact import rational
from tacit.fixes import Set
from tacit.graphs._counts import plan_edges, plan_mixing, plan_reciprocity, plan_weights
from tacit.graphs._degree_questions import plan_degree_histogram, plan_degrees, plan_degrees_by
from tacit.graphs._densest import plan_densest
from tacit.graphs._ladder_questions import plan_clustering, plan_stars, plan_triangles, plan_wedges
from tacit.graphs._verdict import verdict_of

if TYPE_CHECKING:
    from tacit.core import AnswerTable, Plan
    from tacit.exact import Number
    from tacit.graphs._degree_questions import DegreeEnd
    from tacit.graphs._graph_facts import GraphFacts
    from tacit.graphs._loaded_graph import GraphReader
    from tacit.graphs._verdict import SizeVerdict

__all__ = ["Graph"]

_QUESTIONS = frozenset({
    "edges", "degrees", "degree_histogram", "triangles", "wedges", "clustering", "stars", "mixing",
    "degrees_by", "densest", "weights", "reciprocity",
})  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Graph(Dataset):
    """Edges between nodes, the unit that is protected, and public facts. Made by `tacit.graph`.

    Every question returns a plan: it shows cost and error, and ``release()`` answers it. All questions take
    ``epsilon`` (with ``delta``) or ``rho``, and the ``confidence`` of the intervals.

    Parameters
    ----------
    facts
        What is declared about the graph.

    Examples
    --------
    >>> import tacit as tc
    >>> friends = tc.graph(
    ...     [("ana", "ben"), ("ben", "eva"), ("eva", "ana")],
    ...     name="friends", unit="edge", nodes=["ana", "ben", "eva", "tom"], budget=tc.Budget(epsilon=3),
    ... )
    >>> release = friends.edges(epsilon=1).release()
    >>> release.low <= release.value <= release.high
    True
    """

    facts: GraphFacts
    _reader: GraphReader

    def prepare(self) -> None:
        """Read the edges now; by default the first release reads them.

        Guarantee: nothing is released. The edges are read before anything is charged and stay inside this
        dataset, so whoever calls this must not let others see how long it takes. A service calls it before
        it takes questions.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph([("ana", "ben")], unit="edge", nodes=4, budget=tc.Budget(epsilon=1))
        >>> friends.prepare()
        >>> friends.remaining
        epsilon 1 of 1
        """
        self._reader.load()

    def edges(
        self, *, epsilon: Number | None = None, delta: Number = 0, rho: Number | None = None,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:  # fmt: skip
        """Plan the number of edges.

        Guarantee: one edge moves the number by 1. If nodes are protected, edges above the declared degree
        bound D are dropped in a public order, and one node moves the number of kept edges by at most D.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="node", degree_bound=5, budget=tc.Budget(epsilon=1)
        ... )
        >>> friends.edges(epsilon=1).forecast[0].mechanism
        'discrete Laplace, scale 5'
        """
        return plan_edges(self, _goal(epsilon, delta, rho, confidence))

    def degrees(
        self, *, of: DegreeEnd | None = None, epsilon: Number | None = None, delta: Number = 0,
        rho: Number | None = None, confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:  # fmt: skip
        """Plan the degrees of all nodes, the largest first; ``of``: in a graph with directions, whose.

        Guarantee: one edge moves two of the sorted degrees by 1. The noisy degrees are replaced by the
        nearest sequence that falls, which makes the error much smaller.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", nodes=4, budget=tc.Budget(epsilon=1)
        ... )
        >>> len(friends.degrees(epsilon=1).release())
        4
        """
        return plan_degrees(self, _goal(epsilon, delta, rho, confidence), of)

    def degree_histogram(
        self, *, largest: int | None = None, of: DegreeEnd | None = None, epsilon: Number | None = None,
        delta: Number = 0, rho: Number | None = None, confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:  # fmt: skip
        """Plan how many nodes have each degree up to ``largest``, a public number (100 by default).

        Guarantee: the numbers of nodes with at least 1, 2, ... edges are measured; one edge moves them by 2
        together. If nodes are protected, one node moves the histogram under the degree bound D by 2D + 1.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", nodes=4, budget=tc.Budget(epsilon=1)
        ... )
        >>> list(friends.degree_histogram(largest=2, epsilon=1).release().keys["degree"])
        [0, 1, 2]
        """
        return plan_degree_histogram(self, _goal(epsilon, delta, rho, confidence), largest, of)

    def triangles(
        self, *, tau: int | None = None, epsilon: Number | None = None, delta: Number = 0,
        rho: Number | None = None, confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:  # fmt: skip
        """Plan the number of triangles.

        Guarantee: pure epsilon, by noise that follows how far one edge can move the number in this graph. If
        nodes are protected, ``tau`` says how many triangles of one node count at most.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", nodes=4, degree_bound=3, budget=tc.Budget(epsilon=1)
        ... )
        >>> list(friends.triangles(epsilon=1).release().columns)
        ['triangles']
        """
        return plan_triangles(self, _goal(epsilon, delta, rho, confidence), tau)

    def wedges(
        self, *, epsilon: Number | None = None, delta: Number = 0, rho: Number | None = None,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:  # fmt: skip
        """Plan the number of wedges: paths of two edges, that is, pairs of edges at the same node.

        Guarantee: pure epsilon, by noise that follows how far one edge can move the number in this graph.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", nodes=4, budget=tc.Budget(epsilon=1)
        ... )
        >>> friends.wedges(epsilon=1).asked
        'the number of wedges (paths of two edges)'
        """
        return plan_wedges(self, _goal(epsilon, delta, rho, confidence))

    def clustering(
        self, *, epsilon: Number | None = None, delta: Number = 0, rho: Number | None = None,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:  # fmt: skip
        """Plan the clustering coefficient: the share of wedges whose ends are connected.

        It is three times the triangles over the wedges, which are both released. The mean of the
        coefficients of single nodes is not available: one edge can move it too far.

        Guarantee: pure epsilon, divided between the triangles and the wedges.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", nodes=4, budget=tc.Budget(epsilon=1)
        ... )
        >>> list(friends.clustering(epsilon=1).release().columns)
        ['clustering', 'triangles', 'wedges']
        """
        return plan_clustering(self, _goal(epsilon, delta, rho, confidence))

    def stars(
        self, k: int, *, epsilon: Number | None = None, delta: Number = 0, rho: Number | None = None,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:  # fmt: skip
        """Plan the number of k-stars: a node with k of its neighbours.

        Guarantee: pure epsilon, by noise that follows the largest degree.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", nodes=4, budget=tc.Budget(epsilon=1)
        ... )
        >>> friends.stars(3, epsilon=1).asked
        'the number of 3-stars'
        """
        return plan_stars(self, _goal(epsilon, delta, rho, confidence), k)

    def mixing(
        self, group: str, *, epsilon: Number | None = None, delta: Number = 0, rho: Number | None = None,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:  # fmt: skip
        """Plan the number of edges between each pair of public groups of nodes (the mixing matrix).

        Guarantee: one edge moves one of these numbers by 1.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", groups={"class": {"ana": "1A", "ben": "1B"}}, budget=tc.Budget(epsilon=1)
        ... )
        >>> len(friends.mixing("class", epsilon=1).release())   # 1A-1A, 1A-1B, 1B-1B
        3
        """
        return plan_mixing(self, _goal(epsilon, delta, rho, confidence), group)

    def degrees_by(
        self, group: str, *, largest: int | None = None, of: DegreeEnd | None = None,
        epsilon: Number | None = None, delta: Number = 0, rho: Number | None = None,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:  # fmt: skip
        """Plan the degree histogram of each public group of nodes; it costs as much as one histogram.

        Guarantee: one edge moves the numbers of nodes with at least 1, 2, ... edges by 2, in all groups
        together.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", groups={"class": {"ana": "1A", "ben": "1B"}}, budget=tc.Budget(epsilon=1)
        ... )
        >>> len(friends.degrees_by("class", largest=2, epsilon=1).release())
        6
        """
        return plan_degrees_by(self, _goal(epsilon, delta, rho, confidence), group, largest, of)

    def densest(
        self, group: str, *, epsilon: Number | None = None, delta: Number = 0, rho: Number | None = None,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:  # fmt: skip
        """Plan the choice of the densest public group: the one with the most edges for its pairs.

        Guarantee: pure epsilon, by the exponential mechanism. Which groups there are and who is in them is
        public.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", groups={"class": dict(ana=1, ben=1, eva=2, tom=2)}, budget=tc.Budget(epsilon=1)
        ... )
        >>> friends.densest("class", epsilon=1).release().value in {"1", "2"}
        True
        """
        return plan_densest(self, _goal(epsilon, delta, rho, confidence), group)

    def weights(
        self, *, epsilon: Number | None = None, delta: Number = 0, rho: Number | None = None,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:  # fmt: skip
        """Plan the sum of the weights of all edges; the weight of a pair is cut at the declared bound.

        Guarantee: one edge moves the sum by at most the declared weight.

        Examples
        --------
        >>> import pandas as pd
        >>> import tacit as tc
        >>> rows = pd.DataFrame({"a": ["ana", "ben"], "b": ["ben", "eva"], "hours": [2, 30]})
        >>> friends = tc.graph(rows, unit="edge", weight=("hours", (0, 10)), budget=tc.Budget(epsilon=1))
        >>> friends.weights(epsilon=1).forecast[0].mechanism
        'discrete Laplace, scale 10'
        """
        return plan_weights(self, _goal(epsilon, delta, rho, confidence))

    def reciprocity(
        self, *, epsilon: Number | None = None, delta: Number = 0, rho: Number | None = None,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:  # fmt: skip
        """Plan the share of the edges of a directed graph that are answered by an edge back.

        Guarantee: one edge moves the number of edges by 1 and the number of mutual pairs by at most 1.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", directed=True, budget=tc.Budget(epsilon=1)
        ... )
        >>> list(friends.reciprocity(epsilon=1).release().columns)
        ['edges', 'mutual', 'reciprocity']
        """
        return plan_reciprocity(self, _goal(epsilon, delta, rho, confidence))

    def verdict(self, *, epsilon: Number, mean_degree: Number | None = None) -> SizeVerdict:
        """Say whether the graph is too small for its triangles, from declared facts: reads and costs nothing.

        Parameters
        ----------
        epsilon
            What the triangles may cost.
        mean_degree
            A public guess of how many edges a node has on average; by default the declared one.

        Examples
        --------
        >>> import tacit as tc
        >>> club = tc.graph([(0, 1)], unit="edge", nodes=34, budget=tc.Budget(epsilon=1))
        >>> club.verdict(epsilon=0.1, mean_degree=4.6).word
        'too small'
        """
        given = self.facts.mean_degree if mean_degree is None else mean_degree
        if given is None:
            raise bad_parameter(
                "mean_degree", "given here or declared", None, fix=Set(mean_degree=5),
                why="a verdict rests on declared facts alone, never on the data",
            )  # fmt: skip
        degree = float(rational("mean_degree", given, fix=Set(mean_degree=5)))
        return verdict_of(self.facts.number(), degree, epsilon=epsilon)

    def _rebuild(self, request: Any) -> Plan[Any]:
        """Make a plan again from its request."""
        if request["ask"] not in _QUESTIONS:
            raise ValueError("not a question about a graph")
        goal = PlanGoal.from_json(request["goal"])
        plan: Plan[Any] = getattr(self, request["ask"])(
            **request["given"],
            epsilon=goal.epsilon,
            delta=goal.delta,
            rho=goal.rho,
            confidence=goal.confidence,
        )
        return plan


def _goal(epsilon: Number | None, delta: Number, rho: Number | None, confidence: Number) -> PlanGoal:
    return PlanGoal.read(epsilon=epsilon, delta=delta, rho=rho, confidence=confidence)
