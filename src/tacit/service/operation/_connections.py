"""Connections of a web worker: the head of a request has a size and a time, and an address has a share.

The server's own reader keeps the headers of a request in memory until they end, however many there are and
however long they take. Nobody is known before that, so no limit of rates applies yet. A worker has a number
of connections; one address cannot take them all.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tacit.service.operation._shared import network_of

if TYPE_CHECKING:
    from asyncio import TimerHandle

#: The most bytes of a request before its body; of one piece of the network more are read, not kept.
HEAD_BYTES: Final = 64 * 1024
_BESIDE_BODY: Final = 1024 * 1024  # the most bytes between and after the pieces of a body
#: In which the head of a request must have arrived.
HEAD_SECONDS: Final = 20.0
_FULL: Final = (
    b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 30\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)


class AddressShares:
    """How many connections of one worker each address holds.

    Parameters
    ----------
    most
        The most of one address, or of one IPv6 network; 0 for no limit.
    proxies
        Addresses and networks without a limit, with commas: a proxy brings the connections of everybody.
        ``*`` stands for every address.
    """

    def __init__(self, max_connections: int = 0, proxies: str = "") -> None:
        proxy_names = [proxy.strip() for proxy in proxies.split(",") if proxy.strip()]
        self._most = 0 if "*" in proxy_names else max_connections
        self._proxies = []
        for proxy in proxy_names:
            with suppress(ValueError):  # a name is not an address: the server does not believe it either
                self._proxies.append(ipaddress.ip_network(proxy))
        self._held: Counter[str] = Counter()

    def take(self, host: str) -> str | None:
        """Take a connection for an address; return what `give_back` needs, or None if it has its share."""
        network = self._place(host)
        if network and self._held[network] >= self._most:
            return None
        if network:
            self._held[network] += 1
        return network

    def give_back(self, network: str) -> None:
        """Give back a connection."""
        if network:
            self._held[network] -= 1
            if not self._held[network]:
                del self._held[network]

    def _place(self, host: str) -> str:
        """Return what an address is counted as; empty for one without a limit."""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return ""  # a socket of this machine
        is_proxy = any(address in network for network in self._proxies)
        return network_of(host) if self._most and not is_proxy else ""


def shared_connections(max_connections: int, proxies: str) -> type[BoundedConnection]:
    """Return the connections of a worker of which one address may hold only so many."""
    return type("SharedConnection", (BoundedConnection,), {"shares": AddressShares(max_connections, proxies)})


class BoundedConnection(HttpToolsProtocol):
    """A connection that is cut when a request is too large beside its body, or its head does not end."""

    shares = AddressShares()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head: int | None = 0  # bytes that have come; None while no head is being read
        self._beside = 0  # bytes of a request that are not of its body
        self._cut_later: TimerHandle | None = None
        self._place: str | None = ""

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request; refuse an address that holds its share."""
        super().connection_made(transport)
        self._place = self.shares.take(self.client[0] if self.client else "")
        if self._place is None:
            transport.write(_FULL)
            transport.close()
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        if self._place is not None:
            self.shares.give_back(self._place)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a piece; cut the connection if the head is longer than its limit and still goes on."""
        if self._place is None:
            return
        super().data_received(data)
        self._beside += len(data)
        if self._head is not None:
            self._head += len(data)
        if (self._head or 0) > HEAD_BYTES or self._beside > _BESIDE_BODY:
            self._cut()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body, which the application limits."""
        self._beside -= len(body)
        super().on_body(body)

    def on_message_begin(self) -> None:
        """Begin to read the head of a request."""
        super().on_message_begin()
        self._beside = 0
        self._await_head()

    def on_headers_complete(self) -> None:
        """Go on with the body."""
        self._stop_waiting()
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._stop_waiting()
        self._head = 0
        self._cut_later = self.loop.call_later(HEAD_SECONDS, self._cut)

    def _stop_waiting(self) -> None:
        self._head = None
        if self._cut_later is not None:
            self._cut_later.cancel()
            self._cut_later = None

    def _cut(self) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.abort()
