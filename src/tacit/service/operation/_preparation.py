"""What happens before the processes start: files are made, and the operator learns what is wrong.

The first file of settings is written when a service starts for the first time, with words for its reader.
``tacit serve check`` examines settings, permissions, disks, sources, certificate and clock. No rows.
"""

from __future__ import annotations

import os
import shutil
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tacit.errors import TacitError
from tacit.ledger import Ledger
from tacit.service._database import Database
from tacit.service._service import Service
from tacit.service.access import first_link
from tacit.service.operation._metrics import readiness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.service._settings import ListedSource, ServiceSettings


SETTINGS_FILE: Final = "service.toml"

_TEXT = """\
# The settings of a Tacit service. `tacit serve check` examines them; a change counts from the next start.

# Where the service keeps its files; "." is the folder of this file.
folder = "."

# What the pages call this service.
name = "Tacit"

# The sources that curators may choose by name. Only this file says where they are. List yours here.
[sources]
visits = "example/visits.parquet"   # invented: 12,700 visits of 6,000 patients who do not exist
# stays = "/data/stays.csv"         # a file: Parquet or CSV
# claims = { table = "claims", engine = "postgresql://reader@db/hospital" }   # a table on a server

# More settings; each shows its default. They belong above [sources].
# address = "127.0.0.1"     # another address needs a certificate, or behind_proxy = true
# port = 8340
# workers = 1
# certificate = "/etc/tacit/service.pem"
# private_key = "/etc/tacit/service-key.pem"
# behind_proxy = false      # true if a proxy on this machine ends TLS
# hosts = "tacit.example.org"
# ledger = "postgresql://tacit@db/tacit"      # instead of the file service.ledger
# database = "postgresql://tacit@db/tacit"    # instead of the file service.db
# witness = "/mnt/elsewhere/service.witness"  # the end of the ledger's log; keep it on another disk
# tick = "1/2"              # seconds between two moments at which answers leave
# lag = 4                   # after how many of these moments an answer leaves
# work = 800                # estimated work of a dataset at a time; less for very large tables
# metrics = 0               # a port of this machine for Prometheus, such as 8341
"""
_LITTLE = 1 << 30  # bytes that should be free
_FAR = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "glusterfs", "ceph"})


def write_first_settings(folder: Path) -> Path:
    """Write the settings of a new service and an example to protect; return the file. Replaces nothing."""
    from tacit.tables import example_visits

    file = folder / SETTINGS_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        example = folder / "example"
        example.mkdir(exist_ok=True)
        if not (example / "visits.parquet").exists():
            shutil.copyfile(example_visits(), example / "visits.parquet")
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(_TEXT)
    except FileExistsError:
        return file
    except OSError as error:
        raise TacitError(
            "cannot-write",
            f"the service cannot write to the folder {folder}: {error.strerror}",
            fix="--folder FOLDER, a folder that you may write",
        ) from None
    return file


def prepare(settings: ServiceSettings) -> tuple[str, str]:
    """Open the service once: its files are made and brought to their newest form, or a refusal says why not.

    Returns
    -------
    tuple
        The one-time link of the first administrator, empty if there is one; and what makes the ledger
        read-only, empty if nothing does.
    """
    service = Service(settings)
    try:
        _check_accounts(service)
        refusal = service.ledger.refusal
        return first_link(service), "" if refusal is None else refusal.what
    finally:
        service.close()


