"""HTTP calls to a service: JSON in, JSON out, refusals as errors, safe retries, no redirects.

Guarantee: the token travels in one header, to the host that was named, and nowhere else. A call that may have
a side effect is sent again only with its idempotency key, by which the service recognises it.

The address and the token are read strictly, and the token is never shown. Problems of a service (RFC 9457)
become errors of this library: the same code, why and structured fix.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import threading
import time
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import quote, urlencode, urlsplit

import tacit
from tacit.errors import CODES, TacitError, bad_parameter
from tacit.fixes import Code, Say, Set, from_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.fixes import Fix


_LONGEST = 500
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{8,500}")
_MAX_WORDS = 2_000
API: Final = "/api/v1"
_MAX_BYTES = 64 * 2**20
#: Seconds between attempts. After the last one, the failure is reported.
_PAUSES: Final = (0.2, 0.5, 1.0, 2.0)
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0
#: A gateway answered in place of the service.
_GATEWAY = frozenset({502, 504})


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Where a service is: scheme, host, port and the path under which it lives."""

    scheme: str
    host: str
    port: int
    path: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.scheme == "https" else 80)
        return f"{self.scheme}://{host}{'' if usual else f':{self.port}'}{self.path}"


def read_address(url: str, *, insecure: bool = False) -> ServiceAddress:
    """Read the address of a service; plain http is refused for every host but this machine.

    Examples
    --------
    >>> str(read_address("https://stats.example.org/"))
    'https://stats.example.org'
    """
    address: object = url
    example = Set(url="https://stats.example.org")
    try:
        if (
            not isinstance(address, str)
            or not address.isascii()
            or not address.isprintable()
            or " " in address
        ):
            raise ValueError  # noqa: TRY301 - refused in the same words
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise bad_parameter("url", "the address of a service", "something else", fix=example) from None
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise bad_parameter(
            "url",
            "an address without a name, a password, a question mark or a number sign",
            "another address",
            why="addresses are written to logs, so nothing secret may be in them",
            fix=example,
        )
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise bad_parameter("url", "an address that starts with https://", url[:60], fix=example)
    if parts.scheme == "http" and not insecure and not _is_this_machine(parts.hostname):
        raise TacitError(
            "bad-parameter",
            f"the address of {parts.hostname} starts with http, so others on the network could read the "
            "token",
            why="anyone who has the token can spend the allotment of its owner",
            fix=Set(url=f"https://{parts.netloc}{parts.path}"),
        )
    usual = 443 if parts.scheme == "https" else 80
    return ServiceAddress(parts.scheme, parts.hostname, port or usual, parts.path.rstrip("/"))


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Token:
    """A secret that proves who asks. It is in no text, error, copy or file that this class makes."""

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret

    @property
    def header(self) -> str:
        """The value of the header that carries the token; nothing else does."""
        return f"Bearer {self._secret}"

    def __repr__(self) -> str:
        return "Token(...)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a token is not copied or stored: connect again where it is needed")


def read_token(given: str | os.PathLike[str] | None) -> Token:
    """Read a token: the text, a file that holds it, or what ``TACIT_TOKEN`` or ``TACIT_TOKEN_FILE`` says."""
    if given is None:
        given = os.environ.get("TACIT_TOKEN", "").strip() or None
        file = os.environ.get("TACIT_TOKEN_FILE")
        if given is None and file:
            given = Path(file)
    if given is None:
        raise TacitError(
            "bad-parameter",
            "a token is needed to ask a service",
            why="the service must know who asks",
            fix=Code('tc.connect(url, token=Path("token.txt"))'),
        )
    if isinstance(given, os.PathLike):
        given = _from_file(Path(given))
    if not _is_token(given):
        raise TacitError(
            "bad-parameter",
            "the token must be text without spaces, as the service showed it once",
            fix="make a new token on the page of your tokens",
        )
    return Token(given)


def _is_token(token: object) -> bool:
    """Whether this can be a token: one word that fits into a header."""
    return isinstance(token, str) and _TOKEN.fullmatch(token) is not None


def _from_file(path: Path) -> str:
    try:
        with path.open(encoding="ascii") as file:
            return file.read(_LONGEST + 2).strip()
    except (OSError, ValueError):
        raise TacitError(
            "bad-parameter",
            f"the file {path.name} cannot be read as a token",
            fix="write the token into the file, and nothing else",
        ) from None


def refusal_of(problem: Mapping[str, Any], status: int, address: ServiceAddress) -> TacitError:
    """Return the error that a problem document describes.

    A code that this version does not know becomes ``service-differs``, with the words of the service.
    """
    code, sentence = problem.get("code"), _words(problem.get("detail")) or _words(problem.get("title"))
    if not isinstance(code, str) or not sentence:
        return not_from_a_service(address, f"its refusal ({status}) has no code")
    why, fix = _words(problem.get("why")), _fix(problem)
    if code in CODES:
        return TacitError(code, sentence, why=why, fix=fix)
    return TacitError(
        "service-differs", sentence, why=why or f"the service calls this error {code[:60]!r}", fix=fix
    )


def _fix(problem: Mapping[str, Any]) -> Fix:
    """Return the structured fix; where there is none that can be read, its words."""
    try:
        fix = from_json(problem.get("fix_data"))
    except RecursionError:
        fix = Say("")
    return fix if str(fix) else Say(_words(problem.get("fix")))


def _words(text: object) -> str:
    return text[:_MAX_WORDS] if isinstance(text, str) else ""


def unreachable(address: ServiceAddress, error: Exception) -> TacitError:
    """Return the error of a service that does not answer; the operating system's words say why."""
    return TacitError(
        "service-unreachable",
        f"the service at {address} does not answer",
        why=getattr(error, "strerror", None)
        or getattr(error, "verify_message", None)
        or type(error).__name__,
        fix="check the address and the network, and ask again: with the same key nothing is charged twice",
    )


def _reason(error: Exception) -> str:
    """Return why a connection failed, in the words of the operating system or of TLS."""
    told = getattr(error, "verify_message", None)
    if told:
        return f"its certificate is not valid: {told}"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def not_from_a_service(address: ServiceAddress, why: str) -> TacitError:
    """Return the error of an answer that a service of Tacit does not give."""
    return TacitError(
        "service-differs",
        f"the program at {address} is not a service that this version of Tacit understands",
        why=why,
        fix="check the address; the service and this library may need the same version",
    )


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
        parameters = {name: str(value) for name, value in query.items() if value is not None}
        return self.call("GET", path + (f"?{urlencode(parameters)}" if parameters else "")).document

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
            raw = reply.read(_MAX_BYTES + 1)
        except BaseException:
            connection.close()
            raise
        if reply.will_close or len(raw) > _MAX_BYTES:
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
        if len(raw) > _MAX_BYTES:
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
