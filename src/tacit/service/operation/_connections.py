"""Connections of a web worker: the head of a request has a size and a time, as its body has.

The server's own reader keeps the headers of a request in memory until they end, however many there are and
however long they take. Nobody is known before that, so no limit of rates applies yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from asyncio import TimerHandle

__all__ = ["HEAD_BYTES", "HEAD_SECONDS", "BoundedConnection"]

#: The most bytes of a request before its body; of one piece of the network more are read, not kept.
HEAD_BYTES: Final = 64 * 1024
_BESIDE_BODY: Final = 1024 * 1024  # the most bytes between and after the pieces of a body
#: In which the head of a request must have arrived.
HEAD_SECONDS: Final = 20.0


class BoundedConnection(HttpToolsProtocol):
    """A connection that is cut when a request is too large beside its body, or its head does not end."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head: int | None = 0  # bytes that have come; None while no head is being read
        self._beside = 0  # bytes of a request that are not of its body
        self._cut_later: TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a piece; cut the connection if the head is longer than its limit and still goes on."""
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
