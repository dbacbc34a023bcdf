"""Graphs: private answers about friendships, contacts and other connections.

Modules, in reading order:

_declaration         the function ``tc.graph``, and how a service declares a graph
_graph               the dataset and its questions
_graph_facts         what is public: nodes, groups, weights, bounds
_edge_sources        where edges come from: tables, arrays, graph objects
_edges               the edges in memory, and their projection to a bounded degree
_graph_draft         what all questions share
_edge_questions      edges, weights, mixing, reciprocity, the densest group
_degree_questions    degrees and their histograms
_subgraphs           triangles, wedges, stars, clustering: exact counts, and what one edge or node changes
_verdict             whether a graph is too small for its triangles
"""

from __future__ import annotations

from tacit.calls import refuse_wrong_calls
from tacit.graphs._declaration import GRAPH, graph
from tacit.graphs._edges import EdgeArrays
from tacit.graphs._graph import Graph
from tacit.graphs._graph_draft import DegreeTable, MixingTable
from tacit.graphs._verdict import SizeVerdict

__all__ = ["GRAPH", "DegreeTable", "EdgeArrays", "Graph", "MixingTable", "SizeVerdict", "graph"]

refuse_wrong_calls(__name__, __all__)
