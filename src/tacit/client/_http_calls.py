"""HTTP calls to a service: JSON in, JSON out, refusals as errors, safe retries, no redirects.

Guarantee: the token travels in one header, to the host that was named, and nowhere else. A call that may have
a side effect is sent again only with its idempotency key, by which the service recognises it.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import quote, urlencode

import tacit
from tacit.client._problems import not_from_a_service, refusal_of, unreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.client._address import ServiceAddress, Token

API: Final = "/api/v1"
_MOST_BYTES = 64 * 2**20
#: Seconds between attempts. After the last one, the failure is reported.
_PAUSES: Final = (0.2, 0.5, 1.0, 2.0)
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0
#: A gateway answered in place of the service.
_GATEWAY = frozenset({502, 504})


class ServiceReply:
    """What a service answered: a document, and where the thing is that it speaks of."""

    __slots__ = ("document", "location", "status")

    def __init__(self, status: int, document: Mapping[str, Any], location: str) -> None:
        self.status, self.document, self.location = status, document, location


def path_of(*parts: str) -> str:
    """Write the path of a resource; every part is quoted.

    Examples
    --------
    >>> path_of("accounts", "visits/ana")
    '/accounts/visits%2Fana'
    """
    return "".join(f"/{quote(part, safe='')}" for part in parts)


class HttpCalls:
    """Calls to one service with one token. Threads may share it; they take turns.

    Parameters
    ----------
    address
        Where the service is.
    token
        Who asks.
    timeout
        Seconds to wait for a sign of life.
    """

    def __init__(self, address: ServiceAddress, token: Token, *, timeout: float = 30.0) -> None:
        self.address = address
        self._token = token
        self._timeout = timeout
        self._lock = threading.Lock()
        self._kept: http.client.HTTPConnection | None = None

    def __repr__(self) -> str:
        return f"HttpCalls({str(self.address)!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a connection to a service is not copied or stored: connect again where it is needed")

    def __del__(self) -> None:
        self._drop()

    def get(self, path: str, **query: str | int | None) -> Mapping[str, Any]:
        """Read a resource; retries are safe."""
        asked = {name: str(value) for name, value in query.items() if value is not None}
        return self.call("GET", path + (f"?{urlencode(asked)}" if asked else "")).document

    def post(self, path: str, body: Mapping[str, Any], *, key: str = "", again: bool = False) -> ServiceReply:
        """Send a document.

        Parameters
        ----------
        path, body
            Where, and what.
        key
            Idempotency key: the service does the same thing once, however often it is sent.
        again
            Whether sending it twice does no harm, so that it may be sent again without a key.
        """
        return self.call("POST", path, body, key=key, again=again or bool(key))

    def close(self) -> None:
        """Close the connection that is kept open between calls."""
        with self._lock:
            self._drop()

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        key: str = "",
        again: bool = True,
    ) -> ServiceReply:
        """Send one request, again after a lost connection where that is safe, and read the reply."""
        headers = {
            "Authorization": self._token.header,
            "Accept": "application/json",
            "User-Agent": f"tacit/{tacit.__version__}",
            **({"Content-Type": "application/json"} if body is not None else {}),
            **({"Idempotency-Key": key} if key else {}),
        }
        data = None if body is None else json.dumps(body, ensure_ascii=True, allow_nan=False).encode()
        for pause in (
            0.0,
            *_PAUSES,
            None,
        ):  # the first retry follows at once: an old connection may be closed
            try:
                with self._lock:
                    if not again:
                        self._drop()
                    status, raw, reply = self._exchange(method, path, data, headers)
            except (OSError, http.client.HTTPException) as error:
                lasting = isinstance(error, ssl.SSLCertVerificationError)
                if pause is None or lasting or not (again or isinstance(error, ConnectionRefusedError)):
                    raise unreachable(self.address, error) from None
            else:
                wait = _wait_before(status, reply, pause)
                if wait is None or not (again or status == 429):
                    return self._read(status, raw, reply)
                pause = wait
            time.sleep(pause)
        raise AssertionError  # the last attempt returns or raises

    def _exchange(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes, http.client.HTTPResponse]:
        """Send a request over the connection that is open, or a new one; forget it after a failure."""
        connection = self._kept or self._opened()
        self._kept = None
        try:
            connection.request(method, self.address.path + API + path, body=data, headers=dict(headers))
            reply = connection.getresponse()
            raw = reply.read(_MOST_BYTES + 1)
        except BaseException:
            connection.close()
            raise
        if reply.will_close or len(raw) > _MOST_BYTES:
            connection.close()
        else:
            self._kept = connection
        return reply.status, raw, reply

    def _opened(self) -> http.client.HTTPConnection:
        address = self.address
        if address.scheme == "https":
            context = ssl.create_default_context()
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            return http.client.HTTPSConnection(
                address.host, address.port, timeout=self._timeout, context=context
            )
        return http.client.HTTPConnection(address.host, address.port, timeout=self._timeout)

    def _drop(self) -> None:
        connection, self._kept = self._kept, None
        if connection is not None:
            connection.close()

    def _read(self, status: int, raw: bytes, reply: http.client.HTTPResponse) -> ServiceReply:
        if 300 <= status < 400:  # a redirect could carry the token to another host, so it is not followed
            raise not_from_a_service(self.address, "it sends the question on to another address")
        if len(raw) > _MOST_BYTES:
            raise not_from_a_service(self.address, "its answer is too large")
        try:
            document = json.loads(raw, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise not_from_a_service(self.address, f"its answer ({status}) is not JSON") from None
        if not isinstance(document, dict):
            raise not_from_a_service(self.address, "its answer is not a JSON object")
        if status >= 400:
            raise refusal_of(document, status, self.address)
        return ServiceReply(status, document, reply.headers.get("Location", ""))


def _wait_before(status: int, reply: http.client.HTTPResponse, pause: float | None) -> float | None:
    """Return how long to wait before the same call again; None where the reply is to be read."""
    if pause is None or (status not in _GATEWAY and status != 429):
        return None
    told = reply.headers.get("Retry-After", "")
    seconds = float(told) if told.isascii() and told.isdigit() and len(told) < 6 else pause
    return None if seconds > _LONGEST_PAUSE else max(seconds, pause, _SHORTEST_PAUSE)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(text)
