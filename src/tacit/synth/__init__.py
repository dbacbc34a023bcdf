"""Synthetic rows: invented rows that agree with measured tables. The tables are the release."""

from tacit.calls import refuse_wrong_calls
from tacit.synth._columns import SyntheticColumn
from tacit.synth._fit import FittedModel, NoisyTable, fit
from tacit.synth._model import GraphicalModel
from tacit.synth._questions import SYNTHESIZE, synthesize
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
