"""Training together: hospitals that trust nobody with their patients, or clients with a trusted server.

`study`, `Hospital` and `Coordinator` protect patients, and nobody is trusted with an update. `clients`
protects whole clients, and trusts the server. Messages travel in this process or over Flower.

In reading order:

`_study`           what hospitals agree on before they train together; all of it is public
`_gradients`       models as vectors, and gradients clipped on a public grid of integers
`_hospital`        one hospital: it answers messages, and enforces by itself what was agreed
`_secure_sums`     keys of hospitals, and masks that cancel in a sum
`_coordinator`     it sends weights, adds up what comes back, and moves the model that is released
`_messages`        one line of JSON and arrays of numbers, as bytes
`_service`         a service on the hospital's own machine
`_flower`          Flower carries the messages
`_clients`         clients of a trusted server: dataset, plan and content
`_client_rounds`   what one client computes, and the sums of its rounds
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tacit.calls import refuse_wrong_calls, refusing
from tacit.learn.federated._client_rounds import Client
from tacit.learn.federated._clients import ClientModel, Clients, clients
from tacit.learn.federated._coordinator import Coordinator, Exchange, FederatedModel, in_process
from tacit.learn.federated._gradients import GradientModel, Softmax, TorchGradients
from tacit.learn.federated._hospital import Hospital
from tacit.learn.federated._messages import Message, pack, unpack
from tacit.learn.federated._secure_sums import HospitalKey
from tacit.learn.federated._service import HospitalService, MessageHandler, ServiceLink
from tacit.learn.federated._study import Participant, Study, study

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