def _check_accounts(service: Service) -> None:
    """Refuse a ledger that lacks the accounts of datasets: another one has taken its place, or a new one."""
    if service.ledger.refusal is not None:
        return
    missing = []
    for row in service.database.rows("SELECT name FROM datasets ORDER BY name"):
        try:
            service.ledger.account(row["name"])
        except TacitError as refusal:
            if refusal.code != "unknown-account":
                raise
            missing.append(row["name"])
    if missing:
        raise TacitError(
            "ledger-rolled-back",
            f"the ledger does not know the dataset {missing[0]!r}, which the service's database knows"
            + (f", and {len(missing) - 1} more" if missing[1:] else ""),
            why="another ledger has taken its place, or a new one was made because its file was missing; "
            "what was spent would be forgotten",
            fix="put the ledger, its key and its artifacts back from a backup",
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was examined: ``ok``, ``note`` (worth knowing) or ``wrong``."""

    about: str
    state: str
    words: str


def examine_service(settings: ServiceSettings) -> list[Finding]:
    """Examine a service before it starts; changes nothing and reads no row.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.service import ServiceSettings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [finding.state for finding in examine_service(ServiceSettings(folder=pathlib.Path(folder)))][0]
    'ok'
    """
    findings = [*_folder(settings), *_disk(settings), *_files(settings), *_stores(settings)]
    findings += [_source(source) for source in settings.sources.values()]
    if not settings.sources:
        findings.append(Finding("sources", "note", "none is listed, so curators have nothing to protect"))
    return [*findings, *_certificate(settings), *_clock()]


def start_notes(settings: ServiceSettings) -> list[str]:
    """Return what an operator should know at each start: what an old copy of the files would do unseen."""
    return [
        finding.words for finding in _files(settings) if (finding.about, finding.state) == ("witness", "note")
    ]


def _folder(settings: ServiceSettings) -> Iterator[Finding]:
    folder = settings.folder
    if not folder.is_dir():
        yield Finding("folder", "wrong", f"{folder} does not exist; tacit serve makes it")
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield Finding("folder", "wrong", f"{folder} cannot be written by this user")
    elif folder.stat().st_mode & 0o077 and os.name == "posix":
        yield Finding("folder", "wrong", f"other users may look into {folder}; chmod 700 {folder}")
    else:
        yield Finding("folder", "ok", f"{folder} belongs to this user alone")


def _disk(settings: ServiceSettings) -> Iterator[Finding]:
    if not settings.folder.is_dir():
        return
    free = os.statvfs(settings.folder)
    size = free.f_bavail * free.f_frsize
    words = f"{size / (1 << 30):.1f} GiB are free"
    yield Finding("disk", "ok" if size > _LITTLE else "wrong", words)
    kind = _file_system(settings.folder)
    if kind in _FAR and not settings.ledger_place.startswith("postgres"):
        words = f"the folder is on a network disk ({kind}), where SQLite's log does not work"
        yield Finding("disk", "wrong", words)


def _file_system(folder: Path) -> str:
    """Return the kind of file system of a folder, as the kernel names it."""
    best, kind = "", ""
    try:
        for line in Path("/proc/mounts").read_text().splitlines():
            _, mount, file_system, *_ = line.split()
            inside = str(folder.resolve())
            if (inside == mount or inside.startswith(mount.rstrip("/") + "/")) and len(mount) >= len(best):
                best, kind = mount, file_system
    except OSError:
        return ""
    return kind


def _files(settings: ServiceSettings) -> Iterator[Finding]:
    key = Path(settings.key_place or f"{settings.ledger_place}.key")
    if key.exists():
        closed = not key.stat().st_mode & 0o077
        words = (
            f"{key} is readable by its owner alone" if closed else f"others may read {key}; chmod 600 {key}"
        )
        yield Finding("key", "ok" if closed else "wrong", words)
    witness = Path(settings.witness or f"{settings.ledger_place}.witness")
    ledger = Path(settings.ledger_place)
    if witness.exists() and ledger.exists() and witness.stat().st_dev == ledger.stat().st_dev:
        words = (
            "the witness is on the same disk as the ledger, so an old copy of the disk brings back both; "
            "name another disk"
        )
        yield Finding("witness", "note", words)
    elif witness.exists():
        yield Finding("witness", "ok", "the witness is on another disk than the ledger")


def _stores(settings: ServiceSettings) -> Iterator[Finding]:
    """Open database and ledger, if they were made."""
    on_server = settings.ledger_place.startswith("postgres")
    if not on_server and not Path(settings.ledger_place).exists():
        yield Finding("ledger", "note", "it is made when the service starts for the first time")
        return
    database = ledger = None
    try:
        database = Database.open(settings.database_place)
        ledger = Ledger.open(
            settings.ledger_place, key=settings.key_place or None, witness=settings.witness or None,
            create=False,
        )  # fmt: skip
        states = readiness(database, ledger)
        state = states["ledger"]
        words = "open, unsealed, and not older than its witness" if state == "ok" else state
        yield Finding("ledger", "ok" if state == "ok" else "wrong", words)
        state = states["database"]
        words = f"takes changes; migration {database.number}" if state == "ok" else state
        yield Finding("database", "ok" if state == "ok" else "wrong", words)
        words = "gave a sign of life" if states["drawer"] == "ok" else "does not run now"
        yield Finding("drawer", "ok" if states["drawer"] == "ok" else "note", words)
    except TacitError as refusal:
        yield Finding("ledger", "wrong", refusal.what)
    except Exception as error:  # noqa: BLE001 - whatever a server or a disk says
        yield Finding("database", "wrong", f"cannot be opened ({type(error).__name__})")
    finally:
        if ledger is not None:
            ledger.close()
        if database is not None:
            database.close()


def _source(source: ListedSource) -> Finding:
    about = f"source {source.name}"
    if source.engine != "duckdb":
        return Finding(about, "note", "it is on a server, which was not asked")
    places = list(source.place.values()) if isinstance(source.place, Mapping) else [source.place]
    for path in places:
        if "://" in str(path) or any(mark in str(path) for mark in "*?["):
            return Finding(about, "note", f"{path} was not looked for")
        if not Path(str(path)).exists():
            return Finding(about, "wrong", f"{path} does not exist")
        if not os.access(str(path), os.R_OK):
            return Finding(about, "wrong", f"{path} cannot be read by this user")
        if os.access(str(path), os.W_OK) and os.geteuid():
            return Finding(about, "note", f"{path} can be written by this user; reading is enough")
    return Finding(about, "ok", "it can be read")


def _certificate(settings: ServiceSettings) -> Iterator[Finding]:
    if not settings.certificate:
        return
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings.certificate, settings.private_key or None)
        from cryptography.x509 import load_pem_x509_certificate

        end = load_pem_x509_certificate(Path(settings.certificate).read_bytes()).not_valid_after_utc
    except (OSError, ValueError, ssl.SSLError):
        yield Finding("certificate", "wrong", "the certificate and its key cannot be read, or do not match")
        return
    days = (end - datetime.now(UTC)).days
    words = f"it is valid until {end:%Y-%m-%d}"
    yield Finding("certificate", "ok" if days > 14 else "wrong", words)


def _clock() -> Iterator[Finding]:
    """Ask the kernel whether the clock follows a time server: answers and expiry go by it."""
    try:
        import ctypes

        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(512))
    except (OSError, AttributeError):
        return
    good = 0 <= state < 5
    words = "it follows a time server" if good else "the kernel does not say that it follows a time server"
    yield Finding("clock", "ok" if good else "note", words)
