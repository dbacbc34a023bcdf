"""The start of the ``tacit`` command, also as ``python -m tacit``. Ctrl-C ends it at any moment."""

from __future__ import annotations

import contextlib
import signal
import sys
from typing import NoReturn


def main() -> None:
    """Run the command; Ctrl-C exits with status 130."""
    with contextlib.suppress(ValueError):  # not the main thread: the caller there handles Ctrl-C
        signal.signal(signal.SIGINT, _stop)
    from tacit.cli import main as command

    command()


def _stop(_number: int, _frame: object) -> NoReturn:
    with contextlib.suppress(AttributeError, OSError, ValueError):  # standard error may be missing or closed
        sys.stderr.write("interrupted: the ledger is intact; if a charge was made, it stays\n")
    raise SystemExit(130)


if __name__ == "__main__":
    main()
