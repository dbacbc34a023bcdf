"""Processes race for the last of a block, round after round, each block by itself.

Run as a script: ``python block_race.py WHERE KEY ROUNDS``; prints what it saw as JSON.
"""

import json
import multiprocessing
import sys
import threading
from collections import Counter
from fractions import Fraction

from tacit.accounting import Budget, Cost, Filter
from tacit.errors import TacitError
from tacit.ledger import Blocks, Ledger

PROCESSES, THREADS, DAYS = 6, 6, 3
CASES = [
    (Budget(epsilon=1), Cost.pure(Fraction(1, 3))),
    (Budget(rho=0.1), Cost.gaussian(sigma=5, sensitivity=1)),
    (Budget(epsilon=1, delta=1e-6), Cost.gaussian(sigma=12, sensitivity=1)),
]


def fits(budget: Budget, cost: Cost) -> int:
    """Count by the exact filter alone how many such charges one block admits."""
    filter_, n = Filter.start(budget), 0
    while filter_.admits(filter_.spend_of(cost)) and n < PROCESSES * THREADS // DAYS:
        filter_, n = filter_.after(filter_.spend_of(cost)), n + 1
    return n


def runner(where, key, orders, answers, gate):
    ledger = Ledger.open(where, key=key, wait=120)
    while (order := orders.get()) is not None:
        account, cost = order[0], Cost.from_json(order[1])
        won, odd = [], []

        def race(block, account=account, cost=cost, won=won, odd=odd):
            try:
                won.append((block, ledger.charge(account, cost, blocks=[block]).id))
            except TacitError as error:
                if error.code != "budget-exceeded":
                    odd.append(str(error))

        threads = [threading.Thread(target=race, args=(f"day {me % DAYS}",)) for me in range(THREADS)]
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
        ledger.create_account(f"round {number}", unit="row", budget=budget, blocks=Blocks("day"))
        for one in orders:
            one.put((f"round {number}", cost.to_json()))
        won = []
        for _ in range(PROCESSES):
            more, odd = answers.get(timeout=300)
            assert not odd, odd
            won += more
        counts = Counter(block for block, _ in won)
        assert counts == {f"day {day}": fits(budget, cost) for day in range(DAYS)}, (number, counts)
        assert len({receipt for _, receipt in won}) == len(won)
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
