"""Peers to compare with, each in an environment of its own, so that none shapes Tacit's dependencies."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def peer_python(*requirements: str) -> Path:
    """Return the interpreter of an environment with these requirements; pip makes it on first use."""
    name = re.sub(r"[^A-Za-z0-9.]+", "-", "_".join(requirements)).strip("-")
    home = ROOT / ".venv-peers" / name
    python = home / "bin" / "python"
    ready = home / ".ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *requirements], check=True)
        ready.touch()
    return python


def ask_peer(python: Path, script: str, *arguments: object, seconds: float | None = None) -> dict[str, float]:
    """Run a script in a peer's environment; it prints one JSON object on its last line."""
    command = [python, "-W", "ignore", "-c", script, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=seconds)
    return json.loads(done.stdout.splitlines()[-1])


@dataclass(frozen=True)
class Watched:
    """What a peer printed, or why it printed nothing, and what its processes took until then."""

    found: dict[str, Any] | None
    why: str
    cpu: float
    memory: float


def watch_peer(python: Path, script: str, *arguments: object, cpu_seconds: float) -> Watched:
    """Run a script as `ask_peer` does, and stop it when its processes together have used so much CPU time.

    Memory is the largest sum of the resident sizes, in MB, of the processes that ran at the same time; memory
    that they share counts once for each of them. Both are read from /proc twice a second (Linux only).
    """
    command = [python, "-W", "ignore", "-c", script, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    cpu = memory = 0.0
    with subprocess.Popen(command, start_new_session=True, **pipes) as peer:
        while True:
            try:
                printed, complained = peer.communicate(timeout=0.5)
            except subprocess.TimeoutExpired:
                used, resident = session_use(peer.pid)
                cpu, memory = max(cpu, used), max(memory, resident)
                if cpu >= cpu_seconds:
                    os.killpg(peer.pid, signal.SIGKILL)
                    return Watched(None, f"not finished at {cpu_seconds:.0f} CPU s", cpu, memory)
            else:
                break
    if peer.returncode:
        lines = [line for line in complained.splitlines() if "Error" in line or "Exception" in line]
        return Watched(None, f"failed ({lines[-1] if lines else peer.returncode})", cpu, memory)
    return Watched(json.loads(printed.splitlines()[-1]), "", cpu, memory)


def session_use(session: int) -> tuple[float, float]:
    """Return the CPU seconds and the resident MB of a session's processes; those that ended count as CPU."""
    ticks = pages = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))  # its own and its ended children's, user and system
            pages += int(fields[21])
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE") / 2**20
