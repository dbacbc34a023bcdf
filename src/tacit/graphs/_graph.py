"""The graph: edges between nodes, the unit that is protected, and its questions, each declared once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tacit.core import Argument, Dataset, QuestionKind, plannable
from tacit.graphs._degree_questions import draft_degree_histogram, draft_degrees, draft_degrees_by
from tacit.graphs._edge_questions import (
    draft_densest,
    draft_edges,
    draft_mixing,
    draft_reciprocity,
    draft_weights,
)
from tacit.graphs._subgraphs import (
    check_stars,
    draft_clustering,
    draft_stars,
    draft_triangles,
    draft_wedges,
)
from tacit.graphs._verdict import verdict_of
from tacit.parameters import Choice, Integer, Needed, RealNumber, Text

if TYPE_CHECKING:
    from tacit.core import AnswerTable, Question
    from tacit.exact import Number
    from tacit.graphs._degree_questions import DegreeEnd
    from tacit.graphs._edges import GraphReader
    from tacit.graphs._graph_facts import GraphFacts
    from tacit.graphs._verdict import SizeVerdict


_END = Argument("of", Choice(("source", "target")), words="whose edges count, in a graph with directions")
_LARGEST = Argument("largest", Integer(1), words="the largest degree that is shown", served=Integer(1, 1_000))
_GROUP = Argument("group", Text("the name of a grouping"), needed=True, words="a declared grouping of nodes")

EDGES = QuestionKind(name="edges", words="Count the edges", draft=draft_edges)
DEGREES = QuestionKind(
    name="degrees",
    words="The degrees of all nodes, sorted",
    draft=draft_degrees,
    arguments=(_END,),
    served=False,
)
DEGREE_HISTOGRAM = QuestionKind(
    name="degree_histogram", words="How many nodes have each degree?", draft=draft_degree_histogram,
    arguments=(_LARGEST, _END),
)  # fmt: skip
TRIANGLES = QuestionKind(
    name="triangles", words="Count the triangles", draft=draft_triangles,
    arguments=(
        Argument("tau", Integer(1), words="how many triangles of one node count, if nodes are protected",
                 served=Integer(1, 10**6), brief=True),
    ),
)  # fmt: skip
WEDGES = QuestionKind(name="wedges", words="Count the paths of two edges", draft=draft_wedges)
CLUSTERING = QuestionKind(name="clustering", words="The clustering coefficient", draft=draft_clustering)
STARS = QuestionKind(
    name="stars", words="Count the stars of k edges", draft=draft_stars,
    arguments=(
        Argument("k", Integer(2, 20, "a star with one leg is an edge, and larger numbers do not fit a float"),
                 needed=True, words="how many edges a star has", served=Integer(2, 10)),
    ),
)  # fmt: skip
MIXING = QuestionKind(
    name="mixing",
    words="Count the edges between each two groups",
    draft=draft_mixing,
    arguments=(_GROUP,),
    served=False,
)
DEGREES_BY = QuestionKind(
    name="degrees_by", words="How many nodes of each group have each degree?", draft=draft_degrees_by,
    arguments=(_GROUP, _LARGEST, _END), served=False
)  # fmt: skip
DENSEST = QuestionKind(
    name="densest", words="Name the densest group", draft=draft_densest, arguments=(_GROUP,), served=False
)
WEIGHTS = QuestionKind(
    name="weights", words="Add up the weights of all edges", draft=draft_weights, served=False
)
RECIPROCITY = QuestionKind(
    name="reciprocity", words="The share of edges that are answered by an edge back", draft=draft_reciprocity
)

QUESTIONS = (
    EDGES, DEGREES, DEGREE_HISTOGRAM, TRIANGLES, WEDGES, CLUSTERING, STARS, MIXING, DEGREES_BY, DENSEST,
    WEIGHTS, RECIPROCITY,
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Graph(Dataset):
    """Edges between nodes, the unit that is protected, and public facts. Made by `tacit.graph`.

    Every method below asks a question. Its `plan` takes ``epsilon`` (with ``delta``) or ``rho`` and shows the
    cost and the error; ``release()`` then answers it.

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
    >>> release = friends.edges().plan(epsilon=1).release()
    >>> release.low <= release.value <= release.high
    True
    """

    kind: ClassVar[str] = "graph"
    questions: ClassVar[tuple[QuestionKind[Any], ...]] = QUESTIONS

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

    @plannable
    def edges(self) -> Question[AnswerTable]:
        """Ask for the number of edges.

        Guarantee: one edge moves the number by 1. If nodes are protected, edges above the declared degree
        bound D are dropped in a public order, and one node moves the number of kept edges by at most D.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="node", degree_bound=5, budget=tc.Budget(epsilon=1)
        ... )
        >>> friends.edges().plan(epsilon=1).forecast[0].mechanism
        'discrete Laplace, scale 5'
        """
        return EDGES.ask(self)

    @plannable
    def degrees(self, *, of: DegreeEnd | None = None) -> Question[AnswerTable]:
        """Ask for the degrees of all nodes, the largest first; ``of``: in a graph with directions, whose.

        Guarantee: one edge moves two of the sorted degrees by 1. The noisy degrees are replaced by the
        nearest sequence that falls, which makes the error much smaller.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", nodes=4, budget=tc.Budget(epsilon=1)
        ... )
        >>> len(friends.degrees().plan(epsilon=1).release())
        4
        """
        return DEGREES.ask(self, of=of)

    @plannable
    def degree_histogram(
        self, *, largest: int | None = None, of: DegreeEnd | None = None
    ) -> Question[AnswerTable]:
        """Ask how many nodes have each degree up to ``largest``, a public number (100 by default).

        Guarantee: the numbers of nodes with at least 1, 2, ... edges are measured; one edge moves them by 2
        together. If nodes are protected, one node moves the histogram under the degree bound D by 2D + 1.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", nodes=4, budget=tc.Budget(epsilon=1)
        ... )
        >>> list(friends.degree_histogram(largest=2).plan(epsilon=1).release().keys["degree"])
        [0, 1, 2]
        """
        return DEGREE_HISTOGRAM.ask(self, largest=largest, of=of)

    @plannable
    def triangles(self, *, tau: int | None = None) -> Question[AnswerTable]:
        """Ask for the number of triangles.

        Guarantee: pure epsilon, by noise that follows how far one edge can move the number in this graph. If
        nodes are protected, ``tau`` says how many triangles of one node count at most.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", nodes=4, degree_bound=3, budget=tc.Budget(epsilon=1)
        ... )
        >>> list(friends.triangles().plan(epsilon=1).release().columns)
        ['triangles']
        """
        return TRIANGLES.ask(self, tau=tau)

    @plannable
    def wedges(self) -> Question[AnswerTable]:
        """Ask for the number of wedges: paths of two edges, that is, pairs of edges at the same node.

        Guarantee: pure epsilon, by noise that follows how far one edge can move the number in this graph.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", nodes=4, budget=tc.Budget(epsilon=1)
        ... )
        >>> friends.wedges().plan(epsilon=1).asked
        'the number of wedges (paths of two edges)'
        """
        return WEDGES.ask(self)

    @plannable
    def clustering(self) -> Question[AnswerTable]:
        """Ask for the clustering coefficient: the share of wedges whose ends are connected.

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
        >>> list(friends.clustering().plan(epsilon=1).release().columns)
        ['clustering', 'triangles', 'wedges']
        """
        return CLUSTERING.ask(self)

    @plannable
    def stars(self, k: int) -> Question[AnswerTable]:
        """Ask for the number of k-stars: a node with k of its neighbours.

        Guarantee: pure epsilon, by noise that follows the largest degree.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", nodes=4, budget=tc.Budget(epsilon=1)
        ... )
        >>> friends.stars(3).plan(epsilon=1).asked
        'the number of 3-stars'
        """
        stars = STARS.ask(self, k=k)
        if stars.arguments["k"] > 2:
            return stars
        check_stars(self)
        return WEDGES.ask(self)

    @plannable
    def mixing(self, group: str) -> Question[AnswerTable]:
        """Ask for the number of edges between each pair of public groups of nodes (the mixing matrix).

        Guarantee: one edge moves one of these numbers by 1.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", groups={"class": {"ana": "1A", "ben": "1B"}}, budget=tc.Budget(epsilon=1)
        ... )
        >>> len(friends.mixing("class").plan(epsilon=1).release())   # 1A-1A, 1A-1B, 1B-1B
        3
        """
        return MIXING.ask(self, group=group)

    @plannable
    def degrees_by(
        self, group: str, *, largest: int | None = None, of: DegreeEnd | None = None
    ) -> Question[AnswerTable]:
        """Ask for the degree histogram of each public group of nodes; it costs as much as one histogram.

        Guarantee: one edge moves the numbers of nodes with at least 1, 2, ... edges by 2, in all groups
        together.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", groups={"class": {"ana": "1A", "ben": "1B"}}, budget=tc.Budget(epsilon=1)
        ... )
        >>> len(friends.degrees_by("class", largest=2).plan(epsilon=1).release())
        6
        """
        return DEGREES_BY.ask(self, group=group, largest=largest, of=of)

    @plannable
    def densest(self, group: str) -> Question[AnswerTable]:
        """Ask for the densest public group: the one with the most edges for its pairs.

        Guarantee: pure epsilon, by the exponential mechanism. Which groups there are and who is in them is
        public.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", groups={"class": dict(ana=1, ben=1, eva=2, tom=2)}, budget=tc.Budget(epsilon=1)
        ... )
        >>> friends.densest("class").plan(epsilon=1).release().value in {"1", "2"}
        True
        """
        return DENSEST.ask(self, group=group)

    @plannable
    def weights(self) -> Question[AnswerTable]:
        """Ask for the sum of the weights of all edges; the weight of a pair is cut at the declared bound.

        Guarantee: one edge moves the sum by at most the declared weight.

        Examples
        --------
        >>> import pandas as pd
        >>> import tacit as tc
        >>> rows = pd.DataFrame({"a": ["ana", "ben"], "b": ["ben", "eva"], "hours": [2, 30]})
        >>> friends = tc.graph(rows, unit="edge", weight=("hours", (0, 10)), budget=tc.Budget(epsilon=1))
        >>> friends.weights().plan(epsilon=1).forecast[0].mechanism
        'discrete Laplace, scale 10'
        """
        return WEIGHTS.ask(self)

    @plannable
    def reciprocity(self) -> Question[AnswerTable]:
        """Ask for the share of the edges of a directed graph that are answered by an edge back.

        Guarantee: one edge moves the number of edges by 1 and the number of mutual pairs by at most 1.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph(
        ...     [("ana", "ben"), ("ben", "eva")],
        ...     unit="edge", directed=True, budget=tc.Budget(epsilon=1)
        ... )
        >>> list(friends.reciprocity().plan(epsilon=1).release().columns)
        ['edges', 'mutual', 'reciprocity']
        """
        return RECIPROCITY.ask(self)

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
        degree_guess = Needed[Any](
            5, "here or in the declaration", why="a verdict rests on declared facts alone, never on the data"
        ).read("mean_degree", self.facts.mean_degree if mean_degree is None else mean_degree)
        degree = float(RealNumber(instead=5).read("mean_degree", degree_guess))
        return verdict_of(self.facts.number(), degree, epsilon=epsilon)
