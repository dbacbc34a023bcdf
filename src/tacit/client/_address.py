"""The address of a service and the token with which it is asked: read strictly, never shown."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Set

_LONGEST = 500
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{8,500}")


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
    given: object = url
    example = Set(url="https://stats.example.org")
    try:
        if not isinstance(given, str) or not given.isascii() or not given.isprintable() or " " in given:
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


def _is_token(given: object) -> bool:
    """Whether this can be a token: one word that fits into a header."""
    return isinstance(given, str) and _TOKEN.fullmatch(given) is not None


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
