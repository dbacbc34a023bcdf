"""What the crash scripts share: kill lives at random moments, and keep notes that survive them."""

import os
import random
import select
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tacit.accounting import Budget, Cost
from tacit.ledger import Ledger

THREADS = 4


def note(log: Path, *words: object) -> None:
    """Append one line in one write: it is there whole, or the process died before it."""
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(handle, (" ".join(map(str, words)) + "\n").encode())
    os.close(handle)


def lines(log: Path) -> list[list[str]]:
    """Read what was noted, a list of words for each line."""
    return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


def longest_life(where: str, key: str, cost: Cost, *, draws: int, least: float) -> float:
    """Return how long a life may last: some draws of this machine, so that lives are long enough to see any.

    A machine that was quiet while it was measured may be busy later, so it is ``least`` seconds or more.
    """
    with Ledger.open(where, key=key, wait=60) as ledger:
        ledger.create_account("trial", unit="patient_id", budget=Budget(epsilon=1))
        start = time.monotonic()
        for i in range(10):
            ledger.draw("trial", cost, plan=f"trial {i}", compute=lambda _: b"x")
        return max(draws * (time.monotonic() - start) / 10, least)


def work_in_threads(work: Callable[[int], None]) -> None:
    """Let some threads work until they are done, or killed."""
    threads = [threading.Thread(target=work, args=(me,), daemon=True) for me in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def kill_lives(
    live: Callable[[int, int], None],
    *,
    kills: int,
    longest: float,
    seed: int,
    before: Callable[[int], None] = lambda _: None,
    check: Callable[[], object],
) -> int:
    """Start one process after another and kill each; return how many died at work.

    ``live`` gets the number of its life, and a pipe into which it writes once its ledger is open.
    """
    dice = random.Random(seed)
    died_at_work = 0
    for life in range(kills):
        before(life)
        ready, tell = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                live(life, tell)
            finally:
                os._exit(1)
        if dice.random() < 0.8:  # most die at work, some while they open the ledger
            select.select([ready], [], [], 10)
        time.sleep(dice.uniform(0, longest))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        died_at_work += os.WIFSIGNALED(status)
        os.close(ready)
        os.close(tell)
        if life % 100 == 99:
            check()
    return died_at_work
