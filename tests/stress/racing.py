"""What the race scripts share: processes that charge at the same moment, round after round."""

import json
import multiprocessing
import threading
from collections.abc import Callable, Sequence

from tacit.accounting import Budget, Cost, Filter
from tacit.errors import TacitError
from tacit.ledger import Blocks, Ledger

#: Costs that are charged with a promise.
PROMISES = {
    Cost.gaussian(sigma=9, sensitivity=1): Budget(epsilon=0.5, delta=1e-7),
    Cost.gaussian(sigma=4.7, sensitivity=1): Budget(epsilon=1, delta=1e-7),
}


def fits(budget: Budget, cost: Cost, most: int) -> int:
    """Count by the exact filter alone how many such charges a budget admits, up to ``most``."""
    filter_, n = Filter.start(budget), 0
    spend = filter_.spend_of(cost, PROMISES.get(cost))
    while filter_.admits(spend) and n < most:
        filter_, n = filter_.after(spend), n + 1
    return n


def _runner(where, key, blocks, orders, answers, gate):
    ledger = Ledger.open(where, key=key, wait=120)
    while (order := orders.get()) is not None:
        account, cost = order[0], Cost.from_json(order[1])
        won, odd = [], []

        def race(block, account=account, cost=cost, won=won, odd=odd):
            named = () if block is None else (block,)
            try:
                won.append((block, ledger.charge(account, cost, blocks=named, promise=PROMISES.get(cost)).id))
            except TacitError as error:
                if error.code != "budget-exceeded":
                    odd.append(str(error))

        threads = [threading.Thread(target=race, args=(block,)) for block in blocks]
        gate.wait()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answers.put((won, odd))
    ledger.close()


def race(
    where: str,
    key: str,
    rounds: int,
    *,
    processes: int,
    blocks: Sequence[str | None],
    cases: Sequence[tuple[Budget, Cost]],
    check: Callable[[Budget, Cost, list[tuple[str | None, str]]], None],
    unit: str,
    partition: Blocks | None = None,
) -> None:
    """Let processes race, each with a thread for every one of ``blocks`` (None: for all of the data).

    ``check`` gets who has won a round; each round has an account of its own. Prints what was seen as JSON.
    """
    context = multiprocessing.get_context("fork")
    answers, gate = context.Queue(), context.Barrier(processes)
    orders = [context.Queue() for _ in range(processes)]
    with Ledger.open(where, key=key, wait=120):
        pass
    runners = [
        context.Process(target=_runner, args=(where, key, blocks, one, answers, gate)) for one in orders
    ]
    for one in runners:
        one.start()
    winners = 0
    ledger = Ledger.open(where, key=key, wait=120)
    for number in range(rounds):
        budget, cost = cases[number % len(cases)]
        ledger.create_account(f"round {number}", budget=budget, unit=unit, blocks=partition)
        for one in orders:
            one.put((f"round {number}", cost.to_json()))
        won = []
        for _ in range(processes):
            more, odd = answers.get(timeout=300)
            assert not odd, odd
            won += more
        assert len({receipt for _, receipt in won}) == len(won)
        check(budget, cost, won)
        winners += len(won)
    for one in orders:
        one.put(None)
    for one in runners:
        one.join()
    report = ledger.verify(witness=ledger.witness)
    assert report.complete, str(report)
    ledger.close()
    print(json.dumps({"rounds": rounds, "winners": winners, "entries": report.entries}))
