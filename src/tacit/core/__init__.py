"""The words every field shares: units, public facts, plans, releases, certificates."""

from tacit.core.certificate import Certificate
from tacit.core.extras import needs
from tacit.core.facts import Fact, Limits, Table
from tacit.core.picture import figure_width
from tacit.core.plan import Forecast, Plan
from tacit.core.release import Cells, Release
from tacit.core.unit import Adjacency, Identity, Unit

__all__ = [
    "Adjacency",
    "Cells",
    "Certificate",
    "Fact",
    "Forecast",
    "Identity",
    "Limits",
    "Plan",
    "Release",
    "Table",
    "Unit",
    "figure_width",
    "needs",
]
