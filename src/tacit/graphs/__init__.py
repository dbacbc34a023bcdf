"""Graphs: private answers about friendships, contacts and other connections."""

from __future__ import annotations

from tacit.calls import refuse_wrong_calls
from tacit.graphs._dataset_kind import GRAPH
from tacit.graphs._declaration import graph
from tacit.graphs._edges import EdgeArrays
from tacit.graphs._graph import Graph
from tacit.graphs._graph_tables import DegreeTable, MixingTable
from tacit.graphs._verdict import SizeVerdict

__all__ = ["GRAPH", "DegreeTable", "EdgeArrays", "Graph", "MixingTable", "SizeVerdict", "graph"]

refuse_wrong_calls(__name__, __all__)
