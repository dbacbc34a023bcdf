"""Hospitals that train together: patients are protected, and nobody is trusted with an update."""

from __future__ import annotations

from tacit.learn.federated._coordinator import Coordinator, Exchange, in_process
from tacit.learn.federated._federated_model import FederatedModel
from tacit.learn.federated._hospital import Hospital
from tacit.learn.federated._hospital_key import HospitalKey
from tacit.learn.federated._messages import Message, pack, unpack
from tacit.learn.federated._softmax import GradientModel, Softmax
from tacit.learn.federated._study import Participant, Study, study

__all__ = [
    "Coordinator",
    "Exchange",
    "FederatedModel",
    "GradientModel",
    "Hospital",
    "HospitalKey",
    "Message",
    "Participant",
    "Softmax",
    "Study",
    "in_process",
    "pack",
    "study",
    "unpack",
]
