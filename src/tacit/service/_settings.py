"""The settings of a service: where its database, its ledger and its sources are, and how it answers."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from dataclasses import fields as fields_of
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from tacit.errors import TacitError, bad_parameter
from tacit.parameters import Choice, Flag, RealNumber, Share
from tacit.service._bodies import read_field

_MAY_BE_ZERO = frozenset({"port", "metrics", "rate", "connections", "waiting_days"})


@dataclass(frozen=True, slots=True)
class ListedSource:
    """A source that curators may choose by its name; only the operator writes where it is.

    Parameters
    ----------
    name
        What curators see.
    place
        A path or the name of a table; several tables by name.
    engine
        Where the tables are, as in `tacit.protect`.
    kind
        The field that reads it: ``table``, ``points``, ``graph`` ...
    options
        How the source is read, such as the decimal mark of a CSV file.
    several
        Whether several datasets may protect it, each with a budget of its own. For a person in the data these
        budgets add up, so only the operator can allow it.
    """

    name: str
    place: object
    engine: str = "duckdb"
    kind: str = "table"
    options: Mapping[str, Any] = field(default_factory=dict)
    several: bool = False


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What an operator decides; read from a file, then from variables that start with ``TACIT_SERVICE_``.

    A variable that ends in ``_FILE`` names a file that holds the value: so no secret is in the environment.

    Parameters
    ----------
    folder
        Where the service keeps its files, unless they are placed elsewhere.
    name
        What the pages call this service.
    database, ledger, witness
        Where users and requests, the charges, and the log's end are kept: paths or addresses
        ``postgresql://...``.
    sources
        What curators may protect, by name.
    address, port, workers
        Where the service listens, and with how many web workers.
    behind_proxy
        Whether a proxy in front of the service ends TLS.
    certificate, private_key
        The files of the service's own TLS certificate.
    url
        The address under which people reach the service, for links; empty for ``http://address:port``.
    tick, lag, width
        Seconds between two boundaries; after how many boundaries an answer leaves; how many draws of a
        dataset may be between their boundary and their answer at a time. A policy may have its own lag and
        width.
    work
        How much estimated work of draws a dataset takes on at a time: milliseconds for each second that a
        draw may compute. What is more waits for a later boundary.
    share
        The part of this work that one question, and one person's questions together, may take.
    waiting_days
        For how many days a role, or a password that was chosen with a link, counts as that of the person who
        gave the role or made the link, when two people must agree; 0 for none.
    fields
        The packages outside Tacit whose kinds of datasets and questions the service uses, with commas; empty
        for none.
    memory
        The most memory of one dataset's process, in MiB.
    key
        The file of the ledger's key, if it is not beside the ledger.
    hosts
        The names by which people reach the service, separated by spaces; empty for every name.
    metrics
        The port on this machine on which the service shows its metrics; 0 for none.
    rate
        How many requests a second one caller may send in the long run; 0 for no limit.
    connections
        How many connections to one worker an address may hold, if it is not one of the proxies; 0 for no
        limit.
    proxies
        With ``behind_proxy``: the addresses of the proxies that may say who the caller is, with commas.
    """

    folder: Path = Path("tacit-service")
    name: str = "Tacit"
    database: str = ""
    ledger: str = ""
    witness: str = ""
    sources: Mapping[str, ListedSource] = field(default_factory=dict)
    address: str = "127.0.0.1"
    port: int = 8340
    workers: int = 1
    behind_proxy: bool = False
    certificate: str = ""
    private_key: str = ""
    tick: Fraction = Fraction(1, 2)
    lag: int = 4
    width: int = 32
    work: int = 800
    share: Fraction = Fraction(1, 2)
    waiting_days: int = 7
    fields: str = ""
    memory: int = 4096
    url: str = ""
    oidc: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    hosts: str = ""
    metrics: int = 0
    rate: int = 20
    connections: int = 500
    proxies: str = "127.0.0.1"

    @classmethod
    def read(cls, path: str | Path | None = None, environ: Mapping[str, str] | None = None) -> Self:
        """Read a file of settings, if there is one, and the environment, which wins."""
        settings: dict[str, Any] = {}
        if path is not None:
            try:
                settings = tomllib.loads(Path(path).read_text(encoding="utf-8"))
            except (OSError, ValueError, RecursionError) as error:
                raise TacitError(
                    "bad-parameter",
                    f"the settings {path} cannot be read: {getattr(error, 'strerror', None) or error}",
                    fix="write a file of settings to start from: tacit serve --folder FOLDER",
                ) from None
        base = Path(path).parent if path is not None else Path()
        environ = os.environ if environ is None else environ
        simple = {one.name for one in fields_of(cls)} - {"sources", "oidc"}
        settings |= {name: v for name in simple if (v := _variable(environ, name)) is not None}
        unknown = set(settings) - simple - {"sources", "oidc"}
        if unknown:
            Choice(tuple(sorted(simple))).read("a setting", min(unknown))
        base_settings = cls(
            **{
                name: _read(name, value)
                for name, value in settings.items()
                if name not in {"sources", "oidc"}
            }
        )
        sources = {name: _source(name, one, base) for name, one in settings.get("sources", {}).items()}
        folder = base_settings.folder if base_settings.folder.is_absolute() else base / base_settings.folder
        return replace(base_settings, sources=sources, folder=folder, oidc=settings.get("oidc", {}))

    @property
    def packages(self) -> list[str]:
        """The packages outside Tacit that the service uses."""
        return [name.strip() for name in self.fields.split(",") if name.strip()]

    @property
    def database_place(self) -> str:
        """Where the service's own database is."""
        return self.database or str(self.folder / "service.db")

    @property
    def over_tls(self) -> bool:
        """Whether browsers reach the service by TLS only, its own or a proxy's."""
        return self.behind_proxy or bool(self.certificate)

    @property
    def public_url(self) -> str:
        """The address under which people reach the service, without a slash at the end."""
        scheme = "https" if self.certificate else "http"
        host = f"[{self.address}]" if ":" in self.address else self.address
        return self.url.rstrip("/") or f"{scheme}://{host}:{self.port}"

    def cookie(self, name: str) -> str:
        """Return the name under which a browser keeps a cookie; by TLS, no other host can set it."""
        return f"__Host-{name}" if self.over_tls else name

    @property
    def ledger_place(self) -> str:
        """Where the ledger is."""
        return self.ledger or str(self.folder / "service.ledger")

    @property
    def key_place(self) -> str:
        """Where the ledger's key is; empty for the place beside the ledger's file."""
        on_server = self.ledger_place.startswith(("postgresql://", "postgres://"))
        key_file = self.key or os.environ.get("TACIT_LEDGER_KEY_FILE", "")
        return key_file or (str(self.folder / "service.ledger.key") if on_server else "")


