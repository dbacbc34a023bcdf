"""Training together: hospitals that trust nobody with their patients, or clients with a trusted server.

`study`, `Hospital` and `Coordinator` protect patients, and nobody is trusted with an update. `clients`
protects whole clients, and trusts the server. Messages travel in this process or over Flower.
"""

from __future__ import annotations

from tacit.learn.federated._client import Client
from tacit.learn.federated._client_model import ClientModel
from tacit.learn.federated._clients import Clients, clients
from tacit.learn.federated._coordinator import Coordinator, Exchange, in_process
from tacit.learn.federated._federated_model import FederatedModel
from tacit.learn.federated._hospital import Hospital
from tacit.learn.federated._hospital_key import HospitalKey
from tacit.learn.federated._messages import Message, pack, unpack
from tacit.learn.federated._softmax import GradientModel, Softmax
from tacit.learn.federated._study import Participant, Study, study

__all__ = [
    "Client",
    "ClientModel",
    "Clients",
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
    "clients",
    "in_process",
    "pack",
    "study",
    "unpack",
]
