"""A real service in processes of its own: `tacit serve` on a free port, with a fast tick and ready people."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.invented_people import InventedPeople
from tacit.service import ServiceSettings
from tacit.service._database import Database

#: A fast clock and no limits of rates; `sources` follow.
SETTINGS = 'folder = "."\ntick = "1/20"\nlag = 20\nrate = 0\n'


@dataclass
class Served(InventedPeople):
    """A running service, and what tests need to use it."""

    folder: Path
    more: str = ""  # lines of settings instead of SETTINGS
    options: tuple[str, ...] = ()
    environ: dict[str, str] = field(default_factory=dict)
    url: str = ""
    process: Any = None
    people: dict[str, str] = field(default_factory=dict)
    _database: Database | None = None

    def start(self, *, ready: bool = True) -> Served:
        """Start the service and wait until it is ready, or until it answers."""
        self.write_settings()
        command = [sys.executable, "-m", "tacit", "serve", "--folder", str(self.folder), "--port", "0"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *self.options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | self.environ,
            )
        said = ""
        for line in self.process.stdout:
            said += line
            if "Ctrl-C" in line:
                break
        self.said = said
        found = re.search(r"at (http\S+?)/sign-in|(http\S+?:\d+)/", said)
        assert found, f"the service did not start: {said}\n{self.log()}"
        self.url = found[1] or found[2]
        self.wait_for("ready" if ready else "health")
        return self

    def write_settings(self) -> None:
        """Write the settings, unless they are there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "service.toml"
        if not file.exists():
            from tacit.tables import example_visits

            visits = f'visits = {{ path = "{example_visits()}", several = true }}'
            file.write_text(f"{self.more or SETTINGS}\n[sources]\n{visits}\n")

    def wait_for(self, probe: str, seconds: float = 60, status: int = 200) -> dict[str, Any]:
        """Wait until a probe answers with a status."""
        end = time.monotonic() + seconds
        while True:
            found, document = self.call("GET", f"/api/v1/{probe}")
            if found == status:
                return document
            assert time.monotonic() < end, f"{probe} answered {found} {document}\n{self.log()}"
            time.sleep(0.05)

    def call(
        self, method: str, path: str, token: str = "", body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Send one request; return status and document (status 0 where nobody listens)."""
        sent = dict(headers or {})
        if token:
            sent["authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                raw, status = answer.read(), answer.status
        except urllib.error.HTTPError as error:
            raw, status = error.read(), error.code
        except OSError:
            return 0, None
        try:
            return status, json.loads(raw)
        except ValueError:
            return status, raw.decode("utf-8", "replace")

    @property
    def settings(self) -> ServiceSettings:
        return ServiceSettings.read(self.folder / "service.toml", self.environ)

    @property
    def database(self) -> Database:
        """The service's database, as another process sees it."""
        if self._database is None:
            self._database = Database.open(self.settings.database_place)
        return self._database

    def processes(self) -> dict[str, list[int]]:
        """Return the numbers of the supervisor's processes: workers and runners, found by what they run."""
        found: dict[str, list[int]] = {"worker": [], "drawer": []}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _parent(entry) == self.process.pid:
                opened = _open_sockets(entry)
                kind = "worker" if self._inode() in opened else "drawer"
                if "spawn_main" in _command(entry):
                    found[kind].append(int(entry.name))
        return found

    def _inode(self) -> str:
        """Return the name of the listening socket."""
        port = f":{int(self.url.rpartition(':')[2]):04X}"
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            parts = line.split()
            if parts[1].endswith(port) and parts[3] == "0A":
                return f"socket:[{parts[9]}]"
        return ""

    def log(self) -> str:
        """Return all that the service has logged."""
        return (self.folder / "log").read_text()

    def stop(self, seconds: float = 30) -> int:
        """Stop the service in order; return the exit status."""
        if self._database is not None:
            self._database.close()
            self._database = None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise
        self.process.stdout.close()
        return int(self.process.returncode)


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _command(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _open_sockets(entry: Path) -> set[str]:
    found = set()
    try:
        for one in (entry / "fd").iterdir():
            try:
                found.add(str(one.readlink()))
            except OSError:
                continue
    except OSError:
        pass
    return found
