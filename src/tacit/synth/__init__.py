"""Synthetic rows: invented rows that agree with measured tables. The tables are the release.

In reading order: `_synthesis` (the question), `_columns`, `_facts` (what a plan says), `_choices` (AIM and
MST), `_model` and `_fit` (the graphical model), `_synthetic_table` (the content and its tables), `_rows`.
"""

from tacit.calls import refuse_wrong_calls
from tacit.synth._columns import SyntheticColumn
from tacit.synth._fit import FittedModel, NoisyTable, fit
from tacit.synth._model import GraphicalModel
from tacit.synth._synthesis import SYNTHESIZE, synthesize
from tacit.synth._synthetic_table import SyntheticTable

__all__ = [
    "SYNTHESIZE",
    "FittedModel",
    "GraphicalModel",
    "NoisyTable",
    "SyntheticColumn",
    "SyntheticTable",
    "fit",
    "synthesize",
]

refuse_wrong_calls(__name__, __all__)
