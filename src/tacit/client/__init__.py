"""The client of a service: its datasets, plans and releases are those of the local library.

In reading order:

- `_http_calls`: addresses, tokens, calls and their refusals
- `_ledgers`: accounts, answers and sandboxes of datasets at a service
- `_connection`: `tacit.connect`, and what it opens
- `_assistant`: the tools of an assistant
"""

from tacit.calls import refuse_wrong_calls
from tacit.client._assistant import AssistantTools, assistant_server
from tacit.client._connection import BudgetRequest, Connection, connect
from tacit.client._ledgers import ServiceAccount

__all__ = [
    "AssistantTools",
    "BudgetRequest",
    "Connection",
    "ServiceAccount",
    "assistant_server",
    "connect",
]

refuse_wrong_calls(__name__, __all__)
