"""Sessions of the engine on a PostgreSQL server: a connection of its own, with every setting that matters."""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.fixes import Do

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

_MIN_VERSION = 16
#: What decides the result of a statement, or whether it ends: refused where it cannot be set.
_SETTINGS = {
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "extra_float_digits": "1",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "array_nulls": "on",
    "transform_null_equals": "off",
    "gin_fuzzy_search_limit": "0",
    "row_security": "off",
    "search_path": "pg_catalog, pg_temp",
    "jit": "off",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
}
#: What keeps values out of the server's log and its statistics; usually only a superuser may set them.
_QUIET = {
    "log_min_error_statement": "panic",
    "log_min_messages": "panic",
    "log_statement": "none",
    "log_duration": "off",
    "log_min_duration_statement": "-1",
    "log_min_duration_sample": "-1",
    "log_transaction_sample_rate": "0",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_temp_files": "-1",
    "debug_print_plan": "off",
    "auto_explain.log_min_duration": "-1",
    "pg_stat_statements.track": "none",
}
#: Collations that know small and capital letters, best first; the first maps single letters, as DuckDB does.
_CASES = ("pg_c_utf8", "und-x-icu", "C.utf8", "default")
_COLLATIONS = """SELECT collname::text FROM pg_collation WHERE collname = ANY($1)
AND collnamespace = 'pg_catalog'::regnamespace AND collencoding IN (-1, 6)"""
#: The schemas in which the role looks for tables. One of them may have functions and types of the same names.
_PATH = "SELECT pg_catalog.current_schemas(false)::pg_catalog.text[]"
_SET = """SELECT set_config(n, v, false) FROM unnest($1::text[], $2::text[]) t(n, v) WHERE EXISTS (
SELECT 1 FROM pg_settings WHERE name = n AND (context = 'user'
OR (context = 'superuser' AND has_parameter_privilege(n, 'SET'))))"""
_SHOWN = "SELECT n, current_setting(n) FROM unnest($1::text[]) n"
_LATER = {"transaction_timeout": "0", "idle_session_timeout": "0"}  # settings that some versions lack

#: What the client library says when no connection is made, why that is, and what helps. The message itself is
#: not shown, because it names the user and the machine.
_NO_CONNECTION = (
    ("password authentication failed", "the server does not accept this user with this password",
     "check the user, and the password in the address, in ~/.pgpass or in PGPASSWORD"),
    ("no password supplied", "the server asks for a password, and none was found",
     "put the password into ~/.pgpass or into the variable PGPASSWORD"),
    ("no pg_hba.conf entry", "the server does not admit this user to this database from this machine",
     "ask its administrator for a line in pg_hba.conf"),
    ("authentication failed", "the server does not admit this user", "check the user in the address"),
    ('role "', "the server does not know this user", "check the user in the address"),
    ('database "', "the server has no such database, or the role may not connect to it",
     "check the database at the end of the address"),
    ("resolve host", "no machine with this name was found", "check the host and the port in the address"),
    ("host name", "no machine with this name was found", "check the host in the address"),
    ("Connection refused", "no PostgreSQL server listens there",
     "check that the server runs, and the host and the port in the address"),
    ("No such file", "no PostgreSQL server listens there",
     "check that the server runs, and the host and the port in the address"),
    ("timeout expired", "the server did not answer in time", "check the host, the port and the firewall"),
    ("SSL", "no encrypted connection could be made", "check sslmode and the certificates in the address"),
    ("certificate", "no encrypted connection could be made", "check sslmode and the certificates"),
    ("too many clients", "the server has no free connection", "try again later"),
    ("connection slots", "the server has no free connection", "try again later"),
    ("invalid", "the address is malformed", "an address such as postgresql://user@host/database"),
)  # fmt: skip


def why_not(error: psycopg.Error) -> tuple[str, str]:
    """Say why the server cannot answer, and what helps; nothing of the server's own message is shown."""
    if error.sqlstate is None:  # there is no session, so no statement ran
        reason = str(error)
        for words, why, fix in _NO_CONNECTION:
            if words in reason:
                return why, fix
    return (
        "the server cannot be reached, or it refuses to analyse the statement",
        "check that the server runs and that the role may read the tables",
    )


@dataclass(frozen=True, slots=True)
class PostgresPlace:
    """A database on a PostgreSQL server.

    The engine opens connections of its own with the same parameters, so that it neither sees nor changes the
    state of a connection that it was given: its transaction, its settings, its role.

    Parameters
    ----------
    parameters
        What a new connection needs.
    """

    parameters: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, location: object) -> PostgresPlace:
        """Read an address ``postgresql://user@host/database``, or the parameters of an open connection."""
        psycopg = _psycopg()
        if isinstance(location, str):
            try:
                return cls(psycopg.conninfo.conninfo_to_dict(location))
            except psycopg.Error:
                raise TacitError(
                    "bad-parameter",
                    "the PostgreSQL address is malformed",
                    fix="an address such as postgresql://user@host/database",
                ) from None
        if not isinstance(location, psycopg.Connection):
            raise TacitError(
                "bad-parameter",
                f"an object of the type {type(location).__name__} is not a connection that Tacit can use",
                why="Tacit uses connections of psycopg 3 that are not asynchronous",
                fix="give the address of the database, such as postgresql://user@host/database",
            )
        info: Any = location.info
        try:
            secret = {"password": info.password} if info.password else {}
            return cls({**info.get_parameters(), **secret})
        except psycopg.Error:
            raise TacitError(
                "bad-parameter",
                "the PostgreSQL connection is closed",
                why="Tacit opens a connection of its own with the same parameters",
                fix="give an open connection, or the address of the database",
            ) from None

    @property
    def name(self) -> str:
        """The database, for messages, without a password."""
        parameters = self.parameters
        return f"postgresql://{parameters.get('host') or 'localhost'}/{parameters.get('dbname') or ''}"


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise TacitError(
            "missing-extra",
            "tables on PostgreSQL need the package psycopg",
            fix=Do("install", package="tacit[postgres]"),
        ) from None
    return psycopg


