"""The questions about a graph, each declared once, and the kind of dataset that they belong to."""

from __future__ import annotations

from tacit.core import Argument, QuestionKind
from tacit.graphs._counts import draft_edges, draft_mixing, draft_reciprocity, draft_weights
from tacit.graphs._degree_questions import draft_degree_histogram, draft_degrees, draft_degrees_by
from tacit.graphs._densest import draft_densest
from tacit.graphs._ladder_questions import draft_clustering, draft_stars, draft_triangles, draft_wedges
from tacit.parameters import Choice, Integer, Text

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
