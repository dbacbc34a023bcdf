"""The progress of a long operation: shown only on a terminal, and only after a second."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

__all__ = ["is_terminal", "progress"]

_PATIENCE = 1.0  # seconds before anything is shown
_STEP = 0.2


def is_terminal(stream: TextIO | None) -> bool:
    """Report whether somebody reads this stream on a terminal; a missing or closed stream is not one.

    Python sets `sys.stderr` and `sys.stdout` to None in services and in programs without a window.

    Examples
    --------
    >>> is_terminal(None)
    False
    """
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, OSError, ValueError):  # closed, or an object that stands in for a stream
        return False


@contextmanager
def progress(label: str | Callable[[], str], share: Callable[[], float] | None = None) -> Iterator[None]:
    """Show a bar on standard error while the block runs.

    Nothing is shown if standard error is not a terminal or if the block ends within a second. The bar shows
    the share of the work that is done, never a number of rows. The block runs after a charge, so a bar that
    cannot be shown never stops it.

    Parameters
    ----------
    label
        What is being done; or a function that returns it, called now and then from another thread.
    share
        Called now and then from another thread. It returns the share of the work that is done, from 0 to 1,
        or a negative number if that is not known.

    Examples
    --------
    >>> with progress("Adding up"):
    ...     total = sum(range(10))
    >>> total
    45
    """
    if not is_terminal(sys.stderr):
        yield
        return
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(label, share, done), daemon=True)
    with suppress(RuntimeError):  # the process may have no room for one more thread
        watcher.start()
    try:
        yield
    finally:
        done.set()
        if watcher.ident is not None:
            watcher.join()


def _watch(label: str | Callable[[], str], share: Callable[[], float] | None, done: threading.Event) -> None:
    if not done.wait(_PATIENCE):
        with suppress(Exception):  # the terminal may go away, or rich may not know it
            _show(label, share, done)


def _show(label: str | Callable[[], str], share: Callable[[], float] | None, done: threading.Event) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label if isinstance(label, str) else label(), total=None)
        while not done.wait(_STEP):
            if not isinstance(label, str):
                bar.update(task, description=label())
            fraction = share() if share is not None else -1.0
            if fraction >= 0:
                bar.update(task, total=1.0, completed=min(fraction, 1.0))
