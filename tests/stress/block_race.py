"""Processes race for the last of a block, round after round, each block by itself.

Run as a script: ``python block_race.py WHERE KEY ROUNDS``; prints what it saw as JSON.
"""

import sys
from collections import Counter
from fractions import Fraction

from racing import fits, race

from tacit.accounting import Budget, Cost
from tacit.ledger import Blocks

PROCESSES, THREADS, DAYS = 6, 6, 3
CASES = [
    (Budget(epsilon=1), Cost.pure(Fraction(1, 3))),
    (Budget(rho=0.1), Cost.gaussian(sigma=5, sensitivity=1)),
    (Budget(epsilon=1, delta=1e-6), Cost.gaussian(sigma=12, sensitivity=1)),
    (Budget(epsilon=1, delta=1e-6), Cost.gaussian(sigma=4.7, sensitivity=1)),
]


def check(budget: Budget, cost: Cost, won: list[tuple[str | None, str]]) -> None:
    counts = Counter(block for block, _ in won)
    each = fits(budget, cost, PROCESSES * THREADS // DAYS)
    assert counts == {f"day {day}": each for day in range(DAYS)}, (budget, cost, counts)


if __name__ == "__main__":
    race(
        sys.argv[1], sys.argv[2], int(sys.argv[3]),
        processes=PROCESSES, blocks=[f"day {me % DAYS}" for me in range(THREADS)], cases=CASES, check=check,
        unit="row", partition=Blocks("day"),
    )  # fmt: skip
