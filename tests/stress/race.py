"""Eight processes of eight threads race for the last units of a budget, round after round.

Run as a script: ``python race.py WHERE KEY ROUNDS``; prints what it saw as JSON.
"""

import sys
from fractions import Fraction

from racing import fits, race

from tacit.accounting import Budget, Cost

PROCESSES, THREADS = 8, 8
CASES = [
    (Budget(epsilon=1), Cost.pure(Fraction(1, 7))),
    (Budget(epsilon=1), Cost.pure(0.03)),
    (Budget(rho=0.1), Cost.gaussian(sigma=10, sensitivity=1)),
    (Budget(rho=0.1), Cost.pure(0.1)),
    (Budget(epsilon=1, delta=1e-6), Cost.gaussian(sigma=30, sensitivity=1)),
    (Budget(epsilon=1, delta=1e-6), Cost.pure(0.03)),
    (Budget(epsilon=1, delta=1e-6), Cost.approximate(0.03, 1e-8)),
    (Budget(epsilon=1, delta=1e-6), Cost.gaussian(sigma=9, sensitivity=1)),
    (Budget(epsilon=1, delta=1e-6), Cost.gaussian(sigma=4.7, sensitivity=1)),  # by its promise alone
]


def check(budget: Budget, cost: Cost, won: list[tuple[str | None, str]]) -> None:
    assert len(won) == fits(budget, cost, PROCESSES * THREADS), (budget, cost, len(won))


if __name__ == "__main__":
    race(
        sys.argv[1], sys.argv[2], int(sys.argv[3]),
        processes=PROCESSES, blocks=[None] * THREADS, cases=CASES, check=check, unit="patient_id",
    )  # fmt: skip