def _variable(environ: Mapping[str, str], name: str) -> str | None:
    """Return a setting of the environment: the value itself, or the file that holds it."""
    variable = f"TACIT_SERVICE_{name.upper()}"
    file = environ.get(f"{variable}_FILE")
    if file is None:
        return environ.get(variable)
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        raise bad_parameter(f"{variable}_FILE", "a file that this process may read", file) from None


def _read(name: str, value: Any) -> Any:
    match name:
        case (
            "port"
            | "workers"
            | "lag"
            | "width"
            | "work"
            | "memory"
            | "metrics"
            | "rate"
            | "connections"
            | "waiting_days"
        ):
            return int(_number(name, value, zero=name in _MAY_BE_ZERO))
        case "tick":
            return _number(name, value)
        case "share":
            return Share().read(name, _exact(value))
        case "folder":
            return Path(value)
        case "behind_proxy":
            return value if isinstance(value, bool) else str(value).lower() in {"1", "true", "yes"}
    return str(value)


def _number(name: str, value: Any, *, zero: bool = False) -> Fraction:
    return RealNumber(zero=zero).read(name, _exact(value))


def _exact(value: Any) -> Any:
    """Return the number that text of a file or of the environment stands for; other text stays text."""
    try:
        return Fraction(value) if isinstance(value, str) else value
    except (ValueError, ZeroDivisionError):
        return value


def _source(name: str, description: Any, base: Path) -> ListedSource:
    """Read one listed source; relative paths start from the file of settings."""
    facts = {"path": description} if isinstance(description, str) else dict(description)
    location, engine = facts.pop("path", facts.pop("table", None)), str(facts.pop("engine", "duckdb"))
    kind, several = str(facts.pop("kind", "table")), facts.pop("several", False)
    if location is None:
        raise bad_parameter(f"the source {name!r}", "a path, or a table on an engine", description)
    several = read_field(Flag("true or false"), f"several of the source {name!r}", several)
    if engine == "duckdb":
        location = _from(base, location)
    return ListedSource(name, location, engine, kind, facts, several)


def _from(base: Path, location: Any) -> Any:
    if isinstance(location, Mapping):
        return {table: _from(base, one) for table, one in location.items()}
    return location if "://" in str(location) else str(base / str(location))
