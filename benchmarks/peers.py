"""Peers to compare with, each in an environment of its own, so that none shapes Tacit's dependencies."""

import json
import re
import subprocess
import sys
from pathlib import Path

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
