"""Group commit: every caller gets its own answer, whatever happens to the others."""

import threading
import time

import pytest

from tacit.errors import TacitError
from tacit.ledger.stores._writer import GroupCommit


def in_threads(work, n):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()


def test_callers_that_come_while_one_works_share_the_next_batch():
    sizes, answers = [], {}

    def run(jobs):
        sizes.append(len(jobs))
        while len(sizes) == 1 and len(group._waiting) < 39:  # until everybody else has come
            time.sleep(0.001)
        for job in jobs:
            job.result = job.request * 2

    group = GroupCommit(run)
    in_threads(lambda i: answers.__setitem__(i, group.submit(i)), 40)
    assert answers == {i: 2 * i for i in range(40)}
    assert sizes == [1, 39]


def test_one_batch_runs_at_a_time():
    running, most = [0], [0]

    def run(jobs):
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.001)
        running[0] -= 1

    group = GroupCommit(run)
    in_threads(lambda _: [group.submit(0) for _ in range(20)], 8)
    assert most == [1]


def test_an_error_reaches_only_its_caller():
    def run(jobs):
        for job in jobs:
            if job.request % 2:
                job.error = TacitError("spent", f"job {job.request}")
            else:
                job.result = "fine"

    group, answers = GroupCommit(run), {}

    def work(i):
        try:
            answers[i] = group.submit(i)
        except TacitError as error:
            answers[i] = error.what

    in_threads(work, 20)
    assert answers == {i: f"job {i}" if i % 2 else "fine" for i in range(20)}


def test_a_failed_batch_fails_for_everyone_in_it_and_the_next_goes_on():
    calls = []

    def run(jobs):
        calls.append(len(jobs))
        time.sleep(0.01)
        if len(calls) <= 2:
            raise TacitError("disk-full", "no room")
        for job in jobs:
            job.result = "fine"

    group, answers = GroupCommit(run), []

    def work(_):
        try:
            answers.append(group.submit(0))
        except TacitError as error:
            answers.append(error.code)

    in_threads(work, 12)
    assert len(answers) == 12
    assert answers.count("disk-full") == sum(calls[:2])
    assert group.submit(0) == "fine"


def test_an_interrupt_of_the_leader_does_not_leave_others_waiting():
    started = threading.Event()
    first = [True]

    def run(jobs):
        if first[0]:
            first[0] = False
            started.set()
            time.sleep(0.05)
            raise KeyboardInterrupt
        for job in jobs:
            job.result = "fine"

    group, answers = GroupCommit(run), []

    def leader(_):
        with pytest.raises(KeyboardInterrupt):
            group.submit(0)

    def follower(_):
        started.wait()
        answers.append(group.submit(0))

    threads = [
        threading.Thread(target=leader, args=(0,)),
        *(threading.Thread(target=follower, args=(0,)) for _ in range(4)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()
    assert answers == ["fine"] * 4
