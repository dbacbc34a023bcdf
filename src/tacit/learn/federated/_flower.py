"""Flower 1.41 carries the messages: apps for hospitals and for the coordinator, and a grid in this process.

Flower sees bytes. What protects patients is in the messages, so nothing here has to be trusted. Its own
secure aggregation and its own noise are not used.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from tacit.core import needs
from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.learn.federated._messages import refusal

needs("Training over Flower", "flwr", "tacit[federated]")

from flwr.app import DEFAULT_TTL, ConfigRecord, Context, Error, Message, Metadata, RecordDict  # noqa: E402 - an extra
from flwr.clientapp import ClientApp  # noqa: E402
from flwr.serverapp import Grid, ServerApp  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tacit.learn.federated._coordinator import Exchange
    from tacit.learn.federated._service import MessageHandler

_RECORD: Final = "tacit"
_WORK: Final = "train.tacit"
_NAME: Final = "query.tacit"
_POLL: Final = 0.5  # seconds between two looks for new nodes


def client_app(open_handler: Callable[[Context], MessageHandler]) -> ClientApp:
    """Return the Flower app of a hospital, or of a client: it hands messages on and sends replies back.

    Flower may run every message in a new process. A hospital whose noise is shared keeps the secrets of a
    round in memory: run it as a `HospitalService`, and open a `ServiceLink` to it here.

    Parameters
    ----------
    open_handler
        Returns who answers on this node: a `ServiceLink`, a `Hospital` or a `Client`. It is called once
        in each process and node.

    Examples
    --------
    >>> from tacit.learn.federated import Client
    >>> app = client_app(lambda context: Client(f"phone {context.node_id}", lambda weights: weights))
    >>> type(app).__name__
    'ClientApp'
    """
    app = ClientApp()
    handlers: dict[tuple[int, int], MessageHandler] = {}

    def handler_of(context: Context) -> MessageHandler:
        key = (context.run_id, context.node_id)
        if key not in handlers:
            handlers[key] = open_handler(context)
        return handlers[key]

    @app.train("tacit")
    def work(message: Message, context: Context) -> Message:
        sent = _bytes_of(message)
        try:
            reply = handler_of(context).handle(sent)
        except Exception:  # noqa: BLE001 - what went wrong may depend on the data
            failed = TacitError("release-failed", "the hospital failed", fix=Say("go on with the next round"))
            reply = refusal("", failed)
        return Message(RecordDict({_RECORD: ConfigRecord({"bytes": reply})}), reply_to=message)

    @app.query("tacit")
    def name(message: Message, context: Context) -> Message:
        try:
            hospital = handler_of(context).name
        except Exception:  # noqa: BLE001 - Flower would send the words of the error, with a value of a patient
            hospital = ""
        record = ConfigRecord({"name": hospital})
        return Message(RecordDict({_RECORD: record}), reply_to=message)

    return app


def server_app(
    work: Callable[[Exchange], object], names: Sequence[str], *, wait: float = 60.0, timeout: float = 600.0
) -> ServerApp:
    """Return the Flower app of the coordinator.

    Parameters
    ----------
    work
        What to do with the exchange, such as
        ``lambda exchange: Coordinator(study, exchange).train().save("model.json")``.
    names
        The hospitals or clients to wait for.
    wait, timeout
        How many seconds to wait for their nodes at the start, and for the replies of each round.

    Examples
    --------
    >>> app = server_app(lambda exchange: None, ["north", "south"])
    >>> type(app).__name__
    'ServerApp'
    """
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        del context
        work(flower_exchange(grid, names, wait=wait, timeout=timeout))

    return app


def flower_exchange(
    grid: Grid, names: Sequence[str], *, wait: float = 60.0, timeout: float = 600.0
) -> Exchange:
    """Return an exchange that sends messages over a Flower grid.

    The nodes say who they are. Hospitals sign their keys, so a node that uses another's name can spoil a
    round, but cannot read one. Replies that do not come in time are left out.

    Parameters
    ----------
    grid
        The grid of a ``ServerApp``.
    names
        The hospitals or clients that are expected.
    wait, timeout
        How many seconds to wait for their nodes at the start, and for the replies to a message.

    Examples
    --------
    >>> from tacit.learn.federated import Client, FlowerGrid
    >>> app = client_app(lambda context: Client(f"phone {context.node_config['partition-id']}", lambda w: w))
    >>> exchange = flower_exchange(FlowerGrid(app, 3), [f"phone {i}" for i in range(3)])
    >>> sorted(exchange({"phone 1": b"hello", "phone 9": b"hello"}))
    ['phone 1']
    """
    nodes = _find(grid, frozenset(names), wait=wait, timeout=timeout)

    def exchange(sent: Mapping[str, bytes]) -> dict[str, bytes]:
        hospitals = {nodes[name]: name for name in sent if name in nodes}
        messages = [
            _message(grid, ConfigRecord({"bytes": sent[name]}), node, _WORK)
            for node, name in hospitals.items()
        ]
        replies: dict[str, bytes] = {}
        for reply in grid.send_and_receive(messages, timeout=timeout):
            source = reply.metadata.src_node_id
            if source in hospitals and reply.has_content():
                replies[hospitals[source]] = _bytes_of(reply)
        return replies

    return exchange


def _find(grid: Grid, names: frozenset[str], *, wait: float, timeout: float) -> dict[str, int]:
    """Ask all nodes for their names, until everybody is there or the time is over."""
    until = time.monotonic() + wait
    requested: set[int] = set()
    nodes: dict[str, int] = {}
    while True:
        new = [node for node in grid.get_node_ids() if node not in requested]
        requested.update(new)
        messages = [_message(grid, ConfigRecord({}), node, _NAME) for node in new]
        for reply in grid.send_and_receive(messages, timeout=timeout) if messages else ():
            hospital = _field(reply, "name")
            if isinstance(hospital, str) and hospital in names:
                _add(nodes, hospital, reply.metadata.src_node_id)
        if names <= nodes.keys() or time.monotonic() > until:
            return nodes
        time.sleep(_POLL)


def _add(nodes: dict[str, int], name: str, node: int) -> None:
    if nodes.setdefault(name, node) != node:
        raise TacitError(
            "bad-message", f"two Flower nodes say that they are {name!r}",
            why="nobody could tell which of them to ask",
            fix=Say("start one node for each hospital, and give each its own name"),
        )  # fmt: skip


def _message(grid: Grid, record: ConfigRecord, node: int, kind: str) -> Message:
    """Return a message; outside of a Flower run, only the grid itself can say who sends it."""
    content = RecordDict({_RECORD: record})
    if isinstance(grid, FlowerGrid):
        return grid.create_message(content, kind, node, "")
    return Message(content, node, kind)


def _field(message: Message, name: str) -> Any:
    """Return a field of a message, or None where it has none."""
    record = message.content.get(_RECORD) if message.has_content() else None
    return record.get(name) if isinstance(record, ConfigRecord) else None


def _bytes_of(message: Message) -> bytes:
    content = _field(message, "bytes")
    return content if isinstance(content, bytes) else b""


class FlowerGrid(Grid):
    """A Flower grid in this process: one node for each partition, one message after the other.

    For trials and tests: the apps are those of a real deployment, but no network, no Ray and no waiting.

    Parameters
    ----------
    app
        The app of the nodes.
    nodes
        How many nodes there are; each finds its number as ``partition-id`` in its ``node_config``.

    Examples
    --------
    >>> from tacit.learn.federated import Client
    >>> grid = FlowerGrid(client_app(lambda context: Client("north", lambda weights: weights)), 1)
    >>> list(grid.get_node_ids())
    [1]
    """

    def __init__(self, app: ClientApp, nodes: int) -> None:
        self._app = app
        self._contexts = {
            place + 1: Context(
                1, place + 1, {"partition-id": place, "num-partitions": nodes}, RecordDict(), {}
            )
            for place in range(nodes)
        }
        self._replies: dict[str, Message] = {}
        self._sent = 0

    def set_run(self, run: Any) -> None:
        """Do nothing: there is one run."""

    @property
    def run(self) -> Any:
        """There is no run record."""
        raise NotImplementedError

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Return a message to a node."""
        self._sent += 1
        metadata = Metadata(
            1, str(self._sent), 0, dst_node_id, "", group_id, time.time(), ttl or DEFAULT_TTL, message_type
        )
        return Message(content=content, metadata=metadata)  # type: ignore[call-overload, no-any-return]

    def get_node_ids(self) -> list[int]:
        """Return the nodes."""
        return list(self._contexts)

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Hand messages to their nodes, and keep the replies."""
        pushed = []
        for message in messages:
            number = message.metadata.message_id
            node = message.metadata.dst_node_id
            try:
                reply = self._app(message, self._contexts[node])
            except Exception as error:  # noqa: BLE001 - as a real node reports it
                reply = Message(Error(code=0, reason=type(error).__name__), reply_to=message)
            self._replies[number] = reply
            pushed.append(number)
        return pushed

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Return the replies to messages, each once."""
        return [self._replies.pop(one) for one in message_ids if one in self._replies]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """Hand messages to their nodes, and return the replies."""
        del timeout
        return self.pull_messages(self.push_messages(messages))