class Session:
    """A connection of the engine's own.

    Parameters
    ----------
    connection
        The connection, with fixed settings.
    path
        The schemas in which the role looks for tables.
    cases
        The collation that says which letters are small and which are capital.
    """

    def __init__(self, connection: Connection, path: tuple[str, ...], cases: str) -> None:
        self._connection = connection
        self._process = os.getpid()
        self._end = weakref.finalize(self, _close, connection, self._process)
        self.path = path
        self.cases = cases

    def execute(
        self, sql: str, parameters: Sequence[object] | None = None
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run a statement; parameters stand in it as $1, $2, ..."""
        return self._connection.execute(sql, parameters)

    def check_settings(self) -> None:
        """Refuse a session that lost its settings, such as behind a pooler that exchanges sessions."""
        _check_settings(self._connection)

    @property
    def closed(self) -> bool:
        """Whether the connection is closed, broken, or belongs to the process that was forked."""
        return self._connection.closed or self._process != os.getpid()

    def close(self) -> None:
        """Close the connection, in the process that opened it."""
        self._end()


def _close(connection: Connection, process: int) -> None:
    if process == os.getpid():
        connection.close()


def open_session(database: PostgresPlace) -> Session:
    """Open a connection with fixed settings, or refuse a server on which they cannot be fixed.

    Raises an error of psycopg where the server cannot be reached.
    """
    connection = _connected(database)
    try:
        [(path,)] = connection.execute(_PATH).fetchall()
        connection.execute("SET search_path = pg_catalog, pg_temp")  # from here on, names are the server's
        _check_server(connection, database)
        _fix_settings(connection)
        collations = {str(name) for (name,) in connection.execute(_COLLATIONS, (list(_CASES),)).fetchall()}
    except BaseException:
        connection.close()
        raise
    return Session(connection, tuple(path), next(name for name in _CASES if name in collations))


def _connected(database: PostgresPlace) -> Connection:
    """Connect; from its start the session has no timeouts, whatever the role's own settings are."""
    psycopg = _psycopg()
    parameters = {"connect_timeout": 10, **database.parameters, "client_encoding": "UTF8"}
    options = f"{parameters.get('options') or ''} -c statement_timeout=0 -c lock_timeout=0".strip()
    fixed = {"autocommit": True, "prepare_threshold": None, "cursor_factory": psycopg.RawCursor}
    try:
        connection: Connection = psycopg.connect(**{**parameters, "options": options}, **fixed)
    except psycopg.OperationalError as error:
        if "startup parameter" not in str(error):  # some connection poolers do not accept options
            raise
        connection = psycopg.connect(**parameters, **fixed)
    return connection


def _check_server(session: Connection, database: PostgresPlace) -> None:
    version = session.info.server_version // 10_000
    if version < _MIN_VERSION:
        raise TacitError(
            "bad-parameter",
            f"{database.name} runs PostgreSQL {version}; Tacit needs version {_MIN_VERSION} or later",
            why="earlier versions cannot check whether text can be converted before they convert it",
            fix="use a newer server, or a copy of the tables in Parquet files",
        )
    [(encoding,)] = session.execute("SELECT current_setting('server_encoding')").fetchall()
    if encoding != "UTF8":
        raise TacitError(
            "bad-parameter",
            f"the database {database.name} has the encoding {encoding}, not UTF8",
            why="text in another encoding may not be convertible, and one such row would make a query fail",
            fix="copy the tables to a database that was created with ENCODING 'UTF8'",
        )


def _fix_settings(session: Connection) -> None:
    """Set all settings; refuse a server that does not let one of them be set that matters."""
    for settings in (_SETTINGS, _LATER | _QUIET):
        session.execute(_SET, (list(settings), list(settings.values())))
    _check_settings(session)


def _check_settings(session: Connection) -> None:
    lines = session.execute(_SHOWN, (list(_SETTINGS),)).fetchall()
    settings = {str(name): str(value) for name, value in lines}
    for name, value in _SETTINGS.items():
        if settings[name] != value:
            raise TacitError(
                "bad-parameter",
                f"the server does not let the setting {name} be {value!r}",
                why="results would depend on a setting that Tacit cannot fix",
                fix=f"allow the role to set {name}",
            )
