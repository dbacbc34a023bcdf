"""Processes race for the instalments of one run, round after round.

Run as a script: ``python run_race.py WHERE KEY ROUNDS``; prints what it saw as JSON.
"""

import json
import multiprocessing
import sys
import time
from collections import Counter
from fractions import Fraction

from tacit.accounting import Budget, Cost
from tacit.errors import TacitError
from tacit.ledger import Ledger

PROCESSES = 6
COST = Cost.pure(Fraction(1, 1000))


def runner(where, key, orders, answers, gate):
    ledger = Ledger.open(where, key=key, wait=120)
    while (order := orders.get()) is not None:
        plan, instalments = order
        computed, drawn = [], []

        def compute(number, secret, computed=computed):
            computed.append(number)
            time.sleep(0.003)  # long enough to be overtaken
            return {"number": number, "after": list(secret)}, secret + bytes([number])

        gate.wait()
        try:
            run = ledger.run("visits", COST, plan=plan, instalments=instalments)
            while True:
                drawn.append(run.draw(compute).number)
        except TacitError as error:
            answers.put((computed, drawn, error.code))
    ledger.close()


def main(where: str, key: str, rounds: int) -> None:
    context = multiprocessing.get_context("fork")
    answers, gate = context.Queue(), context.Barrier(PROCESSES)
    orders = [context.Queue() for _ in range(PROCESSES)]
    runners = [
        context.Process(target=runner, args=(where, key, one, answers, gate), daemon=True) for one in orders
    ]
    with Ledger.open(where, key=key, wait=120) as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=10**6))
    for one in runners:
        one.start()
    shares = Counter()
    for number in range(rounds):
        instalments = 1 + number % 5
        for one in orders:
            one.put((f"run {number}", instalments))
        computed, drawn = [], []
        for _ in range(PROCESSES):
            more, mine, code = answers.get(timeout=300)
            assert code == "run-finished", code
            computed += more
            drawn += mine
            shares[bool(mine)] += 1
        wanted = list(range(1, instalments + 1))
        assert sorted(computed) == sorted(drawn) == wanted, (number, computed, drawn)
    for one in orders:
        one.put(None)
    for one in runners:
        one.join()
    with Ledger.open(where, key=key, wait=120) as ledger:
        report = ledger.verify(witness=ledger.witness)
        assert report.complete, str(report)
        assert ledger.account("visits").spent.epsilon == rounds * Fraction(1, 1000)
        for number in range(rounds):
            run = ledger.run("visits", COST, plan=f"run {number}", instalments=1 + number % 5)
            for one in run:
                assert json.loads(one.payload)["after"] == list(range(1, one.number))
    print(json.dumps({"rounds": rounds, "shared": shares[True]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
