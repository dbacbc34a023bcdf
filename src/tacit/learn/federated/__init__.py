"""Training together: hospitals that trust nobody with their patients, or clients with a trusted server.

`study`, `Hospital` and `Coordinator` protect patients, and nobody is trusted with an update. `clients`
protects whole clients, and trusts the server. Messages travel in this process or over Flower.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tacit.calls import refuse_wrong_calls, refusing
from tacit.learn.federated._client import Client
from tacit.learn.federated._client_model import ClientModel
from tacit.learn.federated._clients import Clients, clients
from tacit.learn.federated._coordinator import Coordinator, Exchange, in_process
from tacit.learn.federated._federated_model import FederatedModel
from tacit.learn.federated._hospital import Hospital
from tacit.learn.federated._hospital_key import HospitalKey
from tacit.learn.federated._messages import Message, pack, unpack
from tacit.learn.federated._service import HospitalService, MessageHandler, ServiceLink
from tacit.learn.federated._softmax import GradientModel, Softmax
from tacit.learn.federated._study import Participant, Study, study
from tacit.learn.federated._torch_gradients import TorchGradients

if TYPE_CHECKING:
    from tacit.learn.federated._flower import FlowerGrid, client_app, flower_exchange, server_app

__all__ = [
    "Client",
    "ClientModel",
    "Clients",
    "Coordinator",
    "Exchange",
    "FederatedModel",
    "FlowerGrid",
    "GradientModel",
    "Hospital",
    "HospitalKey",
    "HospitalService",
    "Message",
    "MessageHandler",
    "Participant",
    "ServiceLink",
    "Softmax",
    "Study",
    "TorchGradients",
    "client_app",
    "clients",
    "flower_exchange",
    "in_process",
    "pack",
    "server_app",
    "study",
    "unpack",
]

_FLOWER = frozenset({"FlowerGrid", "client_app", "flower_exchange", "server_app"})

refuse_wrong_calls(__name__, __all__)


def __getattr__(name: str) -> Any:
    if name in _FLOWER:
        return refusing(getattr(import_module("tacit.learn.federated._flower"), name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
