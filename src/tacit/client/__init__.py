"""The client of a service: its datasets, plans and releases are those of the local library."""

from tacit.calls import refuse_wrong_calls
from tacit.client._accounts import ServiceAccount
from tacit.client._assistant import AssistantTools, assistant_server
from tacit.client._connection import BudgetRequest, Connection, connect

__all__ = [
    "AssistantTools",
    "BudgetRequest",
    "Connection",
    "ServiceAccount",
    "assistant_server",
    "connect",
]

refuse_wrong_calls(__name__, __all__)
