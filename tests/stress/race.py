"""Eight processes of eight threads race for the last units of a budget, round after round.

Run as a script: ``python race.py WHERE KEY ROUNDS``; prints what it saw as JSON.
"""

import json
import multiprocessing
import sys
import threading
from fractions import Fraction

from tacit.accounting import Budget, Cost, Filter
from tacit.errors import TacitError
from tacit.ledger import Ledger

PROCESSES, THREADS = 8, 8
CASES = [
    (Budget(epsilon=1), Cost.pure(Fraction(1, 7))),
    (Budget(epsilon=1), Cost.pure(0.03)),
    (Budget(rho=0.1), Cost.gaussian(sigma=10, sensitivity=1)),
    (Budget(rho=0.1), Cost.pure(0.1)),
    (Budget(epsilon=1, delta=1e-6), Cost.gaussian(sigma=30, sensitivity=1)),
    (Budget(epsilon=1, delta=1e-6), Cost.pure(0.03)),
    (Budget(epsilon=1, delta=1e-6), Cost.approximate(0.03, 1e-8)),
]


def fits(budget: Budget, cost: Cost) -> int:
    """Count by the exact filter alone how many such charges a budget admits."""
    filter_, n = Filter.start(budget), 0
    while filter_.admits(filter_.spend_of(cost)) and n < PROCESSES * THREADS:
        filter_, n = filter_.after(filter_.spend_of(cost)), n + 1
    return n


def runner(where, key, orders, answers, gate):
    ledger = Ledger.open(where, key=key, wait=120)
    while (order := orders.get()) is not None:
        account, cost = order[0], Cost.from_json(order[1])
        won, odd = [], []

        def race(account=account, cost=cost, won=won, odd=odd):
            try:
                won.append(ledger.charge(account, cost).id)
            except TacitError as error:
                if error.code != "budget-exceeded":
                    odd.append(str(error))

        threads = [threading.Thread(target=race) for _ in range(THREADS)]
        gate.wait()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answers.put((won, odd))
    ledger.close()


def main(where: str, key: str, rounds: int) -> None:
    context = multiprocessing.get_context("fork")
    answers, gate = context.Queue(), context.Barrier(PROCESSES)
    orders = [context.Queue() for _ in range(PROCESSES)]
    with Ledger.open(where, key=key, wait=120):
        pass
    runners = [context.Process(target=runner, args=(where, key, one, answers, gate)) for one in orders]
    for one in runners:
        one.start()
    winners = 0
    ledger = Ledger.open(where, key=key, wait=120)
    for number in range(rounds):
        budget, cost = CASES[number % len(CASES)]
        ledger.create_account(f"round {number}", unit="patient_id", budget=budget)
        for one in orders:
            one.put((f"round {number}", cost.to_json()))
        won = []
        for _ in range(PROCESSES):
            more, odd = answers.get(timeout=300)
            assert not odd, odd
            won += more
        assert len(won) == len(set(won)) == fits(budget, cost), (number, budget, cost, len(won))
        winners += len(won)
    for one in orders:
        one.put(None)
    for one in runners:
        one.join()
    report = ledger.verify(witness=ledger.witness)
    assert report.complete, str(report)
    ledger.close()
    print(json.dumps({"rounds": rounds, "winners": winners, "entries": report.entries}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
