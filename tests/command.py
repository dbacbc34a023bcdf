"""The installed command, run as a person would run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TACIT = Path(sys.executable).with_name("tacit")
ENVIRONMENT = {**os.environ, "COLUMNS": "100", "MPLBACKEND": "Agg", "FORCE_COLOR": ""}


def tacit(*words, cwd, **environment):
    return subprocess.run(
        [TACIT, *words],
        cwd=cwd,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
