"""A package outside Tacit that adds a field, and how tests install it."""

from __future__ import annotations

import shutil
from pathlib import Path

_ENTRIES = """[tacit.fields]
content.edge-count = weighted_graphs:EdgeCount
dataset.weighted-graph = weighted_graphs:WEIGHTED_GRAPH
"""


def install(folder: Path) -> Path:
    """Install the package into a new folder, as pip does; return the folder for `sys.path`."""
    about = folder / "weighted_graphs-1.5.dist-info"
    about.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("weighted_graphs.py"), folder)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: weighted-graphs\nVersion: 1.5\n")
    (about / "entry_points.txt").write_text(_ENTRIES)
    (about / "RECORD").write_text("weighted_graphs.py,,\n")
    (about / "top_level.txt").write_text("weighted_graphs\n")
    return folder
