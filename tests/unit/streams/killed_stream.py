"""A process that appends and releases days until it kills itself, with SIGKILL, at a stated moment.

Arguments: the folder, the number of days, the moment and the day at which to stop; "never" for no moment.
"""

import os
import signal
import sys
from pathlib import Path

import tacit as tc
from tacit.ledger.draws import _runs
from tacit.streams import StreamSubject, _folder

GIVEN = sys.argv[1:] if __name__ == "__main__" else [".", "0", "never", "0"]
PLACE, DAYS, MOMENT, DAY = Path(GIVEN[0]), int(GIVEN[1]), GIVEN[2], int(GIVEN[3])
LINK, INTEGERS, KEEP = os.link, StreamSubject._integers, _runs.keep_instalment


def stop(moment, day):
    if (moment, day) == (MOMENT, DAY):
        os.kill(os.getpid(), signal.SIGKILL)


def main():
    flu = tc.stream(
        PLACE / "flu", name="flu", level="event", start="2026-01-01", days=DAYS,
        budget=tc.Budget(rho=2000), ledger=PLACE / "flu.ledger",
    )  # fmt: skip
    stop("declared", 0)
    flu.begin(flu.daily(cases=tc.count(), focus="total").plan(rho=2000))
    stop("begun", 0)
    for number in range(1, DAYS + 1):
        day = flu.horizon.name(number)
        watch(number)
        if not flu._folder.has(day):
            flu.append(day, [{"x": i} for i in range(number)])
        stop("appended", number)
        flu.release(day)
        stop("released", number)


def watch(number):
    """Stop inside the writing of a file, in the middle of a draw, or after it was stored."""
    link, integers, keep = LINK, INTEGERS, KEEP

    def linking(*paths):
        stop("written", number)
        link(*paths)
        stop("linked", number)

    def computing(self, day):
        stop("claimed", day)
        found = integers(self, day)
        stop("computed", day)
        return found

    def keeping(*args, **named):
        stop("drawn", number)
        return keep(*args, **named)

    _folder.os.link = linking
    StreamSubject._integers = computing
    _runs.keep_instalment = keeping


if __name__ == "__main__":
    main()
